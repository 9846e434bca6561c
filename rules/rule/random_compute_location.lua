-- Draws where a block that was left alone shall be computed: inside a loop of its consumers, inlined, or where it is.
-- So too where the partial results of a factored reduction are computed, after its result's own place.
local common = msched.load "rules.common"

local NOTE = "meta_schedule.random_compute_producer" -- of add_rfactor

-- Whether a reader of the block has this annotation.
local function is_read_by(sch, block, annotation)
  local names = common.names_with(sch, annotation)
  for _, name in ipairs(names and sch:consumers(block) or {}) do if names[name] then return true end end
  return false
end

-- What tiles read whose rows go on from line to line is no window of a constant size.
local function has_windows(sch, block) return not is_read_by(sch, block, "msched.rows_of_lines") end

-- What spatial_tiling left for itself has its place: the reader's tiles were made without it.
local function is_left(sch, block) return common.is_kept(sch, block) and is_read_by(sch, block, common.SPATIAL) end

-- What an instruction computes tile by tile is left where it is: below another's loops it would be no whole tiles.
local function is_tensorized(sch, block) return sch:annotation(block, "meta_schedule.auto_tensorize") ~= nil end

local function can_move(sch, block)
  if common.is_tiled(sch, block) or is_left(sch, block) or is_tensorized(sch, block) or #sch:consumers(block) == 0
      or not sch:is_below_root(block) then
    return false
  end
  local outer = sch:get_loops(block)
  return outer ~= nil and sch:child_count(outer) == 1 and has_windows(sch, block)
end

local function compute_somewhere(sch, block)
  sch:compute_at(block, sch:sample_compute_location(block), {preserve_unit_loops = true})
end

return msched.rule {
  name = "random_compute_location",
  at = "blocks",
  apply = function(sch, block, _, self)
    if sch:is_root(block) then return {sch} end
    local moves, partial = can_move(sch, block), nil
    if sch:annotation(block, NOTE) and (moves or self.parameters.of_outputs) then
      partial = sch:get_producers(block)
      sch:unannotate(block, NOTE)
    end
    if moves then compute_somewhere(sch, block) end
    if partial then compute_somewhere(sch, partial) end
    return {sch}
  end,
}
