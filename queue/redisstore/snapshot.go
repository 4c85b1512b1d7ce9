package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// Snapshot reads the whole room at one moment. It costs the same however many
// wait.
func (s *Store) Snapshot(ctx context.Context, room string) (queue.Snapshot, error) {
	return s.snapshot(ctx, room, 0)
}

// SnapshotMarks is Snapshot with up to 64 marks per lane.
func (s *Store) SnapshotMarks(ctx context.Context, room string) (queue.Snapshot, error) {
	return s.snapshot(ctx, room, 1)
}

func (s *Store) snapshot(ctx context.Context, room string, marks int) (queue.Snapshot, error) {
	r, err := s.run(ctx, snapshotScript, room, marks)
	if err != nil {
		return queue.Snapshot{}, err
	}
	conf, state, stats, health := hash(r.hash("conf")), hash(r.hash("state")), hash(r.hash("stats")), hash(r.hash("health"))
	snap := queue.Snapshot{
		Room:           room,
		Generation:     r.int("generation"),
		Sale:           conf.int("sale"),
		RestorableFrom: conf.int("restorable_from"),
		Version:        conf.int("version"),
		Rules:          rules(conf),
		Settings:       []byte(conf["settings"]),
		Began:          conf.time("began"),
		Now:            r.time("now"),
		Away:           r.int("away"),
		Processing:     r.int("processing"),
		Ready:          r.int("ready"),
		Claimed:        r.int("claimed"),
		Done:           r.int("done"),
		Counters:       map[string]int64{},
		Term:           state.int("term"),
		Leader:         state["leader"],
		TickedAt:       state.time("ticked_at"),
		MemoryFull:     state["memory_full"] == "1",
		Stock:          stockOf(conf, state),
		Health:         healthOf(health),
		Tuning:         tuningOf(health),
		ToRelease:      max(conf.int("released")-state.int("released_used"), 0),
	}
	snap.Draw = snap.Rules.DrawState(queue.DrawState(state.int("draw")), snap.Now)
	for name := range stats {
		snap.Counters[name] = stats.int(name)
	}
	waiting, head, all := r.ints("waiting"), r.ints("head"), r.list("marks")
	for lane := range waiting {
		n := strconv.Itoa(lane)
		snap.Lanes = append(snap.Lanes, queue.LaneSnapshot{
			Waiting: waiting[lane], HeadScore: head[lane],
			Watermark: state.int("watermark" + n), Admitted: stats.int("admitted" + n),
			Passed: stats.int("gone"+n) - stats.int("back"+n), Marks: queue.ChooseMarks(marksOf(all, lane)),
		})
	}
	return snap, nil
}

func marksOf(all []any, lane int) []queue.Mark {
	if lane >= len(all) {
		return nil
	}
	flat, _ := all[lane].([]any)
	var out []queue.Mark
	for i := 0; i+1 < len(flat); i += 2 {
		out = append(out, queue.Mark{Rank: toInt(flat[i]), Score: toInt(flat[i+1])})
	}
	return out
}

// rules reads back what confFields wrote.
func rules(conf hash) queue.Rules {
	r := queue.Rules{
		Batch:             int(conf.int("batch")),
		Interval:          conf.duration("interval"),
		TokenTTL:          conf.duration("token_ttl"),
		PickupTTL:         conf.duration("pickup_ttl"),
		ClaimLease:        conf.duration("claim_lease"),
		ProcessingTimeout: conf.duration("processing_timeout"),
		AwayAfter:         conf.duration("away_after"),
		ForgetAfter:       conf.duration("forget_after"),
		DoneTTL:           conf.duration("done_ttl"),
		Settle:            conf.duration("settle"),
		Capacity:          int(conf.int("capacity")),
		MaxInFlight:       int(conf.int("max_in_flight")),
		MaxWaiting:        int(conf.int("max_waiting")),
		OpensAt:           conf.time("opens_at"),
		AdmitsAt:          conf.time("admits_at"),
		ClosesAt:          conf.time("closes_at"),
		Paused:            conf["paused"] == "1",
		Draining:          conf["draining"] == "1",
		OneOrder:          conf["one_order"] == "1",
		OneLine:           conf["one_line"] == "1",
		MaxWait:           conf.duration("max_wait"),
		Stock:             conf["stock"],
		Overbook:          int(conf.int("overbook")),
		Adaptive:          conf["adaptive"] == "1",
		Draw:              conf["draw"] == "1",
		Lottery:           conf["lottery"] == "1",
		Off:               conf["off"] == "1",
		Direct:            conf["direct"] == "1",
		Eager:             conf["eager"] == "1",
	}
	var boosts []time.Duration
	var highest time.Duration
	for lane := range int(conf.int("lanes")) {
		n := strconv.Itoa(lane)
		r.Weights = append(r.Weights, int(conf.int("weight"+n)))
		boosts = append(boosts, conf.duration("boost"+n))
		highest = max(highest, boosts[lane])
	}
	if highest > 0 {
		r.Boosts = boosts
	}
	return r
}

// hash is a Redis hash as read: numbers in full, times in microseconds.
type hash map[string]string

func (h hash) int(name string) int64 { return toInt(h[name]) }
func (h hash) duration(name string) time.Duration {
	return time.Duration(h.int(name)) * time.Microsecond
}

// time is the zero time where the field is 0 or missing.
func (h hash) time(name string) time.Time {
	if h.int(name) == 0 {
		return time.Time{}
	}
	return time.UnixMicro(h.int(name))
}
