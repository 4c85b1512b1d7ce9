package config_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/test/harness"
)

func TestEveryFormOfRedisURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url  string
		want redis.UniversalOptions // only what the URL decides
		tls  bool
	}{
		{url: "redis://h", want: redis.UniversalOptions{Addrs: []string{"h:6379"}}},
		{url: "redis://h:1/7", want: redis.UniversalOptions{Addrs: []string{"h:1"}, DB: 7}},
		{url: "redis://u:p%40%2F%2C@h:1", want: redis.UniversalOptions{Addrs: []string{"h:1"}, Username: "u", Password: "p@/,"}},
		{url: "redis://:p,q@h:1", want: redis.UniversalOptions{Addrs: []string{"h:1"}, Password: "p,q"}},
		{url: "redis://[::1]:1/0", want: redis.UniversalOptions{Addrs: []string{"[::1]:1"}}},
		{url: "redis://[::1]", want: redis.UniversalOptions{Addrs: []string{"[::1]:6379"}}},
		{url: "rediss://u:p@h", want: redis.UniversalOptions{Addrs: []string{"h:6379"}, Username: "u", Password: "p"}, tls: true},
		{url: "redis://:p@a:1,redis://:p@b:2,redis://:p@c", want: redis.UniversalOptions{Addrs: []string{"a:1", "b:2", "c:6379"}, Password: "p"}},
		{url: "rediss://a,rediss://b", want: redis.UniversalOptions{Addrs: []string{"a:6379", "b:6379"}}, tls: true},
		{url: "redis-sentinel://a:1,b:2/m/3", want: redis.UniversalOptions{Addrs: []string{"a:1", "b:2"}, MasterName: "m", DB: 3}},
		{url: "redis-sentinel://u:p@a/m?sentinel_username=su&sentinel_password=sp", want: redis.UniversalOptions{
			Addrs: []string{"a:26379"}, MasterName: "m", Username: "u", Password: "p", SentinelUsername: "su", SentinelPassword: "sp"}},
	} {
		o, err := config.RedisOptions(config.URL(c.url))
		require.NoError(t, err, c.url)
		got := redis.UniversalOptions{Addrs: o.Addrs, DB: o.DB, Username: o.Username, Password: o.Password,
			MasterName: o.MasterName, SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword}
		require.Equal(t, c.want, got, c.url)
		require.Equal(t, c.tls, o.TLSConfig != nil, c.url)
	}
}

func TestRedisURLsThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                  "is not a URL",
		"h:6379":                            "is not a URL",
		"unix:///tmp/r.sock":                `has scheme "unix"`,
		"redis://":                          "has no host",
		"redis://a,b":                       "a Cluster is several URLs",
		"redis://h/x":                       "not a database number",
		"redis://h/0/1":                     "not a database number",
		"redis://h/-1":                      "not a database number",
		"redis://h?max_retries=9":           `unknown parameter "max_retries"`,
		"redis://a,rediss://b":              "different schemes or logins",
		"redis://:x@a,redis://:y@b":         "different schemes or logins",
		"redis://a/0,redis://b/1":           "which a Cluster has none of",
		"redis://a,redis://a:6379":          "names a:6379 twice",
		"redis://a,redis-sentinel://b/m":    `has scheme "redis-sentinel"`,
		"redis-sentinel://a":                "is not one redis-sentinel://",
		"redis-sentinel:///m":               "is not one redis-sentinel://",
		"redis-sentinel://a/m,redis://b":    "is not one redis-sentinel://",
		"redis-sentinel://a/m/x":            "not a database number",
		"redis-sentinel://a/m?max_retries=": `unknown parameter "max_retries"`,
		"redis://h:0":                       "is not a URL",
		"redis://h:65536":                   "is not a URL",
		"redis://h:":                        "is not a URL",
	} {
		_, err := config.RedisOptions(config.URL(url))
		require.ErrorContains(t, err, want, url)
	}
}

// What go-redis fills in by itself is read back from the client, because its
// zero values stand for defaults that we do not want.
func TestOptionsReachTheClient(t *testing.T) {
	t.Parallel()
	o, err := config.RedisOptions("redis://h")
	require.NoError(t, err)
	client, ok := config.OpenRedis(o).(*redis.Client)
	require.True(t, ok)
	defer func() { _ = client.Close() }()
	got := client.Options()
	require.True(t, got.ContextTimeoutEnabled)
	require.Equal(t, 1, got.MaxRetries)
	require.Equal(t, 1, got.DialerRetries)
	require.Equal(t, time.Second, got.DialTimeout)
	require.Equal(t, 500*time.Millisecond, got.ReadTimeout)
	require.Equal(t, 500*time.Millisecond, got.WriteTimeout)
	require.GreaterOrEqual(t, got.PoolSize, 20)
	require.True(t, got.DisableIdentity)
	require.Equal(t, maintnotifications.ModeDisabled, got.MaintNotificationsConfig.Mode)
}

func TestClusterClientLooksForFailoversEverySecond(t *testing.T) {
	t.Parallel()
	o, err := config.RedisOptions("redis://a,redis://b")
	require.NoError(t, err)
	client, ok := config.OpenRedis(o).(*redis.ClusterClient)
	require.True(t, ok)
	defer func() { _ = client.Close() }()
	require.Equal(t, time.Second, client.Options().ClusterStateReloadInterval)
	require.Equal(t, 1, client.Options().DialerRetries)
	require.Equal(t, 1, client.Options().MaxRetries)
}

func TestSentinelURLsOpenAClientOfTheMaster(t *testing.T) {
	t.Parallel()
	o, err := config.RedisOptions("redis-sentinel://a:1,b:2/m/3")
	require.NoError(t, err)
	client, ok := config.OpenRedis(o).(*redis.Client)
	require.True(t, ok, "several sentinels are not a Cluster")
	defer func() { _ = client.Close() }()
	require.Equal(t, "FailoverClient", client.Options().Addr)
	require.Equal(t, 3, client.Options().DB)
}

func TestLockOptionsGiveUpWellBeforeTheLockEnds(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]time.Duration{
		0:                time.Second,
		3 * time.Second:  500 * time.Millisecond,
		60 * time.Second: time.Second,
	} {
		o, err := config.LockOptions("redis://h", ttl)
		require.NoError(t, err)
		require.Equal(t, -1, o.MaxRetries)
		require.Equal(t, 1, o.MaxRedirects)
		require.Equal(t, want, o.ReadTimeout, ttl)
		require.Equal(t, want, o.DialTimeout, ttl)
		require.True(t, o.ContextTimeoutEnabled)
	}
	_, err := config.LockOptions("CANARY", time.Second)
	require.Error(t, err)
}

// A refused command of a handshake shows nowhere else than in INFO.
func TestConnectingAsksRedisNothingThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	server := harness.RedisServer(t)
	o, err := config.RedisOptions(config.URL("redis://" + server.Addr + "/2"))
	require.NoError(t, err)
	client := config.OpenRedis(o)
	t.Cleanup(func() { _ = client.Close() })
	stats, err := client.Info(t.Context(), "errorstats").Result()
	require.NoError(t, err)
	require.NotContains(t, stats, "errorstat_")
}
