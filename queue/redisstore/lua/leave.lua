-- leave.lua takes a member out of the room: by their own wish, or an operator's.
--
-- ARGV: 1 now  2 member  3 score of the place, '' for any  4 LEFT or EVICTED
-- Returns: OK; NONE (no such place, any more); BUSY with 'wait' (an order is running).
--
-- Safe to repeat and safe when late: a member who has entered again stands at
-- another score, and keeps that place.
local member, score, outcome = ARGV[2], ARGV[3], ARGV[4]
if score ~= '' then number(3) end
if outcome ~= 'LEFT' and outcome ~= 'EVICTED' then error('ERR outcome must be LEFT or EVICTED') end
local function is_it(s) return s and (score == '' or tonumber(score) == s) end

if C.generation == 0 then return reply('NONE') end
local g = settle(member)
if g and is_it(g.score) then
  if g.claim ~= '-' then return reply('BUSY', 'wait', f(tonumber(call('ZSCORE', CLAIMED, member)) - now)) end
  ready_to_write()
  drop_grant(member)
  call('HINCRBY', STATS, 'unused', 1)
  finish(member, outcome, g.id)
  return reply('OK')
end

local lane, at = in_line(member)
local _, away_at = place_of(AWAY_PLACE, member)
local proc_lane, proc_at = place_of(PROC_PLACE, member)
if is_it(at) then
  ready_to_write()
  call('ZREM', LANE[lane], member)
  passed_over(lane)
  call('ZREM', SEEN, member)
elseif is_it(away_at) then
  ready_to_write()
  call('ZREM', AWAY, member)
  call('HDEL', AWAY_PLACE, member)
elseif is_it(proc_at) then
  ready_to_write()
  call('ZREM', PROC, member)
  call('HDEL', PROC_PLACE, member)
  passed_over(proc_lane)
else
  return reply('NONE')
end
-- Whose place goes by lot gets another score of the same key than this by entering again.
finish(member, outcome, nil, LOTS and f(at or away_at or proc_at))
return reply('OK')
