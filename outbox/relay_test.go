package outbox

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// I16.
func TestEventExistsExactlyIfItsTransactionCommits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tx := f.begin()
	f.appendIn(tx, "r", "rolled back")
	require.NoError(t, tx.Rollback(t.Context()))
	f.append("r", "committed")
	f.round(f.relay(Options{}))
	require.Equal(t, []string{"committed"}, f.sink.delivered())
}

func TestEventIsOncePerOrderAndKind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tx := f.begin()
	id := f.orderIn(tx, "r", "ann")
	e, err := NewConsume(id, "r", Consume{Member: "ann", Grant: "g"})
	require.NoError(t, err)
	require.NoError(t, Append(t.Context(), tx, e))
	require.ErrorContains(t, Append(t.Context(), tx, e), "outbox_once")
}

func TestRoomsAreDeliveredInOneCallEach(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var delivered int
	r := f.relay(Options{Observer: Observer{Delivered: func(n int) { delivered += n }}})
	f.append("r1", members("a", 30)...)
	f.append("r2", members("b", 20)...)
	f.append("r1", members("c", 10)...)
	require.False(t, f.round(r), "there is no more")
	require.Equal(t, []int{40, 20}, f.sink.calls)
	require.Equal(t, 60, f.status(Done))
	require.Equal(t, 60, delivered)
	require.Zero(t, f.count(`SELECT count(*) FROM outbox WHERE owner IS NOT NULL OR locked_until IS NOT NULL OR done_at IS NULL`))

	f.due()
	f.round(r)
	require.Len(t, f.sink.calls, 2, "what is done is not delivered again")
}

func TestOneCallTakesFiveHundredAtMost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", members("m", 1100)...)
	r := f.relay(Options{})
	require.True(t, f.round(r))
	require.True(t, f.round(r))
	require.False(t, f.round(r))
	require.Equal(t, []int{500, 500, 100}, f.sink.calls)
}

// The first is delivered at once, and what comes while the relay rests in one call.
func TestEventsThatComeOneByOneShareCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.relay(Options{Gather: 5 * time.Second, Poll: time.Minute})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	began := time.Now()
	f.append("r", "first")
	for _, m := range members("m", 20) {
		f.append("r", m)
		r.Poke()
	}
	if time.Since(began) > 4*time.Second {
		t.Skip("too slow a machine to come one by one in a while")
	}
	harness.Eventually(t, 30*time.Second, "all are delivered", func() bool { return len(f.sink.delivered()) == 21 })
	require.LessOrEqual(t, f.sink.callCount(), 2)
	stop()
	require.NoError(t, <-ended)
}

// Case 59, ThreeDotsLabs/watermill#311 and kamu-data/kamu-cli#1398, X4, fact 15:
// ids become visible in the order of COMMIT.
func TestEventThatCommitsLateIsDelivered(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	late := f.begin()
	f.appendIn(late, "r", "late")
	f.append("r", "early")
	r := f.relay(Options{})
	f.round(r)
	require.Equal(t, []string{"early"}, f.sink.delivered())
	require.NoError(t, late.Commit(t.Context()))
	f.round(r)
	require.Equal(t, []string{"early", "late"}, f.sink.delivered())
}

// X1, X2: a relay that dies between delivery and writing it down. Case 52 as well:
// one that has just started takes nothing from those at work.
func TestEventsOfADeadRelayAreDeliveredAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", "ann")
	dead, next := f.relay(Options{}), f.relay(Options{})
	batch, err := dead.take(t.Context())
	require.NoError(t, err)
	require.NoError(t, dead.send(t.Context(), batch))

	f.round(next)
	require.Len(t, f.sink.calls, 1, "the lease keeps others away")
	f.due()
	taken, err := next.take(t.Context())
	require.NoError(t, err)

	// The dead one was only slow. What it writes now must not touch the other's.
	require.NoError(t, dead.done(t.Context(), batch))
	require.NoError(t, dead.giveBack(t.Context(), batch))
	_, err = dead.fail(t.Context(), batch, 1, errors.New("late"))
	require.NoError(t, err)
	require.Equal(t, 1, f.count(`SELECT count(*) FROM outbox WHERE status = 'pending' AND owner = $1 AND faults = 0 AND attempts = 2
		AND locked_until > now() + interval '25 s'`, next.owner))

	require.NoError(t, next.deliver(t.Context(), taken, time.Now().Add(long)))
	require.Equal(t, []string{"ann", "ann"}, f.sink.delivered())
	require.Equal(t, 1, f.status(Done))
}

