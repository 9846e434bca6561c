-- Draws another of the steps of unrolling.
return msched.mutator {
  name = "unroll",
  apply = function(trace, stream)
    local choices = {}
    for _, d in ipairs(trace:draws()) do
      if d.kind == "SampleCategorical" and d.decision and #d.attrs[1] > 1 then choices[#choices + 1] = d end
    end
    if #choices == 0 then return nil end
    local d = choices[stream:below(#choices) + 1]
    local other = stream:below(#d.attrs[1] - 1)
    if other >= d.decision[1] then other = other + 1 end
    return trace:with_decision(d.index, {other})
  end,
}
