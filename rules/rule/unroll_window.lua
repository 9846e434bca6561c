-- Unrolls reductions over small windows: box filters, pools that move by one element. Where all reductions of a
-- function are such, opens two schedules: one in which each is one expression of its window's terms, in their order,
-- and as it was. The former reduces nothing: spatial_tiling tiles it as a stencil, in which neighbouring rows share in
-- registers what they read, and no partial result goes through memory. On one core of a Zen 5 this takes 0.4 to 0.7 of
-- the time of the loops; of windows of one row or column, as long. Windows that move by several elements from one
-- result to the one beside it (pools with strides, channels first) stay as they are: their vectors are better made by
-- the reduction's loops. So do blocks that read something again for each result (depthwise convolutions, filters with
-- weights): register tiles do as well. With --fixed-order sums stay as they are, since it is not known in which order
-- an expression adds that was inlined.
-- Parameters:
--   terms   of a window, at most
--   reach   of windows on top of one another: elements that one result depends on, at most
local common = msched.load "rules.common"

-- How many terms the block reduces to each result, of known extents; nil: that is not known.
local function count_terms(sch, block)
  local extents, terms = sch:iter_extents(block), 1
  for v, kind in ipairs(sch:iter_kinds(block)) do
    if kind == "reduce" then terms = extents[v] and terms * extents[v] end
    if kind == "opaque" or not terms then return nil end
  end
  return terms
end

-- The loop along which results follow one another; nil: there is none.
local function contiguous(sch, block)
  for _, l in ipairs {sch:get_loops(block)} do
    local drives = sch:loop_iter_kind(l)
    if drives == "spatial" and sch:extent(l) ~= 1 and sch:write_stride(block, 0, l) == 1 then return l end
  end
end

-- Whether an iteration of the kind moves a region read in a dimension in which others move it too. plain: the
-- iterations that alone are its start in some dimension.
local function slides(kinds, uses, plain, kind)
  for _, v in ipairs(uses) do if kinds[v] == kind and not plain[v] then return true end end
  return false
end

-- Whether each result has a window of its own in something that the block reads, which moves by one element from a
-- result to the next: vectors of results are then sums of vectors.
local function has_window(sch, block)
  local kinds, uses, starts = sch:iter_kinds(block), sch:read_uses(block), sch:read_iters(block)
  local inner = contiguous(sch, block)
  local strides = inner and sch:strides(block, inner)
  for i in ipairs(strides and uses or {}) do
    local plain = {}
    for _, v in ipairs(starts[i]) do plain[v] = true end
    local both = slides(kinds, uses[i], plain, "spatial") and slides(kinds, uses[i], plain, "reduce")
    if both and strides[i] == 1 then return true end
  end
  return false
end

local function is_window(sch, block, p)
  local terms = count_terms(sch, block)
  if not terms or terms < 2 or terms > p.terms then return false end
  local tiles = common.is_tiled(sch, block) or common.needs_tiling(sch, block)
  return not tiles and common.is_nest(sch, block) and has_window(sch, block)
end

-- How many elements of an input one result of the block may come to depend on, where stages are inlined.
local function reach(sch, block, known)
  local name, most = sch:block_name(block), 1
  if known[name] then return known[name] end
  for _, producer in ipairs(sch:producers(block)) do
    most = math.max(most, reach(sch, sch:get_sblock(producer), known))
  end
  known[name] = most * (sch:has_init(block) and count_terms(sch, block) or 1)
  return known[name]
end

-- The function's reductions, if all are windows, not too many on top of one another, and the block is the first of
-- them; else nil.
local function windows(sch, block, p)
  local names, known = sch:reduction_blocks(), {}
  if names[1] ~= sch:block_name(block) then return nil end
  for _, name in ipairs(names) do
    local b = sch:get_sblock(name)
    if not is_window(sch, b, p) or reach(sch, b, known) > p.reach then return nil end
  end
  return names
end

return msched.rule {
  name = "unroll_window",
  at = "blocks",
  apply = function(sch, block, _, self)
    if sch:is_root(block) or not sch:has_init(block) then return {sch} end
    local names = windows(sch, block, self.parameters)
    if not names then return {sch} end
    local s = sch:copy()
    for _, name in ipairs(names) do
      if not s:try("unroll_reduction", s:get_sblock(name)) then return {sch} end
    end
    return s:is_spatial_function() and {s, sch} or {sch}
  end,
}
