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

-- Each iteration runs once, whichever thread claims it: fewer than threads, as many, and others; bounds that are not 0.
for _, extent in ipairs {1, 2, 3, 7, 16, 17, 100} do
  for _, cores in ipairs {1, 2, 3, 8} do
    local once = ms.build(ms.from_script(string.format([[
@T.prim_func(s_tir=True)
def once(A: T.Buffer((%d,), "int32"), O: T.Buffer((%d,), "int32")):
    for i in range(%d):
        O[i] = 0
    for r in range(20):
        for i in T.parallel(3, %d):
            O[i] = O[i] + A[i]
]], extent + 3, extent + 3, extent + 3, extent + 3)), {target = "native -num-cores=" .. cores})
    for _ = 1, 5 do once:check() end
  end
end
