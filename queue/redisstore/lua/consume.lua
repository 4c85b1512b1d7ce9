-- consume.lua ends grants that orders have used up.
--
-- ARGV: 1 now  then member, grant, order ... (500 at most)
-- Returns: OK with 'words', one a grant: OK; LATE (it had expired or its member
-- had left: the outcome is mended); NONE (nothing of it is left).
--
-- Safe to repeat and safe when late: it compares grant ids, so it never touches
-- the member's next grant. A live claim on the grant ends with it.
if #ARGV % 3 ~= 1 or #ARGV > 1501 then error('ERR want at most 500 of member, grant, order') end
for i = 4, #ARGV, 3 do word(i) end
if C.generation > 0 then ready_to_write() end
local words = {}

local function one(m, id, order)
  local g = grant_of(m)
  if g and g.id == id then
    drop_grant(m)
    finish(m, 'CONSUMED', id, order)
    return 'OK'
  end
  local outcome, grant = done_of(m)
  if grant == id and (outcome == 'EXPIRED' or outcome == 'LEFT') then
    call('HINCRBY', STATS, string.lower(outcome), -1)
    call('HINCRBY', STATS, 'unused', -1)
    finish(m, 'CONSUMED', id, order)
    return 'LATE'
  end
  return 'NONE'
end

for i = 2, #ARGV, 3 do words[#words + 1] = one(ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
return reply('OK', 'words', words)
