-- issue.lua turns processing members into grants, or refuses them. The grants
-- are charged to what operators have released by hand, then to the rate; those
-- taken while the room was off, to nothing.
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
local step = f(term) .. ':' .. leader .. ':' .. f(seq)

local members = {}
for i = 6, #ARGV, 2 do members[#members + 1] = ARGV[i] end
if #members == 0 then return reply('OK', 'words', {}) end
local places = call('HMGET', PROC_PLACE, unpack(members))

local words, gone, refused, granted = {}, {}, {}, {}
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
      refused[#refused + 1] = { member = m, lane = lane }
    else
      words[i] = 'NEW'
      granted[#granted + 1] = { member = m, grant = id, lane = lane, score = score }
    end
  end
end

for _, r in ipairs(refused) do
  finish(r.member, 'EVICTED')
  passed_over(r.lane)
end
many('ZREM', PROC, gone)
many('HDEL', PROC_PLACE, gone)
local eff, off = tonumber(call('HGET', STATE, 'eff')) or C.batch, call('HGET', STATE, 'free_step') == step
local hand = off and 0 or math.min(by_hand(), #granted)
admit(granted, off and 0 or #granted - hand, eff)
if hand > 0 then
  call('HINCRBY', STATE, 'released_used', hand)
  call('HINCRBY', STATS, 'released', hand)
end
if off and #granted > 0 then call('HINCRBY', STATS, 'passed_off', #granted) end
return reply('OK', 'words', words)
