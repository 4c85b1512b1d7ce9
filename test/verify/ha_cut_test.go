//go:build faults

package verify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/test/fault"
	"github.com/linekeeper/linekeeper/test/harness"
)

// behindCable starts a process whose way to Redis can be cut.
func (s *shop) behindCable(d *fault.Dice, addr string) (*fault.Process, *fault.Proxy) {
	s.t.Helper()
	cable, err := fault.NewProxy(addr, d)
	require.NoError(s.t, err)
	s.t.Cleanup(cable.Close)
	return s.start("LINEKEEPER_REDIS_URL=redis://" + cable.Addr()), cable
}

// The network between the process that leads and Redis is cut: what it says does
// not arrive, or arrives and is not answered, or nothing passes at all. The other
// process is not cut off.
func TestLeaderCutOffFromRedisBreaksNoPromise(t *testing.T) {
	ways := map[string]fault.Way{"not heard back": fault.ToClient}
	if long() {
		ways["not heard"], ways["both ways"] = fault.ToServer, fault.BothWays
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, url := ownRedis(t)
			s := openShop(t, url, harness.DSN(t), fast)
			d := fault.NewDice(seedOf(t))
			a, cableA := s.behindCable(d, r.Server.Addr)
			b, cableB := s.behindCable(d, r.Server.Addr)
			s.begun()
			crowd := s.host(10, a, b)
			crowd.buys(10)
			for range map[bool]int{false: 1, true: 4}[long()] {
				old, cable := s.leader(), cableA
				if old == b {
					cable = cableB
				}
				was, _ := s.look()
				tally.Faults(1)
				cable.Cut(way)
				cut := time.Now()
				s.untilSnapshot("the other leads", func(q queue.Snapshot) bool { return q.Term > was.Term })
				t.Logf("%s: another leads after %v", name, time.Since(cut).Round(time.Millisecond))
				crowd.buys(10)
				pause(t.Context(), time.Until(cut.Add(6*time.Second)))
				cable.Heal()
				crowd.buys(10)
			}
			require.True(t, crowd.verdict(), "nobody has noticed anything: this test shows nothing")
		})
	}
}
