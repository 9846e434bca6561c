-- ops: operators in tensor expressions, as parts of larger functions. Each takes tensors and gives a tensor; families of
-- them are files of lua/ops/. An operator that is used twice in a function has its tensors and blocks named apart by
-- te.func: pad, pad_1 and so on.
local ms = msched
local ops = {}

for _, family in ipairs {"elementwise", "shape", "reduce", "conv", "pool", "matmul", "normalize"} do
  local members = ms.load("lua.ops." .. family)
  for _, name in ipairs(ms.sorted_keys(members)) do
    assert(not ops[name], name)
    ops[name] = members[name]
  end
end

return ops
