-- How weights of few bits lie: {n, groups, bytes}, of two in a byte the first in the lower bits, with a scale for each
-- group and zero points that are packed so along the groups.
-- Source: ONNX Runtime, "Contrib operators", com.microsoft.MatMulNBits.
local ms = msched
local common = ms.load "lua.lib.ops.common"
local layout = {}

local WHAT, LEAST_GROUP = "dense_nbits", 16

function layout.check_bits(bits)
  if bits ~= 4 and bits ~= 8 then common.fail(WHAT, "bits is %s; 4 or 8 is expected", tostring(bits)) end
end

local function check_group(group, k)
  local whole = group == k and group % 2 == 0
  if group < LEAST_GROUP or group & (group - 1) ~= 0 and not whole then
    common.fail(WHAT,
                "group is %d; a power of 2 of at least %d is expected, or all %d elements of a row, an even number",
                group, LEAST_GROUP, k)
  end
  if k % group ~= 0 then common.fail(WHAT, "group is %d, which does not divide the %d elements of a row", group, k) end
end

-- Bytes that hold so many integers.
local function bytes_of(count, bits) return (count * bits + 7) // 8 end

-- Shapes of weights, scales and zero points.
function layout.shapes(n, k, bits, group)
  layout.check_bits(bits)
  check_group(group, k)
  return {n, k // group, bytes_of(group, bits)}, {n, k // group}, {n, bytes_of(k // group, bits)}
end

return layout
