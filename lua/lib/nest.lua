-- The loop nest of a function, read from its TVMScript: loops, blocks and what else has a body, as a tree; and how many
-- bytes one run of each loop touches. Pictures are made of it: of reports (report/nest.lua), and in text
-- (`sch:draw()`).
local parts_of = msched.load "lua.lib.parts"
local nest = {}

-- ---- The tree ------------------------------------------------------------------------------------------------------

local HOW = {range = "serial", ["T.serial"] = "serial", ["T.grid"] = "serial", ["T.parallel"] = "parallel",
             ["T.vectorized"] = "vectorized", ["T.unroll"] = "unrolled"}

-- The loops of a line `for i, j in T.grid(8, 4):`, outermost first; {kind = "loop", name, extent, how}, the extent as
-- text where it is no number.
local function loops_of(text)
  local names, call, arguments = text:match "^for (.-) in ([%w_.]+)(%b()):$"
  if not names then return nil end
  local given, list = parts_of(arguments:sub(2, -2)), {}
  local how = call == "T.thread_binding" and (arguments:match 'thread%s*=%s*"([^"]*)"' or "thread") or HOW[call] or call
  for i, name in ipairs(parts_of(names)) do
    local extent = given[call == "T.grid" and i or 1]
    local last = call ~= "T.grid" and given[2] and not given[2]:find "=" and given[2]
    if last then
      extent = math.tointeger(last) and math.tointeger(extent) and math.tointeger(last) - math.tointeger(extent)
        or last .. " - " .. extent
    end
    list[i] = {kind = "loop", name = name, extent = math.tointeger(extent) or extent, how = how, children = {}}
  end
  return list
end

