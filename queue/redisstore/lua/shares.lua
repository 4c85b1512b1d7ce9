-- shares.lua stands before lanes: how the lanes of a room share what is let through.
--
-- By weight, lanes share as stride scheduling has it. Each has a pass, which says
-- how far it has been served; the lane with the lowest is next (of equal ones the
-- first), and its pass moves on by its stride. Strides are the least common
-- multiple of the weights, divided by each: passes are whole numbers, and the
-- shares are exact for ever. In a room that is one line the lowest score is next.

local function gcd(a, b)
  while b > 0 do a, b = b, a % b end
  return a
end

-- read_shares is the lanes as a walk through them begins. What is stored of a lane
-- is how far it is ahead of the lane that is furthest behind, and the stride of
-- that time: where weights have changed since, it is as large a part of a turn.
local function read_shares()
  local lanes, unit = {}, 1
  for lane = 0, C.lanes - 1 do
    local weight = C.lanes > 1 and tonumber(call('HGET', CONF, 'weight' .. lane)) or 1
    unit = unit / gcd(unit, weight) * weight
    lanes[#lanes + 1] = { lane = lane, weight = weight, pass = 0, from = 0, ahead = {}, at = 1 }
  end
  for _, w in ipairs(lanes) do
    w.stride = unit / w.weight
    local kept = C.lanes > 1 and call('HGET', STATE, 'pass' .. w.lane) or ''
    local pass, stride = string.match(kept, '^(%d+) (%d+)$')
    pass, stride = tonumber(pass), tonumber(stride)
    if pass and stride ~= w.stride then pass = math.floor(pass * w.stride / stride) end
    w.pass = pass or 0
  end
  return lanes
end

-- pass_of is by what lanes are compared whose first is e, or who that is is not
-- known. In one line anybody might be in front of all whom we know.
local function pass_of(w, e)
  if C.one_line ~= 1 then return w.pass end
  return e and e.at or -math.huge
end

-- write_shares keeps how far each lane is ahead. One with nobody left is moved up
-- to the others, so being empty earns no credit; and what it is ahead is less than
-- a turn of its own.
local function write_shares(lanes)
  if C.lanes == 1 or C.one_line == 1 then return end
  local lowest
  for _, w in ipairs(lanes) do
    if w.left then lowest = math.min(lowest or w.pass, w.pass) end
  end
  for _, w in ipairs(lanes) do
    local pass = lowest and math.max(w.pass - lowest, 0) or 0
    call('HSET', STATE, 'pass' .. w.lane, f(pass) .. ' ' .. f(w.stride))
  end
end
