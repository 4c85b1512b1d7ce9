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

-- together ends the grants of different members, from one argument to another: it
-- reads for all of them, and then writes for all.
local function together(from, to)
  local members, spent, done, info, late, stamp = {}, {}, {}, {}, {}, f(now)
  for i = from, to, 3 do members[#members + 1] = ARGV[i] end
  local grants = call('HMGET', GRANTS, unpack(members))
  for i, m in ipairs(members) do
    local id, order, said = ARGV[from + 3 * i - 2], ARGV[from + 3 * i - 1], 'NONE'
    local held = string.match(grants[i] or '', '^%S+')
    if held == id then
      said = 'OK'
      spent[#spent + 1] = m
      done[#done + 1], done[#done + 2] = stamp, m
      info[#info + 1], info[#info + 2] = m, 'CONSUMED ' .. id .. ' ' .. order
    else
      local outcome, grant = done_of(m)
      if grant == id and (outcome == 'EXPIRED' or outcome == 'LEFT') then
        said = 'LATE'
        late[#late + 1] = { member = m, grant = id, order = order, was = outcome }
      end
    end
    words[#words + 1] = said
  end
  many('ZREM', READY, spent)
  many('ZREM', CLAIMED, spent)
  many('HDEL', GRANTS, spent)
  many('ZADD', DONE, done)
  many('HSET', DONE_INFO, info)
  if #spent > 0 then call('HINCRBY', STATS, 'consumed', #spent) end
  for _, l in ipairs(late) do
    call('HINCRBY', STATS, string.lower(l.was), -1)
    call('HINCRBY', STATS, 'unused', -1)
    finish(l.member, 'CONSUMED', l.grant, l.order)
  end
end

-- A member who is named again is for the next turn, which sees what this one did.
local from, named = 2, {}
for i = 2, #ARGV, 3 do
  if named[ARGV[i]] then
    together(from, i - 1)
    from, named = i, {}
  end
  named[ARGV[i]] = true
end
if from < #ARGV then together(from, #ARGV) end
return reply('OK', 'words', words)
