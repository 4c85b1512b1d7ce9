package fault

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

func port(c *pgxpool.Config) string { return strconv.Itoa(int(c.ConnConfig.Port)) }

func dialTo(addr string) func(ctx context.Context, network, _ string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
}

// proxied is a proxy before the tests' Redis, a client of it that never repeats
// anything, and one that goes past it.
func proxied(t *testing.T) (p *Proxy, through, direct *redis.Client, key string) {
	t.Helper()
	direct = harness.Redis(t)
	p, err := NewProxy(direct.Options().Addr, NewDice(11))
	require.NoError(t, err)
	t.Cleanup(p.Close)
	o := *direct.Options()
	through = redis.NewClient(&redis.Options{
		Addr: p.Addr(), Username: o.Username, Password: o.Password, DB: o.DB,
		MaxRetries: -1, ReadTimeout: time.Second, ContextTimeoutEnabled: true, DisableIdentity: true, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = through.Close() })
	key = t.Name()
	require.NoError(t, through.Set(t.Context(), key, 0, 0).Err())
	t.Cleanup(func() { _ = direct.Del(context.WithoutCancel(t.Context()), key).Err() })
	return p, through, direct, key
}

func value(t *testing.T, c *redis.Client, key string) int {
	t.Helper()
	n, err := c.Get(t.Context(), key).Int()
	require.NoError(t, err)
	return n
}

// What is held arrives when nobody waits for it any more.
func TestHeldRequestArrivesLate(t *testing.T) {
	t.Parallel()
	for _, w := range []Way{ToServer, BothWays} {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			p, through, direct, key := proxied(t)
			p.Hold(w)
			require.Error(t, through.Incr(t.Context(), key).Err())
			require.Equal(t, 0, value(t, direct, key))
			p.Heal()
			harness.Eventually(t, 5*time.Second, "the request arrives", func() bool { return value(t, direct, key) == 1 })
			require.NoError(t, through.Incr(t.Context(), key).Err())
		})
	}
}

func TestHeldAnswerIsGivenWhenItsClientStillWaits(t *testing.T) {
	t.Parallel()
	p, through, direct, key := proxied(t)
	through.Options().ReadTimeout = 10 * time.Second
	p.Hold(ToClient)
	answer := make(chan error, 1)
	go func() { answer <- through.Incr(t.Context(), key).Err() }()
	harness.Eventually(t, 5*time.Second, "the server has heard", func() bool { return value(t, direct, key) == 1 })
	require.Empty(t, answer)
	p.Heal()
	<-answer // nil, or the timeout of a slow machine
}

func TestCutToServerIsLostForGood(t *testing.T) {
	t.Parallel()
	p, through, direct, key := proxied(t)
	p.Cut(ToServer)
	require.Error(t, through.Incr(t.Context(), key).Err())
	require.Error(t, through.Incr(t.Context(), key).Err())
	p.Heal()
	require.NoError(t, through.Ping(t.Context()).Err())
	require.Equal(t, 0, value(t, direct, key))
	require.Positive(t, p.Counts().Cut)
}

func TestCutToClientIsDoneAndNotTold(t *testing.T) {
	t.Parallel()
	p, through, direct, key := proxied(t)
	p.Cut(ToClient)
	require.Error(t, through.Incr(t.Context(), key).Err())
	require.Equal(t, 1, value(t, direct, key))
	p.Heal()
	require.NoError(t, through.Incr(t.Context(), key).Err())
	require.Equal(t, 2, value(t, direct, key))
}

// A connection that has lost bytes is worth nothing when the way is free again.
func TestHealEndsConnectionsThatLostBytes(t *testing.T) {
	t.Parallel()
	p, _, _, _ := proxied(t)
	lost, whole := dial(t, p), dial(t, p)
	require.Equal(t, "+PONG\r\n", say(t, lost, "PING\r\n"))
	require.Equal(t, "+PONG\r\n", say(t, whole, "PING\r\n"))
	p.Cut(ToServer)
	_, err := lost.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	harness.Eventually(t, 5*time.Second, "the piece is dropped", func() bool { return p.Counts().Cut == 1 })
	p.Heal()
	_, err = lost.Read(make([]byte, 10))
	require.Error(t, err)
	require.Equal(t, "+PONG\r\n", say(t, whole, "PING\r\n"))
	require.Equal(t, 1, p.Counts().Broken)
}

