-- bucket.lua is the token bucket (depth n) and the leaky bucket (depth 1): what
-- is let through has to be in the bucket, which fills by n in per.
--
-- The key holds when it was last looked at, and how much was in it then. One to
-- let through is per parts, and n parts come in each microsecond.
local at, parts = string.match(call('GET', key) or '', '^(%d+) (%d+)$')
local full = depth * per
at, parts = tonumber(at) or now, tonumber(parts) or full
if not_before(at) then at, parts = now, full end
parts = math.min(full, parts + math.min(now - at, per) * n)

if parts < per then
  return { 0, 0, math.ceil((per - parts) / n), math.ceil((full - parts) / n) }
end
parts = parts - per
local reset = math.ceil((full - parts) / n)
call('SET', key, f(now) .. ' ' .. f(parts), 'PX', ttl(reset))
return { 1, math.floor(parts / per), parts < per and math.ceil((per - parts) / n) or 0, reset }
