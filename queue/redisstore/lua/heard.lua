-- heard.lua notes that members near the front are still there.
--
-- ARGV: 1 now  2... members, 500 at most, possibly none
-- Returns: OK and how many it refreshed.
--
-- Safe to repeat. It refreshes entries and never makes one: only reap decides
-- whom the room listens to. Calling it with no member says that the room can hear.
if #ARGV > 501 then error('ERR more than 500 members') end
if C.generation == 0 then return reply('OK', 'count', 0) end
ready_to_write()
if now - S.heard_at > 10 * SECOND then call('HSET', STATE, 'listen_since', f(now)) end
call('HSET', STATE, 'heard_at', f(now))
local refreshed, stamp = 0, f(now)
for from = 2, #ARGV, 250 do
  local args = {}
  for i = from, math.min(from + 249, #ARGV) do args[#args + 1], args[#args + 2] = stamp, ARGV[i] end
  refreshed = refreshed + call('ZADD', SEEN, 'XX', 'GT', 'CH', unpack(args))
end
return reply('OK', 'count', refreshed)
