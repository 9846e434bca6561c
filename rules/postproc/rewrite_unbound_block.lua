-- Binds blocks that no rule bound to blocks and threads of a GPU: as many threads as a block may have. Not what packs
-- constants, which is done ahead of all runs.
local binding, common = msched.load "rules.binding", msched.load "rules.common"

return msched.postproc {
  name = "rewrite_unbound_block",
  apply = function(sch, context, self)
    local most = context.target.max_threads
    local p = {max_blocks = self.parameters.max_blocks, max_threads = most}
    for _, name in ipairs(sch:unbound_blocks()) do
      local block = sch:get_sblock(name)
      if not common.packs(sch, block) then binding.bind(sch, block, p, function(extent) return extent end) end
    end
  end,
}
