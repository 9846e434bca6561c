-- Has blocks done by the tensor intrinsics that were noted for them: a block of blocks as it is, another by its
-- innermost loops, as many as the intrinsic has. An init that has none of its own is vectorized, where the target wants
-- that.
local NOTE = "meta_schedule.auto_tensorize"

local function vectorize_init(sch, block)
  local children = {sch:get_child_blocks(block)}
  local loops = children[1] and {sch:get_loops(children[1])} or {}
  local inner = loops[#loops]
  if inner then sch:try("vectorize", inner) end
end

local function tensorize(sch, block, intrinsic)
  if #{sch:get_child_blocks(block)} > 0 then return sch:tensorize(block, intrinsic) end
  local loops, described = {sch:get_loops(block)}, sch:intrinsic_loops(intrinsic)
  sch:tensorize(loops[#loops - #described + 1], intrinsic)
end

return msched.postproc {
  name = "rewrite_tensorize",
  apply = function(sch, _, self)
    for _, name in ipairs(sch:blocks_with(NOTE)) do
      local block = sch:get_sblock(name)
      local intrinsic = sch:annotation(block, NOTE)
      sch:unannotate(block, NOTE)
      if intrinsic ~= "" then tensorize(sch, block, intrinsic)
      elseif self.parameters.vectorize_init and name:find("init", 1, true) then vectorize_init(sch, block) end
    end
  end,
}
