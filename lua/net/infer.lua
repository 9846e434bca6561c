-- Static shapes: what every value of a network is before it runs, and its elements where shapes decide them. Each node
-- becomes a function of tensors by its operator's own rule, which says the shapes that it gives; what depends on
-- constants alone is computed here, on the interpreter, where that is little.
local ms = msched
local te, network = ms.te, ms.load "lua.net.network"
local common, reserved = ms.load "lua.net.common", ms.load "lua.lib.reserved"
local infer = {}

local FAMILIES = {"elementwise", "shapes", "reductions", "products", "windows", "attention", "losses", "resize",
                  "sampling",
                  "control", "recurrent", "fused", "quantized", "signals", "selection",
                  "winograd", "microsoft", "matrices", "ml", "trees", "svm"}
local operators, family_of -- by name, of ONNX's own domain; others by domain.name
local function known_operators()
  if not operators then
    operators, family_of = {}, {}
    for _, family in ipairs(FAMILIES) do
      for name, f in pairs(ms.load("lua.net.operators." .. family)) do operators[name], family_of[name] = f, family end
    end
  end
  return operators
end
local function key_of(node) return node.domain == "" and node.op or node.domain .. "." .. node.op end
local function operator_of(node) return known_operators()[key_of(node)] end
-- The file of operators/ that a node's operator stands in.
function infer.family(node) return operator_of(node) and family_of[key_of(node)] end

-- Why there are no such operators, by their names, or by their domains.
local NEVER = {
  ["how much it gives depends on data; cut the model before it"] =
    "NonMaxSuppression com.microsoft.BeamSearch com.microsoft.GreedySearch com.microsoft.Sampling \z
     com.microsoft.WhisperBeamSearch com.microsoft.RemovePadding com.microsoft.RestorePadding \z
     com.microsoft.PackedAttention com.microsoft.PackedMultiHeadAttention com.microsoft.PagedAttention",
  ["it draws at random"] =
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial com.microsoft.BitmaskDropout",
  ["networks have tensors only"] =
    "SequenceConstruct SequenceEmpty SequenceInsert SequenceErase SequenceAt SequenceLength SequenceMap \z
     SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement ai.onnx.ml.CastMap \z
     ai.onnx.ml.DictVectorizer",
  ["networks have tensors only; export the model without it, as with zipmap = False"] = "ai.onnx.ml.ZipMap",
  ["networks have tensors of numbers only"] =
    "StringConcat StringNormalizer StringSplit RegexFullMatch TfIdfVectorizer ImageDecoder com.microsoft.Tokenizer",
  ["it is compiled for one device; use the model that it was made of"] = "com.microsoft.EPContext",
}
local NEVER_OF_DOMAIN = {
  ["com.microsoft.nchwc"] = "it is of a layout of onnxruntime's own; use the model before it was optimized",
  ["com.ms.internal.nhwc"] = "it is of a layout of onnxruntime's own; use the model before it was optimized",
  ["ai.onnx.preview.training"] = "training is not run",
}
local function reason_of(node)
  local key = key_of(node)
  for why, names in pairs(NEVER) do if common.set(names)[key] then return why end end
  return NEVER_OF_DOMAIN[node.domain]
end

-- Why a node cannot be: its operator is not known.
local function unknown_text(node)
  local why = reason_of(node)
  return string.format("%s: there is no operator %s%s%s", network.node_text(node), node.op,
                       node.domain ~= "" and " of domain " .. node.domain or "", why and ": " .. why or "")
end

