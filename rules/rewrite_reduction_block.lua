-- Takes the init out of each reduction: under the loops that run in parallel or over space only, before the first that
-- reduces.
return msched.postproc {
  name = "rewrite_reduction_block",
  apply = function(sch)
    for _, name in ipairs(sch:block_names()) do
      if name ~= "root" then
        local block = sch:get_sblock(name)
        if sch:has_init(block) then
          for _, l in ipairs {sch:get_loops(block)} do
            local kind = sch:loop_iter_kind(l)
            if kind == "reduce" or kind == "mixed" then
              sch:decompose_reduction(block, l)
              break
            end
          end
        end
      end
    end
    return true
  end,
}
