-- Functions of many blocks: how they are cut into groups, what is not cut, which groups are equal; and the run that
-- searches
-- these apart and composes the whole: trials, shares, results that are resumed, what is said.  usage: msched groups.lua
local ms = require "msched"
local te, ops = ms.te, ms.ops
local groups, tune = ms.load "search.groups.groups", ms.load "search.tune"
local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/measurer.lua")

local function P(name, ...) return te.placeholder({...}, "float32", name) end

-- What the cut of a function prints, a line a group.
local function cut_is(func, ...)
  local want, got = table.concat({...}, "\n"), tostring(ms.groups(func))
  assert(got == want, string.format("cut into\n%s\nand not\n%s", got, want))
end

local function refused(message, f, ...)
  local ok, got = pcall(f, ...)
  assert(not ok and tostring(got):find(message, 1, true),
         string.format("not refused as `%s`: %s", message, tostring(got)))
end

-- ---- Which block is in which group -------------------------------------------------------------------------------

-- A group takes 64 loop nests: 150 blocks in a row are three groups, and 1,000 are cut and have a space.
do
  local function chain(many)
    local X = P("X", 16, 16)
    local Y = X
    for _ = 1, many do Y = ops.relu(Y) end
    return te.func("chain", {X, Y})
  end
  local list = ms.groups(chain(150))
  assert(#list == 2 and list[1].weight == 2 and #list[1].blocks == 64 and #list[2].blocks == 22, tostring(list))
  local func, blocks = chain(1000), 0
  for _, g in ipairs(assert(groups.needed(func))) do
    assert(#g.blocks <= 64)
    blocks = blocks + g.weight * #g.blocks
  end
  assert(blocks == 1000 and groups.needed(chain(20)) == nil)
end

-- An anchor with its prologue, which it alone reads, and its epilogue; what two read is a group of its own.
do
  local X, W, V, b = P("X", 8, 8), P("W", 8, 8), P("V", 8, 8), P("b", 8)
  local own = ops.dense(ops.relu(X), W, {bias = b})
  cut_is(te.func("f", {X, W, b, ops.relu(own)}), "f_dense: anchor, relu_1 dense bias_add relu")
  local shared = ops.relu(X)
  cut_is(te.func("f", {X, W, V, ops.add(ops.dense(shared, W), ops.dense(shared, V))}),
         "f_relu: elementwise, relu", "f_dense: anchor, dense", "f_dense_2: anchor, dense_1 add")
end

-- What is added from before the anchor is its epilogue; of two anchors the latter has what joins them.
do
  local X, W, V = P("X", 8, 8), P("W", 8, 8), P("V", 8, 8)
  local first = ops.dense(X, W)
  cut_is(te.func("f", {X, W, V, ops.add(first, ops.dense(first, V))}), "f_dense: anchor, dense",
         "f_dense_2: anchor, dense_1 add")
end

-- Reductions over the same rows are a chain, with what goes over the rows between and after them; other rows are
-- another.
do
  local X, g, e = P("X", 6, 16), P("g", 16), P("e", 16)
  cut_is(te.func("f", {X, ops.softmax(X)}), "f_maximum: rows, maximum exponent total softmax")
  cut_is(te.func("f", {X, g, e, ops.layer_norm(X, g, e)}),
         "f_layer_norm_sum: rows, layer_norm_sum layer_norm_squares layer_norm")
  local rows = te.func("f", {X, ops.softmax(ops.transpose(ops.softmax(X), {2, 1}))})
  cut_is(rows, "f_maximum: rows, maximum exponent total softmax_1 transpose",
         "f_maximum_2: rows, maximum_1 exponent_1 total_1 softmax")
end

-- Convolutions take their padding, pools theirs.
do
  local X, W = P("X", 1, 8, 8, 4), P("W", 3, 3, 4, 4)
  local func = te.func("f", {X, W, ops.max_pool(ops.relu(ops.conv2d(X, W, {pad = 1})), {kernel = 2})})
  local list = ms.groups(func)
  assert(#list == 2 and list[1].kind == "anchor" and list[1].blocks[1] == "pad" and list[2].kind == "rows",
         tostring(list))
end

-- ---- Equal groups, and their functions ---------------------------------------------------------------------------

local function chain(n, extent)
  local X = P("X", extent, extent)
  local t = X
  for i = 1, n do
    local k, p = te.reduce_axis(extent, "k" .. i), t
    t = te.compute({extent, extent}, function(a, b) return te.sum(p[{a, k}] * X[{k, b}], k) end, "T" .. i)
  end
  return te.func("chain", {X, t})
end

do
  local list = ms.groups(chain(20, 16))
  assert(#list == 2 and list[1].weight == 1 and list[2].weight == 19 and #list[2].instances == 19)
  assert(list[2].instances[19].blocks[1] == "T20" and list[2].name == "chain_T_2")
  local names = {}
  for i, p in ipairs(list[2].func:params()) do names[i] = p.name end
  assert(table.concat(names, " ") == "T1 X T2",
         "what is read, in the order of the text, and then what is written: " .. table.concat(names, " "))
  assert(ms.groups(chain(5, 8))[2].func:hash() == ms.groups(chain(9, 8))[2].func:hash(),
         "names of instances do not tell groups apart")
  assert(not groups.needed(chain(5, 8)) and groups.needed(chain(6, 8)), "few anchors are searched together")
end

-- What only a group uses it allocates; what another reads is a parameter.
do
  local X, W, V = P("X", 8, 8), P("W", 8, 8), P("V", 8, 8)
  local y = ops.relu(ops.dense(X, W))
  local list = ms.groups(te.func("f", {X, W, V, ops.dense(y, V)}))
  local first = list[1].func
  assert(#first:params() == 3 and first:params()[3].name == "relu"
         and first:script():find "dense_1 = T.sblock_alloc_buffer", first:script())
  refused("there is no block `nothing`", first.extract, first, {"nothing"}, "g")
  refused("a list of names of blocks", first.extract, first, {}, "g")
  refused("item 1 of argument 1 is no name of a block, but a number", first.extract, first, {1}, "g")
  refused("item 1 of argument 3 is no name of a block, but a table", first.extract, first, {"dense"}, "g", {{}})
  refused("`two words` is no name of a function", first.extract, first, {"dense"}, "two words")
  refused("`` is no name of a function", first.extract, first, {"dense"}, "")
end

-- ---- What is not cut ---------------------------------------------------------------------------------------------

local function script(body)
  return ms.from_script(([[
@T.prim_func(s_tir=True)
def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    C = T.sblock_alloc_buffer((8, 8))
%s]]):format(body))
end
local function nest(name, out, value)
  return string.format('    for i, j in T.grid(8, 8):\n        with T.sblock("%s"):\n            vi, vj = \z
                        T.axis.remap("SS", [i, j])\n            %s[vi, vj] = %s\n', name, out, value)
end
do
  refused("two blocks are named `a`", ms.groups, script(nest("a", "C", "A[vi, vj]") .. nest("a", "B", "C[vi, vj]")))
  local loose = script(nest("a", "C", "A[vi, vj]") .. nest("b", "B", "C[vi, vj]")
                       .. "    for i in range(8):\n        B[i, i] = T.float32(0)\n")
  refused("`f` cannot be cut into groups: in `f`, buffers are used in ways that no block's regions declare", ms.groups,
          loose)
  refused("ms.groups takes a function", ms.groups, "f")
end

-- Blocks in one nest stay together.
do
  local body = '    for i in range(8):\n        for j in range(8):\n            with T.sblock("a"):\n                \z
                vi, vj = T.axis.remap("SS", [i, j])\n                C[vi, vj] = A[vi, vj]\n' ..
    '        for j in range(8):\n            with T.sblock("b"):\n                vi, vj = T.axis.remap("SS", [i, \z
     j])\n                B[vi, vj] = C[vi, vj]\n'
  local both = script(body)
  cut_is(both, "f_a: elementwise, a b")
  refused("block `b` is in one loop nest with blocks that are taken out", both.extract, both, {"a"}, "g")
end

-- ---- Runs --------------------------------------------------------------------------------------------------------

local function run(func, options)
  local m, events = support.measurer(), {}
  local all = {measurer = m, db = support.new_path(), jobs = 1, listen = function(e) events[#events + 1] = e end}
  for name, value in pairs(options) do all[name] = value end
  local tasks, path = tune.all(type(func) == "table" and func or {func}, all)
  collectgarbage() -- closes the store
  return tasks, events, path
end
local function trials_of(tasks)
  local sum = 0
  for _, t in ipairs(tasks) do sum = sum + t.done end
  return sum
end
local func = chain(6, 8)

-- The trials that are asked for are those of the groups and of the whole, which has one at least; its best gives its
-- schedule.
for _, trials in ipairs {1, 2, 3, 24} do
  local tasks = run(func, {trials = trials})
  local last = tasks[#tasks]
  assert(#tasks == 3 and last.func:hash() == func:hash() and last.parts and trials_of(tasks) == trials,
         trials .. " trials: " .. trials_of(tasks))
  assert(last.done >= 1 and last.fastest, trials .. " trials: the whole has none")
  local sch = ms.apply(func, last.fastest.trace)
  local want, got = ms.arrays_for(func, 1), ms.arrays_for(func, 1)
  ms.interpret(func, table.unpack(want))
  ms.interpret(sch:func(), table.unpack(got))
  assert(got[2]:difference(want[2], want[2]) == 0)
end
do -- the whole waits for parts that go on for several iterations, and its reference with it; it is measured after all
   -- of them
  local m, closed, order = support.measurer(), {}, {}
  function m.close_task(_, task) closed[task] = true end
  local submit = m.submit
  function m.submit(self, task, ...)
    assert(not closed[task], "a candidate of a task that was closed")
    order[#order + 1] = task
    return submit(self, task, ...)
  end
  local tasks = run(func, {trials = 60, measurer = m})
  assert(#tasks[1].wins > 2 and tasks[3].done >= 1 and order[#order] == 2 and closed[2])
  for i = 1, #order - tasks[3].done do assert(order[i] ~= 2, "the whole is measured before its parts are over") end
end
-- Where seconds end the run, the whole has some of them.
do
  local m, next_ = support.measurer(), nil
  next_ = m.next
  function m.next(...)
    ms.sleep(0.06)
    return next_(...)
  end
  local tasks = run(func, {trials = 100000, seconds = 8, measurer = m})
  assert(tasks[3].done >= 1 and tasks[3].fastest, "the whole has none of the seconds")
  assert(tasks[1].ended_as.why == "seconds" or tasks[1].ended_as.why == "policy"
         or tasks[1].ended_as.why == "exhausted", tasks[1].ended_as.why)
end
do
  local tasks = run({func, chain(7, 8)}, {total = 30}) -- of two functions that share a group
  assert(#tasks == 4 and trials_of(tasks) == 30 and tasks[1].weight == 5 + 6, trials_of(tasks))
  assert(tasks[3].done > 0 and tasks[4].done > 0, "each whole has some of the trials")
end

-- As it is, where that is asked for, or where the script describes the space.
assert(#run(func, {trials = 2, whole = true}) == 1)
assert(#run(func, {trials = 2, spaces = {{name = "none", apply = function(sch) return {sch} end}}}) == 1)

-- ---- Buffers that are written more than once: what depends on the order of the writes is one group ---------------

-- So many nests, each of which reads and writes some of a few buffers, at random, and what their blocks are called.
local function rewriting(seed, count)
  local stream, body, names = ms.stream(seed, 1, 1), {}, {}
  local function some(list) return list[stream:below(#list) + 1] end
  for i = 1, count do
    local out = some {"B", "C", "D", "E", "F", "G"}
    names[i] = "b" .. i
    body[i] = nest(names[i], out, string.format("%s[vi, vj] %s %s[vj, vi]", some {"A", "B", "C", "D", out},
                                                some {"+", "-"}, some {"A", "E", "F", "G"}))
    if some {1, 2, 3} == 1 then
      body[i] = string.format('    for i, j, k in T.grid(8, 8, 8):\n        with T.sblock("%s"):\n            vi, vj, \z
                               vk = T.axis.remap("SSR", [i, j, k])\n            with T.init():\n                \z
                               %s[vi, vj] = T.float32(0)\n            %s[vi, vj] = %s[vi, vj] + A[vi, vk]\n', names[i],
                              out, out, out)
    end
  end
  return ms.from_script(([[
@T.prim_func(s_tir=True)
def f(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32"), D: T.Buffer((8, 8), "float32"), E: T.Buffer((8, 8), "float32"), F: T.Buffer((8, 8), "float32"), G: T.Buffer((8, 8), "float32")):
%s]]):format(table.concat(body))), names
end

-- Groups, one after the other, compute what the function does; every block is in one of them.
local function computes_the_same(seed, count)
  local func_, names = rewriting(seed, count)
  local whole, arrays, by_name, seen = {}, {}, {}, {}
  for i, p in ipairs(func_:params()) do
    arrays[i], whole[i] = ms.array(p.shape, "float32"):random(i), ms.array(p.shape, "float32"):random(i)
    by_name[p.name] = arrays[i]
  end
  ms.build(func_)(table.unpack(whole))
  local list, order = ms.groups(func_), {}
  for _, g in ipairs(list) do
    for _, instance in ipairs(g.instances) do order[#order + 1] = instance end
  end
  table.sort(order, function(a, b) return a.core < b.core end)
  for _, instance in ipairs(order) do
    local part, given = func_:extract(instance.blocks, "part"), {}
    for i, p in ipairs(part:params()) do given[i] = by_name[p.name] end
    ms.build(part)(table.unpack(given))
    for _, name in ipairs(instance.blocks) do
      assert(not seen[name], name)
      seen[name] = true
    end
  end
  for _, name in ipairs(names) do assert(seen[name], name) end
  for i in ipairs(whole) do
    assert(whole[i]:difference(arrays[i]) == 0, string.format("seed %d: %s", seed, func_:script()))
  end
  return #order
end
do
  local most = 0
  for seed = 1, 60 do most = math.max(most, computes_the_same(seed, 3 + seed % 7)) end
  assert(most >= 3, most)
end

-- Such a function is tuned by its groups, and what is composed of them computes the same.
do
  local body = {}
  for i = 1, 6 do -- products that start from a copy, and are changed in place
    body[i] = nest("copy" .. i, "C", i == 1 and "A[vi, vj]" or "B[vi, vj]")
      .. nest("more" .. i, "C", "C[vi, vj] + A[vj, vi]") ..
      string.format('    for i, j, k in T.grid(8, 8, 8):\n        with T.sblock("product%d"):\n            vi, vj, vk \z
                     = T.axis.remap("SSR", [i, j, k])\n            with T.init():\n                D%d[vi, vj] = \z
                     T.float32(0)\n            D%d[vi, vj] = D%d[vi, vj] + C%d[vi, vk] * A[vk, vj]\n', i, i, i, i, i) ..
      nest("out" .. i, "B" .. i, "D" .. i .. "[vi, vj]")
    body[i] = body[i]:gsub("([CB])%[", function(name) return name .. (name == "B" and i - 1 or i) .. "[" end)
  end
  local allocated = {}
  for i = 1, 6 do
    for _, name in ipairs {"B", "C", "D"} do
      if name .. i ~= "B6" then
        allocated[#allocated + 1] = string.format("    %s%d = T.sblock_alloc_buffer((8, 8))\n", name, i)
      end
    end
  end
  local f =
    ms.from_script(string.format('@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((8, 8), "float32"), B6: T.Buffer((8, \z
                                  8), "float32")):\n%s%s', table.concat(allocated), table.concat(body)))
  local list = ms.groups(f)
  assert(list.anchors >= 6 and list.blocks == 24 and #list <= 4, tostring(list))
  local tasks = run(f, {trials = 24})
  local whole = tasks[#tasks]
  assert(whole.parts and whole.fastest and not whole.error, whole.error)
  assert(ms.apply(f, whole.fastest.trace):build():check() == 0)
end

-- What is told: the cut, groups before the whole, with their weights.
do
  local _, events = run(func, {trials = 16})
  assert(events[1].event == "cut" and events[1].size == 6 and events[1].groups == 2 and events[1].instances == 6)
  local starts = {}
  for _, e in ipairs(events) do if e.event == "start" then starts[#starts + 1] = e end end
  assert(starts[1].part_of == "chain" and starts[1].weight == 5 and starts[3].groups == 2 and starts[3].shared == 16)
end

-- How many spaces are open is said while they are opened, where that takes long.
do
  local every = tune.OPENING_SECONDS
  tune.OPENING_SECONDS = 0
  local _, events = run(func, {trials = 1})
  tune.OPENING_SECONDS = every
  local opened = {}
  for i, e in ipairs(events) do
    if e.event == "start" then break end
    if e.event == "opening" then opened[#opened + 1] = e.opened .. " of " .. e.tasks end
  end
  assert(table.concat(opened, ", ") == "0 of 3, 1 of 3, 2 of 3", table.concat(opened, ", "))
end

-- Where the seconds for opening are over, what is open is searched, the others are reported, and of a function that was
-- cut nothing stays where a group of it has no space.
do
  local share = tune.OPENING_SHARE
  local small = script(nest("a", "B", "A[vi, vj] + T.float32(1)"))
  local function opened(functions, options)
    tune.OPENING_SHARE = 1e-9 -- of 1,000 seconds: the first alone is opened
    local tasks, events = run(functions, setmetatable({trials = 1, seconds = 1000}, {__index = options}))
    tune.OPENING_SHARE = share
    for _, e in ipairs(events) do if e.event == "unopened" then return tasks, e end end
    return tasks
  end
  local tasks, event = opened {small, func, chain(3, 8)}
  assert(#tasks == 1 and tasks[1].func:hash() == small:hash() and tasks[1].fastest and tasks[1].done == 1)
  local names = event.functions
  assert(#names == 2 and names[1] == "chain" and event.task == "chain" and event.tasks == 5, event.tasks)
  refused("the 1000 seconds that the run has were over before the space of", opened, func)
  tune.OPENING_SHARE = share
  assert(select(2, opened(small)) == nil)
end

-- A function that should be cut and cannot: it is said, and searched as it is.
do
  local body = {}
  for i = 1, 26 do body[i] = nest("b" .. i, "B", "C[vi, vj] + T.float32(" .. i .. ")") end
  local func_ = script(nest("a", "C", "A[vi, vj]") .. table.concat(body))
  local _, events = run(func_, {trials = 1, policy = ms.policy {name = "none", run = function() end}})
  assert(events[1].event == "uncut" and events[1].reason == "all its blocks are one group", events[1].reason)
end

-- A run goes on where another ended: the store has the groups' records, and the composition's.
do
  local _, _, path = run(func, {trials = 12})
  local tasks = run(func, {trials = 4, db = path})
  for _, t in ipairs(tasks) do assert(t.recorded > 0, t.name .. " is not known") end
  local again = run(func, {no_tune = true, db = path})
  assert(again[3].ended_as.text == "the store has it" and again[3].fastest.seconds)
  local other = run(chain(9, 8), {trials = 4, db = path})
  assert(other[1].recorded > 0 and other[3].recorded == 0, "groups of another function are known")
end

-- Without a measurement each group's top-ranked candidate is composed, for CPUs and GPUs; a small function is as ever.
for _, target in ipairs {"native", "cuda -arch=sm_80"} do
  local tasks = run(func, {no_tune = true, target = target})
  local best = tasks[3].fastest
  assert(tasks[3].ended_as.why == "untuned" and best and not best.seconds, target)
  local want, got = ms.arrays_for(func, 1), ms.arrays_for(func, 1)
  ms.interpret(func, table.unpack(want))
  ms.interpret(ms.apply(func, best.trace):func(), table.unpack(got))
  assert(got[2]:difference(want[2], want[2]) == 0, target)
end

-- Where a group's best cannot be done to the whole, its next best is, and in the end the group as it was written.
do
  local compose = ms.load "search.groups.compose"
  local schedule, left_out = compose.schedule, nil
  function compose.schedule(f, cut, choose)
    for _, g in ipairs(cut) do
      if g.anchor == "T" and g.weight > 1 and #choose(g) > 0 then return nil, "group " .. g.name .. ": refused", g end
    end
    return schedule(f, cut, choose)
  end
  local tasks, events = run(func, {trials = 12})
  compose.schedule = schedule
  for _, e in ipairs(events) do if e.event == "uncomposed" then left_out = e end end
  assert(tasks[3].fastest and left_out and left_out.group == "chain_T_2"
         and left_out.reason == "group chain_T_2: refused")
end

-- The policy that the user names searches the groups.
do
  local tasks = run(func, {trials = 12, policy = "random"})
  assert(tasks[1].policy.name == "random" and tasks[3].policy.name == "composed")
end

-- By ms.tune, measured: the best of the whole.
do
  local best = ms.tune(func, {trials = 4, db = support.new_path()})
  assert(best.func:hash() == func:hash() and best.seconds > 0)
  best:build():check()
end
support.remove_stores()
