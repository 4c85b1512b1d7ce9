-- steps.lua stands before the scripts of a scheduler, and others that ask as they
-- do: silence, fencing, how many are inside, the rate.

-- is_silent judges one entry of seen. None (false) means that nobody has
-- listened for the member yet, which is not the same as silence.
local function is_silent(seen, since)
  return seen and math.max(tonumber(seen), since) + C.away_after <= now
end

-- stale_step is the answer to a step that a newer one has overtaken.
local function stale_step(term, leader)
  local seen = call('HMGET', STATE, 'term', 'leader')
  local newest = tonumber(seen[1]) or 0
  if term < newest or (term == newest and seen[2] ~= leader) then return reply('STALE', 'term', f(newest)) end
end

-- inside is how many are let in, or about to be. Sizes of sets, and what is over by
-- now left out: no counter, which could leak.
local function inside()
  return call('ZCOUNT', READY, '(' .. f(now), '+inf') + call('ZCARD', CLAIMED) + call('ZCARD', PROC)
end

-- bucket_base is the time up to which the rate is used up. A step of the clock
-- back leaves it far ahead; then the bucket starts anew, with one full batch.
local function bucket_base()
  local tat = tonumber(call('HGET', STATE, 'tat')) or 0
  if tat > now + C.interval then return now - C.interval end
  return math.max(tat, now - C.interval)
end
