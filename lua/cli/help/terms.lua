-- The field's terms that msched prints, for `msched help TERM`. A line is a term, after commas other forms that lists
-- and tables print, and after ` | ` its explanation. `msched help terms` lists them.
local terms = {list = {}}

local TEXT = [[
accumulator, accumulators | A value in a register to which products are added; in a tensor core's product, the fragment of the result.
AMX | Intel's matrix unit: tiles of up to 16 x 64 bytes for int8 and bfloat16. A process must ask the kernel for permission to use it.
analytical model, analytical, estimate | The formula that estimates the cycles of a candidate from its loops, bytes and instructions, without building it. It ranks candidates; its numbers are never results. The default policy has its name.
anchor | A block that takes most of a function's time: a product or a convolution. Large functions are cut into groups around anchors.
annotation | A key and a value on a block or a loop, such as meta_schedule.unroll_explicit, which a later pass or postprocessor carries out.
asynchronous copy, cp.async | A copy from global to shared memory that runs while the threads compute; GPUs from sm_80 on.
bandwidth | The bytes a second that the memory or a cache was measured to give.
batch | The number of images or matrices that one call computes (batch=1 in suites); of a policy, the candidates that it measures at a time.
block, blocks, sblock | A computation with iteration variables, and the regions that it reads and writes: T.sblock of TVMScript. Instructions name blocks; a sequence of loops around a block is its schedule. On a GPU also a thread block: threads that share memory.
busy machine | A record's mark: other programs ran whenever it was timed, so that it may be faster than its time.
cache, caches, L1, L2, L3 | Memories between the registers and the main memory: L1 is the smallest and fastest; cores share L3. A GPU has L1 and L2.
candidate, candidates | A schedule of a function: a sketch with a value for each decision. A trial measures one.
censored, over | A record's status: its runs were stopped because it could not win. Its seconds are a lower bound of its time.
cluster, clusters, thread block cluster, multicast | Thread blocks of a GPU that run side by side and reach one another's shared memory; a multicast copies to that of all.
composed | Made of the best schedules of a function's groups.
compute location | The loop under which a block is computed: compute_at moves it there.
correlation | How well a cost model ranks candidates, by Spearman's coefficient: 1 is the order of their measured speeds, 0 is chance.
cost model, model, learned model | A model (xgboost, by default) that learns from measurements to rank candidates by their features. --model chooses it.
cross-thread reduction | A reduction whose partial results several threads of a GPU's block combine.
decision, decisions | The value of one sampling instruction in a trace: a tile, a categorical choice, a compute location. In a report, `explains` is the share of the variation in time that it accounts for.
design space, space | All candidates that the rules make for a function: sketches, each with the values that its sampling instructions may take.
deterministic | A run whose candidates depend on no measurement: --deterministic.
draw, draws, sample | A sampling instruction of a trace (SamplePerfectTile, SampleCategorical, …), or the random choice of its decision.
event | A line of `tune --json`: what happened in a run.
explains | A report's column: the share of the variation in time between candidates that a decision accounts for.
factored space | A space in which each block has choices of its own. A candidate has one choice for each block, so that the space is their product.
failed | A record's status: it did not build, crashed, ran out of time, or computed a wrong result. The reason is with it.
failures, reason, build failed, build timeout, crashed, run timeout, wrong result, wrong result: NaN, no reference, not launched, too many resources, misaligned, illegal address, illegal instruction, kernel failed, out of memory, no device | Why candidates failed: they were not built or took too long, crashed, computed something else than the reference, or asked for what a device has not.
feature, features | A number that describes a candidate to the cost model, such as the bytes that a loop touches.
finalist, finalists | One of the fastest candidates of a run, which are timed again in turn at its end.
fixed order | Results are bit for bit those of the unscheduled function: --fixed-order.
fragment, fragments | The part of a matrix that a warp's threads hold in registers for a tensor core.
group, groups | A part of a function of many blocks that is searched as a task of its own: an anchor with its elementwise blocks, a chain over rows, or elementwise blocks.
instruction, instructions, primitive | A step of a schedule, as Split or ComputeAt; `msched help instructions` lists them. In a report of code, a machine instruction.
intrinsic, tensor intrinsic | What hardware does in one instruction (VNNI, AMX, a tensor core), as a description and an implementation. Tensorize replaces a block by it.
iteration variable, iteration variables, spatial, reduction | A variable of a block. Spatial ones name the element that is computed; reduction ones name what is joined in it, as the products of a sum.
Kendall's tau, Kendall tau | How well an estimate ranks candidates: the share of pairs in the measured order less that of the others. 1 is the measured order, 0 is chance.
kernel, kernels | The machine code of a function. A GPU's function may have several.
loop nest | Loops in one another, and the blocks in them.
mbarrier | A barrier in a GPU's shared memory that counts arrivals and bytes of asynchronous copies; from sm_80 on.
moves | The rate in bytes: those of the arguments, each once, over the time.
multiply-adds | Instructions that multiply and add, counted in the innermost loops of the code.
mutator | A function that changes a trace's decisions, for the policy evolutionary.
NVRTC | NVIDIA's compiler of CUDA C++ at run time. It makes PTX, the text of instructions, or a cubin, the machine code of one architecture.
of roof, of the limit, limit | The share of the roofline that the best has: 100 % is what the machine was measured to do at most.
of vendor | The rate of the best over that of the fastest vendor's library: above 100 %, the best is faster.
pass | A step of lowering: `lower --dump-after PASS` prints the function after it.
peak, measured peak | The highest rate that a unit of the machine was measured to have.
persistent kernel, persistent | A kernel with as many thread blocks as the GPU holds at once; each computes several tiles, one after another.
pinned | A record's mark: the one to use of its workload on its target, whatever is faster.
poison, poisoned | A fleet's job that is given to no worker again, since several did not return from it.
policy | The search strategy, which decides which candidates are measured: --policy.
postprocessor | A function that completes or refuses each sampled candidate: it parallelizes, unrolls, tensorizes, and verifies limits of GPUs.
producer, producer warp group | In warp specialization, the warp group that only copies; consumer warp groups compute.
proposal, proposals | A candidate that the analytical model ranks high, chosen by its decisions before anything is replayed or measured.
ptxas | What makes a GPU's machine code of PTX, by NVIDIA. It allocates registers, and says how many spill.
rate, GFLOP/s, GOP/s, GB/s | Floating-point operations a second (GFLOP/s), or integer operations (GOP/s) where a function has more of these; and bytes a second.
record, records | What the store keeps of a measured candidate: workload, target, trace, status, time, versions. An ID, or its first digits, names it.
reference | The unscheduled function, interpreted or built as it stands. Results of every candidate are compared with it.
refused, refusal | An instruction whose requirement does not hold is not applied; its code, as not_perfectly_nested, names the requirement.
register tile, tile | The elements of the result that stay in registers in the innermost loops. A tile in general is a part of a loop nest with factors for each loop.
register, registers | Where a processor keeps the values that it computes with: of a CPU's core, vector registers; of a GPU's thread, words of 32 bits.
register-pressure estimate, estimated registers | The registers that a thread of a GPU's kernel is estimated to need, computed from the lowered function, without ptxas.
roofline | What the machine could do at most for a function: the measured rate of its fastest unit, or the measured bandwidth of the memory or cache that holds the data, whichever takes longer.
rule, schedule rule | A function that opens the space: it gets a block of a schedule, and returns the schedules to go on with.
run of the search, run | One search of a function with one seed; in a report, its curve.
sandbox | Where files of rules run: without clock, files, processes and addresses, with limits of time and memory.
scheduler | Decides which task of several goes on: --scheduler.
scheduling | The processor whose latencies the compiler orders instructions by; doctor names it.
seed | The number from which all random choices of a run follow.
shape | The extents of a function's output, or of an argument.
shared memory | Memory that the threads of a GPU's block share.
simulated | Results are those of the store, and nothing is measured: --simulate.
sketch, sketches | A schedule whose decisions are open: the structure of loops that rules made. A space has some, often 10 to 20.
SME | Arm's Scalable Matrix Extension: sums of outer products of vectors in an array of tiles; msched uses it where streaming vectors have 512 bits.
software pipeline | A loop whose statements run ahead of one another in stages, so that copies of later iterations overlap with computation.
spill, spills, on the stack, on the stack (spills) | A value that the compiler keeps in memory because registers ran out.
stage, stages, pipeline stage, stage buffer, stage buffers | A step of a software pipeline, which runs some iterations before the next one; each iteration that is on its way has a stage buffer of its own in shared memory.
store | The file with workloads and records: --db.
suite | A named list of operators with arguments, as suite:ops.
swizzle, swizzled | A permutation of a tile's addresses in shared memory that avoids bank conflicts.
target | The processor that code is made for, as `native` or `cuda -arch=sm_80`; `msched help targets` says what it may be.
task | A function to be tuned for a target; of several, the scheduler chooses which goes on.
template | The schedule of a function that functions of the same structure and other shapes take: ms.auto_schedule.
tensor core, tensor cores | The matrix units of NVIDIA's GPUs, programmed by wmma, mma.sync or wgmma.
TMA | The Tensor Memory Accelerator: bulk copies of tensor tiles to shared memory that one thread starts; from sm_90 on.
trace | The instructions of a schedule with the decisions of its sampling instructions. Replaying it makes the schedule again.
trial, trials | One measurement of a candidate. --trials is their number.
unit, units | A part of a processor that computes, with a measured rate: vectors, VNNI, AMX, tensor cores.
unmeasured, not measured | A record's status: the analytical model ranked it first, and nothing was run.
unsafe | A record's mark: its trace has instructions that may change what is computed.
vector, vectors, float32 vectors | Several elements that one instruction computes with; the unit of a processor that does. A loop is vectorized.
vendor | A library of a processor's maker, or its like: OpenBLAS, oneDNN, cuBLAS, cuBLASLt, cuDNN.
version, versions | What a record was measured with: msched, the version of its generated code, LLVM or NVRTC. Records of other versions are measured again.
VNNI | Instructions of CPUs that add products of four pairs of bytes to an int32.
warp specialization | Warp groups of a block with different work: one copies, the others compute.
warp, warp group | 32 threads of a GPU that run together; four warps are a warp group.
weight | How much a task counts in the scheduler's choice: how often the function occurs, for instance.
wgmma | The matrix instruction of a warp group; sm_90a.
wmma, mma.sync | Instructions of NVIDIA's tensor cores that a warp executes together, by fragments.
workload | A function as the store knows it: by its content, whatever its name.
workspace | Memory that a kernel needs besides its arguments; its caller provides it.
]]

local by_name = {}
local function plain(name) return (name:lower():gsub("[-_ ]+", " ")) end

for line in TEXT:gmatch "[^\n]+" do
  local names, text = line:match "^(.-) | (.*)$"
  local term = {names = {}, text = text}
  for name in names:gmatch "[^,]+" do
    name = name:match "^%s*(.-)%s*$"
    term.names[#term.names + 1] = name
    by_name[plain(name)] = term
  end
  terms.list[#terms.list + 1] = term
end

-- The term of a name in any of its forms: {names, text}; nil: it is none.
function terms.find(name) return by_name[plain(name)] end

-- One term, and all of them, as lines given to `put`.
function terms.explain(term, put)
  put(table.concat(term.names, ", "))
  put("  " .. term.text)
end
function terms.explain_all(put)
  put "Terms that msched prints; `msched help TERM` explains one, in any of its forms:"
  for _, term in ipairs(terms.list) do
    put(string.format("  %-24s %s", term.names[1], term.text:match "^(.-%.) %u" or term.text))
  end
end

return terms
