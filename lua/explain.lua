-- What each instruction of a trace did to the module, and which later ones build on it.
local ms = msched
local explain = {}

local function lines_of(text)
  local list = {}
  for line in text:gmatch "[^\n]+" do list[#list + 1] = line end
  return list
end

-- The difference of two lists of lines: a list of {mark, line}, mark "-", "+" or " ". By the longest common subsequence.
local function difference(a, b)
  local length = {}
  for i = #a, 0, -1 do
    length[i] = {}
    for j = #b, 0, -1 do
      if i == #a or j == #b then length[i][j] = 0
      elseif a[i + 1] == b[j + 1] then length[i][j] = length[i + 1][j + 1] + 1
      else length[i][j] = math.max(length[i + 1][j], length[i][j + 1]) end
    end
  end
  local list, i, j = {}, 0, 0
  while i < #a or j < #b do
    if i < #a and j < #b and a[i + 1] == b[j + 1] then
      i, j = i + 1, j + 1
      list[#list + 1] = {" ", a[i]}
    elseif j == #b or i < #a and length[i + 1][j] >= length[i][j + 1] then
      i = i + 1
      list[#list + 1] = {"-", a[i]}
    else
      j = j + 1
      list[#list + 1] = {"+", b[j]}
    end
  end
  return list
end

-- The instructions of a trace as lines of Lua, from number 0.
local function instructions_of(trace)
  local list = {}
  for i, line in ipairs(lines_of(trace:text())) do list[i - 2] = line:gsub("^%s+", "") end
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

-- Steps of a trace on a function: {first, last, text, changes}, a whole If or For being one. changes: {mark, line}….
function explain.steps(func, trace)
  local texts, steps, i = instructions_of(trace), {}, 0
  local before = lines_of(ms.schedule(func):script())
  while i < #trace do
    local last = end_of(texts, i)
    local after = lines_of(ms.apply(func, trace:head(last + 1)):script())
    steps[#steps + 1] = {first = i, last = last, text = table.concat(texts, "\n", i, last), changes = difference(before, after)}
    before, i = after, last + 1
  end
  return steps
end

-- Instructions after number n that take what it gives: {direct…}, {through others…}.
function explain.dependents(trace, n)
  local depends, direct, indirect = {[n] = true}, {}, {}
  for i = n + 1, #trace - 1 do
    for _, giver in ipairs(trace:uses(i)) do
      if giver == n then
        direct[#direct + 1] = i
        depends[i] = true
        break
      end
    end
    if not depends[i] then
      for _, giver in ipairs(trace:uses(i)) do depends[i] = depends[i] or depends[giver] end
      if depends[i] then indirect[#indirect + 1] = i end
    end
  end
  return direct, indirect
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
      print((paint or "") .. "    " .. c[1] .. " " .. c[2] .. (paint and "\27[0m" or ""))
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

-- Prints each step, what it changed, and what depends on it; only that with instruction `wanted`, if given.
function explain.print(func, trace, options)
  local found = false
  for _, s in ipairs(explain.steps(func, trace)) do
    if not options.wanted or s.first <= options.wanted and options.wanted <= s.last then
      found = true
      print(string.format("%3d  %s", s.first, (s.text:gsub("\n", "\n     "))))
      local removed, added = count_changes(s.changes)
      if options.dependents then
        print(removed + added == 0 and "     leaves the module as it is" or string.format("     takes away %d lines, adds %d", removed, added))
        local direct, indirect = explain.dependents(trace, options.wanted or s.first)
        print(string.format("     used by: %s; through them by: %s", numbers_text(direct), numbers_text(indirect)))
      end
      explain.print_changes(s.changes, options.around or 1, options.colour)
    end
  end
  return found
end

-- schedule:explain(n): the same for the instruction numbered n, from 0, or for all.
function ms.schedule_methods.explain(sch, n)
  local found = explain.print(sch:workload(), sch.trace, {wanted = n, dependents = true, colour = false})
  if n and not found then error(string.format("there is no instruction %d: the trace has %d", n, #sch.trace), 2) end
end

return explain