-- What a line says of the block that it is in. False: it is a statement.
local function take_block_line(block, text)
  local name, axis, arguments = text:match "^([%w_]+) = T%.axis%.(%w+)(%b())$"
  if name then
    local given = parts_of(arguments:sub(2, -2))
    block.iters[#block.iters + 1] = {name = name, kind = axis, binding = given[2]}
    return true
  end
  local names, kinds, bindings = text:match '^(.-) = T%.axis%.remap%("(%a+)", %[(.*)%]%)$'
  if names then
    for i, each in ipairs(parts_of(names)) do
      block.iters[#block.iters + 1] = {name = each, kind = kinds:sub(i, i) == "R" and "reduce" or "spatial",
                                       binding = parts_of(bindings)[i]}
    end
    return true
  end
  local what, regions = text:match "^T%.(%w+)(%b())$"
  if what == "reads" or what == "writes" then
    block[what] = parts_of(regions:sub(2, -2))
    return true
  end
  return text:find "^T%.where%(" ~= nil or text:find "^T%.sblock_attr%(" ~= nil
end

-- A buffer that a line makes or a parameter is: its dimensions and the bytes of an element.
local function take_buffer(buffers, text)
  local name, arguments = text:match "^([%w_]+) = T%.[%w_]*alloc_buffer(%b())$"
  if not name then name, arguments = text:match "^([%w_]+) = T%.match_buffer(%b())$" end
  if not name then return false end
  local bits = arguments:match '"%a+(%d+)' or "32"
  buffers[name] = {bytes = math.max(tonumber(bits), 8) // 8, scope = arguments:match 'scope%s*=%s*"([^"]*)"'}
  return true
end

local function take_parameters(buffers, text)
  for name, arguments in text:gmatch "([%w_]+): T%.Buffer(%b())" do
    buffers[name] = {bytes = math.max(tonumber(arguments:match '"%a+(%d+)' or "32"), 8) // 8}
  end
end

-- The node that a line begins, and the innermost one, in which the lines below stand.
local function node_of(text)
  local loops = loops_of(text)
  if loops then
    for i = 2, #loops do loops[i - 1].children[1] = loops[i] end
    return loops[1], loops[#loops]
  end
  local block = text:match '^with T%.sblock%("(.*)"%):$'
  local node = block and {kind = "block", name = block, iters = {}, reads = {}, writes = {}, children = {}}
    or text:find ":$" and {kind = "other", name = text:sub(1, -2), children = {}} or {kind = "statement", name = text}
  return node, node
end

-- The tree of a function's TVMScript: {kind = "root", name, buffers, children}. Nodes are loops, blocks {name, iters
-- {name, kind, binding}, reads, writes}, others that have a body (if, init, …), and statements.
function nest.read(script)
  local root = {kind = "root", name = "", buffers = {}, children = {}}
  local open = {} -- {node, indentation of its line}
  for line in script:gmatch "[^\n]+" do
    local indent, text = line:match "^(%s*)(.-)%s*$"
    local name = text:match "^def ([%w_]+)%("
    if name then
      root.name, open = name, {{root, #indent}}
      take_parameters(root.buffers, text)
    elseif #open > 0 and text ~= "" and text:sub(1, 1) ~= "#" then
      while #open > 1 and #indent <= open[#open][2] do table.remove(open) end
      local within = open[#open][1]
      local own = within.kind == "block" and take_block_line(within, text)
      if not (own or take_buffer(root.buffers, text) or text:find "^T%.func_attr") then
        local node, innermost = node_of(text)
        table.insert(within.children, node)
        if node.children then open[#open + 1] = {innermost, #indent} end
      end
    end
  end
  return root
end

-- ---- How many bytes a loop touches ----------------------------------------------------------------------------------

-- The least and the largest value of an expression of integers, names, + - * // % and brackets; ranges: {least,
-- largest} of each name. Each name counts as if it moved alone, so that the interval may be too wide. nil: the text is
-- something else.
local function interval_of(text, ranges)
  local at = 1
  local sum
  local function take(pattern)
    local found = text:match("^%s*" .. pattern, at)
    if found then at = select(2, text:find("^%s*" .. pattern, at)) + 1 end
    return found
  end
  local function atom()
    if take "(%()" then
      local low, high = sum()
      return take "(%))" and low, high
    end
    local number = take "(%d+)"
    if number then return tonumber(number), tonumber(number) end
    local range = ranges[take "([%a_][%w_]*)" or ""]
    if range then return range[1], range[2] end
  end
  local function corners(f, a, b, c, d)
    local w, x, y, z = f(a, c), f(a, d), f(b, c), f(b, d)
    return math.min(w, x, y, z), math.max(w, x, y, z)
  end
  local OPERATIONS = {
    ["*"] = function(a, b, c, d) return corners(function(x, y) return x * y end, a, b, c, d) end,
    ["//"] = function(a, b, c, d) if c > 0 then return corners(function(x, y) return x // y end, a, b, c, d) end end,
    ["%"] = function(a, b, c, d)
      if c ~= d or c <= 0 then return end
      if a // c == b // c then return a % c, b % c end
      return 0, math.min(b - a, c - 1)
    end,
  }
  local function product()
    local a, b = atom()
    while a do
      local operation = take "(//)" or take "([*%%])"
      if not operation then break end
      local c, d = atom()
      if not c then return end
      a, b = OPERATIONS[operation](a, b, c, d)
    end
    return a, b
  end
  function sum()
    local a, b = product()
    while a do
      local sign = take "([+-])"
      if not sign then break end
      local c, d = product()
      if not c then return end
      if sign == "+" then a, b = a + c, b + d else a, b = a - d, b - c end
    end
    return a, b
  end
  local low, high = sum()
  if low and text:find("^%s*$", at) then return low, high end
end

-- Elements of a region such as C[v_i, v_j * 4:v_j * 4 + 4]; nil: it is not known. The second result is the buffer's
-- name.
local function elements_of(region, ranges)
  local name, indices = region:match "^([%w_]+)(%b[])$"
  if not name then return nil, region end
  local count = 1
  for _, index in ipairs(parts_of(indices:sub(2, -2))) do
    local first, last = index:match "^(.-):(.*)$"
    local low, high = interval_of(first or index, ranges)
    if last then
      local _, past = interval_of(last, ranges)
      high = past and past - 1
    end
    if not low or not high then return nil, name end
    count = count * math.max(high - low + 1, 1)
  end
  return count, name
end

-- Adds what the blocks below a node touch to touched[buffer], elements; false where it is not known.
local function touch(node, ranges, touched)
  for _, child in ipairs(node.children or {}) do
    if child.kind == "loop" then
      ranges[child.name] = math.type(child.extent) == "integer" and {0, child.extent - 1} or nil
    end
    if child.kind == "block" then
      for _, iter in ipairs(child.iters) do
        local low, high = interval_of(iter.binding or "", ranges)
        ranges[iter.name] = low and {low, high}
      end
      for _, regions in ipairs {child.reads, child.writes} do
        for _, region in ipairs(regions) do
          local count, buffer = elements_of(region, ranges)
          touched[buffer] = count and touched[buffer] ~= false and math.max(touched[buffer] or 0, count)
        end
      end
    end
    touch(child, ranges, touched)
  end
end

-- Writes to each loop of the tree `bytes`: those that one run of it touches, with the loops around it standing still;
-- nil where it is not known.
function nest.measure(root)
  local function walk(node, around)
    for _, child in ipairs(node.children or {}) do
      local inner = around
      if child.kind == "loop" then
        inner = setmetatable({[child.name] = {0, 0}}, {__index = around})
        local touched, total = {}, 0
        touch({children = {child}}, setmetatable({}, {__index = around}), touched)
        for _, buffer in ipairs(msched.sorted_keys(touched)) do
          local size = root.buffers[buffer]
          total = total and touched[buffer] and size and total + touched[buffer] * size.bytes
        end
        child.bytes = total or nil
      end
      walk(child, inner)
    end
  end
  walk(root, {})
end

-- The nearest place of a target that so many bytes fit into.
function nest.place_of(bytes, target)
  if not target.l1_bytes then return nil end
  if bytes <= target.vector_registers * target.vector_bits // 8 then return "registers" end
  if bytes <= target.l1_bytes then return "L1" end
  if bytes <= target.l2_bytes then return "L2" end
  return bytes <= target.l3_bytes and "L3" or "memory"
end

function nest.bytes_text(bytes)
  if bytes < 1024 then return string.format("%d B", bytes) end
  if bytes < 1 << 20 then return string.format("%.3g KiB", bytes / 1024) end
  return string.format("%.3g MiB", bytes / (1 << 20))
end

return nest
