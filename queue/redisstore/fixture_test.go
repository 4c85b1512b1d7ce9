package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/harness"
)

// start is when every test begins; time is data here.
var start = time.UnixMicro(1_764_500_000_000_000)

// fixture is one room on a real Redis, with a clock that the test moves and
// one scheduler.
type fixture struct {
	testing.TB
	*Store
	rdb   *redis.Client
	room  string
	clock time.Time
	life  queue.Life
	step  queue.Step
	ids   int
}

// setup begins a room of 50 a second, changed by change.
func setup(t *testing.T, change ...func(*queue.Rules)) *fixture {
	t.Helper()
	t.Parallel()
	return on(t, harness.Redis(t), change...)
}

func on(t testing.TB, rdb *redis.Client, change ...func(*queue.Rules)) *fixture {
	t.Helper()
	f := &fixture{TB: t, rdb: rdb, clock: start}
	f.room = strings.ToLower(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name()))
	f.Store = New(rdb, "t", WithClock(func() time.Time { return f.clock }))
	rules := queue.Rules{
		Batch: 50, Interval: time.Second, TokenTTL: 300 * time.Second, PickupTTL: 30 * time.Second,
		ClaimLease: 15 * time.Second, ProcessingTimeout: 5 * time.Second, AwayAfter: 120 * time.Second,
		ForgetAfter: 1800 * time.Second, DoneTTL: 3600 * time.Second, Settle: 40 * time.Second,
		MaxWaiting: 100_000, Weights: []int{1},
	}
	for _, c := range change {
		c(&rules)
	}
	f.life = queue.Life{
		Room: f.room, Generation: 7, Sale: 3, RestorableFrom: 7, Version: 1, Rules: rules,
		Settings: []byte(`{"batchSize":50}`), Floors: make([]int64, queue.MaxLanes),
	}
	f.step = queue.Step{Generation: 7, Term: 1, Leader: "a"}
	require.NoError(t, f.Create(t.Context(), f.life))
	return f
}

func (f *fixture) pass(d time.Duration) { f.clock = f.clock.Add(d) }

// keepHearing is what a process that serves polls does each second.
func (f *fixture) keepHearing(d time.Duration, members ...string) {
	f.Helper()
	for ; d > 0; d -= 5 * time.Second {
		f.pass(min(d, 5*time.Second))
		require.NoError(f, f.Heard(f.Context(), f.room, members))
	}
}

func (f *fixture) enter(members ...string) {
	f.Helper()
	for _, m := range members {
		st, err := f.Enter(f.Context(), f.room, m, 0)
		require.NoError(f, err, "enter %s", m)
		require.Equal(f, queue.Waiting, st.Status, "enter %s", m)
	}
}

func (f *fixture) enterMany(from, to int) {
	f.Helper()
	for i := from; i < to; i++ {
		f.enter(fmt.Sprintf("m%05d", i))
	}
}

func (f *fixture) reserve() queue.Reservation {
	f.Helper()
	f.step.Seq++
	return f.take(f.step)
}

func (f *fixture) take(step queue.Step) queue.Reservation {
	f.Helper()
	r, err := f.Reserve(f.Context(), f.room, step, queue.Take{Keep: step.Seq, Effective: f.life.Rules.Batch, Max: 500})
	require.NoError(f, err)
	return r
}

// grantAll issues a grant to each member of r.
func (f *fixture) grantAll(r queue.Reservation) []string {
	f.Helper()
	var ds []queue.Decision
	var out []string
	for _, c := range r.Taken {
		f.ids++
		ds = append(ds, queue.Decision{Member: c.Member, Grant: fmt.Sprintf("g%d", f.ids)})
		out = append(out, c.Member)
	}
	if len(ds) == 0 {
		return nil
	}
	issued, err := f.Issue(f.Context(), f.room, f.step, ds)
	require.NoError(f, err)
	require.Equal(f, len(ds), issued.Granted)
	return out
}

// tick is one scheduler step, as many calls as it takes: who was admitted.
func (f *fixture) tick() []string {
	f.Helper()
	_, err := f.Reap(f.Context(), f.room)
	require.NoError(f, err)
	var out []string
	for {
		r := f.reserve()
		out = append(out, f.grantAll(r)...)
		if !r.More {
			return out
		}
	}
}

func (f *fixture) reap() queue.Reaped {
	f.Helper()
	r, err := f.Reap(f.Context(), f.room)
	require.NoError(f, err)
	return r
}

func (f *fixture) standing(member string) queue.Standing {
	f.Helper()
	st, err := f.Standing(f.Context(), f.room, member)
	require.NoError(f, err)
	return st
}

func (f *fixture) status(member string) queue.Status {
	f.Helper()
	return f.standing(member).Status
}

// pickUp polls as the member does: the grant, picked up.
func (f *fixture) pickUp(member string) queue.Grant {
	f.Helper()
	st := f.standing(member)
	require.Equal(f, queue.Ready, st.Status, member)
	g, err := f.PickUp(f.Context(), st.Grant, "k1")
	require.NoError(f, err)
	return g
}

func (f *fixture) snap() queue.Snapshot {
	f.Helper()
	s, err := f.Snapshot(f.Context(), f.room)
	require.NoError(f, err)
	return s
}

// conserved checks I8 and I9: everybody who entered is somewhere, once.
func (f *fixture) conserved() {
	f.Helper()
	s := f.snap()
	c := s.Counters
	got := s.Waiting() + s.Away + s.Processing + s.Ready + s.Claimed +
		c["consumed"] + c["expired"] + c["left"] + c["forgotten"] + c["evicted"]
	require.Equal(f, c["entered"], got, "I8: entered = sum of states; counters %v, snapshot %+v", c, s)
}

func (f *fixture) key(part string) string { return f.prefix + ":{" + f.room + "}:" + part }

// dump is all that Redis holds of the room, for "nothing changed" checks.
func (f *fixture) dump(except ...string) map[string]any {
	f.Helper()
	out := map[string]any{}
	for _, part := range parts {
		if strings.Contains(strings.Join(except, " "), part) {
			continue
		}
		key := f.key(part)
		kind, err := f.rdb.Type(f.Context(), key).Result()
		require.NoError(f, err)
		switch kind {
		case "hash":
			out[part] = f.rdb.HGetAll(f.Context(), key).Val()
		case "zset":
			out[part] = f.rdb.ZRangeWithScores(f.Context(), key, 0, -1).Val()
		}
	}
	return out
}

func client(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { c.Close() })
	return c
}

// scored is a member with a time as its score.
func scored(at time.Time, member string) redis.Z {
	return redis.Z{Score: float64(at.UnixMicro()), Member: member}
}
