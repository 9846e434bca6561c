-- What each instruction of a trace did to the module, and which later ones build on it.
local ms = msched
local explain = {}

function explain.lines_of(text)
  local list = {}
  for line in text:gmatch "[^\n]+" do list[#list + 1] = line end
  return list
end

-- Appends the difference of a[a0 + 1 … a1] and b[b0 + 1 … b1], by their longest common subsequence.
local function compare(list, a, a0, a1, b, b0, b1)
  local length = {}
  for i = a1, a0, -1 do
    length[i] = {}
    for j = b1, b0, -1 do
      if i == a1 or j == b1 then length[i][j] = 0
      elseif a[i + 1] == b[j + 1] then length[i][j] = length[i + 1][j + 1] + 1
      else length[i][j] = math.max(length[i + 1][j], length[i][j + 1]) end
    end
  end
  local i, j = a0, b0
  while i < a1 or j < b1 do
    if i < a1 and j < b1 and a[i + 1] == b[j + 1] then
      i, j = i + 1, j + 1
      list[#list + 1] = {" ", a[i]}
    elseif j == b1 or i < a1 and length[i + 1][j] >= length[i][j + 1] then
      i = i + 1
      list[#list + 1] = {"-", a[i]}
    else
      j = j + 1
      list[#list + 1] = {"+", b[j]}
    end
  end
end

-- The difference of two lists of lines: a list of {mark, line}, mark "-", "+" or " ". What an instruction changes lies
-- close together: the lines around it are separated first.
function explain.difference(a, b)
  local list, head, tail = {}, 0, 0
  local most = math.min(#a, #b)
  while head < most and a[head + 1] == b[head + 1] do head = head + 1 end
  while tail < most - head and a[#a - tail] == b[#b - tail] do tail = tail + 1 end
  for i = 1, head do list[i] = {" ", a[i]} end
  compare(list, a, head, #a - tail, b, head, #b - tail)
  for i = #a - tail + 1, #a do list[#list + 1] = {" ", a[i]} end
  return list
end

-- The instructions of a trace as lines of Lua, from number 0.
local function instructions_of(trace)
  local list = {}
  for i, line in ipairs(explain.lines_of(trace:text())) do list[i - 2] = line:gsub("^%s+", "") end
  list[#trace], list[-1] = nil, nil -- the chunk's own first and last line
  return list
end

-- The end of the If or For that instruction i begins; i itself for others. Only whole ones can be replayed.
local function end_of(texts, i)
  local depth = 0
  for n = i, #texts do
    local text = texts[n]
    if text:find "^sch:if_" or text:find "sch:for_%(" then depth = depth + 1 end
    if text:find "^sch:end_" then depth = depth - 1 end
    if depth == 0 then return n end
  end
  return #texts
end

-- Steps of a trace on a function, or only that with instruction `wanted`: {first, last, texts, changes}, a whole If or
-- For being one; the first `most`, if given. changes: {mark, line}….
function explain.steps(func, trace, wanted, most)
  local texts, steps, i, before = instructions_of(trace), {}, 0, nil
  local function module_of(count) return explain.lines_of(ms.apply(func, trace:head(count)):script()) end
  while i < #trace and #steps < (most or math.huge) do
    local last = end_of(texts, i)
    if not wanted or i <= wanted and wanted <= last then
      before = before or module_of(i)
      local after = module_of(last + 1)
      steps[#steps + 1] = {first = i, last = last, texts = table.move(texts, i, last, 1, {}),
                           changes = explain.difference(before, after)}
      before = after
    end
    i = last + 1
  end
  return steps
end

-- Instructions after number `last` that take what those from `first` on to it give: {direct…}, {through others…}.
function explain.dependents(trace, first, last)
  local depends, direct, indirect = {}, {}, {}
  for i = last + 1, #trace - 1 do
    local taken, through = false, false
    for _, giver in ipairs(trace:uses(i)) do
      taken = taken or first <= giver and giver <= last
      through = through or depends[giver]
    end
    depends[i] = taken or through
    if taken then direct[#direct + 1] = i elseif through then indirect[#indirect + 1] = i end
  end
  return direct, indirect
end

-- What is shown of a step: the dependents of an instruction that is asked for, or of all that a step holds.
function explain.dependents_of(trace, step, wanted)
  if wanted and wanted > step.first then return explain.dependents(trace, wanted, wanted) end
  return explain.dependents(trace, step.first, step.last)
end

local colours = {["-"] = "\27[31m", ["+"] = "\27[32m"}

-- The lines that changed, with `around` lines of those that did not.
function explain.print_changes(changes, around, colour)
  local shown, last = {}, 0
  for i, c in ipairs(changes) do
    if c[1] ~= " " then for k = math.max(i - around, 1), math.min(i + around, #changes) do shown[k] = true end end
  end
  for i, c in ipairs(changes) do
    if shown[i] then
      if last > 0 and i > last + 1 then print "      …" end
      local paint = colour and colours[c[1]]
      print((paint or "") .. ms.visible("    " .. c[1] .. " " .. c[2]) .. (paint and "\27[0m" or ""))
      last = i
    end
  end
end

local function count_changes(changes)
  local removed, added = 0, 0
  for _, c in ipairs(changes) do
    removed = removed + (c[1] == "-" and 1 or 0)
    added = added + (c[1] == "+" and 1 or 0)
  end
  return removed, added
end

local function numbers_text(list)
  return #list > 0 and table.concat(list, ", ") or "none"
end

local function print_effect(trace, step, wanted)
  local removed, added = count_changes(step.changes)
  print(removed + added == 0 and "     leaves the module as it is"
        or string.format("     takes away %d line%s, adds %d", removed, removed == 1 and "" or "s", added))
  local direct, indirect = explain.dependents_of(trace, step, wanted)
  print(string.format("     used by: %s; through them by: %s", numbers_text(direct), numbers_text(indirect)))
end

-- Prints each step, what it changed, and what depends on it; only that with instruction `wanted`, if given. False:
-- there is no such.
function explain.print(func, trace, options)
  local steps = explain.steps(func, trace, options.wanted)
  for _, s in ipairs(steps) do
    for i, text in ipairs(s.texts) do print(ms.visible(string.format("%3d  %s", s.first + i - 1, text), "lua")) end
    if options.dependents then print_effect(trace, s, options.wanted) end
    explain.print_changes(s.changes, options.around or 1, options.colour)
  end
  return #steps > 0 or not options.wanted
end

-- schedule:explain(n): the same for the instruction numbered n, from 0, or for all.
function ms.schedule_methods.explain(sch, n)
  if n ~= nil and math.type(n) ~= "integer" then
    error("explain: the number of an instruction is expected, or nothing", 2)
  end
  if not explain.print(sch:workload(), sch.trace, {wanted = n, dependents = true, colour = false}) then
    error(string.format("there is no instruction %d: the trace has %d, from 0", n, #sch.trace), 2)
  end
end

return explain
