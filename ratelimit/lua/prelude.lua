-- prelude.lua stands in front of the scripts of this directory.
--
-- KEYS: 1 the count  ARGV: 1 now (tests alone; '' is the clock of Redis)  2 n  3 per  4 depth:
-- how many can be let through at once. Times are whole microseconds.
-- Returns: allowed 1 or 0, remaining, retry after (0 while some remain), reset. All that is compared is
-- a whole number below 2^53, so nothing is rounded.
local key, n, per, depth = KEYS[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local call = redis.call
local now = tonumber(ARGV[1])
if not now then
  local t = call('TIME')
  now = tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- f prints a number without losing digits.
local function f(x) return string.format('%.0f', x) end

-- ttl is a time as PEXPIRE takes it: a key lives a little longer than it counts.
-- A time that tests pass stands still while the server's goes on.
local function ttl(time)
  if ARGV[1] ~= '' then return 3600 * 1000 end
  return math.ceil(time / 1000) + 1
end

-- not_before keeps the time from running back behind what was counted last, but
-- for a step of more than a period: then it was the clock that was wrong, and
-- what it counted is worth nothing. Returns whether that is so.
local function not_before(last)
  if last - now > per then return true end
  now = math.max(now, last)
  return false
end
