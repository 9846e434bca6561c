-- Scales how many parallel jobs the root's note asks for: a fraction of what it was made with.
return msched.mutator {
  name = "parallel",
  apply = function(trace, stream)
    return trace:with_annotation("meta_schedule.parallel", ({16, 32, 64, 128, 256, 512})[stream:below(6) + 1])
  end,
}
