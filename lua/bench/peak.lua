-- What this machine reaches: multiply-adds in registers, and reading memory, measured by kernels of our own.
local ms = msched
local tensor_peak = ms.load "lua.bench.tensor_peak"
local peak = {}

local function parallel(cores) return cores > 1 and "T.parallel" or "T.serial" end

-- Seconds that each measurement takes at most, where MSCHED_PEAK_SECONDS says so: less exact.
local ASKED = tonumber(os.getenv "MSCHED_PEAK_SECONDS" or "")
local function at_most(seconds) return ASKED and ASKED > 0 and math.min(ASKED, seconds) or seconds end

-- A target may have more cores than this machine, which can be measured with its own alone.
function peak.cores_of(target) return math.min(target.cores, ms.target("native").cores) end
local cores_of = peak.cores_of

-- Steps of a chain: of floats a multiply-add, of integers an addition and a bitwise operation, which all vectors have.
-- Either counts as two.
local STEPS = {float = "SUM * X[vl] + X[vl]", int = "T.bitwise_xor(SUM + X[vl], X[vl])"}
local SUM = "A[vt, vc, vl]"

-- Chains of operations on registers alone, as many as cover the latency: the function, its arguments, and the
-- operations that it does.
local function product_of(target, cores, type)
  local bits = math.tointeger(tonumber(type:match "%d+$"))
  local chains, steps, lanes = 12, 1 << 16, target.vector_bits // bits
  local script = string.format([[
@T.prim_func(s_tir=True)
def peak(A: T.Buffer((%d, %d, %d), "%s"), X: T.Buffer((%d,), "%s")):
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
                        A[vt, vc, vl] = %s
]], cores, chains, lanes, type, lanes, type, parallel(cores), cores, steps, chains, lanes, cores, chains, lanes, steps, (STEPS[type:match "^%a+"]:gsub("SUM", SUM)))
  local value = type:find "^float" and 0.5 or 1
  return ms.from_script(script, "peak"), {ms.array({cores, chains, lanes}, type), ms.array({lanes}, type, value)},
    2 * cores * chains * lanes * steps
end

-- A call that does so many operations on vectors of a type, for timing it in turn with others.
function peak.vectors_call(target, type)
  local func, arguments, operations = product_of(target, cores_of(target), type)
  return {call = ms.build(func, {target = target.text}):prepare(table.unpack(arguments)), work = operations}
end

-- The same of float32 on one core.
function peak.core_call(target)
  local func, arguments, operations = product_of(target, 1, "float32")
  return {call = ms.build(func, {target = target.text}):prepare(table.unpack(arguments)), work = operations}
end

-- The least that the median may be; or the median, where samples were too few to say.
function peak.least(seconds, low) return low > 0 and low or seconds end

local GLANCE = at_most(0.1) -- seconds of samples, where the machine is so busy that they do not agree
local DISTURBED = 2 -- times less than the cores give one by one: other programs run on them

-- What so many cores do by a rate of n cores: where other programs run on the others, what one does, times the cores.
function peak.undisturbed(cores, rate)
  local alone = cores * rate(1)
  local together = cores > 1 and rate(cores) or alone
  return together * DISTURBED < alone and alone or together
end

