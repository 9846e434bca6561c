-- Candidates for Arm CPUs, to be run elsewhere, and what they gave.
-- usage: msched kernels.lua make FOLDER DRAWS SEED [few] [no-bytes]
--          FOLDER/N.o, a function kernel_N; FOLDER/N.args, for run.c; FOLDER/list, a line each: N, the bytes that it
--          works in, tiles or not, its function and target. no-bytes: none whose tiles multiply bytes
--        msched kernels.lua judge FOLDER   compares FOLDER/N.out with what the interpreter computes
local ms = require "msched"
local here = arg[0]:match "^.*/"
local workloads, drawn = dofile(here .. "../../support/lua/workloads.lua").small,
                         dofile(here .. "../../support/lua/drawn.lua")

local CPUS = {"apple-m4", "neoverse-v2", "cortex-a72"}
-- Products of short types, which tiles multiply, or dot products.
local SHORT = {
  {"matmul", "32 48 128 dtype=int8"}, {"matmul", "48 32 64 dtype=uint8"},
  {"matmul", "64 32 64 dtype=bfloat16 accumulate=float32"}, {"matmul", "32 64 96 dtype=float16 accumulate=float32"},
  {"matmul", "37 21 70 dtype=int8"}, {"matmul", "28 32 64 dtype=bfloat16 accumulate=float32"},
  {"batch_matmul", "3 32 16 64 dtype=int8"}, {"dense_bias_relu", "32 64 48 dtype=bfloat16 accumulate=float32"},
  {"conv2d", "1 14 14 32 32 3 1 1 dtype=int8"}, {"conv2d", "1 7 7 64 16 3 1 1 dtype=bfloat16 accumulate=float32"},
  {"quantized_dense", "32 64 48"}, {"quantized_conv2d", "1 14 14 32 16 3 1 1"},
}
local FEW = {1, 2, 3, 4, 5, 9}

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local function named(op, words)
  local list = {}
  for word in words:gmatch "%S+" do list[#list + 1] = word end
  return ms.ops.func(op, list)
end

local function functions(few)
  local list = {}
  for i, short in ipairs(SHORT) do list[i] = named(table.unpack(short)) end
  if few then
    local some = {}
    for i, at in ipairs(FEW) do some[i] = list[at] end
    return some
  end
  for _, make in ipairs(workloads) do list[#list + 1] = make() end
  return list
end

-- The text of a kernel, and whether its tiles multiply, and bytes.
local function tiles_of(kernel, base)
  kernel:export(base .. ".s", "kernel")
  local text = read(base .. ".s")
  os.remove(base .. ".s")
  return text:find "mopa\t", text:find "[su]mopa\t"
end

-- Draws of all sketches, and of those that name tiles.
local function of_both(func, target, draws, seed)
  local list = drawn(func, target, nil, draws, seed, "amx_")
  return table.move(drawn(func, target, nil, draws, seed), 1, draws, #list + 1, list)
end

local function make(folder, draws, seed, words)
  local list, count, tiled = {}, 0, 0
  for _, cpu in ipairs(CPUS) do
    local target = "llvm -mtriple=aarch64-linux-gnu -mcpu=" .. cpu .. " -num-cores=2"
    for _, func in ipairs(functions(words.few)) do
      local seen = {}
      for _, c in ipairs(of_both(func, target, draws, seed)) do
        if c and not seen[c.hash] then
          seen[c.hash] = true
          local kernel = ms.build(ms.apply(func, c.trace):func(), {target = target, load = false})
          local base = folder .. "/" .. count + 1
          local tiles, bytes = tiles_of(kernel, base)
          if not (bytes and words["no-bytes"]) then
            count, tiled = count + 1, tiled + (tiles and 1 or 0)
            kernel:export(base .. ".o", "kernel_" .. count)
            kernel:export(base .. ".h", "kernel_" .. count)
            local parts = {}
            for i, array in ipairs(ms.arrays_for(func, seed)) do
              local bytes_of = array:bytes()
              parts[i] = string.pack("<I8", #bytes_of) .. bytes_of
            end
            write(base .. ".args", string.pack("<I8", #parts) .. table.concat(parts))
            write(base .. ".lua", string.format("return {%q, %d, %q}", func:script(), seed,
                                                func:name() .. " for " .. cpu .. ", " .. c.trace:json()))
            list[count] = string.format("%d %s %s\n", count, read(base .. ".h"):match "_WORKSPACE (%d+)u",
                                        tiles and "tiles" or "none")
          end
        end
      end
    end
  end
  write(folder .. "/list", table.concat(list))
  print(string.format("%d candidates, %d of tiles", count, tiled))
  assert(tiled > 0, "no candidate has tiles")
end

local TOLERANCE = {float16 = 2e-2, bfloat16 = 2e-2, float32 = 1e-4, float64 = 1e-8}

local function judge(folder)
  local right, wrong = 0, 0
  for line in io.lines(folder .. "/list") do
    local base = folder .. "/" .. line:match "^%d+"
    local script, seed, name = table.unpack(loadfile(base .. ".lua")())
    local func = ms.from_script(script)
    local want, at, out = ms.arrays_for(func, seed), 1, read(base .. ".out")
    ms.interpret(func, table.unpack(want))
    local off
    for i, array in ipairs(want) do
      local shape, size = array:shape(), #array:bytes()
      local got = ms.array(shape, array:type(), out:sub(at, at + size - 1))
      at = at + size
      local largest = 1
      for _, x in ipairs(array:tolist()) do largest = math.max(largest, math.abs(x)) end
      local difference = got:difference(array)
      if not (difference <= (TOLERANCE[array:type()] or 0) * largest) then
        off = string.format("argument %d is off by %s of %s", i, difference, largest)
      end
    end
    if off then print(base .. ": " .. off .. ": " .. name) end
    right, wrong = right + (off and 0 or 1), wrong + (off and 1 or 0)
  end
  print(string.format("%d right, %d wrong", right, wrong))
  if wrong > 0 then os.exit(1) end
end

if arg[1] == "make" then
  local words = {}
  for i = 5, #arg do words[arg[i]] = true end
  make(arg[2], math.tointeger(arg[3]), math.tointeger(arg[4]), words)
else
  judge(arg[2])
end
