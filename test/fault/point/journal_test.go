//go:build faults

package point_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/linekeeper/linekeeper/queue"
	"github.com/linekeeper/linekeeper/queue/redisstore"
	"github.com/linekeeper/linekeeper/test/harness"
)

// entry is one record of the journal. Numbers that may be long are strings.
type entry struct {
	Script     string                       `json:"script"`
	Mode       string                       `json:"mode"`
	Time       string                       `json:"time"`
	Now        string                       `json:"now"`
	Argv       []string                     `json:"argv"`
	Reply      []any                        `json:"reply"`
	Error      *string                      `json:"error"`
	Members    map[string]map[string]string `json:"members"`
	State      map[string]string            `json:"state"`
	Sizes      map[string]int64             `json:"sizes"`
	Generation string                       `json:"generation"`
	Conf       map[string]string            `json:"conf"`
	Stats      map[string]string            `json:"stats"`
}

// room is one room on a real Redis, with a clock that the test moves. It keeps
// what the journal says of every member, and compares.
type room struct {
	*testing.T
	*redisstore.Store
	rdb   *redis.Client
	name  string
	clock time.Time
	life  queue.Life
	step  queue.Step
	read  int64 // entries so far
	folds map[string]map[string]string
	last  []any           // the newest reply that a script gave
	ran   map[string]bool // scripts that have written an entry
	dice  *rand.Rand
	ids   int
}

func open(t *testing.T, seed uint64) *room {
	t.Helper()
	t.Parallel()
	r := &room{
		T: t, rdb: harness.Redis(t), name: fmt.Sprintf("journal-%d", seed), clock: time.UnixMicro(1_764_500_000_123_457),
		folds: map[string]map[string]string{}, ran: map[string]bool{}, dice: rand.New(rand.NewPCG(seed, 0)),
	}
	r.rdb.AddHook(replies{r})
	r.Store = redisstore.New(r.rdb, "j", redisstore.WithClock(func() time.Time { return r.clock }))
	r.life = queue.Life{
		Room: r.name, Generation: 7, Sale: 3, RestorableFrom: 6, Version: 1, Settings: []byte(`{"a":[]}`),
		Floors: make([]int64, queue.MaxLanes), Rules: queue.Rules{
			Batch: 8, Interval: time.Second, TokenTTL: 20 * time.Second, PickupTTL: 6 * time.Second, ClaimLease: 5 * time.Second,
			ProcessingTimeout: 3 * time.Second, AwayAfter: 15 * time.Second, ForgetAfter: 40 * time.Second,
			DoneTTL: 30 * time.Second, MaxWaiting: 60, MaxInFlight: 6, Weights: []int{1, 2},
		},
	}
	r.step = queue.Step{Generation: 7, Term: 1, Leader: "a"}
	require.NoError(t, r.Create(t.Context(), r.life))
	r.compare()
	require.Positive(t, r.read, "built without the overlay: see test/fault/overlay")
	return r
}

// replies remembers what scripts answer, as it came.
type replies struct{ r *room }

func (replies) DialHook(next redis.DialHook) redis.DialHook { return next }
func (replies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h replies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if c, ok := cmd.(*redis.Cmd); ok && c.Err() == nil {
			h.r.last, _ = c.Val().([]any)
		}
		return err
	}
}

func (r *room) key(part string) string { return "j:{" + r.name + "}:" + part }

// entries are those that are new.
func (r *room) entries() []entry {
	r.Helper()
	raw := r.rdb.LRange(r.Context(), r.key("journal"), r.read, -1).Val()
	r.read += int64(len(raw))
	out := make([]entry, len(raw))
	for i, text := range raw {
		require.NoError(r, json.Unmarshal([]byte(text), &out[i]), "entry: %s", text)
	}
	return out
}

// compare folds the new entries, and holds the sum of all against the room.
func (r *room) compare() []entry {
	r.Helper()
	fresh := r.entries()
	for _, e := range fresh {
		r.ran[e.Script] = true
		if e.Mode == "create" || e.Mode == "drop" {
			clear(r.folds)
		}
		for m, at := range e.Members {
			if len(at) == 0 {
				delete(r.folds, m)
			} else {
				r.folds[m] = at
			}
		}
	}
	require.Equal(r, r.members(), r.folds, "the journal's members are not the room's, after %+v", fresh)
	if len(fresh) == 0 {
		return nil
	}
	e := fresh[len(fresh)-1]
	require.Equal(r, r.rdb.HGetAll(r.Context(), r.key("stats")).Val(), e.Stats, "stats of %+v", e)
	state := r.rdb.HGetAll(r.Context(), r.key("state")).Val()
	for name, value := range e.State {
		require.Equal(r, state[name], value, "state %s of %+v", name, e)
	}
	for _, name := range []string{"time", "last", "tat", "term", "leader", "listen_since", "watermark0"} {
		require.Equal(r, state[name], e.State[name], "state %s of %+v", name, e)
	}
	for name, n := range e.Sizes {
		require.Equal(r, r.size(name), n, "size of %s in %+v", name, e)
	}
	require.Len(r, e.Sizes, 6)
	require.Equal(r, strconv.FormatInt(r.clock.UnixMicro(), 10), e.Time)
	if e.Error == nil {
		require.Equal(r, printed(r.last), e.Reply, "reply of %+v", e)
	}
	return fresh
}

