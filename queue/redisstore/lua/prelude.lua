-- prelude.lua stands in front of every other script of this directory.
--
-- KEYS is always one room's whole key set, in the order of keys.go. ARGV[1] is
-- a time in microseconds that only tests pass; '' means the clock of Redis.
-- All times are microseconds, all scores such times or one above the last, less
-- what a lane's boost gives, unless places go by lot.
--
-- Lua has no rollback. So each script checks first and writes last, and what
-- it will write to is known to have the right type before the first write.
local CONF, STATE = KEYS[1], KEYS[2]
local LANE = { [0] = KEYS[3], KEYS[4], KEYS[5], KEYS[6] }
local SEEN, AWAY, AWAY_PLACE = KEYS[7], KEYS[8], KEYS[9]
local PROC, PROC_PLACE = KEYS[10], KEYS[11]
local READY, CLAIMED, GRANTS = KEYS[12], KEYS[13], KEYS[14]
local DONE, DONE_INFO, STATS = KEYS[15], KEYS[16], KEYS[19]
local HEALTH, LIFTED = KEYS[17], KEYS[18]
local HASHES = { AWAY_PLACE, PROC_PLACE, GRANTS, DONE_INFO, HEALTH, STATS }
local ZSETS = { LANE[0], LANE[1], LANE[2], LANE[3], SEEN, AWAY, PROC, READY, CLAIMED, DONE, LIFTED }
local SECOND = 1000000

local call = redis.call

-- f prints a number without losing digits: tostring and cjson do above 1e14.
local function f(n) return string.format('%.0f', n) end

-- many runs a command on a key with any number of arguments, 500 at a time:
-- unpack fails above some 8,000, after the writes that came before it.
local function many(command, key, args)
  local n = 0
  for i = 1, #args, 500 do n = n + call(command, key, unpack(args, i, math.min(i + 499, #args))) end
  return n
end

-- fields reads named fields of a hash as numbers; what is missing is 0.
local function fields(key, ...)
  local values, out = call('HMGET', key, ...), {}
  for i, name in ipairs({ ... }) do out[name] = tonumber(values[i]) or 0 end
  return out
end

-- number reads an argument, refusing what is no finite number.
local function number(i)
  local n = tonumber(ARGV[i])
  if not n or n ~= n or n == math.huge or n == -math.huge then
    error('ERR argument ' .. i .. ' is not a number')
  end
  return n
end

-- word reads an argument that stands in records separated by spaces.
local function word(i)
  if not string.find(ARGV[i], '^%S+$') then error('ERR argument ' .. i .. ' is not one word') end
  return ARGV[i]
end

local S = fields(STATE, 'time', 'last', 'listen_since', 'heard_at', 'draw')
local C = fields(CONF, 'generation', 'sale', 'lanes', 'interval', 'batch', 'done_ttl', 'away_after', 'one_line', 'draw', 'lottery',
  'admits_at')

-- The clock never runs back, but for a step of more than a minute: then it is
-- Redis that was wrong before, and waiting for it to catch up could take hours.
local now, stepped = tonumber(ARGV[1]), false
if not now then
  local t = call('TIME')
  now = tonumber(t[1]) * SECOND + tonumber(t[2])
end
if now < S.time - 60 * SECOND then
  stepped = true
elseif now < S.time then
  now = S.time
end

-- Nobody can be heard while nothing runs. Whoever comes first after such a gap
-- starts the count of silence anew, for everybody.
local deaf = stepped or (S.time > 0 and now - S.time > 10 * SECOND)
if deaf then S.listen_since = now end

-- How far the draw has come: 0 there is none, 1 open, 2 closed, 3 listed. Whoever
-- sees its end first ends it for good: neither moving admits_at nor the clock
-- opens it again.
local OPEN, OVER, LISTED = 1, 2, 3
local DRAW = C.draw == 1 and math.max(S.draw, now >= C.admits_at and OVER or OPEN) or 0

-- list_awaited tells a draw that is not over, or has no list yet: until then
-- nobody is let through, whatever else the room says, nor sent away.
local function list_awaited() return DRAW > 0 and DRAW < LISTED end

-- Scores that a draw or a lottery gives are below BEYOND (package draw has the
-- rules), 64 to a key. In such a room all other scores are not.
local BEYOND, SLOTS = 1688849860263936, 64
local LOTS = C.draw == 1 or C.lottery == 1

-- listen_since is the earliest moment from which silence counts: now, if no
-- process has told us lately whom it has heard.
local function listen_since()
  if now - S.heard_at > 10 * SECOND then return now end
  return S.listen_since
end

-- ready_to_write touches the given keys (all, if none are given), which fails
-- where one has the wrong type, and records the time. Whatever writes calls it
-- before its first write, naming at least what it writes and has not read. The
-- first call counts.
local ready = false
local function ready_to_write(hashes, zsets)
  if ready then return end
  ready = true
  for _, key in ipairs(hashes or HASHES) do call('HLEN', key) end
  for _, key in ipairs(zsets or ZSETS) do call('ZCARD', key) end
  if stepped then
    call('HINCRBY', STATS, 'steps', 1)
    call('HSET', STATE, 'step_at', f(now), 'ahead', f(S.last))
  end
  call('HSET', STATE, 'time', f(now))
  if DRAW >= OVER and S.draw < DRAW then call('HSET', STATE, 'draw', DRAW) end
  if deaf then call('HSET', STATE, 'listen_since', f(now)) end
end

-- reply begins with a word and the generation; name and value pairs follow.
local function reply(word, ...)
  return { word, 'generation', f(C.generation), ... }
end

-- ahead_elsewhere is how many of other lanes stand ahead of that score in a lane:
-- none, unless the lanes are one line. Of equal scores the lower lane is ahead, as
-- in walk_lanes.
local function ahead_elsewhere(lane, score)
  local ahead = 0
  for other = 0, C.one_line == 1 and C.lanes - 1 or -1 do
    local upto = (other < lane and '' or '(') .. f(score)
    if other ~= lane then ahead = ahead + call('ZCOUNT', LANE[other], '-inf', upto) end
  end
  return ahead
end

-- unbegun and other_generation are the first two checks of most scripts.
local function unbegun()
  if C.generation == 0 then return { 'INIT', 'generation', '0' } end
end
local function other_generation(generation)
  if generation ~= C.generation then return reply('GEN') end
end

