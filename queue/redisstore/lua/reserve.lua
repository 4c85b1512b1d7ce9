-- reserve.lua takes the next members out of their lanes, as many as rate and
-- capacity allow. They are processing until issue grants or refuses them, and
-- go back to their old places if nothing follows. It does not charge the rate.
-- In a room that is off it takes everybody.
--
-- ARGV: 1 now  2 generation  3 term  4 leader  5 seq  6 keep  7 effective batch  8 max
--       9 seconds by which the day of the room is ahead of UTC
--       10 product  11 its stock  12 consumed before that was read; '' each: nothing new
-- Returns: OK or MORE (call again at once) with 'taken' {member, lane, score, ...}, of
-- whom the longest-wait promise took the first 'lifts', and 'lifted' {member, ...}
-- for the first time;
-- WAIT or FULL with 'wait' in microseconds, and 'draw' while a draw is not listed;
-- STALE with 'term'; INIT; GEN.
--
-- Safe to repeat: the same seq answers with its members that still wait for issue.
local EAGER = SECOND / 50 -- how soon an eager room that is full is asked again
local bad = unbegun() or other_generation(number(2))
if bad then return bad end
local term, leader, seq, keep = number(3), word(4), number(5), number(6)
local batch, max = math.min(number(7), C.batch), number(8)
local zone = number(9) * SECOND
if batch < 1 or max < 1 or max > 500 then error('ERR batch or max out of range') end
local reading = stock_told(10)
bad = stale_step(term, leader)
if bad then return bad end

local s = fields(STATE, 'term', 'seq', 'taken_at', 'last', 'more')
if s.term == term and seq < s.seq then return reply('STALE', 'term', f(s.term)) end
local mine = f(term) .. ':' .. leader .. ':'
local step = mine .. f(seq)

local function answer(word, ...)
  return reply(word, 'version', call('HGET', CONF, 'version'), 'last', f(s.last), 'watermarks', watermarks(),
    'consumed', f(fields(STATS, 'consumed').consumed), ...)
end
if s.term == term and seq == s.seq then return answer('OK', 'taken', held_by(step, s.taken_at)) end

ready_to_write()
call('HSET', STATE, 'term', f(term), 'leader', leader, 'seq', f(seq), 'eff', f(batch), 'ticked_at', f(now))
keep_stock(reading)
if give_back_older(mine, keep) then return answer('MORE') end

-- Nobody is taken before the list of a draw is kept. It is made once places that
-- were lost have had the time to come back.
if list_awaited() then return answer('WAIT', 'wait', f(SECOND), 'draw', is_settling() and OPEN or DRAW) end

local off, hand = is_off(), by_hand()
local waiting, processing = waiting_count(), call('ZCARD', PROC)
-- What is released now is for those in line now.
if hand > 0 and waiting + processing == 0 then call('HSET', STATE, 'released_used', f(G.released)) end
if not off and (is_held() or (G.paused == 1 and hand == 0)) then return answer('WAIT', 'wait', f(SECOND)) end
if waiting == 0 then return answer('WAIT', 'wait', f(off and math.min(C.interval / 2, SECOND / 5) or C.interval / 2)) end

local allowed = waiting
if not off then
  -- Half a batch at a time keeps calls few; what one tick began, it finishes.
  local half = math.min(math.ceil(batch / 2), waiting)
  allowed = hand + (G.paused == 1 and -processing or allowed_by_rate(batch, processing))
  if allowed < ((s.more == 1 or hand > 0) and 1 or half) then
    call('HSET', STATE, 'more', '0')
    if G.paused == 1 then return answer('WAIT', 'wait', f(SECOND)) end
    local at = bucket_base() + (half + processing) * C.interval / batch
    return answer('WAIT', 'wait', f(math.max(math.ceil(at - now), 1)))
  end
  allowed = math.min(allowed, free_places(), stock_free())
  if allowed <= 0 then
    return answer('FULL', 'wait', f(sold_out() and SECOND or math.min(C.interval / 4, G.eager == 1 and EAGER or math.huge)))
  end
end

local take = walk_lanes(math.min(allowed, max), zone)
leave_lanes(take.silent)
leave_lanes(take.chosen)
record_lifts(take.lifted)
for _, e in ipairs(take.silent) do
  send_away(e.member, e.lane, tonumber(e.score))
  passed_over(e.lane)
end
local deadline = now + fields(CONF, 'processing_timeout').processing_timeout
local taken = hold(take.chosen, step, deadline)
local more = take.left and #take.chosen < allowed
call('HSET', STATE, 'taken_at', f(deadline), 'more', more and '1' or '0', 'free_step', off and step or '-')
return answer(more and 'MORE' or 'OK', 'taken', taken, 'lifts', take.lifts, 'lifted', take.lifted)
