-- What this machine reaches: multiply-adds in registers, and reading memory, measured by kernels of our own.
local ms = msched
local tensor_peak = ms.load "lua.tensor_peak"
local peak = {}

local function parallel(cores) return cores > 1 and "T.parallel" or "T.serial" end

-- Chains of multiply-adds on registers alone, as many as cover the latency: the function, its arguments, and the operations
-- that it does.
local function product_of(cores)
  local chains, steps, lanes = 12, 1 << 16, ms.target("native").vector_bits // 32
  local script = string.format([[
@T.prim_func(s_tir=True)
def peak(A: T.Buffer((%d, %d, %d), "float32"), X: T.Buffer((%d,), "float32")):
    T.func_attr({"tirx.noalias": True})
    # with T.sblock("root"):
    for t in %s(%d):
        for k in range(%d):
            for c in T.unroll(%d):
                for l in T.vectorized(%d):
                    with T.sblock("A"):
                        vt = T.axis.spatial(%d, t)
                        vc = T.axis.spatial(%d, c)
                        vl = T.axis.spatial(%d, l)
                        vk = T.axis.reduce(%d, k)
                        T.reads(A[vt, vc, vl], X[vl])
                        T.writes(A[vt, vc, vl])
                        A[vt, vc, vl] = A[vt, vc, vl] * X[vl] + X[vl]
]], cores, chains, lanes, lanes, parallel(cores), cores, steps, chains, lanes, cores, chains, lanes, steps)
  return ms.from_script(script, "peak"), {ms.array({cores, chains, lanes}), ms.array({lanes}, "float32", 0.5)}, 2 * cores * chains * lanes * steps
end

-- The same as a call, for timing it in turn with others.
function peak.call(cores)
  local func, arguments, operations = product_of(cores)
  return {call = ms.build(func):prepare(table.unpack(arguments)), operations = operations}
end

local GLANCE = 0.1 -- seconds of samples, where the machine is so busy that they do not agree
local DISTURBED = 2 -- times less than the cores give one by one: other programs run on them

