package pace

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
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
	path, err := exec.LookPath("nginx")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(harness.MissingPart + "nginx")
	}
	require.NoError(t, err)
	s := serve(t, 1, "LINEKEEPER_CORS_ORIGINS=https://shop.example")
	cache := s.cache(t, path)

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
	text, err := s.metrics(t.Context())
	require.NoError(t, err)
	m := statusCount.FindStringSubmatch(text)
	require.NotNil(t, m, "no count of the status in %s", text)
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

// cache runs nginx as docs/pace.md has it, but for names and ports.
func (s *server) cache(t *testing.T, nginx string) (base string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/pace.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?ms)^```nginx\n(.*?)^```$").FindStringSubmatch(string(page))
	require.NotNil(t, block, "docs/pace.md has no block for nginx")
	dir, port := t.TempDir(), freePort(t)
	text := block[1]
	for old, its := range map[string]string{"/var/cache/nginx/rooms": filepath.Join(dir, "rooms"), "listen 8080;": "listen 127.0.0.1:" + port + ";"} {
		require.Contains(t, text, old)
		text = strings.ReplaceAll(text, old, its)
	}
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		text += fmt.Sprintf("%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	conf := fmt.Sprintf("events {}\nerror_log %s/error.log;\nhttp {\naccess_log off;\nupstream linekeeper { server %s; }\n%s}\n", dir, s.public, text)
	file := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(file, []byte(conf), 0o600))
	cmd := exec.Command(nginx, "-c", file, "-p", dir, "-g", "daemon off; master_process off; pid nginx.pid;")
	cmd.SysProcAttr = attributes()
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // as in launch
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(ended)
	}()
	require.NoError(t, <-started)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	harness.Eventually(t, time.Minute, "nginx listens", func() bool {
		return status(t.Context(), "http://127.0.0.1:"+port+"/v1/rooms/"+roomName) == nil
	})
	return "http://127.0.0.1:" + port
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}
