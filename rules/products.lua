-- Blocks that are products of two matrices, whatever their iterations: which are rows, columns, what is summed, and
-- what both operands and the result share. Rules of tensor cores and of AMX make one iteration of each.
local products = {}

-- Numbers of the block's iterations by what they are in a product of matrices; nil: it is none.
function products.classify(sch, block)
  local reads, writes, kinds = sch:reads(block), sch:writes(block), sch:iter_kinds(block)
  if #writes ~= 1 or not sch:has_init(block) then return nil end
  local inputs, used = {}, {}
  local uses = sch:read_uses(block)
  for i, r in ipairs(reads) do if r.buffer ~= writes[1].buffer then inputs[#inputs + 1] = i end end
  if #inputs ~= 2 then return nil end
  for side, list in ipairs {uses[inputs[1]], uses[inputs[2]], sch:write_uses(block)[1]} do
    for _, v in ipairs(list) do used[v] = (used[v] or 0) | 1 << (side - 1) end
  end
  local classes = {batch = {}, m = {}, n = {}, k = {}, inputs = inputs}
  local names = {[7] = "batch", [5] = "m", [6] = "n", [3] = "k"} -- bits: the first input, the second, the result
  for v, kind in ipairs(kinds) do
    local name = names[used[v] or 0]
    if not name or (name == "k") ~= (kind == "reduce") then return nil end
    table.insert(classes[name], v)
  end
  return #classes.m > 0 and #classes.n > 0 and #classes.k > 0 and classes or nil
end

-- An index map of the iterations among `numbers`, in their order, that makes those of each class one.
function products.map_of(numbers, classes, names, extents)
  local inputs, outputs = {}, {}
  for _, v in ipairs(numbers) do inputs[#inputs + 1] = "i" .. v end
  for _, name in ipairs(names) do
    if name == "batch" then
      for _, v in ipairs(classes.batch) do outputs[#outputs + 1] = "i" .. v end
    else
      local fused
      for _, v in ipairs(classes[name]) do
        fused = fused and string.format("(%s * %d + i%d)", fused, extents[v], v) or "i" .. v
      end
      outputs[#outputs + 1] = fused
    end
  end
  return string.format("lambda %s: (%s,)", table.concat(inputs, ", "), table.concat(outputs, ", "))
end

-- The block's iterations in those classes, in its own order.
function products.members(classes, names)
  local list = {}
  for _, name in ipairs(names) do table.move(classes[name], 1, #classes[name], #list + 1, list) end
  table.sort(list)
  return list
end

local A, B, C, ALL = {"batch", "m", "k"}, {"batch", "k", "n"}, {"batch", "m", "n"}, {"batch", "m", "n", "k"}
local A_BY_COLUMNS, B_BY_COLUMNS = {"batch", "k", "m"}, {"batch", "n", "k"}

-- Has the block compute a product of matrices, from and to copies; gives these. options: by_columns, the second operand
-- has what is summed last; a_by_columns, the first has its rows last; keep: a set of "a" and "c", what is a matrix
-- already and needs no copy.
function products.to_product(sch, block, classes, options)
  local extents, copies, keep = sch:iter_extents(block), {}, options.keep or {}
  local sides = {{"a", options.a_by_columns and A_BY_COLUMNS or A}, {"b", options.by_columns and B_BY_COLUMNS or B},
                 {"c", C}}
  for i, side in ipairs(sides) do
    if not keep[side[1]] then
      copies[side[1]] = sch:reindex(block, i == 3 and 0 or classes.inputs[i] - 1, i == 3 and 1 or 0)
    end
  end
  for i, side in ipairs(sides) do
    if copies[side[1]] then
      local map = products.map_of(products.members(classes, side[2]), classes, side[2], extents)
      sch:transform_layout(block, map, i == 3 and 0 or classes.inputs[i] - 1, i == 3 and 1 or 0)
      sch:transform_block_layout(copies[side[1]], map)
    end
  end
  sch:transform_block_layout(block, products.map_of(products.members(classes, ALL), classes, ALL, extents))
  return copies
end

-- How long the sides of the product are, by their names; nil: it is not known.
function products.sides(sch, block, classes)
  local extents, sides = sch:iter_extents(block), {}
  for _, name in ipairs {"m", "n", "k"} do
    local product = 1
    for _, v in ipairs(classes[name]) do product = extents[v] and product and product * extents[v] end
    if not product then return nil end
    sides[name] = product
  end
  return sides
end

-- Whether the sides are whole numbers of these.
function products.is_whole(sides, multiples)
  for name, side in pairs(sides) do if side % multiples[name] ~= 0 then return false end end
  return true
end

-- The multiple of `multiple` that a side grows to a whole number of: the largest that hardly adds more.
local function grown(side, multiple, pads)
  local parts = (side + multiple - 1) // multiple
  for _, times in ipairs(pads.multiples) do
    if (parts + times - 1) // times * times <= parts * (1 + pads.share) then return times * multiple end
  end
  return multiple
end

local function whole(side, multiple) return (side + multiple - 1) // multiple * multiple end

-- Multiples that the sides grow to whole numbers of, each of one in `multiples` and easily divided, and the product of
-- what they grow to; nil: too little of it would be of use. pads: {least, multiples, share}: the least share that is
-- of use; by what the multiple of a side that grows is multiplied, where that adds no larger a share.
function products.padding(sides, multiples, pads)
  local padding, all, use = {}, 1, 1
  for _, name in ipairs {"m", "n", "k"} do
    local side, multiple = sides[name], multiples[name]
    padding[name] = side % multiple == 0 and multiple or grown(side, multiple, pads)
    all, use = all * whole(side, padding[name]), use * side / whole(side, padding[name])
  end
  if use >= pads.least then return padding, all end
end

-- The block that writes what a block reads.
function products.producer_of(sch, block, index)
  local buffer = sch:reads(block)[index + 1].buffer
  for _, p in ipairs {sch:get_producers(block)} do if sch:writes(p)[1].buffer == buffer then return p end end
end

-- Pads a block that computes a product by copies, to whole numbers of these: the copies then fill what is beyond the
-- operands with zeros, and leave out what is beyond the result. false: zeros would change what it computes.
function products.pad(sch, block, classes, copies, sides, padding)
  local multiples = {}
  for i = 1, #classes.batch do multiples[i] = 1 end
  for _, name in ipairs {"m", "n", "k"} do multiples[#multiples + 1] = padding[name] end
  if not sch:try("pad_einsum", block, multiples) then return false end
  local function grows(name) return sides[name] % padding[name] ~= 0 end
  for i, side in ipairs {"a", "b"} do
    if grows "k" or grows(side == "a" and "m" or "n") then
      local padded = products.producer_of(sch, block, classes.inputs[i] - 1)
      sch:compute_inline(copies[side])
      copies[side] = padded
    end
  end
  if grows "m" or grows "n" then sch:compute_inline(sch:get_consumers(block)) end
  return true
end

return products
