-- Runs a network node by node: each function compiled as it is, or on the interpreter.
local ms = msched
local network, infer, common = ms.load "lua.net.network", ms.load "lua.net.infer", ms.load "lua.net.common"
local element_types = ms.load "lua.lib.element_types"
local run = {}

-- Arrays that are asked for no more are let go.
local function last_uses(plan, outputs)
  local last = {}
  for at, step in ipairs(plan.steps) do
    for _, name in ipairs(step.inputs) do last[name] = at end
  end
  for _, output in ipairs(outputs) do last[output.name] = math.maxinteger end
  return last
end

local function check_ranges(net, step, arrays)
  for _, range in ipairs(step.ranges) do
    local wrong = common.wrong_in(arrays[range.input], range)
    if wrong then network.refuse(net, {string.format("%s: %s", network.node_text(step.node), wrong)}) end
  end
end

local SAMPLES = 16
local TOLERANCE = {float8_e4m3fn = 0.25, float8_e5m2 = 0.5, float16 = 4e-3, bfloat16 = 3e-2, float32 = 1e-4,
                   float64 = 1e-9}

-- A float of a type less the one before it, as a part of it; nil: of other types.
local function unit_of(type_)
  return element_types.is_float(type_) and 2.0 ^ (1 - element_types.of[type_].digits) or nil
end
local NUDGES = 8 -- how often the change that nudged arguments make is allowed

-- Arrays whose floats are one unit more or less, by chance.
local function nudged(arrays)
  local made, state = {}, 1
  for i, array in ipairs(arrays) do
    local unit, values = unit_of(array:type()), array:tolist()
    for k, x in ipairs(unit and values or {}) do
      state = (state * 1103515245 + 12345) & 0x7fffffff
      values[k] = x * (state & 0x10000 == 0 and 1 + unit or 1 - unit)
    end
    made[i] = unit and ms.array(array:shape(), array:type(), values) or array
  end
  return made
end

-- What may be between two results of a function whose arguments were rounded otherwise: a difference of nearly equal
-- numbers, as in the normalization of rows that are nearly constant, loses digits whoever computes it.
local function conditioning(func, given, want, at, whole)
  local mine = nudged(given)
  for i, array in ipairs(want) do mine[#given + i] = ms.array(array:shape(), array:type()) end
  if whole then
    ms.interpret(func, table.unpack(mine))
  else
    ms.interpret_samples(func, 1, SAMPLES, table.unpack(mine))
  end
  return (want[at]:difference(mine[#given + at]))
end

-- Whether a function rounds floats to short integers: a number that lies between two of them may go to either.
local STEPS = common.set "int8 uint8 int16 uint16"
local function rounds(func, type) return STEPS[type] ~= nil and tostring(func):find("nearbyint", 1, true) ~= nil end

-- What a function's kernel made of arrays, beside the interpreter: everywhere, or at samples where that would take
-- long. what: how messages call it; report: {compared, elements, most}, which grow.
function run.compare(net, func, what, given, got, most_work, report)
  local mine, before = {}, {}
  for i, array in ipairs(given) do mine[i] = array end
  for i, array in ipairs(got) do
    before[i] = ms.array(array:shape(), array:type())
    mine[#given + i] = ms.array(array:shape(), array:type())
  end
  local whole = func:flops() <= most_work
  if whole then
    ms.interpret(func, table.unpack(mine))
  else
    ms.interpret_samples(func, 1, SAMPLES, table.unpack(mine))
  end
  for i, array in ipairs(got) do
    local want, largest = mine[#given + i], 1.0
    local difference, count
    if whole then
      difference, count = array:difference(want)
    else
      difference, count = array:difference(want, before[i])
    end
    if difference > 0 then largest = math.max(1.0, (want:difference(before[i]))) end
    report.compared, report.elements = report.compared + count, report.elements + #array
    report.most = math.max(report.most, difference / largest)
    local tolerance = TOLERANCE[array:type()]
    local holds = difference <= (tolerance or 0) * largest or largest == math.huge
      or difference <= 1 and rounds(func, array:type())
    if not holds and tolerance then
      holds = difference <= NUDGES * conditioning(func, given, table.move(mine, #given + 1, #mine, 1, {}), i, whole)
    end
    if not holds then
      network.refuse(net, {string.format("%s: compiled, it differs from the interpreter's by %g", what, difference)})
    end
  end
end

-- net:run(inputs [, {interpret =, target =, most_work =}]): the outputs by name, and a report: {functions, folded,
-- seconds, compared, elements, most, fixed}. inputs: arrays by name. interpret: nothing is compiled. most_work:
-- functions of at most so many operations are interpreted too, others at samples, and compared; nil: nothing is.
function run.run(net, inputs, options)
  options = ms.options(options, "interpret:boolean target:string most_work:integer") or {}
  local plan = infer.static(net, inputs)
  local report = {functions = #plan.steps, seconds = 0.0, build = 0.0, compared = 0, elements = 0, most = 0.0,
                  fixed = ms.sorted_keys(plan.fixed)}
  local arrays, last = {}, last_uses(plan, net.outputs)
  for name, value in pairs(plan.values) do arrays[name] = value.array end
  for _, input in ipairs(net.inputs) do
    arrays[input.name] = inputs[input.name] or network.refuse(net, {"input " .. input.name .. " is not given"})
  end
  network.check_narrow(net, arrays)
  for at, step in ipairs(plan.steps) do
    local given, got = {}, {}
    for i, name in ipairs(step.inputs) do given[i] = arrays[name] end
    for i, name in ipairs(step.outputs) do
      got[i] = network.array(net, "value " .. name, common.in_memory(plan.values[name].shape, plan.values[name].layout),
                             plan.values[name].type)
      arrays[name] = got[i]
    end
    check_ranges(net, step, arrays)
    local all = table.move(got, 1, #got, #given + 1, table.move(given, 1, #given, 1, {}))
    if options.interpret then
      local start = ms.clock()
      ms.interpret(step.func, table.unpack(all))
      report.seconds = report.seconds + ms.clock() - start
    else
      local start = ms.clock()
      local kernel = ms.build(step.func, {target = options.target})
      local built = ms.clock()
      kernel:run(table.unpack(all))
      report.build, report.seconds = report.build + built - start, report.seconds + ms.clock() - built
      if options.most_work then
        run.compare(net, step.func, network.node_text(step.node), given, got, options.most_work, report)
      end
    end
    for _, name in ipairs(step.inputs) do if last[name] == at then arrays[name] = nil end end
  end
  local outputs = {}
  for _, output in ipairs(net.outputs) do outputs[output.name] = arrays[output.name] end
  return outputs, report
end

return run
