-- What rules share: questions about blocks, asked of the schedule's queries.
local common = {
  SPATIAL = "msched.spatial_tile", -- noted on a block that spatial_tiling has tiled or placed; 1: estimates are doubted
  INLINE = "meta_schedule.inline_rule",
  NONTEMPORAL = "msched.nontemporal", -- on a block: 1, results go around the caches, 2, beside the next row's
}

-- The buffers of the function that are constant, as a set by name: they are packed ahead into the order in which they
-- are read (rewrite_layout.lua), so that they may be read in any.
function common.constants(sch)
  local free, names = sch:function_attribute "layout_free_buffers", {}
  if not free then return names end
  local params = sch:func():params()
  for _, number in ipairs(free) do
    if params[number + 1] then names[params[number + 1].name] = true end
  end
  return names
end

local PACKS = "meta_schedule.layout_rewrite_preproc"

-- Whether a block packs a constant ahead of all runs.
function common.packs(sch, block) return sch:annotation(block, PACKS) ~= nil end

-- Notes that no other rule schedules a block.
local function keep(sch, block)
  sch:annotate(block, common.INLINE, "disable")
  sch:annotate(block, "schedule_rule", "None")
end

-- Notes that a block packs a constant: no other rule schedules it.
function common.pack_ahead(sch, block)
  sch:annotate(block, PACKS, true)
  keep(sch, block)
end

-- Notes that blocks are a kernel that a rule has scheduled: no other does.
function common.keep_kernel(sch, blocks)
  for _, block in ipairs(blocks) do
    keep(sch, block)
    sch:annotate(block, common.SPATIAL, 0)
  end
end

-- The kinds of loops around a block: "spatial", "reduce", "mixed" or "none", outermost first; and the loops.
function common.loop_kinds(sch, block)
  return sch:loop_iter_kinds(block), {sch:get_loops(block)}
end

-- Products of the extents of spatial and of reduction loops; nil where an extent is not known.
function common.lengths(sch, block)
  local spatial, reduce = 1, 1
  local kinds, loops = common.loop_kinds(sch, block)
  for i, l in ipairs(loops) do
    local extent = sch:extent(l)
    if not extent then return nil end
    if kinds[i] == "spatial" then spatial = spatial * extent
    elseif kinds[i] == "reduce" then reduce = reduce * extent
    else return nil end
  end
  return spatial, reduce
end

function common.is_register_tile(sch, block) return sch:annotation(block, "msched.register_tile") ~= nil end

-- A rule has given the block its loops.
function common.is_tiled(sch, block)
  return sch:annotation(block, "meta_schedule.tiling_structure") ~= nil or common.is_register_tile(sch, block)
    or sch:annotation(block, common.SPATIAL) ~= nil
end

-- The names of the blocks that have an annotation, as a set; nil: none has it. No handle is got, which the trace would
-- have.
function common.names_with(sch, annotation)
  local names
  for _, name in ipairs(sch:blocks_with(annotation)) do
    names = names or {}
    names[name] = true
  end
  return names
end

-- The block is not to be inlined.
function common.is_kept(sch, block) return sch:annotation(block, common.INLINE) == "disable" end

-- Tiling pays in a reduction where a region read leaves out a spatial iteration of more than one value: its elements
-- are used again and again.
function common.needs_tiling(sch, block)
  if common.is_tiled(sch, block) or #sch:writes(block) ~= 1 or not sch:is_trivial(block) then return false end
  local kinds, extents, reduces = sch:iter_kinds(block), sch:iter_extents(block), false
  for _, kind in ipairs(kinds) do
    if kind == "opaque" then return false end
    reduces = reduces or kind == "reduce"
  end
  if not reduces then return false end
  local result, reads = sch:writes(block)[1].buffer, sch:reads(block)
  for i, uses in ipairs(sch:read_uses(block)) do
    if reads[i].buffer ~= result then
      local used = {}
      for _, v in ipairs(uses) do used[v] = true end
      for v, kind in ipairs(kinds) do if kind == "spatial" and extents[v] ~= 1 and not used[v] then return true end end
    end
  end
  return false
end

-- No rule has tiled the block yet, and tiling it pays.
function common.can_tile(sch, block)
  return not sch:is_root(block) and common.is_nest(sch, block) and common.needs_tiling(sch, block)
