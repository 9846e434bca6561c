-- Kernels one after another in one call: each sees what those before it gave, on any number of threads, and from many
-- calls in turn; the first that fails ends it; what is no call of a kernel is refused.
local ms = require "msched"
local te = ms.te

local N = 4096
local function step(f, threads)
  local A = te.placeholder({N}, "float32", "A")
  local sch = ms.schedule(te.func("step", {A, te.compute({N}, function(i) return f(A, i) end, "B")}))
  local i = sch:get_loops(sch:get_sblock "B")
  local i0, i1 = sch:split(i, {ms.rest, 64})
  if threads > 1 then sch:parallel(i0) end
  sch:vectorize(i1)
  return ms.build(sch:func(), {target = "native -num-cores=" .. threads})
end

for _, threads in ipairs {1, 2, 3, 8} do
  local doubled = step(function(A, i) return A[{i}] * 2 + 1 end, threads)
  local reversed = step(function(A, i) return A[{N - 1 - i}] - 3 end, 1 + threads // 2)
  local arrays, calls = {ms.array({N}):random(1)}, {}
  for k = 1, 9 do
    arrays[k + 1] = ms.array({N})
    calls[k] = (k % 2 == 1 and doubled or reversed):prepare(arrays[k], arrays[k + 1])
  end
  local all = ms.in_order(calls)
  calls[1], calls[9] = nil, nil -- the call keeps what it runs
  collectgarbage()
  for round = 1, 20 do
    arrays[1]:random(round)
    all:run()
    local want = arrays[1]:tolist()
    for k = 1, 9 do
      local before = want
      want = {}
      for i = 1, N do want[i] = k % 2 == 1 and before[i] * 2 + 1 or before[N + 1 - i] - 3 end
    end
    assert(arrays[10]:difference(ms.array({N}, "float32", want)) == 0, "round " .. round .. " on " .. threads)
  end
end

-- One that fails ends it: what stands behind it does not run.
local checked = ms.from_script [[
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    assert A[0] < T.float32(1), "A[0] is large"
    for i in range(8):
        with T.sblock("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] + T.float32(1)
]]
local kernel = ms.build(checked)
local x, y, z, w = ms.array({8}), ms.array({8}), ms.array({8}), ms.array({8})
local three = ms.in_order {kernel:prepare(x, y), kernel:prepare(y, z), kernel:prepare(z, w)}
local ok, message = pcall(three.run, three)
assert(not ok and tostring(message):find("assertion of the function failed", 1, true), message)
assert(y:tolist()[1] == 1 and z:tolist()[1] == 0 and w:tolist()[1] == 0)
x = x:assign(ms.array({8}, "float32", -5))
three:run()
assert(y:tolist()[8] == -4 and w:tolist()[8] == -2)

ms.in_order({}):run()
local function refused(text, ...)
  local fine, why = pcall(...)
  assert(not fine and tostring(why):find(text, 1, true), why)
end
refused("number 2 is no call of a kernel", ms.in_order, {kernel:prepare(x, y), kernel})
refused("number 1 is no call of a kernel", ms.in_order, {three})
refused("number 1 is no call of one kernel", ms.time_in_turn, {three}, 0.01)
