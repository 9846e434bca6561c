-- How much each decision of a trace matters, from what was timed: candidates are ranked by time, those that were
-- stopped as hopeless share the last rank; the share of the ranks' variance that lies between candidates that decided
-- differently, less what as many groups of chance would hold, is what the decision explains (omega squared: Hays,
-- "Statistics for Psychologists", 1963).
local ms = msched
local decisions = {}

-- values: what each candidate decided; ranks: theirs. nil where nothing can be said: one group, or no candidate shares
-- its value with another.
function decisions.share(values, ranks)
  local sum, groups, count = 0, {}, 0
  for i, rank in ipairs(ranks) do
    local g = groups[values[i]]
    if not g then
      g = {n = 0, sum = 0}
      groups[values[i]], count = g, count + 1
    end
    g.n, g.sum, sum = g.n + 1, g.sum + rank, sum + rank
  end
  if count < 2 or count == #ranks then return nil end
  local mean, between, total = sum / #ranks, 0, 0
  for _, rank in ipairs(ranks) do total = total + (rank - mean) ^ 2 end
  for _, key in ipairs(ms.sorted_keys(groups)) do
    between = between + groups[key].n * (groups[key].sum / groups[key].n - mean) ^ 2
  end
  local within = (total - between) / (#ranks - count)
  if total <= 0 then return nil end
  return math.max((between - (count - 1) * within) / (total + within), 0)
end

-- The ranks of records by time, from 1; those that are equal, or were stopped as hopeless, share the mean of theirs.
function decisions.ranks_of(records)
  local function time(r) return r.status == "measured" and r.seconds or math.huge end
  local order, ranks, first = {}, {}, 1
  for i = 1, #records do order[i] = i end
  table.sort(order, function(a, b) return time(records[a]) < time(records[b]) end)
  for i = 1, #order do
    if i == #order or time(records[order[i + 1]]) > time(records[order[i]]) then
      for k = first, i do ranks[order[k]] = (first + i) / 2 end
      first = i + 1
    end
  end
  return ranks
end

-- The values of a decision, {value, count, measured, fastest, rank (the mean)}, those of the best rank first.
local function values_of(values, records, ranks)
  local list, by_value = {}, {}
  for i, r in ipairs(records) do
    local v = by_value[values[i]]
    if not v then
      v = {value = values[i], count = 0, measured = 0, rank = 0}
      by_value[values[i]], list[#list + 1] = v, v
    end
    v.count, v.rank = v.count + 1, v.rank + ranks[i]
    if r.status == "measured" then
      v.measured, v.fastest = v.measured + 1, math.min(v.fastest or math.huge, r.seconds)
    end
  end
  for _, v in ipairs(list) do v.rank = v.rank / v.count end
  table.sort(list, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    return tostring(a.value) < tostring(b.value)
  end)
  return list
end

-- ---- What a draw is for ---------------------------------------------------------------------------------------------

-- What the trace's text says of each variable: {line, place among the line's results}.
local function definitions_of(lines)
  local made = {}
  for i, line in ipairs(lines) do
    local place = 0
    for name in (line:match "^(.-) = " or ""):gmatch "v%.(%w+)" do
      place = place + 1
      made[name] = {line = i, place = place}
    end
  end
  return made
end

-- Where a loop or block comes from, in words.
local function origin_of(name, lines, made)
  local at = made[name]
  if not at then return name end
  local call, arguments = lines[at.line]:match "sch:([%w_]+)(%b())"
  if call == "get_sblock" then return "block " .. (arguments:match '"([^"]*)"' or name) end
  local from = arguments and arguments:match "v%.(%w+)"
  if call == "get_loops" and from then return string.format("loop %d of %s", at.place, origin_of(from, lines, made)) end
  if call == "split" and from then return string.format("part %d of %s", at.place, origin_of(from, lines, made)) end
  return from and string.format("%s of %s", call:gsub("_", " "), origin_of(from, lines, made)) or name
end

-- The first line after `at` that takes a variable.
local function use_of(name, lines, at)
  for i = at + 1, #lines do
    if (lines[i]:match "sch:.*" or ""):find("v%." .. name .. "%f[%W]") then return lines[i] end
  end
  return ""
end

-- The place of a variable in a list of factors as text.
local function place_in(factors, name)
  local before = factors:sub(1, (factors:find("v%." .. name .. "%f[%W]")))
  return select(2, before:gsub(",", "")) + 1
end

-- What a draw decides, in words; line: its own.
local function purpose_of(draw, line, at, lines, made)
  if draw.annotates then return draw.annotates end
  local result, input = line:match "^v%.(%w+)", line:match "sch:[%w_]+%(v%.(%w+)"
  if draw.kind == "SamplePerfectTile" or draw.kind == "SamplePartitionedTile" then
    return "tile of " .. origin_of(input or "", lines, made)
  end
  if draw.kind == "SampleComputeLocation" then return "where to compute " .. origin_of(input or "", lines, made) end
  local used = result and use_of(result, lines, at) or ""
  local loop, factors = used:match "sch:split%(v%.(%w+), {(.-)}"
  if loop then return string.format("factor %d of %s", place_in(factors, result), origin_of(loop, lines, made)) end
  return used:match "sch:([%w_]+)" and "a number for " .. used:match "sch:([%w_]+)" or draw.kind
end

-- What number of a draw's decision stands for: of a choice among candidates, the candidate.
local function value_of(draw, number)
  local candidates = draw.attrs[1]
  if draw.kind == "SampleCategorical" and type(candidates) == "table" and candidates[number + 1] then
    return candidates[number + 1]
  end
  return number
end

-- ---- Of the records of a task ---------------------------------------------------------------------------------------

-- Records that were timed and whose traces read: {sketch, trace, record} each, the sketch a number that those share
-- whose traces are the same but for their decisions. Those stopped as hopeless count with the time at which they were.
-- The second result: such as were timed on a busy machine, whose times say too little to be ranked by.
local function read_all(records)
  local list, busy, numbers, count = {}, {}, {}, 0
  for _, r in ipairs(records) do
    local ok, trace = pcall(ms.read_trace, r.trace)
    if ok and r.seconds > 0 and (r.status == "measured" or r.status == "censored") then
      trace = trace:simplified(false)
      local key = trace:undecided():binary()
      if not numbers[key] then
        count = count + 1
        numbers[key] = count
      end
      local into = r.busy and busy or list
      into[#into + 1] = {sketch = numbers[key], trace = trace, record = r}
    end
  end
  return list, busy
end

local LEAST = 8 -- records of the best's sketch; with fewer, the sketch with most is looked at

-- The sketch whose draws are compared; best: that of the best record, if its trace reads.
local function sketch_of(list, best)
  local counts, of_best, most = {}, best and best.sketch, nil
  for _, each in ipairs(list) do counts[each.sketch] = (counts[each.sketch] or 0) + 1 end
  for _, sketch in ipairs(ms.sorted_keys(counts)) do
    if not most or counts[sketch] > counts[most] then most = sketch end
  end
  return of_best and (counts[of_best] or 0) >= LEAST and of_best or most
end

local function row(what, values, all, chosen)
  return {what = what, share = decisions.share(values, all.ranks), values = values_of(values, all.records, all.ranks),
          chosen = chosen}
end

-- The decisions of draw number `number`, a row each; of a perfect tile all factors but the first, which follows from
-- the others.
local function rows_of(draw, number, all, what)
  local rows, first = {}, draw.kind == "SamplePerfectTile" and 2 or 1
  for place = first, #draw.decision do
    local values = {}
    for i, draws in ipairs(all.draws) do
      local other = draws[number]
      values[i] = other.decision and value_of(other, other.decision[place]) or "open"
    end
    rows[#rows + 1] = row(#draw.decision > 1 and string.format("%s, factor %d of %d", what, place, #draw.decision)
                          or what, values, all, value_of(draw, draw.decision[place]))
  end
  return rows
end

-- All draws of a sketch's records, a row each decision; example: the record whose decisions are shown.
local function rows_of_sketch(all, example)
  local lines, rows = {}, {}
  for line in example.trace:text():gmatch "[^\n]+" do lines[#lines + 1] = line:match "^%s*(.*)$" end
  local made = definitions_of(lines)
  for number, draw in ipairs(example.trace:draws()) do
    local at = draw.index + 2 -- after the chunk's own first line
    local what = draw.decision and purpose_of(draw, lines[at], at, lines, made)
    for _, r in ipairs(draw.decision and rows_of(draw, number, all, what) or {}) do rows[#rows + 1] = r end
  end
  for i, r in ipairs(rows) do r.place = i end
  table.sort(rows, function(a, b)
    local x, y = a.share or -1, b.share or -1
    return x ~= y and x > y or x == y and a.place < b.place
  end)
  return rows
end

-- What each draw of a trace is for, in words.
local function purposes_of(trace)
  local lines, list = {}, {}
  for line in trace:text():gmatch "[^\n]+" do lines[#lines + 1] = line:match "^%s*(.*)$" end
  local made = definitions_of(lines)
  for number, draw in ipairs(trace:draws()) do
    list[number] = purpose_of(draw, lines[draw.index + 2], draw.index + 2, lines, made)
  end
  return list
end

local function decision_text(draw)
  local parts = {}
  for i, number in ipairs(draw.decision or {}) do parts[i] = tostring(value_of(draw, number)) end
  return #parts > 0 and table.concat(parts, " x ") or "open"
end

-- What a trace decides that another does not, in words, a text each; nil: they are of different sketches.
function decisions.differences(trace, other)
  if trace:undecided():binary() ~= other:undecided():binary() then return nil end
  local list, purposes, theirs = {}, purposes_of(trace), other:draws()
  for number, draw in ipairs(trace:draws()) do
    local a, b = decision_text(draw), decision_text(theirs[number])
    if a ~= b then list[#list + 1] = string.format("%s %s, not %s", purposes[number], a, b) end
  end
  return list
end

-- That one of lists whose record it is.
local function entry_of(record, ...)
  for _, list in ipairs {...} do
    for _, each in ipairs(list) do
      if each.record.id == record.id then return each end
    end
  end
end

-- {rows {what, share, values, chosen}, records, all, busy}: the decisions of a task's best, those that matter most
-- first; of how many records of its sketch, and of how many in all; and how many were left out, having been timed on a
-- busy machine, which is all that is given where there are only such.
function decisions.of(task)
  if not task.best then return {busy = 0} end
  local list, busy = read_all(task.records)
  if #list == 0 then return {busy = #busy} end
  local best = entry_of(task.best, list, busy)
  local sketch, whole, sketches = sketch_of(list, best), {records = {}}, {}
  local own, example = {records = {}, draws = {}}, best and best.sketch == sketch and best or nil
  for i, each in ipairs(list) do
    sketches[i], whole.records[i] = "sketch " .. each.sketch, each.record
    if each.sketch == sketch then
      table.insert(own.records, each.record)
      table.insert(own.draws, each.trace:draws())
      example = example or each
    end
  end
  whole.ranks, own.ranks = decisions.ranks_of(whole.records), decisions.ranks_of(own.records)
  local rows = rows_of_sketch(own, example)
  table.insert(rows, 1, row("sketch: which instructions", sketches, whole, "sketch " .. (best or example).sketch))
  return {rows = rows, records = #own.records, all = #list, busy = #busy}
end

return decisions
