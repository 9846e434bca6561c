-- Draws candidates of workloads from the design space for CPUs, runs each with perturbed thread timing and compares
-- it with the unscheduled function; with a folder, exports them as C source too, for threads.sh.
-- usage: msched draw.lua ROOT CANDIDATES RUNS FOLDER|- WORKLOAD…
-- A workload's first candidate is the trace WORKLOAD.trace.json beside this file, where there is one.
local ms = require "msched"
local targets, space = ms.load "rules.targets", ms.load "rules.space"
local workloads = dofile(arg[1] .. "/tests/support/lua/workloads.lua")
local root, candidates, runs, folder = arg[1], tonumber(arg[2]), tonumber(arg[3]), arg[4]

-- Three threads, on any machine; every allocation but the smallest lies in the workspace, so that small shapes do.
local target = ms.target "native".text:gsub("%-num%-cores=%d+", "-num-cores=3")
local STACK_BYTES = 256
local parts = space.parts(targets.context(ms.target(target)))

local function write(path, text)
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
end

-- Writes the C source; gives the bytes of workspace that its head states.
local function export(kernel, name)
  local path = folder .. "/" .. name .. ".c"
  kernel:export(path)
  local file <close> = assert(io.open(path))
  return assert(file:read "a":match "workspace: (%d+) bytes")
end

local function write_calls(func, name, bytes, base, base_bytes)
  local sizes = {}
  for i, array in ipairs(ms.arrays_for(func, 1)) do sizes[i] = string.format("%d", #array) end
  write(folder .. "/" .. name .. ".calls.c", string.format([[
#include "compare.h"
entry %s, %s;
const int argument_count = %d;
const size_t argument_sizes[MOST_ARGUMENTS] = {%s};
entry *const candidate = %s, *const unscheduled = %s;
const size_t candidate_workspace = %s, unscheduled_workspace = %s;
]], name, base, #sizes, table.concat(sizes, ", "), name, base, bytes, base_bytes))
end

local failed, all = 0, 0
local function judge(name, kernel, base)
  all = all + 1
  local ok, message = pcall(kernel.check_timing, kernel, 1, runs)
  local most = ms.compare(kernel, function(...) base:run(...) end, 1)
  if ok and not (most <= 1e-3) then ok, message = false, string.format("differs by %g", most) end
  if not ok then print(name .. ": " .. tostring(message):match "[^\n]*") failed = failed + 1 end
end

local function judge_and_export(func, name, sch, base, base_name, base_bytes)
  local kernel = ms.build(sch:func(), {target = target, stack_bytes = STACK_BYTES})
  judge(name, kernel, base)
  if folder ~= "-" then write_calls(func, name, export(kernel, name), base_name, base_bytes) end
end

for i = 5, #arg do
  local func = workloads.func(arg[i])
  local sketches = space.generate(func, parts)
  local base, base_name, base_bytes = ms.build(func, {target = target}), "base_" .. arg[i], nil
  if folder ~= "-" then base_bytes = export(base, base_name) end
  local kept <close> = io.open(root .. "/tests/threads/" .. arg[i] .. ".trace.json")
  if kept then
    judge_and_export(func, arg[i] .. "_kept", ms.apply(func, ms.read_trace(kept:read "a")), base, base_name, base_bytes)
  end
  local drawn, tries = 0, 0
  while drawn < candidates and tries < 20 * candidates do
    tries = tries + 1
    local sketch = sketches[(tries - 1) % #sketches + 1]
    local ok, sch = pcall(ms.apply, func, sketch.trace, {seed = 11, candidate = tries, resample = true})
    if ok and space.postprocess(sch, parts) then
      drawn = drawn + 1
      judge_and_export(func, string.format("%s_%d", arg[i], tries), sch, base, base_name, base_bytes)
    end
  end
end
print(string.format("%d candidates, thread timing perturbed: %d fail", all, failed))
os.exit(failed == 0)
