-- raise.lua sets the counter of terms above a term that a room has seen, and
-- takes the next one.
--
-- KEYS: 1 the counter. ARGV: 1 the term seen. Returns: the new term.
--
-- Not idempotent, and need not be: every call gives a term of its own.
local newest = tonumber(redis.call('GET', KEYS[1])) or 0
local term = math.max(newest, tonumber(ARGV[1])) + 1
redis.call('SET', KEYS[1], string.format('%.0f', term))
return string.format('%.0f', term)
