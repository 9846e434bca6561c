-- Makes one pass of a softmax's two reductions: the maximum of a row and the sum of the exponentials of the distances
-- to it, kept together and scaled where the maximum grows. Opens two schedules: as it was, and so. A row then comes
-- from memory twice, not three times, and no exponentials are kept between; but each is computed twice, by the sum and
-- by what divides by it. It pays where rows do not stay in a cache from one pass to the next: of shorter ones nothing
-- is opened.
-- Source: Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018.
local common = msched.load "rules.common"

-- Bytes of a row, by the largest elements that are read of it; nil where its length is not known.
local function row_bytes(sch, block)
  local extents, bytes, length = sch:iter_extents(block), 0, 1
  for v, kind in ipairs(sch:iter_kinds(block)) do
    if kind == "reduce" then length = length and extents[v] and length * extents[v] end
  end
  for _, r in ipairs(sch:reads(block)) do bytes = math.max(bytes, r.bytes) end
  return length and length * bytes
end

-- Whether a row is longer than what the cache holds so many of: nothing is to be had of shorter ones.
local function is_long(sch, block, target, p)
  local bytes = row_bytes(sch, block)
  return bytes and (not p.rows_in_cache or bytes * p.rows_in_cache > (target.l2_bytes or 0))
end

-- The name of the block that computes the exponentials, where that is not the sum itself; false: it is the sum. nil:
-- neither.
local function find_exponentials(sch, sum)
  if sch:has_call(sum, "exp") then return false end
  return common.names_where(sch, sch:producers(sum), function(b)
    return sch:is_spatial(b) and sch:has_call(b, "exp") and sch:can_inline(b)
  end)[1]
end

return msched.rule {
  name = "online_softmax",
  at = "blocks",
  apply = function(sch, block, context, self)
    if sch:is_root(block) or not sch:has_init(block) or not is_long(sch, block, context.target, self.parameters) then
      return {sch}
    end
    local exponentials = find_exponentials(sch, block)
    if exponentials == nil or not common.is_nest(sch, block) then return {sch} end
    local s = sch:copy()
    if exponentials then s:compute_inline(s:get_sblock(exponentials)) end
    local sum = s:handle(block)
    for _, maximum in ipairs(common.names_where(s, s:producers(sum), function(b) return s:has_init(b) end)) do
      if s:try("online_softmax", s:get_sblock(maximum), sum) then return {sch, s} end
    end
    return {sch}
  end,
}
