-- look.lua says where a member is, for an operator to see. Unlike standing it
-- hears nobody and moves nobody: to look at somebody who is away brings nobody back.
--
-- ARGV: 1 now  2 member
-- Returns: OK with 'state' and what there is of 'lane', 'score', 'rank', 'total',
-- 'since', 'expiry', 'lease', 'outcome', 'order', 'ended'; INIT. It writes nothing.
--
-- What time has decided counts as done, as in settle.
local member = ARGV[2]
local bad = unbegun()
if bad then return bad end

local function answer(state, ...) return reply('OK', 'now', f(now), 'sale', f(C.sale), 'state', state, ...) end
local function in_lane(lane, score)
  local rank = call('ZCOUNT', LANE[lane], '-inf', '(' .. f(score)) + ahead_elsewhere(lane, score)
  local others = C.one_line == 1 and waiting_count() or call('ZCARD', LANE[lane])
  local there = call('ZSCORE', LANE[lane], member) and 0 or 1
  return answer('WAITING', 'lane', lane, 'score', f(score), 'rank', rank, 'total', others + there)
end

local lane, score = in_line(member)
if lane then return in_lane(lane, score) end

lane, score = place_of(PROC_PLACE, member)
if lane and (tonumber(call('ZSCORE', PROC, member)) or 0) <= now then return in_lane(lane, score) end
if lane then return answer('PROCESSING', 'lane', lane, 'score', f(score)) end

local g = grant_of(member)
if g then
  local lease = g.claim ~= '-' and tonumber(call('ZSCORE', CLAIMED, member)) or 0
  local function held(state, ...) return answer(state, 'lane', g.lane, 'score', f(g.score), ...) end
  if lease > now then return held('CLAIMED', 'expiry', f(g.expiry), 'lease', f(lease)) end
  if g.expiry > now then return held('READY', 'expiry', f(g.expiry)) end
  if g.picked == '0' then return held('AWAY', 'since', f(g.expiry)) end
  return answer('NOT_ENTERED', 'outcome', 'EXPIRED', 'ended', f(g.expiry))
end

lane, score = place_of(AWAY_PLACE, member)
if lane then
  return answer('AWAY', 'lane', lane, 'score', f(score), 'since', f(tonumber(call('ZSCORE', AWAY, member)) or now))
end

local outcome, _, order = done_of(member)
if not outcome then return answer('NOT_ENTERED') end
local ended = tonumber(call('ZSCORE', DONE, member)) or 0
if outcome == 'CONSUMED' and now < ended + C.done_ttl then return answer('CONSUMED', 'order', order, 'ended', f(ended)) end
return answer('NOT_ENTERED', 'outcome', outcome, 'ended', f(ended))
