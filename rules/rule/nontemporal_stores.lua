-- Draws whether a result is stored around the caches: lines that are written whole and read by nothing then need not
-- come from memory first, which is a third of the traffic of a copy. It pays where what the function touches is more
-- than the last cache holds; of less the result would be in the cache for whoever reads it next, but where that cache
-- is hardly faster than the memory, as one that many cores share, it pays too. Where rows are reduced first, these
-- stores may be delayed: they are under way while the next row is computed, which waits for its arithmetic otherwise.
-- Parameters:
--   least_caches   what the function's parameters fill at least, in sizes of the second caches of all cores
-- Source: Intel 64 and IA-32 Architectures Optimization Reference Manual, "Non-temporal stores".
local common = msched.load "rules.common"

local NOTE = "msched.nontemporal"

-- Bytes of all parameters, and their names as a set; nil: an extent is not known.
local function parameters(sch)
  local bytes, names = 0, {}
  for _, p in ipairs(sch:func():params()) do
    local size = (tonumber(p.type:match "%d+") or 8) / 8
    for _, n in ipairs(p.shape or {}) do
      if n < 0 then return nil, names end
      size = size * n
    end
    bytes, names[p.name] = bytes + size, true
  end
  return bytes, names
end

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
  apply = function(sch, block, context, self)
    local cache = (context.target.l2_bytes or 0) * (context.target.cores or 1)
    if sch:is_root(block) or not sch:is_spatial(block) or sch:annotation(block, NOTE) ~= nil then return {sch} end
    local bytes, names = parameters(sch)
    if cache == 0 or not bytes or bytes <= self.parameters.least_caches * cache then return {sch} end
    if writes_results(sch, block, names) then
      sch:annotate(block, NOTE, common.sample_equal(sch, reads_reduced(sch, block) and {0, 1, 2} or {0, 1}))
    end
    return {sch}
  end,
}
