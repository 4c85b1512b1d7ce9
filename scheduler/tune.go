package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/scheduler/controller"
)

// tuned is where the batch of an adaptive room stands, as this term knows it.
// It is not changed once made: a round puts another in its place.
type tuned struct {
	generation int64
	round      int64 // the last that Redis is known to have
	at         time.Time
	memory     memory
	wrote      time.Time // when Redis last got one
}

// memory is what a round has to know of the one before, kept with the room.
type memory struct {
	State controller.State `json:"state"`
	Ends  totals           `json:"ends"` // at which that round ended
}

// totals are the counts of a generation, of which a round is a difference.
type totals struct {
	Orders  queue.Health `json:"orders"`
	Granted int64        `json:"granted"`
	Unused  int64        `json:"unused"`
}

func totalsOf(s queue.Snapshot) totals {
	t := totals{Orders: s.Health, Unused: s.Counters["unused"]}
	for _, lane := range s.Lanes {
		t.Granted += lane.Admitted
	}
	return t
}

func limitsOf(r queue.Rules) controller.Limits {
	return controller.Limits{Batch: r.Batch, Interval: r.Interval, Capacity: r.Capacity, GrantTTL: r.TokenTTL}
}

// silence is how long a room may go without a reserve before that is an outage:
// more than a leader takes to be replaced.
func (t *term) silence() time.Duration { return t.TTL + 2*t.Round }

// mustRecall tells whether the next tick has to ask first where the room's batch
// stands: the term does not know it yet, or has long not reached the room.
func (t *term) mustRecall(r *room) bool {
	return r.life.Rules.Adaptive &&
		(r.tuned == nil || r.tuned.generation != r.life.Generation || time.Since(r.reservedAt) > t.silence())
}

// batch is what a tick may work with.
func (v *visit) batch() int {
	switch {
	case !v.life.Rules.Adaptive:
		return v.life.Rules.Batch
	case v.tuned == nil:
		return 1 // of a generation that is over: the call will be refused
	}
	return v.tuned.memory.State.Size(limitsOf(v.life.Rules))
}

// recall asks Redis where the room's batch stands, and goes on from there. It is
// part of a tick, because whatever a tick did without it would be a guess.
func (t *term) recall(ctx context.Context, v *visit) error {
	snap, err := t.Batches.Snapshot(ctx, v.life.Room)
	if err != nil {
		return fmt.Errorf("recall the batch: %w", err)
	}
	v.tuned = nil
	if snap.Generation != v.life.Generation {
		return nil
	}
	gap := snap.Now.Sub(snap.TickedAt)
	if !v.reservedAt.IsZero() {
		gap = time.Since(v.reservedAt) // our own clock does not step
	}
	next, isNew := goOn(snap, v.life, max(gap, 0) > t.silence())
	if isNew {
		if _, err := t.keep(ctx, v.life, v.step, next); err != nil {
			return err
		}
		next.wrote = time.Now()
	}
	v.tuned = next
	return nil
}

// longestRound bounds what is believed of a round that one leader began and
// another ends: between them the clock of Redis may have stepped.
const longestRound = 4 * controller.RoundLength

// goOn is where a room's batch stands by what Redis has of it, and whether that
// is news to Redis.
func goOn(snap queue.Snapshot, life queue.Life, outage bool) (next *tuned, isNew bool) {
	l, now := limitsOf(life.Rules), time.Now()
	next = &tuned{generation: snap.Generation, round: snap.Tuning.Round, at: now, memory: memory{Ends: totalsOf(snap)}}
	var kept memory
	known := snap.Tuning.Round > 0 && json.Unmarshal(snap.Tuning.Memory, &kept) == nil
	switch {
	case known && outage:
		next.memory.State = kept.State.Next(controller.Round{Took: time.Second, Outage: true}, l)
	case known:
		// The round that another leader began ends with us.
		next.memory, next.at = kept, now.Add(-min(max(snap.Now.Sub(snap.Tuning.At), 0), longestRound))
		return next, false
	case snap.Generation > life.RestorableFrom: // what was known is lost
		next.memory.State = controller.Restart(l)
	default:
		next.memory.State = controller.Begin(l)
	}
	next.round++
	return next, true
}

// keep writes what is to be known of a room after a round. It tells whether
// Redis has it: not where another scheduler has come first.
func (t *term) keep(ctx context.Context, life queue.Life, step queue.Step, n *tuned) (bool, error) {
	text, err := json.Marshal(n.memory)
	if err != nil {
		return false, fmt.Errorf("write down a round: %w", err)
	}
	state := n.memory.State
	return t.Batches.Tune(ctx, life.Room, step, queue.Tuning{
		Round: n.round, Batch: state.Size(limitsOf(life.Rules)), Verdict: string(state.Verdict), Memory: text,
	})
}

// round is one round of the controller on its way.
type round struct {
	room *room
	life queue.Life
	old  *tuned
	next *tuned
}