// X9.
func TestTwoRelaysShareTheWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := members("m", 2000)
	f.append("r", want...)
	stops := []func() error{f.start(f.relay(Options{})), f.start(f.relay(Options{}))}
	harness.Eventually(t, long, "all are done", func() bool { return f.status(Done) == len(want) })
	for _, stop := range stops {
		require.NoError(t, stop())
	}
	require.Equal(t, want, f.sink.delivered(), "each exactly once, as no lease has ended")
}

// X6: a sink that is slow costs no open transaction.
func TestNoTransactionIsOpenDuringADelivery(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", "ann")
	f.sink.do = func(string, []string) error {
		require.Zero(t, f.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`))
		f.exec(`SELECT FROM outbox FOR UPDATE NOWAIT`)
		return nil
	}
	f.round(f.relay(Options{}))
	require.Equal(t, 1, f.status(Done))
}

func TestPokeDeliversAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.relay(Options{Poll: time.Hour})
	stop := f.start(r)
	f.append("r", "ann")
	for range 3 {
		r.Poke() // never blocks
	}
	harness.Eventually(t, long, "the poked relay delivers", func() bool { return f.status(Done) == 1 })
	require.NoError(t, stop())
}

func TestPollDeliversWithoutAPoke(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stop := f.start(f.relay(Options{}))
	f.append("r", "ann")
	harness.Eventually(t, long, "the polling relay delivers", func() bool { return f.status(Done) == 1 })
	require.NoError(t, stop())
}

// I23, for this part: the delivery in hand is finished and written down, the
// rest is given back as if it had not been taken.
func TestStopFinishesWhatIsInHandAndGivesTheRestBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r1", "ann")
	f.append("r2", "bob")
	reached, resume := make(chan struct{}), make(chan struct{})
	f.sink.do = func(string, []string) error {
		close(reached)
		<-resume
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.relay(Options{}).Run(ctx) }()
	<-reached
	cancel()
	close(resume)
	require.NoError(t, <-done)
	require.Equal(t, []string{"ann"}, f.sink.delivered())
	require.Equal(t, 1, f.count(`SELECT count(*) FROM outbox WHERE room = 'r1' AND status = 'done'`))
	require.Equal(t, 1, f.count(`SELECT count(*) FROM outbox WHERE room = 'r2' AND status = 'pending' AND attempts = 0
		AND owner IS NULL AND locked_until IS NULL AND next_attempt_at <= now()`))
}

func TestLeaseLeavesTimeToWriteDown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r1", "ann")
	f.append("r2", "bob")
	r := f.relay(Options{Lease: 200 * time.Millisecond})
	f.sink.do = func(string, []string) error {
		harness.Eventually(t, long, "half of the lease is over", func() bool {
			return f.count(`SELECT count(*) FROM outbox WHERE locked_until < now() + interval '50 ms'`) > 0
		})
		return nil
	}
	require.True(t, f.round(r))
	require.Equal(t, []string{"ann"}, f.sink.delivered())
	require.Equal(t, 1, f.count(`SELECT count(*) FROM outbox WHERE room = 'r2' AND owner IS NULL AND attempts = 0`))
}

// X9: a row that another transaction has locked is passed over, not waited for.
func TestLockedRowsAreSkipped(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", "ann", "bob")
	tx := f.begin()
	_, err := tx.Exec(t.Context(), `SELECT FROM outbox WHERE payload->>'member' = 'ann' FOR UPDATE`)
	require.NoError(t, err)
	r := f.relay(Options{})
	f.round(r)
	require.Equal(t, []string{"bob"}, f.sink.delivered())
	require.NoError(t, tx.Rollback(t.Context()))
	f.round(r)
	require.Equal(t, []string{"ann", "bob"}, f.sink.delivered())
}

// X5: the poison dies alone, visibly, and can be requeued.
func TestPoisonDiesAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", "poison")
	good := members("m", 100)
	f.append("r", good...)
	wrong := Poison(errors.New("WRONGTYPE\x00\xff"))
	f.sink.do = func(_ string, members []string) error {
		if slices.Contains(members, "poison") {
			return wrong
		}
		return nil
	}
	var failed, died atomic.Int64
	r := f.relay(Options{Observer: Observer{
		Failed: func(n int) { failed.Add(int64(n)) },
		Died:   func(n int) { died.Add(int64(n)) },
	}})
	f.round(r)
	require.Equal(t, good, f.sink.delivered())
	require.Equal(t, 102, f.sink.callCount(), "all together, then one by one")
	for range 18 {
		f.due()
		f.round(r)
	}
	require.Equal(t, 1, f.status(Pending))
	require.Zero(t, died.Load())
	f.due()
	f.round(r)
	require.Equal(t, 1, f.status(Dead))
	require.Equal(t, int64(1), died.Load())
	require.Equal(t, int64(20), failed.Load())

	dead, err := f.List(t.Context(), Dead, 10, 0)
	require.NoError(t, err)
	require.Len(t, dead, 1)
	require.Equal(t, 20, dead[0].Faults)
	require.Equal(t, wrong.Error()[:len(wrong.Error())-2], dead[0].LastError)
	f.exec(`UPDATE outbox SET next_attempt_at = now()`)
	f.round(r)
	require.Equal(t, 121, f.sink.callCount(), "the dead are not tried")

	f.sink.do = nil
	require.NoError(t, f.Requeue(t.Context(), dead[0].ID))
	f.round(r)
	require.Equal(t, 101, f.status(Done))
}

func TestRequeuedEventHasAllItsAttempts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", "poison")
	f.sink.do = func(string, []string) error { return Poison(errors.New("x")) }
	r := f.relay(Options{MaxAttempts: 2})
	for range 2 {
		f.due()
		f.round(r)
	}
	dead, err := f.List(t.Context(), Dead, 1, 0)
	require.NoError(t, err)
	require.NoError(t, f.Requeue(t.Context(), dead[0].ID))
	f.round(r)
	require.Equal(t, 1, f.count(`SELECT count(*) FROM outbox WHERE status = 'pending' AND faults = 1 AND attempts = 1`))
}

// A way that closes while the poison is looked for.
func TestOutageDuringOneByOneStopsThere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append("r", members("m", 50)...)
	n := 0
	f.sink.do = func(string, []string) error {
		switch n++; {
		case n == 1:
			return Poison(errors.New("one of you"))
		case n <= 4:
			return nil
		}
		return errors.New("down")
	}
	_, err := f.relay(Options{}).round(t.Context())
	require.Error(t, err)
	require.Equal(t, 5, n)
	require.Equal(t, 3, f.status(Done))
	require.Equal(t, 47, f.count(`SELECT count(*) FROM outbox WHERE status = 'pending' AND faults = 0 AND owner IS NULL AND next_attempt_at > now() - interval '10 s'`))
}

func TestPayloadThatCantBeReadIsPoison(t *testing.T) {
	t.Parallel()
	for _, e := range []Event{
		{Kind: "other", Payload: []byte(`{"member":"a","grant":"g"}`)},
		{Kind: KindConsume, Payload: []byte(`"text"`)},
		{Kind: KindConsume, Payload: []byte(`{"member":"a"}`)},
		{Kind: KindConsume, Payload: []byte(`{"grant":"g"}`)},
	} {
		_, err := e.Consume()
		require.ErrorIs(t, err, ErrPoison)
	}
	e, err := NewConsume("o", "r", Consume{Member: "a\"b", Grant: "g"})
	require.NoError(t, err)
	got, err := e.Consume()
	require.NoError(t, err)
	require.Equal(t, Consume{Member: "a\"b", Grant: "g"}, got)
}
