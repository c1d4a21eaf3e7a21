-- Divides limits between the instances of a deployment. One call reports and answers many limits.
--
-- KEYS[1]   the instances that have reported lately: instance -> time of its last report
-- KEYS[2…]  one hash for each item below: instance -> "sequence time demand-or-used held"
-- Names that begin with # are not instances. Of a rate: #since, when its first burst began. Of a day: #used, what all have used
-- as far as anybody knew; #ended and #unreported, what was used by instances without a row; #checked, the last pause after which
-- #unreported was computed.
-- ARGV      instance, sequence, instances that it knows of, then five values for each item:
--             rate        limit, demand per second, rate in use, 0
--             day         limit, used, leased and not used, used by all instances as far as it knows
--             leave-rate  -, -, -, -
--             leave-day   -, used, -, -
--             leave-instance, whose hash is KEYS[1]
-- Returns   instances, whether limits are divided (1) or nobody gets more than it holds (0), then two values for each item:
--             rate        the rate that the instance may use (-1: a later report was seen), whether it owes its first burst
--             day         the credits that it may use besides those it has used (-1 as above), credits that are left
--
-- What an instance holds is the larger of what it uses and what it is told: a lower rate is given to others only after the
-- next report shows that it is in use. So lost and late replies never make the sum larger than the limit.

local SILENT_MS = 10000   -- An instance that is silent for so long has ended: others get what it held.
local PAUSE_MS = 2000     -- After a pause of all reports, Redis may have lost what instances hold.
local SETTLE_MS = 3000    -- For so long after a pause nobody gets more, so that instances that it has forgotten can report.
local BURST_MS = 1000     -- Instances that join a limit within its first second share the burst of that second.
local ROWS_MAX = 64       -- With more instances on one day, the use of those that have ended is added up.
local DAYS_KEPT_S = 259200
local MANY = 1000         -- An instance that could not reach Redis before reports that it knows of more instances than this.

-- An instance may use so much of a day, or a four-hundredth, before others return what they leased, as in `limit_share.rs`.
local FIRST_CREDITS = 1000

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local instance, sequence, known = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

-- A number that this script may have written; nil for anything else, also for NaN.
local function valid(text, lowest)
  local number = tonumber(text)
  if number and number >= (lowest or -1) and number < 2 ^ 53 then return number end
end

local function fields(key)
  local list, found = redis.call('HGETALL', key), {}
  for i = 1, #list, 2 do found[list[i]] = list[i + 1] end
  return found
end

-- Registers the instance. Returns how many there are, whether all that may hold something have reported since the last pause,
-- and when that pause began and ended. An empty Redis may have lost its data, so the first report to it ends a pause, too.
local function register()
  local seen = fields(KEYS[1])
  local function number(name) return valid(seen[name]) or 0 end
  if number('#latest') > now + PAUSE_MS or number('#epoch') > now + PAUSE_MS then
    -- The clock was set back, so that no time in this hash is right.
    redis.call('DEL', KEYS[1])
    seen = {}
  end
  local epoch, latest, paused = number('#epoch'), number('#latest'), number('#paused')
  -- Each instance that leaves lowers the second one, also if it is one of those that are waited for.
  local expected, fresh = number('#expected'), valid(seen['#fresh'], -MANY) or 0
  local instances = {}
  for name, at in pairs(seen) do
    if string.sub(name, 1, 1) ~= '#' then
      instances[name] = valid(at)
      if not instances[name] or instances[name] > now + PAUSE_MS then
        redis.call('HDEL', KEYS[1], name)
        instances[name] = nil
      end
    end
  end
  if now - latest > PAUSE_MS then
    epoch, expected, fresh, paused = now, 0, 0, latest
    if latest == 0 then paused = now end
    for _, at in pairs(instances) do
      if latest - at <= SILENT_MS then expected = expected + 1 end
    end
  end
  if number(instance) < epoch then
    -- An instance that has just started holds nothing, so it is not one of those that are waited for.
    local is_new = known == 0 or known >= MANY
    if not is_new then expected = math.max(expected, known)
    elseif not seen[instance] then fresh = fresh + 1 end
  end
  instances[instance] = now
  local live, back = 0, 0
  for name, at in pairs(instances) do
    if now - math.max(at, epoch) > SILENT_MS then redis.call('HDEL', KEYS[1], name)
    else
      live = live + 1
      if at >= epoch then back = back + 1 end
    end
  end
  redis.call('HSET', KEYS[1], instance, now, '#latest', now, '#epoch', epoch, '#paused', paused,
    '#expected', expected, '#fresh', fresh)
  redis.call('PEXPIRE', KEYS[1], SILENT_MS * 6)
  -- Those that are waited for are there, and hold what they held, until they have been silent for long.
  if now - epoch > SILENT_MS then return live, true, paused, epoch end
  return math.max(live, expected + fresh), back - fresh >= expected and now - epoch >= SETTLE_MS, paused, epoch
