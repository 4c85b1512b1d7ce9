-- health.lua adds what one process has seen of orders to what all have seen.
--
-- ARGV: 1 now  2 process  3 number of its report  4-7 orders per latency band
--       8 failed attempts  9 sum of their delays in microseconds
-- Returns: OK with 'counted': 1, or 0 (it was counted before, or the room does
-- not follow its orders).
--
-- Safe to repeat: the reports of a process have rising numbers, and one that is
-- not newer than the last is not counted again.
local process, report = word(2), number(3)
local names, counts = { 'done0', 'done1', 'done2', 'done3', 'failed', 'delay' }, {}
for i, name in ipairs(names) do
  counts[name] = number(3 + i)
  if counts[name] < 0 then error('ERR a count below 0') end
end
if C.generation == 0 or call('HGET', CONF, 'adaptive') ~= '1' then return reply('OK', 'counted', 0) end
local last = string.match(call('HGET', HEALTH, 'of:' .. process) or '', '^%d+')
if last and tonumber(last) >= report then return reply('OK', 'counted', 0) end

ready_to_write({}, {})
for _, name in ipairs(names) do
  if counts[name] > 0 then call('HINCRBY', HEALTH, name, f(counts[name])) end
end
call('HSET', HEALTH, 'of:' .. process, f(report) .. ' ' .. f(now))
return reply('OK', 'counted', 1)
