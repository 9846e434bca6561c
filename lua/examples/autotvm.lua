-- A matrix product in AutoTVM's way: a template with knobs, a tuner, a log, the best of the log applied.
--   msched lua/examples/autotvm.lua [M N K [TRIALS [LOG [STORE]]]]
local ms = require "msched"
local autotvm = ms.load "lua.compat.autotvm"

local M, N, K, trials = math.tointeger(... or 512), math.tointeger(select(2, ...) or 512),
  math.tointeger(select(3, ...) or 512), math.tointeger(select(4, ...) or 64)
local log, store = select(5, ...) or os.tmpname(), select(6, ...)

local lanes = ms.target("native").vector_bits // 32

autotvm.template("gemm", function(cfg, m, n, k)
  local sch = ms.schedule(ms.ops.func("matmul", {m, n, k}))
  local block = sch:get_sblock "C"
  local i, j, r = sch:get_loops(block)

  -- Rows of a register tile, and how many tiles share a panel; vectors of a tile; a block of the reduction.
  cfg:define_split("tile_i", m, {policy = "candidate", candidate = (function()
    local list = {}
    for _, rows in ipairs {4, 6, 8, 12, 14} do
      for _, chunk in ipairs {1, 2, 4, 8, 16} do list[#list + 1] = {-1, chunk, rows} end
    end
    return list
  end)()})
  cfg:define_split("tile_j", n, {policy = "power2", num_outputs = 2,
                                 filter = function(e) return e.size[2] >= lanes and e.size[2] <= 4 * lanes end})
  cfg:define_split("tile_k", k, {num_outputs = 2, filter = function(e) return e.size[2] >= 16 end})
  cfg:define_knob("pack", {true, false})
  cfg:define_reorder("order", 2, {policy = "all"})
  cfg:define_reorder("walk", 2) -- whether a tile stays in the registers for the whole reduction
  cfg:define_annotate("inner", 2, {policy = "candidate", candidate = {{"unroll", "vec"}}})

  local panel = cfg.pack.val and sch:cache_read(block, 1, "global")
  local i0, i1, i2 = cfg.tile_i:apply(sch, i)
  local j0, j1 = cfg.tile_j:apply(sch, j)
  local k0, k1 = cfg.tile_k:apply(sch, r)
  sch:reorder(i0, j0, k0, i1, k1, i2, j1)
  cfg.walk:apply(sch, {k0, i1})
  local outer = cfg.order:apply(sch, {i0, j0})
  if panel then
    sch:compute_at(panel, k0, true)
    local copied = {sch:get_loops(panel)}
    sch:vectorize(copied[#copied])
  end
  local all = sch:fuse(outer[1], outer[2])
  sch:parallel(all)
  cfg.inner:apply(sch, {i2, j1})
  sch:decompose_reduction(block, k0)
  return sch
end)

local task = autotvm.task("gemm", {M, N, K})
print(task.config_space)
local best = autotvm.tune(task, {tuner = "model", trials = trials, log = log, db = store})
print(string.format("best of %d: %s, %.2f us, %.0f GFLOP/s", #task.config_space, best.config, best.seconds * 1e6,
                    task.func:flops() / best.seconds * 1e-9))

-- Later, or elsewhere: the template with the best of the log.
local sch, line = autotvm.apply_history_best(log):schedule("gemm", {M, N, K})
print("from " .. line.at)
print("differs from the unscheduled function by", sch:build():check())
return best
