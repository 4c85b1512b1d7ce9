-- gates.lua stands before the scripts that let people through: whether the room
-- does so at this moment, how many, and what their grants cost.
local G = fields(CONF, 'paused', 'draining', 'off', 'direct', 'eager', 'opens_at', 'admits_at', 'closes_at', 'began', 'settle',
  'restorable_from', 'capacity', 'pickup_ttl', 'released')

-- is_off tells a room that passes everybody, whatever its times, rate and
-- capacity say. Who pauses or drains it means that, and wins.
local function is_off() return G.off == 1 and G.paused == 0 and G.draining == 0 end

-- is_settling tells that lost places are still coming back.
local function is_settling() return C.generation > G.restorable_from and now < G.began + G.settle end

-- is_held tells that nobody is let through now: by the room's times, or because
-- lost places are still coming back. A pause is not asked for here.
local function is_held()
  return is_settling() or now < G.opens_at or now < G.admits_at or (G.closes_at > 0 and now >= G.closes_at and G.draining == 0)
end

-- by_hand is how many operators have released who have not been let through yet.
local function by_hand()
  return math.max(G.released - fields(STATE, 'released_used').released_used, 0)
end

-- allowed_by_rate is how many the bucket has left for, when those who are
-- processing have had theirs. It may be negative.
local function allowed_by_rate(batch, processing)
  return math.floor((now - bucket_base()) * batch / C.interval) - processing
end

-- free_places is how many more may be inside at once.
local function free_places()
  return G.capacity == 0 and math.huge or G.capacity - inside()
end

-- admit makes grants of entries {member, grant, lane, score}, the score as it is
-- stored, for as long as a member has to fetch one, and charges the rate for the
-- first 'charged' of them.
local function admit(entries, charged, eff)
  local grants, expiries, highest, admitted = {}, {}, {}, {}
  local expiry = f(now + G.pickup_ttl)
  local rest = ' ' .. f(now) .. ' ' .. expiry .. ' 0 - -'
  for _, e in ipairs(entries) do
    grants[#grants + 1], grants[#grants + 2] = e.member, e.grant .. ' ' .. e.lane .. ' ' .. e.score .. rest
    expiries[#expiries + 1], expiries[#expiries + 2] = expiry, e.member
    admitted[e.lane] = (admitted[e.lane] or 0) + 1
    highest[e.lane] = math.max(highest[e.lane] or 0, tonumber(e.score))
  end
  local base = bucket_base()
  many('HSET', GRANTS, grants)
  many('ZADD', READY, expiries)
  if charged > 0 then call('HSET', STATE, 'tat', f(math.ceil(base + charged * C.interval / eff))) end
  for lane, n in pairs(admitted) do
    local mark = 'watermark' .. lane
    call('HINCRBY', STATS, 'admitted' .. lane, n)
    call('HSET', STATE, mark, f(math.max(highest[lane], tonumber(call('HGET', STATE, mark)) or 0)))
  end
end
