-- issue.lua turns processing members into grants, or refuses them, and charges
-- the rate for the grants.
--
-- ARGV: 1 now  2 generation  3 term  4 leader  5 seq  then member, grant or '-' ... (500 at most)
-- Returns: OK with 'words', one a member: NEW, OK (had this grant already),
-- OUT (refused) or GONE (not processing with this step); STALE with 'term'; INIT; GEN.
--
-- Safe to repeat: a grant that is there is not charged again.
local bad = unbegun() or other_generation(number(2))
if bad then return bad end
local term, leader, seq = number(3), word(4), number(5)
bad = stale_step(term, leader)
if bad then return bad end
for i = 7, #ARGV, 2 do word(i) end
if #ARGV % 2 == 0 or #ARGV > 1005 then error('ERR want at most 500 pairs of member and grant') end

ready_to_write()
local c = fields(CONF, 'pickup_ttl')
local step = f(term) .. ':' .. leader .. ':' .. f(seq)
local base, eff = bucket_base(), tonumber(call('HGET', STATE, 'eff')) or C.batch

local members = {}
for i = 6, #ARGV, 2 do members[#members + 1] = ARGV[i] end
if #members == 0 then return reply('OK', 'words', {}) end
local places = call('HMGET', PROC_PLACE, unpack(members))

local words, gone, refused, lanes, grants, expiries, highest, admitted = {}, {}, {}, {}, {}, {}, {}, {}
local expiry, stamp = f(now + c.pickup_ttl), f(now)
for i, m in ipairs(members) do
  local id = ARGV[5 + 2 * i]
  local lane, score, by = string.match(places[i] or '', '^(%d) (%d+) (%S+)$')
  if by ~= step then
    local g = grant_of(m)
    words[i] = g and g.id == id and 'OK' or 'GONE'
  else
    gone[#gone + 1] = m
    if id == '-' then
      words[i] = 'OUT'
      refused[#refused + 1], lanes[#refused + 1] = m, lane
    else
      words[i] = 'NEW'
      grants[#grants + 1], grants[#grants + 2] = m, table.concat({ id, lane, score, stamp, expiry, '0 - -' }, ' ')
      expiries[#expiries + 1], expiries[#expiries + 2] = expiry, m
      admitted[lane] = (admitted[lane] or 0) + 1
      highest[lane] = math.max(highest[lane] or 0, tonumber(score))
    end
  end
end

for i, m in ipairs(refused) do
  finish(m, 'EVICTED')
  passed_over(lanes[i])
end
many('ZREM', PROC, gone)
many('HDEL', PROC_PLACE, gone)
many('HSET', GRANTS, grants)
many('ZADD', READY, expiries)
if #grants > 0 then call('HSET', STATE, 'tat', f(math.ceil(base + #grants / 2 * C.interval / eff))) end
for lane, n in pairs(admitted) do
  local mark = 'watermark' .. lane
  call('HINCRBY', STATS, 'admitted' .. lane, n)
  call('HSET', STATE, mark, f(math.max(highest[lane], tonumber(call('HGET', STATE, mark)) or 0)))
end
return reply('OK', 'words', words)
