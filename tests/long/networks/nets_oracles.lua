-- Networks for GPUs, without one. Each FILE.onnx is lowered for sm_80 and for sm_90a by the analytical model, and NVRTC
-- compiles all of its kernels; three oracles judge the functions that an interpreter gets through: the interpreter on
-- the lowered function, the source compiled for the CPU (RUN_KERNELS), and NVRTC. `make.py --cut` makes small networks
-- of the same kernels; of others with images `image=64` is the extent to which they are cut, with what is before their
-- first reshape. usage: msched nets_oracles.lua RUN_KERNELS MOST STORE [image=N] FILE…; MOST: operations of a function
-- that is judged by the interpreter. Prints a line of a table a network; exit status 1 where one fails.
local ms = msched
local here = arg[0]:match "^(.*)/long/[^/]*/[^/]*$"
local sources = dofile(here .. "/support/lua/kernel_sources.lua")(arg[1], 1)
local judge = dofile(here .. "/support/lua/oracles.lua")(sources)
local plans, tune, common = ms.load "lua.net.plan", ms.load "search.tune", ms.load "lua.net.common"
local most, store, image = tonumber(arg[2]), ms.store(arg[3]), nil
local TARGETS = {"cuda -arch=sm_80", "cuda -arch=sm_90a"}
local CLOSING = common.set "Reshape Flatten Gemm"

-- The network of an image of that extent, up to the first node whose shape is of another.
local function cut(net)
  local small = net:copy()
  for _, input in ipairs(small.inputs) do
    local s = input.shape
    if s and #s == 4 and s[3] == s[4] and s[3] > image then input.shape = {s[1], s[2], image, image} end
  end
  for i, node in ipairs(small.nodes) do
    if CLOSING[node.op] then
      small.outputs = {{name = node.inputs[1]}}
      small.nodes = table.move(small.nodes, 1, i - 1, 1, {})
      break
    end
  end
  return small
end

-- {functions, compiled, judged, larger, failed = {lines}} of a network on a target.
local function run(net, target)
  local prepared, items = plans.prepare(net, {target = target}), {}
  local r = {functions = 0, compiled = 0, judged = 0, larger = 0, failed = {}}
  for _, entry in ipairs(prepared.functions) do
    if not entry.func:has_empty() then items[#items + 1] = {entry.func} end
  end
  r.functions = #items
  for _, item in ipairs(items) do
    local func = item[1]
    local ok, why = pcall(function()
      local task = tune.all({item}, {target = target, no_tune = true, store = store, listen = function() end})[1]
      if not task.fastest then error(task.error or "there is no schedule", 0) end
      local scheduled = ms.apply(func, task.fastest.trace):func()
      if func:flops() <= most then
        judge(func, {scheduled}, target)
        r.judged = r.judged + 1
      else
        ms.build(scheduled, {target = target, load = false}):resources(true)
        r.larger = r.larger + 1
      end
      r.compiled = r.compiled + 1
    end)
    if not ok then
      r.failed[#r.failed + 1] = string.format("%s: %s", func:name(), type(why) == "table" and why.message or why)
    end
  end
  return r
end

local wrong = 0
for i = 4, #arg do
  local path = arg[i]
  if path:find "^image=" then image = math.tointeger(path:match "%d+") else
    local start, name, cells = ms.clock(), path:match "([^/]*)%.onnx$", {}
    local net = ms.onnx(path)
    if image then net = cut(net) end
    for k, target in ipairs(TARGETS) do
      local r = run(net, target)
      wrong = wrong + #r.failed
      if k == 1 then cells[1] = r.functions end
      cells[#cells + 1] = r.compiled
      cells[#cells + 1] = string.format("%d right%s", r.judged, r.larger > 0 and ", " .. r.larger .. " larger" or "")
      for _, line in ipairs(r.failed) do print(name .. ": FAILED: " .. line) end
    end
    print(string.format("| %s%s | %s | %.0f |", name, image and " at " .. image or "", table.concat(cells, " | "),
                        ms.clock() - start))
    io.stdout:flush()
  end
end
os.exit(wrong == 0 and 0 or 1)
