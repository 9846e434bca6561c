-- Inlines elementwise blocks into what reads them: a pass over memory less. Blocks that branch (padding), that compute
-- something dear (exp), or whose reads are not plain in order stay: inlined, they would be computed again or slow loops.
local common = msched.load "rules.common"

local disallowed = {"exp"}

-- Reads at plain iteration variables, in rising order.
local function ordered(sch, block)
  for _, region in ipairs(sch:read_iters(block)) do
    local last = 0
    for _, v in ipairs(region) do
      if v <= last then return false end
      last = v
    end
  end
  return true
end

local function is_worth(sch, block)
  if common.is_root(sch, block) or not common.is_spatial(sch, block) or #sch:writes(block) ~= 1 then return false end
  if #sch:reads(block) == 0 then return true end
  if sch:has_call(block, "if_then_else") then return false end
  for _, op in ipairs(disallowed) do if sch:has_call(block, op) then return false end end
  return ordered(sch, block)
end

return msched.rule {
  name = "auto_inline",
  apply = function(sch, block)
    if is_worth(sch, block) and #sch:consumers(block) > 0 and sch:can_inline(block) then sch:compute_inline(block) end
    return {sch}
  end,
}
