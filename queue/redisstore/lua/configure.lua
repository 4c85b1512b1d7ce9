-- configure.lua puts settings in force, begins a generation of the room, or
-- removes all that a deleted room has left.
--
-- ARGV: 1 now  2 'update', 'create' or 'drop'  3 generation  4 version  5 highest score
--       known to have been given (create)  then field, value ... of conf
-- Returns: OK; INIT or GEN (an update of what is not there).
--
-- Safe to repeat: a version or generation that is not newer changes nothing.
-- create is called only with a number just won in Postgres. drop spares a newer
-- generation: the room has been made again.
local mode, generation, version, last = ARGV[2], number(3), number(4), number(5)
local base -- of the rate, before an update
if generation < 1 or #ARGV % 2 ~= 1 or #ARGV > 205 then error('ERR malformed settings') end

if mode == 'update' then
  local bad = unbegun() or other_generation(generation)
  if bad then return bad end
  if version <= (tonumber(call('HGET', CONF, 'version')) or 0) then return reply('OK') end
  ready_to_write()
  base = bucket_base()
elseif mode == 'create' then
  if C.generation >= generation then return reply('OK') end
  local kept = call('HMGET', STATE, 'term', 'leader')
  last = math.max(last, S.last)
  for i = 1, #KEYS do call('UNLINK', KEYS[i]) end
  C.generation = generation
  call('HSET', STATE, 'time', f(now), 'last', f(last), 'listen_since', f(now), 'term', kept[1] or '0', 'leader', kept[2] or '')
  call('HSET', CONF, 'began', f(now))
elseif mode == 'drop' then
  if C.generation <= generation then
    for i = 1, #KEYS do call('UNLINK', KEYS[i]) end
  end
  return reply('OK')
else
  error('ERR mode must be update, create or drop')
end
call('HSET', CONF, 'generation', f(generation), 'version', f(version), unpack(ARGV, 6))
if mode == 'create' then
  -- A boosted lane goes on above all that may come back to it, boost or not: who
  -- came before the loss stays ahead. Where nothing comes back, above its floor.
  local old = tonumber(call('HGET', CONF, 'restorable_from')) or 0
  local from = generation > old and math.max(last, now) or 0
  for lane = 0, 3 do
    local floor = tonumber(call('HGET', CONF, 'floor' .. lane)) or 0
    call('HSET', STATE, 'last' .. lane, f(math.max(from, floor)))
  end
end
local c = fields(CONF, 'interval', 'batch', 'adaptive', 'listed', 'released')
-- A room that follows its orders again begins anew, and not where it stood long ago.
if c.adaptive == 0 then call('UNLINK', HEALTH) end
if mode == 'create' then
  -- What was released before was for those who were in line then.
  call('HSET', STATE, 'tat', f(now - c.interval), 'draw', c.listed == 1 and LISTED or 0, 'released_used', f(c.released))
elseif c.interval ~= C.interval or c.batch ~= C.batch then
  -- What is left of a batch is kept as a time, which is worth something else
  -- from now on: as many grants as were left are left, and one batch at most.
  local left = math.min((now - base) * C.batch / C.interval, c.batch)
  call('HSET', STATE, 'tat', f(math.ceil(now - left * c.interval / c.batch)))
end
return reply('OK')
