package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/linekeeper/linekeeper/internal/devstack"
)

// Redis is a server to be broken. Its methods speak to it directly, past any
// Proxy.
type Redis struct {
	Server *devstack.Proc
	client *redis.Client
}

// NewRedis breaks a server. The caller closes both.
func NewRedis(p *devstack.Proc) *Redis {
	return &Redis{p, redis.NewClient(&redis.Options{
		Addr: p.Addr, ContextTimeoutEnabled: true, ReadTimeout: 2 * time.Second, MaxRetries: -1, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})}
}

// Client speaks to the server directly.
func (r *Redis) Client() *redis.Client { return r.client }

// Close closes the client.
func (r *Redis) Close() { _ = r.client.Close() }

// Kill ends the server with SIGKILL. What its append-only file has, if it keeps
// one, is what Start finds.
func (r *Redis) Kill() { r.Server.Kill() }

// Start starts it again, and returns when it has loaded its data.
func (r *Redis) Start() error { return r.Server.Start() }

// PowerCut ends the server, when d has passed, and takes away what it has
// written to its append-only file since: what a power failure does to a file that
// is put to disk once a second. Start finds the room as it was.
func (r *Redis) PowerCut(ctx context.Context, d time.Duration) error {
	files, err := filepath.Glob(filepath.Join(r.Server.Dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("power cut: not one append-only file but %v (%v)", files, err)
	}
	st, err := os.Stat(files[0])
	if err != nil {
		return fmt.Errorf("power cut: %w", err)
	}
	sleepUntil(ctx, time.Now().Add(d))
	r.Kill()
	if err := os.Truncate(files[0], st.Size()); err != nil {
		return fmt.Errorf("power cut: %w", err)
	}
	return nil
}

// ForgetScripts empties the script cache.
func (r *Redis) ForgetScripts(ctx context.Context) error {
	return r.insist(ctx, "forget scripts", func() error { return r.client.ScriptFlush(ctx).Err() })
}

// FlushAll removes every key, as an operator's mistake would.
func (r *Redis) FlushAll(ctx context.Context) error {
	return r.insist(ctx, "flush all", func() error { return r.client.FlushAll(ctx).Err() })
}

// RollBack takes something off a counter, as a failover can.
func (r *Redis) RollBack(ctx context.Context, counter string, by int64) error {
	return r.insist(ctx, "roll back a counter of", func() error { return r.client.DecrBy(ctx, counter, by).Err() })
}

// Fill sets maxmemory below what is in use: the server refuses what would grow.
func (r *Redis) Fill(ctx context.Context) error {
	used, err := r.used(ctx)
	if err != nil {
		return err
	}
	return r.limit(ctx, max(1, used/2))
}

// Crowd sets maxmemory so that so many per cent of it are in use.
func (r *Redis) Crowd(ctx context.Context, percent int64) error {
	used, err := r.used(ctx)
	if err != nil {
		return err
	}
	return r.limit(ctx, used*100/percent)
}

// Drain takes the limit away.
func (r *Redis) Drain(ctx context.Context) error { return r.limit(ctx, 0) }

func (r *Redis) limit(ctx context.Context, bytes int64) error {
	return r.insist(ctx, "set maxmemory", func() error { return r.client.ConfigSet(ctx, "maxmemory", strconv.FormatInt(bytes, 10)).Err() })
}

func (r *Redis) used(ctx context.Context) (int64, error) {
	var info string
	err := r.insist(ctx, "ask for the memory of", func() (err error) {
		info, err = r.client.Info(ctx, "memory").Result()
		return err
	})
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			return strconv.ParseInt(v, 10, 64)
		}
	}
	return 0, errors.New("INFO has no used_memory")
}

// Demote makes the server a replica of one that is not there: it keeps its data,
// answers reads and refuses writes, as an old primary does after a failover.
func (r *Redis) Demote(ctx context.Context) error {
	return r.insist(ctx, "demote", func() error { return r.client.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err() })
}

// Promote ends Demote.
func (r *Redis) Promote(ctx context.Context) error {
	return r.insist(ctx, "promote", func() error { return r.client.Do(ctx, "REPLICAOF", "NO", "ONE").Err() })
}

// PauseClients has the server answer nobody for so long, or nobody who writes
// for so long or until ResumeClients. (A pause for all is one for whoever would
// end it, too.)
func (r *Redis) PauseClients(ctx context.Context, d time.Duration, writesOnly bool) error {
	mode := "ALL"
	if writesOnly {
		mode = "WRITE"
	}
	return r.insist(ctx, "pause clients", func() error { return r.client.Do(ctx, "CLIENT", "PAUSE", d.Milliseconds(), mode).Err() })
}

// ResumeClients ends a pause for those who write.
func (r *Redis) ResumeClients(ctx context.Context) error {
	return r.insist(ctx, "resume clients", func() error { return r.client.Do(ctx, "CLIENT", "UNPAUSE").Err() })
}

// DropClients closes the connections of everybody else.
func (r *Redis) DropClients(ctx context.Context) error {
	return r.insist(ctx, "drop clients", func() error { return r.client.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err() })
}

// patience is how long a server that is coming back is waited for. The client
// itself goes on refusing for a second after an outage.
const patience = 5 * time.Second

// insist does something to the server. Where it can't be reached it is tried
// again: a fault that has just been mended must not spoil the next.
func (r *Redis) insist(ctx context.Context, what string, do func() error) error {
	for until := time.Now().Add(patience); ; {
		err := do()
		var op *net.OpError
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &op) || op.Op != "dial" || time.Now().After(until) || !sleepUntil(ctx, time.Now().Add(50*time.Millisecond)):
			return fmt.Errorf("%s redis %s: %w", what, r.Server.Addr, err)
		}
	}
}
