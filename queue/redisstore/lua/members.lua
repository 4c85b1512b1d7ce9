-- members.lua stands between the prelude and the scripts that move members:
-- places, grants, outcomes, and what time has decided about them.

local function finish(m, outcome, grant, order)
  call('ZADD', DONE, f(now), m)
  call('HSET', DONE_INFO, m, outcome .. ' ' .. (grant or '-') .. ' ' .. (order or '-'))
  call('HINCRBY', STATS, string.lower(outcome), 1)
end

-- done_of is the last outcome of m: outcome, grant, order; where a place that goes by
-- lot was given up, its score for an order.
local function done_of(m)
  local raw = call('HGET', DONE_INFO, m)
  if not raw then return nil end
  return string.match(raw, '^(%S+) (%S+) (%S+)$')
end

-- A place is 'lane score', with the step that took it where it is processing.
local function place_of(key, m)
  local lane, score, step = string.match(call('HGET', key, m) or '', '^(%d) (%d+) ?(%S*)$')
  return tonumber(lane), tonumber(score), step
end

local function send_away(m, lane, score)
  call('ZADD', AWAY, f(now), m)
  call('HSET', AWAY_PLACE, m, lane .. ' ' .. f(score))
end

-- passed_over counts who stood in a lane and is there no more, without a grant.
local function passed_over(lane) call('HINCRBY', STATS, 'gone' .. lane, 1) end

-- come_back takes a member who was AWAY to the old place, as heard.
local function come_back(m)
  if not call('ZSCORE', AWAY, m) then return end
  ready_to_write()
  local lane, score = place_of(AWAY_PLACE, m)
  call('ZREM', AWAY, m)
  call('HDEL', AWAY_PLACE, m)
  if not lane then return finish(m, 'FORGOTTEN') end
  call('ZADD', LANE[lane], 'NX', f(score), m)
  call('ZADD', SEEN, f(now), m)
  call('HINCRBY', STATS, 'back' .. lane, 1)
end

-- give_back returns a processing member to the old place.
local function give_back(m)
  local lane, score = place_of(PROC_PLACE, m)
  call('ZREM', PROC, m)
  call('HDEL', PROC_PLACE, m)
  if not lane then return finish(m, 'FORGOTTEN') end
  call('ZADD', LANE[lane], 'NX', f(score), m)
end

-- A grant record is 'id lane score issued expiry picked key claim', with '-'
-- for a key or claim that is not there.
local function grant_of(m)
  local raw = call('HGET', GRANTS, m)
  if not raw then return nil end
  local g = {}
  g.id, g.lane, g.score, g.issued, g.expiry, g.picked, g.key, g.claim =
    string.match(raw, '^(%S+) (%d) (%d+) (%d+) (%d+) ([01]) (%S+) (%S+)$')
  if not g.id then error('ERR malformed grant of a member') end
  g.lane, g.score, g.issued, g.expiry = tonumber(g.lane), tonumber(g.score), tonumber(g.issued), tonumber(g.expiry)
  return g
end

local function put_grant(m, g)
  call('HSET', GRANTS, m, table.concat({ g.id, g.lane, f(g.score), f(g.issued), f(g.expiry), g.picked, g.key, g.claim }, ' '))
end

local function drop_grant(m)
  call('ZREM', READY, m)
  call('ZREM', CLAIMED, m)
  call('HDEL', GRANTS, m)
end

-- unclaim ends a claim; the grant keeps its expiry.
local function unclaim(m, g)
  g.claim = '-'
  put_grant(m, g)
  call('ZREM', CLAIMED, m)
  call('ZADD', READY, f(g.expiry), m)
end

-- expire ends a grant that is over. One that nobody fetched costs its member
-- nothing but the turn: the old place waits.
local function expire(m, g)
  drop_grant(m)
  call('HINCRBY', STATS, 'unused', 1)
  if g.picked == '1' then return finish(m, 'EXPIRED', g.id) end
  send_away(m, g.lane, g.score)
end

