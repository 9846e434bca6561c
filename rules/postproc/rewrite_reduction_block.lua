-- Takes the init out of each reduction: under the loops that run in parallel or over space only, before the first that
-- reduces, or the first further in where it can be taken out. A reduction whose init can nowhere be keeps it, and so
-- does one that threads do together: lowering gives each its own. Of a register tile only loops of several iterations
-- count, unless it is noted that its init comes before: where the reduction is in one piece, each tile begins at its
-- own init, and its registers are loaded with that.
local common = msched.load "rules.common"

local AUTO, INIT = "meta_schedule.auto_tensorize", "meta_schedule.auto_tensorize_init"
local BEFORE = "msched.init_before_tiles" -- 1: of a register tile all loops that reduce count

-- What tensorizes the reduction is not what tensorizes its init: that has a note of its own, or runs as it is.
local function move_notes(sch, block, init)
  if sch:annotation(block, AUTO) == nil then return end
  local intrinsic = sch:annotation(block, INIT)
  sch:unannotate(init, AUTO)
  sch:annotate(init, AUTO, intrinsic or "")
  if intrinsic then
    sch:unannotate(block, INIT)
    sch:unannotate(init, INIT)
  end
end

-- The number of the loop, from 1, that the init goes before at the earliest.
local function first_that_reduces(sch, block, loops)
  local first, before = sch:reducing_loop(block), sch:annotation(block, BEFORE)
  if before ~= nil then sch:unannotate(block, BEFORE) end
  if first == 0 or before == 1 or not common.is_register_tile(sch, block) then return first end
  local kinds = sch:loop_iter_kinds(block)
  for i = first, #loops do if kinds[i] ~= "spatial" and sch:extent(loops[i]) ~= 1 then return i end end
  return first
end

local take_init_out = msched.memoized(function(sch, name)
  local block = sch:get_sblock(name)
  local loops = {sch:get_loops(block)}
  local first = first_that_reduces(sch, block, loops)
  if first == 0 then return end
  for i = first, #loops do
    local done, init = sch:try("decompose_reduction", block, loops[i])
    if done then return move_notes(sch, block, init) end
  end
end)

return msched.postproc {
  name = "rewrite_reduction_block",
  apply = function(sch)
    for _, name in ipairs(sch:reduction_blocks()) do take_init_out(sch, name) end
  end,
}
