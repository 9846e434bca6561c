-- What a candidate that multiplies on tensor cores costs a GPU, in cycles of one multiprocessor, from its decisions alone; of
-- all others gpu.c says it. Its structure is the rule's (multi_level_tiling_tensor_core.lua): blocks, warps or groups
-- of them, and the fragments of each along both sides of the product, and the sum in steps, each of tiles in shared
-- memory. A block computes as fast as tensor cores multiply, or as shared memory feeds them; what is waited for is
-- hidden by other blocks and by copies that run ahead. As in gpu.c, the longest of what runs side by side counts whole,
-- and a part of the rest.
-- Sources: Zhu et al., "ROLLER", OSDI 2022, section 4; NVIDIA's data sheets, for products a cycle; Luo et al., "Benchmarking
-- and dissecting the Nvidia Hopper GPU architecture via microbenchmarking", 2024, for mma.sync's share of them.
local draft_tensor = {}

local SHARED_BYTES = 128 -- that shared memory gives a cycle
local SUBCORES = 4 -- of a multiprocessor, each with tensor cores of its own, which a warp uses
local GROUP = 4 -- warps of a group that multiplies together
local SYNC_SHARE = 0.62 -- of what groups of warps reach, where warps multiply alone
local FETCH = 2 -- cycles of a warp's load and store, where threads copy
local TYPES = {f16 = {bytes = 2, rate = 1}, bf16 = {bytes = 2, rate = 1}, s8 = {bytes = 1, rate = 2}, tf32 = {bytes = 4, rate = 0.5}}

local function product(list)
  local all = 1
  for _, n in ipairs(list) do all = all * n end
  return all
end

-- What two take that run side by side: the longer, and a part of the other.
local function most_of(machine, a, b) return math.max(a, b) + machine.exposed * math.min(a, b) end

-- The intrinsic that multiplies in a trace, by its text, as its name says: {type (f16, bf16, tf32, s8), m, n, k, bytes, rate,
-- grouped}; nil: it is none of these.
function draft_tensor.intrinsic_of(text)
  local kind, m, n, k, type = text:match '"([_%l]*mma[_%l]*)_(%d+)x(%d+)x(%d+)_(%l+%d+)%l+%d+%l+%d+[%w_]*"'
  local known = type and TYPES[type]
  return known and {type = type, m = m + 0, n = n + 0, k = k + 0, bytes = known.bytes, rate = known.rate, grouped = kind == "wgmma"}
end

-- Decisions of the tiles, in the order of the draws, and of what is annotated, by its key.
local function decisions_of(trace)
  local tiles, annotated, widest = {}, {}, math.huge
  for _, d in ipairs(trace:draws()) do
    if d.kind == "SamplePerfectTile" then
      tiles[#tiles + 1] = d.decision
    elseif d.annotates then
      local value = d.attrs[1][d.decision[1] + 1]
      annotated[d.annotates] = value
      if d.annotates == "meta_schedule.cooperative_fetch" then widest = math.min(widest, value) end
    end
  end
  return tiles, annotated, widest
end

-- What the decisions make of it: a block's tile, and how many of what.
local function shape_of(trace, text, intrinsic)
  local tiles, annotated, lanes = decisions_of(trace)
  if #tiles < 3 then return nil end
  local i, j, k = tiles[#tiles - 2], tiles[#tiles - 1], tiles[#tiles]
  local s = {blocks = i[1] * i[2] * j[1] * j[2], teams = i[3] * j[3], lanes = lanes,
             own_m = intrinsic.m * product {table.unpack(i, 4)}, own_n = intrinsic.n * product {table.unpack(j, 4)},
             steps = k[1], depth = intrinsic.k * product {table.unpack(k, 2)}}
  for t = 1, #tiles - 3 do s.blocks = s.blocks * product(tiles[t]) end
  s.m, s.n = s.own_m * i[3], s.own_n * j[3]
  s.warps = s.teams * (intrinsic.grouped and GROUP or 1)
  s.boxes = annotated["software_pipeline_tensor_copies"] == 1
  s.more = annotated["software_pipeline_producer"] == 1 and GROUP or 0 -- warps that only copy
  local stages = text:match '"software_pipeline_stage", {([%d, ]*)}'
  s.versions = stages and s.steps > 1 and tonumber(stages:match "(%d+)%s*$") + (intrinsic.grouped and 2 or 1) or 1
  return s
end

-- Blocks that a multiprocessor has at a time; nil: none.
local function resident(machine, s, intrinsic)
  local threads = (s.warps + s.more) * machine.warp
  local registers = math.ceil((s.m * s.n / (s.warps * machine.warp) + machine.tensor_registers) / 8) * 8
  local shared = math.max(s.versions * s.depth * (s.m + s.n) * intrinsic.bytes, 1)
  if threads > machine.block_threads or shared > machine.block_shared or registers > machine.own_registers then return nil end
  local most = math.min(machine.sm_blocks, machine.sm_threads // threads, machine.sm_registers // (registers * threads), machine.sm_shared // shared)
  return most > 0 and most or nil
end

-- Cycles of a block's step: of the tensor cores, of shared memory, and of the threads that copy.
local function step_of(machine, s, intrinsic, at_once)
  local rate = machine.tensor_products * intrinsic.rate * (intrinsic.grouped and 1 or machine.tensor_groups and SYNC_SHARE or 1)
  local multiplying = s.m * s.n * s.depth / rate / math.min(1, at_once * s.warps / SUBCORES)
  local read = s.own_m + s.own_n -- by a warp, into registers; groups of warps read for each product
  if intrinsic.grouped then read = s.own_m * s.own_n / intrinsic.n + s.own_n * s.own_m / intrinsic.m end
  local feeding = s.teams * read * s.depth * intrinsic.bytes / SHARED_BYTES
  local copying = s.boxes and 0 or s.depth * (s.m + s.n) / s.lanes / machine.warp * FETCH
  return most_of(machine, multiplying, feeding) + copying / SUBCORES
end

-- Cycles and a name of the tile; nil: it multiplies on no tensor cores, or on such as are not known here. A block that cannot
-- be launched costs infinitely much.
function draft_tensor.cost(trace, machine)
  local text = trace:text()
  local intrinsic = draft_tensor.intrinsic_of(text)
  local s = intrinsic and machine.tensor_products and shape_of(trace, text, intrinsic)
  if not s then return nil end
  local at_once = resident(machine, s, intrinsic)
  if not at_once then return math.huge, "none" end
  local rounds = math.ceil(s.blocks / machine.sms) -- blocks of the busiest multiprocessor
  at_once = math.min(at_once, rounds)
  local met = s.more > 0 and 0 or machine.barrier -- who only copies runs ahead, and the others do not meet
  local waits = s.steps * ((s.versions > 1 and 0 or machine.memory_latency) + met) + machine.memory_latency
  local busy = rounds * s.steps * step_of(machine, s, intrinsic, at_once)
  local waiting = math.ceil(rounds / at_once) * waits
  local bytes = s.steps * s.depth * (s.m + s.n) * intrinsic.bytes + s.m * s.n * 4
  local near = math.max(s.blocks * bytes / machine.l2_bytes_a_cycle, rounds * bytes / machine.sm_bytes_a_cycle)
  return machine.launch + most_of(machine, most_of(machine, busy, waiting), near), string.format("%d x %d", s.own_m, s.own_n)
end

return draft_tensor
