-- Draws another place for a block whose place was drawn; what does not fit any more is repaired when it is replayed.
return msched.mutator {
  name = "compute_location",
  apply = function(trace, stream)
    local choices = trace:changeable "SampleComputeLocation"
    if #choices == 0 then return nil end
    local index = choices[stream:below(#choices) + 1]
    return trace:with_decision(index, {stream:below(10) - 2})
  end,
}
