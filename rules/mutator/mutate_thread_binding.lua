-- Draws another number of threads for a loop that is bound to them.
local common = msched.load "rules.common"

return msched.mutator {
  name = "thread_binding",
  apply = function(trace, stream)
    return common.draw_other(trace, stream, "threadIdx")
  end,
}
