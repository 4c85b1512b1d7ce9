package config_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
)

// FuzzRedisURL holds that a password shows neither where its URL is printed nor in
// what is said against it, whatever stands around it.
func FuzzRedisURL(f *testing.F) {
	for _, seed := range [][3]string{
		{"redis", "user", "r:6379"}, {"rediss", "", "r/1"}, {"redis", "", "a:1,redis://b:2"}, {"redis-sentinel", "u", "s1:26379,s2/master/1?sentinel_password=x"},
		{"redis", "a/", "r"}, {"redis", "a,redis://b", "r"}, {"redis", "u", "p@r"}, {"redis", "u?", "r"}, {"redis", "u#", "r"}, {"http", "u", "r"}, {"REDIS", "%zz", "r"},
		{"redis", "u", "r?password=x"}, {"redis", "u", "[::1]:6379"}, {"redis", "u", ""}, {"redis", "u:", "r:99999"}, {"", "", ""}, {"redis-sentinel", "", "s/m/x"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	const secret = "canaryCANARY"
	f.Fuzz(func(t *testing.T, scheme, user, rest string) {
		u := config.URL(scheme + "://" + user + ":" + secret + "@" + rest)
		require.NotContains(t, u.String()+fmt.Sprintf("%v %+v %#v %q %x", u, u, u, u, u), secret)
		o, err := config.RedisOptions(u)
		if err != nil {
			require.NotContains(t, err.Error(), secret)
			return
		}
		require.NotEmpty(t, o.Addrs)
		require.NotContains(t, strings.Join(o.Addrs, " "), secret, "a password was taken for a host")
	})
}

// FuzzOrigins holds that what is listed is what a browser could send.
func FuzzOrigins(f *testing.F) {
	for _, seed := range []string{"https://shop.example", "http://localhost:3000,https://a.example", "*", "null", "https://*.a", "https://a.example/", "https://[::1]:8443", "https://a.example:443", "https://a..b", "https://a@b", ",", "https://a.example:0", "https://[:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var o config.Origins
		if o.UnmarshalText([]byte(text)) != nil {
			require.Empty(t, o)
			return
		}
		for _, origin := range o {
			u, err := url.Parse(origin)
			require.NoError(t, err)
			require.Equal(t, u.Scheme+"://"+u.Host, origin, "more than a scheme and a host")
			require.Contains(t, []string{"http", "https"}, u.Scheme)
			require.NotContains(t, origin, "*")
			require.Equal(t, strings.ToLower(origin), origin)
		}
		again, err := o.MarshalText()
		require.NoError(t, err)
		var same config.Origins
		require.NoError(t, same.UnmarshalText(again))
		require.Equal(t, o, same)
	})
}

// FuzzNetworks holds that a network that is read has no bits beyond its mask.
func FuzzNetworks(f *testing.F) {
	for _, seed := range []string{"10.0.0.0/8", "10.0.0.1", "::1", "fe80::1%eth0", "::ffff:10.0.0.0/104", "10.1.2.3/8", "10.0.0.0/33", "", ",", "::/0, 0.0.0.0/0", "010.0.0.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var list config.Prefixes
		if list.UnmarshalText([]byte(text)) != nil {
			require.Empty(t, list)
			return
		}
		for _, p := range list {
			require.True(t, p.IsValid())
			require.Equal(t, p.Masked(), p)
			require.False(t, p.Addr().Is4In6(), "the peer's address never is")
			require.Empty(t, p.Addr().Zone())
		}
	})
}
