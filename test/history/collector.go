package history

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Collector reads a room's journal while the room works. It notices when the
// journal has gone back, which means that the room's data have, and begins a
// new Life there.
//
// Nobody else shortens the list. So where it is shorter than what was read, or
// its last known entry is another, Redis has lost data; and since an entry is
// written in the same moment as what it tells of, what is left of the list
// tells what is left of the room.
type Collector struct {
	rdb redis.UniversalClient
	key string

	mu    sync.Mutex
	lives []Life
	sums  []uint64 // of the entries of the newest life
	seed  maphash.Seed
	read  int64 // when the newest life was last read whole; 0: never
}

// NewCollector returns a Collector of a room's journal. rdb must not be cut off
// by the faults of the run longer than its steps may go unread.
func NewCollector(rdb redis.UniversalClient, prefix, room string) *Collector {
	return &Collector{rdb: rdb, key: prefix + ":{" + room + "}:journal", seed: maphash.MakeSeed(), lives: []Life{{}}}
}

// page is how many entries are read at once.
const page = 2000

// Run collects until ctx ends, and then once more. What Redis is too broken to
// answer is read later.
func (c *Collector) Run(ctx context.Context) error {
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			// The last reading must not end with the run that it is for.
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			return c.Collect(last)
		case <-every.C:
			_ = c.Collect(ctx) // whatever is missing now is read next time
		}
	}
}

// Collect reads what is new.
func (c *Collector) Collect(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		asked := Now()
		from := max(int64(len(c.sums))-1, 0)
		raw, err := c.rdb.LRange(ctx, c.key, from, from+page-1).Result()
		if err != nil {
			return fmt.Errorf("collect the journal: %w", err)
		}
		if known := len(c.sums); known > 0 {
			if len(raw) == 0 || c.sum(raw[0]) != c.sums[known-1] {
				if err := c.lost(ctx); err != nil {
					return err
				}
				continue
			}
			raw = raw[1:]
		}
		for _, text := range raw {
			if err := c.add(text, asked); err != nil {
				return err
			}
		}
		if len(raw) < page-1 {
			c.read = asked
			return nil
		}
	}
}

func (c *Collector) sum(entry string) uint64 { return maphash.String(c.seed, entry) }

// add takes an entry in that was not there when the life was last read, and is
// there now.
func (c *Collector) add(text string, asked int64) error {
	s, err := ParseStep([]byte(text))
	if err != nil {
		return err
	}
	s.After, s.Before = c.read, Now()
	life := &c.lives[len(c.lives)-1]
	// Most steps count nothing: one map for all of a row saves a third of a
	// journal's memory.
	if n := len(life.Steps); n > 0 && maps.Equal(life.Steps[n-1].Stats, s.Stats) {
		s.Stats = life.Steps[n-1].Stats
	}
	life.Steps = append(life.Steps, s)
	c.sums = append(c.sums, c.sum(text))
	return nil
}

// lost ends the newest life, and begins the next with what it has in common
// with the list as it is now.
func (c *Collector) lost(ctx context.Context) error {
	kept := 0
	for same := true; same && kept < len(c.sums); {
		raw, err := c.rdb.LRange(ctx, c.key, int64(kept), int64(kept+page-1)).Result()
		if err != nil {
			return fmt.Errorf("look for what is left of the journal: %w", err)
		}
		same = len(raw) > 0
		for i := 0; same && i < len(raw) && kept < len(c.sums); i++ {
			if same = c.sum(raw[i]) == c.sums[kept]; same {
				kept++
			}
		}
	}
	c.divide(kept, true)
	return nil
}

func (c *Collector) divide(kept int, truncated bool) {
	life := &c.lives[len(c.lives)-1]
	life.Lost, life.Kept, life.Truncated, life.Read, life.Noticed = true, kept, truncated, c.read, Now()
	c.sums = c.sums[:min(kept, len(c.sums))]
	// Whoever was asked last may have been an old primary, cut off while the new
	// one had begun the next life: when that was, nobody here knows.
	c.read = 0
	// The full slice expression keeps the two lives from sharing what comes.
	c.lives = append(c.lives, Life{Steps: life.Steps[:kept:kept]})
}

// Feed takes steps in that come from elsewhere than Redis.
func (c *Collector) Feed(steps ...Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	life := &c.lives[len(c.lives)-1]
	life.Steps = append(life.Steps, steps...)
	c.read = Now()
}

// Lose is a loss among steps that were fed: the first kept steps outlive it.
func (c *Collector) Lose(kept int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.divide(kept, false)
}

// Lives returns what was collected. The last life goes on.
func (c *Collector) Lives() []Life {
	c.mu.Lock()
	defer c.mu.Unlock()
	lives := append([]Life(nil), c.lives...)
	last := &lives[len(lives)-1]
	last.Steps = last.Steps[:len(last.Steps):len(last.Steps)]
	last.Read = c.read
	return lives
}
