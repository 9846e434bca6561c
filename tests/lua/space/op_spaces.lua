-- The space of every operator that is named, on small shapes: it opens, its candidates are postprocessed and built, and
-- compute what the function computes.
-- usage: msched op_spaces.lua DRAWS [OPERATOR…]
local ms = require "msched"
local jobs_of = dofile(arg[0]:match "^.*/" .. "../jobs.lua")
local named, tune, refusals = ms.load "lua.lib.ops.named", ms.load "search.tune", ms.load "rules.refusals"

local most_draws, target = math.tointeger(arg[1]), ms.target "native"

-- Shapes small enough to be interpreted, that do not divide evenly; others are those below.
local CONV = "2 9 7 6 8 3 2 1"
local SMALL = {
  conv1d = "2 17 6 8 3 2 1", conv2d = CONV, conv3d = "1 5 7 6 4 6 3 2 1", depthwise_conv2d = "2 9 7 6 3 2 1",
  conv2d_transpose = "2 5 4 6 8 4 2 1",
  conv2d_capsule = "1 6 6 3 4 3 2 1", max_pool = "2 9 9 6 3 2 1", avg_pool = "2 9 9 6 3 2 1", matmul = "20 36 28",
  batch_matmul = "3 12 20 28",
  dense = "6 40 24", attention = "2 3 12 10 8", norm = "3x12x20", layer_norm = "12x40", rms_norm = "12x40",
  rotary = "3x5x48 turned=32", batch_norm = "2x5x5x12",
  bias_add = "2x5x5x12",
  scale_shift = "2x5x5x12", argmax = "12x70", argmin = "12x70", transpose = "12x10x14", reshape = "12x40 to=6x2x40",
  broadcast_to = "20 to=30x20",
  pad = "14x10", concat = "12x20 12x9", gather = "30x12 11", conv2d_bn_relu = CONV, dense_bias_relu = "6 40 24",
  transpose_batch_matmul = "2 10 3 12",
  quantized_dense = "6 40 24 x_zero_point=3", quantized_batch_matmul = "3 12 20 28",
  quantized_conv2d = CONV .. " x_zero_point=3 w_zero_point=channels",
  quantized_depthwise_conv2d = "2 9 7 6 3 2 1 w_zero_point=2", quantized_avg_pool = "2 9 9 6 3 2 1",
  dense_nbits = "5 40 64 group=16",
}
local BINARY =
  {add = true, subtract = true, multiply = true, divide = true, maximum = true, minimum = true, power = true}

local function small(op)
  local words = {}
  for word in (SMALL[op.name] or BINARY[op.name] and "20x30 30" or "20x30"):gmatch "%S+" do words[#words + 1] = word end
  return words
end

-- Draws candidates from the sketches in turn; gives those that were accepted.
local function draw(func, opened, draws)
  local pool, accepted = ms.pool(func, {jobs = target.cores, target = "native"}), {}
  local made, dropped, script_error = pool:replay(jobs_of(opened, draws), false)
  pool:close()
  assert(not script_error, script_error)
  refusals.merge(opened.refused, dropped)
  for _, c in ipairs(made) do if c then accepted[#accepted + 1] = c end end
  return accepted
end

-- more: arguments besides those of the small shape.
local function check(op, ...)
  local words = small(op)
  for _, word in ipairs {...} do words[#words + 1] = word end
  local func = ms.ops.func(op.name, words)
  local opened = tune.open(func, target, {})
  assert(#opened.sketches > 0, func:name() .. ": the space is empty: " .. refusals.text(opened.refused))
  local draws = SMALL[op.name] and most_draws or most_draws // 4 + 1 -- those of single elements are all alike
  local accepted, seen, compared = draw(func, opened, draws), {}, 0
  for _, r in pairs(opened.refused) do
    assert(r.by == "disallow_dynamic_loop", func:name() .. ":\n" .. refusals.text(opened.refused))
  end
  assert(#accepted >= draws // 2, func:name() .. ": most draws are refused")
  for _, c in ipairs(accepted) do
    if not seen[c.hash] then
      local kernel = ms.build(ms.apply(func, c.trace):func(), {target = "native"})
      local most = ms.compare(kernel, function(...) ms.interpret(func, ...) end, 1)
      assert(most <= 1e-3, string.format("%s differs by %g:\n%s", func:name(), most, c.trace:text()))
      seen[c.hash], compared = true, compared + 1
    end
  end
  print(string.format("%-40s %3d sketches, %2d of %d draws accepted, %2d distinct", func:name(), #opened.sketches,
                      #accepted, draws, compared))
end

local wanted = {table.unpack(arg, 2)}
if #wanted == 0 then
  for i, op in ipairs(named.list) do wanted[i] = op.name end
end
for _, name in ipairs(wanted) do check(named.find(name)) end
if arg[2] then return end
for _, name in ipairs {"conv2d", "conv2d_transpose", "max_pool", "avg_pool", "depthwise_conv2d", "conv2d_bn_relu"} do
  check(named.find(name), "layout=NCHW")
end
for _, name in ipairs {"conv2d", "matmul", "dense", "transpose_batch_matmul"} do
  for _, type in ipairs {"int8", "float16"} do check(named.find(name), "dtype=" .. type) end
end
check(named.find "dense_nbits", "products=int8", "zero_points=true")
check(named.find "dense_nbits", "bits=8")
check(named.find "dense_nbits", "products=int24")
check(named.find "conv2d", "groups=2")
check(named.find "conv2d", "dilation=2")
print "op_spaces: ok"
