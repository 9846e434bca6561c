-- A plan: a network as calls of kernels in order. What depends on constants alone is made when it is prepared; its
-- values have their places in memory (memory.lua).
local ms = msched
local network, infer, common = ms.load "lua.net.network", ms.load "lua.net.infer", ms.load "lua.net.common"
local fuse, layout, passes, memory = ms.load "lua.net.fuse", ms.load "lua.net.layout", ms.load "lua.net.passes",
  ms.load "lua.net.memory"
local side_by_side, layout_costs = ms.load "lua.net.side_by_side", ms.load "lua.net.layout_costs"
local plan = {}

-- ---- From a network to groups ------------------------------------------------------------------------------------

-- The steps that the network's outputs depend on, in order. named: what their nodes name counts too, though no function
-- reads it, as one that has no elements.
local function needed_steps(state, named)
  local needed, found, steps = {}, {}, {}
  for _, output in ipairs(state.net.outputs) do needed[output.name] = true end
  for at = #state.steps, 1, -1 do
    local step, reads = state.steps[at], false
    for _, name in ipairs(step.outputs) do reads = reads or needed[name] end
    if reads then
      found[#found + 1] = step
      for _, name in ipairs(step.inputs) do needed[name] = true end
      for _, name in ipairs(named and step.node.inputs or {}) do
        local value = state.values[name]
        if value then needed[value.name] = true end
      end
    end
  end
  for at = #found, 1, -1 do steps[#steps + 1] = found[at] end
  return steps
end

-- The network of the steps of what infer.static made: nodes that are made of others are these, what is known is a
-- constant, and what nothing needs is gone.
local function settled(state)
  local net, nodes = state.net:copy(), {}
  net.varies = {}
  for at, step in ipairs(needed_steps(state, true)) do
    local node = {}
    for key, value in pairs(step.node) do node[key] = value end
    node.inputs = {}
    for i, name in ipairs(step.node.inputs) do
      local value = name ~= "" and state.values[name]
      node.inputs[i] = value and value.name or ""
      if value and value.array and not state.given[value.name] then
        net.constants[value.name], net.varies[value.name] = value.array, value.varies
      end
    end
    nodes[at] = node
  end
  for _, output in ipairs(net.outputs) do
    local value = state.values[output.name]
    if value.array and not state.given[output.name] then net.constants[output.name] = value.array end
  end
  net.nodes = nodes
  return net
end

-- Computes the groups that depend on constants alone, by kernels as they are written; gives the others.
local function fold(state, groups)
  local kept, kernels = {}, {}
  for _, g in ipairs(groups) do
    if state.values[g.outputs[1]].constant then
      fuse.build(state, g)
      local hash, arrays = g.func:hash(), {}
      kernels[hash] = kernels[hash] or ms.build(g.func)
      for i, name in ipairs(g.inputs) do arrays[i] = state.values[name].array end
      for _, name in ipairs(g.outputs) do
        local value = state.values[name]
        value.array = network.array(state.net, "value " .. name, common.in_memory(value.shape, value.layout),
                                    value.type)
        arrays[#arrays + 1] = value.array
      end
      kernels[hash]:run(table.unpack(arrays))
    else kept[#kept + 1] = g end
  end
  return kept
end

-- Groups that are equal are one function: {func, weight, groups}, in the order in which they first stand. Those that
-- are not, and have one name, are told apart by numbers.
local function distinct(state, groups)
  local by_hash, list, named = {}, {}, {}
  for _, g in ipairs(groups) do
    if not g.alias then
      fuse.build(state, g)
      local hash = g.func:hash()
      local known = by_hash[hash]
      if not known then
        named[g.name] = (named[g.name] or 0) + 1
        if named[g.name] > 1 then fuse.build(state, g, string.format("%s_%d", g.name, named[g.name])) end
      end
      if not known then
        known = {func = g.func, hash = g.func:hash(), name = g.name, weight = 0, groups = {}}
        by_hash[hash], list[#list + 1] = known, known
      end
      known.weight = known.weight + 1
      known.groups[#known.groups + 1] = g
      g.kernel = known
    end
  end
  return list
end

-- What a network goes through after the passes, as --print-after names it.
plan.STAGES = {"static", "layout", "fusion"}

-- The network with its values in the orders that options say, or else that cost least; its state, groups, and why.
local function laid_out(work, values, options)
  local label, target = options.layout or "auto", ms.target(options.target or "native")
  if not layout.is_known(label) then
    error(string.format("layout `%s`: there are %s", label, table.concat(layout.NAMES, ", ")), 0)
  end
  local block, lines = layout.block(target), nil
  local function arranged(labels, apart)
    local net, used, made_of = layout.arrange(work, values, labels, block, apart)
    local state = infer.static(net, options.given)
    state.steps = needed_steps(state)
    return {net = net, labels = used, made_of = made_of, state = state, groups = fuse.groups(state, target.arch ~= nil)}
  end
  local result = arranged(layout.uniform(work, values, label == "auto" and "last" or label, block))
  if label == "auto" and options.costs and layout_costs.are_known(target) then
    local labels
    labels, lines = layout_costs.choose({net = work, values = values, labels = result.labels, block = block,
                                         made_of = result.made_of, state = result.state, groups = result.groups},
                                        options.costs)
    -- a convolution stores faster in its own order than in another one, and a copy by itself costs what was counted
    if labels then result = arranged(labels, true) end
  end
  return result, lines
end

-- plan.prepare(net [, {given = arrays, layout = name, costs = options, passes = files, after = f, target = text,
-- fixed_order = bool}]): {net, state, groups, functions, fixed}. target, fixed_order: of what runs it; some passes are
-- for others. layout: one of layout.NAMES (auto); costs: the options of a run, with store, and further
-- (layout_costs.lua): what layouts are chosen by, nil: all images have their channels last. The network
-- itself stays as it is. given: arrays of inputs, where shapes depend on what is in them. passes: files of
-- users'. after(name, x [, notes]) is called after each pass and each of plan.STAGES: x:text() is what it left, notes
-- are lines of what a pass did not change, and why. A function whose result takes the place of an input has `in_place`
-- (memory.lua).
function plan.prepare(net, options)
  options = options or {}
  local function after(name, x, notes) if options.after then options.after(name, x, notes) end end
  local first = infer.static(passes.run(net, options), options.given)
  local work = settled(first)
  after("static", work)
  local placed, lines = laid_out(work, first.values, options)
  after("layout", placed.net, lines)
  local state = placed.state
  local groups = fold(state, placed.groups)
  after("fusion", {text = function() return fuse.text(groups) end})
  local prepared = {net = net, state = state, groups = groups, functions = distinct(state, groups),
                    fixed = ms.sorted_keys(first.fixed)}
  memory.choose_in_place(prepared)
  return prepared
end

-- ---- Opened ------------------------------------------------------------------------------------------------------

local Plan = {__name = "msched.plan"}
Plan.__index = Plan

local function shape_of(value) return common.in_memory(value.shape, value.layout) end

-- An array for each value that the plan's calls take.
local function arrays_of(prepared, placed)
  local values, own, arrays = prepared.state.values, {}, {}
  local arena = network.array(prepared.net, "values between nodes", {placed.arena}, "uint8")
  for name, slot in pairs(placed.slots) do
    local value = values[name]
    if slot.kind == "arena" then arrays[name] = arena:view(shape_of(value), value.type, slot.offset)
    elseif slot.kind == "constant" then arrays[name] = value.array:view(shape_of(value))
    else
      own[slot] = own[slot] or network.array(prepared.net, "value " .. name, shape_of(value), value.type)
      arrays[name] = own[slot]:view(shape_of(value))
    end
  end
  return arrays
end

local function runs_here(target) return (pcall(ms.target, target or "native", {runs = true})) end

-- The function with its result in the place of an input; nil: there is no such pair, or as it is scheduled an element
-- might be read after it was written.
local function in_place(func, pair)
  local made = pair and func:in_place(pair.input, pair.parameter)
  return made or nil
end

-- plan.build(func, options [, pair]): the kernel of a function, options as of ms.build, and what packs its constants:
-- {kernel [, pack =, cut =, in_place =]}, cut as function:packing gives it. That runs here, whatever the kernel is for.
-- pair: the result that takes the place of an input, {input =, output =, parameter =}; in_place: the same, where the
-- kernel has them as one parameter.
function plan.build(func, options, pair)
  local target, shared = options and options.target, in_place(func, pair)
  local cut, taken = (shared or func):packing(), shared and pair or nil
  if not cut then
    if shared then options = {target = target} end -- the function that it is compared with has other parameters
    return {kernel = ms.build(shared or func, options), in_place = taken}
  end
  local is_host = ms.target(target or "native").arch == nil
  return {kernel = ms.build(cut.kernel, {target = target}),
          pack = ms.build(cut.pack, {target = is_host and runs_here(target) and target or nil}), cut = cut,
          in_place = taken}
end

-- The constants of a group as its kernel wants them, each once for all groups that have the same: a list of {number =,
-- shape =, type =}, which pack_all gives arrays.
local function packed_of(self, g)
  local built, given, list, key = self.built[g.kernel], {}, {}, {g.kernel.hash}
  for i, p in ipairs(built.cut.pack:params()) do
    local number = built.cut.of_pack[i]
    if number > 0 then key[#key + 1], given[i] = g.inputs[number], self.arrays[g.inputs[number]]
    else list[-number] = {shape = p.shape, type = p.type} end
  end
  key = table.concat(key, "\0")
  if self.packed[key] then return self.packed[key] end
  for i, number in ipairs(built.cut.of_pack) do
    if number < 0 then
      local each = list[-number]
      self.packed_count, each.number, given[i] = self.packed_count + 1, self.packed_count + 1, each
    end
  end
  self.packed[key] = list
  self.packings[#self.packings + 1] = {pack = built.pack, given = given}
  return list
end

-- Packs the constants of all groups, side by side in one array: many small ones take huge pages together.
local function pack_all(self)
  local bytes = 0
  local function each_packed(f)
    for _, packing in ipairs(self.packings) do
      for i, each in ipairs(packing.given) do
        if type(each) == "table" then packing.given[i] = f(each) or each end
      end
    end
  end
  each_packed(function(each)
    each.offset, bytes = bytes, bytes + memory.padded(memory.bytes(each))
  end)
  local block = bytes > 0 and ms.array({bytes}, "uint8")
  each_packed(function(each)
    each.array = block:view(each.shape, each.type, each.offset)
    return each.array
  end)
  for _, packing in ipairs(self.packings) do packing.pack:run(table.unpack(packing.given)) end
end

-- Which result of a group's kernel takes the place of which input; nil: none.
local function in_place_of(self, g)
  local built = self.built[g.kernel]
  return built and built.in_place
end

-- What a group's kernel takes, in order: names of values, and tables of packed constants.
local function arguments_of(self, g)
  local built, list, packed = self.built[g.kernel],
    table.move(g.outputs, 1, #g.outputs, #g.inputs + 1, table.move(g.inputs, 1, #g.inputs, 1, {})), nil
  local pair = in_place_of(self, g)
  if pair then table.remove(list, pair.parameter) end
  if not built or not built.cut then return list end
  local taken = {}
  for i, number in ipairs(built.cut.of_kernel) do
    packed = packed or number < 0 and packed_of(self, g)
    taken[i] = number < 0 and packed[-number] or list[number]
  end
  return taken
end

local function constant_bytes(self)
  local seen, bytes = {}, 0
  for _, each in ipairs(self.calls) do
    for _, argument in ipairs(each.arguments) do
      local value = type(argument) == "table" and argument or self.prepared.state.values[argument]
      if value.array and not seen[argument] then
        seen[argument], bytes = true, bytes + memory.padded(memory.bytes(value))
      end
    end
  end
  return bytes
end

-- What runs a group's kernel on arrays. A kernel of a device has its buffers there while it runs alone; one of another
-- machine is refused when it is run.
local function call_of(self, g, given)
  if g.alias then return {run = function() given[2]:assign(given[1]) end} end
  local kernel = self.kernels[g.kernel]
  if self.is_here and not self.on_device then return kernel:prepare(table.unpack(given)) end
  return {run = function() kernel:run(table.unpack(given)) end}
end

-- On a device: the calls as one sequence, whose buffers stay there, the constants sent once. It is made when it is
-- first asked for.
local function sequence_of(self)
  if self.sequence then return self.sequence end
  local steps, sent, values = {}, {}, self.prepared.state.values
  for i, each in ipairs(self.calls) do
    local kernel = not each.group.alias and self.kernels[each.group.kernel] or nil
    steps[i] = kernel and {kernel, table.unpack(each.given)} or each.given
  end
  self.sequence = ms.sequence(steps)
  for _, each in ipairs(self.calls) do
    for k, argument in ipairs(each.arguments) do
      local constant = type(argument) == "table" or values[argument].array
      if constant and not sent[argument] then
        self.sequence:send(each.given[k])
        sent[argument] = true
      end
    end
  end
  return self.sequence
end

-- Where values are, and the groups in steps that do something when the plan runs, not those that give the bytes of what
-- they take where these are. Side by side is what gains by that, where values take little more memory.
local function placed_steps(self, target)
  local prepared = self.prepared
  local function pair_of(g) return in_place_of(self, g) end
  local steps = side_by_side.choose(prepared, function(g) return self.built[g.kernel] end, pair_of,
                                    ms.target(target or "native"))
  local placed, beside = memory.of(prepared, pair_of, steps), false
  for _, lanes in ipairs(steps) do beside = beside or #lanes > 1 end
  if beside then
    local plain = memory.of(prepared, pair_of)
    if not side_by_side.fits(prepared, placed.arena, plain.arena) then
      placed, steps = plain, memory.one_by_one(prepared)
    end
  end
  return placed, steps
end

-- The calls of those steps, in the same lists, and all of them in order.
local function calls_of(self, steps)
  local calls, nested, slots = {}, {}, self.placed.slots
  for _, lanes in ipairs(steps) do
    local step = {}
    for _, lane in ipairs(lanes) do
      local list = {}
      for _, g in ipairs(lane) do
        if not (g.alias and slots[g.outputs[1]] == slots[g.inputs[1]]) then
          list[#list + 1] = {group = g, arguments = arguments_of(self, g), given = {}}
          calls[#calls + 1] = list[#list]
        end
      end
      if #list > 0 then step[#step + 1] = list end
    end
    if #step > 0 then nested[#nested + 1] = step end
  end
  return calls, nested
end

-- The calls of each lane, as ms.in_order takes them.
local function lanes_of(step)
  local lists = {}
  for k, lane in ipairs(step) do
    lists[k] = {}
    for i, each in ipairs(lane) do lists[k][i] = each.call end
  end
  return lists
end

-- The calls in runs of those that follow each other without a look at indices between, nor a copy: a list of {first =
-- the first call, call = what runs them all}; and what runs each step. Elsewhere the first call refuses.
local function runs_of(self)
  local list, each_step, current = {}, {}, nil
  local joins = self.is_here and not self.on_device
  for at, step in ipairs(self.steps) do
    local first, beside = step[1][1], #step > 1
    local call = beside and joins and lanes_of(step) or first.call
    each_step[at] = beside and joins and ms.in_order {call} or call
    local is_kernel = joins and (beside or ms.type(call) == "call")
    if not (is_kernel and current and #first.group.ranges == 0) then
      current = {first = first, calls = {}, call = each_step[at]}
      list[#list + 1] = current
    end
    current.calls[#current.calls + 1] = call
    if not is_kernel then current = nil end
  end
  for _, run in ipairs(list) do if #run.calls > 1 then run.call = ms.in_order(run.calls) end end
  return list, each_step
end

-- plan.open(prepared, build [, target]): the plan, with its memory. build(entry of prepared.functions) gives what
-- plan.build does of the entry's function, or a kernel, for the target. Constants are packed here, once.
function plan.open(prepared, build, target)
  local self = setmetatable({net = prepared.net, prepared = prepared, calls = {}, kernels = {}, built = {},
                             packed = {}, packed_count = 0, packings = {}}, Plan)
  for _, entry in ipairs(prepared.functions) do
    local built = build(entry)
    self.built[entry] = type(built) == "table" and built.kernel and built or {kernel = built}
    self.kernels[entry] = self.built[entry].kernel
  end
  local placed, steps = placed_steps(self, target)
  local arrays = arrays_of(prepared, placed)
  self.placed, self.arrays, self.arena_bytes = placed, arrays, placed.arena
  self.on_device, self.is_here = ms.target(target or "native").arch ~= nil, runs_here(target)
  self.calls, self.steps = calls_of(self, steps)
  pack_all(self)
  for _, each in ipairs(self.calls) do
    for k, argument in ipairs(each.arguments) do
      each.given[k] = type(argument) == "table" and argument.array or arrays[argument]
    end
    each.call = call_of(self, each.group, each.given)
  end
  self.runs, self.step_calls = runs_of(self)
  self.constant_bytes = constant_bytes(self)
  return self
end

local function take_inputs(self, inputs)
  for _, input in ipairs(self.net.inputs) do
    local array, own = inputs[input.name], self.arrays[input.name]
    if not array then network.refuse(self.net, {"input " .. input.name .. " is not given"}) end
    if array:type() ~= own:type() or common.text(array:shape()) ~= common.text(own:shape()) then
      network.refuse(self.net, {string.format("input %s is %s%s, and an array of %s%s is given", input.name, own:type(),
                                              common.text(own:shape()), array:type(), common.text(array:shape()))})
    end
    own:assign(array)
  end
  network.check_narrow(self.net, self.arrays)
end

local function check_range(self, g, range)
  local array = self.arrays[range.input]
  local wrong = array and common.wrong_in(array, range)
  if wrong then network.refuse(self.net, {string.format("%s: %s", g.name, wrong)}) end
end

-- Runs it on a device: indices are looked at that are in inputs; kernels hold the others within their tensors.
local function run_there(self, report)
  local sequence, start = sequence_of(self), nil
  for _, each in ipairs(self.calls) do
    for _, range in ipairs(each.group.ranges) do
      local slot = self.placed.slots[range.input]
      if slot and slot.kind == "input" then check_range(self, each.group, range) end
    end
  end
  for _, input in ipairs(self.net.inputs) do sequence:send(self.arrays[input.name]) end
  start = ms.clock()
  sequence:run()
  report.seconds = ms.clock() - start
  for _, output in ipairs(self.net.outputs) do sequence:fetch(self.arrays[output.name]) end
end

-- The inputs of a group as they are before its kernel runs: what that writes over is copied.
local function inputs_before(self, g)
  local list, pair = {}, in_place_of(self, g)
  for i, name in ipairs(g.inputs) do
    local array = self.arrays[name]
    list[i] = pair and pair.input == i and ms.array(array:shape(), array:type()):assign(array) or array
  end
  return list
end

-- Runs it call by call, each compared with the interpreter.
local function compare_calls(self, most_work, report)
  for _, each in ipairs(self.calls) do
    local g = each.group
    for _, range in ipairs(g.ranges) do check_range(self, g, range) end
    local given = not g.alias and inputs_before(self, g)
    local start = ms.clock()
    each.call:run()
    report.seconds = report.seconds + ms.clock() - start
    if given then
      local got = {}
      for i, name in ipairs(g.outputs) do got[i] = self.arrays[name] end
      ms.load "lua.net.run".compare(self.net, g.func, g.name, given, got, most_work, report)
    end
  end
end

local function run_calls(self, report)
  for _, run in ipairs(self.runs) do
    local g = run.first.group
    for _, range in ipairs(g.ranges) do check_range(self, g, range) end
    local start = ms.clock()
    run.call:run()
    report.seconds = report.seconds + ms.clock() - start
  end
end

-- plan:run(inputs [, {most_work = n}]): the outputs by name, which are the plan's own until it runs again; and a
-- report: {seconds, compared, elements, most}. most_work: each function is compared with the interpreter, everywhere
-- where it does at most so many operations, else at samples.
function Plan:run(inputs, options)
  options = ms.options(options, "most_work:integer") or {}
  local report = {seconds = 0.0, compared = 0, elements = 0, most = 0.0}
  take_inputs(self, inputs)
  if options.most_work then compare_calls(self, options.most_work, report)
  elseif self.on_device then run_there(self, report)
  else run_calls(self, report) end
  local outputs = {}
  for _, output in ipairs(self.net.outputs) do outputs[output.name] = self.arrays[output.name] end
  return outputs, report
end

-- plan:time(seconds): how long a run takes, again and again on the inputs that it was last given: the median, and of
-- how many. On a device: as one graph, what is copied there and back left out.
function Plan:time(seconds)
  if self.on_device then
    local timing = sequence_of(self):time(math.max(seconds, 0.001))
    return timing.seconds, timing.runs
  end
  local times, start = {}, ms.clock()
  repeat
    local before = ms.clock()
    for _, run in ipairs(self.runs) do run.call:run() end
    times[#times + 1] = ms.clock() - before
  until #times >= 3 and ms.clock() - start > seconds
  table.sort(times)
  return times[(#times + 1) // 2], #times
end

-- plan:count_beside(): how many of its calls run side by side.
function Plan:count_beside()
  local count = 0
  for _, step in ipairs(self.steps) do
    for _, lane in ipairs(step) do count = count + (#step > 1 and #lane or 0) end
  end
  return count
end

-- plan:export(path): writes a library of it, .so or .a, with a header, a file of its constants and a module of Python
-- beside it; gives their paths.
function Plan:export(path) return ms.load "lua.net.export.write".write(self, path) end

-- The ranges of an input's elements, where they are indices of a node, as they are or cast or in another shape.
local PASSES_ON = common.set "Cast Identity Reshape Flatten Squeeze Unsqueeze"
local function ranges_of_inputs(prepared)
  local links, list = prepared.state.net:links(), {}
  for _, range in ipairs(prepared.net.narrow) do list[range.input] = {range} end
  for _, g in ipairs(prepared.groups) do
    for _, range in ipairs(g.ranges) do
      local name = range.input
      local node = links:giver(name)
      while node and node.domain == "" and PASSES_ON[node.op] do
        name = node.inputs[1]
        node = links:giver(name)
      end
      list[name] = list[name] or {}
      table.insert(list[name], range)
    end
  end
  return list
end

-- plan:keep_within(arrays): elements of inputs that are indices which there are not become others that there are. Not
-- those that shapes were made for.
function Plan:keep_within(arrays)
  local ranges, fixed = ranges_of_inputs(self.prepared), {}
  for _, name in ipairs(self.prepared.fixed) do fixed[name] = true end
  for _, input in ipairs(self.net.inputs) do
    local array, held = arrays[input.name], ranges[input.name]
    if array and held and not fixed[input.name] then array:assign(common.within(array, held)) end
  end
end

-- plan:fill(seed): small integers for all inputs.
function Plan:fill(seed)
  for i, input in ipairs(self.net.inputs) do
    if self.arrays[input.name] then self.arrays[input.name]:random(seed + i) end
  end
  self:keep_within(self.arrays)
end

local ALONE = 0.02 -- seconds of sampling of a call that is timed alone

-- Seconds of each call alone, of equal functions once; copies take the time of none.
local function profile_alone(self)
  local list, known = {}, {}
  for i, each in ipairs(self.calls) do
    local entry = each.group.kernel
    if entry and not known[entry] then
      local given = table.move(each.given, 1, #each.given, 1, {})
      given[#given + 1] = ALONE
      known[entry] = (self.kernels[entry]:time(table.unpack(given)))
    end
    list[i] = {group = each.group, seconds = entry and known[entry] or 0.0}
  end
  return list
end

-- The medians of times that f(note) notes in so many runs: note(i, seconds).
local function medians(count, runs, f)
  local list = {}
  for i = 1, count do list[i] = {} end
  for _ = 1, runs do f(function(i, seconds) table.insert(list[i], seconds) end) end
  for i, times in ipairs(list) do
    table.sort(times)
    list[i] = times[(#times + 1) // 2]
  end
  return list
end

local function seconds_of(call)
  local before = ms.clock()
  call:run()
  return ms.clock() - before
end

-- Seconds of each call, one by one.
local function profile_apart(self, runs)
  local list, times = {}, medians(#self.calls, runs, function(note)
    for i, each in ipairs(self.calls) do note(i, seconds_of(each.call)) end
  end)
  for i, each in ipairs(self.calls) do list[i] = {group = each.group, seconds = times[i]} end
  return list
end

-- plan:profile(runs [, apart]): the seconds of each call, as they are in runs of the whole: a list of {group, seconds},
-- the medians. Calls that run side by side have `beside`, the number of their step, and share its time by what each
-- takes alone; apart: each has the time that it takes alone. On a device: alone.
function Plan:profile(runs, apart)
  if self.on_device then return profile_alone(self) end
  local list, at = profile_apart(self, runs), 0
  if apart or not self.is_here then return list end
  local steps = {} -- of calls side by side
  for number, step in ipairs(self.steps) do
    local first = at + 1
    for _, lane in ipairs(step) do at = at + #lane end
    if #step > 1 then steps[#steps + 1] = {number = number, first = first, last = at} end
  end
  if #steps == 0 then return list end
  local times = medians(#self.step_calls, runs, function(note)
    for i, call in ipairs(self.step_calls) do note(i, seconds_of(call)) end
  end)
  for _, step in ipairs(steps) do
    local all = 1e-12
    for i = step.first, step.last do all = all + list[i].seconds end
    for i = step.first, step.last do
      list[i].seconds, list[i].beside = list[i].seconds / all * times[step.number], step.number
    end
  end
  return list
end

return plan
