//go:build faults

package verify

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// freePorts are ports of 127.0.0.1 that nobody listens on now.
func freePorts(t *testing.T, n int) []string {
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

// nginx runs nginx with the configuration of deploy, but for names and ports, in
// front of processes on these ports. It returns where it listens, and what it has
// complained of.
func nginx(t *testing.T, replicas []string) (base string, log func() string) {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip(harness.MissingPart + "nginx")
	}
	require.NoError(t, err)
	dir := t.TempDir()
	port := freePorts(t, 1)[0]
	proxied, err := os.ReadFile("../../deploy/nginx-proxy.conf")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "proxy.conf"), proxied, 0o644))
	conf := filepath.Join(dir, "nginx.conf")
	require.NoError(t, os.WriteFile(conf, []byte(nginxConf(t, dir, port, replicas)), 0o644))

	cmd := exec.Command(path, "-c", conf, "-p", dir, "-g", "daemon off; master_process off; pid nginx.pid;")
	cmd.SysProcAttr = childAttributes()
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		// Never unlocked: Linux ends a child with the *thread* that forked it.
		runtime.LockOSThread()
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
	eventually(t, longEnough, "nginx listens", func() bool {
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "http://127.0.0.1:" + port, func() string {
		b, _ := os.ReadFile(filepath.Join(dir, "error.log"))
		return string(b)
	}
}

// nginxConf is deploy/nginx.conf for this machine. What is replaced must be
// there: a test of another configuration than people use shows nothing.
func nginxConf(t *testing.T, dir, port string, replicas []string) string {
	t.Helper()
	b, err := os.ReadFile("../../deploy/nginx.conf")
	require.NoError(t, err)
	conf := string(b)
	var servers strings.Builder
	for _, r := range replicas {
		fmt.Fprintf(&servers, "        server 127.0.0.1:%s max_fails=0;\n", r)
	}
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("    %s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	for _, r := range []struct{ old, new string }{
		{"        server linekeeper-1:8080 max_fails=0;\n        server linekeeper-2:8080 max_fails=0;\n", servers.String()},
		{"listen 8080;", "listen 127.0.0.1:" + port + ";"},
		{"error_log /dev/stderr warn;", "error_log " + filepath.Join(dir, "error.log") + " info;"},
		{"/etc/nginx/linekeeper_proxy.conf", filepath.Join(dir, "proxy.conf")},
		{"http {\n", "http {\n" + temp},
	} {
		require.Contains(t, conf, r.old, "deploy/nginx.conf has changed")
		conf = strings.ReplaceAll(conf, r.old, r.new)
	}
	return conf
}
