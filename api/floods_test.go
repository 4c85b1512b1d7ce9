package api_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/room"
	"github.com/linekeeper/linekeeper/test/harness"
)

var called = regexp.MustCompile(`cmdstat_([a-z_|]+):calls=[1-9]`)

// commands are those that a Redis has run, each once.
func commands(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	text, err := rdb.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	var names []string
	for _, m := range called.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}

// A crowd that keeps no ticket makes Redis read the room now and then, and nothing
// else: it has run no command that could write.
func TestTenThousandVisitsWithoutATicketWriteNothing(t *testing.T) {
	t.Parallel()
	// What a script does is listed beside the call of the script.
	reads := []string{"config|resetstat", "evalsha", "exists", "get", "hello", "client|setinfo", "hget", "hgetall", "hmget", "info", "time",
		"zcard", "zcount", "zrange", "zrangebyscore", "zscore"}
	for name, change := range map[string]func(*room.Settings){
		"a ticket first":       func(s *room.Settings) { s.EnterNeedsTicket = true },
		"a proof of work":      func(s *room.Settings) { s.ProofOfWorkBits = 20 },
		"an outside challenge": func(s *room.Settings) { s.OutsideChallenge = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := redis.NewClient(&redis.Options{Addr: harness.RedisServer(t).Addr})
			t.Cleanup(func() { _ = own.Close() })
			f := setUp(t, settings(change), func(p *plan) { p.rdb = own })
			f.post().is(http.StatusOK) // in the form that the contract has
			before := f.dump()
			require.NoError(t, own.ConfigResetStat(t.Context()).Err())
			h := f.api.Handler()
			for range 10_000 {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, f.entries, nil))
				require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
			}
			require.Subset(t, reads, commands(t, own))
			require.Equal(t, before, f.dump(), "S5: the room keeps something of who has shown nothing")
		})
	}
}
