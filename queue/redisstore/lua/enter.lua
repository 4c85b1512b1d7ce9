-- enter.lua gives a member a place at the end of a lane, once; and, where the
-- room lets people straight in and nobody is in line, a grant in the same step.
--
-- ARGV: 1 now  2 member  3 lane  4 grant to give at once, '' for none
-- Returns: OK and the member's standing ('new' is 1 if this call made the place),
-- INIT, NOT_OPEN, CLOSED, FULL, or ORDERED (one order each, and it is placed).
--
-- Safe to repeat: whoever has a place or a grant keeps it, in the lane where it
-- is, and nothing is charged for them again.
local member, lane, grant = ARGV[2], number(3), ARGV[4] or ''
if grant ~= '' then word(4) end
local bad = unbegun()
if bad then return bad end
if lane ~= math.floor(lane) or lane < 0 or lane >= C.lanes then error('ERR no such lane') end

local g = settle(member)
come_back(member)
if g or in_line(member) or call('ZSCORE', PROC, member) then return standing(member, g) end

local c, off = fields(CONF, 'max_waiting', 'one_order'), is_off()
if not off then
  if now < G.opens_at then return reply('NOT_OPEN') end
  if G.draining == 1 or (G.closes_at > 0 and now >= G.closes_at) then return reply('CLOSED') end
end
if c.one_order == 1 and done_of(member) == 'CONSUMED' then return reply('ORDERED') end
local in_front = waiting_count() + call('ZCARD', PROC)
if in_front + (off and 0 or call('ZCARD', AWAY)) >= c.max_waiting or call('HGET', STATE, 'memory_full') == '1' then return reply('FULL') end

-- Those who are processing have been told that they wait, and may come back.
local at_once, eff = grant ~= '' and in_front == 0, nil
if at_once and not off then
  -- How fast people may go the last tick has said. Before the first nobody has.
  eff = math.min(tonumber(call('HGET', STATE, 'eff')) or 0, C.batch)
  at_once = G.direct == 1 and G.paused == 0 and not is_held() and eff >= 1 and
    allowed_by_rate(eff, 0) >= 1 and free_places(0) >= 1
end

ready_to_write({ DONE_INFO, STATS, GRANTS }, { DONE, READY })
local score = math.max(S.last + 1, now)
call('HSET', STATE, 'last', f(score))
if score > now then call('HSET', STATE, 'ahead', f(score)) end
call('ZREM', DONE, member)
call('HDEL', DONE_INFO, member)
if at_once then
  admit({ { member = member, grant = grant, lane = lane, score = score } }, off and 0 or 1, eff)
  if off then call('HINCRBY', STATS, 'passed_off', 1) end
else
  call('ZADD', LANE[lane], 'NX', f(score), member)
end
call('HINCRBY', STATS, 'entered', 1)
return standing(member, grant_of(member), '1')
