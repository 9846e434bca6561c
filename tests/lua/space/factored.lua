-- Spaces factored by block: as many sketches as the product of the blocks' choices, opened by as many schedules as
-- their sum; each sketch of the whole is a combination of pieces, and each combination a sketch; steps from one to
-- another change one block alone; the search asks for the same candidates with 1 and 2 jobs, and stopped and resumed.
-- usage: msched factored.lua ROOT
local ms = require "msched"
local te = ms.te
local targets, space, factored, tune = ms.load "rules.targets", ms.load "rules.space", ms.load "rules.factored",
  ms.load "search.tune"
local root = arg[1]
local support = dofile(root .. "/tests/support/lua/measurer.lua")
local lenet = assert(loadfile(root .. "/lua/examples/lenet.lua"))(1)[1]

local function text(combination) return table.concat(combination, " ") end

-- ---- Of a network, on a CPU ----------------------------------------------------------------------------------------

local opened = tune.open(lenet, ms.target "x86-64-v3", {seed = 1})
local product = opened.product
local sum, size, most = 0, 1, 0
for _, b in ipairs(product:counts()) do
  sum, size, most = sum + b.choices, size * b.choices, math.max(most, b.choices)
end
assert(#product.blocks >= 5 and size == product:size() and size > 256 and not opened.thinned
       and not next(opened.refused))
