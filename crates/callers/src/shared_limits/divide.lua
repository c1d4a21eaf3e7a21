-- Divides limits per second between the instances of a deployment. One call reports and answers many limits.
--
-- KEYS[1]   the instances that have reported lately: instance -> time of its last report; #latest, the time of the last report
--           of all; #since, since when reports have come without a pause
-- KEYS[2…]  one hash for each limit: instance -> "sequence time demand held"
-- ARGV      instance, sequence, whether the instance ends (1) or stays (0), then three values for each limit: the limit (0 if the
--           instance stops using it), demand per second, rate in use
-- Returns   instances, whether limits are divided (1) or nobody gets more than it holds (0), then for each limit the rate that the
--           instance may use (-1: a later report was seen)
--
-- What an instance holds is the larger of what it uses and what it is told: a lower rate is given to others only after the
-- next report shows that it is in use. So lost and late replies never make the sum larger than the limit.

local SILENT_MS = 10000   -- An instance that is silent for so long has ended: others get what it held.
local PAUSE_MS = 2000     -- After a pause of all reports, Redis may have lost what instances hold.
local SETTLE_MS = 3000    -- For so long after a pause nobody gets more, so that instances that it has forgotten can report.
local LEAST_PARTS = 10    -- As in `policy.rs`: what all may use together on top of what others hold.
local INSTANCES_MIN = 4

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local instance, sequence, is_ending = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'

-- A number that this script may have written; nil for anything else, also for NaN.
local function valid(text)
  local number = tonumber(text)
  if number and number >= 0 and number < 2 ^ 53 then return number end
end

local function fields(key)
  local list, found = redis.call('HGETALL', key), {}
  for i = 1, #list, 2 do found[list[i]] = list[i + 1] end
  return found
end

-- Nobody is silent during a pause of all. A time in the future is from before the clock was set back.
local function has_ended(at, since)
  return at > now + PAUSE_MS or now - math.max(at, since) > SILENT_MS
end

-- Registers the instance. Returns how many there are, and since when reports have come. An empty Redis may have lost its data, so
-- the first report to it ends a pause, too.
local function register()
  local seen = fields(KEYS[1])
  local since, latest = valid(seen['#since']) or now, valid(seen['#latest']) or 0
  if since > now or latest > now + PAUSE_MS or now - latest > PAUSE_MS then since = now end
  local live = is_ending and 0 or 1
  for name, at in pairs(seen) do
    if name ~= instance and string.sub(name, 1, 1) ~= '#' then
      if has_ended(valid(at) or 0, since) then redis.call('HDEL', KEYS[1], name)
      else live = live + 1 end
    end
  end
  redis.call('HSET', KEYS[1], instance, now, '#latest', now, '#since', since)
  if is_ending then redis.call('HDEL', KEYS[1], instance) end
  redis.call('PEXPIRE', KEYS[1], SILENT_MS * 6)
  return live, since
end

local is_read, live, since = pcall(register)
if not is_read then
  -- Something else was written here, so that it is empty from now on.
  redis.call('DEL', KEYS[1])
  live, since = register()
end
local is_settled = now - since >= SETTLE_MS

local function rows_of(key)
  local rows = {}
  for name, text in pairs(fields(key)) do
    local row = {}
    for number in string.gmatch(text, '%S+') do row[#row + 1] = valid(number) end
    if #row == 4 and not (name ~= instance and has_ended(row[2], since)) then
      rows[name] = {sequence = row[1], demand = row[3], held = row[4]}
    else redis.call('HDEL', key, name) end
  end
  return rows
end

-- What each demand gets of a limit. Small demands get what they ask for, and the others the same; what nobody asks for is
-- divided equally. All instances share a hundredth on top of their demand, so that the first call of one without demand finds
-- something, and calls at irregular times are not refused.
local function fair_share(limit, demands, own)
  local least, sum = limit / 100 / #demands, 0
  for i = 1, #demands do
    demands[i] = demands[i] + least
    sum = sum + demands[i]
  end
  own = own + least
  if sum <= limit then return math.ceil(own + (limit - sum) / #demands) end
  table.sort(demands)
  local left = limit
  for i = 1, #demands do
    local equal = left / (#demands - i + 1)
    if demands[i] >= equal then return math.ceil(math.min(own, equal)) end
    left = left - demands[i]
  end
  return math.ceil(own)
end

local function divide(key, limit, demand, used_rate)
  local rows = rows_of(key)
  local own = rows[instance]
  if own and own.sequence >= sequence then return -1 end
  if limit == 0 then
    redis.call('HDEL', key, instance)
    return 0
  end
  local demands, held = {demand}, 0
  for name, row in pairs(rows) do
    if name ~= instance then
      demands[#demands + 1] = row.demand
      held = held + row.held
    end
  end
  local share = fair_share(limit, demands, demand)
  -- An instance for which nothing is left gets a small rate on top of the limit, until the others have reported.
  local least = math.min(share, math.ceil(limit / LEAST_PARTS / math.max(live, INSTANCES_MIN)))
  local most = math.min(used_rate, limit)
  if is_settled then most = math.min(share, limit - held) end
  share = math.max(most, least)
  redis.call('HSET', key, instance,
    string.format('%.0f %.0f %.0f %.0f', sequence, now, demand, math.max(share, used_rate)))
  redis.call('PEXPIRE', key, SILENT_MS * 6)
  return share
end

local replies = {live, is_settled and 1 or 0}
for item = 2, #KEYS do
  local at = 4 + (item - 2) * 3
  local is_done, rate = pcall(divide, KEYS[item], tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]))
  if not is_done then
    -- One hash that cannot be read, because something else was written there, must not stop the others. It is empty from now on.
    redis.call('DEL', KEYS[item])
    rate = -1
  end
  replies[#replies + 1] = rate
end
return replies
