package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/linekeeper/linekeeper/api/spec"
)

const (
	lookEvery  = 250 * time.Millisecond
	readWithin = 5 * time.Second
)

// reader goes the way of the lines: straight, whatever proxy the environment has.
var reader = &http.Client{Timeout: readWithin, Transport: &http.Transport{}}

// status reads the public status of the room.
func status(ctx context.Context, p Plan) (s spec.RoomStatus, code int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/v1/rooms/"+url.PathEscape(p.Room), nil)
	if err != nil {
		return s, 0, err
	}
	resp, err := reader.Do(req)
	if err != nil {
		return s, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return s, 0, err
	}
	if resp.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, &s)
	}
	return s, resp.StatusCode, err
}

// reach asks whether there is a room to load.
func reach(ctx context.Context, p Plan) error {
	s, code, err := status(ctx, p)
	var failed *url.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return Unreachable{fmt.Errorf("nothing listens at %s; start `linekeeper dev` (make run), or name a server with --url", p.URL)}
	case errors.As(err, &failed):
		return Unreachable{fmt.Errorf("%s does not answer: %w; --url names another server", p.URL, failed.Err)}
	case code == http.StatusNotFound:
		return fmt.Errorf("%w: %s has no room %q", ErrNoRoom, p.URL, p.Room)
	case err != nil || code == http.StatusOK && s.RoomState == "":
		return Unreachable{fmt.Errorf("%s answers, but not as Linekeeper does; --url names another server", p.URL)}
	case code != http.StatusOK:
		return Unreachable{fmt.Errorf("%s answers %d for room %q; `linekeeper doctor` says what is wrong there", p.URL, code, p.Room)}
	}
	return nil
}

// watch looks at the room from outside and, with an operator, from inside.
type watch struct {
	*run
	waiting atomic.Int64 // as the room says; -1: it did not
	mu      sync.Mutex
	states  []string // the states of the room, each time that it changed
	set     settings
	first   look
	looks   []look
	shown   look         // the last whose grants were shown
	fullest float64      // of all windows
	missed  atomic.Int64 // looks that came to nothing
}

// watch begins to look. The first look is before anybody comes, so that nothing
// happens unseen; where it fails the token is wrong, or the room hidden from it.
func (r *run) watch(ctx context.Context) (*watch, error) {
	w := &watch{run: r}
	w.public(ctx)
	if r.plan.Operator == nil {
		return w, nil
	}
	return w, w.look(ctx)
}

// begin starts the clock of the run. What was looked at until now was before.
func (w *watch) begin() {
	w.agenda.began = time.Now()
	for i := range w.looks {
		w.looks[i].asked, w.looks[i].answered = 0, 0
	}
}

// observe looks until ctx ends.
func (w *watch) observe(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { every(ctx, time.Second, func() { w.public(ctx) }) })
	if w.plan.Operator != nil {
		all.Go(func() { every(ctx, lookEvery, func() { _ = w.look(ctx) }) })
	}
}

// last is one more look when all is over: what was seen shortly before is judged
// by it.
func (w *watch) last() {
	if w.plan.Operator == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	_ = w.look(ctx)
}

// every calls do until ctx ends.
func every(ctx context.Context, period time.Duration, do func()) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			do()
		case <-ctx.Done():
			return
		}
	}
}

// public reads the status that everybody can see.
func (w *watch) public(ctx context.Context) {
	s, code, err := status(ctx, w.plan)
	if err != nil || code != http.StatusOK {
		w.waiting.Store(-1)
		return
	}
	w.waiting.Store(s.Waiting)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.states); n == 0 || w.states[n-1] != string(s.RoomState) {
		w.states = append(w.states, string(s.RoomState))
	}
}

// granted is how many the room has let through by the rate since it was last asked
// for, as far as was looked.
func (w *watch) granted() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.looks) == 0 {
		return 0
	}
	before := w.shown
	w.shown = w.looks[len(w.looks)-1]
	if before.generation != w.shown.generation {
		return 0 // nothing to compare with
	}
	return w.shown.charged - before.charged
}

// maxLooks are kept, ten minutes of them: longer windows are not judged.
const maxLooks = 2400

// look takes a snapshot and judges by it. One that fails makes the next window
// longer, and nothing else.
func (w *watch) look(ctx context.Context) error {
	asked := w.agenda.now()
	body, err := w.plan.Operator.Snapshot(ctx, w.plan.Room)
	if err != nil {
		w.missed.Add(1)
		return err
	}
	l, err := readLook(body)
	if err != nil {
		return err
	}
	l.asked, l.answered = asked, w.agenda.now()
	if err := w.pace(ctx, &l); err != nil {
		w.missed.Add(1)
		return err
	}
	w.mu.Lock()
	if len(w.looks) == 0 {
		w.first, w.shown = l, l
	}
	w.looks = append(w.looks, l)
	w.looks = w.looks[max(0, len(w.looks)-maxLooks):]
	looks := w.looks
	w.mu.Unlock()
	part, window := fullest(looks)
	if len(looks) > 1 {
		w.judge.hold(withinTheRate, part <= 1, "%s", window)
	}
	w.mu.Lock()
	w.fullest = max(w.fullest, part)
	w.mu.Unlock()
	w.judge.explain(looks)
	return nil
}

// pace fills in the rate in force at a look. Where the settings have changed it
// may be that of before or after.
func (w *watch) pace(ctx context.Context, l *look) error {
	before := w.set
	if l.version != before.version {
		body, err := w.plan.Operator.Settings(ctx, w.plan.Room)
		if err != nil {
			return err
		}
		if w.set, err = readSettings(body); err != nil {
			return err
		}
	}
	l.own = rate{w.set.batch, w.set.interval}
	if before.version != 0 {
		l.own = l.own.most(rate{before.batch, before.interval})
	}
	// What was begun under one rate may end under the next.
	l.rate = l.own
	for i := len(w.looks) - 1; i >= 0 && l.at.Sub(w.looks[i].at) <= w.set.processing; i-- {
		l.rate = l.rate.most(w.looks[i].own)
	}
	return nil
}
