package pace

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
)

const roomName = "sale"

// server is a process of the binary on a real Redis and Postgres, and a paused room:
// nobody is let through, so that as many wait at the end as at the beginning.
type server struct {
	*fault.Process
	tickets []string
}

// serve starts a process with more settings than the usual, and so many in line.
func serve(t *testing.T, members int, more ...string) *server {
	t.Helper()
	rdb, keys := harness.Redis(t), credential.GenerateKey()
	prefix := fmt.Sprintf("pace%x", time.Now().UnixNano())
	p, err := fault.StartProcess(build(t), append(more,
		"LINEKEEPER_REDIS_URL=redis://"+rdb.Options().Addr+"/"+strconv.Itoa(rdb.Options().DB),
		"LINEKEEPER_DATABASE_URL="+harness.DSN(t), "LINEKEEPER_KEY_PREFIX="+prefix, "LINEKEEPER_KEYS="+keys,
		"LINEKEEPER_LISTEN=127.0.0.1:0", "LINEKEEPER_ADMIN_LISTEN=127.0.0.1:0", "LINEKEEPER_SHUTDOWN_DELAY=0s",
		"GOMAXPROCS="+strconv.Itoa(*cores),
	), "serve")
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
		defer stop()
		require.NoError(t, p.Terminate(ctx))
	})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	require.NoError(t, p.AwaitServing(ctx))
	s := &server{Process: p}
	s.fill(t, rdb, prefix, keys, members)
	return s
}

// build makes the binary.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "linekeeper")
	built, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../../cmd/linekeeper").CombinedOutput()
	require.NoError(t, err, "%s", built)
	return binary
}

// fill makes the room, waits until a scheduler has begun it, and puts members in line.
func (s *server) fill(t *testing.T, rdb *redis.Client, prefix, keys string, members int) {
	t.Helper()
	books, line := roomstore.New(harness.Database(t)), redisstore.New(rdb, prefix)
	settings := room.Defaults()
	settings.MaxWaiting, settings.Paused = 10_000_000, true
	_, err := books.Create(t.Context(), roomName, settings, room.Actor{Name: "olaf", Role: "admin", Remote: "127.0.0.1"})
	require.NoError(t, err)
	var snap queue.Snapshot
	harness.Eventually(t, time.Minute, "the room has begun", func() bool {
		snap, err = line.Snapshot(t.Context(), roomName)
		return err == nil
	})
	harness.Eventually(t, time.Minute, "the process knows the room", func() bool {
		resp, err := http.Get(s.Public + "/v1/rooms/" + roomName)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	ring, err := credential.ParseRing(keys)
	require.NoError(t, err)
	first := snap.Now.UnixMicro() - int64(members)
	entries := make([]redis.Z, 0, 5000)
	for i := range members {
		ticket := credential.Ticket{Room: roomName, Sale: snap.Sale, Generation: snap.Generation, Member: credential.NewMember(),
			Place: queue.Place{Score: first + int64(i)}, IssuedAt: snap.Now}
		text, err := ring.SignTicket(ticket)
		require.NoError(t, err)
		s.tickets = append(s.tickets, text.Reveal())
		entries = append(entries, redis.Z{Score: float64(ticket.Place.Score), Member: ticket.Member})
		if len(entries) == cap(entries) || i == members-1 {
			require.NoError(t, rdb.ZAdd(t.Context(), prefix+":{"+roomName+"}:lane0", entries...).Err())
			entries = entries[:0]
		}
	}
}

// stretch is by how much the process stretches polls.
func (s *server) stretch(ctx context.Context) (float64, error) {
	text, err := s.Metrics(ctx, http.DefaultClient)
	if err != nil {
		return 0, err
	}
	return text.Value("linekeeper_poll_stretch")
}

// stretches looks at it each second, until ctx ends.
func (s *server) stretches(ctx context.Context) (all []float64, err error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return all, nil
		case <-tick.C:
			by, err := s.stretch(ctx)
			if err == nil {
				all = append(all, by)
			} else if ctx.Err() == nil {
				return nil, err
			}
		}
	}
}
