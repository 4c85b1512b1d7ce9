-- upkeep.lua stands before reap: the parts of it that are not a plain deadline.

local LONGEST_POLL = 30 * SECOND -- queue.LongestPoll

-- horizon is how far from the front of a lane absence matters: those who could
-- be served before it would be noticed.
local function horizon()
  local n = math.floor(C.batch / C.interval * (C.away_after + 2 * LONGEST_POLL))
  return math.min(math.max(n, 1000), 100000)
end

-- looks is how many members a call looks at, so that everybody before the horizon is
-- met in an eighth of the time after which silence counts: reap comes with every
-- tick, within bounds. Where lanes are long, it is 500 at most of all but the first.
local MOST_LOOKS = 2000
local function looks(bound)
  local every = math.min(math.max(C.interval, SECOND / 5), SECOND)
  return math.min(math.max(math.ceil(8 * bound * every / C.away_after), 100), MOST_LOOKS)
end

-- listen walks on through the fronts of the lanes: it starts to listen for those it
-- meets for the first time, and sends away the silent. Returns how many went away,
-- max at most.
local function listen(since, max)
  local away, looked, bound, stamp = 0, 0, horizon(), f(now)
  local most = looks(bound)
  for lane = 0, C.lanes - 1 do
    local cursor = 'cursor' .. lane
    local from = tonumber(call('HGET', STATE, cursor)) or 0
    repeat
      local size = math.min(looked < most and most - looked or most, 500)
      local members = call('ZRANGEBYSCORE', LANE[lane], '(' .. f(from), '+inf', 'LIMIT', 0, size)
      local within = #members > 0 and bound - call('ZRANK', LANE[lane], members[1]) or 0
      if within <= 0 then
        from = 0
        break
      end
      -- Nobody behind the bound: of them no heartbeats are sent.
      for i = #members, within + 1, -1 do members[i] = nil end
      from = tonumber(call('ZSCORE', LANE[lane], members[#members]))
      local seen, met = call('ZMSCORE', SEEN, unpack(members)), {}
      for i, m in ipairs(members) do
        if not seen[i] then
          met[#met + 1], met[#met + 2] = stamp, m
        elseif away < max and not list_awaited() and is_silent(seen[i], since) then
          local score = tonumber(call('ZSCORE', LANE[lane], m))
          call('ZREM', LANE[lane], m)
          call('ZREM', SEEN, m)
          send_away(m, lane, score)
          passed_over(lane)
          away = away + 1
        end
      end
      many('ZADD', SEEN, met)
      looked = looked + #members
    until looked >= most
    call('HSET', STATE, cursor, f(from))
  end
  return away
end

-- tidy forgets outcomes that are old enough, and walks on through the hashes,
-- mending entries that have lost their index. (An index entry that has lost
-- its hash entry is mended when its time comes.)
local DONE_CAP = 100000
local LIFTS_KEPT = 2 * 86400 * SECOND -- longer than any day of any time zone
local function tidy(max, c)
  -- What is forgotten here may be of any place up to the time of its end, or up
  -- to the scores that ran ahead of the time: restore has to know.
  local function forget(until_then, most)
    local found, members = call('ZRANGEBYSCORE', DONE, '-inf', f(until_then), 'WITHSCORES', 'LIMIT', 0, most), {}
    if #found == 0 then return end
    for i = 1, #found, 2 do members[#members + 1] = found[i] end
    call('ZREM', DONE, unpack(members))
    call('HDEL', DONE_INFO, unpack(members))
    local s = fields(STATE, 'tidied', 'ahead')
    call('HSET', STATE, 'tidied', f(math.max(s.tidied, s.ahead, tonumber(found[#found]))))
  end
  -- Never younger than the time in which a lost place may be asked back.
  forget(now - C.done_ttl - c.forget_after, max)
  local excess = math.min(call('ZCARD', DONE) - DONE_CAP, max)
  if excess > 0 then forget(now - c.forget_after, excess) end

  local lifts = call('ZRANGEBYSCORE', LIFTED, '-inf', f(now - LIFTS_KEPT), 'LIMIT', 0, max)
  if #lifts > 0 then call('ZREM', LIFTED, unpack(lifts)) end

  local function mend(name, key, has_index, put_back)
    local cursor = 'mend_' .. name
    local found = call('HSCAN', key, call('HGET', STATE, cursor) or '0', 'COUNT', 100)
    for i = 1, #found[2], 2 do
      local m = found[2][i]
      if not has_index(m) then put_back(m) end
    end
    if found[1] == '0' then call('HDEL', STATE, cursor) else call('HSET', STATE, cursor, found[1]) end
  end
  local function indexed(key)
    return function(m) return call('ZSCORE', key, m) end
  end
  local function put(key)
    return function(m) call('ZADD', key, f(now), m) end
  end
  mend('processing', PROC_PLACE, indexed(PROC), put(PROC))
  mend('away', AWAY_PLACE, indexed(AWAY), put(AWAY))
  mend('done', DONE_INFO, indexed(DONE), put(DONE))
  mend('grants', GRANTS, function(m) return call('ZSCORE', READY, m) or call('ZSCORE', CLAIMED, m) end, function(m)
    local g = grant_of(m)
    if g.claim == '-' then call('ZADD', READY, f(g.expiry), m) else call('ZADD', CLAIMED, f(now), m) end
  end)
end

-- pull_back, after an accepted step of the clock back, takes every stored time
-- that lies further ahead than its own rule allows back to that bound. Returns
-- whether there is more to do.
local function pull_back(max, c)
  local step_at = tonumber(call('HGET', STATE, 'step_at'))
  if not step_at then return false end
  local more = false
  local function bound(key, limit, also)
    local members = call('ZRANGEBYSCORE', key, '(' .. f(limit), '+inf', 'LIMIT', 0, max)
    more = more or #members == max
    for _, m in ipairs(members) do
      call('ZADD', key, f(limit), m)
      if also then also(m) end
    end
  end
  -- In whole seconds, as pickup fixes it: a token is signed from it.
  local latest = math.floor((now + math.max(c.token_ttl, c.pickup_ttl)) / SECOND) * SECOND
  local function shorten(m)
    local g = grant_of(m)
    if not g or g.expiry <= latest then return end
    g.issued, g.expiry = math.min(g.issued, now), latest
    put_grant(m, g)
  end
  bound(PROC, now + c.processing_timeout)
  bound(READY, latest, shorten)
  bound(CLAIMED, now + c.claim_lease)
  for _, m in ipairs(call('ZRANGE', CLAIMED, 0, max - 1)) do shorten(m) end
  bound(AWAY, now)
  bound(SEEN, now)
  bound(DONE, now)
  bound(LIFTED, now)
  if c.began > now then call('HSET', CONF, 'began', f(now)) end
  if S.heard_at > now then call('HSET', STATE, 'heard_at', f(now)) end
  -- Claims hide the expiries behind them: what is claimed beyond max is bounded
  -- once it is ready again, and no claim of before outlives one lease.
  if not more and now >= step_at + c.claim_lease then call('HDEL', STATE, 'step_at') end
  return more
end
