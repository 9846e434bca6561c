-- Tiles a block whose inputs are used again, so that they are while they are near: each spatial loop is split as often
-- as the structure has S, each reduction as often as it has R, and the tiles are ordered by the structure. The result
-- may be gathered in a small buffer and written out under the second or first level of tiles.
-- Source: Zheng et al., "Ansor", OSDI 2020, section 4.1.
local common = msched.load "rules.common"

local function tile(sch, block, structure, max_innermost)
  sch:annotate(block, "meta_schedule.tiling_structure", structure)
  local kinds, loops = common.loop_kinds(sch, block)
  local levels = {S = {}, R = {}} -- where in the structure each kind stands
  for i = 1, #structure do table.insert(levels[structure:sub(i, i)], i) end
  local tiles = {}
  for i = 1, #structure do tiles[i] = {} end
  for i, l in ipairs(loops) do
    local at = kinds[i] == "spatial" and levels.S or kinds[i] == "reduce" and levels.R
    if at and #at == 1 then
      table.insert(tiles[at[1]], l)
    elseif at then
      local parts = {sch:split(l, {sch:sample_perfect_tile(l, #at, max_innermost)})}
      for k, level in ipairs(at) do table.insert(tiles[level], parts[k]) end
    end
  end
  local order = {}
  for _, level in ipairs(tiles) do for _, l in ipairs(level) do order[#order + 1] = l end end
  sch:reorder(order)
  return tiles
end

return msched.rule {
  name = "multi_level_tiling",
  apply = function(sch, block, context)
    local structure, max_innermost, write_levels = context.tiling.structure, context.tiling.max_innermost, context.tiling.write_levels
    if common.is_root(sch, block) or common.is_tiled(sch, block) or not common.is_nest(sch, block) or not common.needs_tiling(sch, block) then return {sch} end
    local tiles = tile(sch, block, structure, max_innermost)
    local results = {}
    for _, level in ipairs(write_levels) do
      local under = tiles[level][#tiles[level]]
      if under then
        local s = sch:copy()
        local b = s:handle(block)
        local out = common.only_consumer(s, b) or s:cache_write(b, 0, "global")
        if s:can_reverse_compute_at(out, s:handle(under)) then
          s:reverse_compute_at(out, s:handle(under), {preserve_unit_loops = true})
          results[#results + 1] = s
        end
      end
    end
    results[#results + 1] = sch -- and without a buffer in between
    return results
  end,
}
