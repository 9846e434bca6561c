-- Takes about half of the decisions from another trace of the same sketch.
local function same(a, b)
  for i, x in ipairs(a) do if x ~= b[i] then return false end end
  return #a == #b
end

return msched.mutator {
  name = "crossover",
  apply = function(trace, stream, other)
    if not other then return nil end
    local own, given = trace:draws(), other:draws()
    if #own ~= #given then return nil end
    local made
    for i, d in ipairs(own) do
      local decision = given[i].decision
      if given[i].kind ~= d.kind or given[i].index ~= d.index then return nil end
      if decision and d.decision and #decision ~= #d.decision then return nil end
      if decision and d.decision and not same(decision, d.decision) and stream:below(2) == 1 then
        made = (made or trace):with_decision(d.index, decision)
      end
    end
    return made
  end,
}