// printed is a reply as JSON has it.
func printed(reply []any) []any {
	text, err := json.Marshal(reply)
	if err != nil {
		panic(err)
	}
	var out []any
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

func (r *room) size(name string) int64 {
	if name != "waiting" {
		return r.rdb.ZCard(r.Context(), r.key(name)).Val()
	}
	var n int64
	for lane := range queue.MaxLanes {
		n += r.rdb.ZCard(r.Context(), r.key("lane"+strconv.Itoa(lane))).Val()
	}
	return n
}

// members reads from the room what the journal says of everybody in it.
func (r *room) members() map[string]map[string]string {
	r.Helper()
	out := map[string]map[string]string{}
	put := func(member, field, value string) {
		if out[member] == nil {
			out[member] = map[string]string{}
		}
		out[member][field] = value
	}
	for key, field := range map[string]string{
		"lane0": "score", "lane1": "score", "seen": "seen", "away": "away", "processing": "processing", "ready": "ready",
		"claimed": "claimed", "done": "done",
	} {
		for _, z := range r.rdb.ZRangeWithScores(r.Context(), r.key(key), 0, -1).Val() {
			put(z.Member.(string), field, strconv.FormatFloat(z.Score, 'f', 0, 64))
			if field == "score" {
				put(z.Member.(string), "lane", key[4:])
			}
		}
	}
	for key, field := range map[string]string{
		"away:place": "place", "processing:place": "held", "grants": "grant", "done:info": "outcome",
	} {
		for m, v := range r.rdb.HGetAll(r.Context(), r.key(key)).Val() {
			put(m, field, v)
		}
	}
	return out
}

func (r *room) someone() string {
	// Names that JSON and Lua could trip over are names too.
	return []string{"ann", "b\"ob", "çelik", "7", "e\\ve"}[r.dice.IntN(5)] + strconv.Itoa(r.dice.IntN(12))
}

// grant is one that somebody holds, or none.
func (r *room) grant() (queue.Grant, bool) {
	held := r.rdb.HGetAll(r.Context(), r.key("grants")).Val()
	if len(held) == 0 {
		return queue.Grant{}, false
	}
	m := slices.Sorted(maps.Keys(held))[r.dice.IntN(len(held))]
	st, err := r.Standing(r.Context(), r.name, m)
	require.NoError(r, err)
	r.compare()
	return st.Grant, st.Grant.ID != ""
}

// act makes one call, of whatever kind. Refusals are answers too.
func (r *room) act() {
	ctx, m := r.Context(), r.someone()
	switch r.dice.IntN(12) {
	case 0, 1, 2:
		_, _ = r.Enter(ctx, r.name, m, r.dice.IntN(2))
	case 3:
		_, _ = r.Standing(ctx, r.name, m)
	case 4:
		_ = r.Heard(ctx, r.name, []string{m, r.someone()})
	case 5, 6:
		r.tick()
	case 7:
		_, _ = r.Reap(ctx, r.name)
	case 8:
		_, _ = r.Leave(ctx, r.name, m, 0, queue.OutcomeLeft)
	case 9:
		_, _ = r.Restore(ctx, r.name, queue.Lost{Generation: 7, Member: m, Ticket: 6, Place: queue.Place{Score: r.clock.UnixMicro() - 5}})
	default:
		g, found := r.grant()
		if !found {
			return
		}
		r.order(g)
	}
}

func (r *room) order(g queue.Grant) {
	ctx, claim := r.Context(), fmt.Sprintf("c%d", r.dice.IntN(3))
	switch r.dice.IntN(5) {
	case 0:
		_, _ = r.PickUp(ctx, g, "k1")
	case 1, 2:
		_ = r.Claim(ctx, g, claim, 5*time.Second)
	case 3:
		_ = r.Release(ctx, g, claim)
	default:
		_, _ = r.Consume(ctx, r.name, []queue.Spent{{Member: g.Member, Grant: g.ID, Order: "o1"}, {Member: "nobody", Grant: "x", Order: "o2"}})
	}
}

func (r *room) tick() {
	r.step.Seq++
	res, err := r.Reserve(r.Context(), r.name, r.step, queue.Take{Keep: r.step.Seq, Effective: 8, Max: 5})
	require.NoError(r, err)
	r.compare()
	var ds []queue.Decision
	for _, c := range res.Taken {
		r.ids++
		ds = append(ds, queue.Decision{Member: c.Member, Grant: []string{"", fmt.Sprintf("g%d", r.ids)}[min(r.dice.IntN(6), 1)]})
	}
	if len(ds) > 0 && r.dice.IntN(5) > 0 {
		_, err = r.Issue(r.Context(), r.name, r.step, ds)
		require.NoError(r, err)
	}
}

func TestTheJournalSaysWhatTheRoomHolds(t *testing.T) {
	seen := map[string]bool{}
	t.Run("walks", func(t *testing.T) {
		for seed := range uint64(4) {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				r := open(t, seed)
				for range 500 {
					r.clock = r.clock.Add(time.Duration(r.dice.Int64N(int64(1500 * time.Millisecond))))
					r.act()
					r.compare()
				}
				require.Greater(t, r.read, int64(400), "a walk on which little happens shows little")
				t.Cleanup(func() { maps.Copy(seen, r.ran) })
			})
		}
	})
	for _, name := range []string{"enter", "standing", "heard", "reserve", "issue", "reap", "pickup", "claim", "release", "consume", "leave", "restore"} {
		require.True(t, seen[name], "script %s has written no entry", name)
	}
}
