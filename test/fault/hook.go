package fault

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// CallFault is what happens to one call to Redis.
type CallFault string

const (
	// LoseReply runs the call and fails it with io.EOF.
	LoseReply CallFault = "lose reply"
	// FailBefore fails it as a refused connection does, and runs nothing.
	FailBefore CallFault = "fail before"
	// DelayCall waits first, at most Odds.Longest, and then runs it if its
	// context has not ended.
	DelayCall CallFault = "delay"
)

// Odds are the probabilities of each fault for one call; the rest pass.
type Odds struct {
	Lose, Fail, Delay float64
	// Longest bounds a delay.
	Longest time.Duration
}

// Hook breaks the calls of a go-redis client, by the dice or by appointment. It
// sits outside of the client's own retries: what it fails, the caller sees. (A
// Proxy breaks connections, and so below the retries.)
//
// Calls that run no script pass, unless the hook was made for the name of their
// command. A pipeline is one call, named "pipeline".
type Hook struct {
	dice, delays *Dice // apart: how long a delay is must not change what comes next

	mu    sync.Mutex
	odds  Odds
	only  map[string]bool // nil: every script
	armed map[string][]CallFault
	names map[string]string // of scripts, by hash
	done  map[CallFault]int
}

// NewHook returns a hook for the scripts (or commands) named, or for all
// scripts. Add it to a client with AddHook.
func NewHook(d *Dice, odds Odds, scripts ...string) *Hook {
	h := &Hook{dice: d, delays: d.Of("delays"), odds: odds, armed: map[string][]CallFault{}, names: map[string]string{}, done: map[CallFault]int{}}
	if len(scripts) > 0 {
		h.only = map[string]bool{}
	}
	for _, s := range scripts {
		h.only[s] = true
	}
	return h
}

// Set changes the odds.
func (h *Hook) Set(odds Odds) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.odds = odds
}

// Next has the next call of this script, or command, meet this fault, whatever
// the dice say. Appointments queue up.
func (h *Hook) Next(script string, f CallFault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armed[script] = append(h.armed[script], f)
}

// Counts is how often each fault has happened.
func (h *Hook) Counts() map[CallFault]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.done)
}

// DialHook implements redis.Hook and changes nothing.
func (h *Hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h *Hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		name, known := h.name(cmd)
		if !known {
			// The client knows the source and sends it at once.
			cmd.SetErr(redis.ErrNoScript)
			return redis.ErrNoScript
		}
		f := h.choose(name)
		var said error
		err := h.meet(ctx, f, func() error {
			said = next(ctx, cmd)
			return said
		})
		if said != nil && redis.HasErrorPrefix(said, "NOSCRIPT") {
			// The client sends the source now: it is the same call, and meets the same.
			h.put(name, f)
			err = said
		}
		if err != nil {
			cmd.SetErr(err)
		}
		return err
	}
}

// handshake are the commands that a client begins a connection with.
var handshake = []string{"hello", "auth", "select", "client", "readonly"}

// ProcessPipelineHook implements redis.Hook. Scripts that share a pipeline each
// meet their own fault; any other pipeline meets one as a whole.
func (h *Hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) > 0 && slices.Contains(handshake, cmds[0].Name()) {
			return next(ctx, cmds)
		}
		if len(cmds) > 0 && cmds[0].Name() == "evalsha" {
			one := h.ProcessHook(func(ctx context.Context, cmd redis.Cmder) error { return next(ctx, []redis.Cmder{cmd}) })
			var errs []error
			for _, c := range cmds {
				errs = append(errs, one(ctx, c))
			}
			return errors.Join(errs...)
		}
		f := h.choose("pipeline")
		err := h.meet(ctx, f, func() error { return next(ctx, cmds) })
		for _, c := range cmds {
			if err != nil && f != "" {
				c.SetErr(err)
			}
		}
		return err
	}
}

func (h *Hook) meet(ctx context.Context, f CallFault, run func() error) error {
	switch f {
	case FailBefore:
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case LoseReply:
		_ = run() // whatever it says, nobody hears it
		return io.EOF
	case DelayCall:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(h.delays.Between(0, h.longest())):
		}
	}
	return run()
}

func (h *Hook) longest() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.odds.Longest
}

// put gives back what a call should have met and has not.
func (h *Hook) put(name string, f CallFault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armed[name] = append([]CallFault{f}, h.armed[name]...)
	if f != "" {
		h.done[f]--
	}
}

// choose decides what this call meets: "" is nothing.
func (h *Hook) choose(name string) (f CallFault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() {
		if f != "" {
			h.done[f]++
		}
	}()
	if next := h.armed[name]; len(next) > 0 {
		h.armed[name] = next[1:]
		return next[0]
	}
	if h.only != nil && !h.only[name] || h.only == nil && name == "" {
		return ""
	}
	switch roll := h.dice.Float(); {
	case roll < h.odds.Lose:
		return LoseReply
	case roll < h.odds.Lose+h.odds.Fail:
		return FailBefore
	case roll < h.odds.Lose+h.odds.Fail+h.odds.Delay:
		return DelayCall
	}
	return ""
}

// header is how a script of ours says its name. Parts that scripts share stand
// before it with headers of their own, so the last one counts.
var header = regexp.MustCompile(`(?m)^-- ([a-z]+)\.lua `)

// name is the name of the script that cmd runs. It is not known where only the
// hash is there, and the source has never passed here.
func (h *Hook) name(cmd redis.Cmder) (name string, known bool) {
	args := cmd.Args()
	verb := cmd.Name()
	if len(args) < 2 || verb != "eval" && verb != "evalsha" {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.only[verb] || len(h.armed[verb]) > 0 {
			return verb, true
		}
		return "", true
	}
	text, _ := args[1].(string)
	h.mu.Lock()
	defer h.mu.Unlock()
	if verb == "evalsha" {
		name, known = h.names[text]
		return name, known
	}
	name = "script"
	if found := header.FindAllStringSubmatch(text, -1); len(found) > 0 {
		name = found[len(found)-1][1]
	}
	h.names[redis.NewScript(text).Hash()] = name
	return name, true
}
