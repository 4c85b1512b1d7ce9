-- pickup.lua hands a grant to its member: the first time it fixes the expiry,
-- in whole seconds, and the key that signs the entry token.
--
-- ARGV: 1 now  2 member  3 grant  4 key id
-- Returns: OK with issued, expiry, key, claimed; GONE; INIT.
--
-- Safe to repeat: later calls get what the first one fixed, so every process
-- signs the same token, also while keys are being rotated.
local member, key = ARGV[2], word(4)
local bad = unbegun()
if bad then return bad end

local g = settle(member)
if not g or g.id ~= ARGV[3] then return reply('GONE') end
if g.picked ~= '1' or g.key == '-' then
  ready_to_write({}, { READY })
  if g.picked ~= '1' then
    g.issued = math.min(g.issued, now) -- after a step back: no token ends before it was issued
    g.expiry = now + fields(CONF, 'token_ttl').token_ttl
  end
  -- Also where it is claimed already: with a token whose pick-up Redis has lost.
  g.expiry = math.floor(g.expiry / SECOND) * SECOND
  g.picked, g.key = '1', key
  put_grant(member, g)
  if g.claim == '-' then call('ZADD', READY, f(g.expiry), member) end
end
return reply('OK', 'issued', f(g.issued), 'expiry', f(g.expiry), 'key', g.key, 'sale', f(C.sale),
  'lane', g.lane, 'score', f(g.score))