// tune does a round: one call that reads, and one that keeps what follows. It
// goes on beside the room's ticks and delays none. A room that is not reached
// has no rounds: once it is, a tick recalls where it stands, and makes an outage
// of it.
func (t *term) tune(ctx context.Context, r *room) {
	if !r.life.Rules.Adaptive || r.tuned == nil || t.mustRecall(r) {
		t.schedule(r.tune, r, time.Now().Add(t.Round)) // a tick recalls it first
		return
	}
	v := &round{room: r, life: r.life, old: r.tuned}
	t.spawnForRoom(ctx, func(ctx context.Context) then {
		err := t.judge(ctx, v)
		return func(context.Context) { t.judged(v, err) }
	})
}

func (t *term) judge(ctx context.Context, v *round) error {
	snap, err := t.Batches.Snapshot(ctx, v.life.Room)
	switch {
	case err != nil:
		return err
	case snap.Generation != v.life.Generation:
		return queue.GenerationError{Generation: snap.Generation}
	case snap.Tuning.Round > v.old.round: // of another scheduler, where there is no lock
		v.next, _ = goOn(snap, v.life, false)
		return nil
	}
	v.next = v.after(snap)
	if v.idle() {
		return nil
	}
	v.next.round++
	step := queue.Step{Generation: v.life.Generation, Term: t.number, Leader: t.Leader}
	if t.hold == nil {
		if step.Term, err = t.ownTerm(ctx, 0); err != nil {
			return fmt.Errorf("take a term: %w", err)
		}
	}
	kept, err := t.keep(ctx, v.life, step, v.next)
	if err != nil {
		return err
	}
	v.next.wrote = time.Now()
	if !kept {
		v.next = nil // the next tick recalls what is kept
	}
	return nil
}

// after is where the room's batch stands after the round that snap ends.
func (v *round) after(snap queue.Snapshot) *tuned {
	now, ends := time.Now(), totalsOf(snap)
	had := v.old.memory.Ends
	return &tuned{
		generation: v.old.generation, round: v.old.round, at: now, wrote: v.old.wrote,
		memory: memory{Ends: ends, State: v.old.memory.State.Next(controller.Round{
			Took:    now.Sub(v.old.at),
			Orders:  ends.Orders.Since(had.Orders),
			Granted: max(ends.Granted-had.Granted, 0),
			Unused:  max(ends.Unused-had.Unused, 0),
			Inside:  snap.Ready + snap.Claimed + snap.Processing,
		}, limitsOf(v.life.Rules))},
	}
}

// idleWrites is how often a room in which nothing happens writes that down.
const idleWrites = time.Minute

// idle tells that nothing has happened in the round that another leader would
// have to know: a room that nobody uses costs one call that reads.
func (v *round) idle() bool {
	was, is := v.old.memory, v.next.memory
	return is.Ends == was.Ends && is.State.Verdict == was.State.Verdict && is.State.Batch == was.State.Batch &&
		is.State.Verdict == controller.Idle && time.Since(v.old.wrote) < idleWrites
}

func (t *term) judged(v *round, err error) {
	r := v.room
	wait := t.Round
	switch {
	case r.tuned != v.old: // a tick has recalled it meanwhile
	case err == nil:
		t.turned(r, v.next)
	case !t.stopping && !errors.Is(err, queue.ErrStale) && !errors.Is(err, queue.ErrGeneration):
		// Redis, which the ticks speak of. Whatever it has, the next round sees all
		// that has happened since the last that was kept.
		if r.tuneFailures++; r.tuneFailures == 1 && r.failures == 0 {
			t.Log.Warn("batch not tuned", "room", r.name, "error", err)
		}
		wait = min(backoff(r.tuneFailures), t.Round)
	}
	if err == nil {
		r.tuneFailures = 0
	}
	t.schedule(r.tune, r, time.Now().Add(wait))
}

// turned puts what a round, or a recall, has come to in force with the next tick.
func (t *term) turned(r *room, next *tuned) {
	r.tuned = next
	if next == nil {
		return
	}
	verdict := next.memory.State.Verdict
	if verdict == controller.Idle || verdict == r.verdict {
		return
	}
	r.verdict = verdict
	log := t.Log.Info
	if verdict == controller.Out {
		log = t.Log.Warn
	}
	log("batch follows the database", "room", r.name, "verdict", string(verdict), "batch", next.memory.State.Size(limitsOf(r.life.Rules)))
}

// recalled takes over what a tick has found out about the room's batch, and
// plans its next round.
func (t *term) recalled(r *room, v *visit) {
	if !v.recall || v.life.Generation != r.life.Generation || v.tuned == nil {
		return
	}
	if v.tuned.wrote.IsZero() {
		r.verdict = v.tuned.memory.State.Verdict // told by the leader before
	}
	t.turned(r, v.tuned)
	// Spread, so that the rounds of many rooms do not come all at once.
	t.schedule(r.tune, r, time.Now().Add(spread(t.Round)))
}

// follows begins or ends the rounds of a room whose settings have changed. A room
// that follows its orders no more has the operator's batch with its next tick.
func (t *term) follows(r *room) {
	if !r.life.Rules.Adaptive {
		t.agenda.drop(r.tune)
		r.tuned, r.verdict = nil, controller.Idle
	}
}