assert(#opened.sketches == sum - #product.blocks + 1, "not each choice once")

-- So many draws have every choice; each combination is a sketch that is found again, decided, as text and
-- postprocessed.
local function draw_all(func, target, whole, count)
  local seen, jobs, combinations = {}, {}, {}
  for n = 0, count - 1 do
    combinations[n + 1] = whole:combination(1, n)
    for b, k in ipairs(combinations[n + 1]) do seen[b .. " " .. k] = true end
    jobs[n + 1] = {trace = assert(whole:sketch(combinations[n + 1])), seed = 1, candidate = n, resample = true}
  end
  local pool <close> =
    setmetatable({pool = ms.pool(func, {jobs = 2, target = target})}, {__close = function(p) p.pool:close() end})
  local made, refused = pool.pool:replay(jobs, false)
  return combinations, made, refused, seen
end
local combinations, made, refused, seen = draw_all(lenet, "x86-64-v3", product, 4 * most)
assert(#ms.sorted_keys(seen) == sum, "a choice is never drawn")
local accepted = {}
for i, c in ipairs(made) do
  if c then
    local found = product:combination_of(c.sketch_trace)
    assert(found and text(found) == text(combinations[i]), "a sketch is not found again")
    found = product:combination_of(ms.read_trace(c.trace:json()):simplified(false))
    assert(found and text(found) == text(combinations[i]), "nor as a record has it")
    accepted[#accepted + 1] = c
  end
end
assert(#accepted >= 3 * most, #accepted .. " candidates are accepted")
for _, r in ipairs(refused) do assert(r.by == "disallow_dynamic_loop", "refused by " .. r.by) end
for i = 1, 3 do
  ms.build(ms.apply(lenet, accepted[i * #accepted // 3].trace):func(), {reference = lenet}):check {tolerance = 1e-3}
end
assert(product:combination_of(ms.schedule(lenet).trace) == nil)

-- Steps: one block's choice is another, the decisions of what stays are those that were.
local function decisions_of(trace)
  local list = {}
  for _, d in ipairs(trace:draws()) do if d.decision then list[#list + 1] = d.kind .. text(d.decision) end end
  return list
end
local start = accepted[1].sketch_trace
local from, steps_seen = product:combination_of(start), 0
for _, trace in ipairs(product:neighbours(start)) do
  local to, differ = product:combination_of(trace), 0
  for b in ipairs(from) do differ = differ + (to[b] ~= from[b] and 1 or 0) end
  local kept, before = decisions_of(trace), decisions_of(start)
  assert(differ == 1 and #kept > 0 and #kept <= #before)
  local at = 1 -- in their order
  for _, d in ipairs(kept) do
    while before[at] ~= d do at = at + 1 assert(at <= #before, "a decision was not kept") end
    at = at + 1
  end
  steps_seen = steps_seen + 1
end
assert(steps_seen == sum - #product.blocks)

-- Crossover: a choice of the other's, with its decisions; by chance another choice, which is open.
local crossed, open = 0, 0
for i = 2, #accepted do
  local other = accepted[i].sketch_trace
  local theirs = product:combination_of(other)
  local trace = product:mutate(start, ms.stream(1, i), other)
  local to, differ, from_other = product:combination_of(trace), 0, true
  for b in ipairs(from) do
    if to[b] ~= from[b] then differ, from_other = differ + 1, from_other and to[b] == theirs[b] end
  end
  assert(differ == 1)
  if #decisions_of(trace) == #trace:draws() then
    assert(from_other)
    crossed = crossed + 1
  else
    open = open + 1
  end
end
assert(crossed > 0 and open > 0, "it only crosses, or never")

-- ---- On a GPU: blocks that draw together are one -----------------------------------------------------------------

-- With sums that are divided or shared out, and rows that are kept, there are more sketches than are kept as a whole.
local rules, left_out = {}, {keep_rows = true, matvec = true}
for _, name in ipairs(targets.cuda.rules) do if not left_out[name] then rules[#rules + 1] = name end end
local undivided = targets.changed(targets.cuda, {rules = rules, multi_level_tiling = function(target)
  return targets.changed(targets.cuda.multi_level_tiling(target), {split = false})
end})
local parts = space.parts(targets.context(ms.target "cuda -arch=sm_80", undivided))
local states, report = space.walk(lenet, parts, 1, {})
local none, groups = factored.new(space.traces(states), report.sites, {})
assert(none == nil and groups.maximum == groups.total and groups.conv2d ~= groups.dense)
states, report = space.walk(lenet, parts, 1, groups)
local on_gpu = factored.new(space.traces(states), report.sites, groups)
local whole, distinct = space.walk(lenet, parts, 1, nil), {}
for _, s in ipairs(whole) do
  distinct[text(assert(on_gpu:combination_of(s.sch.trace:simplified(false)),
                       "a sketch of the whole is none of the product"))] = true
end
assert(#whole == on_gpu:size() and #ms.sorted_keys(distinct) == #whole, "the product is not the whole")
assert(#space.generate(lenet, parts, 1) == #whole, "a small product is made as a whole")

-- ---- Users' rules; choices that do not go together ---------------------------------------------------------------

local function chain(length)
  local A = te.placeholder({8, 8}, "float32", "A")
  local list = {A}
  for i = 1, length do
    local before = list[#list]
    list[#list + 1] = te.compute({8, 8}, function(x, y) return before[{x, y}] + i end, "B" .. i)
  end
  return te.func("chain", {A, list[#list]})
end
local marks = {name = "marks", apply = function(sch, block) -- two choices for every block
  if sch:block_name(block) == "root" then return {sch} end
  local other = sch:copy()
  other:annotate(other:handle(block), "marked", 1)
  return {sch, other}
end}
local follows = {name = "follows", apply = function(sch, block) -- what becomes of B2 depends on what B3 and B4 chose
  if sch:block_name(block) ~= "B2" then return {sch} end
  for _, name in ipairs {"B3", "B4"} do
    if sch:annotation(sch:get_sblock(name), "marked") then sch:annotate(block, "after", name) end
  end
  return {sch}
end}
local raised = false
local ten = chain(10)
local function open_with(rules)
  local own = space.parts(targets.context(ms.target "native", targets.changed(targets.llvm,
                                          {rules = rules, postprocs = {}, mutators = {}})))
  local sketches, walked, product_ = space.generate(ten, own, 1)
  return product_, sketches, walked
end
local marked = open_with {marks}
assert(marked:size() == 1024 and #marked.blocks == 10)
for n = 0, 63 do assert(ms.apply(ten, marked:sketch(marked:combination(3, n)))) end
local following = open_with {marks, follows}
assert(following:size() == 1024)
local together, apart = 0, 0
for n = 0, 63 do
  local combination = following:combination(3, n)
  local chosen = {}
  for b, block in ipairs(following.blocks) do chosen[block.name] = combination[b] end
  local trace, why = following:sketch(combination)
  if chosen.B3 == 2 and chosen.B4 == 2 then
    assert(not trace and why == "choice 2 of block B3 and choice 2 of block B4 schedule block B2 in different ways",
           why)
    apart = apart + 1
  else
    assert(trace, why)
    together = together + 1
  end
end
assert(together > 0 and apart > 0)

-- A rule that takes back what others recorded leaves nothing to cut: some are drawn, as ever.
local takes_back = {name = "takes back", apply = function(sch, block)
  if sch:block_name(block) == "root" and not raised then while #sch.trace > 0 do sch:undo() end end
  return {sch}
end}
local no_product, _, walked = open_with {marks, takes_back}
assert(no_product == nil and walked.thinned)

-- ---- Tuned ----------------------------------------------------------------------------------------------------------

-- Three products in a row: a network whose candidates cost little.
local function products(n)
  local result = te.placeholder({n, n}, "float32", "A")
  local params = {result}
  for i = 1, 3 do
    local left, right, k = result, te.placeholder({n, n}, "float32", "W" .. i), te.reduce_axis(n, "k")
    result = te.compute({n, n}, function(x, y) return te.sum(left[{x, k}] * right[{k, y}], k) end, "P" .. i)
    params[#params + 1] = right
  end
  params[#params + 1] = result
  return te.func("products", params)
end
local network = products(32)
local function run(options) return support.run({network}, options) end
local FEW = 24
local native = tune.open(network, ms.target "native", {seed = 1})
assert(native.product, "the network's space is small on this machine")
for _, policy in ipairs {"analytical", "evolutionary", "coordinate"} do
  local uncut = run {policy = policy, trials = FEW, batch = 8, jobs = 1}
  assert(#uncut.asked[1] == FEW)
  local path, m = support.new_path(), support.measurer {most = 11}
  assert(not pcall(tune.all, {network}, {measurer = m, batch = 8, trials = FEW, db = path, policy = policy, jobs = 2}))
  collectgarbage() -- closes the store
  local rest = run {policy = policy, trials = FEW, batch = 8, db = path} -- in all
  support.same(support.joined(table.move(m.asked[1], 1, 11, 1, {}), rest.asked[1]), uncut.asked[1],
               policy .. ", stopped and resumed")
end
-- Draws whose choices do not go together are counted as refused, and the search goes on with the others.
do
  local A = te.placeholder({8, 8}, "float32", "A")
  local list = {A}
  for i = 1, 6 do
    local before, k = list[#list], te.reduce_axis(8, "k")
    list[#list + 1] = te.compute({8, 8}, function(x, y) return te.sum(before[{x, k}] * A[{k, y}], k) end, "B" .. i)
  end
  local six = te.func("six", {A, list[#list]})
  for _, policy in ipairs {"random", "replay_trace"} do
    local _, over =
      support.run({six}, {policy = policy, trials = FEW, batch = 8, whole = true, rules = {marks, follows}})
    assert(over[1].done == FEW, over[1].ended_as.text)
    local counted = false
    for _, r in pairs(over[1].refused) do counted = counted or r.by == "combination of choices" end
    assert(counted, "none was refused")
  end
end
local started
run {policy = "replay_trace", trials = 1, listen = function(e) if e.event == "start" then started = e end end}
assert(started.sketches == native.product:size() and #started.blocks == #native.product.blocks)
support.remove_stores()
print(string.format("factored: ok; %d sketches by %d schedules", size, #opened.sketches))
