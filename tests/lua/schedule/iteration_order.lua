-- The order of iterations: of blocks that read what they write, or write what others do, what is accepted computes the
-- same, and what needs its order is refused, by every instruction that changes it.
local ms = require "msched"

local head = "from tvm.script import tirx as T\n@T.prim_func(s_tir=True)\n"
local params =
  'def main(A: T.Buffer((40, 40), "int32"), B: T.Buffer((40, 40), "int32"), P: T.Buffer((40,), "int32")):\n'

-- A nest over 8 x 12 with a block a statement (or a list of lines); kinds: of its iterations; regions: lines that say
-- them, where detection leaves out what a block with an init reads of its result.
local function nest(statements, kinds, init, regions)
  local lines = {head, params, "    for i, j in T.grid(8, 12):\n"}
  for n, statement in ipairs(statements) do
    lines[#lines + 1] = ('        with T.sblock("b%d"):\n'):format(n)
    lines[#lines + 1] = ('            vi, vj = T.axis.remap("%s", [i, j])\n'):format(kinds or "SS")
    for _, region in ipairs(regions or {}) do lines[#lines + 1] = "            " .. region .. "\n" end
    if init then lines[#lines + 1] = ("            with T.init():\n                %s\n"):format(init) end
    for line in statement:gmatch "[^\n]+" do lines[#lines + 1] = "            " .. line .. "\n" end
  end
  return ms.from_script(table.concat(lines))
end

local function data()
  return ms.array({40, 40}, "int32", function(p) return (p * 7919 + 13) % 23 - 11 end),
         ms.array({40, 40}, "int32", function(p) return (p * 104729 + 5) % 19 - 9 end),
         ms.array({40}, "int32", function(p) return (p * 5 + p // 3) % 9 end)
end

local function same(f, g)
  local a, b, p = data()
  local x, y = data()
  ms.interpret(f, a, b, p)
  ms.interpret(g, x, y, p)
  return a:difference(x) == 0 and b:difference(y) == 0
end

-- Whether the steps are accepted; if they are, they must change no result.
local function accepts(f, steps, what)
  local s = ms.schedule(f)
  local good, message = pcall(steps, s, s:get_sblock "b1")
  if not good then
    local known = message:find("their order", 1, true) or message:find("another of", 1, true) or
                  message:find("not complete", 1, true) or message:find("no reduction", 1, true) or
                  message:find("one to one", 1, true)
    assert(known, what .. ": " .. message)
  else
    assert(same(f, s:func()), what .. ": accepted, and another result:\n" .. tostring(s:func()))
  end
  return good
end

local steps = {
  swap = function(s, b) local i, j = s:get_loops(b) s:reorder(j, i) end,
  tile = function(s, b)
    local i, j = s:get_loops(b)
    local a, c = s:split(i, {2, 4})
    local d, e = s:split(j, {3, 4})
    s:reorder(a, d, c, e)
  end,
  inner = function(s, b) -- within one row
    local _, j = s:get_loops(b)
    local d, e = s:split(j, {3, 4})
    s:reorder(e, d)
  end,
  outer = function(s, b) -- rows
    local i = s:get_loops(b)
    local a, c = s:split(i, {2, 4})
    s:reorder(c, a)
  end,
  digits = function(s, b) -- through one loop
    local i, j = s:get_loops(b)
    local x, y, z = s:split(s:fuse(i, j), {4, 6, 4})
    s:reorder(z, x, y)
  end,
  uneven = function(s, b)
    local i, j = s:get_loops(b)
    local x, y = s:split(s:fuse(i, j), {10, 10})
    s:reorder(y, x)
  end,
  layout = function(s, b) s:transform_block_layout(b, "lambda i, j: (j, i)") end,
  sums = function(s, b) s:transform_block_layout(b, "lambda i, j: ((i * 12 + j) % 8, (i * 12 + j) // 8)") end,
  rows = function(s, b) s:transform_block_layout(b, "lambda i, j: (i // 4, i % 4, j)") end,
  parallel = function(s, b) s:parallel((s:get_loops(b))) end,
  vectorize = function(s, b) s:vectorize((select(2, s:get_loops(b)))) end,
  bind = function(s, b) s:bind((s:get_loops(b)), "blockIdx.x") end,
  virtual = function(s, b) s:bind((s:get_loops(b)), "vthread.x") end,
}

-- Statement, and the steps that must be accepted; all others are refused.
local all = "swap tile inner outer digits uneven"
local cases = {
  {"A[vi, vj] = A[vi, vj] * 3 + 1", all .. " vectorize parallel bind virtual"}, -- each element in its place
  {"A[vi, vj // 4 * 4 + vj % 4] = A[vi, vj] * 3 + 1", all},
  {"A[vi * 12 % 5, vj] = A[vi * 12 % 5, vj] + B[vi, vj]", all}, -- a sum, of whatever
  {"A[P[vi], vj] = A[P[vi], vj] + B[vi, vj]", all},
  {"A[0, 0] = T.max(A[0, 0], B[vi, vj])", all},
  {"A[vi, vj] = A[vi + 8, vj] + 1", all},
  {"A[2 * vi, vj] = A[2 * vi + 1, vj] * 3", all},
  {"A[vi, vj] = B[vj, vi]\nB[vi + 20, vj] = A[vi, vj]", all},
  {"A[vi + 1, vj] = A[vi, vj] * 3 + 1", "swap tile inner"},
  {"A[vi, vj + 1] = A[vi, vj] * 3 + 1", "swap tile outer"},
  {"A[vi + 1, vj + 1] = A[vi, vj] * 3 + 1", "swap tile inner"},
  {"A[vi + 1, vj] = A[vi, vj + 1] * 3 + 1", "inner"},
  {"A[vi, vj] = A[vi + 1, vj] * 3 + 1", "swap tile inner"}, -- what was there before
  {"A[vi, vj] = A[vj, vi] * 3 + 1", ""},
  {"A[vi, vj] = A[vi, vj] + A[vi, vj + 1]", "swap tile outer"},
  {"A[0, vj] = B[vi, vj]", "swap tile inner vectorize"}, -- the last one stays
  {"A[vi // 2, vj] = B[vi, vj]", "swap tile inner outer vectorize"},
  {"A[P[vi], vj] = B[vi, vj]", "swap tile inner vectorize"},
  {"A[0, vj] = A[0, vj] * 2 + B[vi, vj]", "swap tile inner"},
  {"A[0, 0] = B[vi, vj] - A[0, 0]", ""},
  {"if B[vi, vj] > A[0, 0]:\n    A[0, 0] = B[vi, vj]\n    A[1, 0] = vi * 12 + vj", ""},
}
local count = 0
for _, case in ipairs(cases) do
  local f = nest {case[1]}
  for name, step in pairs(steps) do
    local as = ({layout = "swap", sums = "uneven"})[name] or name -- maps that do as much; rows keep their order
    local wanted = name == "rows" or (" " .. case[2] .. " "):find(" " .. as .. " ", 1, true) ~= nil
    local got = accepts(f, step, case[1] .. ", " .. name)
    assert(got == wanted, ("%s, %s: %s"):format(case[1], name, got and "accepted" or "refused"))
    count = count + 1
  end
end

-- Several blocks: what one leaves for another, in the same iteration or in a later one.
for _, case in ipairs {
  {{"B[vi, vj] = A[vi, vj]", "A[vi, vj] = B[vi, vj] * 3"}, "swap tile outer inner digits parallel"},
  {{"B[vi, vj] = A[vi, vj]", "A[vi + 1, vj] = B[vi, vj] * 3"}, "swap tile inner"},
  {{"B[vi, vj] = A[vi, vj + 1]", "A[vi + 1, vj] = B[vi, vj] * 3"}, "inner"},
  {{"B[vi, vj] = 3", "A[vi, vj] = B[vi + 1, vj]"}, "swap tile inner"},
  {{"A[vi, vj] = 3", "A[vi + 1, vj + 1] = 4"}, "swap tile inner"},
} do
  for _, name in ipairs {"swap", "tile", "outer", "inner", "digits", "parallel"} do
    local wanted = (" " .. case[2] .. " "):find(" " .. name .. " ", 1, true) ~= nil
    local got = accepts(nest(case[1]), steps[name], table.concat(case[1], "; ") .. ", " .. name)
    assert(got == wanted, ("%s, %s: %s"):format(table.concat(case[1], "; "), name, got and "accepted" or "refused"))
  end
end

-- Reductions: of a commutative operation any order will do; of others that in which each element's steps came.
local decompose = function(s, b) s:decompose_reduction(b, (s:get_loops(b))) end
for _, case in ipairs {
  {"A[vi, 0] = A[vi, 0] + B[vi, vj]", "swap inner decompose parallel"},
  {"A[vi, 0] = B[vi, vj] + A[vi, 0] - B[vj, vi]", "swap inner decompose parallel"},
  {"A[vi, 0] = T.min(B[vi, vj], A[vi, 0])", "swap inner decompose parallel"},
  {"A[vi, 0] = T.if_then_else(vj < 5, A[vi, 0] + B[vi, vj], A[vi, 0])", "swap inner decompose parallel"},
  {"A[vi, 0] = A[vi, 0] * 2 + B[vi, vj]", "swap decompose parallel"},
  {"A[vi, 0] = B[vi, vj] - A[vi, 0]", "swap decompose parallel"},
  {"A[vi, 0] = B[vi, vj]", "swap decompose parallel"},
  {"A[vi, 0] = A[vi, 0] + B[vi, vj] * A[(vi + 7) % 8, 0]", "", {"T.reads(A[0:8, 0], B[vi, vj])", "T.writes(A[vi, 0])"}},
  {"A[vi, 0] = A[vi, 0] + B[vi, vj] * A[vi + 1, 0]", "", {"T.reads(A[vi + 1, 0], B[vi, vj])", "T.writes(A[vi, 0])"}},
} do
  for name, step in pairs {swap = steps.swap, inner = steps.inner, decompose = decompose, parallel = steps.parallel} do
    local wanted = (" " .. case[2] .. " "):find(" " .. name .. " ", 1, true) ~= nil
    local got = accepts(nest({case[1]}, "SR", "A[vi, 0] = 1", case[3]), step, case[1] .. ", " .. name)
    assert(got == wanted, ("reduction %s, %s: %s"):format(case[1], name, got and "accepted" or "refused"))
  end
end

-- Arg reductions: where equal elements keep the one that came first, its steps keep their order, and are not taken
-- apart; where the smaller or the larger index wins, they may be.
local function arg(keeps, init, strict)
  return ms.from_script(head .. ([[
def main(X: T.Buffer((4, 24), "int32"), I: T.Buffer((4,), "int32"), V: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 24):
        with T.sblock("am"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = -1
                V[vi] = T.int32(%s)
            v_i: T.let[T.int32] = T.Select(%s, I[vi], vk)
            v_v: T.let[T.int32] = T.Select(V[vi] %s X[vi, vk], V[vi], X[vi, vk])
            I[vi] = v_i
            V[vi] = v_v
]]):format(init, keeps, (init < 0 and ">" or "<") .. (strict and "" or "=")))
end
local arg_steps = {
  rfactor = function(s, k) s:rfactor((select(2, s:split(k, {6, 4}))), 0) end,
  tiles = function(s, k) local a, b = s:split(k, {6, 4}) s:reorder(b, a) end,
  bind = function(s, k) s:bind((select(2, s:split(k, {6, 4}))), "threadIdx.x") end,
  swap = function(s, k, i) s:reorder(k, i) end,
}
for keeps, free in pairs {["V[vi] >= X[vi, vk]"] = false, ["V[vi] <= X[vi, vk]"] = false,
                          ["V[vi] > X[vi, vk] or (V[vi] == X[vi, vk] and I[vi] < vk)"] = true,
                          ["V[vi] < X[vi, vk] or (V[vi] == X[vi, vk] and I[vi] > vk)"] = true} do
  for strict = 0, free and 1 or 0 do
    strict = strict == 1
    local f = arg(keeps, keeps:find ">" and not keeps:find "<.-or" and -2147483648 or 2147483647, strict)
    for name, step in pairs(arg_steps) do
      local s = ms.schedule(f)
      local i, k = s:get_loops(s:get_sblock "am")
      local good, message = pcall(step, s, k, i)
      local wanted = name == "swap" or (free and (strict or name ~= "rfactor"))
      assert(good == wanted, keeps .. ", " .. name .. ": " .. tostring(message))
      if good then
        local x = ms.array({4, 24}, "int32", function(p) return p * 7 % 5 end)
        local a, b, v = ms.array({4}, "int32"), ms.array({4}, "int32"), ms.array({4}, "int32")
        ms.interpret(f, x, a, v)
        ms.interpret(s:func(), x, b, v)
        assert(a:difference(b) == 0, keeps .. ", " .. name)
      else
        assert(message:find "came first" or message:find "writes" or message:find "no known reducer", message)
      end
    end
  end
end

-- Random accesses and random orders: whatever is accepted computes the same.
local seed, accepted, refused = 1, 0, 0
local function random(n)
  seed = (seed * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
  return (seed >> 33) % n
end
local function index()
  local forms = {"vi + %d", "vj + %d", "vi * 2 + %d", "vj * 2 + %d", "vi + vj + %d", "(vi * 12 + vj) // 8 + %d",
                 "(vi * 12 + vj) %% 8 + %d", "vj // 3 + %d", "vi %% 4 + %d", "7 - vi + %d", "%d"}
  return forms[random(#forms) + 1]:format(random(3))
end
for _ = 1, tonumber(os.getenv "MSCHED_RANDOM_ORDERS") or 300 do
  local to, from = index() .. ", " .. index(), index() .. ", " .. index()
  local operation = ({"A[%s] * 3 + B[vi, vj]", "A[%s] + B[vi, vj]", "T.max(A[%s], B[vi, vj])"})[random(3) + 1]
  local f = nest {("A[%s] = " .. operation):format(to, random(3) == 0 and to or from)}
  local done = accepts(f, function(s, b)
    local loops = {s:get_loops(b)}
    if random(2) == 0 then loops = {s:fuse(table.unpack(loops))} end
    local parts = {}
    for _, loop in ipairs(loops) do
      local outer, inner = s:split(loop, {ms.rest, random(5) + 2})
      parts[#parts + 1], parts[#parts + 2] = outer, inner
    end
    for k = #parts, 2, -1 do
      local other = random(k) + 1
      parts[k], parts[other] = parts[other], parts[k]
    end
    s:reorder(table.unpack(parts))
  end, tostring(f))
  accepted, refused = accepted + (done and 1 or 0), refused + (done and 0 or 1)
end
assert(accepted > 50 and refused > 50, ("%d accepted, %d refused"):format(accepted, refused))

-- A pair whose values are variables in place of bound ones reduces like one: every primitive takes it, and computes the
-- same.
do
  local text = head .. [[
def main(X: T.Buffer((6, 24), "int32"), I: T.Buffer((6,), "int32"), V: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 24):
        with T.sblock("am"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = -1
                V[vi] = T.int32(-2147483648)
            v_i: T.int32 = T.Select(V[vi] > X[vi, vk] or (V[vi] == X[vi, vk] and I[vi] < vk), I[vi], vk)
            v_v: T.int32 = T.Select(V[vi] > X[vi, vk], V[vi], X[vi, vk])
            I[vi] = v_i
            V[vi] = v_v
]]
  local f = ms.from_script(text)
  local x = ms.array({6, 24}, "int32", function(p) return p * 7 % 5 end)
  local wanted, values = ms.array({6}, "int32"), ms.array({6}, "int32")
  ms.interpret(f, x, wanted, values)
  for name, step in pairs {
    rfactor = function(s, _, k) s:rfactor(k, 0) end,
    inner = function(s, _, k) s:rfactor((select(2, s:split(k, {6, 4}))), 1) end,
    outer = function(s, i, k) s:rfactor((s:split(k, {6, 4})), 0) end,
    reorder = function(s, i, k) s:reorder(k, i) end,
    split = function(s, i, k) local a, b = s:split(k, {6, 4}) s:reorder(b, i, a) end,
    decompose = function(s, i, k) s:decompose_reduction(s:get_sblock "am", k) end,
    parallel = function(s, i) s:parallel(i) end,
    vectorize = function(s, i, k) s:vectorize(i) end,
    unroll = function(s, i, k) s:unroll(k) end,
    blockize = function(s, i, k) s:blockize(k) end,
    cache_write = function(s) s:cache_write(s:get_sblock "am", 0, "global") end,
    cache_read = function(s) s:cache_read(s:get_sblock "am", 0, "global") end,
    threads = function(s, i, k)
      s:bind(i, "blockIdx.x")
      s:bind((select(2, s:split(k, {6, 4}))), "threadIdx.x")
    end,
  } do
    local s = ms.schedule(f)
    local done, message = pcall(step, s, s:get_loops(s:get_sblock "am"))
    assert(done or name == "vectorize" or name == "blockize", name .. ": " .. tostring(message))
    local at, v = ms.array({6}, "int32"), ms.array({6}, "int32")
    ms.interpret(s:func(), x, at, v)
    for i = 0, 5 do assert(at[{i}] == wanted[{i}] and v[{i}] == values[{i}], name) end
    if name == "threads" then
      ms.check_lowered(f, s:func(), "cuda -arch=sm_80", 1)
    elseif done then
      ms.build(s:func(), {reference = f}):check()
    end
  end
  for _, other in ipairs {
    {"            I%[vi%] = v_i\n", "            v_i = v_i + 1\n            I[vi] = v_i\n"}, -- assigned again
    {"X%[vi, vk%]%)\n            I", "X[vi, vk] + v_i)\n            I"}, -- one of the other
  } do
    local changed, count = text:gsub(other[1], other[2], 1)
    assert(count == 1)
    local s = ms.schedule(ms.from_script(changed))
    local i, k = s:get_loops(s:get_sblock "am")
    local good, message = pcall(s.rfactor, s, k, 0)
    assert(not good and message:find "reduce" or message:find "store", message)
  end
end

-- Fused loops past their variables' type: the message says which type there is, and which to take.
do
  local f = ms.from_script(head .. [[
def main(Y: T.Buffer((65536, 65536), "int8")):
    for i, j in T.grid(65536, 65536):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.int8(1)
]])
  local s = ms.schedule(f)
  local good, message = pcall(s.fuse, s, s:get_loops(s:get_sblock "Y"))
  assert(not good and message:find "past int32" and message:find "T.int64", message)
end

-- However the variables are numbered, which nodes note modulo 64: reductions of a block with a predicate share none.
do
  local f = ms.from_script(head .. [[
def main(A: T.Buffer((2, 4, 7, 7, 3, 16), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((2, 4, 7, 7), "int32")):
    for i in range(8):
        with T.sblock("other"):
            vi = T.axis.spatial(8, i)
            B[vi] = vi
    for n, d, i, j, r, k in T.grid(2, 4, 7, 7, 3, 16):
        with T.sblock("sum"):
            vn, vd, vi, vj, vr, vk = T.axis.remap("SSSSRR", [n, d, i, j, r, k])
            with T.init():
                C[vn, vd, vi, vj] = 0
            C[vn, vd, vi, vj] = C[vn, vd, vi, vj] + A[vn, vd, vi, vj, vr, vk]
]])
  for more = 0, 64 do
    local s = ms.schedule(f)
    for _ = 1, more do s:fuse {s:split(s:get_loops(s:get_sblock "other"), {2, 4})} end
    local n, d, i, j, r, k = s:get_loops(s:get_sblock "sum")
    local outer, middle, inner = s:split(s:fuse {n, d, i, j}, {ms.rest, 16, 28})
    local k0, k1 = s:split(k, {1, 16})
    s:reorder {outer, k0, middle, r, k1, inner}
  end
end

print(count + accepted + refused .. " orders: ok")
