-- Binds blocks that no rule bound to blocks and threads of a GPU: as many threads as a block may have.
local binding = msched.load "rules.binding"

return msched.postproc {
  name = "rewrite_unbound_block",
  apply = function(sch, context, self)
    local most = context.target.max_threads
    local p = {max_blocks = self.parameters.max_blocks, max_threads = most}
    for _, name in ipairs(sch:unbound_blocks()) do
      binding.bind(sch, sch:get_sblock(name), p, function(extent) return extent end)
    end
  end,
}
