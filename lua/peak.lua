-- What this machine reaches: multiply-adds in registers, and reading memory, measured by kernels of our own.
local ms = msched
local peak = {}

local function parallel(cores) return cores > 1 and "T.parallel" or "T.serial" end

-- Chains of multiply-adds on registers alone, as many as cover the latency: a call, and the operations that it does.
function peak.call(cores)
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
  local func = ms.from_script(script, "peak")
  local kernel = ms.build(func)
  local call = kernel:prepare(ms.array({cores, chains, lanes}), ms.array({lanes}, "float32", 0.5))
  return {call = call, operations = 2 * cores * chains * lanes * steps}
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

return peak
