-- reserve.lua takes the next members out of their lanes, as many as rate and
-- capacity allow. They are processing until issue grants or refuses them, and
-- go back to their old places if nothing follows. It does not charge the rate.
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

local c = fields(CONF, 'paused', 'admits_at', 'closes_at', 'draining', 'began', 'settle', 'restorable_from', 'capacity',
  'processing_timeout')
local settling = C.generation > c.restorable_from and now < c.began + c.settle
-- Nobody is taken before the list of a draw is kept. It is made once places that
-- were lost have had the time to come back.
if DRAW > 0 and DRAW < LISTED then
  return answer('WAIT', 'wait', f(SECOND), 'draw', settling and OPEN or DRAW)
end
if c.paused == 1 or now < c.admits_at or settling or (c.closes_at > 0 and now >= c.closes_at and c.draining == 0) then
  return answer('WAIT', 'wait', f(SECOND))
end

local waiting, processing = waiting_count(), call('ZCARD', PROC)
if waiting == 0 then return answer('WAIT', 'wait', f(C.interval / 2)) end
-- Half a batch at a time keeps calls few; what one tick began, it finishes.
local base, half = bucket_base(), math.min(math.ceil(batch / 2), waiting)
local allowed = math.floor((now - base) * batch / C.interval) - processing
if allowed < (s.more == 1 and 1 or half) then
  call('HSET', STATE, 'more', '0')
  local at = base + (half + processing) * C.interval / batch
  return answer('WAIT', 'wait', f(math.max(math.ceil(at - now), 1)))
end
if c.capacity > 0 then
  local inside = call('ZCOUNT', READY, '(' .. f(now), '+inf') + call('ZCARD', CLAIMED) + processing
  allowed = math.min(allowed, c.capacity - inside)
  if allowed <= 0 then return answer('FULL', 'wait', f(C.interval / 4)) end
end

local free = stock_free()
if free <= 0 then return answer('FULL', 'wait', f(sold_out() and SECOND or C.interval / 4)) end
allowed = math.min(allowed, free)

local take = walk_lanes(math.min(allowed, max), zone)
leave_lanes(take.silent)
leave_lanes(take.chosen)
record_lifts(take.lifted)
for _, e in ipairs(take.silent) do
  send_away(e.member, e.lane, tonumber(e.score))
  passed_over(e.lane)
end
local deadline = now + c.processing_timeout
local taken = hold(take.chosen, step, deadline)
local more = take.left and #take.chosen < allowed
call('HSET', STATE, 'taken_at', f(deadline), 'more', more and '1' or '0')
return answer(more and 'MORE' or 'OK', 'taken', taken, 'lifts', take.lifts, 'lifted', take.lifted)
