package admin

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/linekeeper/linekeeper/api/problem"
)

const dead = "dead"

var statuses = []string{"pending", "done", dead}

// listOutbox shows the dead unless asked for others: they are what operators
// come for.
func (s *server) listOutbox(w http.ResponseWriter, r *http.Request) error {
	status, err := parameter(r, "status", dead)
	if err != nil {
		return err
	}
	if !slices.Contains(statuses, status) {
		return refusal{problem.New("bad-request").WithDetail("The parameter status must be pending, done or dead.")}
	}
	limit, after, err := page(r, "after")
	if err != nil {
		return err
	}
	entries, err := s.Outbox.List(r.Context(), status, limit, after)
	if err != nil {
		return err
	}
	if entries == nil {
		entries = []Entry{}
	}
	last := func() int64 { return entries[len(entries)-1].ID }
	return write(w, http.StatusOK, map[string]any{"entries": entries, "next": next(len(entries), limit, last)})
}

// requeue writes the audit row before the outbox changes, because the two are
// not one transaction: a row too many can be explained, a row too few can't.
func (s *server) requeue(w http.ResponseWriter, r *http.Request) error {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return refusal{problem.New("not-found")}
	}
	if err := noBody(w, r); err != nil {
		return err
	}
	found, err := s.Outbox.List(r.Context(), dead, 1, id-1)
	if err != nil {
		return err
	}
	if len(found) == 0 || found[0].ID != id {
		return ErrNotDead
	}
	after := found[0]
	after.Status, after.Attempts = "pending", 0
	if err := s.Store.Record(r.Context(), actor(r, "outbox.requeue"), "outbox/"+strconv.FormatInt(id, 10), found[0], after); err != nil {
		return err
	}
	if err := s.Outbox.Requeue(r.Context(), id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
