-- Draws another place for a block whose place was drawn; what does not fit any more is repaired when it is replayed.
return msched.mutator {
  name = "compute_location",
  apply = function(trace, stream)
    local choices = {}
    for _, d in ipairs(trace:draws()) do if d.kind == "SampleComputeLocation" and d.decision then choices[#choices + 1] = d end end
    if #choices == 0 then return nil end
    local d = choices[stream:below(#choices) + 1]
    return trace:with_decision(d.index, {stream:below(10) - 2})
  end,
}
