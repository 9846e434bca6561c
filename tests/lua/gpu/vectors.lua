-- Vectors that are computed: random functions of elements of all types, in vectors of two to sixteen lanes, that read
-- what they write, one element for all lanes, and what a condition guards; on three oracles, the interpreter, the
-- source compiled for the CPU, and NVRTC, by whose PTX nothing aligned is accessed lane by lane, and nothing lies in
-- local memory.
-- usage: msched vectors.lua RUN_KERNELS FUNCTIONS SEED
local ms = require "msched"
local here = arg[0]:match "^.*/"
local seed = math.tointeger(arg[3])
local sources = dofile(here .. "../../support/lua/kernel_sources.lua")(arg[1], seed)
local TARGET = "cuda -arch=sm_90a"
local BYTES = {float16 = 2, bfloat16 = 2, float32 = 4, float64 = 8, int8 = 1, uint8 = 1, int16 = 2, uint16 = 2,
               int32 = 4, uint32 = 4, int64 = 8}
local TYPES = ms.sorted_keys(BYTES)
local THREADS, BLOCKS, WIDEST = 8, 3, 16

math.randomseed(seed)
local function any(list) return list[math.random(#list)] end

-- ---- A function ----

local function cast(x, from, to)
  return from == to and x or string.format('T.Cast("%s", %s)', to, x)
end

-- An element that a lane reads, or all.
local function operand(f)
  local name = any {"A", "A", "B", "B", "C", "S"}
  if name == "S" then return cast("S[bx]", f.types.S, f.compute) end
  local x = string.format("%s[bx * %d + tx * %d + v]", name, THREADS * f.lanes, f.lanes)
  return cast(x, f.types[name], f.compute)
end

local function expression(f, depth)
  if depth == 0 then return operand(f) end
  local a, b = expression(f, depth - 1), expression(f, math.random(0, depth - 1))
  local kind = math.random(8)
  if kind <= 3 then return string.format("(%s %s %s)", a, any {"+", "-", "*"}, b) end
  if kind == 4 then return string.format("T.max(%s, %s)", a, b) end
  if kind == 5 then return string.format("T.min(%s, %s)", a, b) end
  if kind == 6 then return string.format("T.Select(%s < %s, %s, %s)", a, b, b, a) end
  f.guarded = true
  return string.format("T.if_then_else(%s, %s, %s)", any {"bx < 2", "tx > 3", "tx % 2 == 0"}, a, b)
end

-- Arithmetic goes on in the widest of its types: of floats, where one is.
local function compute_type(types)
  local widest = "int32"
  for _, t in pairs(types) do
    if t == "float64" then return t end
    if t:find "float" then widest = "float32" elseif t == "int64" and widest == "int32" then widest = t end
  end
  return widest == "int64" and "int32" or widest
end

local function random_function()
  local f = {types = {A = any(TYPES), B = any(TYPES), C = any(TYPES), S = any(TYPES)}}
  f.compute = compute_type(f.types)
  f.lanes = 1 << math.random(4)
  local value = cast(expression(f, math.random(3)), f.compute, f.types.C)
  local n = BLOCKS * THREADS * f.lanes
  f.text = string.format([[
@T.prim_func(s_tir=True)
def main(A: T.Buffer((%d,), "%s"), B: T.Buffer((%d,), "%s"), S: T.Buffer((%d,), "%s"), C: T.Buffer((%d,), "%s")):
    for bx in T.thread_binding(%d, thread="blockIdx.x"):
        for tx in T.thread_binding(%d, thread="threadIdx.x"):
            for v in T.vectorized(%d):
                C[bx * %d + tx * %d + v] = %s
]], n, f.types.A, n, f.types.B, BLOCKS, f.types.S, n, f.types.C, BLOCKS, THREADS, f.lanes, THREADS * f.lanes, f.lanes,
                         value)
  return f
end

-- ---- What becomes of it ----

-- How often a function touches elements of its vectors, how many accesses these are, whole ones (see
-- tir/lower/vector/strips.c), and how many are of the one element for all lanes.
local function accesses_of(f)
  local value, narrowest, widest = f.text:match "= (.*)", BYTES[f.types.C], BYTES[f.types.C]
  local touched = {C = value:find "C%[" and 2 or 1}
  for _, name in ipairs {"A", "B", "S"} do
    local bytes = value:find(name .. "%[") and BYTES[f.types[name]]
    if bytes then widest = math.max(widest, bytes) end
    if bytes and name ~= "S" then touched[name], narrowest = 1, math.min(narrowest, bytes) end
  end
  local lanes = math.min(f.lanes, math.max(WIDEST // widest, math.min(WIDEST // narrowest, 4 * WIDEST // widest)))
  local elements, accesses = 0, 0
  for name, times in pairs(touched) do
    elements = elements + times * f.lanes
    accesses = accesses + times * (f.lanes // lanes) * math.max(1, lanes * BYTES[f.types[name]] // WIDEST)
  end
  return elements, accesses, f.lanes // lanes * select(2, value:gsub("S%[", ""))
end

local path = os.tmpname()
os.remove(path)

local function read(kernel)
  kernel:export(path .. ".ptx")
  local file <close> = assert(io.open(path .. ".ptx", "rb"))
  return file:read "a", os.remove(path .. ".ptx")
end

-- By PTX: no more accesses of global memory than whole vectors need, but for S.
local function check_ptx(f, kernel)
  local ok, ptx = pcall(read, kernel)
  if not ok then
    assert(ptx:find("NVRTC is missing", 1, true), ptx)
    sources.missing = ptx
    return
  end
  local count = 0
  for _ in ptx:gmatch "[ls][dt]%.global" do count = count + 1 end
  local _, accesses, of_one = accesses_of(f)
  local most = accesses + of_one
  assert(not ptx:find "%.local", f.text)
  assert(f.guarded or count <= most, string.format("%d accesses for %d\n%s", count, most, f.text))
end

local compiled, wide = 0, 0
local functions = math.tointeger(arg[2])
for i = 1, functions do
  local f = random_function()
  local func = ms.from_script(f.text)
  ms.check_lowered(func, func, TARGET, i)
  local kernel = ms.build(func, {target = TARGET})
  assert(#kernel:notes() == 0, f.text .. table.concat(kernel:notes(), "\n"))
  sources:begin(func)
  kernel:export(sources:path(i .. ".cu"))
  local agree, said = sources:agree()
  assert(agree == 1, said .. f.text)
  sources:finish()
  if not sources.missing then
    check_ptx(f, kernel)
    compiled = compiled + (sources.missing and 0 or 1)
  end
  local elements, accesses = accesses_of(f)
  if 2 * accesses <= elements then wide = wide + 1 end
end
assert(wide > functions // 2, "hardly any function has whole vectors")
if sources.missing then print("vectors: NVRTC skipped: " .. sources.missing) end
print(string.format("vectors: ok: %d functions, %d compiled by NVRTC", functions, compiled))
