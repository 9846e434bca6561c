-- Draws whether a result is stored around the caches: lines that are written whole and read by nothing then need not
-- come from memory first, which is a third of the traffic of a copy. It pays where what the function touches is more
-- than the last cache holds; of less the result would be in the cache for whoever reads it next, but where that cache
-- is hardly faster than the memory, as one that many cores share, it pays too. Where rows are reduced first, these
-- stores may be delayed: they are under way while the next row is computed, which waits for its arithmetic otherwise.
-- Parameters:
--   least_caches   what the function's parameters fill at least, in sizes of the second caches of all cores
-- Source: Intel 64 and IA-32 Architectures Optimization Reference Manual, "Non-temporal stores".
local common = msched.load "rules.common"

-- Whether all that the block writes is results, along their rows, and what it reads is none of them.
local function writes_results(sch, block, names)
  local written = {}
  for i, region in ipairs(sch:writes(block)) do
    local follows = false
    for _, l in ipairs {sch:get_loops(block)} do follows = follows or sch:write_stride(block, i - 1, l) == 1 end
    if not names[region.buffer] or not follows then return false end
    written[region.buffer] = true
  end
  for _, region in ipairs(sch:reads(block)) do if written[region.buffer] then return false end end
  return #sch:consumers(block) == 0
end

-- Whether the block ends what reductions over rows begin.
local function reads_reduced(sch, block)
  for _, name in ipairs(sch:producers(block)) do
    if sch:has_init(sch:get_sblock(name)) then return true end
  end
  return false
end

return msched.rule {
  name = "nontemporal_stores",
  at = "blocks",
  wanted = function(self, context, sch)
    return (common.fills_caches(sch, context.target, self.parameters.least_caches))
  end,
  apply = function(sch, block, context, self)
    if sch:is_root(block) or not sch:is_spatial(block) or sch:annotation(block, common.NONTEMPORAL) ~= nil then
      return {sch}
    end
    local fills, names = common.fills_caches(sch, context.target, self.parameters.least_caches)
    if fills and writes_results(sch, block, names) then
      common.draw_nontemporal(sch, block, reads_reduced(sch, block) and {0, 1, 2} or {0, 1})
    end
    return {sch}
  end,
}
