-- tune.lua keeps where the batch of an adaptive room stands after a round, so
-- that another leader goes on from there.
--
-- ARGV: 1 now  2 generation  3 term  4 leader  5 round  6 batch  7 verdict, or '-'
--       8 what the controller remembers, as JSON
-- Returns: OK with 'kept': 1, or 0 (that round or a later one is kept already, and
-- differs; or the room does not follow its orders); STALE with 'term'; INIT; GEN.
--
-- Safe to repeat: a round is kept once, whoever comes first with it.
local bad = unbegun() or other_generation(number(2))
if bad then return bad end
local term, leader, round, batch, verdict, memory = number(3), word(4), number(5), number(6), word(7), ARGV[8]
if round < 1 or batch < 1 then error('ERR round or batch out of range') end
bad = stale_step(term, leader)
if bad then return bad end

if call('HGET', CONF, 'adaptive') ~= '1' then return reply('OK', 'kept', 0) end
local kept = call('HMGET', HEALTH, 'round', 'memory')
if round <= (tonumber(kept[1]) or 0) then
  return reply('OK', 'kept', tonumber(kept[1]) == round and kept[2] == memory and 1 or 0)
end

ready_to_write({}, {})
call('HSET', HEALTH, 'round', f(round), 'at', f(now), 'batch', f(batch), 'verdict', verdict, 'memory', memory)
-- Processes that have long been silent send nothing again that could count twice.
local all, gone = call('HGETALL', HEALTH), {}
for i = 1, #all, 2 do
  local at = string.sub(all[i], 1, 3) == 'of:' and tonumber(string.match(all[i + 1], ' (%d+)$'))
  if at and at < now - 600 * SECOND then gone[#gone + 1] = all[i] end
end
many('HDEL', HEALTH, gone)
return reply('OK', 'kept', 1)
