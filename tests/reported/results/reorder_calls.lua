-- Reorder of what calls a function of what it has so far: no sum, as scalars or as vectors, but by an instruction that
-- adds.
local ms = require "msched"
local script = [[
@T.prim_func(s_tir=True)
def main(A: T.Buffer((6,), "TYPE"), B: T.Buffer((6, 8), "TYPE")):
    for i in range(6):
        for k in range(8):
            with T.sblock("A"):
                v0 = T.axis.spatial(6, i)
                v2 = T.axis.reduce(8, k)
                A[v0] = FORM
]]
local refused, count = {
  "T.exp(A[v0]) + B[v0, v2]", "T.exp(A[v0] + B[v0, v2])", "T.sqrt(A[v0]) * B[v0, v2]", "T.max(T.exp(A[v0]), B[v0, v2])",
  "T.fabs(A[v0]) + B[v0, v2]", "T.floor(A[v0]) + B[v0, v2]", "T.copysign(A[v0], B[v0, v2])", "A[v0] + T.exp(A[v0])",
  'T.call_pure_extern("TYPE", "expf", A[v0]) + B[v0, v2]',
  'T.call_llvm_pure_intrin("TYPE", "llvm.fma", T.uint32(3), A[v0], B[v0, v2], B[v0, v2])',
  'T.call_llvm_pure_intrin("TYPE", "llvm.aarch64.neon.bfdot", T.uint32(3), A[v0], A[v0], B[v0, v2])',
  'A[v0] * T.call_llvm_pure_intrin("TYPE", "llvm.aarch64.neon.bfdot", T.uint32(3), A[v0], B[v0, v2], B[v0, v2])',
}, 0
local taken = {
  "A[v0] + T.exp(B[v0, v2])",
  'T.call_llvm_pure_intrin("TYPE", "llvm.aarch64.neon.bfdot", T.uint32(3), A[v0], B[v0, v2], B[v0, v2])',
}
local function attempt(form, type)
  local s = ms.schedule(ms.from_script((script:gsub("FORM", form):gsub("TYPE", type))))
  local _, k = s:get_loops(s:get_sblock("A"))
  local outer, inner = s:split(k, {2, 4})
  count = count + 1
  return pcall(s.reorder, s, inner, outer)
end
for _, type in ipairs {"float32", "float32x4", "float64x2"} do
  for _, form in ipairs(refused) do
    local ok, why = attempt(form, type)
    local found = not ok and why:find("cannot be reordered: an iteration of block `A` reads of `A`", 1, true)
    assert(found, form .. " of " .. type .. ": " .. tostring(why))
  end
  for _, form in ipairs(taken) do assert(attempt(form, type), form .. " of " .. type) end
end
print(count .. " forms")
