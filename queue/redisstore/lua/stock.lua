-- stock.lua stands before the scripts that let people in: how many more may be
-- let in for what is left to sell. It counts by conf, state, stats and sizes alone.
--
-- A scheduler reads the stock from Postgres and tells it to reserve, with the
-- room's count of consumed grants from before it read (c0). From then on
--
--   inside = ready, live + claimed + processing
--   free   = floor(stock x overbook) - (consumed - c0) - inside
--
-- so that orders which left the stock after the reading are subtracted: while
-- they are inside, then as consumed. One that is both out of the stock read and
-- inside counts twice, which is safe, until the next reading.

-- stock_told reads three arguments from the i-th on: product, its stock, and
-- consumed before that was read. nil where there is nothing new.
local function stock_told(i)
  if ARGV[i] == '' then return nil end
  local stock, before = number(i + 1), number(i + 2)
  if stock < 0 or before < 0 then error('ERR stock out of range') end
  return { sku = word(i), stock = f(stock), before = f(before) }
end

-- keep_stock remembers a reading for stock_known.
local function keep_stock(r)
  if r then call('HSET', STATE, 'stock_sku', r.sku, 'stock', r.stock, 'stock_consumed', r.before, 'stock_at', f(now)) end
end

-- stock_known is the last reading: stock, c0, and when it was told; nil where
-- there is none of the product that bounds the room now.
local function stock_known()
  local sku = call('HGET', CONF, 'stock')
  local s = call('HMGET', STATE, 'stock_sku', 'stock', 'stock_consumed', 'stock_at')
  if not s[1] or s[1] ~= sku then return nil end
  return tonumber(s[2]), tonumber(s[3]), tonumber(s[4])
end

-- stock_free is how many more may be let in; no limit where no stock bounds the
-- room (it has no overbook then). A reading that is old, or had counted more
-- than Redis now remembers, proves nothing: then nobody is let in.
local function stock_free()
  local overbook = fields(CONF, 'overbook').overbook
  if overbook == 0 then return math.huge end
  local stock, before, at = stock_known()
  local consumed = fields(STATS, 'consumed').consumed
  if not stock or now < at or now > at + 10 * SECOND or consumed < before then return 0 end
  return math.floor(stock * overbook / 1000) - (consumed - before) - inside()
end

-- sold_out tells whether the last reading found nothing left, however old it is.
local function sold_out() return stock_known() == 0 end
