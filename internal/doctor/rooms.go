package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

func roomsThere(_ context.Context, e *exam) Finding {
	known := func(w *ward) bool { return w.name == e.Room }
	switch {
	case e.wardsErr != nil:
		return unreadable("rooms", e.wardsErr)
	case e.Room != "" && !slices.ContainsFunc(e.wards, known):
		return fail("look at `linekeeper room list`", "there is no room %q", e.Room)
	case len(e.wards) == 0:
		return warn("make one: `linekeeper room create NAME`", "there are none")
	}
	return good("%d", len(e.wards))
}

// roomSettings finds what no call of the API could have stored: rows changed by
// hand, or by another version.
func roomSettings(_ context.Context, _ *exam, w *ward) Finding {
	correct := "correct it with `linekeeper room set " + w.name + " ...`"
	if w.err != nil {
		return fail("correct the row by hand, or delete the room", "%s", oneLine(w.err))
	}
	if err := w.room.Settings.Validate(); err != nil {
		return fail(correct, "%s", oneLine(err))
	}
	return good("version %d is valid", w.room.Version)
}

// inForce is how long a change may take to arrive in Redis, with slack.
const inForce = 2 * time.Second

// roomInRedis waits for a change that is under way.
func roomInRedis(ctx context.Context, e *exam, w *ward) Finding {
	for end := time.Now().Add(inForce); w.err == nil && !w.agrees() && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(inForce / 20)
		if again := e.read(ctx, w.name); again.err == nil {
			*w = *again
		}
	}
	const begin = "see that a scheduler leads (check \"leader\"): it begins rooms, and puts settings in force, within a second"
	switch {
	case w.err != nil:
		return skipped("not looked at: the room can't be read from Postgres")
	case errors.Is(w.snapErr, queue.ErrDamaged):
		return fail("begin it anew: `linekeeper room flush "+w.name+" --confirm "+w.name+"`", "its data are damaged: %s", oneLine(w.snapErr))
	case errors.Is(w.snapErr, queue.ErrNoRoom):
		return fail(begin, "Redis has nothing of it (Postgres: generation %d)", w.room.Generation)
	case w.snapErr != nil:
		return fail("mend Redis", "it can't be read: %s", oneLine(w.snapErr))
	case w.snap.Generation > w.room.Generation: // a generation is drawn in Postgres first
		return fail("raise the generations and flush the room, as docs/operations.md has it under \"Backup and restore\"",
			"Redis is at generation %d, Postgres at %d only: it was restored to an older state", w.snap.Generation, w.room.Generation)
	case w.snap.Generation != w.room.Generation:
		return fail(begin, "Redis is at generation %d, Postgres at %d", w.snap.Generation, w.room.Generation)
	case w.snap.Version != w.room.Version:
		return fail(begin, "version %d of the settings is in force, %d is stored", w.snap.Version, w.room.Version)
	}
	return good("generation %d, settings version %d, as in Postgres", w.snap.Generation, w.snap.Version)
}

func (w *ward) agrees() bool {
	return w.snapErr == nil && w.snap.Generation == w.room.Generation && w.snap.Version == w.room.Version
}

// meaning says what a state is for people.
var meaning = map[queue.RoomState]string{
	queue.NotOpen:   "nobody enters yet",
	queue.PreQueue:  "people enter, nobody is let through yet",
	queue.Open:      "people enter and are let through",
	queue.Paused:    "people enter, nobody is let through",
	queue.Draining:  "nobody enters, those in line are let through",
	queue.SoldOut:   "its product is sold out; nobody enters, nobody is let through until there is more",
	queue.Closed:    "nobody enters, nobody is let through",
	queue.Off:       "everybody passes, with a real token",
	queue.Restoring: "after a loss of data places come back, nobody is let through",
}

// roomState informs: an operator wants it so.
func roomState(_ context.Context, _ *exam, w *ward) Finding {
	if w.snapErr != nil {
		return unseen()
	}
	s := w.snap.State(w.snap.Now)
	return good("%s: %s; %d wait", s, meaning[s], w.snap.Waiting())
}

func unseen() Finding { return skipped("not looked at: Redis does not show the room") }

