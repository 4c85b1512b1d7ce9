-- lanes.lua stands before reserve: who comes next, and who is processing.

-- walk_lanes chooses up to n members from the fronts of the lanes, passing over
-- those who have gone silent. It looks at 2,000 members and moves 500 at most.
-- First come those whom the longest-wait promise lifts, then the lanes as they
-- share. Where it is not known who is first in the lane whose turn it is, because
-- the call has looked enough, nobody else takes that turn: the next call goes on.
local function walk_lanes(n, zone)
  local since, looked = listen_since(), 0
  local out = { chosen = {}, silent = {}, lifted = {}, lifts = 0, left = false }

  local function next_of(w)
    while true do
      local e = w.ahead[w.at]
      if e then return e end
      local size = math.min(500, 2000 - looked, math.max(n - #out.chosen, 16))
      if w.over or size <= 0 or #out.silent + #out.chosen >= 500 then return nil end
      local found = call('ZRANGE', LANE[w.lane], w.from, w.from + size - 1, 'WITHSCORES')
      w.over = #found < 2 * size
      w.from, w.ahead, w.at, looked = w.from + #found / 2, {}, 1, looked + #found / 2
      if #found == 0 then return nil end
      local members = {}
      for i = 1, #found, 2 do members[#members + 1] = found[i] end
      local seen = call('ZMSCORE', SEEN, unpack(members))
      for i, m in ipairs(members) do
        local at = tonumber(found[2 * i])
        local entry = { lane = w.lane, member = m, at = at, score = f(at) }
        if is_silent(seen[i], since) then
          out.silent[#out.silent + 1] = entry
        else
          w.ahead[#w.ahead + 1] = entry
        end
      end
    end
  end
  local function choose(w, e)
    out.chosen[#out.chosen + 1] = e
    w.at = w.at + 1
  end

  local lanes = read_shares()
  for _ = 1, lift_budget(n) do
    local e = next_of(lanes[1])
    local lift = e and lift_of(e, zone)
    if not lift then break end
    out.lifts = out.lifts + 1
    if lift == 'new' then out.lifted[#out.lifted + 1] = e.member end
    choose(lanes[1], e)
  end
  while #out.chosen < n do
    local turn, first, lowest
    for _, w in ipairs(lanes) do
      local e = next_of(w)
      if e or not w.over then
        local pass = pass_of(w, e)
        if not turn or pass < lowest then turn, first, lowest = w, e, pass end
      end
    end
    if not first then break end
    choose(turn, first)
    turn.pass = turn.pass + turn.stride
  end
  for _, w in ipairs(lanes) do
    w.left = w.ahead[w.at] or not w.over
    out.left = out.left or w.left
  end
  write_shares(lanes)
  return out
end

-- leave_lanes takes entries of walk_lanes out of their lanes.
local function leave_lanes(entries)
  local of_lane, all = {}, {}
  for _, e in ipairs(entries) do
    of_lane[e.lane] = of_lane[e.lane] or {}
    table.insert(of_lane[e.lane], e.member)
    all[#all + 1] = e.member
  end
  for lane, members in pairs(of_lane) do many('ZREM', LANE[lane], members) end
  many('ZREM', SEEN, all)
end

-- hold makes entries processing, by a step and until a deadline. Returns them
-- as reserve answers them: member, lane, score ...
local function hold(entries, step, deadline)
  local taken, deadlines, places, stamp = {}, {}, {}, f(deadline)
  for _, e in ipairs(entries) do
    taken[#taken + 1], taken[#taken + 2], taken[#taken + 3] = e.member, e.lane, e.score
    deadlines[#deadlines + 1], deadlines[#deadlines + 2] = stamp, e.member
    places[#places + 1], places[#places + 2] = e.member, e.lane .. ' ' .. e.score .. ' ' .. step
  end
  many('ZADD', PROC, deadlines)
  many('HSET', PROC_PLACE, places)
  return taken
end

-- held_by lists what a step, which took until deadline, still holds.
local function held_by(step, deadline)
  local taken = {}
  for _, m in ipairs(call('ZRANGEBYSCORE', PROC, f(deadline), f(deadline), 'LIMIT', 0, 500)) do
    local lane, score, by = place_of(PROC_PLACE, m)
    if by == step then
      taken[#taken + 1], taken[#taken + 2], taken[#taken + 3] = m, lane, f(score)
    end
  end
  return taken
end

-- give_back_older returns to their places up to 500 whom other terms hold, or
-- calls of mine before keep. Returns whether there are more.
local function give_back_older(mine, keep)
  local returned = 0
  for _, m in ipairs(call('ZRANGE', PROC, 0, 1999)) do
    local _, _, by = place_of(PROC_PLACE, m)
    local seq = by and string.sub(by, 1, #mine) == mine and tonumber(string.sub(by, #mine + 1))
    if not seq or seq < keep then
      if returned == 500 then return true end
      returned = returned + 1
      give_back(m)
    end
  end
  return false
end

-- watermarks is the highest score granted in each lane.
local function watermarks()
  local marks, out = call('HMGET', STATE, 'watermark0', 'watermark1', 'watermark2', 'watermark3'), {}
  for lane = 0, C.lanes - 1 do out[lane + 1] = marks[lane + 1] or '0' end
  return out
end