end

-- A reduction that has too little to do in parallel over space: one that is worth tiling has less space than it reduces
-- and no more than so many jobs; another reduces more than one value, and than `least`. Either by a known reducer.
function common.needs_rfactor(sch, block, jobs, least)
  if #sch:writes(block) < 1 or not sch:has_init(block) or not sch:is_trivial(block) then return false end
  local spatial, reduce = common.lengths(sch, block)
  if not spatial or reduce <= 1 then return false end
  if common.needs_tiling(sch, block) then
    if spatial >= reduce or spatial > jobs then return false end
  elseif reduce <= least then
    return false
  end
  return sch:has_reducer(block)
end

-- Those of the names whose blocks `holds` says yes to.
function common.names_where(sch, names, holds)
  local list = {}
  for _, name in ipairs(names) do if holds(sch:get_sblock(name)) then list[#list + 1] = name end end
  return list
end

-- Whether the function's parameters fill so many times the second caches of all cores, as far as that is known; and
-- their names as a set.
function common.fills_caches(sch, target, times)
  local bytes, names, known = 0, {}, true
  for _, p in ipairs(sch:func():params()) do
    local size = (tonumber(p.type:match "%d+") or 8) / 8
    for _, n in ipairs(p.shape or {}) do
      known = known and n >= 0
      size = size * n
    end
    bytes, names[p.name] = bytes + size, true
  end
  local cache = (target.l2_bytes or 0) * (target.cores or 1)
  return known and cache > 0 and bytes > times * cache, names
end

-- Draws whether what the block writes goes around the caches.
function common.draw_nontemporal(sch, block, choices)
  sch:annotate(block, common.NONTEMPORAL, common.sample_equal(sch, choices))
end

-- Moves spatial loops in front of reduction loops, and fuses the latter: the fused loop, and how many are in front.
function common.fuse_reduction(sch, block)
  local kinds, loops = common.loop_kinds(sch, block)
  local moved, reduce, spatial = {}, {}, 0
  for i, l in ipairs(loops) do
    if kinds[i] ~= "spatial" then
      reduce[#reduce + 1] = l
    else
      spatial = spatial + 1
      if #reduce > 0 then moved[#moved + 1] = l end
    end
  end
  if #moved > 0 then sch:reorder(table.move(reduce, 1, #reduce, #moved + 1, moved)) end
  return #reduce == 1 and reduce[1] or sch:fuse(reduce), spatial
end

-- Draws one of a list, each with the same chance.
function common.sample_equal(sch, list)
  local chances = {}
  for i = 1, #list do chances[i] = 1 / #list end
  return sch:sample_categorical(list, chances)
end

-- Only loops stand around the block, with nothing beside it in them, up to the root.
function common.is_nest(sch, block)
  if not sch:is_below_root(block) then return false end
  local loops = {sch:get_loops(block)}
  for _, l in ipairs(loops) do if sch:child_count(l) > 1 then return false end end
  return #loops > 0
end

-- The block that writes the block's result out already, and could do so tile by tile; nil: there is none.
function common.only_consumer(sch, block)
  if #sch:consumers(block) ~= 1 then return nil end
  local consumer = sch:get_consumers(block)
  if sch:is_spatial(consumer) and sch:reads_in_order(consumer) then return consumer end
end

-- Moves that block, where there is one that can be, under a loop of the tile.
function common.write_under(sch, block, loop)
  local consumer = common.only_consumer(sch, block)
  if consumer and sch:can_reverse_compute_at(consumer, loop) then
    sch:reverse_compute_at(consumer, loop, {preserve_unit_loops = true})
  end
end

-- Another of a categorical draw's choices, by the stream.
function common.other_choice(stream, draw)
  local other = stream:below(#draw.attrs[1] - 1)
  return {other >= draw.decision[1] and other + 1 or other}
end

-- A trace with another choice in one of its categorical draws that are for what is noted so; nil: there is none.
function common.draw_other(trace, stream, note)
  local choices = trace:changeable("SampleCategorical", note)
  if #choices == 0 then return nil end
  local index = choices[stream:below(#choices) + 1]
  return trace:with_decision(index, common.other_choice(stream, trace:draw(index)))
end

return common
