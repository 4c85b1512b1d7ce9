-- reserve.lua takes the next members out of their lanes, as many as rate and
-- capacity allow. They are processing until issue grants or refuses them, and
-- go back to their old places if nothing follows. It does not charge the rate.
--
-- ARGV: 1 now  2 generation  3 term  4 leader  5 seq  6 keep  7 effective batch  8 max
-- Returns: OK or MORE (call again at once) with 'taken' {member, lane, score, ...};
-- WAIT or FULL with 'wait' in microseconds; STALE with 'term'; INIT; GEN.
--
-- Safe to repeat: the same seq answers with its members that still wait for issue.
local bad = unbegun() or other_generation(number(2))
if bad then return bad end
local term, leader, seq, keep = number(3), ARGV[4], number(5), number(6)
local batch, max = math.min(number(7), C.batch), number(8)
if batch < 1 or max < 1 or max > 500 then error('ERR batch or max out of range') end
bad = stale_step(term, leader)
if bad then return bad end

local s = fields(STATE, 'term', 'seq', 'taken_at', 'last', 'more')
local same_term = s.term == term
if same_term and seq < s.seq then return reply('STALE', 'term', f(s.term)) end
local mine = f(term) .. ':' .. leader .. ':'
local step = mine .. f(seq)

local function progress()
  local marks = call('HMGET', STATE, 'watermark0', 'watermark1', 'watermark2', 'watermark3')
  local out = {}
  for lane = 0, C.lanes - 1 do out[lane + 1] = marks[lane + 1] or '0' end
  return 'version', call('HGET', CONF, 'version'), 'last', f(s.last), 'watermarks', out
end

if same_term and seq == s.seq then
  local taken = {}
  for _, m in ipairs(call('ZRANGEBYSCORE', PROC, f(s.taken_at), f(s.taken_at), 'LIMIT', 0, 500)) do
    local lane, score, by = place_of(PROC_PLACE, m)
    if by == step then
      taken[#taken + 1], taken[#taken + 2], taken[#taken + 3] = m, lane, f(score)
    end
  end
  return reply('OK', 'taken', taken, progress())
end

ready_to_write()
call('HSET', STATE, 'term', f(term), 'leader', leader, 'seq', f(seq), 'eff', f(batch), 'ticked_at', f(now))

-- What other terms, and older calls of mine, have left behind goes back first.
local held, returned = call('ZRANGE', PROC, 0, 1999), 0
for _, m in ipairs(held) do
  local _, _, by = place_of(PROC_PLACE, m)
  local of_mine = by and string.sub(by, 1, #mine) == mine and tonumber(string.sub(by, #mine + 1))
  if not of_mine or of_mine < keep then
    if returned == 500 then return reply('MORE', 'taken', {}, progress()) end
    returned = returned + 1
    give_back(m)
  end
end

local c = fields(CONF, 'paused', 'admits_at', 'closes_at', 'draining', 'began', 'settle', 'restorable_from', 'capacity',
  'processing_timeout')
local settling = C.generation > c.restorable_from and now < c.began + c.settle
if c.paused == 1 or now < c.admits_at or settling or (c.closes_at > 0 and now >= c.closes_at and c.draining == 0) then
  return reply('WAIT', 'wait', f(SECOND), progress())
end

local waiting, processing = waiting_count(), call('ZCARD', PROC)
if waiting == 0 then return reply('WAIT', 'wait', f(C.interval / 2), progress()) end
-- Half a batch at a time keeps calls few; what one tick began, it finishes.
local base = bucket_base()
local allowed = math.floor((now - base) * batch / C.interval) - processing
local need = s.more == 1 and 1 or math.min(math.ceil(batch / 2), waiting)
if allowed < need then
  call('HSET', STATE, 'more', '0')
  local at = base + (math.min(math.ceil(batch / 2), waiting) + processing) * C.interval / batch
  return reply('WAIT', 'wait', f(math.max(math.ceil(at - now), 1)), progress())
end
if c.capacity > 0 then
  local inside = call('ZCOUNT', READY, '(' .. f(now), '+inf') + call('ZCARD', CLAIMED) + processing
  allowed = math.min(allowed, c.capacity - inside)
  if allowed <= 0 then return reply('FULL', 'wait', f(C.interval / 4), progress()) end
end

local take = walk_lanes(math.min(allowed, max))
leave_lanes(take.silent)
leave_lanes(take.chosen)
for _, e in ipairs(take.silent) do send_away(e.member, e.lane, tonumber(e.score)) end
local taken, deadlines, places, deadline = {}, {}, {}, f(now + c.processing_timeout)
for _, e in ipairs(take.chosen) do
  taken[#taken + 1], taken[#taken + 2], taken[#taken + 3] = e.member, e.lane, e.score
  deadlines[#deadlines + 1], deadlines[#deadlines + 2] = deadline, e.member
  places[#places + 1], places[#places + 2] = e.member, e.lane .. ' ' .. e.score .. ' ' .. step
end
many('ZADD', PROC, deadlines)
many('HSET', PROC_PLACE, places)
local more = take.left and #take.chosen < allowed
call('HSET', STATE, 'taken_at', f(now + c.processing_timeout), 'more', more and '1' or '0')
return reply(more and 'MORE' or 'OK', 'taken', taken, progress())
