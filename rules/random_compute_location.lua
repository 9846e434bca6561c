-- Draws where a block that was left alone shall be computed: inside a loop of its consumers, inlined, or where it is. So
-- too where the partial results of a factored reduction are computed, after its result's own place.
local common = msched.load "rules.common"

local NOTE = "meta_schedule.random_compute_producer" -- of add_rfactor

-- What tiles read whose rows go on from line to line is no window of a constant size.
local function has_windows(sch, block)
  local with_lines, lines = sch:blocks_with "msched.rows_of_lines", {}
  for _, name in ipairs(with_lines) do lines[name] = true end
  for _, name in ipairs(#with_lines > 0 and sch:consumers(block) or {}) do if lines[name] then return false end end
  return true
end

-- What spatial_tiling left for itself has its place: the reader's tiles were made without it.
local function is_left(sch, block)
  for _, name in ipairs(common.is_kept(sch, block) and sch:consumers(block) or {}) do
    if sch:annotation(sch:get_sblock(name), common.SPATIAL) ~= nil then return true end
  end
  return false
end

local function can_move(sch, block)
  if common.is_tiled(sch, block) or is_left(sch, block) or #sch:consumers(block) == 0 or not sch:is_below_root(block) then return false end
  local outer = sch:get_loops(block)
  return outer ~= nil and sch:child_count(outer) == 1 and has_windows(sch, block)
end

local function compute_somewhere(sch, block)
  sch:compute_at(block, sch:sample_compute_location(block), {preserve_unit_loops = true})
end

return msched.rule {
  name = "random_compute_location",
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
