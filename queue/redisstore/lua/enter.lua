-- enter.lua gives a member a place at the end of a lane, once.
--
-- ARGV: 1 now  2 member  3 lane
-- Returns: OK and the member's standing ('new' is 1 if this call made the place),
-- INIT, NOT_OPEN, CLOSED, SOLD_OUT, FULL, or ORDERED (one order each, and it is placed).
--
-- Safe to repeat: whoever has a place or a grant keeps it, in the lane where it is.
local member, lane = ARGV[2], number(3)
local bad = unbegun()
if bad then return bad end
if lane ~= math.floor(lane) or lane < 0 or lane >= C.lanes then error('ERR no such lane') end

local g = settle(member)
come_back(member)
if g or in_line(member) or call('ZSCORE', PROC, member) then return standing(member, g) end

local c = fields(CONF, 'opens_at', 'closes_at', 'draining', 'max_waiting', 'one_order', 'admits_at', 'overbook')
if now < c.opens_at then return reply('NOT_OPEN') end
if c.draining == 1 or (c.closes_at > 0 and now >= c.closes_at) then return reply('CLOSED') end
if c.one_order == 1 and done_of(member) == 'CONSUMED' then return reply('ORDERED') end
if c.overbook > 0 and now >= c.admits_at and sold_out() then return reply('SOLD_OUT') end
local inside = waiting_count() + call('ZCARD', PROC) + call('ZCARD', AWAY)
if inside >= c.max_waiting or call('HGET', STATE, 'memory_full') == '1' then return reply('FULL') end

ready_to_write({ DONE_INFO, STATS }, { DONE })
local score = math.max(S.last + 1, now)
local boost = boost_of(lane)
-- Boosted or not, a lane's scores only rise: who came first stays ahead in it.
if boost > 0 then score = math.max(last_in(lane) + 1, now - boost) end
call('HSET', STATE, 'last', f(math.max(S.last, score)), 'last' .. lane, f(score))
if score > now then call('HSET', STATE, 'ahead', f(score)) end
call('ZREM', DONE, member)
call('HDEL', DONE_INFO, member)
call('ZADD', LANE[lane], 'NX', f(score), member)
call('HINCRBY', STATS, 'entered', 1)
return standing(member, nil, '1')
