-- sliding.lua allows n in any time of per, wherever it begins: (now - per, now].
-- The key is a list of when the last ones were allowed, the oldest first.
local newest = tonumber(call('LINDEX', key, -1))
if newest and not_before(newest) then call('DEL', key) end

local oldest
while true do
  oldest = tonumber(call('LINDEX', key, 0))
  if not oldest or oldest > now - per then break end
  call('LPOP', key)
end
local had = call('LLEN', key)
if had >= n then
  newest = tonumber(call('LINDEX', key, -1))
  return { 0, 0, oldest + per - now, newest + per - now }
end
call('RPUSH', key, f(now))
call('PEXPIRE', key, ttl(per))
return { 1, n - had - 1, had + 1 < n and 0 or (oldest or now) + per - now, per }
