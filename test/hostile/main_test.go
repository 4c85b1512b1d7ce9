//go:build faults

package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/api/spec"
	"github.com/linekeeper/linekeeper/credential"
	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/room/pgstore"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

const roomName = "sale"

// shop is one process, and members who wait in its room.
type shop struct {
	*fault.Process
	t       *testing.T
	addr    string
	client  *http.Client
	tickets []string
}

// openShop builds and starts the product, and lets n members enter.
func openShop(t *testing.T, n int) *shop {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "linekeeper")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../../cmd/linekeeper").CombinedOutput()
	require.NoError(t, err, "%s", out)
	settings := room.Defaults()
	settings.Paused = true
	_, err = pgstore.New(harness.Database(t)).Create(t.Context(), roomName, settings, room.Actor{Name: "test"})
	require.NoError(t, err)

	p, err := fault.StartProcess(binary, append([]string{
		"LINEKEEPER_REDIS_URL=" + urlOf(harness.Redis(t).Options()), "LINEKEEPER_DATABASE_URL=" + harness.DSN(t),
		fmt.Sprintf("LINEKEEPER_KEY_PREFIX=hostile%x", rand.Uint32()), "LINEKEEPER_KEYS=" + credential.GenerateKey(),
		"LINEKEEPER_LISTEN=127.0.0.1:0", "LINEKEEPER_ADMIN_LISTEN=127.0.0.1:0", "LINEKEEPER_LEADER_TTL=2s", "LINEKEEPER_SHUTDOWN_DELAY=0s",
	}, harness.Unlimited...), "serve")
	require.NoError(t, err)
	s := &shop{Process: p, t: t, client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	t.Cleanup(s.close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, p.AwaitServing(ctx))
	s.addr = p.Public[len("http://"):]
	harness.Eventually(t, time.Minute, "the room is served", func() bool { return s.enter() })
	for len(s.tickets) < n {
		require.True(t, s.enter())
	}
	return s
}

func urlOf(o *redis.Options) string { return fmt.Sprintf("redis://%s/%d", o.Addr, o.DB) }

func (s *shop) close() {
	s.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	if err := s.Terminate(ctx); err != nil {
		s.t.Error(err)
	}
}

// enter lets somebody new enter, and tells whether they could.
func (s *shop) enter() bool {
	resp, err := s.client.Post(s.Public+"/v1/rooms/"+roomName+"/entries", "", nil)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var p spec.Position
	if resp.StatusCode != http.StatusCreated || json.NewDecoder(resp.Body).Decode(&p) != nil {
		return false
	}
	s.tickets = append(s.tickets, *p.QueueTicket)
	return true
}
