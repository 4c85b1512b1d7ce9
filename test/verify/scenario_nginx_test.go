//go:build faults

package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// nginx runs nginx with the configuration of deploy, but for names and ports, in
// front of processes on these ports. It returns where it listens, and what it has
// complained of.
func nginx(t *testing.T, replicas []string) (base string, complaints func() string) {
	t.Helper()
	proxied, err := os.ReadFile("../../deploy/nginx-proxy.conf")
	require.NoError(t, err)
	return harness.Nginx(t, func(address, dir string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "proxy.conf"), proxied, 0o644))
		return nginxConf(t, address, dir, replicas)
	})
}

// nginxConf is deploy/nginx.conf for this machine. What is replaced must be
// there: a test of another configuration than people use shows nothing.
func nginxConf(t *testing.T, address, dir string, replicas []string) string {
	t.Helper()
	b, err := os.ReadFile("../../deploy/nginx.conf")
	require.NoError(t, err)
	conf := string(b)
	var servers strings.Builder
	for _, r := range replicas {
		fmt.Fprintf(&servers, "        server 127.0.0.1:%s max_fails=0;\n", r)
	}
	for _, r := range []struct{ old, new string }{
		{"        server linekeeper-1:8080 max_fails=0;\n        server linekeeper-2:8080 max_fails=0;\n", servers.String()},
		{"listen 8080;", "listen " + address + ";"},
		{"error_log /dev/stderr warn;", "error_log " + filepath.Join(dir, "error.log") + " info;"},
		{"/etc/nginx/linekeeper_proxy.conf", filepath.Join(dir, "proxy.conf")},
	} {
		require.Contains(t, conf, r.old, "deploy/nginx.conf has changed")
		conf = strings.ReplaceAll(conf, r.old, r.new)
	}
	return conf
}
