-- What a network's layouts cost, and the labels of its nodes that cost least (assign.lua): of convolutions and pools
-- in each layout what the store has measured, or else what the analytical model estimates of the function that the
-- plan would have there; of a copy from one layout to another its bytes. An estimate takes as long as a proposal. So it
-- is asked for only where a bound, which takes nothing, says that a layout may pay.
local ms = msched
local common, fuse, layout, assign = ms.load "lua.net.common", ms.load "lua.net.fuse", ms.load "lua.net.layout",
  ms.load "lua.net.assign"
local memory, bounds = ms.load "lua.net.memory", ms.load "lua.net.layout_bounds"
local analytical, untuned = ms.load "search.cost.analytical", ms.load "search.untuned"
local costs = {}

local LABELS = table.move(layout.NAMES, 2, #layout.NAMES, 1, {}) -- the first is that of all where no other pays
local PARTS, LEAST = 10, 4 -- of the functions with windows, one in so many is estimated in other layouts; at least

-- ---- The functions that nodes are in -----------------------------------------------------------------------------

-- A state of infer.static in which values and what nodes give have other orders.
local function in_orders(state, orders)
  local values = setmetatable({}, {__index = function(t, name)
    local value = state.values[name]
    if value and orders[name] ~= nil then
      local made = {}
      for key, x in pairs(value) do made[key] = x end
      made.layout = orders[name] or nil
      value = made
    end
    t[name] = value
    return value
  end})
  local layouts = setmetatable({}, {__index = function(_, name)
    if orders[name] ~= nil then return orders[name] or nil end
    return state.net.layouts[name]
  end})
  return setmetatable({values = values, net = setmetatable({layouts = layouts}, {__index = state.net})},
                      {__index = state})
end

-- The steps of a group, from its first on, that are nodes which layouts are chosen for: no copy into another order.
local function own_steps(chosen, group)
  local list = {}
  for _, step in ipairs(group.steps) do
    if not chosen.made_of[step.node] or not layout.kind(chosen.values, chosen.made_of[step.node]) then break end
    list[#list + 1] = step
  end
  return list
end

-- The function of a window and what is fused with it where all are in one layout.
local function function_in(chosen, steps, label)
  local group, orders = {steps = steps, outputs = steps[#steps].outputs, anchor = true}, {}
  if label == LABELS[1] then return fuse.build(chosen.state, group).func end
  for _, step in ipairs(steps) do
    local node = chosen.made_of[step.node]
    local given, taken = layout.orders(chosen.values, node, layout.allowed(chosen.values, node, label, chosen.block),
                                       chosen.block)
    orders[step.node.outputs[1]] = given or false
    for i, name in ipairs(step.node.inputs) do
      local value = name ~= "" and chosen.state.values[name]
      if value and #value.shape > 2 and orders[name] == nil then orders[name] = taken[i] or false end
    end
  end
  return fuse.build(in_orders(chosen.state, orders), group).func
end

-- ---- What functions take -----------------------------------------------------------------------------------------

local Times = {} -- of functions in a run
Times.__index = Times
local in_process = {} -- cycles of functions, by what made their proposals, target and hash

-- Cycles of a function as the analytical model estimates its proposal; false: nothing has estimated it.
function Times:cycles(func)
  local hash = func:hash()
  local key = self.proposer and table.concat({self.proposer, self.target.text, hash}, "\0")
  if self.known[hash] == nil and key then self.known[hash] = in_process[key] end
  if self.known[hash] == nil then
    local trace = self.proposals[hash] or self.store and untuned.proposed(func, self.target, self.store, self.options)
    local cycles = trace and analytical.cost_of(func, trace, self.machine)
    self.known[hash] = cycles or false
    if key and cycles then in_process[key] = cycles end
  end
  return self.known[hash]
end

-- Seconds of the fastest that the store has of a function; false: it was not measured.
function Times:seconds(func)
  local hash = func:hash()
  if self.measured[hash] == nil then
    self.measured[hash] = self.store and untuned.measured(func, self.target, self.store, self.options) or false
  end
  return self.measured[hash]
end

-- Estimates functions that nothing has estimated: their proposals are made, which the store keeps.
function Times:propose(functions)
  local items = {}
  for _, func in ipairs(functions) do if not self:cycles(func) then items[#items + 1] = {func} end end
  if #items == 0 then return end
  local options = setmetatable({no_tune = true, store = self.store, listen = false, roofline = false},
                               {__index = self.options})
  for _, task in ipairs((ms.load "search.tune".all(items, options))) do
    local hash = task.func:hash()
    if task.fastest then self.proposals[hash], self.known[hash] = task.fastest.trace, nil end
  end
end

local function new_times(options, target, machine)
  return setmetatable({store = options.store, target = target, machine = machine, options = options, known = {},
                       measured = {}, proposals = {}, proposer = untuned.proposer(options)}, Times)
end

-- ---- Choosing ----------------------------------------------------------------------------------------------------

local Chooser = {}
Chooser.__index = Chooser

-- Seconds of a window in the first layout and in another; nil: not both were measured.
function Chooser:measured(window, label)
  local a, b = self.times:seconds(window.functions[LABELS[1]]), self.times:seconds(window.functions[label])
  if a and b then return a, b end
end

-- And cycles; nil: both were measured, or not both are estimated, or estimates say nothing of such a window.
function Chooser:estimated(window, label)
  if not window.is_estimated or self:measured(window, label) then return nil end
  local a, b = self.times:cycles(window.functions[LABELS[1]]), self.times:cycles(window.functions[label])
  if a and b then return a, b end
end

-- How many times as long a window takes in a layout as in the first, and how that is known; nil: it is not.
function Chooser:ratio(window, label)
  local a, b = self:measured(window, label)
  if a then return b / a, "measured" end
  a, b = self:estimated(window, label)
  if a then return self.kind.ratio(a, b, self.machine), "estimated" end
  return nil
end

-- A window's costs by label; `open` are those that rest on bounds.
function Chooser:price(window)
  local first, base = LABELS[1], window.bounds[LABELS[1]]
  window.costs, window.open, window.by = {[first] = base}, {}, {[first] = "bound"}
  local ratios = {}
  for _, label in ipairs(LABELS) do
    if label ~= first and window.functions[label] then
      ratios[label], window.by[label] = self:ratio(window, label)
      if ratios[label] then
        base, window.by[first] = self.times:cycles(window.functions[first]) or base, window.by[label]
      end
    end
  end
  window.costs[first] = base
  for _, label in ipairs(LABELS) do
    if ratios[label] then window.costs[label] = base * ratios[label]
    elseif window.functions[label] and label ~= first and window.is_estimated and not window.left_out
      and not self.lost[label] then
      window.open[label], window.by[label] = true, "bound"
      window.costs[label] = base * window.bounds[label] / window.bounds[first] * self.looks
    end
  end
end

-- The order of a value as assign.lua tells orders apart: those that are its bytes as written are one.
local function order_key(value, order)
  return order and layout.differ(value.shape, order) and layout.key(order) or ""
end

-- What a node gives and takes by the labels that it may have.
local function orders_by_label(self, node, kind)
  local values, each = self.chosen.values, {given = {}, taken = {}}
  for _, label in ipairs(LABELS) do
    local may = kind ~= "winograd" or label == LABELS[1]
    if may and layout.allowed(values, node, label, self.chosen.block) == label then
      each.given[label], each.taken[label] = layout.orders(values, node, label, self.chosen.block)
      each.given[label] = each.given[label] or false
    end
  end
  return each
end

-- The convolution or pool of steps, of which there is one at most; nil: there is none, or it is constant.
local function window_of(chosen, steps)
  for _, step in ipairs(steps) do
    local node = chosen.made_of[step.node]
    local value = chosen.values[node.outputs[1]]
    if layout.kind(chosen.values, node) == "window" and not value.constant and common.count(value.shape) > 0 then
      return node
    end
  end
  return nil
end

-- Nodes that are computed together with a window, which all have its label; and the steps of each window.
local function set_groups(self)
  self.leader, self.steps = {}, {}
  for _, group in ipairs(self.chosen.groups) do
    local steps = own_steps(self.chosen, group)
    local window = window_of(self.chosen, steps)
    if window then
      self.steps[window] = steps
      for _, step in ipairs(steps) do self.leader[self.chosen.made_of[step.node]] = window end
    end
  end
end

-- A node of the problem, or part of one: its window's.
local function add_node(self, node, kind)
  local window, each = self.leader[node], orders_by_label(self, node, kind)
  local n = self.number[window or node]
  if not n then
    n = #self.problem.nodes + 1
    -- the costs of windows are found later: those of which nothing is found stay as they are
    self.problem.nodes[n] = {node = window or node, costs = {}, may = {}}
    for label in pairs(each.given) do
      self.problem.nodes[n].may[label] = true
      if kind ~= "window" and not window or label == LABELS[1] then self.problem.nodes[n].costs[label] = 0 end
    end
  end
  self.number[node], self.number[window or node], self.orders[node] = n, n, each
  for label in pairs(self.problem.nodes[n].may) do
    if each.given[label] == nil then self.problem.nodes[n].may[label] = nil end
  end
end

-- The problem of assign.lua: nodes that layouts are chosen for, and values between them.
local function set_problem(self)
  local values, of_name = self.chosen.values, {}
  self.problem, self.number, self.orders = {nodes = {}, values = {}}, {}, {}
  for _, node in ipairs(self.chosen.net.nodes) do
    local kind = layout.kind(values, node)
    if kind then add_node(self, node, kind) end
  end
  local function value_of(name)
    local value = values[name]
    if not value or value.constant or common.count(value.shape) == 0 then return nil end
    if not of_name[name] then
      of_name[name] = {name = name, shape = value.shape, giver = {order = ""}, readers = {},
                       cost = self.kind.copy(memory.bytes(value), self.machine)}
      table.insert(self.problem.values, of_name[name])
    end
    return of_name[name]
  end
  local function user(n, value, order_in)
    if not n then return {order = ""} end
    local orders = {}
    for label in pairs(self.problem.nodes[n].may) do orders[label] = order_key(value, order_in(label)) end
    return {node = n, orders = orders}
  end
  for _, node in ipairs(self.chosen.net.nodes) do
    local n = self.number[node]
    local each = self.orders[node]
    for i, name in ipairs(node.inputs) do
      local value = name ~= "" and value_of(name)
      if value then
        table.insert(value.readers, user(n, value, function(label) return each.taken[label][i] end))
      end
    end
    local value = n and value_of(node.outputs[1])
    if value then value.giver = user(n, value, function(label) return each.given[label] end) end
  end
  for _, output in ipairs(self.chosen.net.outputs) do
    local value = value_of(output.name)
    if value then table.insert(value.readers, {order = ""}) end
  end
end

-- Windows whose groups begin with what layouts are chosen for: {n = its node's number, name, functions and bounds by
-- label, is_estimated}.
local function windows_of(self)
  local list, chosen = {}, self.chosen
  for n, node in ipairs(self.problem.nodes) do
    local steps, window = self.steps[node.node], node.node
    if steps then
      local each = {n = n, name = window.outputs[1], functions = {}, bounds = {},
                    is_estimated = self.kind.is_estimated(chosen.values, window)}
      for label in pairs(node.may) do
        each.functions[label], each.bounds[label] = function_in(chosen, steps, label),
          self.kind.window(chosen.values, window, label, self.machine)
      end
      list[#list + 1] = each
    end
  end
  return list
end

-- What layouts rest on as bounds alone: pairs of functions to estimate, those by which most may be gained first.
local function resting(self, labels)
  local list, of_pair = {}, {}
  for _, window in ipairs(self.windows) do
    local label = labels[window.n]
    if window.open[label] then
      local functions = {window.functions[LABELS[1]], window.functions[label]}
      local key = functions[1]:hash() .. functions[2]:hash()
      if not of_pair[key] then
        of_pair[key] = {functions = functions, windows = {}, gain = 0, at = #list + 1}
        list[#list + 1] = of_pair[key]
      end
      local pair = of_pair[key]
      pair.gain = pair.gain + window.costs[LABELS[1]] - window.costs[label]
      table.insert(pair.windows, window)
    end
  end
  table.sort(list, function(a, b) return a.gain ~= b.gain and a.gain > b.gain or a.gain == b.gain and a.at < b.at end)
  return list
end

-- How many distinct functions of windows have been estimated in another layout beside the first.
local function count_estimated(self)
  local seen, count = {}, 0
  for _, window in ipairs(self.windows) do
    for _, label in ipairs(LABELS) do
      local func = label ~= LABELS[1] and window.functions[label]
      if func and not seen[func:hash()] and self:estimated(window, label) then
        seen[func:hash()], count = true, count + 1
      end
    end
  end
  return count
end

-- Where there is no time to look at all: labels by which a window was estimated to take longer are lost to those that
-- were not estimated, since their bounds say too little.
local function lost_labels(self)
  local lost = {}
  for _, window in ipairs(self.further and {} or self.windows) do
    for label in pairs(window.functions) do
      local first, other = nil, nil
      if label ~= LABELS[1] then first, other = self:estimated(window, label) end
      if first and other / first > self.kind.lost then lost[label] = true end
    end
  end
  return lost
end

-- Estimates pairs, as many as may be: all at once, or one by one. Windows of what may not be, or cannot be estimated,
-- stay as they are.
local function look_at(self, pairs_of, labels)
  local functions, looked = {}, {}
  for _, pair in ipairs(pairs_of) do
    if self.left > 0 then table.move(pair.functions, 1, 2, #functions + 1, functions) end
    self.left = self.left - 1
    looked[#looked + 1] = pair
    if not self.further and self.left >= 0 then break end
  end
  self.times:propose(functions)
  for _, pair in ipairs(looked) do
    for _, window in ipairs(pair.windows) do window.left_out = not self:ratio(window, labels[window.n]) end
  end
end

-- The labels of nodes by their numbers that cost least. Those that rest on bounds are estimated, and it is asked again,
-- until none does.
function Chooser:choose(from)
  self.left = self.left - count_estimated(self)
  while true do
    self.lost = lost_labels(self)
    for _, window in ipairs(self.windows) do
      self:price(window)
      self.problem.nodes[window.n].costs = window.costs
    end
    local labels = assign.best(self.problem, LABELS, from)
    local open = resting(self, labels)
    if #open == 0 then return labels end
    look_at(self, open, labels)
  end
end

-- Lines that say why: of each convolution and pool its costs, and what is copied.
local function lines_of(self, labels)
  local list = {}
  for _, window in ipairs(self.windows) do
    local parts = {}
    for _, label in ipairs(LABELS) do
      if window.costs[label] then
        parts[#parts + 1] = string.format("%s %.0f (%s)", label, window.costs[label], window.by[label])
      end
    end
    list[#list + 1] = string.format("%s: %s of %s", window.name, labels[window.n], table.concat(parts, ", "))
  end
  for _, value in ipairs(self.problem.values) do
    local own = assign.cost({nodes = {}, values = {value}}, labels)
    if own > 0 then list[#list + 1] = string.format("%s: copied, %.0f", value.name, own) end
  end
  if #list > 0 then
    table.insert(list, 1, "in cycles, as copies' bytes and windows' bounds, estimates or times say:")
  end
  return list
end

-- Whether costs are known of a target.
function costs.are_known(target) return bounds.of(target) ~= nil end

-- costs.choose(chosen, options): labels of a network's nodes, nil: those that it has cost least; and lines that say
-- why.
-- chosen: the network as the plan has it where no layout is chosen, {net, values, labels, block, and of what
-- layout.arrange made of it state, groups, made_of}. options: of the run, with store; further: there is time to look at
-- all layouts that may pay.
function costs.choose(chosen, options)
  local target = ms.target(options.target or "native")
  local kind, machine = bounds.of(target)
  local self = setmetatable({chosen = chosen, kind = kind, machine = machine,
                             times = new_times(options, target, machine)}, Chooser)
  set_groups(self)
  set_problem(self)
  self.windows = windows_of(self)
  self.further = options.further and kind.further
  self.looks = self.further or 1
  self.left = self.further and math.huge or math.max(LEAST, #self.windows // PARTS)
  local from, changed, of_nodes = {}, false, {}
  for n, each in ipairs(self.problem.nodes) do from[n] = chosen.labels[each.node] end
  local labels = self:choose(from)
  for n in ipairs(self.problem.nodes) do changed = changed or labels[n] ~= from[n] end
  for node, n in pairs(self.number) do of_nodes[node] = labels[n] end
  return changed and of_nodes or nil, lines_of(self, labels)
end

return costs
