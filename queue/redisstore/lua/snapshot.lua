-- snapshot.lua reads the whole room at one moment.
--
-- ARGV: 1 now  2 marks wanted: 1 or 0
-- Returns: OK with 'conf', 'state', 'stats' and 'health' as stored, sizes, and per lane
-- 'waiting', 'head', 'marks' {rank, score, ...}; INIT. It writes nothing.
local bad = unbegun()
if bad then return bad end
local waiting, head, marks = {}, {}, {}

-- marks_of reads members at ranks that grow by the same factor, of which the caller
-- chooses: between two of them nobody can be further off than the factor says,
-- however people came. Some 430 of a million; fewer of each lane, the more there are.
local FACTOR = 1 + 0.025 * C.lanes
local function marks_of(lane, size)
  local out, rank = {}, 0
  local function mark(at)
    local score = tonumber(call('ZRANGE', LANE[lane], at, at, 'WITHSCORES')[2])
    out[#out + 1], out[#out + 2] = at + ahead_elsewhere(lane, score), f(score)
  end
  while rank < size - 1 do
    mark(rank)
    rank = math.max(rank + 1, math.floor(rank * FACTOR))
  end
  if size > 0 then mark(size - 1) end
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
