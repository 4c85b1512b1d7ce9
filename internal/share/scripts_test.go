package share_test

import (
	"crypto/rand"
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/internal/share"
	"github.com/linekeeper/linekeeper/test/harness"
)

// Also on a server that knows none of them, one of which fails.
func TestScriptsThatShareACallHaveTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	rdb := harness.Redis(t)
	run := rand.Text()
	mark := "-- " + run + "\n" // of a script that nobody has loaded
	count := redis.NewScript(mark + "return { ARGV[1], redis.call('INCR', KEYS[1]) }")
	fails := redis.NewScript(mark + "return redis.error_reply('FAILED by ' .. ARGV[1])")
	s := share.NewScripts(rdb)
	for range 2 {
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				key, arg := fmt.Sprint(run, i), fmt.Sprint("arg", i)
				said, err := s.Run(t.Context(), count, []any{key}, arg)
				if err != nil || said.([]any)[0] != arg {
					t.Errorf("%d: %v, %v", i, said, err)
				}
				if _, err = s.Run(t.Context(), fails, []any{key}, arg); !redis.HasErrorPrefix(err, "FAILED by "+arg) {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		all.Wait()
	}
	for i := range 100 {
		n, err := rdb.Get(t.Context(), fmt.Sprint(run, i)).Int()
		require.NoError(t, err)
		require.Equal(t, 2, n, "each has run once")
	}
}
