package share

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Scripts runs scripts in calls that they share. Each is as atomic as ever, and
// others may run in between. In a Cluster a call goes to every server that has one
// of its scripts to run, and ends when all have answered.
type Scripts struct {
	rdb  redis.UniversalClient
	line *Line[script, result]
}

// script is one to run.
type script struct {
	*redis.Script
	keys, args []any
}

// result is what one said.
type result struct {
	value any
	err   error
}

// mostScripts is how many go with one call. It is one client's answer that has to come
// within the time that is set for writes and reads, and scripts take up to 100 us each.
const mostScripts = 256

// NewScripts returns one for the scripts of one server, on rdb.
func NewScripts(rdb redis.UniversalClient) *Scripts {
	s := &Scripts{rdb: rdb}
	s.line = NewLine(mostScripts, s.call)
	return s
}

// Run runs a script on keys, which are strings, as its own method Run does: also
// where the server doesn't know it. After an error that is none of the server's own it may have run, or may still.
func (s *Scripts) Run(ctx context.Context, sc *redis.Script, keys []any, args ...any) (any, error) {
	r, err := s.line.Ask(ctx, script{sc, keys, args})
	if err == nil {
		err = r.err
	}
	return r.value, err
}

// Waiting is how many wait for the next call.
func (s *Scripts) Waiting() int { return s.line.Waiting() }

func (s *Scripts) call(ctx context.Context, scripts []script) ([]result, error) {
	cmds := make([]*redis.Cmd, len(scripts))
	if len(scripts) == 1 {
		cmds[0] = s.rdb.Do(ctx, scripts[0].evalsha()...)
	} else {
		// What it returns is the error of one of them; each has its own.
		_, _ = s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, sc := range scripts {
				cmds[i] = p.Do(ctx, sc.evalsha()...)
			}
			return nil
		})
	}
	results := make([]result, len(scripts))
	for i, sc := range scripts {
		if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
			cmds[i] = sc.Run(ctx, s.rdb, sc.keyNames(), sc.args...) // known, once the first of them has run
		}
		results[i].value, results[i].err = cmds[i].Result()
	}
	return results, nil
}

func (sc script) evalsha() []any {
	args := make([]any, 0, 3+len(sc.keys)+len(sc.args))
	args = append(args, "evalsha", sc.Hash(), len(sc.keys))
	return append(append(args, sc.keys...), sc.args...)
}

func (sc script) keyNames() []string {
	names := make([]string, len(sc.keys))
	for i, k := range sc.keys {
		names[i] = k.(string)
	}
	return names
}
