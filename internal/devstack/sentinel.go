package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MasterName is what the Sentinels of a SentinelGroup call the primary.
const MasterName = "main"

// groupWithin is how long a group or a Cluster may take until its servers know
// each other: two to three seconds, where the machine has nothing else to do.
const groupWithin = 60 * time.Second

// SentinelGroup is a primary with two replicas, and three Sentinels that make
// one of these the primary when the old one is silent.
//
// The servers are told apart by their ports alone. One that is started again
// after Kill starts as what it was at first, as a host does that comes back with
// its old configuration, until the Sentinels have told it otherwise.
type SentinelGroup struct {
	Servers   []*Proc // the first is the primary to begin with
	Sentinels []*Proc
}

// StartSentinelGroup starts a throw-away group and returns when all of it is
// connected: each replica follows, and each Sentinel knows every other. A
// primary that is silent for downAfter is replaced.
func StartSentinelGroup(ctx context.Context, downAfter time.Duration) (*SentinelGroup, error) {
	g := &SentinelGroup{}
	if err := g.start(ctx, downAfter); err != nil {
		g.Close()
		return nil, fmt.Errorf("start a sentinel group: %w", err)
	}
	return g, nil
}

func (g *SentinelGroup) start(ctx context.Context, downAfter time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(ctx, groupWithin)
	defer cancel()
	primary, err := StartRedis(ctx, Options{Args: followerArgs})
	if err != nil {
		return err
	}
	g.Servers = []*Proc{primary}
	if err := modern(ctx, primary); err != nil {
		return err
	}
	follow := append([]string{"--replicaof", "127.0.0.1", strconv.Itoa(primary.Port)}, followerArgs...)
	replicas, err := startMany(2, func() (*Proc, error) { return StartRedis(ctx, Options{Args: follow}) })
	g.Servers = append(g.Servers, replicas...)
	if err != nil {
		return err
	}
	// Sentinels ask a primary for its replicas when they start, and then rarely.
	if err := followed(ctx, primary, len(replicas)); err != nil {
		return err
	}
	if g.Sentinels, err = startMany(3, func() (*Proc, error) { return startSentinel(ctx, primary.Port, downAfter) }); err != nil {
		return err
	}
	for _, s := range g.Sentinels {
		if err := acquainted(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// follower is the user that replicas log in as on their primary. Without one of
// their own Detach could not tell them from everybody else.
const follower = "follower"

// followerArgs make the user, and have a server log in as it when it follows.
// A password must be given for that, though any will do. What is written while a
// replica gets its first copy is sent at once, and not a second later.
var followerArgs = []string{
	"--user", follower, "on", "nopass", "~*", "&*", "+@all", "--masteruser", follower, "--masterauth", "any",
	"--repl-diskless-sync", "no",
}

// Detach keeps what is written to a primary from now on from its replicas, as
// replication that lags does: it is acknowledged, and lost when one of them
// becomes the primary. Nobody else notices anything. What was written before the
// call is not lost.
func Detach(ctx context.Context, primary *Proc) error {
	if err := copied(ctx, primary); err != nil {
		return err
	}
	if _, err := ask(ctx, primary.Addr, "ACL DELUSER "+follower); err != nil {
		return err
	}
	return until(ctx, func() error { return has(ctx, primary, "INFO replication", "connected_slaves:0") })
}

// followed waits until a primary has sent its data to that many replicas.
func followed(ctx context.Context, primary *Proc, replicas int) error {
	return until(ctx, func() error {
		info, err := ask(ctx, primary.Addr, "INFO replication")
		if err == nil && bytes.Count(info, []byte("state=online")) < replicas {
			err = fmt.Errorf("a replica of %s is missing", primary.Addr)
		}
		return err
	})
}

// copied waits until the replicas of a primary have what it has now.
func copied(ctx context.Context, primary *Proc) error {
	var written int
	return until(ctx, func() error {
		info, err := ask(ctx, primary.Addr, "INFO replication")
		if err != nil {
			return err
		}
		if written == 0 {
			written = number(info, "master_repl_offset:")
		}
		for rest := info; ; {
			_, replica, more := bytes.Cut(rest, []byte("state=online,"))
			if !more {
				return nil
			}
			if number(replica, "offset=") < written {
				return fmt.Errorf("a replica of %s is behind", primary.Addr)
			}
			rest = replica
		}
	})
}

// number is what follows a name in a reply; -1 where nothing does.
func number(reply []byte, name string) int {
	_, rest, _ := bytes.Cut(reply, []byte(name))
	digits := len(rest) - len(bytes.TrimLeft(rest, "0123456789"))
	n, err := strconv.Atoi(string(rest[:digits]))
	if err != nil {
		return -1
	}
	return n
}

// startSentinel starts a Sentinel that watches the primary on a port.
func startSentinel(ctx context.Context, primary int, downAfter time.Duration) (*Proc, error) {
	p, err := newRedis(Options{})
	if err != nil {
		return nil, err
	}
	// It writes to this file what it has learnt, and reads it at the next start.
	conf := filepath.Join(p.Dir, "sentinel.conf")
	if err := os.WriteFile(conf, sentinelConf(primary, downAfter), 0o644); err != nil {
		p.Close()
		return nil, err
	}
	err = p.launch(ctx, 0, func(port int) []string {
		return []string{conf, "--sentinel", "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", p.Dir}
	})
	if err != nil {
		return nil, err
	}
	// Made for hosts far apart, Sentinel tells the others of itself every two
	// seconds, and trusts nobody for thirty after its own process has stood still
	// for two. On one loaded machine the one is slow and the other happens.
	_, err = ask(ctx, p.Addr, "SENTINEL DEBUG info-period 1000 publish-period 200 ask-period 200 tilt-period 1000")
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// sentinelConf gives a failover that came to nothing three times downAfter, and
// three seconds at least, before the next is tried.
func sentinelConf(primary int, downAfter time.Duration) []byte {
	return fmt.Appendf(nil, "sentinel monitor %[1]s 127.0.0.1 %[2]d 2\n"+
		"sentinel down-after-milliseconds %[1]s %[3]d\n"+
		"sentinel failover-timeout %[1]s %[4]d\n"+
		"sentinel parallel-syncs %[1]s 2\n",
		MasterName, primary, downAfter.Milliseconds(), max(3*downAfter, 3*time.Second).Milliseconds())
}

// acquainted waits until a Sentinel knows all the others and both replicas.
func acquainted(ctx context.Context, sentinel *Proc) error {
	return until(ctx, func() error {
		return has(ctx, sentinel, "SENTINEL MASTER "+MasterName, "num-slaves\r\n$1\r\n2\r\n", "num-other-sentinels\r\n$1\r\n2\r\n")
	})
}

// Primary is the server that the Sentinels name as the primary. After a failover
// that is the old one until another has been promoted.
func (g *SentinelGroup) Primary(ctx context.Context) (*Proc, error) {
	for _, s := range g.Sentinels {
		reply, err := ask(ctx, s.Addr, "SENTINEL GET-MASTER-ADDR-BY-NAME "+MasterName)
		if err != nil {
			continue // the others know as well
		}
		for _, p := range g.Servers {
			if bytes.Contains(reply, fmt.Appendf(nil, "\r\n%d\r\n", p.Port)) {
				return p, nil
			}
		}
	}
	return nil, errors.New("no sentinel knows the primary")
}

// Failover has a Sentinel replace a primary that lives, and returns when it has
// begun to.
func (g *SentinelGroup) Failover(ctx context.Context) error {
	_, err := ask(ctx, g.Sentinels[0].Addr, "SENTINEL FAILOVER "+MasterName)
	return err
}

// URL names the group as LINEKEEPER_REDIS_URL does.
func (g *SentinelGroup) URL() string {
	addrs := make([]string, len(g.Sentinels))
	for i, s := range g.Sentinels {
		addrs[i] = s.Addr
	}
	return "redis-sentinel://" + strings.Join(addrs, ",") + "/" + MasterName + "/0"
}

// Close ends all of the group.
func (g *SentinelGroup) Close() { closeAll(append(g.Sentinels, g.Servers...)) }

// startMany starts n servers at once. Beside an error it returns those that run.
func startMany(n int, start func() (*Proc, error)) ([]*Proc, error) {
	procs, errs := make([]*Proc, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { procs[i], errs[i] = start() })
	}
	wg.Wait()
	var running []*Proc
	for _, p := range procs {
		if p != nil {
			running = append(running, p)
		}
	}
	return running, errors.Join(errs...)
}

func closeAll(procs []*Proc) {
	var wg sync.WaitGroup
	for _, p := range procs {
		wg.Go(p.Close)
	}
	wg.Wait()
}

// modern refuses a server without what groups are made with. The error wraps
// ErrMissing: what would serve is not installed.
func modern(ctx context.Context, p *Proc) error {
	info, err := ask(ctx, p.Addr, "INFO server")
	if err != nil {
		return err
	}
	if major := number(info, "redis_version:"); major < 7 {
		return fmt.Errorf("redis-server 7.0 (this is %d): %w", major, ErrMissing)
	}
	return nil
}

// has is nil once the reply to a command holds all that is wanted.
func has(ctx context.Context, p *Proc, command string, wanted ...string) error {
	reply, err := ask(ctx, p.Addr, command)
	if err != nil {
		return err
	}
	for _, w := range wanted {
		if !bytes.Contains(reply, []byte(w)) {
			return fmt.Errorf("%s on %s does not say %q but %q", command, p.Addr, w, reply)
		}
	}
	return nil
}

// until asks again until f is satisfied or ctx ends.
func until(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil {
			return nil
		}
		pause(ctx, 10*time.Millisecond)
		if ctx.Err() != nil {
			return err
		}
	}
}
