-- enter.lua gives a member a place, once: at the end of a lane, or where a draw
-- that is open or a lottery puts them; and, where the room lets people straight in
-- and nobody is in line, a grant in the same step.
--
-- ARGV: 1 now  2 member  3 lane  4 sale  5 lowest score of the member's key in that
--       sale's draw or lottery, 0 if the caller has none  6 grant to give at once,
--       '' for none  7 when that was asked for, by the clock of Redis; 0 for none
-- Returns: OK and the member's standing ('new' is 1 if this call made the place),
-- INIT, NOT_OPEN, CLOSED, SOLD_OUT, FULL, ORDERED (one order each, and it is placed),
-- or GEN (the place goes by lot, and the caller has none of this sale).
--
-- Safe to repeat: whoever has a place or a grant keeps it, in the lane where it
-- is, and nothing is charged for them again. A copy that comes when that stay is
-- over gives no grant: it was asked for before.
local member, lane, sale, first, grant, asked = ARGV[2], number(3), number(4), number(5), ARGV[6], number(7)
if grant ~= '' then word(6) end
local bad = unbegun()
if bad then return bad end
if lane ~= math.floor(lane) or lane < 0 or lane >= C.lanes then error('ERR no such lane') end
if first ~= 0 and (first < BEYOND / 3 or first >= BEYOND or first % SLOTS ~= 0) then error('ERR no key begins there') end

local g = settle(member)
come_back(member)
if g or in_line(member) or call('ZSCORE', PROC, member) then return standing(member, g) end

local c = fields(CONF, 'max_waiting', 'one_order', 'overbook')
local outcome, spent, left = done_of(member)
local off = is_off()
if not off then
  if now < G.opens_at then return reply('NOT_OPEN') end
  if G.draining == 1 or (G.closes_at > 0 and now >= G.closes_at) then return reply('CLOSED') end
end
if c.one_order == 1 and outcome == 'CONSUMED' then return reply('ORDERED') end
if not off and c.overbook > 0 and now >= G.admits_at and sold_out() then return reply('SOLD_OUT') end
local in_front = waiting_count() + call('ZCARD', PROC)
if in_front + (off and 0 or call('ZCARD', AWAY)) >= c.max_waiting or call('HGET', STATE, 'memory_full') == '1' then return reply('FULL') end

-- In a lottery whoever has been let through goes behind, whatever became of the
-- grant, and stays there: one chance each.
local behind = outcome and (spent ~= '-' or (tonumber(left) or 0) >= BEYOND)
local by_lot = DRAW == OPEN or (C.lottery == 1 and not behind)
if by_lot and (first == 0 or sale ~= C.sale) then return reply('GEN') end

-- Those who are processing have been told that they wait, and may come back.
local function is_fresh() return asked >= G.began and asked > (tonumber(call('ZSCORE', DONE, member)) or 0) end
local at_once, eff = grant ~= '' and in_front == 0 and is_fresh() and not list_awaited(), nil
if at_once and not off then
  -- How fast people may go the last tick has said. Before the first nobody has.
  eff = math.min(tonumber(call('HGET', STATE, 'eff')) or 0, C.batch)
  at_once = G.direct == 1 and G.paused == 0 and not is_held() and eff >= 1 and
    allowed_by_rate(eff, 0) >= 1 and free_places() >= 1 and stock_free() >= 1
end

local score = math.max(S.last + 1, now)
local boost = boost_of(lane)
if by_lot then
  score = free_slot(first, tonumber(left) or 0)
  if not score then return reply('FULL') end
elseif LOTS then
  score = math.max(score, BEYOND)
elseif boost > 0 then
  -- Boosted or not, a lane's scores only rise: who came first stays ahead in it.
  score = math.max(last_in(lane) + 1, now - boost)
end

ready_to_write({ DONE_INFO, STATS, GRANTS }, { DONE, READY })
if not by_lot then
  call('HSET', STATE, 'last', f(math.max(S.last, score)), 'last' .. lane, f(score))
  if score > now then call('HSET', STATE, 'ahead', f(score)) end
end
call('ZREM', DONE, member)
call('HDEL', DONE_INFO, member)
if at_once then
  admit({ { member = member, grant = grant, lane = lane, score = f(score) } }, off and 0 or 1, eff)
  if off then call('HINCRBY', STATS, 'passed_off', 1) end
else
  call('ZADD', LANE[lane], 'NX', f(score), member)
end
call('HINCRBY', STATS, 'entered', 1)
return standing(member, at_once and grant_of(member) or nil, '1')
