//go:build faults

package point_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"time"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
)

// shows is the status that a poll with a ticket is answered with, by a process
// that knows nothing of before.
func (s *stage) shows(t credential.Ticket) string {
	ring, err := credential.ParseRing(credential.GenerateKey())
	s.must(err)
	text, err := ring.SignTicket(t)
	s.must(err)
	a := api.New(api.Options{Line: s.Store, Returns: s.Store, Snapshots: s.Store, Books: books{s}, Ring: ring})
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(s, "GET", "/v1/rooms/"+s.room+"/entries/me", nil)
	r.Header.Set("X-Queue-Ticket", text.Reveal())
	a.Handler().ServeHTTP(w, r)
	var p struct{ Status string }
	s.must(json.Unmarshal(w.Body.Bytes(), &p))
	return p.Status
}

// books is a Postgres that keeps nobody out, has never heard of a place, and of no
// room that fails open.
type books struct{ s *stage }

func (b books) Generations(context.Context) (map[string]int64, error) {
	return map[string]int64{b.s.room: b.s.life.Generation}, nil
}

func (b books) Restorable(context.Context, string, int64, string, int) (int64, bool, error) {
	return 0, true, nil
}

func (b books) Barred(context.Context, string, int64, []string, bool) (map[string]bool, error) {
	return nil, nil
}

func (b books) FailOpen(context.Context) ([]queue.Life, time.Time, error) {
	return nil, time.Time{}, nil
}
