-- Analysis of reads and writes: what kind of work a block does, which says what a schedule shall do with it.
--   direct_compute     each element once, of what lies in order: inlined where it can be, else parallel and in vectors
--   simple_reduction   a reduction that uses no element of its inputs again: parallel, if need be in parts
--   complex_reduction  a reduction whose inputs are used again and again: tiled
--   location_tunable   elements that others use, which branch, are dear, or lie in another order: computed where it
--                      pays
-- Source: "Auto Scheduler" RFC of TVM, 2019 (its four patterns of read and write).
local common = msched.load "rules.common"

local patterns = {names = {"direct_compute", "simple_reduction", "complex_reduction", "location_tunable"}}

-- Computed for each use it would cost more than a pass over memory: of the auto_inline of a target the same question.
local function is_dear(sch, block, p)
  if p.no_branches and sch:has_call(block, "if_then_else") then return true end
  for _, op in ipairs(p.disallowed) do if sch:has_call(block, op) then return true end end
  return p.in_order and not sch:reads_in_order(block)
end

local function reduces(sch, block)
  for _, kind in ipairs(sch:iter_kinds(block)) do if kind == "reduce" then return true end end
  return false
end

-- The pattern of a block; nil: of the root, and of what has iterations that are neither spatial nor reduce.
-- inline: the target's parameters of auto_inline.
function patterns.of(sch, block, inline)
  if sch:is_root(block) then return nil end
  for _, kind in ipairs(sch:iter_kinds(block)) do if kind == "opaque" then return nil end end
  if reduces(sch, block) then
    return (common.is_tiled(sch, block) or common.needs_tiling(sch, block)) and "complex_reduction"
      or "simple_reduction"
  end
  return #sch:consumers(block) > 0 and is_dear(sch, block, inline) and "location_tunable" or "direct_compute"
end

-- ---- Structure ---------------------------------------------------------------------------------------------------

-- Extents that a schedule treats alike: one, less than a vector, a few vectors, many.
local function size_of(extent, lanes)
  if not extent or extent < 0 then return "?" end
  return extent == 1 and "1" or extent < lanes and "s" or extent < 4 * lanes and "m" or "l"
end

local function lists_text(lists)
  local parts = {}
  for i, list in ipairs(lists) do parts[i] = table.concat(list, ",") end
  return table.concat(parts, ";")
end

-- What of a function a template depends on, as a text: its blocks by name, the pattern of each, kinds and sizes of its
-- iterations, which of them each region depends on, element types, which inputs are constants, which are packed ahead.
-- Extents are in it as sizes alone.
function patterns.structure(func, target, inline)
  local sch, lines = msched.schedule(func), {}
  local constants = common.constants(sch)
  for _, name in ipairs(sch:block_names()) do
    local block = sch:get_sblock(name)
    local sizes, types = {}, {}
    for i, extent in ipairs(sch:iter_extents(block)) do sizes[i] = size_of(extent, target.vector_bits // 32) end
    for _, region in ipairs(sch:reads(block)) do
      types[#types + 1] = region.type .. #region.shape .. (constants[region.buffer] and "constant" or "")
    end
    for _, region in ipairs(sch:writes(block)) do types[#types + 1] = region.type .. #region.shape end
    lines[#lines + 1] = table.concat({name, patterns.of(sch, block, inline) or "none",
                                      table.concat(sch:iter_kinds(block), ","), table.concat(sizes),
                                      lists_text(sch:read_uses(block)), lists_text(sch:write_uses(block)),
                                      lists_text(sch:read_iters(block)), table.concat(types, ",")}, "|")
  end
  return table.concat(lines, "\n")
end

return patterns
