-- Tiles a block whose inputs are used again, so that they are while they are near: each spatial loop is split as often
-- as the structure has S, each reduction as often as it has R, and the tiles are ordered by the structure. The result
-- may be gathered in a small buffer and written out under a level of tiles; on a GPU levels are bound to threads, and
-- inputs are copied to memory that the threads of a block share. Where a GPU has more multiprocessors than there are
-- tiles of results, and sums are long, further sketches divide them: blocks of threads compute parts of a result side
-- by side, which a second kernel adds. packs: constants are packed ahead in the order in which tiles are read.
-- groups: groups of channels are iterations of their own.
local common, tiling = msched.load "rules.common", msched.load "rules.tiling"
local nest, warp_tile = msched.load "rules.register_loops", msched.load "rules.warp_tile"

-- All sketches of a block; further ones have the lanes of a warp as a tile, where they can be: what is refused of these
-- leaves the others.
local function tiled(sch, block, p)
  local lanes = p.warp_tile and warp_tile.find(sch, block, p.warp_tile)
  local other = lanes and sch:copy()
  local copied = other and other:handle(block)
  local results = tiling.apply(sch, block, p)
  if not other then return results end
  local changes = {lanes = lanes, structure = p.warp_tile.structure, stages = p.warp_tile.stages}
  local further = tiling.attempt(tiling.apply, other, copied, setmetatable(changes, {__index = p})) or {}
  return table.move(further, 1, #further, #results + 1, results)
end

-- Divides iterations whose groups read different channels into groups and their members: tiles of members read those of
-- one group, and not of all. Gives the numbers of the groups' loops.
local function split_groups(sch, block)
  local at, shift = {}, 0
  for i, l in ipairs {sch:get_loops(block)} do
    local members = sch:loop_iter_kind(l) == "spatial" and sch:group(block, l) or 1
    if members > 1 and members < sch:extent(l) and sch:extent(l) % members == 0 then
      sch:split(l, {msched.rest, members})
      at[#at + 1], shift = i + shift, shift + 1
    end
  end
  return at
end

-- The same numbers, where a loop comes in front of all.
local function behind_one(numbers)
  local list = {}
  for k, i in ipairs(numbers) do list[k] = i + 1 end
  return list
end

return msched.rule {
  name = "multi_level_tiling",
  at = "blocks",
  apply = function(sch, block, context, self)
    if not common.can_tile(sch, block) or nest.is_unpacked_by_dots(sch, block, context.target) then return {sch} end
    local p = self.parameters
    local groups = p.groups and split_groups(sch, block) or {}
    if #groups > 0 then p = setmetatable({whole = groups}, {__index = p}) end
    if p.packs then tiling.pack_constants(sch, block) end
    local other, partial = tiling.divide_sums(sch, block, p.split)
    local results = tiled(sch, block, p)
    local in_parts = setmetatable({in_parts = true, whole = behind_one(groups)}, {__index = p})
    local others = other and tiling.attempt(tiled, other, partial, in_parts) or {}
    return table.move(others, 1, #others, #results + 1, results)
  end,
}
