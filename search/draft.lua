-- Drafts of a function's sketches: what its candidates cost, estimated from their decisions alone (draft.c).
local targets = msched.load "rules.targets"

local draft = {}

-- The machine of a target, as drafts see it: what the target knows, and the numbers of rules/targets.lua. nil: there are
-- none for its kind.
function draft.machine(target)
  if not targets[target.kind].draft then return nil end
  local machine = {cores = target.cores, vector_bits = target.vector_bits, registers = target.vector_registers,
                   cache_bytes = {target.l1_bytes, target.l2_bytes, target.l3_bytes}}
  for name, number in pairs(targets[target.kind].draft) do machine[name] = number end
  return machine
end

-- The cheapest candidates of all sketches, at most `most` and `each` of one register tile of a sketch, in rising order of
-- their cost: {trace, cost, tile, sketch}.
function draft.best(func, target, sketches, options)
  local machine, all = draft.machine(target), {}
  for i, sketch in ipairs(machine and sketches or {}) do
    for place, c in ipairs(msched.draft(func, sketch, machine):best(options)) do
      c.sketch, c.place = i, place
      all[#all + 1] = c
    end
  end
  table.sort(all, function(a, b)
    if a.cost ~= b.cost then return a.cost < b.cost end
    if a.sketch ~= b.sketch then return a.sketch < b.sketch end
    return a.place < b.place
  end)
  return table.move(all, 1, math.min(options.most, #all), 1, {})
end

return draft
