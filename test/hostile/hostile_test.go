//go:build faults

package hostile

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

const (
	members = 200
	hands   = 8
	every   = 10 * time.Millisecond // a poll per hand
	rounds  = 6                     // quiet, and as many attacked
	lasting = 1200 * time.Millisecond
	// floor is what no member notices: below it the ratio says nothing.
	floor = 5 * time.Millisecond
	// late is what a busy machine may add to the deadline of a slow client.
	late = 3 * time.Second
)

// polls polls for a while, as members do, and returns how long each took.
func (s *shop) polls(lasting time.Duration) []time.Duration {
	s.t.Helper()
	took := make([][]time.Duration, hands)
	var wg sync.WaitGroup
	for hand := range hands {
		wg.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for until := time.Now().Add(lasting); time.Now().Before(until); <-tick.C {
				begun := time.Now()
				s.poll(s.tickets[(hand+len(took[hand])*hands)%len(s.tickets)])
				took[hand] = append(took[hand], time.Since(begun))
			}
		})
	}
	wg.Wait()
	return slices.Concat(took...)
}

func (s *shop) poll(ticket string) {
	req, err := http.NewRequest(http.MethodGet, s.Public+"/v1/rooms/"+roomName+"/entries/me", nil)
	if err == nil {
		req.Header.Set("X-Queue-Ticket", ticket)
		var resp *http.Response
		if resp, err = s.client.Do(req); err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				err = fmt.Errorf("status %d", resp.StatusCode)
			}
		}
	}
	if err != nil {
		s.t.Errorf("a member who polls is not answered: %v", err)
	}
}

func quantile[T cmp.Ordered](of []T, q float64) T {
	slices.Sort(of)
	return of[min(len(of)-1, int(q*float64(len(of))))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// measured is what members noticed.
type measured struct {
	quiet, attacked time.Duration // p99 of a poll, the median over the rounds
	ratio           float64       // of a round to the quiet one before it, the median
}

// borne tells whether it is nothing that they would notice.
func (m measured) borne() bool {
	return m.attacked <= floor || min(m.ratio, float64(m.attacked)/float64(m.quiet)) <= 2
}

// rounds measures quiet and attacked rounds in turn.
func (s *shop) rounds(a *attack) measured {
	s.t.Helper()
	var quiet, attacked []time.Duration
	var ratios []float64
	for range rounds {
		quiet = append(quiet, quantile(s.polls(lasting), .99))
		ctx, cancel := context.WithCancel(s.t.Context())
		over := make(chan struct{})
		go func() {
			a.run(ctx)
			close(over)
		}()
		harness.Eventually(s.t, time.Minute, "all are connected", func() bool { return a.open.Load() >= slowConnections })
		attacked = append(attacked, quantile(s.polls(lasting), .99))
		cancel()
		<-over
		ratios = append(ratios, float64(attacked[len(attacked)-1])/float64(quiet[len(quiet)-1]))
	}
	return measured{quantile(quiet, .5), quantile(attacked, .5), quantile(ratios, .5)}
}

// A client that holds connections, sends without end and nests deeply costs
// others nothing that they could notice. What is out of its bound is measured
// again, three times in all: something else may have had the machine.
func TestHostileClientsCostOthersNothing(t *testing.T) {
	s := openShop(t, members)
	a := &attack{addr: s.addr}
	held := make(chan [2]time.Duration, 1)
	go func() { held <- a.holdUntilCut(t.Context()) }()

	s.polls(lasting) // warms up
	var m measured
	for try := 0; try < 3 && (try == 0 || !m.borne()); try++ {
		m = s.rounds(a)
		load, _ := os.ReadFile("/proc/loadavg")
		fmt.Printf("hostile: p99 of others %.2f ms quiet, %.2f ms attacked, ratio %.2f; %d slow connections, %d endless bodies of at most %d KiB before the end, %d deep bodies (load %s)\n",
			milliseconds(m.quiet), milliseconds(m.attacked), m.ratio, a.slow.Load(), a.endless.Load(), a.most.Load()>>10, a.deep.Load(), strings.SplitN(string(load), " ", 2)[0])
	}
	require.True(t, m.borne(), "others wait %v and not %v while one client attacks, %.2f times as long", m.attacked, m.quiet, m.ratio)
	require.GreaterOrEqual(t, a.slow.Load(), int64(rounds*slowConnections), "not all could connect")
	require.Positive(t, a.endless.Load())
	require.Less(t, a.most.Load(), int64(16<<20), "a body without end is cut off after what the sockets hold")
	require.Positive(t, a.deepRefused.Load())
	h := <-held
	require.True(t, h[0] > 0 && h[0] < 5*time.Second+late, "a slow head was borne for %v (0: for ever)", h[0])
	require.True(t, h[1] > 0 && h[1] < 10*time.Second+late, "a slow body was borne for %v (0: for ever)", h[1])
}
