-- restore.lua puts a member back to a place that a ticket proves and that the
-- loss of Redis data has taken.
--
-- ARGV: 1 now  2 generation  3 member  4 generation of the ticket  5 lane  6 score
--       7 highest score Postgres knows to be admitted in the lane  8 lost token: 1 or 0
--       9 when the ticket was issued
-- Returns: OK with the standing ('new' is 1 if this call restored the place, and
-- 'passed' too if others behind it have been let through meanwhile); GONE (the
-- place has been used, given up, or is too old); INIT; GEN.
--
-- Safe to repeat: a member who is known anywhere is left where they are, and
-- an outcome in this generation ends every older ticket.
local bad = unbegun() or other_generation(number(2))
if bad then return bad end
local member, of, lane, score = ARGV[3], number(4), number(5), number(6)
local floor_pg, lost_token, issued = number(7), ARGV[8] == '1', number(9)
if lane ~= math.floor(lane) or lane < 0 or lane >= C.lanes then error('ERR no such lane') end

local g = settle(member)
come_back(member)
if g or in_line(member) or call('ZSCORE', PROC, member) then return standing(member, g) end
if done_of(member) then return reply('GONE') end
-- Entering a lottery again gives the same place, and scores do not tell who was
-- let through.
local by_lot = LOTS and score < BEYOND
if by_lot and C.lottery == 1 then return reply('GONE') end

local c = fields(CONF, 'restorable_from', 'began', 'forget_after', 'floor' .. lane)
local s = fields(STATE, 'tidied', 'ahead', 'watermark' .. lane)
local mark = s['watermark' .. lane]
if of < c.restorable_from or of > C.generation then return reply('GONE') end
if of < C.generation then
  -- The floor, unlike a watermark, does not move while people come back.
  if now >= c.began + c.forget_after then return reply('GONE') end
  if score <= c['floor' .. lane] and not lost_token then return reply('GONE') end
else
  -- A place as old as outcomes that have been forgotten may have ended like them.
  -- It was there when its ticket was issued; a drawn or boosted score says no time.
  if score <= math.max(mark, floor_pg) or math.max(score, issued) <= s.tidied then return reply('GONE') end
end

if by_lot and call('ZCOUNT', LANE[lane], f(score), f(score)) > 0 then score = free_slot(score - score % SLOTS, score) end
if not score then return reply('GONE') end
ready_to_write()
if not by_lot then
  call('HSET', STATE, 'last', f(math.max(S.last, score)), 'last' .. lane, f(math.max(last_in(lane), score)))
  if score > now then call('HSET', STATE, 'ahead', f(math.max(s.ahead, score))) end
end
call('ZADD', LANE[lane], 'NX', f(score), member)
call('HINCRBY', STATS, 'entered', 1)
call('HINCRBY', STATS, 'restored', 1)
-- Whoever comes back late comes back behind people who have been let through.
local passed = score < mark and '1' or '0'
if passed == '1' then call('HINCRBY', STATS, 'passed', 1) end
local answer = standing(member, nil, '1')
answer[#answer + 1], answer[#answer + 2] = 'passed', passed
return answer
