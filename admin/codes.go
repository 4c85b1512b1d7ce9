package admin

import (
	"context"
	"net/http"

	"github.com/linekeeper/linekeeper/room"
)

// Codes keeps the access codes of rooms. Errors are those of package room.
type Codes interface {
	// MakeCodes returns the codes themselves, which nobody can do a second time.
	MakeCodes(ctx context.Context, name string, want room.NewCodes, by room.Actor) (codes []string, batch int64, err error)
	// Codes returns up to limit codes with ids above after, lowest first.
	Codes(ctx context.Context, name string, after int64, limit int) ([]room.Code, error)
	// RevokeCodes returns how many counted until now.
	RevokeCodes(ctx context.Context, name string, which room.Revocation, by room.Actor) (int64, error)
}

// makeCodes shows the codes, this once. Neither the audit list nor the log has
// them.
func (s *server) makeCodes(w http.ResponseWriter, r *http.Request) error {
	name, want, err := wish(w, r, room.ParseNewCodes)
	if err != nil {
		return err
	}
	codes, batch, err := s.Store.MakeCodes(r.Context(), name, want, actor(r, "code.create"))
	if err != nil {
		return err
	}
	return write(w, http.StatusCreated, map[string]any{"room": name, "batch": batch, "lane": orNull(want.Lane), "uses": want.Uses, "codes": codes})
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (s *server) listCodes(w http.ResponseWriter, r *http.Request) error {
	name, err := roomName(r)
	if err != nil {
		return err
	}
	limit, after, err := page(r, "after")
	if err != nil {
		return err
	}
	codes, err := s.Store.Codes(r.Context(), name, after, limit)
	if err != nil {
		return err
	}
	if codes == nil {
		codes = []room.Code{}
	}
	last := func() int64 { return codes[len(codes)-1].ID }
	return write(w, http.StatusOK, map[string]any{"codes": codes, "next": next(len(codes), limit, last)})
}

// revokeCodes succeeds as well where nothing counts any more: doing it twice is
// done once.
func (s *server) revokeCodes(w http.ResponseWriter, r *http.Request) error {
	name, which, err := wish(w, r, room.ParseRevocation)
	if err != nil {
		return err
	}
	n, err := s.Store.RevokeCodes(r.Context(), name, which, actor(r, "code.revoke"))
	if err != nil {
		return err
	}
	return write(w, http.StatusOK, map[string]any{"revoked": n})
}