func roomSchedule(_ context.Context, e *exam, w *ward) Finding {
	if w.err != nil {
		return skipped("not looked at: the room can't be read from Postgres")
	}
	s := w.room.Settings
	set := func(what string) string { return "`linekeeper room set " + w.name + " " + what + "`" }
	switch now := e.Now(); {
	case s.Paused && s.Draining:
		return warn("`linekeeper room resume "+w.name+"`", "paused and draining: nobody enters, nobody is let through")
	case s.ClosesAt != nil && s.ClosesAt.Before(now) && !s.Draining:
		return warn("if it is to be open: "+set("closesAt=null"), "it has closed at %s", s.ClosesAt.Format(time.RFC3339))
	case s.ClosesAt != nil && tooLong(w) > 0:
		return warn("raise batchSize, close later, or lower maxWaiting", "a full line of %d takes %v at %d per %d ms, and is let through for %v only",
			s.MaxWaiting, tooLong(w).Round(time.Second), s.BatchSize, s.IntervalMs, openFor(w).Round(time.Second))
	}
	return good("%s", schedule(w))
}

// tooLong is how long a full line takes, if that is longer than people are let
// through for; else 0.
func tooLong(w *ward) time.Duration {
	s := w.room.Settings
	full := time.Duration(float64(s.MaxWaiting) / float64(s.BatchSize) * float64(s.IntervalMs) * float64(time.Millisecond))
	if window := openFor(w); window > 0 && full > window {
		return full
	}
	return 0
}

// openFor is from the first admission to the end; 0 where either has no time.
func openFor(w *ward) time.Duration {
	s := w.room.Settings
	begins := s.AdmitsAt
	if begins == nil {
		begins = s.OpensAt
	}
	if begins == nil || s.ClosesAt == nil {
		return 0
	}
	return s.ClosesAt.Sub(*begins)
}

func schedule(w *ward) string {
	s, text := w.room.Settings, ""
	for _, m := range []struct {
		word string
		at   *time.Time
	}{{"opens", s.OpensAt}, {"admits", s.AdmitsAt}, {"closes", s.ClosesAt}} {
		if m.at != nil {
			text += fmt.Sprintf("%s %s; ", m.word, m.at.UTC().Format(time.RFC3339))
		}
	}
	return text + fmt.Sprintf("%d per %d ms", s.BatchSize, s.IntervalMs)
}

func roomSpace(_ context.Context, _ *exam, w *ward) Finding {
	if w.snapErr != nil {
		return unseen()
	}
	in, most := w.snap.Waiting()+w.snap.Processing+w.snap.Away, int64(w.snap.Rules.MaxWaiting)
	switch {
	case w.snap.MemoryFull:
		return fail("give Redis more memory (maxmemory)", "entry is closed: Redis has used 90 %% of its memory")
	case most > 0 && in >= most:
		return fail("raise maxWaiting, or let more through", "full: %d of %d wait, newcomers are turned away", in, most)
	case most > 0 && in >= most/10*9:
		return warn("raise maxWaiting, or let more through", "nearly full: %d of %d wait", in, most)
	}
	return good("%d of %d wait", in, most)
}

// lateTick is far above the longest sleep of a scheduler, one second.
const lateTick = 5 * time.Second

func roomTick(_ context.Context, _ *exam, w *ward) Finding {
	if w.snapErr != nil {
		return unseen()
	}
	const see = "see that a scheduler leads (check \"leader\"), and look at its log"
	waits, age, told := w.snap.Waiting(), w.snap.Now.Sub(w.snap.TickedAt), "never"
	if !w.snap.TickedAt.IsZero() {
		told = age.Round(100*time.Millisecond).String() + " ago"
	}
	state := w.snap.State(w.snap.Now)
	moves := state == queue.Open || state == queue.Draining || state == queue.Off
	switch {
	case age > lateTick && moves && waits > 0:
		return fail(see, "the last tick was %s, and %d wait", told, waits)
	case age > lateTick && moves:
		return warn(see, "the last tick was %s; nobody waits", told)
	}
	return good("the last tick was %s", told)
}

// roomOrders compares with what Postgres could run at once: a limit above that
// protects nothing.
func roomOrders(_ context.Context, e *exam, w *ward) Finding {
	if w.err != nil {
		return skipped("not looked at: the room can't be read from Postgres")
	}
	n, have := w.room.Settings.MaxInFlightOrders, e.facts.connections-e.MoreConns
	switch {
	case n == 0:
		return good("no limit: the connections of the processes are one")
	case n > have:
		return warn(fmt.Sprintf("`linekeeper room set %s maxInFlightOrders=%d`, or raise max_connections", w.name, max(have, 1)),
			"%d orders may run at once, and Postgres has %d connections for them: the limit protects nothing", n, have)
	}
	return good("%d orders may run at once, and Postgres has %d connections for them", n, have)
}
