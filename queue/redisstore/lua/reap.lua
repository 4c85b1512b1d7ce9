-- reap.lua does what time has decided: it returns, lapses, expires, sends away
-- and forgets. Nothing depends on how often it runs, except how soon people
-- in line move up.
--
-- ARGV: 1 now  2 most of each kind, 500 at most  3 memory full: 1, 0 or '' (not known)
-- Returns: OK or MORE with counts: returned, lapsed, expired, away, forgotten.
--
-- Safe to repeat, and needs no term: each part looks at its condition at the
-- moment of the write.
local max = number(2)
if max < 1 or max > 500 then error('ERR max out of range') end
if C.generation == 0 then return reply('OK') end
ready_to_write()
if ARGV[3] ~= '' then call('HSET', STATE, 'memory_full', ARGV[3]) end
local count = { returned = 0, lapsed = 0, expired = 0, away = 0, forgotten = 0 }
local more = false

-- due walks the members of key whose time has come.
local function due(key, limit, act)
  local members = call('ZRANGEBYSCORE', key, '-inf', f(limit), 'LIMIT', 0, max)
  more = more or #members == max
  for _, m in ipairs(members) do act(m) end
end
local function counted(name, act)
  return function(m)
    count[name] = count[name] + 1
    act(m)
  end
end

due(PROC, now, counted('returned', give_back))
due(CLAIMED, now, counted('lapsed', function(m)
  local g = grant_of(m)
  if g then return unclaim(m, g) end
  call('ZREM', CLAIMED, m) -- an entry without its grant
end))
due(READY, now, function(m)
  local g = grant_of(m)
  if not g then
    call('ZREM', READY, m)
  elseif g.claim ~= '-' then
    call('ZREM', READY, m) -- claimed: the lease decides
  elseif g.expiry > now then
    call('ZADD', READY, f(g.expiry), m)
  else
    local name = g.picked == '1' and 'expired' or 'away'
    count[name] = count[name] + 1
    expire(m, g)
  end
end)

local c = fields(CONF, 'forget_after', 'claim_lease', 'token_ttl', 'pickup_ttl', 'processing_timeout', 'began')
local since = listen_since()
if now >= since + c.forget_after then
  due(AWAY, now - c.forget_after, counted('forgotten', function(m)
    call('ZREM', AWAY, m)
    call('HDEL', AWAY_PLACE, m)
    finish(m, 'FORGOTTEN')
  end))
end

count.away = count.away + listen(since, max)
tidy(max, c)
if pull_back(max, c) then more = true end
return reply(more and 'MORE' or 'OK', 'returned', count.returned, 'lapsed', count.lapsed, 'expired', count.expired,
  'away', count.away, 'forgotten', count.forgotten)