-- settle does to one member what time has decided already, so that no answer
-- depends on how lately reap ran. It returns the grant that the member holds.
local function settle(m)
  local deadline = tonumber(call('ZSCORE', PROC, m))
  if deadline and deadline <= now then
    ready_to_write()
    give_back(m)
  end
  local g = grant_of(m)
  if not g then return nil end
  if g.claim ~= '-' and (tonumber(call('ZSCORE', CLAIMED, m)) or 0) <= now then
    ready_to_write()
    unclaim(m, g)
  end
  if g.claim == '-' and g.expiry <= now then
    ready_to_write()
    expire(m, g)
    return nil
  end
  return g
end

-- in_line finds m in a lane: lane and score.
local function in_line(m)
  for lane = 0, C.lanes - 1 do
    local score = call('ZSCORE', LANE[lane], m)
    if score then return lane, tonumber(score) end
  end
end

-- free_slot finds a score of the key that begins at first where nobody stands;
-- nil if there is none, which needs 64 members of one key. It begins behind left,
-- a score that the member had: so no late copy of giving that up finds the new one.
local function free_slot(first, left)
  local from = left >= first and left < first + SLOTS and left + 1 - first or 0
  for i = 0, SLOTS - 1 do
    local score, taken = first + (from + i) % SLOTS, 0
    for lane = 0, C.lanes - 1 do taken = taken + call('ZCOUNT', LANE[lane], f(score), f(score)) end
    if taken == 0 then return score end
  end
end

-- waiting_count is how many stand in the lanes.
local function waiting_count()
  local n = 0
  for lane = 0, C.lanes - 1 do n = n + call('ZCARD', LANE[lane]) end
  return n
end

-- last_in is the highest score given in a lane. Where none is recorded, since the
-- generation began with a program that did not, it is that of the room.
local function last_in(lane)
  return tonumber(call('HGET', STATE, 'last' .. lane)) or S.last
end

-- boost_of is by how much earlier than now those of a lane stand who enter.
local function boost_of(lane)
  return C.one_line == 1 and tonumber(call('HGET', CONF, 'boost' .. lane)) or 0
end

-- rank_of says how many stand ahead of m and how many stand in line with m: in the
-- lane, or in all lanes where they are one line. The third is the rank in the
-- lane, always.
local function rank_of(m, lane, score)
  local rank = call('ZRANK', LANE[lane], m)
  if C.one_line ~= 1 then return rank, call('ZCARD', LANE[lane]), rank end
  return rank + ahead_elsewhere(lane, score), waiting_count(), rank
end

-- was_lifted tells whether the longest-wait promise has taken the member out of
-- the place with that score. Lifts of earlier stays are older than it.
local function was_lifted(m, score)
  local at = call('ZSCORE', LIFTED, m)
  return at and tonumber(at) >= score and '1' or '0'
end

-- standing says where m is, after settle. g is what settle returned.
local function standing(m, g, is_new)
  local common = { 'sale', f(C.sale), 'now', f(now), 'new', is_new or '0' }
  local function answer(status, ...)
    local r = reply('OK', 'status', status, ...)
    for _, v in ipairs(common) do r[#r + 1] = v end
    return r
  end
  local lane, score = in_line(m)
  if lane then
    local rank, total, in_lane = rank_of(m, lane, score)
    return answer('WAITING', 'lane', lane, 'score', f(score), 'rank', rank, 'total', total, 'in_lane', in_lane)
  end
  lane, score = place_of(PROC_PLACE, m)
  if lane then
    local total = C.one_line == 1 and waiting_count() or call('ZCARD', LANE[lane])
    return answer('WAITING', 'lane', lane, 'score', f(score), 'rank', 0, 'total', total + 1, 'lifted', was_lifted(m, score))
  end
  if g then
    return answer(g.claim == '-' and 'READY' or 'CLAIMED', 'lane', g.lane, 'score', f(g.score), 'grant', g.id,
      'issued', f(g.issued), 'expiry', f(g.expiry), 'picked', g.picked, 'key', g.key, 'lifted', was_lifted(m, g.score))
  end
  local outcome, _, order = done_of(m)
  if not outcome then return answer('NOT_ENTERED') end
  local ended = tonumber(call('ZSCORE', DONE, m)) or 0
  if outcome == 'CONSUMED' and now < ended + C.done_ttl then return answer('CONSUMED', 'order', order, 'ended', f(ended)) end
  return answer('NOT_ENTERED', 'outcome', outcome, 'ended', f(ended))
end
