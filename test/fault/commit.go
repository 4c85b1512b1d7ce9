package fault

import (
	"context"
	"maps"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// CommitFault is what happens to one COMMIT on its way to Postgres. In all of
// them the connection is gone afterwards.
type CommitFault string

const (
	// RefuseCommit fails the write: nothing was sent, and the client knows it.
	RefuseCommit CommitFault = "refuse commit"
	// CutBefore loses the connection before COMMIT has arrived: the server rolls
	// back, and the client can't know it.
	CutBefore CommitFault = "cut before commit"
	// CutAfter loses the connection when the server has committed.
	CutAfter CommitFault = "cut after commit"
	// LateCommit loses the client's side at once and delivers COMMIT later: the
	// row appears after the client has given up, and perhaps asked again.
	LateCommit CommitFault = "late commit"
	// FatalBefore answers FATAL 57P01 in place of the server, which got nothing.
	FatalBefore CommitFault = "fatal before commit"
	// FatalAfter answers FATAL 57P01 when the server has committed.
	FatalAfter CommitFault = "fatal after commit"
)

// CommitFaults are all there are.
func CommitFaults() []CommitFault {
	return []CommitFault{RefuseCommit, CutBefore, CutAfter, LateCommit, FatalBefore, FatalAfter}
}

// Postgres breaks connections to Postgres at the one message whose outcome a
// client can't know afterwards. Its DialFunc belongs into a pgxpool.Config, or
// into a Proxy, where it does the same to another process.
//
// It reads the protocol as it passes, so connections must not be encrypted.
type Postgres struct {
	dice *Dice

	mu    sync.Mutex
	p     float64
	late  time.Duration
	armed []appointment
	done  map[CommitFault]int
	away  int        // COMMITs that are still to be delivered
	home  *sync.Cond // signalled when there are none
}

type appointment struct {
	fault CommitFault
	met   chan struct{}
}

// NewPostgres breaks each COMMIT with probability p, by a fault that the dice
// choose. A late one is delivered up to late afterwards.
func NewPostgres(d *Dice, p float64, late time.Duration) *Postgres {
	w := &Postgres{dice: d, p: p, late: late, done: map[CommitFault]int{}}
	w.home = sync.NewCond(&w.mu)
	return w
}

// Set changes the probability.
func (w *Postgres) Set(p float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.p = p
}

// Next has the next COMMIT meet this fault. The channel is closed when it has.
func (w *Postgres) Next(f CommitFault) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := appointment{f, make(chan struct{})}
	w.armed = append(w.armed, a)
	return a.met
}

// Counts is how often each fault has happened.
func (w *Postgres) Counts() map[CommitFault]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.done)
}

// Settle waits until no COMMIT is on its way any more.
func (w *Postgres) Settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.away > 0 {
		w.home.Wait()
	}
}

// underWay counts a COMMIT that is on its way, or no longer.
func (w *Postgres) underWay(by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away += by; w.away == 0 {
		w.home.Broadcast()
	}
}

// Configure has a pool connect through w.
func (w *Postgres) Configure(c *pgxpool.Config) { c.ConnConfig.DialFunc = w.DialFunc }

// DialFunc connects, and breaks what the dice say. It is a pgconn.DialFunc.
func (w *Postgres) DialFunc(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return newCommitConn(c, w), nil
}

func (w *Postgres) choose() CommitFault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.armed) > 0 {
		a := w.armed[0]
		w.armed = w.armed[1:]
		close(a.met)
		w.done[a.fault]++
		return a.fault
	}
	if !w.dice.Chance(w.p) {
		return ""
	}
	all := CommitFaults()
	f := all[w.dice.Below(len(all))]
	w.done[f]++
	return f
}
