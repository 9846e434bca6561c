-- Keeps buffers whose layout a function leaves free (its attribute layout_free_buffers: numbers of parameters, from 0)
-- in the order in which they are read: copied once, in front, by a block that is annotated, so that what does not
-- change from call to call can be laid out ahead.
local function reader_of(sch, buffer)
  local found
  local root = sch:root_block()
  for _, name in ipairs(sch:block_names()) do
    local block = name ~= root and sch:get_sblock(name)
    for i, r in ipairs(block and sch:reads(block) or {}) do
      if r.buffer == buffer then
        if found then return nil end
        found = {block = block, index = i - 1, region = r}
      end
    end
  end
  return found
end

-- The digits of an element's number in the buffer, one a loop: how far the loop moves through it, and how often. nil:
-- the loops do not walk over all of the buffer, each element once.
local function digits_of(sch, reader)
  local digits, ordered, total = {}, {}, 1
  for _, extent in ipairs(reader.region.extents) do if extent ~= 1 then return nil end end
  for _, l in ipairs {sch:get_loops(reader.block)} do
    local stride, extent = sch:read_stride(reader.block, reader.index, l), sch:extent(l)
    if not stride or not extent then return nil end
    if stride ~= 0 and extent > 1 then digits[#digits + 1] = {stride = stride, extent = extent} end
  end
  table.move(digits, 1, #digits, 1, ordered)
  table.sort(ordered, function(a, b) return a.stride < b.stride end)
  for _, d in ipairs(ordered) do
    if d.stride ~= total then return nil end
    total = total * d.extent
  end
  local size = 1
  for _, extent in ipairs(reader.region.shape) do size = size * extent end
  return total == size and digits or nil
end

-- An index map that puts elements in the order of the loops.
local function map_of(digits, shape)
  local names, flat, parts = {}, "0", {}
  for d, extent in ipairs(shape) do
    names[d] = "i" .. d
    flat = string.format("(%s * %d + i%d)", flat, extent, d)
  end
  for i, d in ipairs(digits) do parts[i] = string.format("%s // %d %% %d", flat, d.stride, d.extent) end
  return string.format("lambda %s: (%s,)", table.concat(names, ", "), table.concat(parts, ", "))
end

return msched.postproc {
  name = "rewrite_layout",
  apply = function(sch)
    local free = sch:function_attribute "layout_free_buffers"
    if not free then return end
    local params = sch:func():params() -- a schedule lent to a postprocessor has no workload of its own
    for _, number in ipairs(free) do
      local reader = reader_of(sch, params[number + 1].name)
      local digits = reader and digits_of(sch, reader)
      if digits and #digits > 1 then
        local copy = sch:cache_read(reader.block, reader.index, "global")
        sch:annotate(copy, "meta_schedule.layout_rewrite_preproc", true)
        sch:transform_layout(reader.block, map_of(digits, reader.region.shape), reader.index, 0)
      end
    end
  end,
}
