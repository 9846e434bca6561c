-- Register tiles of sums over windows of bytes whose channels stay apart (depthwise convolutions): lines x rows of
-- vectors of results, all terms of the window unrolled. Lowering makes words of neighbours of them, which slide along a
-- line of the image (tir/lower/vector/slides.c); lines of results that lie below one another share these words. On one
-- core of a Zen 5, 112 x 112 x 32 by 3 x 3, that takes 0.8 of the time of one line.
local common, nest = msched.load "rules.common", msched.load "rules.register_loops"
local window_tile = {
  TERMS = 64, -- of a window, at most
  SHAPES = {{lines = 2, rows = {7, 8, 14}}, {lines = 4, rows = {6, 7}}},
}

local function moves_alike(sch, block, index, reduce, stride)
  for _, l in ipairs(reduce) do
    if sch:extent(l) > 1 and sch:read_stride(block, index, l) == stride then return true end
  end
  return false
end

-- The operands' numbers, of a filter, which rows share, and of an image, in which windows slide along rows by one
-- element. nil: it is no such sum.
local function operands(sch, block, a)
  local written, image, filter = sch:writes(block)[1].buffer, nil, nil
  for i, r in ipairs(sch:reads(block)) do
    if r.buffer ~= written then
      local along = sch:read_stride(block, i - 1, a.rows[1])
      if sch:read_stride(block, i - 1, a.inner) ~= 1 then return nil end
      if along == 0 and not filter then filter = i - 1
      elseif along and along > 0 and not image and moves_alike(sch, block, i - 1, a.reduce, along) then image = i - 1
      else return nil end
    end
  end
  if image and filter then return image, filter end
end

-- The loop over lines, of those around rows: windows slide along it, too. nil: there is none.
local function loop_of_lines(sch, block, a, image, filter)
  for _, l in ipairs(a.outer) do
    local along = sch:read_stride(block, image, l)
    if sch:extent(l) > 1 and sch:read_stride(block, filter, l) == 0 and along and along > 0
        and moves_alike(sch, block, image, a.reduce, along) then
      return l
    end
  end
end

-- The block, analyzed as register_tile does, in tiles of such a shape; nil: it has none.
function window_tile.tiled(s, b, context, a, shape)
  local terms, lanes = 1, context.target.vector_bits // 32
  for _, l in ipairs(a.reduce) do terms = terms * s:extent(l) end
  local is_simple = #a.rows == 1 and #a.phases == 0 and not a.apart
  if terms > window_tile.TERMS or not is_simple or s:extent(a.inner) < lanes then return nil end
  local image, filter = operands(s, b, a)
  local line, rows = image and loop_of_lines(s, b, a, image, filter), {}
  for _, n in ipairs(shape.rows) do if n <= a.most_rows then rows[#rows + 1] = n end end
  if not line or s:extent(line) < shape.lines or #rows == 0 then return nil end
  local columns_outer, columns_inner = s:split(a.inner, {msched.rest, lanes})
  local lines_outer, lines_inner = s:split(line, {msched.rest, shape.lines})
  local around = {}
  for i, l in ipairs(a.outer) do around[i] = l == line and lines_outer or l end
  local outer, outer_rest = nest.split_outer(s, around)
  local chunk, rows_outer, rows_inner = nest.split_rows(s, a.rows, a.most_rows, rows)
  local order = {outer, chunk, columns_outer, outer_rest, rows_outer}
  table.move(a.reduce, 1, #a.reduce, #order + 1, order)
  table.move({lines_inner, rows_inner, columns_inner}, 1, 3, #order + 1, order)
  s:reorder(order)
  for _, l in ipairs(a.reduce) do s:unroll(l) end
  nest.note_tile(s, b, a.rows)
  common.write_under(s, b, columns_outer)
  return s
end

return window_tile
