-- claim.lua lets one order attempt at a time use a grant, under a lease.
--
-- ARGV: 1 now  2 member  3 grant  4 claim  5 lease in microseconds
-- Returns: OK with 'lease' and 'expiry'; BUSY with 'wait' (another claim holds
-- it); GONE (no such grant, or over); LIMIT (enough orders in flight); INIT.
--
-- Safe to repeat: the same claim gets the first lease again. It never changes
-- the expiry, so retrying does not lengthen a grant.
local member, id, claim, lease = ARGV[2], ARGV[3], word(4), number(5)
local bad = unbegun()
if bad then return bad end
if lease <= 0 then error('ERR lease out of range') end

local g = settle(member)
if not g or g.id ~= id then return reply('GONE') end
if g.claim ~= '-' then
  local ends = tonumber(call('ZSCORE', CLAIMED, member))
  if g.claim ~= claim then return reply('BUSY', 'wait', f(ends - now)) end
  return reply('OK', 'lease', f(ends), 'expiry', f(g.expiry))
end
if now >= g.expiry then return reply('GONE') end
local limit = fields(CONF, 'max_in_flight').max_in_flight
if limit > 0 and call('ZCOUNT', CLAIMED, '(' .. f(now), '+inf') >= limit then return reply('LIMIT') end

ready_to_write({}, { CLAIMED, READY })
g.claim, g.picked = claim, '1'
put_grant(member, g)
call('ZADD', CLAIMED, f(now + lease), member)
call('ZREM', READY, member)
return reply('OK', 'lease', f(now + lease), 'expiry', f(g.expiry))
