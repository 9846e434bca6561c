-- ops: operators in tensor expressions, as parts of larger functions. Each takes tensors and gives a tensor; families
-- of them are files of lua/lib/ops/, where named.lua makes whole functions of them and suites.lua lists of those. An
-- operator that is used twice in a function has its tensors and blocks named apart by te.func: pad, pad_1 and so on.
local ms = msched
local ops = {}

local function load_families()
  setmetatable(ops, nil)
  for _, family in ipairs {"elementwise", "shape", "reduce", "conv", "pool", "matmul", "normalize", "quantized",
                           "nbits"} do
    local members = ms.load("lua.lib.ops." .. family)
    for _, name in ipairs(ms.sorted_keys(members)) do
      assert(not ops[name], name)
      ops[name] = members[name]
    end
  end
end

-- The function of an operator that is named, with its arguments in their order or by name; all of a suite, or those
-- that words choose. `msched help ops` lists both.
function ops.func(name, arguments) return ms.load "lua.lib.ops.named".func(name, arguments) end
function ops.suite(name, words)
  local list = {}
  for i, member in ipairs(ms.load "lua.lib.ops.suites".choose(name, words or {})) do list[i] = member.func() end
  return list
end

-- Most states never ask for one: the families are loaded when the first is asked for, or the list of all.
local lazy = {}
function lazy.__index(_, name)
  load_families()
  return ops[name]
end
function lazy.__pairs()
  load_families()
  return pairs(ops)
end
return setmetatable(ops, lazy)
