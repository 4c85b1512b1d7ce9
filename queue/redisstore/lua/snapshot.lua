-- snapshot.lua reads the whole room at one moment.
--
-- ARGV: 1 now  2 marks wanted: 1 or 0
-- Returns: OK with 'conf', 'state', 'stats' and 'health' as stored, sizes, and per lane
-- 'waiting', 'head', 'marks' {rank, score, ...}; INIT. It writes nothing.
local bad = unbegun()
if bad then return bad end
local waiting, head, marks = {}, {}, {}

-- marks_of reads up to 64 members at ranks that grow by the same factor: a
-- place between two marks is known to a few per cent wherever it is.
local function marks_of(lane, size)
  local out, rank, last = {}, 0, -1
  local function mark(rank, score) out[#out + 1], out[#out + 2] = rank + ahead_elsewhere(lane, score), f(score) end
  local factor = math.max(size, 2) ^ (1 / 60)
  while rank < size and #out < 126 do
    local at = call('ZRANGE', LANE[lane], rank, rank, 'WITHSCORES')
    mark(rank, tonumber(at[2]))
    last = rank
    rank = math.max(rank + 1, math.floor(rank * factor))
  end
  if size > 0 and last ~= size - 1 then
    mark(size - 1, tonumber(call('ZRANGE', LANE[lane], -1, -1, 'WITHSCORES')[2]))
  end
  return out
end

for lane = 0, C.lanes - 1 do
  local size = call('ZCARD', LANE[lane])
  local first = call('ZRANGE', LANE[lane], 0, 0, 'WITHSCORES')
  waiting[lane + 1], head[lane + 1] = size, f(tonumber(first[2]) or 0)
  marks[lane + 1] = ARGV[2] == '1' and marks_of(lane, size) or {}
end
return reply('OK', 'now', f(now), 'conf', call('HGETALL', CONF), 'state', call('HGETALL', STATE),
  'stats', call('HGETALL', STATS), 'health', call('HGETALL', HEALTH), 'waiting', waiting, 'head', head, 'marks', marks,
  'away', call('ZCARD', AWAY), 'processing', call('ZCARD', PROC), 'ready', call('ZCARD', READY),
  'claimed', call('ZCARD', CLAIMED), 'done', call('ZCARD', DONE))
