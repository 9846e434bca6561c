-- Kernels whose threads are at different places of a loop at once: allocations of several sizes in one parallel loop.
-- usage: msched threads.lua TESTS [RUNS]
local ms = require "msched"
local tests, runs = arg[1], tonumber(arg[2]) or 12

local function read(name)
  local file <close> = assert(io.open(tests .. "/" .. name))
  return file:read "a"
end

-- A schedule of C2D that gave wrong results in 3 to 35 of 100 runs while other programs ran.
local conv = ms.from_script(read "../lua/bench/data/workloads/C2D.py")
local sch = ms.apply(conv, ms.read_trace(read "threads/C2D.trace.json"))
local kernel = ms.build(sch:func(), {reference = conv})
kernel:check()
assert(kernel:check_timing(1, runs))

-- Two buffers that follow one another in each thread.
local two = ms.build(ms.from_script(read "threads/race_min.py"))
assert(two:check_timing(1, runs))

-- What does depend on threads is refused.
local number = ms.build(ms.from_script [[
@T.prim_func(s_tir=True)
def number(O: T.Buffer((64,), "int32")):
    for i in T.parallel(64):
        O[i] = T.call_extern("int32", "omp_get_thread_num")
]])
for _, call in ipairs {function() number:check_timing() end, function() number:check_timing(2, 3) end} do
  local ok, message = pcall(call)
  assert(not ok and message:find "the result depends on thread timing: %d of %d runs differ", message)
end

-- Adds to each element in a parallel loop whose every iteration stores `steps` times, a number or an expression.
local function add(extent, steps)
  return ms.from_script(string.format([[
@T.prim_func(s_tir=True)
def once(A: T.Buffer((%d,), "int32"), O: T.Buffer((%d,), "int32")):
    for i in range(%d):
        O[i] = 0
    for r in range(20):
        for i in T.parallel(3, %d):
            for j in range(%s):
                O[i] = O[i] + A[i]
]], extent + 3, extent + 3, extent + 3, extent + 3, steps))
end

-- Each iteration runs once, whichever thread claims it: fewer than threads, as many, and others; bounds that are not 0.
-- Loops claim pieces where what they store is not known; those that store little never do.
for _, extent in ipairs {1, 2, 3, 7, 16, 17, 100} do
  for _, cores in ipairs {1, 2, 3, 8} do
    for _, steps in ipairs {"T.min(T.max(A[i], 1), 2)", "2"} do
      local once = ms.build(add(extent, steps), {target = "native -num-cores=" .. cores})
      for _ = 1, 5 do once:check() end
    end
  end
end

-- Whether code claims pieces: of a loop that stores as much as is worth a claim on each core, and of one that does not.
local function claims(func, cores)
  local path = os.tmpname()
  ms.build(func, {target = "native -num-cores=" .. cores}):export(path .. ".ll")
  local file <close> = assert(io.open(path .. ".ll"))
  local found = file:read "a":find("atomicrmw", 1, true) ~= nil
  os.remove(path)
  os.remove(path .. ".ll")
  return found
end
assert(claims(add(64, "T.min(T.max(A[i], 1), 2)"), 2) and not claims(add(64, "T.min(T.max(A[i], 1), 2)"), 1))
assert(claims(add(64, "1024"), 2) and not claims(add(64, "1024"), 4) and not claims(add(64, "900"), 2))
