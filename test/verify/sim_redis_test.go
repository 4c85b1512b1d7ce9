//go:build faults

package verify

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// errRefused is a dial that nobody answers: nothing has been sent.
var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}

// errTimeout is an answer that did not come in time: nobody knows.
var errTimeout = &net.OpError{Op: "read", Net: "tcp", Err: errors.New("i/o timeout")}

// redisHook stands between a node and Redis.
type redisHook struct {
	node *node
	w    *world
}

var _ redis.Hook = redisHook{}

func (h redisHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		name := scripts.name(cmd.Args())
		if passing[name] {
			if h.node.crashed() || h.w.redisAway() {
				return fail(cmd, errRefused)
			}
			return next(ctx, cmd)
		}
		v := h.w.gate.pass(ctx, h.node, "redis", name)
		if v.fate == delayed && ctx.Err() != nil {
			return fail(cmd, errTimeout)
		}
		return h.carryOut(ctx, cmd, v, next)
	}
}

// passing do not stand at the gate: the first commands of a connection are sent
// on behalf of any other.
var passing = map[string]bool{"info": true, "hello": true, "client": true, "select": true}

func (h redisHook) carryOut(ctx context.Context, cmd redis.Cmder, v verdict, next redis.ProcessHook) error {
	switch v.fate {
	case notSent:
		return fail(cmd, errRefused)
	case replyLost, noAnswer:
		h.w.setTime(cmd.Args())
		_ = next(ctx, cmd)
		return fail(cmd, io.EOF)
	case twice:
		h.w.setTime(cmd.Args())
		_ = next(ctx, cmd)
	case echoed:
		h.later(cmd.Args(), v.delay)
	case late:
		h.later(cmd.Args(), v.delay)
		pause(ctx, min(v.delay/2, time.Second))
		return fail(cmd, errTimeout)
	}
	h.w.setTime(cmd.Args())
	return next(ctx, cmd)
}

// later has a command arrive at the server after its caller has given up.
func (h redisHook) later(args []any, d time.Duration) {
	args = slices.Clone(args)
	h.w.late.Go(func() {
		time.Sleep(d)
		h.w.setTime(args)
		_ = h.w.raw.Do(context.Background(), args...).Err()
	})
}

func fail(cmd redis.Cmder, err error) error {
	cmd.SetErr(err)
	return err
}

// ProcessPipelineHook has a verdict for each script that shares a pipeline, and one
// for any other pipeline as a whole: nothing that changes anything goes by one.
func (h redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if passing[scripts.name(cmds[0].Args())] {
			return next(ctx, cmds)
		}
		if cmds[0].Name() == "evalsha" {
			return h.each(ctx, cmds, next)
		}
		v := h.w.gate.pass(ctx, h.node, "redis", "pipeline")
		if v.fate == carriedOut || v.fate == delayed && ctx.Err() == nil {
			return next(ctx, cmds)
		}
		for _, c := range cmds {
			c.SetErr(errRefused)
		}
		return errRefused
	}
}

// each sends commands as if none shared a pipeline, and waits for the last.
func (h redisHook) each(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) error {
	one := h.ProcessHook(func(ctx context.Context, cmd redis.Cmder) error { return next(ctx, []redis.Cmder{cmd}) })
	errs := make([]error, len(cmds))
	var all sync.WaitGroup
	for i, cmd := range cmds {
		all.Go(func() { errs[i] = one(ctx, cmd) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// scriptNames knows scripts by their digests.
type scriptNames struct {
	mu    sync.Mutex
	known map[string]string
}

var scripts = scriptNames{known: map[string]string{}}

// title is how the file of a script begins: "-- claim.lua lets ...". The last
// one of a source is the script's own, but for the journal, which the overlay puts
// behind it; those before it are its parts.
var title = regexp.MustCompile(`(?m)^-- ([a-z]+)\.lua `)

// name says what a command is: the name of a script, or of the command.
func (s *scriptNames) name(args []any) string {
	command := strings.ToLower(fmt.Sprint(args[0]))
	if command != "evalsha" && command != "eval" || len(args) < 3 {
		return command
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	digest := fmt.Sprint(args[1])
	if command == "eval" {
		sum := sha1.Sum([]byte(digest)) // how Redis names scripts
		found := title.FindAllStringSubmatch(digest, -1)
		digest = hex.EncodeToString(sum[:])
		found = slices.DeleteFunc(found, func(part []string) bool { return part[1] == "journal" })
		if len(found) > 0 {
			s.known[digest] = found[len(found)-1][1]
		}
	}
	if name := s.known[digest]; name != "" {
		return name
	}
	return command
}

// roomKeys is the number of keys of a script that acts on a room.
const roomKeys = 19

// setTime makes a script see the clock of Redis at the moment it runs, as it
// would there, and not at the moment it was sent.
func (w *world) setTime(args []any) {
	command := strings.ToLower(fmt.Sprint(args[0]))
	if (command == "evalsha" || command == "eval") && len(args) > 3+roomKeys && fmt.Sprint(args[2]) == strconv.Itoa(roomKeys) {
		args[3+roomKeys] = strconv.FormatInt(w.redisTime().UnixMicro(), 10)
	}
}

func TestAScriptIsKnownByItsOwnTitle(t *testing.T) {
	t.Parallel()
	const src = "-- prelude.lua stands in front\n-- claim.lua lets one order\n-- journal.lua runs a script\n"
	require.Equal(t, "claim", scripts.name([]any{"eval", src, 0}))
	sum := sha1.Sum([]byte(src))
	require.Equal(t, "claim", scripts.name([]any{"evalsha", hex.EncodeToString(sum[:]), 0}))
	require.Equal(t, "zrank", scripts.name([]any{"ZRANK", "key", "member"}))
}
