//go:build faults

package verify

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
)

// station is where one process after the other runs: when one has died, the
// next is started, as a supervisor does.
type station struct {
	f     *fleet
	name  string
	dice  *fault.Dice
	ahead int // by how many seconds the wall clock there is off

	redis, postgres *fault.Proxy
	commits         *fault.Postgres

	mu     sync.Mutex
	serves *fault.Process // the one that serves; nil while none does
	halted bool           // by the schedule, which also continues it
	lock   string
	points int
	healed bool // nothing breaks any more
	starts int
	past   []*fault.Process
}

func newStation(f *fleet, i int) *station {
	s := &station{f: f, name: fmt.Sprint("p", i), ahead: f.plan.ahead[i], dice: f.dice.Of(fmt.Sprint("station ", i)), lock: f.plan.lock, points: f.plan.points}
	s.commits = fault.NewPostgres(s.dice.Of("commits"), f.plan.commits, 3*time.Second)
	u, err := url.Parse(f.db.DSN())
	require.NoError(f.t, err)
	s.redis, err = fault.NewProxy(f.redis.Server.Addr, s.dice.Of("redis"))
	require.NoError(f.t, err)
	f.t.Cleanup(s.redis.Close)
	s.postgres, err = fault.NewProxyBy(u.Host, s.dice.Of("postgres"), s.commits.DialFunc)
	require.NoError(f.t, err)
	f.t.Cleanup(s.postgres.Close)
	s.redis.Lose(f.plan.replies)
	return s
}

// settings are those of the process to be started next.
func (s *station) settings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, _ := url.Parse(s.f.db.DSN()) // parsed once before
	u.Host = s.postgres.Addr()
	own := append([]string{"LINEKEEPER_IDENTITY=ticket"}, harness.Unlimited...)
	if s.f.plan.header {
		own = append([]string{"LINEKEEPER_IDENTITY=header", "LINEKEEPER_TRUSTED_PROXIES=127.0.0.0/8"}, harness.Unlimited...)
	}
	armed := failpoints(s.dice.Of(fmt.Sprint("points ", s.starts)), s.points)
	if armed != "" {
		own = append(own, "LINEKEEPER_FAULTPOINTS="+armed, fmt.Sprint("LINEKEEPER_FAULT_SEED=", s.f.seed+uint64(s.starts)))
	}
	if mutant := os.Getenv(envMutant); mutant != "" {
		own = append(own, envMutant+"="+mutant)
	}
	s.starts++
	s.f.note("%s: starts with %q", s.name, armed)
	return append(own,
		"LINEKEEPER_REDIS_URL=redis://"+s.redis.Addr(), "LINEKEEPER_DATABASE_URL="+u.String(),
		"LINEKEEPER_KEY_PREFIX="+fleetPrefix, "LINEKEEPER_KEYS="+s.f.keys, "LINEKEEPER_LEADER_TTL="+s.lock,
		"LINEKEEPER_LISTEN=127.0.0.1:0", "LINEKEEPER_ADMIN_LISTEN=127.0.0.1:0", "LINEKEEPER_SHUTDOWN_DELAY=200ms",
		fmt.Sprint("LINEKEEPER_WALL_CLOCK_AHEAD=", s.ahead),
	)
}

// run keeps a process there until ctx ends. It returns when none is left.
func (s *station) run(ctx context.Context) {
	for ctx.Err() == nil {
		healed := s.isHealed()
		p, err := fault.StartProcess(s.f.binary, s.settings(), "serve")
		if err != nil {
			s.f.t.Errorf("%s: %v", s.name, err)
			return
		}
		s.live(ctx, p, healed)
		s.f.note("%s: ended with %d", s.name, p.ExitCode())
		if ctx.Err() == nil {
			pause(ctx, s.dice.Between(100*time.Millisecond, time.Second))
		}
	}
}

// live is the life of one process. One that was started to break has no place
// once all is healed.
func (s *station) live(ctx context.Context, p *fault.Process, healed bool) {
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	err := p.AwaitServing(starting)
	cancel()
	if err == nil {
		s.publish(p)
		if healed == s.isHealed() {
			s.watch(ctx, p)
		}
	} else if !p.Ended() && ctx.Err() == nil {
		s.f.note("%s: does not come to serve", s.name)
	}
	s.publish(nil)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := p.Terminate(stopping); err != nil {
		s.f.note("%s: %v", s.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = append(s.past, p)
}

// watch returns when the process has ended, or has to. One that has halted
// itself at a failpoint is continued after a while.
func (s *station) watch(ctx context.Context, p *fault.Process) {
	look := time.NewTicker(300 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Done():
			return
		case <-look.C:
			if p.Halted() && !s.isHalted() {
				pause(ctx, s.dice.Between(500*time.Millisecond, 6*time.Second))
				_ = p.Continue()
			}
		}
	}
}

func (s *station) publish(p *fault.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serves = p
}

// process is the one that serves now, nil if none does.
func (s *station) process() *fault.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serves == nil || s.serves.Ended() {
		return nil
	}
	return s.serves
}

func (s *station) isHalted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halted
}

func (s *station) isHealed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.healed
}

func (s *station) halt(now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halted = now
}

// heal takes every fault away from what comes: networks, COMMITs, failpoints.
// The process that is there has to go for that, in order; the next one needs no
// lock, so that the clock can run fast.
func (s *station) heal(ctx context.Context) {
	s.commits.Set(0)
	s.redis.Heal()
	s.postgres.Heal()
	s.mu.Lock()
	s.points, s.lock, s.healed = 0, "0", true
	p := s.serves
	s.mu.Unlock()
	if p != nil {
		_ = p.Terminate(ctx)
	}
}

// struck is how many failpoints were set off here, and how many COMMITs, replies
// and connections broken.
func (s *station) struck() (n int) {
	for _, c := range s.commits.Counts() {
		n += c
	}
	n += s.redis.Counts().Lost
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.past {
		n += strings.Count(p.Said(), "failpoint ")
	}
	return n
}
