-- A rule under which every candidate computes something else: results are kept in 8 bits.
local ms = require "msched"
ms.rule {name = "unsafe_int8", apply = function(sch, block)
  if sch:block_name(block) ~= "C" then return {sch} end
  sch:cache_write(block, 0, "global")
  sch:unsafe_set_dtype(block, 0, "int8")
  return {sch}
end}