// One way cut, the other way goes on: also for who has lost bytes already.
func TestServerIsHeardByThoseItDoesNotHear(t *testing.T) {
	t.Parallel()
	p, _, direct, key := proxied(t)
	c := dial(t, p)
	require.Contains(t, say(t, c, "SUBSCRIBE "+key+"\r\n"), "subscribe")
	p.Cut(ToServer)
	_, err := c.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	harness.Eventually(t, 5*time.Second, "the piece is dropped", func() bool { return p.Counts().Cut == 1 })
	require.NoError(t, direct.Publish(t.Context(), key, "news").Err())
	b := make([]byte, 100)
	n, err := c.Read(b)
	require.NoError(t, err)
	require.Contains(t, string(b[:n]), "news")
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(10*time.Second)))
	return c
}

func say(t *testing.T, c net.Conn, text string) string {
	t.Helper()
	_, err := c.Write([]byte(text))
	require.NoError(t, err)
	b := make([]byte, 100)
	n, err := c.Read(b)
	require.NoError(t, err)
	return string(b[:n])
}

func TestLostAnswerHasBeenEarned(t *testing.T) {
	t.Parallel()
	p, through, direct, key := proxied(t)
	p.Lose(1)
	for want := range 3 {
		require.Error(t, through.Incr(t.Context(), key).Err())
		require.LessOrEqual(t, value(t, direct, key), want+1)
	}
	harness.Eventually(t, 5*time.Second, "an answer is lost", func() bool { return p.Counts().Lost > 0 })
	p.Heal()
	done := value(t, direct, key)
	require.Positive(t, done, "nothing has been executed at all")
	require.NoError(t, through.Incr(t.Context(), key).Err())
	require.Equal(t, done+1, value(t, direct, key))
}

func TestResetAndRefuse(t *testing.T) {
	t.Parallel()
	p, _, _, _ := proxied(t)
	old := dial(t, p)
	require.Equal(t, "+PONG\r\n", say(t, old, "PING\r\n"))
	p.Refuse()
	require.Equal(t, "+PONG\r\n", say(t, old, "PING\r\n"), "those there are go on")
	fresh, err := net.Dial("tcp", p.Addr())
	if err == nil { // or it was refused as it was made
		defer fresh.Close()
		require.NoError(t, fresh.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = fresh.Read(make([]byte, 10))
	}
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	p.Reset()
	_, err = old.Read(make([]byte, 10))
	require.Error(t, err)
	p.Heal()
	require.Equal(t, "+PONG\r\n", say(t, dial(t, p), "PING\r\n"))
}

func TestSlowAddsTime(t *testing.T) {
	t.Parallel()
	p, _, _, _ := proxied(t)
	c := dial(t, p)
	p.Slow(50 * time.Millisecond)
	begun := time.Now()
	require.Equal(t, "+PONG\r\n", say(t, c, "PING\r\n"))
	require.GreaterOrEqual(t, time.Since(begun), 100*time.Millisecond)
}

func TestEndsArePassedOnBothWays(t *testing.T) {
	t.Parallel()
	p, _, direct, _ := proxied(t)
	c := dial(t, p)
	require.Equal(t, "+OK\r\n", say(t, c, "QUIT\r\n"))
	_, err := c.Read(make([]byte, 10))
	require.Error(t, err, "the server's end is the client's")

	c = dial(t, p)
	require.Equal(t, "+OK\r\n", say(t, c, "CLIENT SETNAME "+t.Name()+"\r\n"))
	require.NoError(t, c.Close())
	harness.Eventually(t, 5*time.Second, "the client's end is the server's", func() bool {
		list, err := direct.ClientList(t.Context()).Result()
		return err == nil && !strings.Contains(list, "name="+t.Name())
	})
}
