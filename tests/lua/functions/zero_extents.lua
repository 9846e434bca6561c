-- Extents of 0: written by TVMScript and te, run as nothing by the interpreter, LLVM, the C text and CUDA's lowering;
-- nothing of such a function is scheduled or tuned, with one message, but what ms.without_empty leaves of it. Random
-- functions, in which some extents are 0.
-- usage: msched zero_extents.lua [FUNCTIONS [SEED]]
local ms = require "msched"
local te = ms.te
local functions, seed = math.tointeger(arg[1] or 150), math.tointeger(arg[2] or 1)
local stream = ms.stream(seed)
local function pick(list) return list[stream:below(#list) + 1] end
local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local scratch <close> = setmetatable({}, {__close = function() os.execute("rm -rf " .. folder) end})

-- ---- Random functions ----

local SERIAL = {"T.serial", "T.parallel", "T.vectorized", "T.unroll", "range"}
local AXES = {"blockIdx.x", "threadIdx.x"}

-- Two stages through a buffer, and a reduction over its columns, with loops of any kind.
local function text_of(n, m, k, on_gpu)
  local lines = {"from tvm.script import tirx as T", "@T.prim_func(s_tir=True)", ('def main(X: T.Buffer((%d, %d), \z
                 "float32"), Y: T.Buffer((%d, %d), "float32"), R: T.Buffer((%d,), "float32")):'):format(n, m, n, m, n)}
  local function put(depth, ...) lines[#lines + 1] = (" "):rep(4 * depth) .. string.format(...) end
  local function nest(depth, names, extents, bound)
    for i, name in ipairs(names) do
      local kind = on_gpu and i <= (bound or 2) and ('T.thread_binding(%d, thread="%s")'):format(extents[i], AXES[i])
                   or ("%s(%d)"):format(i == 1 and pick(SERIAL) or i == #names and #names > 2 and "range"
                                        or pick {"range", "T.unroll", "T.serial"}, extents[i])
      put(depth + i - 1, "for %s in %s:", name, kind)
    end
    return depth + #names
  end
  put(1, 'B = T.sblock_alloc_buffer((%d, %d), "float32"%s)', n, m, "")
  local at = nest(1, {"i", "j"}, {n, m})
  put(at, 'with T.sblock("B"):')
  put(at + 1, 'vi, vj = T.axis.remap("SS", [i, j])')
  if pick {true, false} then put(at + 1, "T.where(i + j < %d)", n + m) end
  put(at + 1, "B[vi, vj] = X[vi, vj] %s T.float32(2)", pick {"*", "+", "-"})
  at = nest(1, {"i", "j"}, {n, m})
  put(at, 'with T.sblock("Y"):')
  put(at + 1, 'vi, vj = T.axis.remap("SS", [i, j])')
  put(at + 1, "Y[vi, vj] = %s",
      pick {"B[vi, vj] + T.float32(1)", "T.max(B[vi, vj], T.float32(0))", "T.Select(vi < vj, B[vi, vj], X[vi, vj])",
            ("B[(vi * %d + vj) // %d, (vi * %d + vj) %% %d]"):format(math.max(m, 1), math.max(m, 1), math.max(m, 1),
              math.max(m, 1))})
  at = nest(1, {"i", "k"}, {n, k}, 1)
  put(at, 'with T.sblock("R"):')
  put(at + 1, 'vi, vk = T.axis.remap("SR", [i, k])')
  put(at + 1, "with T.init():")
  put(at + 2, "R[vi] = T.float32(3)")
  put(at + 1, "R[vi] = R[vi] + %s", m > 0 and ("X[vi, T.min(vk, %d)]"):format(m - 1) or "T.float32(1)")
  return table.concat(lines, "\n") .. "\n"
end

-- What is left of a function without what never runs computes the same, is scheduled, and is read again as it is
-- written.
local function schedule_rest(f, arrays, fails)
  local rest = ms.without_empty(f)
  if not rest then return 0 end
  if rest:has_empty() or ms.from_script(rest:script()):has_empty() then fails("without_empty", "an extent is 0") end
  if ms.without_empty(rest):hash() ~= rest:hash() then fails("without_empty", "again it is another") end
  local x, y, r = arrays()
  ms.interpret(f, x, y, r)
  for _, how in ipairs {function(...) ms.interpret(rest, ...) end,
                        ms.build(ms.auto_schedule(f):func(), {reference = f})} do
    local _, y2, r2 = arrays()
    how(x, y2, r2)
    for p = 1, #y do if y2:tolist()[p] ~= y:tolist()[p] then fails("without_empty", y2) end end
    for p = 1, #r do if r2:tolist()[p] ~= r:tolist()[p] then fails("without_empty", r2) end end
  end
  return 1
end

local EXTENTS = {0, 0, 1, 2, 3, 8}
local rests = 0
local ran, sources = 0, {}
for count = 1, functions do
  local n, m, k = pick(EXTENTS), pick(EXTENTS), pick(EXTENTS)
  if n * m * k ~= 0 then k = 0 end
  local on_gpu = count % 3 == 0
  local text = text_of(n, m, k, on_gpu):gsub("T.parallel%(%d+%):\n(%s+for %a in )T.parallel", "range%1")
  local good, f = pcall(ms.from_script, text)
  assert(good, tostring(f) .. "\n" .. text)
  local function fails(what, message)
    error(("%s, function %d: %s\n%s"):format(what, count, tostring(message), text), 0)
  end
  -- Printed and read again it is the same.
  local printed = f:script()
  if ms.from_script(printed):script() ~= printed then fails("printed", "not the same") end
  if not f:has_empty() then fails("extents", "no extent is 0") end
  local function arrays()
    local x, y, r = ms.array({n, m}, "float32", function(p) return p - 3 end), ms.array({n, m}, "float32", 7),
      ms.array({n}, "float32", 9)
    return x, y, r
  end
  local x, y, r = arrays()
  local interpreted, why = pcall(ms.interpret, f, x, y, r)
  if not interpreted then fails("interpreted", why) end
  for i = 0, n - 1 do if k == 0 and r[{i}] ~= 9 then fails("interpreted", "the loop over nothing ran") end end
  if not on_gpu then
    local built, kernel = pcall(ms.build, f, {reference = f})
    if not built then fails("built", kernel) end
    local _, y2, r2 = arrays()
    kernel(x, y2, r2)
    for p = 1, n * m do if y2:tolist()[p] ~= y:tolist()[p] then fails("compiled", y2) end end
    for p = 1, n do if r2:tolist()[p] ~= r:tolist()[p] then fails("compiled", r2) end end
    local ok, message = pcall(kernel.check, kernel)
    if not ok then fails("checked", message) end
    if count % 4 == 1 then rests = rests + schedule_rest(f, arrays, fails) end
    local name = "z" .. count
    kernel:export(folder .. "/" .. name .. ".c", name)
    sources[#sources + 1] = name
  else
    for _, target in ipairs {"cuda -arch=sm_80", "cuda -arch=sm_90a"} do
      local ok, message = pcall(ms.check_lowered, f, f, target, 1)
      if not ok then fails("lowered", message) end
      local done, kernel = pcall(ms.build, f, {target = target, load = false})
      if not done then fails("CUDA", kernel) end
      kernel:export(folder .. "/zz.cu", "zz")
    end
  end
  -- Nothing of it is scheduled: looking is allowed.
  local s = ms.schedule(f)
  local b = s:get_sblock(pick {"B", "Y", "R"})
  local loops = {s:get_loops(b)}
  for _, step in ipairs {
    function() s:split(loops[1], {ms.rest, 2}) end, function() s:fuse(table.unpack(loops)) end,
    function() s:reorder(loops[2], loops[1]) end,
    function() s:parallel(loops[1]) end, function() s:unroll(loops[2]) end, function() s:compute_inline(b) end,
    function() s:cache_read(b, 0, "global") end,
    function() s:sample_perfect_tile(loops[1], 2, 4) end, function() s:rfactor(loops[2], 0) end,
    function() s:blockize(loops[2]) end,
    function() s:decompose_reduction(b, loops[1]) end, function() s:sample_compute_location(b) end,
  } do
    local done, message = pcall(step)
    if done or not tostring(message):find("an extent of the function is 0", 1, true) then
      fails("scheduled", message)
    end
  end
  ran = ran + 1
end

-- The C text of all is taken by a compiler.
if os.execute "cc --version >/dev/null 2>&1" and #sources > 0 then
  assert(os.execute(("cd '%s' && cc -w -Wno-psabi -fsyntax-only z*.c"):format(folder)))
end

-- ---- te: a reduction over nothing is what one begins with ----

for _, K in ipairs {0, 3} do
  for _, N in ipairs {0, 2} do
    local X, Y = te.placeholder({2, K}, "float32", "X"), te.placeholder({K, N}, "float32", "Y")
    local k = te.reduce_axis(K, "k")
    local g = te.func("g", {X, Y, te.compute({2, N}, function(i, j) return te.sum(X[{i, k}] * Y[{k, j}], k) end, "Z"),
      te.compute({2}, function(i) return te.argmax({k, X[{i, k}]}, k) end, "V")})
    local x, y = ms.array({2, K}, "float32", 1), ms.array({K, N}, "float32", 2)
    local function run(how)
      local z, at, v = ms.array({2, N}, "float32", 7), ms.array({2}, "int32", 7), ms.array({2}, "float32", 7)
      how(x, y, z, at, v)
      for _, e in ipairs(z:tolist()) do assert(e == 2 * K, e) end
      for _, e in ipairs(at:tolist()) do assert(e == (K == 0 and -1 or 0), e) end
    end
    run(function(...) ms.interpret(g, ...) end)
    local kernel = ms.build(g, {reference = g})
    run(kernel)
    kernel:check()
    kernel:time(table.unpack(ms.arrays_for(g, 1)))
  end
end

-- ---- Arrays, files, tuning ----

local empty = ms.array({3, 0}, "int8")
empty:save(folder .. "/empty.npy")
local again = ms.load_array(folder .. "/empty.npy")
assert(#again == 0 and tostring(again) == tostring(empty) and #again:tolist() == 0)
assert(not pcall(ms.array, {3, -1}))
local X = te.placeholder({0, 4}, "float32", "X")
local f = te.func("none", {X, te.compute({0, 4}, function(i, j) return X[{i, j}] + 1 end, "Y")})
for name, call in pairs {tune = ms.tune, auto_schedule = ms.auto_schedule} do
  local done, message = pcall(call, f, {db = folder .. "/none.db", trials = 1})
  assert(not done and tostring(message):find("none: nothing to tune: an extent of it is 0", 1, true),
         name .. ": " .. tostring(message))
end
-- Of a function with parts of no elements the others are tuned, and found by the function.
do
  local A, E = te.placeholder({32, 32}, "float32", "A"), te.placeholder({32, 0}, "float32", "E")
  local k = te.reduce_axis(32, "k")
  local parts =
    te.func("parts", {A, E, te.compute({32, 32}, function(i, j) return te.sum(A[{i, k}] * A[{k, j}], k) end, "C"),
                      te.compute({32, 0}, function(i, j) return E[{i, j}] + 1 end, "F")})
  local best = ms.tune(parts, {db = folder .. "/parts.db", trials = 2})
  local a, e, c, f0 = ms.array({32, 32}, "float32", 1), ms.array {32, 0}, ms.array {32, 32}, ms.array {32, 0}
  best:build()(a, e, c, f0)
  assert(c[{31, 31}] == 32)
  assert(ms.auto_schedule(parts):func():hash() ~= parts:hash())
  local store = ms.store(folder .. "/parts.db", {read_only = true})
  assert(#store:workloads(ms.without_empty(parts)) == 1 and #store:workloads(parts) == 0)
  assert(ms.without_empty(f) == nil)
  store:close()
end
local bad, message = pcall(ms.from_script, 'from tvm.script import tirx as T\n@T.prim_func\ndef main(X: \z
                                            T.Buffer((-1,), "int8")):\n    X[0] = T.int8(0)\n')
assert(not bad and message:find "it must not be negative", message)
assert(rests > functions / 20, rests)
print(string.format("%d functions with extents of 0, the rest of %d scheduled: ok", ran, rests))
