-- Binds the loops of a block that nothing else bound: to blocks and, so many a block, to threads.
local common, binding = msched.load "rules.common", msched.load "rules.binding"

return msched.rule {
  name = "auto_bind",
  at = "blocks",
  apply = function(sch, block, context, self)
    if sch:is_root(block) or not sch:is_below_root(block) then return {sch} end
    local p = {max_blocks = self.parameters.max_blocks, max_threads = context.target.max_threads}
    binding.bind(sch, block, p, function(most)
      local fitting = {}
      for _, n in ipairs(self.parameters.thread_extents) do if n <= most then fitting[#fitting + 1] = n end end
      return #fitting > 1 and common.sample_equal(sch, fitting) or fitting[1] or most
    end)
    return {sch}
  end,
}
