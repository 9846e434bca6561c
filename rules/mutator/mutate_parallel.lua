-- Draws another number of parallel jobs.
local common = msched.load "rules.common"

return msched.mutator {
  name = "parallel",
  apply = function(trace, stream)
    return common.draw_other(trace, stream, "meta_schedule.parallel")
  end,
}
