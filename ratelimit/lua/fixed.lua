-- fixed.lua allows n in each stretch of the clock that is a multiple of per.
-- The key holds the beginning of the stretch and how many it has had.
local start, had = string.match(call('GET', key) or '', '^(%d+) (%d+)$')
start, had = tonumber(start) or 0, tonumber(had) or 0
if not_before(start) then start = 0 end
local this = now - now % per
if start ~= this then had = 0 end

local left = this + per - now
if had >= n then return { 0, 0, left, left } end
call('SET', key, f(this) .. ' ' .. f(had + 1), 'PX', ttl(left))
return { 1, n - had - 1, had + 1 < n and 0 or left, left }
