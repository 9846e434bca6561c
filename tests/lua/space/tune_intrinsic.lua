-- Rules of a user's: products tiled by a tensor intrinsic that the file itself defines.
local ms = require "msched"
local te = ms.te

local function product(name, m, n, k)
  local A, B = te.placeholder({m, k}, "float32", "A"), te.placeholder({k, n}, "float32", "B")
  local r = te.reduce_axis(k, "k")
  return te.func(name, {A, B, te.compute({m, n}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")})
end

local impl = ms.schedule(product("impl", 4, 16, 4))
local i, j, k = impl:get_loops(impl:get_sblock "C")
impl:reorder(k, i, j)
impl:unroll(i)
impl:vectorize(j)
ms.intrinsic {name = "tile", desc = product("desc", 4, 16, 4), impl = impl}

-- Alone among the sketches, whatever the target's rules made of the function before.
local made
ms.rule {
  name = "tiled",
  apply = function(sch, block)
    if sch:block_name(block) ~= "C" or made then return made and {} or {sch} end
    local own = sch:copy()
    if #own.trace > 0 then own:undo(#own.trace) end
    local c = own:get_sblock "C"
    local loops, outer, inner = {own:get_loops(c)}, {}, {}
    for n, size in ipairs {4, 16, 4} do outer[n], inner[n] = own:split(loops[n], {ms.rest, size}) end
    local i0, i1 = own:split(outer[1], {own:sample_perfect_tile(outer[1], 2, 16)})
    own:reorder(i0, i1, outer[2], outer[3], inner[1], inner[2], inner[3])
    own:parallel(i0)
    own:decompose_reduction(c, outer[3])
    own:tensorize(inner[1], "tile")
    made = true
    return {own}
  end,
}
