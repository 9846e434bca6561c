-- The innermost loops of an assembly text as LLVM writes it, and what is in them.
local assembly = {}

local FUSED = "^v?fn?m[as][dul][dba]" -- vfmadd, vfmsub, vfnmadd, …; aarch64's fmla, fmls, fmadd
local ARITHMETIC = {"^v?add[ps]", "^v?sub[ps]", "^v?mul[ps]", "^v?div[ps]", "^v?max[ps]", "^v?min[ps]", "^v?sqrt",
                    "^vpdp", "^tdp", "^vpadd", "^vpmul", "^fadd", "^fmul", "^fsub", "^fdiv", "^sdot", "^udot"}

local function is_arithmetic(word)
  for _, pattern in ipairs(ARITHMETIC) do
    if word:find(pattern) then return true end
  end
  return word:find(FUSED) ~= nil
end

-- Whether an instruction names memory, and whether it writes it: the last operand is where x86's results go.
local function memory_of(word, operands)
  if word:find "^lea" or word:find "^nop" or word:find "^prefetch" then return false, false end
  if word:find "^ld" then return true, false end
  if word:find "^st" then return true, true end
  local at = operands:find "%([^)]*%)"
  if not at then return false, false end
  local writes = operands:find "%)%s*$" ~= nil and not word:find "^cmp" and not word:find "^test"
    and not word:find "^v?ucomi"
  return true, writes
end

local function on_stack(operands) return operands:find "%(%%rsp" or operands:find "%(%%rbp" or operands:find "%[sp" end

-- What the lines hold: counts of multiply_adds, arithmetic (besides), loads, stores, spills (either, of the stack),
-- others.
function assembly.count(lines)
  local counts = {multiply_adds = 0, arithmetic = 0, loads = 0, stores = 0, spills = 0, instructions = 0}
  local function add(name) counts[name] = counts[name] + 1 end
  for _, line in ipairs(lines) do
    local word, operands = line:match "^%s+([%a][%w.]*)%s*(.-)%s*$"
    if word then
      add "instructions"
      if word:find(FUSED) then add "multiply_adds" elseif is_arithmetic(word) then add "arithmetic" end
      local memory, writes = memory_of(word, operands)
      if memory then add(writes and "stores" or "loads") end
      if memory and on_stack(operands) then add "spills" end
    end
  end
  return counts
end

-- The text's lines without directives and comments, and the line of each label.
local function read(text)
  local lines, labels = {}, {}
  for line in text:gmatch "[^\n]+" do
    line = line:gsub("%s*[#;] .*$", "")
    local label = line:match "^([%w_.$]+):"
    if label then labels[label] = #lines + 1 end
    if line:find "%S" and not line:find "^%s+%." then lines[#lines + 1] = line end
  end
  return lines, labels
end

-- The loops that hold no other, {first, last} of lines: from a label to a jump back to it.
local function innermost(lines, labels)
  local loops = {}
  for i, line in ipairs(lines) do
    local word, to = line:match "^%s+(%a[%w.]*)%s+.-([%w_.$]+)%s*$"
    local first = word and (word:find "^j" or word:find "^b%.?%a*$" or word:find "^cb" or word:find "^tb")
      and labels[to]
    if first and first <= i then
      local holds = false
      for _, other in ipairs(loops) do holds = holds or other.first >= first and other.last <= i end
      if not holds then loops[#loops + 1] = {first = first, last = i} end
    end
  end
  return loops
end

-- The innermost loops, {lines, counts}: those with most multiply-adds first, then arithmetic, then loads, then as in
-- the text.
function assembly.inner_loops(text)
  local lines, labels = read(text)
  local list = innermost(lines, labels)
  for i, loop in ipairs(list) do
    loop.place, loop.lines = i, table.move(lines, loop.first, loop.last, 1, {})
    loop.counts = assembly.count(loop.lines)
  end
  table.sort(list, function(a, b)
    for _, what in ipairs {"multiply_adds", "arithmetic", "loads"} do
      if a.counts[what] ~= b.counts[what] then return a.counts[what] > b.counts[what] end
    end
    return a.place < b.place
  end)
  return list
end

return assembly
