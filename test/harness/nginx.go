package harness

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/child"
)

// Nginx runs nginx to the end of the test, or skips it without one. conf makes the
// configuration: of the address to listen on, and of a directory for all that it
// needs, where complaints go to error.log. complaints is what they are so far.
func Nginx(t testing.TB, conf func(address, dir string) string) (base string, complaints func() string) {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(MissingPart + "nginx")
	}
	require.NoError(t, err)
	dir, address := t.TempDir(), "127.0.0.1:"+FreePorts(t, 1)[0]
	log, temp := filepath.Join(dir, "error.log"), "http {\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	text := conf(address, dir)
	require.Equal(t, 1, strings.Count(text, "http {\n"))
	require.Contains(t, text, log)
	file := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(text, "http {\n", temp, 1)), 0o600))

	cmd := exec.Command(path, "-c", file, "-p", dir, "-g", "daemon off; master_process off; pid nginx.pid;")
	ended, err := child.Start(cmd)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	Eventually(t, time.Minute, "nginx listens", func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "http://" + address, func() string {
		b, _ := os.ReadFile(log)
		return string(b)
	}
}

// FreePorts are n ports of 127.0.0.1 that nobody listens on now.
func FreePorts(t testing.TB, n int) []string {
	t.Helper()
	ports := make([]string, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close() // not before all are taken
		_, ports[i], err = net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
	}
	return ports
}
