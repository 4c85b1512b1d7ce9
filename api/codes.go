package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/linekeeper/linekeeper/internal/clientip"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/room"
)

// codeHeader carries an access code. A URL would end up in logs.
const codeHeader = "X-Access-Code"

// Codes counts the uses of access codes.
type Codes interface {
	// UseCode counts a use of a code for a member in a sale, unless that member has
	// used it there already, and returns the code's lane, empty for none;
	// room.ErrCode for every code that does not count.
	UseCode(ctx context.Context, room string, sale int64, hash room.CodeHash, member string) (lane string, err error)
}

const (
	// codeCalls is how many codes a process looks up at once: guesses share the
	// connections of the scheduler, as in gate.
	codeCalls = 3
	// wrongCodes is how many codes that don't count an address may show in
	// wrongWithin before it is not asked about for the rest of it.
	wrongCodes  = 20
	wrongWithin = time.Minute
	maxGuessers = 100_000
)

// codes asks about access codes, and keeps guesses from becoming a load.
type codes struct {
	books Codes
	slots *semaphore.Weighted
	now   func() time.Time // of the process: guesses of all rooms are counted together

	mu    sync.Mutex
	until time.Time            // when all are forgiven
	wrong map[netip.Prefix]int // by who guesses
}

func newCodes(o Options) *codes {
	now := o.Limits.Now
	if now == nil {
		now = time.Now
	}
	return &codes{books: o.Codes, now: now, slots: semaphore.NewWeighted(codeCalls), wrong: map[netip.Prefix]int{}}
}

// guessesError is errGuesses with the time after which codes are looked at again.
type guessesError struct{ retryAfter time.Duration }

// Error names no code.
func (guessesError) Error() string { return errGuesses.Error() }

// Is makes errors.Is(err, errGuesses) hold.
func (guessesError) Is(target error) bool { return target == errGuesses }

// use is Codes.UseCode for a code as it is typed, by somebody at an address.
func (c *codes) use(ctx context.Context, v *view, typed []string, member string, from netip.Prefix) (lane string, err error) {
	if wait := c.blocked(from, c.now()); wait > 0 {
		return "", guessesError{wait}
	}
	var hash room.CodeHash
	err = room.ErrCode // two are no choice for us to make
	if len(typed) == 1 && c.books != nil {
		var ok bool
		if hash, _, ok = room.ParseCode(typed[0]); ok {
			lane, err = c.ask(ctx, v, hash, member)
		}
	}
	if errors.Is(err, room.ErrCode) {
		c.note(from)
	}
	return lane, err
}

func (c *codes) ask(ctx context.Context, v *view, hash room.CodeHash, member string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, booksTimeout)
	defer cancel()
	if err := c.slots.Acquire(ctx, 1); err != nil {
		return "", fmt.Errorf("%w: wait to look a code up: %w", queue.ErrUnavailable, err)
	}
	defer c.slots.Release(1)
	lane, err := c.books.UseCode(ctx, v.Room, v.Sale, hash, member)
	if err != nil && !errors.Is(err, room.ErrCode) {
		return "", fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	return lane, err
}

// blocked is how long the codes of an address are not looked at.
func (c *codes) blocked(from netip.Prefix, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !now.Before(c.until) {
		c.until = now.Add(wrongWithin)
		clear(c.wrong)
	}
	if c.wrong[from] < wrongCodes {
		return 0
	}
	return c.until.Sub(now)
}

// note counts a code that did not count. Beyond so many guessers it forgets new
// ones: how many codes are looked up at once bounds those.
func (c *codes) note(from netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.wrong[from]; known || len(c.wrong) < maxGuessers {
		c.wrong[from]++
	}
}

// showsCode tells whether a request to enter has a code that may have to be
// counted for somebody.
func showsCode(r *http.Request) bool { return len(r.Header.Values(codeHeader)) > 0 }

// byRight finds the place of a caller who shows a code, or who is in a room that
// not everybody may enter; or settles the lane to enter by. Who has a place needs
// no code, and spends none.
func (a *API) byRight(r *http.Request, c *caller, v *view) (queue.Standing, error) {
	st, err := a.Line.Standing(r.Context(), v.Room, c.member)
	if err != nil || st.Status != queue.NotEntered && st.Status != queue.Consumed {
		return st, err
	}
	if !showsCode(r) {
		if c.lanes == nil {
			return queue.Standing{}, errNotInvited
		}
		return queue.Standing{}, nil
	}
	// What the line would refuse is refused before a code is used up for it.
	if st.Status == queue.Consumed && v.Rules.OneOrder {
		return st, queue.ErrOrdered
	}
	if err := v.takesNobody(); err != nil {
		return queue.Standing{}, err
	}
	lane, err := a.codes.use(r.Context(), v, r.Header.Values(codeHeader), c.member, clientip.Network(a.Trusted.Of(r), 32, 64))
	if err == nil && lane != "" {
		if c.lane, err = laneOf(caller{lanes: []string{lane}}, v); err != nil {
			err = room.ErrCode // of a lane that there is no more
		}
	}
	return queue.Standing{}, err
}
