-- listed.lua lets a room go on whose draw is over, once its list is kept.
--
-- ARGV: 1 now  2 sale
-- Returns: OK; GEN (another sale, or no draw); INIT.
--
-- Safe to repeat, and needs no term: that the list of a sale is kept stays true,
-- whoever says so. By then the seed is public, so a room that has lost the end of
-- its draw gives no more places by it.
local bad = unbegun()
if bad then return bad end
if number(2) ~= C.sale or DRAW == 0 then return reply('GEN') end
ready_to_write()
call('HSET', STATE, 'draw', LISTED)
return reply('OK')
