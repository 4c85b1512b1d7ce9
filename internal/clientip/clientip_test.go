package clientip_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/clientip"
)

var proxies = clientip.Trusted{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}

func request(peer string, forwarded ...string) *http.Request {
	return &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": forwarded}}
}

// Case 76, go-chi/chi#967 and GHSA-3fxj-6jh8-hvhx, go-chi/httprate#53: a header of
// the client's own would make it as many clients as it likes.
func TestTheAddressIsWhatTrustedProxiesHaveWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"no proxy":                           {"192.0.2.1:4000", nil, "192.0.2.1"},
		"a proxy that says nothing":          {"10.0.0.1:4000", nil, "10.0.0.1"},
		"an empty value":                     {"10.0.0.1:4000", []string{""}, "10.0.0.1"},
		"a client that forwards for itself":  {"192.0.2.1:4000", []string{"1.2.3.4"}, "192.0.2.1"},
		"one proxy":                          {"10.0.0.1:4000", []string{"192.0.2.1"}, "192.0.2.1"},
		"a client's own value in front":      {"10.0.0.1:4000", []string{"1.2.3.4, 192.0.2.1"}, "192.0.2.1"},
		"a client's own line in front":       {"10.0.0.1:4000", []string{"1.2.3.4", "192.0.2.1"}, "192.0.2.1"},
		"a client that claims to be a proxy": {"10.0.0.1:4000", []string{"1.2.3.4, 10.0.0.7, 192.0.2.1"}, "192.0.2.1"},
		"rubbish left of the client":         {"10.0.0.1:4000", []string{"evil, 192.0.2.1"}, "192.0.2.1"},
		"a proxy that writes rubbish":        {"10.0.0.1:4000", []string{"192.0.2.1, evil"}, "10.0.0.1"},
		"rubbish behind two proxies":         {"10.0.0.1:4000", []string{"evil,10.0.0.2"}, "10.0.0.1"},
		"nothing between two commas":         {"10.0.0.1:4000", []string{"192.0.2.1,,10.0.0.2"}, "10.0.0.1"},
		"two proxies":                        {"10.0.0.1:4000", []string{"192.0.2.1, 10.0.0.2"}, "192.0.2.1"},
		"two proxies in two lines":           {"10.0.0.1:4000", []string{"192.0.2.1", "10.0.0.2"}, "192.0.2.1"},
		"proxies alone":                      {"10.0.0.1:4000", []string{"10.0.0.3,10.0.0.2"}, "10.0.0.3"},
		"with a port":                        {"10.0.0.1:4000", []string{"192.0.2.1:5000"}, "192.0.2.1"},
		"IPv6":                               {"[fd00::1]:4000", []string{"2001:db8::7"}, "2001:db8::7"},
		"IPv6 with a port":                   {"[fd00::1]:4000", []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		"IPv6 in brackets":                   {"[fd00::1]:4000", []string{"[2001:db8::7]"}, "2001:db8::7"},
		"a peer of IPv4 written as IPv6":     {"[::ffff:10.0.0.1]:4000", []string{"192.0.2.1"}, "192.0.2.1"},
		"a trusted hop of IPv4 in IPv6":      {"10.0.0.1:4000", []string{"192.0.2.1, ::ffff:10.0.0.2"}, "192.0.2.1"},
		"a client of IPv4 in IPv6":           {"10.0.0.1:4000", []string{"::ffff:192.0.2.1"}, "192.0.2.1"},
		"a zone":                             {"10.0.0.1:4000", []string{"fe80::1%eth0"}, "fe80::1"},
		"a peer with a zone":                 {"[fe80::1%eth0]:4000", nil, "fe80::1"},
		"ten thousand bytes":                 {"10.0.0.1:4000", []string{strings.Repeat("9", 10_000)}, "10.0.0.1"},
		"ten thousand bytes of trusted hops": {"10.0.0.1:4000", []string{"192.0.2.1" + strings.Repeat(",10.0.0.2", 1000)}, "192.0.2.1"},
		"no address at all":                  {"@", []string{"192.0.2.1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := netip.Addr{}
			if c.want != "" {
				want = netip.MustParseAddr(c.want)
			}
			require.Equal(t, want, proxies.Of(request(c.peer, c.forwarded...)))
		})
	}
}

func TestOtherHeadersSayNothing(t *testing.T) {
	t.Parallel()
	r := request("10.0.0.1:4000")
	for _, h := range []string{"True-Client-Ip", "X-Real-Ip", "Cf-Connecting-Ip", "Forwarded"} {
		r.Header.Set(h, "192.0.2.1")
	}
	require.Equal(t, "10.0.0.1", proxies.Of(r).String())
}

func TestNetworkOfAnAddress(t *testing.T) {
	t.Parallel()
	network := func(addr string, v4, v6 int) string {
		return clientip.Network(netip.MustParseAddr(addr), v4, v6).String()
	}
	require.Equal(t, "192.0.2.0/24", network("192.0.2.77", 24, 48))
	require.Equal(t, "2001:db8:7::/48", network("2001:db8:7:8::9", 24, 48))
	require.Equal(t, "2001:db8:7:8::/64", network("2001:db8:7:8::9", 32, 64))
	require.False(t, clientip.Network(netip.Addr{}, 24, 48).IsValid())
}

// Whatever is forwarded: what a client writes moves nothing, and a client that is
// no proxy is who it is.
func FuzzForwardedHeaders(f *testing.F) {
	for _, seed := range []string{"", "1.2.3.4", "1.2.3.4, 10.0.0.1", "evil", ",", "[::1]:80", "fe80::1%eth0", "::ffff:10.0.0.1", "10.0.0.2,10.0.0.3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, forged string) {
		client := netip.MustParseAddr("192.0.2.1")
		require.Equal(t, client, proxies.Of(request("192.0.2.1:4000", forged)))
		require.Equal(t, client, proxies.Of(request("10.0.0.1:4000", forged, client.String())))
		require.Equal(t, client, proxies.Of(request("10.0.0.1:4000", forged+","+client.String()+", 10.9.9.9")))
		got := proxies.Of(request("10.0.0.1:4000", forged))
		require.True(t, got.IsValid())
		require.Empty(t, got.Zone())
		require.False(t, got.Is4In6())
	})
}
