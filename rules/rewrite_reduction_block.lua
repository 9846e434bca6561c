-- Takes the init out of each reduction: under the loops that run in parallel or over space only, before the first that
-- reduces, or the first further in where it can be taken out. A reduction whose init can nowhere be keeps it.
local function place(sch, block)
  local reduces = false
  for _, l in ipairs {sch:get_loops(block)} do
    local kind = sch:loop_iter_kind(l)
    reduces = reduces or kind == "reduce" or kind == "mixed"
    if reduces and sch:can_decompose_reduction(block, l) then return l end
  end
end

return msched.postproc {
  name = "rewrite_reduction_block",
  apply = function(sch)
    for _, name in ipairs(sch:block_names()) do
      if name ~= "root" then
        local block = sch:get_sblock(name)
        local loop = sch:has_init(block) and place(sch, block)
        if loop then sch:decompose_reduction(block, loop) end
      end
    end
    return true
  end,
}
