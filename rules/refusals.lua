-- What was refused, by whom and why: a rule's or postprocessor's name, or the instruction's where a trace is replayed;
-- and the code of the instruction's refusal, nil where the rule itself gave nothing.
local refusals = {}

local function key_of(by, code) return code and by .. ": " .. code or by end

function refusals.add(all, by, code, example, count)
  local key = key_of(by, code)
  local r = all[key]
  if not r then
    r = {by = by, code = code, count = 0, example = example and example:match "^[^\n]*"}
    all[key] = r
  end
  r.count = r.count + (count or 1)
end

function refusals.merge(all, others)
  for _, r in ipairs(others) do refusals.add(all, r.by, r.code, r.example, r.count) end
end

-- As a list: the most frequent first, then by name.
function refusals.list(all)
  local list = {}
  for _, key in ipairs(msched.sorted_keys(all)) do list[#list + 1] = all[key] end
  table.sort(list, function(a, b)
    if a.count ~= b.count then return a.count > b.count end
    return key_of(a.by, a.code) < key_of(b.by, b.code)
  end)
  return list
end

-- Their numbers by name and code.
function refusals.counts(all)
  local counts = {}
  for key, r in pairs(all) do counts[key] = r.count end
  return counts
end

-- A table: how often, by whom, the code, the first of them in a line.
function refusals.text(all)
  local list, by, code = refusals.list(all), 2, 4
  for _, r in ipairs(list) do by, code = math.max(by, #r.by), math.max(code, #(r.code or "-")) end
  local lines, format = {}, string.format("  %%7d  %%-%ds  %%-%ds  %%s", math.min(by, 60), math.min(code, 60))
  for i, r in ipairs(list) do
    lines[i] = string.format(format, r.count, r.by, r.code or "-", r.example or ""):gsub("%s+$", "")
  end
  return table.concat(lines, "\n")
end

return refusals
