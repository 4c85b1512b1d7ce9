package doctor_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/config"
	"github.com/linekeeper/linekeeper/internal/devstack"
	"github.com/linekeeper/linekeeper/internal/doctor"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

// onCluster is an installation without a fault on three primaries.
func onCluster(t *testing.T) (*fixture, *devstack.Cluster) {
	t.Helper()
	f, c := setUp(t), harness.Cluster(t)
	for _, n := range c.Nodes {
		nodeConf(t, n, "appendonly", "yes")
		nodeConf(t, n, "maxmemory", "1gb")
	}
	o, err := config.RedisOptions(config.URL(c.URL()))
	require.NoError(t, err)
	rdb := config.OpenRedis(o)
	t.Cleanup(func() { _ = rdb.Close() })
	f.Redis, f.line, f.Conf.RedisURL = rdb, redisstore.New(rdb, prefix), config.URL(c.URL())
	f.begin()
	require.NoError(t, rdb.Set(t.Context(), prefix+":leader", "x", time.Hour).Err())
	return f, c
}

func nodeConf(t *testing.T, n *devstack.Proc, name, value string) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: n.Addr, DisableIdentity: true})
	defer rdb.Close()
	require.NoError(t, rdb.ConfigSet(t.Context(), name, value).Err())
}

func TestEveryPrimaryOfAClusterIsLookedAt(t *testing.T) {
	t.Parallel()
	f, c := onCluster(t)
	r := f.examine()
	require.Zero(t, r.Count(doctor.Fail), "%+v", r)
	require.Zero(t, r.Count(doctor.Skip), "%+v", r)
	require.Equal(t, 1, r.Count(doctor.Warn), "fsync is off in tests, and else nothing: %+v", r)
	require.Equal(t, "answers, 3 server(s) that take writes", found(t, r, "redis").Found)
	require.Contains(t, found(t, r, "redis memory").Found, "maxmemory is 3.0 GB", "what all have together")
	for _, n := range c.Nodes {
		require.Contains(t, found(t, r, "clocks").Found, n.Addr)
	}
}

func TestAFaultOfOnePrimaryIsFoundAndTheServerNamed(t *testing.T) {
	t.Parallel()
	f, c := onCluster(t)
	for _, n := range c.Nodes {
		nodeConf(t, n, "maxmemory-policy", "allkeys-lru")
		nodeConf(t, n, "appendonly", "no")
		nodeConf(t, n, "maxmemory", "0")
		r := f.examine()
		for check, level := range map[string]doctor.Level{"redis eviction": doctor.Fail, "redis persistence": doctor.Warn} {
			require.Equal(t, level, found(t, r, check).Level, "%s of %s", check, n.Addr)
			require.Contains(t, found(t, r, check).Found, n.Addr+": ", check)
		}
		require.Contains(t, found(t, r, "redis memory").Found, "no maxmemory", "one without a limit is enough")
		nodeConf(t, n, "maxmemory-policy", "noeviction")
		nodeConf(t, n, "appendonly", "yes")
		nodeConf(t, n, "maxmemory", "1gb")
	}
}

func TestAPrimaryThatIsGoneIsNamed(t *testing.T) {
	t.Parallel()
	f, c := onCluster(t)
	require.Zero(t, f.examine().Count(doctor.Fail))
	c.Nodes[2].Kill()
	got := found(t, f.examine(), "redis")
	require.Equal(t, doctor.Fail, got.Level, "%+v", got)
	require.Contains(t, got.Found, c.Nodes[2].Addr)
	require.Contains(t, got.Do, "start Redis")
}
