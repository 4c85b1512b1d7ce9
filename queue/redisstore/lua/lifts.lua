-- lifts.lua stands before lanes: the promise of a longest wait.
--
-- Who has waited longer than max_wait in the first lane is taken before the lanes
-- share, once a day. The order of the lane stays: a member who has had today's
-- lift is passed by nobody, and holds up the lifts of those behind until the
-- lane's own turn takes them.
local DAY = 86400 * SECOND
local MOST_LIFTS = 1000000 -- kept: beyond them nobody is lifted, for nobody may be twice

-- lift_budget is how many of n a call may lift: half, and one of one.
local max_wait = fields(CONF, 'max_wait').max_wait
local function lift_budget(n)
  if max_wait == 0 or call('ZCARD', LIFTED) >= MOST_LIFTS then return 0 end
  return math.max(math.floor(n / 2), 1)
end

-- lift_of tells whether an entry of walk_lanes is to be lifted: 'new'; 'again', if
-- it was and has come back to the same place; or not. A day begins at midnight of
-- the room, which is zone ahead of UTC.
local function lift_of(e, zone)
  if now - e.at <= max_wait then return nil end
  local at = tonumber(call('ZSCORE', LIFTED, e.member))
  if not at then return 'new' end
  if at >= e.at then return 'again' end
  return math.floor((at + zone) / DAY) < math.floor((now + zone) / DAY) and 'new' or nil
end

-- record_lifts notes whom walk_lanes has lifted.
local function record_lifts(members)
  local args, stamp = {}, f(now)
  for _, m in ipairs(members) do args[#args + 1], args[#args + 2] = stamp, m end
  if #args == 0 then return end
  many('ZADD', LIFTED, args)
  call('HINCRBY', STATS, 'lifted', #members)
end