-- Nodes of operators that are not known, those of graphs in graphs too; but of an If's branches one is never taken.
local function add_unknown(nodes, problems)
  for _, node in ipairs(nodes) do
    if not operator_of(node) then problems[#problems + 1] = unknown_text(node) end
    for _, key in ipairs(key_of(node) ~= "If" and ms.sorted_keys(node.attributes) or {}) do
      local graph = node.attributes[key]
      if type(graph) == "table" and graph.nodes then add_unknown(graph.nodes, problems) end
    end
  end
end
-- infer.check_operators(nodes): raises each of them, before anything else is looked at.
function infer.check_operators(nodes)
  local problems = {}
  add_unknown(nodes, problems)
  if #problems > 1 then
    table.insert(problems, 1, string.format("%d nodes are of operators that are not known", #problems))
  end
  if #problems > 0 then error({refused = problems}, 0) end
end

-- ---- What is computed before the network runs --------------------------------------------------------------------

local MOST_FOLDED, MOST_AT_ONCE = 1 << 14, 1 << 17 -- elements, operations of a constant that is computed without being
                                                   -- asked for
local MOST_WORK = 1 << 24 -- operations of one that a shape depends on

local function elements_of(value) return common.count(value.shape) end

local function interpret(step, values)
  local arrays = {}
  for i, name in ipairs(step.inputs) do arrays[i] = values[name].array end
  for _, name in ipairs(step.outputs) do
    local value = values[name]
    value.array = ms.array(common.in_memory(value.shape, value.layout), value.type)
    arrays[#arrays + 1] = value.array
  end
  ms.interpret(step.func, table.unpack(arrays))
end

-- The array of a value that depends on constants, and on inputs that were given, alone; nil: it depends on others, or
-- would take long.
local function known_array(state, value)
  if value.array then return value.array end
  if state.given[value.name] then
    value.array, state.fixed[value.name] = state.given[value.name], true
    return value.array
  end
  local step = value.step
  if not step or step.func:flops() > MOST_WORK then return nil end
  for _, name in ipairs(step.inputs) do
    if not known_array(state, state.values[name]) then return nil end
  end
  interpret(step, state.values)
  return value.array
end

-- ---- A node ------------------------------------------------------------------------------------------------------

local function function_name(node)
  local name = node.op:lower():gsub("[^%w_]", "_")
  return reserved[name] and name .. "_" or name
end

-- The function of tensors that an operator made, and what it takes and gives.
local function step_of(node, view, results)
  local params, inputs, outputs = {}, {}, {}
  for _, i in ipairs(view.used) do
    params[#params + 1], inputs[#inputs + 1] = common.unplaced(view.tensors[i]), view:value(i).name
  end
  for _, t in ipairs(view.tables) do
    params[#params + 1], inputs[#inputs + 1] = t.tensor, t.name
  end
  for i, name in ipairs(node.outputs) do
    if name ~= "" then params[#params + 1], outputs[#outputs + 1] = common.unplaced(results[i]), name end
  end
  return {node = node, func = te.func(function_name(node), params), inputs = inputs, outputs = outputs,
          ranges = view.ranges}
end

local function add_step(state, node, view, results)
  for _, t in ipairs(view.tables) do state.values[t.name] = common.constant(t.name, t.array) end
  local step = step_of(node, view, results)
  local is_constant, is_known, work = true, true, 0
  for _, name in ipairs(step.inputs) do
    is_constant, is_known = is_constant and state.values[name].constant, is_known and state.values[name].array ~= nil
  end
  for i, name in ipairs(node.outputs) do
    if name ~= "" then
      state.values[name] = {name = name, shape = results[i].shape, type = results[i].type, layout = results[i].layout,
                            step = step, constant = is_constant}
      work = work + elements_of(state.values[name])
    end
  end
  if is_constant and is_known and work <= MOST_FOLDED and step.func:flops() <= MOST_AT_ONCE then
    interpret(step, state.values)
  else state.steps[#state.steps + 1] = step end
end

-- The values that nodes gave which stand in the place of this one, by its own names. A value may then have several
-- names: the first is in the record of it, and is what steps read; an output of the network is copied.
local function take_names(state, node, names)
  for i, name in ipairs(node.outputs) do
    if name ~= "" and state.outputs[name] then
      state.infer {op = "Identity", domain = "", name = node.name, inputs = {names[i]}, outputs = {name},
                   attributes = {}}
    elseif name ~= "" then state.values[name] = state.values[names[i]] end
  end
end

local MOST_NODES = 20000 -- that nodes are made of

-- The tensors, or arrays, that a node gives: its view of its inputs, and a list. given: as common.view has it.
local function results_of(state, node, given)
  local function known(value) return known_array(state, value) end
  local view = common.view(node, node.opset or state.net.opsets[""], state.values, known, function(inner)
    state.made = state.made + 1
    if state.made > MOST_NODES then
      error({refused = string.format("%s: it is made of more than %d nodes", network.node_text(node), MOST_NODES)}, 0)
    end
    if not inner then return end -- a step of a loop counts too: its graph may have no nodes
    inner.opset = inner.opset or node.opset
    state.infer(inner)
  end, given)
  return view, {common.with_layout(state.net.layouts[node.outputs[1]], operator_of(node), view)}
end
infer.results_of = results_of

local function infer_node(state, node)
  local view, results = results_of(state, node)
  local names = type(results[1]) == "table" and results[1].names
  for i, name in ipairs(node.outputs) do
    if name ~= "" and (names or results)[i] == nil then view:fail("output %d, %s, is not given", i, name) end
  end
  if names then return take_names(state, node, names) end
  if ms.type(results[1]) ~= "array" then return add_step(state, node, view, results) end
  for i, name in ipairs(node.outputs) do
    if name ~= "" then state.values[name] = common.constant(name, results[i]) end
  end
end

-- ---- The whole ---------------------------------------------------------------------------------------------------

-- An input's extents that are not known, all at once, and how they are given.
local function unknown_extents(input, shape)
  local names, options, seen = {}, {}, {}
  for d, extent in ipairs(shape) do
    if extent == "" then names[#names + 1], seen.unnamed = "extent " .. d, true
    elseif type(extent) == "string" and not seen[extent] then
      names[#names + 1], seen[extent] = extent, true
      options[#options + 1] = string.format("--dim %s=N", extent)
    end
  end
  if #names == 0 then return nil end
  local what = #names == 1 and names[1] .. " is" or
    table.concat(names, ", ", 1, #names - 1) .. " and " .. names[#names] .. " are"
  local whole = string.format("--shape %s=SHAPE", input.name)
  return string.format("input %s has extents %s, of which %s not known: give %s by %s", input.name,
                       network.shape_text(input.shape), what, #names == 1 and "it" or "them",
                       seen.unnamed and whole or table.concat(options, " ") .. " or " .. whole)
end

local function start_values(net, given)
  local values, problems = {}, {}
  for name, array in pairs(net.constants) do
    values[name] = common.constant(name, array)
    values[name].varies = net.varies and net.varies[name]
  end
  for _, input in ipairs(net.inputs) do
    local array = given[input.name]
    if array and array:type() ~= input.type then
      problems[#problems + 1] = string.format("input %s is of %s, and an array of %s is given", input.name, input.type,
                                              array:type())
    end
    local shape = array and array:shape() or input.shape
    for d, extent in ipairs(shape or {}) do
      local own = input.shape and input.shape[d]
      if type(extent) == "string" then
        problems[#problems + 1] = unknown_extents(input, shape)
        break
      elseif math.type(own) == "integer" and own ~= extent or input.shape and #input.shape ~= #shape then
        problems[#problems + 1] = string.format("input %s has extents %s, and an array of %s is given", input.name,
                                                network.shape_text(input.shape), network.shape_text(shape))
        break
      end
    end
    if not shape then
      problems[#problems + 1] = string.format("input %s has no shape: give it by --shape %s=SHAPE", input.name,
                                              input.name)
    end
    values[input.name] = {name = input.name, shape = shape, type = input.type}
  end
  if #problems > 0 then network.refuse(net, problems) end
  return values
end

-- What is in error, as refusals of nodes or as a mistake of ours, which goes on as it is.
local function refusals_of(message, node)
  if type(message) == "table" and message.refused then
    return type(message.refused) == "table" and message.refused or {message.refused}
  end
  local text = tostring(message)
  local from_te = text:match "te: (.*)$"
  if from_te then return {string.format("%s: %s", network.node_text(node), from_te)} end
  error(message, 0)
end

-- infer.static(net [, given]): {net, values = {name = {name, shape, type, layout, array, constant}}, steps = {{node,
-- func, inputs, outputs, ranges}}, fixed = {input's name = true}}. given: arrays of inputs, whose elements are taken
-- where a shape depends on them; the network is then good for these alone, as `fixed` says.
function infer.static(net, given)
  given = given or {}
  local known, unknown = pcall(infer.check_operators, net.nodes)
  if not known then network.refuse(net, refusals_of(unknown)) end
  local state =
    {net = net, given = given, values = start_values(net, given), steps = {}, fixed = {}, outputs = {}, made = 0}
  state.infer = function(node) infer_node(state, node) end
  for _, output in ipairs(net.outputs) do state.outputs[output.name] = true end
  for _, node in ipairs(net.nodes) do
    local ok, message = pcall(infer_node, state, node)
    if not ok then network.refuse(net, refusals_of(message, node)) end
  end
  return state
end

return infer
