-- standing.lua says where a member is, and hears one who was AWAY.
--
-- ARGV: 1 now  2 member
-- Returns: OK and the standing, or INIT.
--
-- Safe to repeat: it does only what time has decided, and hearing twice is hearing once.
local member = ARGV[2]
local bad = unbegun()
if bad then return bad end

local g = settle(member)
come_back(member)
return standing(member, g)
