-- Random draws of the CUDA space of the 19 operators, with shapes that do not divide, and of products of halves,
-- bfloat16 and bytes for tensor cores, run on a device: each is compiled by NVRTC, and compared with what the
-- unscheduled function computes, on small integers and on real numbers. When SECONDS are over it says how far it came,
-- which is to be half of the operators.
-- usage: msched gpu.lua DRAWS SEED [SECONDS]
local ms = require "msched"
local te, tune = ms.te, ms.load "search.tune"
local workloads = dofile(arg[0]:match "^.*/" .. "../../support/lua/workloads.lua")

local draws, seed = math.tointeger(arg[1]), math.tointeger(arg[2])
local deadline = ms.clock() + (tonumber(arg[3]) or math.huge)
local devices = ms.devices()
if #devices == 0 then
  print("gpu: skipped: no CUDA device: " .. devices.driver .. "; on a machine that has one, with NVRTC: tests/run gpu")
  os.exit(77)
end
local target = ms.target("cuda").text
ms.target(target, {runs = true})

local refused = {}
local function check(func)
  local opened, count, sketches = tune.open(func, ms.target(target), {}), 0, {}
  local pool = ms.pool(func, {jobs = 1, target = target})
  for i, s in ipairs(opened.sketches) do sketches[i] = s.trace:simplified(false) end
  for _, c in ipairs(workloads.draw(pool, sketches, draws, refused, seed)) do
    local ok, kernel = pcall(ms.build, ms.apply(func, c.trace):func(), {target = target, reference = func})
    if ok then
      kernel:check {seed = seed}
      count = count + 1
    else
      assert(kernel:find("required: ", 1, true), kernel) -- a refusal, with what it requires
    end
  end
  pool:close()
  return count
end

-- For tensor cores, as far as the device has them.
local function product(inputs, output)
  local A, B, r = te.placeholder({128, 64}, inputs, "A"), te.placeholder({64, 128}, inputs, "B"),
    te.reduce_axis(64, "k")
  return te.func("product", {A, B, te.compute({128, 128}, function(i, j)
    return te.sum(te.cast(A[{i, r}], output) * te.cast(B[{r, j}], output), r)
  end, "C")})
end

local functions, total, done = {}, 0, 0
for i, make in ipairs(workloads.small) do functions[i] = make() end
for _, types in ipairs {{"float16", "float32"}, {"bfloat16", "float32"}, {"int8", "int32"}} do
  functions[#functions + 1] = product(table.unpack(types))
end
for _, func in ipairs(functions) do
  if ms.clock() > deadline then break end
  total, done = total + check(func), done + 1
end
assert(2 * total >= draws * done and 2 * done >= #functions,
       string.format("gpu: too few draws were run: %d of %d functions", total, done))
print(string.format("gpu: %d kernels of %d of %d functions ran on %s, and agree", total, done, #functions,
                    devices[1].name))
