//go:build faults

package point

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Mutant says whether the mutant of that name is alive in this process.
func Mutant(name string) bool { return env.mutant == name }

// Either is mutated if the mutant is alive, else sound.
func Either[T any](mutant string, mutated, sound T) T {
	if Mutant(mutant) {
		return mutated
	}
	return sound
}

// AppClock is the time of the node that ctx belongs to, in microseconds, for the
// mutant that believes it: given, if a test keeps the time of the room, or the
// machine's; and off by as much as the node's clock is.
func AppClock(ctx context.Context, given string) string {
	at, err := strconv.ParseInt(given, 10, 64)
	if err != nil {
		at = time.Now().UnixMicro()
	}
	return strconv.FormatInt(at+Skew(ctx).Microseconds(), 10)
}

// rewrite is one replacement in the Lua of a script.
type rewrite struct{ mutant, script, old, new string }

// rewrites are the mutants that live in Lua. old stands exactly once in the
// script as it is sent, with everything in front of it.
var rewrites = []rewrite{
	{"consume-by-member", "consume", `if held == id then`, `if held then`},

	{"release-any-claim", "release", ` or g.claim ~= ARGV[4] then`, ` then`},

	{"app-clock-score", "enter", `local score = math.max(S.last + 1, now)`, `local score = tonumber(ARGV[8])`},

	// The record goes where only the same step's issue looks for it.
	{"taken-not-kept", "reserve", `  many('ZADD', PROC, deadlines)
  many('HSET', PROC_PLACE, places)
`, `  for i = 1, #places, 2 do call('HSET', STATE, 'taken:' .. places[i], places[i + 1]) end
`},
	{"taken-not-kept", "issue", `local places = call('HMGET', PROC_PLACE, unpack(members))`, `local taken = {}
for i, m in ipairs(members) do taken[i] = 'taken:' .. m end
local places = call('HMGET', STATE, unpack(taken))
call('HDEL', STATE, unpack(taken))`},

	// The counter is right as long as every grant ends once.
	{"capacity-by-counter", "reserve", `return call('ZCOUNT', READY, '(' .. f(now), '+inf') + call('ZCARD', CLAIMED) +`,
		`return (tonumber(call('HGET', STATE, 'inside')) or 0) +`},
	{"capacity-by-counter", "issue", `many('ZADD', READY, expiries)`, `many('ZADD', READY, expiries)
call('HINCRBY', STATE, 'inside', #grants / 2)`},
	{"capacity-by-counter", "consume", `local function together(from, to)`, `local function together(from, to)
  call('HINCRBY', STATE, 'inside', -(to - from + 1) / 3)`},
	{"capacity-by-counter", "enter", expiring, counting},
	{"capacity-by-counter", "enter", `return call('ZCOUNT', READY, '(' .. f(now), '+inf') + call('ZCARD', CLAIMED) +`,
		`return (tonumber(call('HGET', STATE, 'inside')) or 0) +`},
	{"capacity-by-counter", "enter", `many('ZADD', READY, expiries)`, `many('ZADD', READY, expiries)
call('HINCRBY', STATE, 'inside', #grants / 2)`},
	{"capacity-by-counter", "restore", expiring, counting},
	{"capacity-by-counter", "standing", expiring, counting},
	{"capacity-by-counter", "pickup", expiring, counting},
	{"capacity-by-counter", "claim", expiring, counting},
	{"capacity-by-counter", "release", expiring, counting},
	{"capacity-by-counter", "leave", expiring, counting},
	{"capacity-by-counter", "reap", expiring, counting},
	{"capacity-by-counter", "leave", `  drop_grant(member)
`, `  drop_grant(member)
  call('HINCRBY', STATE, 'inside', -1)
`},

	{"issue-without-term", "issue", `bad = stale_step(term, leader)
if bad then return bad end
`, ``},
	{"issue-without-term", "issue", `  if by ~= step then`, `  if not by then`},

	{"rate-at-reserve", "reserve", `return math.floor((now - bucket_base()) * batch / C.interval) - processing`,
		`return math.floor((now - bucket_base()) * batch / C.interval)`},
	{"rate-at-reserve", "reserve", `'more', more and '1' or '0', 'free_step'`,
		`'more', more and '1' or '0', 'tat', f(math.ceil(bucket_base() + #take.chosen * C.interval / batch)), 'free_step'`},
	{"rate-at-reserve", "issue", `  if charged > 0 then call('HSET', STATE, 'tat', f(math.ceil(base + charged * C.interval / eff))) end
`, ``},

	{"poll-lengthens", "pickup", `if g.picked ~= '1' or g.key == '-' then`, `do`},
	{"poll-lengthens", "pickup", `  if g.picked ~= '1' then`, `  do`},

	// Argument 4 is the leader, who is as good as its memory.
	{"leader-budget", "reserve", `tonumber(call('HGET', STATE, 'tat')) or 0`, `tonumber(call('HGET', STATE, 'tat:' .. ARGV[4])) or 0`},
	{"leader-budget", "issue", `tonumber(call('HGET', STATE, 'tat')) or 0`, `tonumber(call('HGET', STATE, 'tat:' .. ARGV[4])) or 0`},
	{"leader-budget", "issue", `call('HSET', STATE, 'tat', `, `call('HSET', STATE, 'tat:' .. ARGV[4], `},

	{"moving-floor", "restore", `if score <= c['floor' .. lane] and not lost_token then`,
		`if score <= math.max(c['floor' .. lane], tonumber(call('HGET', STATE, 'watermark' .. lane)) or 0) and not lost_token then`},

	{"unseen-is-silent", "reserve", `return seen and math.max`, `return not seen or math.max`},

	{"claim-after-expiry", "claim", `if g.claim == '-' and g.expiry <= now then`, `if false then`},
	{"claim-after-expiry", "claim", `if now >= g.expiry then return reply('GONE') end
`, ``},

	{"two-claims", "claim", `if g.claim ~= '-' then
`, `if g.claim == claim then
`},

	{"release-renews", "release", `unclaim(member, g)`, `g.expiry = math.floor((now + fields(CONF, 'token_ttl').token_ttl) / SECOND) * SECOND
unclaim(member, g)`},

	{"leave-any-place", "leave", `return s and (score == '' or tonumber(score) == s) end`, `return s end`},

	{"restore-ended", "restore", `if done_of(member) then return reply('GONE') end
`, ``},

	{"enter-moves-back", "enter", `if g or in_line(member) or call('ZSCORE', PROC, member) then`, `if g or call('ZSCORE', PROC, member) then`},
	{"enter-moves-back", "enter", `if at_once then`, `local known = in_line(member)
if at_once then`},
	{"enter-moves-back", "enter", `call('ZADD', LANE[lane], 'NX', f(score), member)
end
call('HINCRBY', STATS, 'entered', 1)`, `call('ZADD', LANE[known or lane], f(score), member)
end
if not known then call('HINCRBY', STATS, 'entered', 1) end`},

	{"straight-in-free", "enter", `score = f(score) } }, off and 0 or 1, eff)`, `score = f(score) } }, 0, eff)`},

	{"straight-in-past-who-waits", "enter", `grant ~= '' and in_front == 0 and`, `grant ~= '' and`},

	{"release-not-spent", "issue", `  call('HINCRBY', STATE, 'released_used', hand)
`, ``},

	{"weights-ignored", "reserve", `w.stride = unit / w.weight`, `w.stride = unit`},

	// What is stored of a lane that is idle says by how much it is behind.
	{"idle-lane-credit", "reserve", `'^(%d+) (%d+)$')
    pass`, `'^(%-?%d+) (%d+)$')
    pass`},
	{"idle-lane-credit", "reserve", `math.max(w.pass - lowest, 0)`, `w.pass - lowest`},

	{"lane-by-lane", "reserve", `if C.one_line ~= 1 then return w.pass end`, `if true then return w.pass end`},

	{"lift-all", "reserve", `math.max(math.floor(n / 2), 1)`, `n`},
	{"early-admission", "reserve", `now < G.admits_at`, `false`},

	{"believed-batch", "reserve", `math.min(number(7), C.batch)`, `number(7)`},

	{"draw-not-awaited", "reserve", `if list_awaited() then return`, `if false then return`},
	{"late-lot", "enter", `local by_lot = DRAW == OPEN or`, `local by_lot = DRAW == OPEN or (DRAW > 0 and first ~= 0) or`},

	{"capacity-without-claimed", "reserve", ` + call('ZCARD', CLAIMED) + call(`, ` + call(`},
	{"capacity-without-claimed", "enter", ` + call('ZCARD', CLAIMED) + call(`, ` + call(`},

	{"stock-without-consumed", "reserve", ` - (consumed - before) - inside()`, ` - inside()`},
	{"stock-without-consumed", "enter", ` - (consumed - before) - inside()`, ` - inside()`},
}

// A grant that expires is taken off the counter of capacity-by-counter.
const (
	expiring = `local function expire(m, g)
  drop_grant(m)
`
	counting = expiring + `  call('HINCRBY', STATE, 'inside', -1)
`
)

// mutate is src with the rewrites of the mutant that is alive. It panics where
// one no longer fits: a mutant that changes nothing would be taken for one that
// the checker has missed.
func mutate(mutant, name, src string) string {
	for _, r := range rewrites {
		if r.script != name || r.mutant != mutant {
			continue
		}
		if n := strings.Count(src, r.old); n != 1 {
			panic(fmt.Sprintf("point: mutant %s: its text stands %d times in %s.lua, not once:\n%s", r.mutant, n, name, r.old))
		}
		src = strings.Replace(src, r.old, r.new, 1)
	}
	return src
}
