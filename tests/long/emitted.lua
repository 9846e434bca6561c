-- Candidates' texts, to be compared between two programs: CUDA's source for sm_80, and of tensor cores for sm_80 and
-- sm_90a, with the estimates of each kernel; C's for a CPU.
-- usage: msched emitted.lua draw FOLDER DRAWS SEED   a file a candidate, FOLDER/NUMBER.lua: its function, trace, target
--        msched emitted.lua emit FOLDER OUT          its text, OUT/NUMBER.cu or OUT/NUMBER.c, or why there is none
local ms = require "msched"
local here = arg[0]:match "^.*/"
local workloads = dofile(here .. "../support/lua/workloads.lua").small
local drawn = dofile(here .. "../support/lua/drawn.lua")

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local function named(op, words)
  return function()
    local list = {}
    for word in words:gmatch "%S+" do list[#list + 1] = word end
    return ms.ops.func(op, list)
  end
end

local PRODUCTS = {
  named("matmul", "256 256 192 dtype=float16 accumulate=float32"),
  named("matmul", "384 512 320 dtype=bfloat16 accumulate=float32"),
  named("matmul", "4096 4096 256 dtype=float16 accumulate=float32"),
  named("matmul", "100 72 312 dtype=float16 accumulate=float32"),
  named("batch_matmul", "3 128 128 192 dtype=float16 accumulate=float32"),
  named("conv2d", "2 14 14 64 128 3 1 1 dtype=float16 accumulate=float32"),
}
local SPACES = { -- functions, target, a space of rules.targets, times the draws
  {workloads, "cuda -arch=sm_80", nil, 1},
  {PRODUCTS, "cuda -arch=sm_80", "tensor_core", 2},
  {PRODUCTS, "cuda -arch=sm_90a", "tensor_core", 6},
  {workloads, "llvm -mcpu=znver4 -num-cores=2", nil, 3},
}

local function draw(folder, draws, seed)
  local count = 0
  for _, s in ipairs(SPACES) do
    local seen = {}
    for _, make in ipairs(s[1]) do
      local func = make()
      for _, c in ipairs(drawn(func, s[2], s[3], draws * s[4], seed)) do
        if c and not seen[c.hash] then
          seen[c.hash], count = true, count + 1
          local text = string.format("return {%q, %q, %q}", func:script(), c.trace:json(), s[2])
          write(string.format("%s/%d.lua", folder, count), text)
        end
      end
    end
  end
  print(count .. " candidates")
end

-- What rules and policies hear of the kernels, a line each.
local function estimates(sch)
  local lines = {}
  for i, k in ipairs(sch:kernels()) do
    local said = {}
    for _, key in ipairs(ms.sorted_keys(k)) do said[#said + 1] = key .. "=" .. tostring(k[key]) end
    lines[i] = "// " .. table.concat(said, " ") .. "\n"
  end
  return table.concat(lines)
end

local function text_of(sch, target, path)
  local ok, kernel = pcall(ms.build, sch:func(), {target = target})
  if not ok then return "// " .. tostring(kernel) .. "\n" end
  local written, why = pcall(kernel.export, kernel, path)
  if not written then return "// " .. tostring(why) .. "\n" end
  local file <close> = assert(io.open(path, "rb"))
  return "// " .. #kernel:notes() .. " notes\n" .. file:read "a"
end

local function emit(folder, out)
  local count = {cu = 0, c = 0}
  while true do
    local load = loadfile(string.format("%s/%d.lua", folder, count.cu + count.c + 1))
    if not load then break end
    local script, trace, target = table.unpack(load())
    local form = target:find "^cuda" and "cu" or "c"
    local sch = ms.apply(ms.from_script(script), ms.read_trace(trace))
    local path = string.format("%s/%d.%s", out, count.cu + count.c + 1, form)
    local text = text_of(sch, target, path)
    write(path, (form == "cu" and estimates(sch) or "") .. text)
    count[form] = count[form] + 1
  end
  print(string.format("%d of CUDA, %d of C", count.cu, count.c))
end

if arg[1] == "draw" then draw(arg[2], math.tointeger(arg[3]), math.tointeger(arg[4])) else emit(arg[2], arg[3]) end
