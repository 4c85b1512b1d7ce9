-- journal.lua runs a script of a room and writes down, in the same atomic step,
-- what it was asked, what it answered and what the room looked like after it.
--
-- It stands behind `local function body(redis)`, which holds the whole script,
-- and `local NAME`. The body's redis.call is watched, and it runs protected, so
-- that a script that fails half-way is written down too; then its error is
-- raised again as it was.
--
-- The journal is a list beside the room's keys, but none of them: neither the
-- beginning of a generation nor the end of a room removes it.
local JOURNAL = string.sub(KEYS[1], 1, -5) .. 'journal' -- KEYS[1] ends in conf
local WRITES = { ZADD = true, ZREM = true, HSET = true, HDEL = true, HINCRBY = true, UNLINK = true }
local REFUSALS = { STALE = true, GEN = true, BUSY = true, GONE = true, LIMIT = true, NONE = true, FULL = true, CLOSED = true }
local SECOND = 1000000

-- full prints a number with all its digits: cjson and tostring lose some above 1e14.
local function full(n) return string.format('%.0f', n) end

local watched, by_index = {}, {} -- keys whose entries are members
for i, key in ipairs(KEYS) do
  if i >= 3 and i <= 16 then watched[key] = true end
  by_index[i] = key
end

-- What the body does: whether it writes, to which members, at what time.
local wrote, touched, names, time = false, {}, {}, nil
local function touch(m)
  if touched[m] then return end
  touched[m] = true
  names[#names + 1] = m
end

-- note takes the members out of a write's arguments.
local function note(command, args)
  wrote = true
  if not watched[args[1]] then return end
  local from, by = 2, 1
  if command == 'ZADD' then
    while not tonumber(args[from]) do from = from + 1 end -- NX, XX, GT, CH
    from, by = from + 1, 2
  elseif command == 'HSET' then
    by = 2
  end
  for i = from, #args, by do touch(args[i]) end
end

local watcher = setmetatable({
  call = function(command, ...)
    local answer = redis.call(command, ...)
    command = string.upper(command)
    if command == 'TIME' then time = time or tonumber(answer[1]) * SECOND + tonumber(answer[2]) end
    if WRITES[command] then note(command, { ... }) end
    return answer
  end,
}, { __index = redis })

-- ask reads for the journal alone: a key of the wrong type is read as nothing.
local function ask(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err then return nil end
  return answer
end

-- The clock as the prelude clamps it, taken before the body moves it.
local before = tonumber(ask('HGET', KEYS[2], 'time') or '') or 0
local ok, answer = pcall(body, watcher)

local first = ok and type(answer) == 'table' and answer[1]
if wrote or REFUSALS[first] then
  time = tonumber(ARGV[1]) or time
  if not time then
    local t = redis.call('TIME')
    time = tonumber(t[1]) * SECOND + tonumber(t[2])
  end
  local now = time
  if now < before and now >= before - 60 * SECOND then now = before end

  -- json is cjson for what cjson gets wrong: long numbers, and empty lists.
  local function json(v)
    if type(v) == 'table' then
      local out = {}
      for i, x in ipairs(v) do out[i] = json(x) end
      return '[' .. table.concat(out, ',') .. ']'
    end
    if type(v) == 'number' then return math.abs(v) < 1e14 and cjson.encode(v) or '"' .. full(v) .. '"' end
    if not v then return 'null' end
    return cjson.encode(v)
  end

  -- hash reads a whole hash, or the fields named.
  local function hash(key, fields)
    local out = {}
    if fields then
      local values = ask('HMGET', key, unpack(fields)) or {}
      for i, name in ipairs(fields) do out[name] = values[i] or nil end
    else
      local flat = ask('HGETALL', key) or {}
      for i = 1, #flat, 2 do out[flat[i]] = flat[i + 1] end
    end
    return cjson.encode(out)
  end

  -- after reads where every touched member is now, 200 at a time.
  local after = {}
  for i, m in ipairs(names) do after[i] = {} end
  local function read(command, index, keep)
    for from = 1, #names, 200 do
      local till = math.min(from + 199, #names)
      local values = ask(command, by_index[index], unpack(names, from, till)) or {}
      for i = from, till do
        local v = values[i - from + 1]
        if v then keep(after[i], v) end
      end
    end
  end
  local function score(field)
    return function(at, v) at[field] = full(tonumber(v)) end
  end
  local function raw(field)
    return function(at, v) at[field] = v end
  end
  for lane = 0, 3 do
    read('ZMSCORE', 3 + lane, function(at, v)
      at.lane = at.lane and at.lane .. ',' .. lane or tostring(lane)
      at.score = at.score and at.score .. ',' .. full(tonumber(v)) or full(tonumber(v))
    end)
  end
  read('ZMSCORE', 7, score('seen'))
  read('ZMSCORE', 8, score('away'))
  read('HMGET', 9, raw('place'))
  read('ZMSCORE', 10, score('processing'))
  read('HMGET', 11, raw('held'))
  read('ZMSCORE', 12, score('ready'))
  read('ZMSCORE', 13, score('claimed'))
  read('HMGET', 14, raw('grant'))
  read('ZMSCORE', 15, score('done'))
  read('HMGET', 16, raw('outcome'))
  local members = {}
  for i, m in ipairs(names) do members[i] = cjson.encode(m) .. ':' .. cjson.encode(after[i]) end

  local function size(index) return ask('ZCARD', by_index[index]) or 0 end
  local sizes = cjson.encode({
    waiting = size(3) + size(4) + size(5) + size(6), away = size(8), processing = size(10), ready = size(12),
    claimed = size(13), done = size(15),
  })

  local message = not ok and (type(answer) == 'table' and answer.err or tostring(answer))
  local entry = {
    '"script":' .. json(NAME), '"time":"' .. full(time) .. '"', '"now":"' .. full(now) .. '"',
    '"argv":' .. json({ unpack(ARGV, 2) }), '"reply":' .. (ok and json(answer) or 'null'), '"error":' .. json(message),
    '"members":{' .. table.concat(members, ',') .. '}',
    '"state":' .. hash(KEYS[2], { 'time', 'last', 'tat', 'term', 'leader', 'seq', 'eff', 'listen_since', 'heard_at',
      'step_at', 'tidied', 'draw', 'released_used', 'stock_sku', 'stock', 'stock_consumed', 'stock_at', 'watermark0', 'watermark1', 'watermark2', 'watermark3',
      'last0', 'last1', 'last2', 'last3' }),
    '"sizes":' .. sizes, '"generation":' .. json(ask('HGET', KEYS[1], 'generation') or '0'), '"stats":' .. hash(KEYS[19]),
  }
  if NAME == 'configure' then
    entry[#entry + 1] = '"mode":' .. json(ARGV[2])
    entry[#entry + 1] = '"conf":' .. hash(KEYS[1])
  end
  redis.call('RPUSH', JOURNAL, '{' .. table.concat(entry, ',') .. '}')
end

if not ok then error(answer, 0) end
return answer