-- Operations a second on vectors of a type, by a few samples: in some hundredths of a second.
function peak.vectors(target, type)
  return peak.undisturbed(cores_of(target), function(n)
    local func, arguments, operations = product_of(target, n, type)
    arguments[#arguments + 1] = GLANCE
    return operations / peak.least(ms.build(func, {target = target.text}):time(table.unpack(arguments)))
  end)
end

-- The same of float32 on so many of this machine's cores, timed for longer.
function peak.flops(cores)
  local target = ms.target("native")
  local func, arguments, operations = product_of(target, cores, "float32")
  local call = ms.build(func, {target = target.text}):prepare(table.unpack(arguments))
  local times = ms.time_in_turn({call}, at_most(0.5))[1]
  return operations / peak.least(times.seconds, times.low)
end

local READ = 1 << 25 -- bytes that a core reads for a sample, at least
local PART = 4 -- of the memory that the process may have, as its control groups lend it, is read at most one of so many
local FAR, MOST_FAR = 1 << 26, 1 << 30 -- bytes that lie in no cache, unless that is a larger one

local LEAST_RUNS, MOST_RUNS, SECONDS = 3, 200, at_most(0.2) -- of a call that is timed by its fastest run

-- Seconds of the fastest of some runs: other programs, which share the memory with all cores, make the others slower.
-- most: seconds of all runs.
function peak.fastest(call, most)
  local began, least, runs = ms.clock(), math.huge, 0
  while runs <= LEAST_RUNS or runs < MOST_RUNS and ms.clock() - began < (most or SECONDS) do
    local start = ms.clock()
    call:run()
    if runs > 0 then least = math.min(least, ms.clock() - start) end -- the first finds the caches cold
    runs = runs + 1
  end
  return least
end

-- The call of so many cores that read a buffer of so many bytes, each a part of it, again and again; and the bytes.
local function reading(target, cores, bytes)
  local chains, lanes = target.vector_registers > 16 and 16 or 8, target.vector_bits // 32
  local steps = math.max(bytes // (4 * cores * chains * lanes), 1)
  local a_round = 4 * steps * chains * lanes
  local rounds = math.max(READ // a_round, 1)
  local script = string.format([[
@T.prim_func(s_tir=True)
def bandwidth(X: T.Buffer((%d, %d, %d, %d), "float32"), S: T.Buffer((%d, %d, %d), "float32")):
    T.func_attr({"tirx.noalias": True})
    # with T.sblock("root"):
    for t in %s(%d):
        for r in range(%d):
            for k in range(%d):
                for c in T.unroll(%d):
                    for l in T.vectorized(%d):
                        with T.sblock("S"):
                            vt, vr, vk, vc, vl = T.axis.remap("SRRSS", [t, r, k, c, l])
                            T.reads(S[vt, vc, vl], X[vt, vk, vc, vl])
                            T.writes(S[vt, vc, vl])
                            S[vt, vc, vl] = S[vt, vc, vl] + X[vt, vk, vc, vl]
]], cores, steps, chains, lanes, cores, chains, lanes, parallel(cores), cores, rounds, steps, chains, lanes)
  local kernel = ms.build(ms.from_script(script, "bandwidth"), {target = target.text})
  return kernel:prepare(ms.array({cores, steps, chains, lanes}, "float32", 1), ms.array({cores, chains, lanes})),
    cores * rounds * a_round
end

-- Bytes a second that they read.
local function read(target, cores, bytes)
  local call, work = reading(target, cores, bytes)
  return work / peak.fastest(call, GLANCE)
end

-- Bytes a second that are read of a buffer of so many bytes; without bytes: of one far larger than the caches. own:
-- they lie in caches that each core has for itself.
function peak.bandwidth(target, bytes, own)
  local cores = cores_of(target)
  bytes = bytes or math.min(math.max(FAR, 2 * target.l3_bytes), MOST_FAR)
  bytes = math.min(bytes, ms.host().memory // PART)
  if own then
    return peak.undisturbed(cores, function(n) return read(target, n, bytes // cores * n) end)
  end
  return read(target, cores, bytes)
end

-- A call that reads a buffer of so many bytes, for timing it in turn with others.
function peak.reading_call(target, bytes)
  local call, work = reading(target, cores_of(target), math.min(bytes, ms.host().memory // PART))
  return {call = call, work = work}
end

-- ---- A GPU ----

local THREADS, CHAINS, STEPS = 256, 8, 1 << 14 -- of a block; of a thread; of a chain
local GOLDEN = 0.6180339887498949 -- of whose multiples the fractions are spread evenly

-- Chains of multiply-adds in the registers of as many threads as a device runs at once: the operations, the function,
-- its arrays. s * s + c never comes to rest for these c (the map is chaotic, and stays from -2 to 2): all digits change
-- at each step, as in other work. A device whose chains end at one number, or grow without end, draws less power, and
-- its clock rises.
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
  return 2 * blocks * THREADS * CHAINS * STEPS, func,
    {ms.array({THREADS, CHAINS}):random(1, true), constants, ms.array({blocks, THREADS, CHAINS})}
end

-- Copies of a buffer twice as large as the device's cache, or of so many bytes with its copy, by vectors: bytes, the
-- function, its arrays.
local function device_copy(device, bytes)
  local te, count = ms.te,
    bytes and math.max(bytes // 8 // (4 * THREADS), 1) * 4 * THREADS or math.max(2 * device.l2_bytes // 4, 1 << 20)
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

-- As peak.vectors_call, on the device that runs a target's code.
function peak.device_call(target)
  local operations, func, arrays = device_product(peak.device_of(target.arch))
  return {call = ready(target, func, arrays), work = operations}
end

-- The same of copies in its memory: the call, and the bytes that it moves.
function peak.device_copy_call(target)
  local bytes, func, arrays = device_copy(peak.device_of(target.arch))
  return {call = ready(target, func, arrays), work = bytes}
end

-- So much work a second, by a few samples.
local function rate(target, work, func, arrays)
  return work / peak.least(ms.build(func, {target = target}):time(table.unpack(arrays)))
end

-- As peak.vectors, of float32 on the device that runs the target's code.
function peak.device_glance(text, arch) return rate(text, device_product(peak.device_of(arch))) end

-- Bytes a second that copies move: of a buffer larger than the cache, or of so many bytes with its copy.
function peak.device_bandwidth(target, bytes)
  return rate(target.text, device_copy(peak.device_of(target.arch), bytes))
end

-- What a device (of ms.devices(), the first) reaches: flops, bandwidth, and the clock that it had then, where that can
-- be read.
function peak.device(device)
  local target = string.format("cuda -arch=sm_%d", device.arch)
  ms.target(target, {runs = true})
  local flops = rate(target, device_product(device))
  local clocks = ms.device_clocks(0)
  return {flops = flops, clock = clocks and clocks.clock, bandwidth = rate(target, device_copy(device))}
end

return peak
