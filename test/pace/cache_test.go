package pace

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/linekeeper/linekeeper/test/harness"
)

// TestACacheAsksOnceASecondHoweverManyAskIt runs the block of docs/pace.md on a real
// nginx, in front of a process whose own metrics say how often it was asked.
func TestACacheAsksOnceASecondHoweverManyAskIt(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds and starts a process")
	}
	s := serve(t, 1, "LINEKEEPER_CORS_ORIGINS=https://shop.example")
	cache := s.cache(t)

	before, began := s.asked(t), time.Now()
	var g errgroup.Group
	for worker := range 32 {
		g.Go(func() error {
			for i := 0; time.Since(began) < 3*time.Second; i++ {
				if err := status(t.Context(), fmt.Sprintf("%s/v1/rooms/%s?of=%d-%d", cache, roomName, worker, i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	times := s.asked(t) - before
	require.Positive(t, times)
	require.LessOrEqual(t, times, 2+int(time.Since(began)/time.Second), "of thousands of calls")
}

// status asks for a status as a page of the shop does.
func status(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Origin", "https://shop.example")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if let := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode != http.StatusOK || let != "https://shop.example" {
		return fmt.Errorf("answered %s, for pages of %q", resp.Status, let)
	}
	return err
}

var statusCount = regexp.MustCompile(`(?m)^linekeeper_http_request_seconds_count\{[^}]*route="/v1/rooms/\{room\}"[^}]*\} (\d+)`)

// asked is how often the process has answered with a status.
func (s *server) asked(t *testing.T) int {
	t.Helper()
	text, err := s.Metrics(t.Context(), http.DefaultClient)
	require.NoError(t, err)
	m := statusCount.FindStringSubmatch(string(text))
	require.NotNil(t, m, "no count of the status in %s", text)
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

// cache runs nginx as docs/pace.md has it, but for names and ports.
func (s *server) cache(t *testing.T) (base string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/pace.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?ms)^```nginx\n(.*?)^```$").FindStringSubmatch(string(page))
	require.NotNil(t, block, "docs/pace.md has no block for nginx")
	base, _ = harness.Nginx(t, func(address, dir string) string {
		text := block[1]
		for old, its := range map[string]string{"/var/cache/nginx/rooms": filepath.Join(dir, "rooms"), "listen 8080;": "listen " + address + ";"} {
			require.Contains(t, text, old)
			text = strings.ReplaceAll(text, old, its)
		}
		return fmt.Sprintf("events {}\nerror_log %s/error.log;\nhttp {\naccess_log off;\nupstream linekeeper { server %s; }\n%s}\n",
			dir, strings.TrimPrefix(s.Public, "http://"), text)
	})
	harness.Eventually(t, time.Minute, "the cache answers", func() bool {
		return status(t.Context(), base+"/v1/rooms/"+roomName) == nil
	})
	return base
}
