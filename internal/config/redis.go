package config

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	redisReadTimeout = 500 * time.Millisecond
	redisDialTimeout = time.Second
	minRedisPool     = 20
	lockPool         = 4
	maxLockTimeout   = time.Second
	// clusterReload is how long a Cluster client may go on asking a node that a
	// failover has replaced; go-redis would wait a minute (redis/go-redis#3979).
	clusterReload = time.Second
)

// RedisOptions turns a setting into options for go-redis: one redis:// or
// rediss:// URL is a single server, several are the nodes of a Cluster, and
// redis-sentinel://host:port,host:port/master/db asks Sentinels for the master.
// The user and password of a Sentinel URL are those of the master; those of the
// Sentinels themselves are the parameters sentinel_username and
// sentinel_password. rediss and rediss-sentinel speak TLS, with everybody; the
// parameters sslrootcert, sslcert and sslkey name files for it. Connect with OpenRedis, which knows more than the options
// can say.
func RedisOptions(u URL) (*redis.UniversalOptions, error) {
	list, err := u.split()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errURL
	}
	o := baseOptions()
	switch {
	case list[0].scheme == "redis-sentinel" || list[0].scheme == "rediss-sentinel":
		err = sentinelOptions(o, list)
	case len(list) > 1:
		err = clusterOptions(o, list)
	default:
		err = serverOptions(o, list[0])
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// LockOptions is RedisOptions for the client that holds the scheduler's lock
// for ttl. A call that could take longer than a part of the lock's life would
// lose it, and a repeated one would count as two, so it gives up early and is
// repeated by its own loop.
func LockOptions(u URL, ttl time.Duration) (*redis.UniversalOptions, error) {
	o, err := RedisOptions(u)
	if err != nil {
		return nil, err
	}
	o.MaxRetries = -1
	o.MaxRedirects = 1 // a Cluster client repeats after a timeout, too, and counts it here
	o.ReadTimeout = maxLockTimeout
	if ttl > 0 {
		o.ReadTimeout = min(ttl/6, maxLockTimeout)
	}
	o.WriteTimeout = o.ReadTimeout
	o.DialTimeout = o.ReadTimeout
	o.PoolSize = lockPool
	return o, nil
}

// OpenRedis makes the client that the options ask for; it connects at its first
// use. The caller closes it.
func OpenRedis(o *redis.UniversalOptions) redis.UniversalClient {
	if o.MasterName == "" && len(o.Addrs) > 1 {
		cluster := o.Cluster()
		cluster.ClusterStateReloadInterval = clusterReload
		return redis.NewClusterClient(cluster)
	}
	return redis.NewUniversalClient(o)
}

// baseOptions are the same for every kind of server.
func baseOptions() *redis.UniversalOptions {
	return &redis.UniversalOptions{
		// Without it go-redis ignores the deadline of a context once a command is sent.
		ContextTimeoutEnabled: true,
		// Every script is safe to repeat, but each repeat adds to the wait of a member.
		MaxRetries:    1,
		ReadTimeout:   redisReadTimeout,
		WriteTimeout:  redisReadTimeout,
		DialTimeout:   redisDialTimeout,
		DialerRetries: 1, // the next command dials again; five tries in a row hide an outage
		// Redis answers from one thread: more connections only move the queue.
		PoolSize: max(minRedisPool, 10*runtime.GOMAXPROCS(0)),
		// Redis 7.0 has no CLIENT SETINFO, and neither Redis 7 nor Valkey the probe for
		// maintenance notifications: each connection would count two errors.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func serverOptions(o *redis.UniversalOptions, a address) error {
	if err := a.plain(); err != nil {
		return err
	}
	db, err := database(a.path)
	if err != nil {
		return err
	}
	o.Addrs, o.DB = []string{a.hostPort(0, "6379")}, db
	o.Username, o.Password = a.login()
	o.TLSConfig, err = a.tls()
	return err
}

// clusterOptions takes the login of the first node for all: go-redis has one
// for the whole Cluster, and must not send it to a node it was not meant for.
func clusterOptions(o *redis.UniversalOptions, list []address) error {
	first := list[0]
	for _, a := range list {
		if err := a.plain(); err != nil {
			return err
		}
		if db, err := database(a.path); err != nil || db != 0 {
			return errors.New("has a database, which a Cluster has none of")
		}
		if a.scheme != first.scheme || a.user.String() != first.user.String() {
			return errors.New("names nodes with different schemes or logins, which one Cluster can't have")
		}
		if len(a.query) > 0 && a.query.Encode() != first.query.Encode() {
			return errors.New("names nodes with different parameters, which one Cluster can't have; those of the first are enough")
		}
		addr := a.hostPort(0, "6379")
		if slices.Contains(o.Addrs, addr) {
			return fmt.Errorf("names %s twice", addr)
		}
		o.Addrs = append(o.Addrs, addr)
	}
	o.Username, o.Password = first.login()
	var err error
	o.TLSConfig, err = first.tls()
	return err
}

// sentinelOptions keeps the logins apart: Sentinels often have none, and a
// password sent to one that asks for none is an error.
func sentinelOptions(o *redis.UniversalOptions, list []address) error {
	a := list[0]
	if len(list) > 1 || len(a.hosts) == 0 || len(a.path) == 0 {
		return errors.New("is not one redis-sentinel://host:port,host:port/master/db")
	}
	db, err := database(a.path[1:])
	if err != nil {
		return err
	}
	if err := a.parameters("sentinel_username", "sentinel_password"); err != nil {
		return err
	}
	for i := range a.hosts {
		o.Addrs = append(o.Addrs, a.hostPort(i, "26379"))
	}
	o.MasterName, o.DB = a.path[0], db
	o.Username, o.Password = a.login()
	o.SentinelUsername, o.SentinelPassword = a.query.Get("sentinel_username"), a.query.Get("sentinel_password")
	o.TLSConfig, err = a.tls()
	return err
}

// plain wants redis:// or rediss://, one host and no parameters but those of TLS.
func (a address) plain() error {
	switch {
	case a.scheme != "redis" && a.scheme != "rediss":
		return fmt.Errorf("has scheme %q, not redis, rediss, redis-sentinel or rediss-sentinel", a.scheme)
	case len(a.hosts) != 1:
		return errors.New("has no host, or several in one URL; a Cluster is several URLs, comma-separated")
	}
	return a.parameters()
}

func (a address) hostPort(i int, port string) string {
	if _, _, err := net.SplitHostPort(a.hosts[i]); err == nil {
		return a.hosts[i]
	}
	return a.hosts[i] + ":" + port // an IPv6 address is in brackets already
}

func (a address) login() (user, password string) {
	if a.user == nil {
		return "", ""
	}
	password, _ = a.user.Password()
	return a.user.Username(), password
}

func database(path []string) (int, error) {
	if len(path) == 0 {
		return 0, nil
	}
	db, err := strconv.ParseUint(path[0], 10, 16)
	if err != nil || len(path) > 1 {
		return 0, errors.New("has a path that is not a database number")
	}
	return int(db), nil
}