-- Operations a second on float32, by a few samples: in some hundredths of a second. On a machine that is busy, what one core
-- does times the cores.
function peak.glance(cores)
  local function rate(n)
    local func, arguments, operations = product_of(n)
    arguments[#arguments + 1] = GLANCE
    local _, low = ms.build(func):time(table.unpack(arguments))
    return operations / low
  end
  local alone = cores * rate(1)
  local together = cores > 1 and rate(cores) or alone
  return together * DISTURBED < alone and alone or together
end

-- How a target's peak is measured, and what it is known by; nil: it is not known how to. type: that of tensor cores; nil: float32.
local function measure_of(target, type)
  if type then
    local plain = ms.target("cuda -arch=" .. target.text:match "-arch=(%S+)")
    return plain.text .. " " .. type, function() return tensor_peak.glance(peak.device_of(target.arch), plain, type) end
  end
  if target.arch then
    local text = "cuda -arch=" .. target.text:match "-arch=(%S+)" -- without limits that are not the device's
    return text, function() return peak.device_glance(text, target.arch) end
  end
  if target.kind ~= "llvm" or target.vector_bits ~= ms.target("native").vector_bits then return nil end
  return target.cores, function() return peak.glance(target.cores) end
end

-- A function (func, target, again, traces) that says what operations a second on float32 this machine or its device does, where
-- it is known how to: measured once, or again, and then the most of all times. Where tensor cores multiply in one of the traces:
-- what these do, on what they multiply.
function peak.reach()
  local reaches = {}
  return function(func, target, again, traces)
    local type = target.arch and traces and tensor_peak.type_of(traces)
    for _, p in ipairs(func:params()) do if p.type ~= "float32" and not type then return nil end end
    local key, measure = measure_of(target, type)
    if not key then return nil end
    local known = reaches[key]
    if not known or again then reaches[key] = math.max(known or 0, measure()) end
    return reaches[key]
  end
end

function peak.flops(cores)
  local most = peak.call(cores)
  return most.operations / ms.time_in_turn({most.call}, 0.5)[1].low
end

-- Sums of a buffer far larger than the caches.
function peak.bandwidth()
  local cores, rows, columns = ms.target("native").cores, 256, 1 << 16
  local te = ms.te
  local A, k = te.placeholder({rows, columns}, "float32", "A"), te.reduce_axis(columns, "k")
  local S = te.compute({rows}, function(i) return te.sum(A[{i, k}], k) end, "S")
  local func = te.func("bandwidth", {A, S})
  local sch = ms.schedule(func)
  local i = sch:get_loops(sch:get_sblock "S")
  if cores > 1 then sch:parallel(i) end
  local loops = {sch:get_loops(sch:get_sblock "S")}
  sch:decompose_reduction(sch:get_sblock "S", loops[2])
  local _, low = sch:build():time(table.unpack(ms.arrays_for(func, 1)))
  return rows * columns * 4 / low
end

-- ---- A GPU ----

local THREADS, CHAINS, STEPS = 256, 8, 1 << 14 -- of a block; of a thread; of a chain
local GOLDEN = 0.6180339887498949 -- of whose multiples the fractions are spread evenly

-- Chains of multiply-adds in the registers of as many threads as a device runs at once: the operations, the function, its arrays.
-- s * s + c never comes to rest for these c (the map is chaotic, and stays from -2 to 2): all digits change at each step, as in
-- other work. A device whose chains end at one number, or grow without end, draws less power, and its clock rises.
local function device_product(device)
  local blocks, script = 8 * device.processors, [[
@T.prim_func(s_tir=True)
def peak(X: T.Buffer((THREADS, CHAINS), "float32"), C: T.Buffer((THREADS,), "float32"), R: T.Buffer((BLOCKS, THREADS, CHAINS), "float32")):
    T.func_attr({"tirx.noalias": True})
    # with T.sblock("root"):
    S = T.sblock_alloc_buffer((BLOCKS, THREADS, CHAINS), scope="local")
    for b in T.thread_binding(BLOCKS, thread="blockIdx.x"):
        for t in T.thread_binding(THREADS, thread="threadIdx.x"):
            for c in T.unroll(CHAINS):
                with T.sblock("first"):
                    vb, vt, vc = T.axis.remap("SSS", [b, t, c])
                    T.reads(X[vt, vc])
                    T.writes(S[vb, vt, vc])
                    S[vb, vt, vc] = X[vt, vc]
            for k in range(STEPS):
                for c in T.unroll(CHAINS):
                    with T.sblock("step"):
                        vb, vt, vk, vc = T.axis.remap("SSRS", [b, t, k, c])
                        T.reads(S[vb, vt, vc], C[vt])
                        T.writes(S[vb, vt, vc])
                        S[vb, vt, vc] = S[vb, vt, vc] * S[vb, vt, vc] + C[vt]
            for c in T.unroll(CHAINS):
                with T.sblock("last"):
                    vb, vt, vc = T.axis.remap("SSS", [b, t, c])
                    T.reads(S[vb, vt, vc])
                    T.writes(R[vb, vt, vc])
                    R[vb, vt, vc] = S[vb, vt, vc]
]]
  local words = {BLOCKS = blocks, THREADS = THREADS, CHAINS = CHAINS, STEPS = STEPS}
  local func = ms.from_script((script:gsub("%u%u%u%u+", words)), "peak")
  local constants = ms.array({THREADS}, "float32", function(i) return -1.5 - 0.49 * (i * GOLDEN % 1) end)
  return 2 * blocks * THREADS * CHAINS * STEPS, func, {ms.array({THREADS, CHAINS}):random(1, true), constants, ms.array({blocks, THREADS, CHAINS})}
end

-- Copies of a buffer twice as large as the device's cache, by vectors: bytes, the function, its arrays.
local function device_copy(device)
  local te, count = ms.te, math.max(2 * device.l2_bytes // 4, 1 << 20)
  local A = te.placeholder({count}, "float32", "A")
  local func = te.func("bandwidth", {A, te.compute({count}, function(i) return A[{i}] * 2 end, "B")})
  local sch = ms.schedule(func)
  local blocks, threads, lanes = sch:split(sch:get_loops(sch:get_sblock "B"), {ms.rest, THREADS, 4})
  sch:bind(blocks, "blockIdx.x")
  sch:bind(threads, "threadIdx.x")
  sch:vectorize(lanes)
  return 8 * count, sch:func(), {ms.array({count}):random(1, true), ms.array({count})}
end

-- The first device that runs code of an architecture, as ms.devices() has it.
function peak.device_of(arch)
  for _, device in ipairs(ms.devices()) do if device.arch == arch then return device end end
  return ms.devices()[1]
end

-- A call for timing in turn, whose arrays are on the device.
local function ready(target, func, arrays)
  local call = ms.build(func, {target = target.text}):prepare(table.unpack(arrays))
  call:run()
  return call
end

-- As peak.call, on the device that runs a target's code.
function peak.device_call(target)
  local operations, func, arrays = device_product(peak.device_of(target.arch))
  return {call = ready(target, func, arrays), operations = operations}
end

-- The same of copies in its memory: the call, and the bytes that it moves.
function peak.device_copy_call(target)
  local bytes, func, arrays = device_copy(peak.device_of(target.arch))
  return {call = ready(target, func, arrays), bytes = bytes}
end

-- So much work a second, by a few samples.
local function rate(target, work, func, arrays)
  local _, low = ms.build(func, {target = target}):time(table.unpack(arrays))
  return work / low
end

-- As peak.glance, on the device that runs the target's code.
function peak.device_glance(text, arch) return rate(text, device_product(peak.device_of(arch))) end

-- What the device of a name reaches where it is here: {operations, bytes} a second, and what the operations are of, on which the
-- target's code multiplies; type: that of tensor cores, nil: float32. nil and why: it is not, or cannot be asked.
function peak.reach_of_device(target, name, type)
  for _, device in ipairs(ms.devices()) do
    if device.name == name then
      local plain = ms.target("cuda -arch=" .. target.text:match "-arch=(%S+)") -- without limits that are not the device's
      local ok, result = pcall(function()
        return {operations = type and tensor_peak.glance(device, plain, type) or peak.device_glance(plain.text, device.arch),
                bytes = rate(plain.text, device_copy(device)), of = type and tensor_peak.name(type) or "float32", name = name}
      end)
      return ok and result or nil, not ok and tostring(result):match "[^\n]*" or nil
    end
  end
  return nil, string.format("%s is not found here", name or "its device")
end

-- What a device (of ms.devices(), the first) reaches: flops, bandwidth, and the clock that it had then, where that can be read.
function peak.device(device)
  local target = string.format("cuda -arch=sm_%d", device.arch)
  ms.target(target, {runs = true})
  local flops = rate(target, device_product(device))
  local clocks = ms.device_clocks(0)
  return {flops = flops, clock = clocks and clocks.clock, bandwidth = rate(target, device_copy(device))}
end

return peak
