-- Random convolutions and products of short types, so many, or those of the suites ops_int8 and ops_bf16, made smaller;
-- and candidates drawn of those of their sketches that multiply AMX's tiles: each is built, runs, and computes what the
-- unscheduled function does. Where the machine has AMX, it is judged there; elsewhere msched-amx is the program.
-- usage: msched-amx draws.lua COUNT|suites [SEED [CANDIDATES]]
local ms = require "msched"
local te = ms.te
local folder = arg[0]:gsub("[^/]*$", "")
local draws, judge = dofile(folder .. "../support/lua/short_draws.lua"), dofile(folder .. "judge.lua")
local seed, each = tonumber(arg[2] or 1), tonumber(arg[3] or 3)
local MOST = 3e7 -- operations of a function: an instruction takes some microseconds where there is no AMX
local TYPES = {"bfloat16", "int8", "uint8"}
judge.needs_tiles()
if judge.target.tiles & 16 > 0 then TYPES[#TYPES + 1] = "float16" end
math.randomseed(seed)

local function is_small(func)
  local work = func:work()
  return work.floats + work.integers <= MOST
end

local pick = draws.pick

-- A product of bytes or bfloat16 and what follows it: a bias, a residual, a rectifier, another type; as rows or images.
local function with_followers()
  local bytes, rows = math.random(2) == 1, pick {1, 7, 14, 16, 28, 33, 48, 64}
  local type, sum, channels, columns = bytes and "int8" or "bfloat16", bytes and "int32" or "float32",
    pick {16, 24, 64, 96}, pick {16, 20, 32, 48}
  local image, X, W, Y = math.random(2) == 1, nil, nil, nil
  if image then
    X, W = te.placeholder({1, 4, rows, channels}, type, "X"), te.placeholder({3, 3, channels, columns}, type, "W")
    Y = ms.ops.conv2d(X, W, {pad = 1, accumulate = sum})
  else
    X, W = te.placeholder({rows, channels}, type, "X"), te.placeholder({columns, channels}, type, "W")
    Y = ms.ops.dense(X, W, {accumulate = sum})
  end
  local bias, R = te.placeholder({columns}, sum, "bias"), te.placeholder(Y.shape, sum, "R")
  local residual, rectified, out = math.random(2) == 1, math.random(2) == 1, pick {sum, type}
  local Z = te.compute(Y.shape, function(...)
    local at = {...}
    local v = Y[at] + bias[at[#at]]
    if residual then v = v + R[at] end
    if rectified then v = te.max(v, te.const(0, sum)) end
    return te.cast(v, out)
  end, "Z")
  local params = {X, W, bias, R, Z}
  if not residual then table.remove(params, 4) end
  return te.func("followed", params, {weights = math.random(2) == 1 and {"W"} or nil})
end

-- Of lengths and widths that tiles divide, or not; with a mask, or none; heads may share keys.
local function attention()
  local heads, rows, columns = pick {1, 3, 4}, pick {1, 16, 20, 32, 48, 63, 64}, pick {20, 32, 64, 77, 96}
  local depth, width = pick {32, 40, 64, 72, 128}, pick {20, 32, 64, 80}
  local own, how, o = heads == 4 and 2 or heads, math.random(4), {}
  local function input(name, shape, type) return te.placeholder(shape, type or "bfloat16", name) end
  local Q, K, V = input("Q", {2, heads, rows, depth}), input("K", {2, own, columns, depth}),
    input("V", {2, own, columns, width})
  local params = {Q, K, V}
  if how == 1 then o.causal = true end
  if how == 2 then o.mask = input("mask", pick {{rows, columns}, {2, 1, 1, columns}}, pick {"float32", "bfloat16"}) end
  if how == 3 then o.lengths = input("lengths", {2}, "int32") end
  params[4] = o.mask or o.lengths or nil
  params[#params + 1] = ms.ops.attention(Q, K, V, o)
  return te.func("attention", params)
end

local function few_bits()
  return ms.ops.func("dense_nbits", {pick {16, 20, 32, 50}, pick {16, 48, 64}, pick {64, 128, 192}, bits = pick {4, 8},
                                     group = pick {16, 32, 64}, zero_points = pick {true, false}, dtype = "bfloat16",
                                     products = "bfloat16", constant = pick {true, false}})
end

local function small_function()
  local kind = math.random(8)
  local func = kind == 1 and attention() or kind == 2 and few_bits() or kind <= 4 and with_followers()
    or draws.draw {types = TYPES}
  return is_small(func) and func or small_function()
end

-- The largest of its extents are halved until it is small.
local function smaller(member)
  local words = {table.unpack(member.words)}
  while true do
    local func, largest = ms.load "lua.lib.ops.named".func(member.operator, words, member.name), 1
    if is_small(func) then return func end
    for n, word in ipairs(words) do
      if (tonumber(word) or 0) > (tonumber(words[largest]) or 0) then largest = n end
    end
    words[largest] = tostring(tonumber(words[largest]) // 2)
  end
end

local list = {}
if arg[1] == "suites" then
  for _, suite in ipairs {"ops_int8", "ops_bf16"} do
    for _, member in ipairs(ms.load "lua.lib.ops.suites".members(suite)) do
      if member.batch == 1 then list[#list + 1] = smaller(member) end
    end
  end
end
for _ = 1, tonumber(arg[1]) or 0 do list[#list + 1] = small_function() end

-- Attention's exponentials are rounded to bfloat16, as its result is: what differs by a unit of that is right.
local ROUNDED = 0.04
local function rounds(func) return func:name():find "^attention" end

local functions, judged, wrong = 0, 0, {}
for i, func in ipairs(list) do
  for n, trace in ipairs(judge.candidates(func, each, seed + i) or {}) do
    local right, message = pcall(judge.check, func, trace, rounds(func) and {tolerance = ROUNDED} or nil)
    functions, judged = functions + (n == 1 and 1 or 0), judged + 1
    if not right then
      wrong[#wrong + 1] = func:name()
      print(string.format("%s, function %d of seed %d, candidate %d: %s\n%s", func:name(), i, seed, n, message,
                          trace:text()))
    end
  end
end
assert(#wrong == 0, #wrong .. " wrong: " .. table.concat(wrong, ", "))
assert(judged > 0)
print(string.format("%d functions, %d candidates of AMX's tiles: ok", functions, judged))
