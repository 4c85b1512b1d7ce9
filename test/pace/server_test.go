package pace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/room"
	roomstore "github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

const roomName = "sale"

// server is a process of the binary on a real Redis and Postgres, and a paused room:
// nobody is let through, so that as many wait at the end as at the beginning.
type server struct {
	public, admin string // host:port
	tickets       []string
	out           *harness.Output
}

// serve starts a process with more settings than the usual, and so many in line.
func serve(t *testing.T, members int, more ...string) *server {
	t.Helper()
	rdb, keys := harness.Redis(t), credential.GenerateKey()
	prefix := fmt.Sprintf("pace%x", time.Now().UnixNano())
	s := &server{out: &harness.Output{}}
	s.launch(t, append(more,
		"LINEKEEPER_REDIS_URL=redis://"+rdb.Options().Addr+"/"+strconv.Itoa(rdb.Options().DB),
		"LINEKEEPER_DATABASE_URL="+harness.DSN(t), "LINEKEEPER_KEY_PREFIX="+prefix, "LINEKEEPER_KEYS="+keys,
		"LINEKEEPER_LISTEN=127.0.0.1:0", "LINEKEEPER_ADMIN_LISTEN=127.0.0.1:0", "LINEKEEPER_SHUTDOWN_DELAY=0s",
		"GOMAXPROCS="+strconv.Itoa(*cores),
	))
	s.fill(t, rdb, prefix, keys, members)
	return s
}

// launch builds and starts the binary; it ends with the test.
func (s *server) launch(t *testing.T, settings []string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "linekeeper")
	built, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../../cmd/linekeeper").CombinedOutput()
	require.NoError(t, err, "%s", built)
	cmd := exec.Command(binary, "serve")
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.out, s.out, attributes()
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LINEKEEPER_") && !strings.HasPrefix(v, "GOMAXPROCS=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, settings...)
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: Linux ends a child with the *thread* that forked it
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(ended)
	}()
	require.NoError(t, <-started)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			t.Error("the process does not end on SIGTERM")
		}
	})
	harness.Eventually(t, time.Minute, "the process serves", func() bool {
		for line := range strings.Lines(s.out.String()) {
			var said struct{ Msg, Public, Admin string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Msg == "serving" {
				s.public, s.admin = said.Public, said.Admin
			}
		}
		return s.public != ""
	})
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
		resp, err := http.Get("http://" + s.public + "/v1/rooms/" + roomName)
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

// metrics are what the process says of itself.
func (s *server) metrics(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+"/metrics", nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// stretch is by how much the process stretches polls.
func (s *server) stretch(ctx context.Context) (float64, error) {
	text, err := s.metrics(ctx)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "linekeeper_poll_stretch "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, errors.New("the metrics have no linekeeper_poll_stretch")
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
