-- Products whose warps have tiles of results (rules/warp_tile.lua), without a GPU: draws of operands by rows and by
-- columns, of a batch, of convolutions, with a bias and a limit behind, of parts of sums, of three types, on three
-- oracles: the interpreter runs what is lowered, the source compiled for the CPU computes the same (RUN_KERNELS), by
-- loads of shared memory that meet in no bank, and NVRTC, where it is installed, compiles it. Lanes that lie otherwise,
-- and rows that do, are found by these loads. Lanes that do not divide a product, and short types, have
-- no such schedule.
-- usage: msched warp_tiles.lua RUN_KERNELS DRAWS SEED
local ms = require "msched"
local te = ms.te
local tune, files = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../../support/lua/files.lua")
local named = dofile(arg[0]:match "^.*/" .. "../../support/lua/workloads.lua").named
local thread_loads = dofile(arg[0]:match "^.*/" .. "../../support/lua/thread_loads.lua")
local support = dofile(arg[0]:match "^.*/" .. "../../support/lua/parts.lua")
local targets = ms.load "rules.targets"
local run_kernels, draws, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local sources = dofile(arg[0]:match "^.*/" .. "../../support/lua/kernel_sources.lua")(run_kernels, seed)
local TARGET, SQUARES = "cuda -arch=sm_80", '"SSSRRS"'

-- A product of these sides, of operands by rows or by columns.
local function product(m, n, k, options)
  local type = options.type or "float32"
  local A = te.placeholder(options.a_by_columns and {k, m} or {m, k}, type, "A")
  local B = te.placeholder(options.b_by_columns and {n, k} or {k, n}, type, "B")
  local r = te.reduce_axis(k, "k")
  local C = te.compute({m, n}, function(i, j)
    return te.sum(A[options.a_by_columns and {r, i} or {i, r}] * B[options.b_by_columns and {j, r} or {r, j}], r)
  end, "C")
  if not options.follower then return te.func("product", {A, B, C}) end
  local V = te.placeholder({n}, type, "V")
  return te.func("product", {A, B, V, te.compute({m, n}, function(i, j)
    return te.max(C[{i, j}] + V[{j}], 0.0)
  end, "D")})
end

local WINDOWS = named("conv2d", "1 8 32 8 12 3 1 1 layout=NCHW") -- whose columns are no pieces
local FUNCTIONS = {
  product(64, 64, 32, {}), product(48, 96, 20, {}), product(40, 32, 24, {a_by_columns = true}),
  product(32, 64, 16, {b_by_columns = true}), product(32, 32, 48, {a_by_columns = true, b_by_columns = true}),
  product(32, 64, 12, {follower = true}), product(64, 32, 24, {type = "float64"}),
  product(16, 64, 32, {type = "int32"}), product(16, 32, 1024, {}),
  named("batch_matmul", "3 32 64 16"), named("conv2d", "1 8 8 8 32 3 1 1"),
  WINDOWS,
}

-- Sketches whose lanes lie so.
local function sketches_of(func)
  local list = {}
  for _, s in ipairs(tune.open(func, ms.target(TARGET), {}).sketches) do
    if s.trace:text():find(SQUARES, 1, true) then list[#list + 1] = s.trace end
  end
  return list
end

-- The source with loads of its tiles in shared memory counted (cuda/shim_banks.h).
local function counted(source)
  local text, n = source:gsub("([%w_]+) %*([%w_]+_shared) __attribute__", "shim_counted<%1> %2 __attribute__")
  assert(n >= 2, "no tiles are in shared memory")
  return text
end

-- The rule's sketches where its tiles of warps are changed so.
local function changed_sketches(func, change)
  local target = ms.target(TARGET)
  local tiling = targets.context(target).multi_level_tiling
  local changed = targets.changed(tiling, {warp_tile = targets.changed(tiling.warp_tile, change)})
  return support.sketches(func, target, {rules = {"multi_level_tiling"}, multi_level_tiling = changed})
end

-- Draws that are right but for where lanes or rows lie, or have no barriers besides: their loads are reported.
local function check_spoiled(func, change, without_barriers)
  local made = changed_sketches(func, change)
  local list = thread_loads.drawn(func, TARGET, {made[#made].trace}, draws, seed)
  sources:begin(func)
  for i, trace in ipairs(list) do
    local path = sources:path(i .. ".cu")
    ms.build(ms.apply(func, trace):func(), {target = TARGET}):export(path)
    local text = counted(files.read(path))
    files.write(path, without_barriers and text:gsub("%(void%)__syncthreads%(%);", "") or text)
  end
  local agree, said = sources:agree()
  assert(agree == 0 and said:find("passes instead of 2", 1, true), said)
  sources:finish()
end

check_spoiled(FUNCTIONS[1], {pair = 1}) -- no lanes next to one another read the same
check_spoiled(FUNCTIONS[1], {piece = 32}) -- rows begin in two banks
check_spoiled(product(16, 32, 1, {}), {pair = 1}, true) -- what no barrier follows is counted, too

-- Tiles of warps that an instruction refuses leave out their own sketches alone, of whole sums and of divided ones.
for _, func in ipairs {FUNCTIONS[1], product(16, 32, 1024, {})} do
  local made = changed_sketches(func, {pair = 64}) -- of fewer lanes
  assert(#made > 0 and #made == #changed_sketches(func, {bytes = 1 << 10}), #made .. " sketches")
  for _, sch in ipairs(made) do assert(support.has(sch, "tiling_structure"), tostring(sch)) end
end

local compiled
for _, func in ipairs(FUNCTIONS) do
  sources:begin(func)
  local sketches = sketches_of(func)
  assert(#sketches > 0, "a product has no tiles of warps: " .. func:script())
  local list, accepted = thread_loads.drawn(func, TARGET, sketches, draws * #sketches, seed)
  assert(accepted == draws * #sketches, string.format("%d of %d draws are accepted", accepted, draws * #sketches))
  sources:check(func, TARGET, list, function(i, kernel, path)
    if func ~= WINDOWS then files.write(path .. ".cu", counted(files.read(path .. ".cu"))) end
    if i == 1 and sources:compile(kernel) then compiled = true end
  end)
  sources:finish()
end

for _, sides in ipairs {{30, 64, 16}, {32, 48, 16}, {32, 36, 16}} do
  assert(#sketches_of(product(sides[1], sides[2], sides[3], {})) == 0,
         "lanes do not divide " .. table.concat(sides, " x "))
end
assert(#sketches_of(product(32, 64, 16, {type = "float16"})) == 0, "tensor cores multiply short floats")
assert(#sketches_of(named("depthwise_conv2d", "1 12 12 32 3 1 1")) == 0, "a filter has no second side")
if not compiled then print("warp_tiles: NVRTC skipped: " .. sources.missing) end
print "warp_tiles: ok"
