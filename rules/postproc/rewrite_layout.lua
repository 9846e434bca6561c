-- Lays out constants (the function's attribute layout_free_buffers: numbers of parameters, from 0) in the order in
-- which they are read: copied once, in front, by a block that is annotated, so that it is done ahead of all runs
-- (tir/derive/packing.c). Where tiles run past the end, what is beyond is zeros. Where several blocks read a constant,
-- as sums of weights do that zero points need, the copy is that of the only register tile among them.
local common = msched.load "rules.common"

local function reader_of(sch, buffer)
  local list, tiles = {}, {}
  local root = sch:root_block()
  for _, name in ipairs(sch:block_names()) do
    local block = name ~= root and sch:get_sblock(name)
    for i, r in ipairs(block and sch:reads(block) or {}) do
      if r.buffer == buffer then
        local reader = {block = block, index = i - 1, region = r}
        list[#list + 1] = reader
        if common.is_register_tile(sch, block) then tiles[#tiles + 1] = reader end
      end
    end
  end
  if #list > 1 and #tiles == 1 then
    tiles[1].alone = {tiles[1].block}
    return tiles[1]
  end
  return #list == 1 and list[1] or nil
end

-- The dimension of a compact buffer in which an element lies that is so far away, and how far it is there.
local function dimension_of(shape, stride)
  local step = 1
  for d = #shape, 1, -1 do
    local beyond = step * shape[d]
    if shape[d] > 1 and stride < beyond then
      if stride % step == 0 then return d, stride // step end
      return nil
    end
    step = beyond
  end
end

-- The digits of an element's indices, one a loop, outermost first: {dimension, stride, extent, last}: how far the loop
-- moves along the dimension, and how often; last: it is the dimension's outermost. The second result: whether they
-- reach past the buffer's end. nil: the loops do not walk over all of the buffer, each element once.
local function digits_of(sch, reader)
  local digits, by_dimension, beyond, shape = {}, {}, false, reader.region.shape
  for _, extent in ipairs(reader.region.extents) do if extent ~= 1 then return nil end end
  for _, l in ipairs {sch:get_loops(reader.block)} do
    local stride, extent = sch:read_stride(reader.block, reader.index, l), sch:extent(l)
    if not stride or not extent or stride < 0 then return nil end
    if stride > 0 and extent > 1 then
      local d, step = dimension_of(shape, stride)
      if not d then return nil end
      local digit = {dimension = d, stride = step, extent = extent}
      by_dimension[d] = by_dimension[d] or {}
      digits[#digits + 1], by_dimension[d][#by_dimension[d] + 1] = digit, digit
    end
  end
  for d, extent in ipairs(shape) do
    local list, total = by_dimension[d] or {}, 1
    table.sort(list, function(a, b) return a.stride < b.stride end)
    for i, digit in ipairs(list) do
      if digit.stride ~= total then return nil end
      total, digit.last = total * digit.extent, i == #list
    end
    if total < extent then return nil end
    beyond = beyond or total > extent
  end
  return digits, beyond
end

-- Whether elements lie in this order already.
local function in_order(digits)
  for i = 2, #digits do
    local a, b = digits[i - 1], digits[i]
    if b.dimension < a.dimension or b.dimension == a.dimension and b.stride > a.stride then return false end
  end
  return true
end

-- An index map that puts elements in the order of the loops.
local function map_of(digits, shape)
  local names, parts = {}, {}
  for d in ipairs(shape) do names[d] = "i" .. d end
  for _, digit in ipairs(digits) do
    local text = names[digit.dimension]
    -- its zeros need a tile around it
    local alone = digit.last and digit.stride == 1 and digit.extent > shape[digit.dimension]
    if alone then parts[#parts + 1] = string.format("%s // %d", text, digit.extent) end
    if digit.stride > 1 then text = string.format("%s // %d", text, digit.stride) end
    if not digit.last or alone then text = string.format("%s %% %d", text, digit.extent) end
    parts[#parts + 1] = text
  end
  return string.format("lambda %s: (%s,)", table.concat(names, ", "), table.concat(parts, ", "))
end

local function zero_of(element) return element:find "float" and 0.0 or 0 end

return msched.postproc {
  name = "rewrite_layout",
  apply = function(sch)
    local free = sch:function_attribute "layout_free_buffers"
    if not free then return end
    local params = sch:func():params() -- a schedule lent to a postprocessor has no workload of its own
    for _, number in ipairs(free) do
      local reader = reader_of(sch, params[number + 1].name)
      local digits, beyond = nil, false
      if reader then digits, beyond = digits_of(sch, reader) end
      if digits and #digits > 1
          and (beyond and reader.region.type ~= "bool" or not beyond and not in_order(digits)) then
        local copy = sch:cache_read(reader.block, reader.index, "global", reader.alone)
        sch:annotate(copy, "meta_schedule.layout_rewrite_preproc", true)
        sch:transform_layout(reader.block, map_of(digits, reader.region.shape), reader.index, 0,
                             beyond and zero_of(reader.region.type) or nil)
      end
    end
  end,
}
