package history

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/test/harness"
)

// written is an entry as journal.lua of the faults build has written it.
const written = `{"script":"claim","time":"1764500003123457","now":"1764500003123459","argv":["ann","g1","c1","15000000"],
"reply":["OK","generation","7","lease","1764500018123457","lane",0,"words",[["a",1],[]],"empty",{}],"error":null,
"members":{"ann":{"claimed":"1764500018123457","grant":"g1 0 1764500000000001 1764500001000000 1764500021000000 1 k c1"},
"bob":{"lane":"0,2","score":"1764500000000002,1764500000000002","seen":"1764500000000009","done":"5","outcome":"LEFT g0 -"},
"cy":{"away":"17","place":"1 18"},"dan":{"processing":"19","held":"3 20 4:a b:7"},"eve":{"ready":"6"},"gone":{}},
"state":{"time":"1764500003123457","last":"1764500000000002","tat":"9","term":"4","leader":"a","seq":"7","eff":"50","tidied":"8","watermark0":"3","watermark2":"4"},
"sizes":{"waiting":1,"away":1,"processing":1,"ready":1,"claimed":1,"done":1},"generation":"7","stats":{"entered":"3","admitted0":"1"},
"conf":{"batch":"50","settings":"{\"a\":[]}"},"mode":"update"}`

func TestAnEntryOfTheJournalIsReadWhole(t *testing.T) {
	t.Parallel()
	entry := []byte(written)
	_, err := ParseStep(entry)
	require.ErrorContains(t, err, "held", "a leader is one word: a record of other words is not guessed at")

	s, err := ParseStep([]byte(replace(written, "4:a b:7", "4:a:7")))
	require.NoError(t, err)
	require.Equal(t, Step{
		Script: "claim", Mode: "update", Time: 1764500003123457, Now: 1764500003123459, Args: []string{"ann", "g1", "c1", "15000000"},
		Reply: []any{"OK", "generation", "7", "lease", "1764500018123457", "lane", int64(0), "words", []any{[]any{"a", int64(1)}, []any{}}, "empty", []any{}},
		Members: map[string]Member{
			"ann": {Claimed: 1764500018123457, Grant: &Grant{
				ID: "g1", Place: Place{0, 1764500000000001}, Issued: 1764500001000000, Expiry: 1764500021000000, Picked: true, Key: "k", Claim: "c1",
			}},
			"bob":  {Lanes: []int{0, 2}, Score: 1764500000000002, Seen: 1764500000000009, Done: 5, Outcome: &Outcome{"LEFT", "g0", ""}},
			"cy":   {Away: 17, AwayPlace: &Place{1, 18}},
			"dan":  {Processing: 19, Held: &Hold{Place{3, 20}, "4:a:7"}},
			"eve":  {Ready: 6},
			"gone": {},
		},
		State: State{
			Time: 1764500003123457, Last: 1764500000000002, Tat: 9, Term: 4, Leader: "a", Seq: 7, Eff: 50, Tidied: 8, Watermarks: [4]int64{3, 0, 4},
		},
		Sizes: Sizes{1, 1, 1, 1, 1, 1}, Stats: map[string]int64{"entered": 3, "admitted0": 1}, Generation: 7,
		Conf: map[string]string{"batch": "50", "settings": `{"a":[]}`},
	}, s)
	require.Equal(t, "OK", s.Word())
	for _, bad := range []string{"", "[]", `{"script":"enter"}`, replace(written, `"tat":"9"`, `"tat":"x"`), replace(written, "LEFT g0 -", "LEFT g0")} {
		_, err := ParseStep([]byte(bad))
		require.Error(t, err, "%s", bad)
	}
}

func TestAScriptThatFailedHasNoReply(t *testing.T) {
	t.Parallel()
	s, err := ParseStep([]byte(`{"script":"enter","now":"5","reply":null,"error":"ERR boom","members":{},"state":{},"stats":{}}`))
	require.NoError(t, err)
	require.Equal(t, "ERR boom", s.Err)
	require.Empty(t, s.Word())
}

func replace(s, old, with string) string {
	for i := range s {
		if len(s) >= i+len(old) && s[i:i+len(old)] == old {
			return s[:i] + with + s[i+len(old):]
		}
	}
	panic("not there: " + old)
}

// list is a journal on a real Redis, written by the test.
type list struct {
	*testing.T
	rdb *redis.Client
	key string
	c   *Collector
}

func newList(t *testing.T) *list {
	t.Parallel()
	prefix := uuid.NewString()
	rdb := harness.Redis(t)
	return &list{t, rdb, prefix + ":{r}:journal", NewCollector(rdb, prefix, "r")}
}

func (l *list) push(scripts ...string) {
	l.Helper()
	for _, s := range scripts {
		require.NoError(l, l.rdb.RPush(l.Context(), l.key, `{"script":"`+s+`","now":"1"}`).Err())
	}
}

