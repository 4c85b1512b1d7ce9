-- release.lua gives a grant back after an order that has definitely failed.
--
-- ARGV: 1 now  2 member  3 grant  4 claim
-- Returns: READY (usable again until its old expiry), EXPIRED, or NONE (this
-- claim does not hold the grant: released already, lapsed, or another's).
--
-- Safe to repeat and safe when late: ids are compared, so it never frees what
-- another attempt holds.
local member = ARGV[2]
local g = grant_of(member)
if not g or g.id ~= ARGV[3] or g.claim == '-' or g.claim ~= ARGV[4] then return reply('NONE') end
ready_to_write()
unclaim(member, g)
if now < g.expiry then return reply('READY') end
expire(member, g)
return reply('EXPIRED')
