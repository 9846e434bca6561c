-- Labels of the nodes of a graph, of which each costs something, and values that nodes with different labels share are
-- copied: those whose sum is least. Moves that let any of the nodes take one label are done as long as they pay, each
-- the best there is, by a minimum cut: with two labels the result is the best of all. Source: Boykov, Veksler and
-- Zabih, Fast Approximate Energy Minimization via Graph Cuts, 2001, section 5.
local assign = {}

-- ---- Minimum cuts ------------------------------------------------------------------------------------------------

local Flow = {}
Flow.__index = Flow
local SOURCE, SINK = 1, 2

local function new_flow() return setmetatable({count = 2, heads = {{}, {}}, to = {}, left = {}}, Flow) end

function Flow:node()
  self.count = self.count + 1
  self.heads[self.count] = {}
  return self.count
end

-- What it costs that `from` is on the source's side while `to` is on the sink's.
function Flow:edge(from, to, cost)
  if cost <= 0 or from == to then return end
  local e = #self.to
  self.to[e + 1], self.left[e + 1], self.to[e + 2], self.left[e + 2] = to, cost, from, 0
  table.insert(self.heads[from], e + 1)
  table.insert(self.heads[to], e + 2)
end

local function opposite(e) return e % 2 == 1 and e + 1 or e - 1 end

-- Distances from the source by edges that are not full; nil: none leads to the sink.
function Flow:levels()
  local level, queue, first = {[SOURCE] = 0}, {SOURCE}, 1
  while queue[first] do
    local at = queue[first]
    first = first + 1
    for _, e in ipairs(self.heads[at]) do
      local to = self.to[e]
      if self.left[e] > 0 and not level[to] then level[to], queue[#queue + 1] = level[at] + 1, to end
    end
  end
  return level[SINK] and level
end

function Flow:push(at, most, level, next_edge)
  if at == SINK then return most end
  local heads = self.heads[at]
  while next_edge[at] <= #heads do
    local e = heads[next_edge[at]]
    local to = self.to[e]
    if self.left[e] > 0 and level[to] == level[at] + 1 then
      local pushed = self:push(to, math.min(most, self.left[e]), level, next_edge)
      if pushed > 0 then
        local back = opposite(e)
        self.left[e], self.left[back] = self.left[e] - pushed, self.left[back] + pushed
        return pushed
      end
    end
    next_edge[at] = next_edge[at] + 1
  end
  return 0
end

-- The nodes of the sink's side of a minimum cut, the fewest there are.
function Flow:cut()
  for level in function() return self:levels() end do
    local next_edge = {}
    for n = 1, self.count do next_edge[n] = 1 end
    while self:push(SOURCE, math.huge, level, next_edge) > 0 do end
  end
  local reaches, queue, first = {[SINK] = true}, {SINK}, 1
  while queue[first] do
    for _, e in ipairs(self.heads[queue[first]]) do
      local from = self.to[e]
      if self.left[opposite(e)] > 0 and not reaches[from] then reaches[from], queue[#queue + 1] = true, from end
    end
    first = first + 1
  end
  return reaches
end

-- ---- Moves -------------------------------------------------------------------------------------------------------

-- What a labelling costs. problem: {nodes = {{costs = {label = cost}}}, values = {{cost, giver, readers}}}; a giver and
-- readers are {node = its number or nil, orders = {label = order}}, where node is nil {order = order}: a value is
-- copied, at its cost, once into each order in which it is read and not given.
local function order_of(user, labels) return user.node and user.orders[labels[user.node]] or user.order end

function assign.cost(problem, labels)
  local sum = 0
  for n, node in ipairs(problem.nodes) do sum = sum + node.costs[labels[n]] end
  for _, value in ipairs(problem.values) do
    local seen = {[order_of(value.giver, labels)] = true}
    for _, reader in ipairs(value.readers) do
      local order = order_of(reader, labels)
      if not seen[order] then seen[order], sum = true, sum + value.cost end
    end
  end
  return sum
end

-- Whether a user has an order: true or false whatever moves, or "stays", "moves": if its node does so.
local function has_order(user, order, labels, label, vertices)
  local now = order_of(user, labels) == order
  if not user.node or not vertices[user.node] then return now end
  local later = user.orders[label] == order
  if now == later then return now end
  return now and "stays" or "moves"
end

-- Edges of a value's copy into an order. Nodes that move are on the sink's side.
local function add_copy(flow, value, order, labels, label, vertices)
  local given = has_order(value.giver, order, labels, label, vertices)
  if given == true then return end
  local staying, moving, always = {}, {}, false
  for _, reader in ipairs(value.readers) do
    local reads = has_order(reader, order, labels, label, vertices)
    if reads == "stays" then staying[#staying + 1] = vertices[reader.node] end
    if reads == "moves" then moving[#moving + 1] = vertices[reader.node] end
    always = always or reads == true
  end
  local giver = value.giver.node and vertices[value.giver.node]
  if given ~= "stays" and (always or #moving > 0) then -- it is copied unless its giver moves
    local z = #moving > 0 and not always and flow:node() or SINK
    for _, reader in ipairs(z ~= SINK and moving or {}) do flow:edge(z, reader, math.huge) end
    flow:edge(given == "moves" and giver or SOURCE, z, value.cost)
  end
  if given ~= "moves" and (always or #staying > 0) then -- it is copied if its giver moves, or anyway
    local y = always and SOURCE or flow:node()
    for _, reader in ipairs(y ~= SOURCE and staying or {}) do flow:edge(reader, y, math.huge) end
    flow:edge(y, given == "stays" and giver or SINK, value.cost)
  end
end

-- The labels after the best move to a label.
local function moved(problem, labels, label)
  local flow, vertices = new_flow(), {}
  for n, node in ipairs(problem.nodes) do
    if node.costs[label] and labels[n] ~= label then
      vertices[n] = flow:node()
      local stays, moves = node.costs[labels[n]], node.costs[label]
      local common = math.min(stays, moves)
      flow:edge(vertices[n], SINK, stays - common)
      flow:edge(SOURCE, vertices[n], moves - common)
    end
  end
  for _, value in ipairs(problem.values) do
    local seen = {}
    for _, reader in ipairs(value.readers) do
      local orders = {order_of(reader, labels), reader.node and vertices[reader.node] and reader.orders[label] or nil}
      for _, order in ipairs(orders) do
        if not seen[order] then
          seen[order] = true
          add_copy(flow, value, order, labels, label, vertices)
        end
      end
    end
  end
  local reaches, list = flow:cut(), {}
  for n in ipairs(problem.nodes) do list[n] = vertices[n] and reaches[vertices[n]] and label or labels[n] end
  return list
end

local ROUNDS, LEAST = 8, 1e-9 -- of moves; the part of a cost by which one pays

-- assign.best(problem, labels, from): the list of labels by nodes that costs least of those that moves lead to, from a
-- labelling on, and its cost. labels: all there are, in the order in which they are tried.
function assign.best(problem, labels, from)
  local best, least = from, assign.cost(problem, from)
  for _ = 1, ROUNDS do
    local before = least
    for _, label in ipairs(labels) do
      local list = moved(problem, best, label)
      local cost = assign.cost(problem, list)
      if cost < least * (1 - LEAST) then best, least = list, cost end
    end
    if least == before then break end
  end
  return best, least
end

return assign
