package main

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/linekeeper/linekeeper/api"
	"github.com/linekeeper/linekeeper/api/problem"
	"github.com/linekeeper/linekeeper/internal/breaker"
	"github.com/linekeeper/linekeeper/internal/telemetry"
	"github.com/linekeeper/linekeeper/outbox"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler"
)

// gaugesEvery is how often the leader reads rooms and the outbox for metrics.
const gaugesEvery = 5 * time.Second

// leadership is whether this process leads, for the gauges that only one
// process should export.
type leadership struct{ leads atomic.Bool }

func (s *server) middleware() []func(http.Handler) http.Handler {
	return []func(http.Handler) http.Handler{
		s.metrics.HTTP,
		telemetry.Recover(s.log, func(w http.ResponseWriter, r *http.Request) {
			problem.Write(w, r, problem.New("internal"))
		}),
	}
}

func (s *server) apiObserver() api.Observer {
	return api.Observer{
		Entered:      s.metrics.Entered,
		Restored:     s.metrics.Restored,
		Waited:       s.metrics.Waited,
		OtherNetwork: s.metrics.OtherNetwork,
		StraightIn: func(room, lane string) { // counts like an admission of a tick
			s.metrics.Granted(room, "issued", 1)
			s.metrics.Admitted(room, lane, 0)
		},
		FailedOpen: s.metrics.FailedOpen,
		PassedOpen: s.metrics.PassedOpen,
		Stretched:  s.metrics.SetStretch,
		Polled:     func(room string, status queue.Status) { s.metrics.Polled(room, string(status)) },
		Moved: func(ctx context.Context, m api.Move) {
			s.moves.Log(ctx, telemetry.Transition{Member: m.Member, Room: m.Room, Lane: m.Lane, From: m.From, To: m.To,
				Score: m.Score, Grant: m.Grant, Waiting: m.Waiting})
		},
	}
}

func (s *server) schedulerObserver(leads *leadership) scheduler.Observer {
	return scheduler.Observer{
		Led: func(term int64, is bool) {
			leads.leads.Store(is)
			s.metrics.Led(term, is)
		},
		Ticked: func(t scheduler.Tick) {
			result := "ok"
			if t.Err != nil {
				result = "failed"
			}
			s.metrics.Ticked(t.Room, result, t.Took, time.Now())
		},
		Issued: s.issued,
		Reaped: func(room string, n queue.Reaped) {
			s.metrics.Departed(room, "expired", n.Expired)
			s.metrics.Departed(room, "forgotten", n.Forgotten)
			s.metrics.Granted(room, "away", n.Away)
			s.metrics.Granted(room, "lapsed", n.Lapsed)
			s.metrics.Granted(room, "returned", n.Returned)
		},
		Lost: func(room string) { s.metrics.Departed(room, "lost", 1) },
	}
}

func (s *server) issued(a scheduler.Admission) {
	s.metrics.Granted(a.Room, "issued", a.Counts.Granted)
	s.metrics.Granted(a.Room, "refused", a.Counts.Refused)
	s.metrics.Lifted(a.Room, a.Lifted)
	s.metrics.Departed(a.Room, "evicted", a.Counts.Refused)
	for i, d := range a.Decisions {
		place, to, lane := a.Candidates[i].Place, string(queue.OutcomeEvicted), ""
		if place.Lane < len(a.Lanes) {
			lane = a.Lanes[place.Lane]
		}
		if d.Grant != "" {
			to = string(queue.Ready)
			// This clock against that of Redis: good enough for a histogram.
			waited := time.Since(place.EnteredAt())
			if place.Lane < len(a.Boosts) {
				waited -= a.Boosts[place.Lane]
			}
			waited = max(waited, 0)
			if place.Drawn() { // which does not say since when somebody has waited
				waited = -1
			}
			s.metrics.Admitted(a.Room, lane, waited)
		}
		s.moves.Log(context.Background(), telemetry.Transition{Member: d.Member, Room: a.Room, Lane: lane,
			From: string(queue.Waiting), To: to, Score: place.Score, Grant: d.Grant})
	}
}

// gauges exports, while this process leads, what all processes share.
func (s *server) gauges(ctx context.Context, leads *leadership) error {
	book := outbox.NewAdmin(s.books)
	for ctx.Err() == nil {
		sleep(ctx, gaugesEvery)
		if !leads.leads.Load() {
			s.metrics.ForgetAll()
			continue
		}
		if st, err := book.Stats(ctx); err == nil {
			s.metrics.SetOutbox(st.Pending, st.Dead, st.OldestAge)
		}
		rooms, err := s.rooms.Generations(ctx)
		if err != nil {
			continue
		}
		names := slices.Collect(maps.Keys(rooms))
		s.metrics.ForgetRooms(names)
		for _, name := range names {
			if snap, err := s.line.Snapshot(ctx, name); err == nil {
				s.show(snap)
			}
		}
	}
	return nil
}

func (s *server) show(snap queue.Snapshot) {
	s.metrics.SetRoom(snap.Room, map[string]float64{
		"waiting": float64(snap.Waiting()), "away": float64(snap.Away), "processing": float64(snap.Processing),
		"ready": float64(snap.Ready), "claimed": float64(snap.Claimed),
	}, headAge(snap))
	s.metrics.SetBatch(snap.Room, snap.Rules.Batch)
	s.metrics.SetPassedOff(snap.Room, snap.Counters["passed_off"])
	s.metrics.SetBatchInForce(snap.Room, snap.InForce(), verdict(snap))
	s.metrics.SetStock(snap.Room, stockLeft(snap))
}

// stockLeft is what the room was last told of its product; nil for none.
func stockLeft(snap queue.Snapshot) *float64 {
	if snap.Rules.Stock == "" || snap.Stock.Told.IsZero() {
		return nil
	}
	left := float64(snap.Stock.Left)
	return &left
}

// verdict is that on the last round of an adaptive room; empty of any other.
func verdict(snap queue.Snapshot) string {
	if !snap.Rules.Adaptive {
		return ""
	}
	return cmp.Or(snap.Tuning.Verdict, "idle")
}

// headAge is how many seconds the longest-waiting member has waited.
func headAge(snap queue.Snapshot) float64 {
	age := 0.0
	for i, l := range snap.Lanes {
		if l.HeadScore >= queue.Beyond { // one that was drawn says no time
			age = max(age, (snap.Now.Sub(time.UnixMicro(l.HeadScore)) - snap.Rules.Boost(i)).Seconds())
		}
	}
	return age
}

// breakerChanged tells of a breaker. That it lets one request try, and that this one
// fails too, is no news.
func (s *server) breakerChanged(name string, from, to breaker.State) {
	s.metrics.SetBreaker(name, int(to))
	switch {
	case to == breaker.Open && from == breaker.Closed:
		s.log.Warn("breaker open, requests are refused at once", "breaker", name)
	case to == breaker.Closed && from != to:
		s.log.Info("breaker closed", "breaker", name)
	}
}
