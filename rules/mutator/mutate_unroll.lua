-- Draws another of the steps of unrolling.
local common = msched.load "rules.common"

return msched.mutator {
  name = "unroll",
  apply = function(trace, stream)
    return common.draw_other(trace, stream, "unroll")
  end,
}
