package admin

import (
	"net/http"
	"regexp"

	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/room"
)

// targetForm covers rooms, SKUs and outbox/id. Anything else has no changes,
// and some of it Postgres would not take as a text.
var targetForm = regexp.MustCompile(`^[A-Za-z0-9._/-]{0,80}$`)

// listChanges pages by id and not by number, so that changes made meanwhile
// shift nothing.
func (s *server) listChanges(w http.ResponseWriter, r *http.Request) error {
	limit, before, err := page(r, "before")
	if err != nil {
		return err
	}
	target, err := parameter(r, "target", "")
	if err != nil {
		return err
	}
	if !targetForm.MatchString(target) {
		return refusal{problem.New("bad-request").WithDetail("The parameter target must be a room, a SKU, or outbox/ and an id.")}
	}
	changes, err := s.Store.Changes(r.Context(), target, before, limit)
	if err != nil {
		return err
	}
	if changes == nil {
		changes = []room.Change{}
	}
	last := func() int64 { return changes[len(changes)-1].ID }
	return write(w, http.StatusOK, map[string]any{"changes": changes, "next": next(len(changes), limit, last)})
}
