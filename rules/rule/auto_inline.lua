-- Inlines elementwise blocks into what reads them, or into what they read: a pass over memory less. Where it costs more
-- than it saves they stay: those that branch (padding) or compute something dear (exp) would do so again for each use,
-- those that do not read in the order of what they write would slow the loops they come into.
local common = msched.load "rules.common"

local common = msched.load "rules.common"

local function is_worth(sch, block, p)
  if sch:is_root(block) or not sch:is_spatial(block) or #sch:writes(block) ~= 1 then return false end
  if common.is_kept(sch, block) then return false end
  if #sch:reads(block) == 0 and p.constant_tensors or sch:is_spatial_function() then return true end
  if p.no_branches and sch:has_call(block, "if_then_else") then return false end
  for _, op in ipairs(p.disallowed) do if sch:has_call(block, op) then return false end end
  return not p.in_order or sch:reads_in_order(block)
end

-- It has an iteration for each of what it reads: of a block that takes a part, what is read would be computed whole,
-- for nothing, and its iterations be under a condition that threads cannot be bound by.
local function takes_all(sch, block)
  local own, read = common.lengths(sch, block), common.lengths(sch, (sch:get_producers(block)))
  return not own or not read or own >= read
end

return msched.rule {
  name = "auto_inline",
  at = "blocks",
  apply = function(sch, block, _, self)
    local p = self.parameters
    if not is_worth(sch, block, p) then return {sch} end
    if p.into_consumer and #sch:consumers(block) > 0 and sch:can_inline(block) then
      sch:compute_inline(block)
    elseif p.into_producer and #sch:producers(block) == 1 and takes_all(sch, block)
        and sch:can_reverse_inline(block) then
      sch:reverse_compute_inline(block)
    end
    return {sch}
  end,
}
