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

-- The block of this name that has a note, of those below another.
local function noted(sch, name, above)
  for _, block in ipairs {sch:get_child_blocks(above)} do
    if sch:block_name(block) == name and sch:annotation(block, NOTE) then return block end
    local found = noted(sch, name, block)
    if found then return found end
  end
end

-- The same, where a block around it may have its name, too: what is taken out of the reductions of both.
local function find(sch, name)
  local only, block = sch:try("get_sblock", name)
  return only and block or noted(sch, name, sch:get_sblock(sch:root_block()))
end

return msched.postproc {
  name = "rewrite_tensorize",
  apply = function(sch, _, self)
    for _, name in ipairs(sch:blocks_with(NOTE)) do
      local block = find(sch, name)
      local intrinsic = sch:annotation(block, NOTE)
      sch:unannotate(block, NOTE)
      if intrinsic ~= "" then tensorize(sch, block, intrinsic)
      elseif self.parameters.vectorize_init and name:find("init", 1, true) then vectorize_init(sch, block) end
    end
  end,
}