end

local is_read, live, settled, paused, epoch = pcall(register)
if not is_read then
  -- Something else was written here, so that it is empty from now on.
  redis.call('DEL', KEYS[1])
  live, settled, paused, epoch = register()
end

-- Nobody is silent during a pause of all, but an instance that was silent for long before it has ended. So has one with a
-- time in the future, from before the clock was set back: all others have reported since then.
local function has_ended(row)
  if row.at > now + PAUSE_MS then return true end
  if row.at < epoch and paused - row.at > SILENT_MS then return true end
  return now - math.max(row.at, epoch) > SILENT_MS
end

-- How many instances divide what is given on top of a limit that is held by others; at least four while that is not known.
local dividers = math.max(live, known < MANY and settled and known or 4)

local function rows_of(key)
  local found, rows, extra = fields(key), {}, {}
  for name, text in pairs(found) do
    if string.sub(name, 1, 1) == '#' then extra[name] = valid(text)
    else
      local row = {}
      for number in string.gmatch(text, '%S+') do row[#row + 1] = valid(number) end
      if #row == 4 then rows[name] = {sequence = row[1], at = row[2], amount = row[3], held = row[4]}
      else redis.call('HDEL', key, name) end
    end
  end
  return rows, extra
end

local function keep(key, amount, held)
  redis.call('HSET', key, instance, string.format('%.0f %.0f %.0f %.0f', sequence, now, amount, held))
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

local function rate(key, limit, demand, used_rate)
  local rows, extra = rows_of(key)
  local own = rows[instance]
  if own and own.sequence >= sequence then return -1, 0 end
  local demands, held = {demand}, 0
  for name, row in pairs(rows) do
    if name ~= instance then
      if has_ended(row) then redis.call('HDEL', key, name)
      else
        demands[#demands + 1] = row.amount
        held = held + row.held
      end
    end
  end
  local since = extra['#since']
  if #demands == 1 and not own then since = now end
  local asked = 0
  for i = 1, #demands do asked = asked + demands[i] end
  local share = fair_share(limit, demands, demand)
  -- An instance for which nothing is left gets a small rate on top of the limit, until the others have reported.
  local least = math.min(share, math.ceil(limit / 10 / dividers))
  local most = math.min(used_rate, limit)
  if settled then most = math.min(share, limit - held) end
  share = math.max(most, least)
  keep(key, demand, math.max(share, used_rate))
  redis.call('HSET', key, '#since', since or now)
  redis.call('PEXPIRE', key, SILENT_MS * 6)
  -- A burst of an instance that joins is too much only if others use the limit by then.
  local joins_late = not own and #demands > 1 and since and now - since > BURST_MS and asked > limit / 2
  return share, joins_late and 1 or 0
end

-- The use of instances that have ended is added up when there are many of them.
local function fold(key, rows, extra)
  local count = 0
  for _ in pairs(rows) do count = count + 1 end
  if count <= ROWS_MAX then return end
  for name, row in pairs(rows) do
    if name ~= instance and has_ended(row) then
      extra['#ended'] = (extra['#ended'] or 0) + row.amount
      redis.call('HDEL', key, name)
      rows[name] = nil
    end
  end
  redis.call('HSET', key, '#ended', string.format('%.0f', extra['#ended'] or 0))
end

local function day(key, limit, used, unused, used_by_all)
  local rows, extra = rows_of(key)
  local own = rows[instance]
  if own and own.sequence >= sequence then return -1, 0 end
  fold(key, rows, extra)
  -- What an instance without a row has used is part of what nobody has reported, if there is something.
  local unreported = extra['#unreported'] or 0
  if not own then unreported = math.max(unreported - used, 0) end
  local count, held, total = 1, 0, used + (extra['#ended'] or 0) + unreported
  for name, row in pairs(rows) do
    if name ~= instance then
      total = total + row.amount
      if row.held >= 0 and not has_ended(row) then
        count = count + 1
        held = held + row.held
      end
    end
  end
  used_by_all = math.max(used_by_all, extra['#used'] or 0)
  -- After a loss of data, what instances have used that have ended, or do not use the limit now, is known only by others.
  if settled and extra['#checked'] ~= epoch then
    unreported = unreported + math.max(used_by_all - total, 0)
    total = math.max(total, used_by_all)
    redis.call('HSET', key, '#checked', epoch)
  end
  local left = math.max(limit - math.max(total, used_by_all), 0)
  -- A tenth is not leased, so that an instance that joins finds something. The last credits are not divided.
  local first = math.min(math.max(math.floor(limit / 400), FIRST_CREDITS), limit)
  local lease = math.max(math.ceil(left * 0.9 / count), math.min(left, first))
  local most = math.max(left - held, 0)
  -- While limits are not divided, a hundredth of what is left is leased, so that an instance that has just started answers calls.
  -- It is leased once after each pause; later reports get what remains of it.
  if not settled then
    local allowed = math.ceil(left / 100)
    if own and own.held >= 0 and own.at >= epoch then allowed = own.amount + own.held - used end
    most = math.min(most, math.max(unused, allowed))
  end
  -- The first credits of an instance are there also if others have leased all that is left.
  lease = math.max(math.min(lease, most), math.min(left, first - used))
  keep(key, used, math.max(lease, unused))
  redis.call('HSET', key, '#used', string.format('%.0f', used_by_all), '#unreported', string.format('%.0f', unreported))
  redis.call('EXPIRE', key, DAYS_KEPT_S)
  return lease, left
end

local function is_late(key)
  local own = rows_of(key)[instance]
  return own and own.sequence >= sequence
end

local function leave_rate(key)
  if not is_late(key) then redis.call('HDEL', key, instance) end
  return 0, 0
end

-- A row that holds -1 is one whose instance has left: it counts as used, and gets no lease.
local function leave_day(key, _, used)
  if not is_late(key) then keep(key, used, -1) end
  redis.call('EXPIRE', key, DAYS_KEPT_S)
  return 0, 0
end

local function leave_instance(key)
  redis.call('HDEL', key, instance)
  -- It is not waited for any more.
  redis.call('HINCRBY', key, '#fresh', -1)
  return 0, 0
end

local operations = {
  rate = rate, day = day,
  ['leave-rate'] = leave_rate, ['leave-day'] = leave_day, ['leave-instance'] = leave_instance,
}

-- One hash that cannot be read, because something else was written there, must not stop the others. It is empty from now on.
local function run(operation, key, ...)
  local is_done, first, second = pcall(operations[operation], key, ...)
  if is_done then return first, second end
  redis.call('DEL', key)
  return -1, -1
end

local replies = {live, settled and 1 or 0}
for item = 2, #KEYS do
  local at = 4 + (item - 2) * 5
  local first, second = run(ARGV[at], KEYS[item], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]),
    tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]))
  replies[#replies + 1] = first
  replies[#replies + 1] = second
end
return replies
