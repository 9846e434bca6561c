-- Which task goes on. Each is resumed once, in order; from then on
--   gain          that one which has most to gain: its weight, times the seconds that its best is above a bound which
--                 no kernel passes, times how often its last iterations found a better one;
--   round-robin   in turn.
-- A task that nothing is known of comes first; one that is over never comes. What decides is in the tasks' results
-- alone. Over a fleet several tasks wait for results at a time: by gain one of the others goes on, while in turn it is
-- the next one's turn even if it waits, so that the order is the same whichever results come first.
local schedulers = {}

local WINDOW = 4 -- iterations that count as the last

-- A machine of each kind that is faster than any: so the bound holds, without a measurement, everywhere alike. What it
-- does in a second, of operations on elements of so many bytes, and of bytes. tiles: whether units that multiply tiles
-- may do them.
local HERTZ, PIPES, BYTES_A_CYCLE = 6.5e9, 2, 128
local TILES = 8 -- times as much as vectors do
local FASTEST = {
  llvm = function(target, bytes, tiles)
    return HERTZ * target.cores * 2 * PIPES * (target.vector_bits // (8 * bytes)) * (tiles and TILES or 1),
      HERTZ * target.cores * BYTES_A_CYCLE
  end,
  cuda = function(_, bytes) return 2e16 / bytes, 1e14 end,
}
local OF_TILES = {"int8 products", "bfloat16 products", "float16 products"}

-- The roofline of a function on a target: the operations that it does and the bytes that it moves, and how many of
-- either a second no kernel passes: arithmetic in full vectors on all cores, each byte read or written once from the
-- nearest cache.
-- Source: Williams et al., "Roofline", CACM 2009.
function schedulers.roof(func, target)
  local work, least, tiles = func:work(), 8, false
  for _, p in ipairs(func:params()) do least = math.min(least, math.max(tonumber(p.type:match "%d+") or 8, 8) // 8) end
  for _, kind in ipairs(OF_TILES) do tiles = tiles or work.operations[kind] ~= nil end
  local operations_a_second, bytes_a_second = FASTEST[target.kind](target, least, tiles)
  return {operations = math.max(work.floats, work.integers), bytes = work.read_bytes + work.written_bytes,
          operations_a_second = operations_a_second, bytes_a_second = bytes_a_second}
end

-- Seconds that no kernel of the function is faster than.
function schedulers.bound(func, target)
  local roof = schedulers.roof(func, target)
  return math.max(roof.operations / roof.operations_a_second, roof.bytes / roof.bytes_a_second)
end

-- Seconds of a task's function at its limit, as measured on this machine, where it was; else its bound.
local function roofline_of(task) return math.max(task.bound, task.limit and task.limit.seconds or 0) end

-- Measures the limit again, where it was measured.
function schedulers.measure_again(task)
  if task.limit and task.measure_limit then task.limit = task.measure_limit(task.limit) or task.limit end
end

-- Whether the best of a task has this share of its roofline. Before it is said of what was measured, that is measured
-- again: a machine that was busy then seems to reach less than it does.
function schedulers.is_near_roofline(task, share)
  local best = task:best(1)[1]
  local function is_near() return best ~= nil and best.seconds * share <= roofline_of(task) end
  if not is_near() or best.seconds * share <= task.bound or not task.measure_limit then return is_near() end
  schedulers.measure_again(task)
  return is_near()
end

-- Of the last iterations, the share that found a better kernel; none yet, or all without one, is never nothing.
local function recent_success(task)
  local wins, from = 0, math.max(#task.wins - WINDOW + 1, 1)
  for i = from, #task.wins do wins = wins + (task.wins[i] and 1 or 0) end
  return (1 + wins) / (1 + #task.wins - from + 1)
end

function schedulers.gain_of(task)
  if not task.fastest then return math.huge end
  return task.weight * math.max(task.fastest.seconds - task.bound, 0) * recent_success(task)
end

-- The first of those that gain most and wait for no result; nil: all wait.
local function by_gain(tasks)
  local best, most
  for _, t in ipairs(tasks) do
    local gain = schedulers.gain_of(t)
    if t.waiting == 0 and (not best or gain > most) then best, most = t, gain end
  end
  return best
end

local function times_resumed(t) return #t.wins + (t.waiting > 0 and 1 or 0) end

-- The one that was resumed least often, the first of these; nil: it waits.
local function in_turn(tasks)
  local best
  for _, t in ipairs(tasks) do
    if not best or times_resumed(t) < times_resumed(best) then best = t end
  end
  return best and best.waiting == 0 and best or nil
end

local known = {gain = by_gain, ["round-robin"] = in_turn}

-- A function from the tasks that are not over to the one that goes on; it gives nil where that waits for results.
function schedulers.find(name)
  local found = known[name or "gain"]
  if not found then
    error(string.format("there is no scheduler `%s`; known are %s", name,
                        table.concat(msched.sorted_keys(known), ", ")), 0)
  end
  return found
end

return schedulers
