-- entrants.lua reads those who have a drawn place, in a draw that is over.
--
-- ARGV: 1 now  2 generation  3 lane  4 score to go on behind  5 most, 2,000 at most
-- Returns: OK with 'entrants' {member, score, ...}, lowest score first; INIT; GEN
-- (another generation, or the draw is not over). It writes nothing.
local bad = unbegun() or other_generation(number(2))
if bad then return bad end
local lane, after, most = number(3), number(4), number(5)
if lane ~= math.floor(lane) or lane < 0 or lane >= C.lanes then error('ERR no such lane') end
if most < 1 or most > 2000 then error('ERR most out of range') end
if DRAW < OVER then return reply('GEN') end
local found = call('ZRANGEBYSCORE', LANE[lane], '(' .. f(after), '(' .. f(BEYOND), 'WITHSCORES', 'LIMIT', 0, most)
for i = 2, #found, 2 do found[i] = f(tonumber(found[i])) end
return reply('OK', 'entrants', found)