func (l *list) collect() []Life {
	l.Helper()
	require.NoError(l, l.c.Collect(l.Context()))
	return l.c.Lives()
}

func scripts(l Life) []string {
	var out []string
	for _, s := range l.Steps {
		out = append(out, s.Script)
	}
	return out
}

func TestTheJournalIsCollectedWhileItGrows(t *testing.T) {
	l := newList(t)
	require.Len(t, l.collect(), 1)
	before := Now()
	l.push("a", "b")
	l.collect()
	between := Now()
	for i := range page + 5 {
		l.push("c")
		if i%500 == 0 {
			l.collect()
		}
	}
	lives := l.collect()
	require.Len(t, lives, 1)
	require.False(t, lives[0].Lost)
	steps := lives[0].Steps
	require.Len(t, steps, page+7)
	require.Equal(t, []string{"a", "b", "c"}, scripts(Life{Steps: steps[:3]}))
	require.LessOrEqual(t, steps[1].After, before, "read for the last time before it was taken")
	require.GreaterOrEqual(t, steps[1].Before, before)
	require.LessOrEqual(t, steps[1].Before, between)
	require.GreaterOrEqual(t, lives[0].Read, between)
}

func TestALongBacklogIsReadInPages(t *testing.T) {
	l := newList(t)
	l.push("a")
	l.collect()
	var many []any
	for range 2*page + 3 {
		many = append(many, `{"script":"b","now":"1"}`)
	}
	require.NoError(t, l.rdb.RPush(t.Context(), l.key, many...).Err())
	require.Len(t, l.collect()[0].Steps, 2*page+4)
}

func TestATotalLossBeginsALifeFromNothing(t *testing.T) {
	l := newList(t)
	l.push("a", "b")
	l.collect()
	require.NoError(t, l.rdb.Del(t.Context(), l.key).Err())
	lives := l.collect()
	require.Len(t, lives, 2)
	require.True(t, lives[0].Lost)
	require.True(t, lives[0].Truncated, "nobody knows what else was done")
	require.Zero(t, lives[0].Kept)
	require.Less(t, lives[0].Read, lives[0].Noticed)
	require.Empty(t, lives[1].Steps)
	l.push("c")
	require.Equal(t, []string{"c"}, scripts(l.collect()[1]))
	require.Len(t, l.collect(), 2, "noticed once")
}

func TestALossThatAGrownJournalHidesIsNoticed(t *testing.T) {
	l := newList(t)
	l.push("a", "b")
	l.collect()
	require.NoError(t, l.rdb.Del(t.Context(), l.key).Err())
	l.push("c", "d", "e")
	lives := l.collect()
	require.Equal(t, [][]string{{"a", "b"}, {"c", "d", "e"}}, [][]string{scripts(lives[0]), scripts(lives[1])})
	require.Zero(t, lives[1].Steps[0].After, "when the new life began nobody has seen")
}

func TestAPartialLossKeepsWhatBothLivesShare(t *testing.T) {
	l := newList(t)
	l.push("a", "b", "c", "d")
	l.collect()
	require.NoError(t, l.rdb.LTrim(t.Context(), l.key, 0, 1).Err())
	l.push("x", "y", "z")
	lives := l.collect()
	require.Len(t, lives, 2)
	require.Equal(t, 2, lives[0].Kept)
	require.Equal(t, []string{"a", "b", "c", "d"}, scripts(lives[0]))
	require.Equal(t, []string{"a", "b", "x", "y", "z"}, scripts(lives[1]))

	require.NoError(t, l.rdb.LTrim(t.Context(), l.key, 0, 0).Err())
	lives = l.collect()
	require.Len(t, lives, 3, "and so again, further back")
	require.Equal(t, 1, lives[1].Kept)
	require.Equal(t, []string{"a"}, scripts(lives[2]))
}

func TestCollectingGoesOnUntilItIsStoppedAndOnceMore(t *testing.T) {
	l := newList(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.c.Run(ctx) }()
	l.push("a")
	harness.Eventually(t, 10*time.Second, "the step is collected", func() bool { return len(l.c.Lives()[0].Steps) == 1 })
	l.push("b")
	stop()
	require.NoError(t, <-done)
	require.Equal(t, []string{"a", "b"}, scripts(l.c.Lives()[0]))
}

func TestStepsThatAreFedAreLivesToo(t *testing.T) {
	t.Parallel()
	c := NewCollector(nil, "p", "r")
	c.Feed(Step{Script: "a"}, Step{Script: "b"})
	c.Lose(1)
	c.Feed(Step{Script: "c"})
	lives := c.Lives()
	require.Equal(t, [][]string{{"a", "b"}, {"a", "c"}}, [][]string{scripts(lives[0]), scripts(lives[1])})
	require.False(t, lives[0].Truncated)
}
