-- Kernels one after another in one call: each sees what those before it gave, on any number of threads, and from many
-- calls in turn; lanes of calls side by side, whatever the threads, and whichever run their loops meanwhile; the first
-- that fails ends it, a lane too while others go on; what is no call of a kernel is refused.
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

-- Lanes side by side, between others that run one after another: more of them than threads too, of kernels with
-- parallel loops and without.
for _, threads in ipairs {1, 2, 3, 8} do
  local doubled = step(function(A, i) return A[{i}] * 2 + 1 end, threads)
  local serial = step(function(A, i) return A[{N - 1 - i}] - 3 end, 1)
  local function chain(from, count, to)
    local calls = {}
    for k = 1, count do
      local next_one = k == count and to or ms.array({N})
      calls[k] = (k % 2 == 1 and serial or doubled):prepare(from, next_one)
      from = next_one
    end
    return calls
  end
  local first, from, ends, lanes, apart = ms.array({N}), ms.array({N}), {}, {}, {}
  for k = 1, 5 do
    ends[k], ends[-k] = ms.array({N}), ms.array({N})
    lanes[k], apart[k] = chain(from, 3 * k, ends[k]), chain(from, 3 * k, ends[-k])
  end
  local last = ms.array({N})
  local all = ms.in_order {doubled:prepare(first, from), lanes, serial:prepare(ends[5], last), {apart[1]}, {apart[2],
                           apart[3]}, {apart[4], apart[5]}}
  for round = 1, 50 do
    first:random(round, true)
    all:run()
    for k = 1, 5 do
      assert(ends[k]:bytes() == ends[-k]:bytes(), string.format("lane %d of round %d on %d", k, round, threads))
    end
    assert(last:tolist()[1] == ends[5]:tolist()[N] - 3)
  end
end

-- A lane that fails ends; the others run, and what stands behind all of them does not.
x, y, z, w = ms.array({8}), ms.array({8}), ms.array({8}), ms.array({8})
local large, u, v = ms.array({8}, "float32", 2), ms.array({8}), ms.array({8})
local lanes = ms.in_order {{{kernel:prepare(x, y)}, {kernel:prepare(large, u), kernel:prepare(x, z)}},
                           kernel:prepare(x, w)}
for _ = 1, 20 do
  ok, message = pcall(lanes.run, lanes)
  assert(not ok and tostring(message):find("assertion of the function failed", 1, true), message)
  assert(y:tolist()[1] == 1 and u:tolist()[1] == 0 and z:tolist()[1] == 0 and w:tolist()[1] == 0)
end
large:assign(v)
lanes:run()
assert(u:tolist()[1] == 1 and z:tolist()[1] == 1 and w:tolist()[1] == 1)

ms.in_order({}):run()
local function refused(text, ...)
  local fine, why = pcall(...)
  assert(not fine and tostring(why):find(text, 1, true), why)
end
refused("number 2 is no call of a kernel", ms.in_order, {kernel:prepare(x, y), kernel})
refused("number 1 is no call of a kernel", ms.in_order, {three})
refused("number 3 is no call of a kernel", ms.in_order, {kernel:prepare(x, y), {{kernel:prepare(x, y)}, {"z"}}})
refused("lane 2 behind 1 calls is no list of calls", ms.in_order, {{{kernel:prepare(x, y)}, {}}})
refused("lane 1 behind 0 calls is no list of calls", ms.in_order, {{kernel:prepare(x, y)}})
refused("number 1 is no call of one kernel", ms.time_in_turn, {three}, 0.01)
