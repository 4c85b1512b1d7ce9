package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/linekeeper/linekeeper/queue"
)

// ledger tells whether progress can be written.
type ledger struct {
	failures int       // of Advance, in a row
	since    time.Time // of the first of them
}

func (l ledger) down() bool { return l.failures > 0 }

// readLives reads what Postgres has of all rooms. Rooms that have not changed
// cost nothing else.
func (t *term) readLives(ctx context.Context, _ time.Time) {
	asked, before := time.Now(), t.counts()
	t.spawn(ctx, func(ctx context.Context) then {
		lives, err := t.Books.Lives(ctx)
		return func(ctx context.Context) { t.livesRead(ctx, lives, asked, before, err) }
	})
}

func (t *term) livesRead(ctx context.Context, lives []queue.Life, asked time.Time, before map[string]counted, err error) {
	t.agenda.at(t.read, time.Now().Add(readEvery))
	if err != nil && !t.readDown && !t.stopping {
		t.Log.Warn("settings can't be read, the last known stay in force", "error", err)
	}
	t.readDown = err != nil
	present := make(map[string]bool, len(lives))
	for _, life := range lives {
		if life.Deleted {
			t.drop(ctx, life)
			continue
		}
		present[life.Room] = true
		if r := t.rooms[life.Room]; r == nil {
			t.adopt(life)
		} else if news, stock := r.renew(life, asked), t.restock(r, life, before[life.Room], asked); news || stock {
			t.follows(r)
			t.agenda.hasten(r.tick, time.Now())
		}
	}
	if err != nil {
		return // what is missing is not known to be gone
	}
	t.lives = lives
	t.readForStock()
	for name, r := range t.rooms {
		if !present[name] {
			t.dismiss(r)
		}
	}
	if len(t.rooms) == 0 {
		t.effect() // there is nothing to do, and that is done
	}
}

// drop removes what Redis has of a deleted room. Where that fails, the next
// reading of lives brings it up again.
func (t *term) drop(ctx context.Context, life queue.Life) {
	if t.dropping[life.Room] || t.stopping {
		return
	}
	t.dropping[life.Room] = true
	t.spawnForRoom(ctx, func(ctx context.Context) then {
		err := t.Rooms.Drop(ctx, life)
		if err == nil {
			err = t.Books.Dropped(ctx, life.Room, life.Generation)
		}
		return func(context.Context) {
			delete(t.dropping, life.Room)
			if err != nil {
				t.Log.Warn("deleted room not removed yet", "room", life.Room, "error", err)
				return
			}
			t.Log.Info("deleted room removed", "room", life.Room)
		}
	})
}

// advance writes the progress of all rooms that have reserved, in one
// statement, once no other is about to join them.
func (t *term) advance(ctx context.Context) {
	retryPlanned := t.books.down() && t.write.index >= 0
	if t.writing || retryPlanned || len(t.reserved) == 0 {
		return
	}
	wait := gather - time.Since(t.reserved[0].since)
	if t.reserves > 0 && wait > 0 && !t.stopping {
		t.agenda.at(t.write, time.Now().Add(wait))
		return
	}
	group := t.reserved
	t.reserved, t.writing = nil, true
	t.spawn(ctx, func(ctx context.Context) then {
		err := t.Admissions.Advance(ctx, progress(group))
		return func(ctx context.Context) { t.advanced(ctx, group, err) }
	})
}

func progress(group []*visit) []queue.Progress {
	rooms := make([]queue.Progress, len(group))
	for i, v := range group {
		rooms[i] = v.progress()
	}
	return rooms
}

func (t *term) advanced(ctx context.Context, group []*visit, err error) {
	t.writing = false
	if err == nil {
		t.booksUp()
		t.ready = append(t.ready, group...)
		t.advance(ctx)
		return
	}
	if t.stopping { // the members return by themselves
		t.reserved = nil
		return
	}
	// Written again until it works: that is also how we learn that Postgres is
	// back. Who was taken too long ago by then has returned and is not granted.
	t.booksDown(err)
	t.reserved = append(group, t.reserved...)
	t.agenda.at(t.write, time.Now().Add(backoff(t.books.failures)))
}

func (t *term) booksDown(err error) {
	if !t.books.down() {
		t.books.since = time.Now()
		t.Log.Warn("progress can't be written, nobody is let through", "error", err)
	}
	t.books.failures++
}

func (t *term) booksUp() {
	if !t.books.down() {
		return
	}
	t.books = ledger{}
	t.Log.Info("progress is written again")
	t.unblock(0)
}

// dataLost tells whether a refused call shows that Redis has lost the given
// generation, or never had it.
func dataLost(err error, generation int64) bool {
	var other queue.GenerationError
	return errors.Is(err, queue.ErrNoRoom) || errors.As(err, &other) && other.Generation < generation
}

// beginLife wins the next generation in Postgres, so that only one process
// begins it, and begins it in Redis.
func (t *term) beginLife(ctx context.Context, v *visit) error {
	life, err := t.Books.Begin(ctx, v.life.Room, v.life.Generation)
	if err != nil {
		return fmt.Errorf("begin a generation: %w", err)
	}
	v.life, v.won, v.create = life, true, true
	return t.create(ctx, v)
}

// create begins a generation that is already won. After an unknown outcome it
// is called again with the same one.
func (t *term) create(ctx context.Context, v *visit) error {
	if err := t.Rooms.Create(ctx, v.life); err != nil {
		return fmt.Errorf("begin generation %d in redis: %w", v.life.Generation, err)
	}
	v.create, v.begun, v.known = false, true, v.life.Version
	t.Log.Info("generation begun", "room", v.life.Room, "generation", v.life.Generation)
	return nil
}

// lostAll tells of a generation that had to begin because Redis has nothing of
// the last one: neither the first of a room nor the first after a flush.
func (t *term) lostAll(v *visit) {
	if v.life.Generation == v.life.RestorableFrom {
		return
	}
	t.Log.Warn("room lost all its data", "room", v.life.Room, "generation", v.life.Generation, "floors", v.life.Floors)
	t.Observer.lost(v.life.Room)
}
