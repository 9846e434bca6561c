-- What the members of the module are, for help in the session and for the editor's annotations. Instructions and
-- queries are in the tables of vm. A line is a member: its owner, `.` or `:`, its name, its arguments and what it gives
-- as LuaLS writes types, and after ` | ` one sentence. A test holds the lines against the members that there are.
local ms = msched
local terms, run_options = ms.load "lua.cli.help.terms", ms.load "search.options"
local docs = {list = {}}

docs.about = {
  ms = "msched: functions, schedules, kernels and tuning. What a rule, a search policy or a report needs is here too.",
  te = "te: tensor expressions. te.func gives a function whose tensors are what te.placeholder and te.compute made.",
  ops = "ops: operators made of tensor expressions; each takes tensors and gives a tensor. Those that are named are \z
         functions of shapes.",
  ["function"] = "A function: loops and blocks over buffers. It is never changed: ms.schedule(f) works on a copy.",
  schedule = "A schedule: a function on its way to a fast kernel, and the trace that brought it there. A call of an \z
              instruction is recorded; sch.trace is the trace.",
  handle = "A handle: a block, a loop or a number of its schedule, given by an instruction.",
  trace = "A trace: the instructions of a schedule and the decisions of its draws. #trace is the number of \z
           instructions.",
  array = "An array: dense numbers. a[{i, j}] is an element, indices from 0; #a the number of elements.",
  kernel = "A kernel: a function built to run. k(a, b, c) runs it on arrays.",
  store = "A store: workloads and the records of what was measured.",
  record = "A record: one schedule of a workload on a target, with its time and its origin, as store:records and \z
            store:find give it, a table. store:schedule(r.id) is its schedule, ms.read_trace(r.trace) its trace, \z
            store:get_workload(r.workload) the function.",
  draw = "A draw of a trace, as trace:draws gives it, a table: an instruction that draws numbers.",
  best = "What ms.tune gives: the fastest record, with func, target, trace, seconds and id.",
  pool = "A pool: workers that replay candidates, for policies.",
  features = "The features of a candidate: features(row, name) is a number, #features the number of rows.",
  model = "A cost model: scores candidates by their features.",
  estimator = "The analytical model of a sketch: it estimates the cost of candidates from their decisions alone.",
  measurer = "A measurer: builds and times candidates in processes of their own.",
  stream = "A stream of numbers that depend on its seed, candidate, draw and attempt alone.",
  sandbox = "A sandbox: a state of its own for the rules and mutators of files.",
  vendor = "A vendor's library, for the benchmarks.",
  worker = "A program of ours in a process of its own.",
  redis = "A connection to Redis, for fleets of workers.",
  network = "A network: a graph of operators, as ms.onnx gives it, a table to walk and to change: name, producer, \z
             opsets; inputs and outputs, lists of {name, type, shape}; constants, arrays by name; nodes, a list of \z
             {op, domain, name, inputs, outputs, attributes}. net:check() brings nodes into order after a change.",
  call = "A kernel or a vendor's routine with its arguments, ready to run.",
  expression = "A tensor expression; help(te) lists what they are made with.",
}

-- Pages of their own.
docs.pages = {
  terms = terms.explain_all,
  targets = function(put)
    put(string.format([[
What --target, and the option `target` of scripts, takes. A target is what kernels are made for.

  native               this machine, and the default: here %s
  x86-64-v2, -v3, -v4  a level of x86-64, or a CPU as LLVM calls it, as znver4;
                       features are added or taken away after commas: x86-64-v4,+avx512vnni
  llvm WORDS           a CPU by words in any order:
    -mcpu=NAME           the CPU
    -mattr=+F,-F         features by which the target differs from it
    -num-cores=N         threads of parallel loops (the cores that may be used here)
    -vector-bits=256     leaves registers of 512 bits alone
    -mtriple=TRIPLE      another kind of machine, of x86_64 or aarch64 with Linux
  cuda -arch=sm_90     a GPU of NVIDIA, of sm_70 sm_72 sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a; cuda alone is the first device;
                       a block's limits are lowered by -max_threads_per_block=, -max_shared_memory_per_block=,
                       -registers_per_block=, -thread_warp_size=, -max_vthread=, -max_vector_bytes=;
                       -timing=cold: kernels are timed after the L2 cache was flushed

Code for features that this machine lacks is made and exported, and not run. ms.target(text) gives a target's numbers.]], ms.target("native").text))
  end,
}

local TEXT = [[
ms.without_empty(func: msched.function): msched.function? | The function without its loops of extent 0 and the blocks in them, which never run: what is tuned of it. Itself where no extent is 0; nil where no block is left.
ms.with_weights(func: msched.function, names: string[]): msched.function | The function in which these parameters are constant (its attribute layout_free_buffers): what it computes of constants alone, as copies into the order in which a schedule reads them, is done ahead of its runs. te.func takes the same as {weights = names}.
ms.specialize(func: msched.function, values: table): msched.function | The function with numbers for variables of its shapes, strides and offsets and for integer parameters, {n = 64}: those of its parameters that get one are left out. function:symbolic lists the variables.
ms.from_script(text: string, file?: string): msched.function | The function of a TVMScript text: the only one, or `main`.
ms.functions_of_script(text: string, file?: string): msched.function[] | All functions of a TVMScript text, each alone.
ms.read_workload(line: string): msched.function | The function of a line of TVM's database_workload.json, a graph of nodes.
ms.write_workload(func: msched.function): string | Such a line, which TVM's JSONDatabase reads; the function is named main in it.
ms.schedule(func: msched.function, options?: {seed?: integer}): msched.schedule | A schedule of a function, its trace empty.
ms.join_traces(traces: msched.trace[]): msched.trace | One trace of all, one after another.
ms.read_trace(text: string): msched.trace | A trace from JSON, Lua text or the binary form; it is data, and never run.
ms.load_trace(path: string): msched.trace | The trace of a file, in any of its forms, as schedule:save writes it.
ms.apply(func: msched.function, trace: msched.trace, options?: {seed?: integer, candidate?: integer, repair?: boolean, resample?: boolean}): msched.schedule | The function scheduled by a trace; repair: a decision that does not fit becomes the nearest that does; resample: all are sampled again.
ms.build(func: msched.function, options?: {target?: string, fast_math?: boolean, stack_bytes?: integer, reference?: msched.function, load?: boolean}): msched.kernel | A kernel; allocations larger than stack_bytes, 16 KiB, lie in the workspace; reference: the unscheduled function, which check compares with; load = false: machine code is loaded, and on a GPU made by NVRTC, only when it is first called.
ms.interpret(func: msched.function, ...: msched.array|number) | Runs a function on the reference interpreter.
ms.target(text?: string, options?: {runs?: boolean}): msched.target | What a target is: text, kind, cpu; reference, the target whose code says what its kernels are to compute; of a CPU cores, vector_bits, vector_registers, l1_bytes, l2_bytes, l3_bytes, l3_share (of the third cache, that a core may count on), dots (vectors add dot products, 1: of uint8 by int8, 2: of bfloat16, 4: of int8, 8: of uint8; added up), slides (1: windows of bytes slide in words, which it adds dot products of), table (floats in a register that an instruction picks from, a lane each; 0: none does), tiles (1: AMX, or SME, multiplies tiles of bytes, 2: of bfloat16, 16: of float16; added up), tile_accumulators (tiles that registers hold beside operands); of a GPU arch, max_threads, shared_bytes, registers, warp, max_vthread, vector_bytes, those of one block. With runs, it raises where this machine does not run kernels for it.
ms.cpu_features(target?: string): table[] | What code for a target may use of x86, or all that is known, but AMX, a list of {name, leaf, subleaf, word, bit, kept}: where CPUID says that it is there, the register by number, and the states in XCR0 whose registers the system keeps. Of other CPUs it is empty.
ms.see_device(name: string) | From here on this process, and those that it starts, have one GPU alone, named as CUDA_VISIBLE_DEVICES names it: its number. CUDA reads that once: call it before anything asks for devices.
ms.device_clocks(number: integer): table?, string? | A GPU's clocks as NVML reads them now, in hertz: {clock, memory_clock, slowed}, the last where heat or power holds it down; nil and what is missing.
ms.devices(): table | GPUs that CUDA's driver finds, a list of {name, arch, processors, l2_bytes, shared_bytes, memory, clock}; driver and nvrtc: their versions, or what is missing.
ms.host(): table | How the target `native` came to be: llvm_cpu (LLVM's name), cpu (whose scheduling model is used), features, missing (what that name's CPU has besides), beyond (what it lacks), tiles (of AMX: none, refused, or lent: permission is granted); online, the processors of the machine, allowed, those that this process may run on, quota, what its control groups lend of their time (nil: all), usable, whole cores that are left, at least 1: what targets count that say no -num-cores; memory, the bytes that the process may have.
ms.units(target: string): table[] | Units that multiply short types which this machine has and code for the target may use: a list of {unit, name, products}: a number, what it is called, and what it multiplies, as function:work() calls it.
ms.time_text(seconds: number): string | So many seconds, in the unit that suits them: "1.234 ms".
ms.rate_text(operations: number, unit: string, seconds: number): string | Operations a second, of a unit of 1e9, as "GFLOP/s"; or bytes, as "GB/s". "": there are none.
ms.rate_share(limit: number, seconds: number): number? | The share of its limit, in seconds, that a kernel reaches, at most all of it; nil: it is not known.
ms.unit_rate(unit: integer, threads: integer, vector_bits: integer): number | The operations a second that so many threads are measured to do on such a unit, in registers, by vectors of so many bits.
ms.unit_is_used(unit: integer, assembly: string): boolean | Whether a text of assembly has an instruction of such a unit.
ms.array(shape: integer[], type?: string, values?: number|number[]|string|fun(position: integer): number): msched.array | An array of float32 zeros, or of the type and values given: one number, a list, a function of the position from 0, or the bytes of all elements as array:bytes gives them.
ms.onnx(path: string, options?: {shapes: table<string, integer[]>?, dims: table<string, integer>?, constants: table<string, number>?}): msched.network | The network of a file of ONNX; `shapes` are of inputs by name, `dims` extents by the name that stands for them, `constants` inputs whose elements are all one number. External data are read from the file's folder.
ms.pass(pass: {name: string, apply: fun(net: msched.network, values: table), after?: string}|function): table | Registers a pass over networks, which plans run after the one named in `after` (constants). It changes net.nodes and net.constants; the network computes what it did. values[name] has type, shape, constant, and array where the elements are known.
ms.team_source(): string | The source in C of the threads that run parallel loops, which libraries of networks have a copy of.
ms.read_onnx(path: string): table | What stands in a file of ONNX, as tables: {ir_version, producer, opsets, functions, graph = {name, inputs, outputs, known, initializers, nodes}}.
ms.load_array(path: string): msched.array | The array of a file of NumPy's format .npy, as numpy.save writes it.
ms.time(f: function|msched.kernel, ...: any): number, number, number | Calls f(...) again and again, half a second long but at least three times: the median of the seconds that a call takes, the least and the most.
ms.arrays_for(func: msched.function, seed: integer, again?: msched.array[]): msched.array[] | Arrays for a function's parameters, or these again, filled with small integers, so that sums are exact.
ms.timed_with_digits(func: msched.function, target: string): boolean[] | Of each parameter of a function, whether tuning times it with full-mantissa data (ms.fill_for_timing).
ms.fill_for_timing(func: msched.function, arrays: msched.array[], target?: string): boolean | Refills arrays of a function's parameters with what tuning times it with: where the target's code runs on a GPU, floats that the function only reads become full-mantissa data, as the clock follows the power; gives whether any did.
ms.tune(func: msched.function|msched.network, options?: {@run}): msched.best|table | Searches for the fastest schedule; results are kept in the store. Of a network: its plan, as network:plan gives it. no_tune: measures nothing, and gives the store's fastest, or the candidate that the analytical model ranks first. deterministic: no time decides which candidates are tried. fixed_order: results are those of the unscheduled function, bit for bit.
ms.groups(func: msched.function): table | The groups that a function is cut into where it has many blocks, to be searched apart: a printable list of {name, anchor, kind, blocks, func, weight, instances}, equal ones once, with how often they are there.
ms.auto_schedule(func: msched.function, options?: {target?: string, vector_bits?: integer, cores?: integer, seed?: integer, heuristics?: table, trials?: integer, db?: string, store?: msched.store, listen?: fun(event: table)}): msched.schedule, table | A schedule at once, by the patterns of reads and writes and by estimate; and {target, patterns, known, cycles}: known, whether a function of the same structure had made its template. With trials the template is tuned, and best is what ms.tune gives. heuristics: changes to ms.heuristics.
ms.rule(rule: {name: string, apply: fun(sch: msched.schedule, block: msched.handle, context: table, self: table): msched.schedule[]}|function): table | Registers a rule of the design space; begin(self, context), if it has one, is called when a space is opened; only_annotated: it is for blocks whose annotation schedule_rule names it.
ms.postproc(postproc: {name: string, apply: fun(sch: msched.schedule, context: table, self: table): boolean?}|function): table | Registers a postprocessor: what is done to each candidate; false refuses it.
ms.mutator(mutator: {name: string, apply: fun(trace: msched.trace, stream: table, other?: msched.trace): msched.trace?, weight?: number}|function): table | Registers a mutator of traces, for the policy evolutionary; other: another of the population.
ms.space(space: {rules?: table, postprocs?: table, mutators?: table}|function): table | Describes a design space in place of the target's, by what differs from it (rules/targets.lua), or by a function that schedules; several are united.
ms.without(...: string) | Leaves rules, postprocessors or mutators of the target's out of the space, by their names (rules/targets.lua); in a file of rules. ms.tune takes them as without.
ms.intrinsic(intrinsic: {name: string, desc: msched.function|string, impl: msched.function|msched.schedule|string}): table | Defines a tensor intrinsic for Tensorize: what it computes (an expression, or TVMScript), and how. In a file of rules: for tuning, too.
ms.policy(policy: {name: string, needs?: {features?: boolean, model?: boolean, nearest?: boolean, transfer?: boolean}, run: fun(env: table)}): table | Registers a search policy: run asks for measurements by env:measure(candidates), as search/README.md says.
ms.store(path?: string, options?: {read_only?: boolean, create?: boolean}): msched.store | Opens a store; without a path, the user's. Where there is none, the first write makes it, or it is refused with create = false.
ms.visible(text: string, how?: string): string | Text that came from elsewhere, as it may be shown: control characters, marks that turn the direction of text and bytes that are no UTF-8 are escaped; how is line, lines (ends of lines and tabs stay), script (colours too) or lua (bytes as Lua escapes them).
ms.not_text(path: string, bytes: string, expected?: string): string? | Nil for text; for the bytes of another format a message that the file at the path is no text, and which format it is, where that is known; expected: what is read there (functions).
ms.load_script(path: string, environment?: table): function?, string? | The chunk of a file of Lua, or nil and why it is none; environment: what it has as globals.
ms.load_aside(path: string): function?, string? | As ms.load_script, with libraries and modules of its own, as the files of commands have them; what it prints goes to standard error.
ms.print_aside(...: any) | As print, to standard error, 64 KiB at most.
ms.check_exported(name: string) | Raises an error that says why, where no exported function may have this name.
ms.check_pages(path?: string): integer | Problems found in the pages of a store's file, which no store has open.
ms.repair(path?: string): table | Writes what can be read of a damaged store to a new file in its place, and keeps the old one; gives needed, pages, records, workloads, intrinsics, dropped, backup.
ms.load(name: string): any | A file of msched's own, loaded once: "rules.common", "search.tune", …; "lua.compat.autotvm", "lua.compat.flextensor" and "lua.compat.ansor" are the compatibility libraries for other tuners.
ms.run_options(): table[] | The options of a run of tuning, of commands, ms.tune and tasks: a list of {field, word, type, range, standard, doc}, texts; word: nil where no command has it.
ms.options(given: table?, known: string): table | Checks options against a list "name:type name:type …" (what `type` says, or integer, any, or a class, as msched.function): gives them, or raises with the caller's place.
ms.sorted_keys(t: table): any[] | A table's keys in an order that is the same in every run.
ms.replace_file(path: string, text: string): boolean?, string?, boolean? | Writes a file that others may read meanwhile: it has the whole text, or what it had; gives true, or nil, what is wrong, and whether there is a device or a pipe.
ms.read_file(path: string, most?: integer): string?, string? | All bytes of a file, of which there are at most so many (256 MiB), or nil and why not: no folder, and no device. A pipe that nobody writes to is empty.
ms.read_start(path: string, length: integer): string?, string?, integer? | So many bytes that a file begins with, fewer where it is shorter, and none of a pipe; or nil, why not, and the system's number of the error.
ms.with_folder(f: fun(folder: string): any): any | Calls f with an empty folder under $TMPDIR or /tmp, which is removed afterwards with what it holds, also where f raises or a signal ends the process; gives what f gives.
ms.sleep(seconds: number) | Waits so long, or until an interrupt.
ms.names_in(folder: string): string[] | Names of a folder's files and folders, as the system lists them; none where it cannot be read.
ms.type(x: any): string? | "function", "schedule", "trace", …; nil for what is not of this module.
ms.where(): string | The place in the user's file that the call comes from, as "file:line: ", or "" if there is none.
ms.compare(kernel: msched.kernel, reference: function, seed: integer): number, integer | The largest difference of what a kernel and a reference compute, and among how many elements.
ms.check_lowered(func: msched.function, scheduled: msched.function, target: string, seed: integer) | Lowers the scheduled function for the target and runs it on the reference interpreter with threads and barriers that are real; raises where it is refused, races, or computes something else than the function. The function itself runs once for calls in a row with one seed.
ms.interpret_samples(func: msched.function, seed: integer, samples: integer, ...: msched.array|number) | What so many elements of each output need, on the reference interpreter, and little else.
ms.limited(kind: string, part: table, ...: any): boolean, any | true and what part.apply(...) gives; false, the code and the message where an instruction in it was refused. It is stopped when it is late; any other error names the part and its place, and is raised, or given with the code `skipped` where such parts are.
ms.memoized(f: function): function | f, a function of a schedule and of numbers, texts and handles, which gives such values and decides by them and by what the schedule answers alone: where a shipped postprocessor calls it, its effects are memoized.
ms.defined(f: function): function | The function itself where f loads it when it is first called, else f: what ?? names the place of.
ms.code_of(message: any): string? | The code of the instruction's refusal that pcall gave as this message; nil: it is a mistake in the script.
ms.interruptible(f: function, ...: any): boolean, any | As pcall, but an interrupt ends it.
ms.within(seconds: number, f: function, ...: any): boolean?, any | As ms.interruptible, with a time limit that also ends loops in C: then nil and a message.
ms.policy_within(own: number, most: number, f: function, ...: any): (boolean|string)?, any | As ms.within with `most` seconds, and of what the call takes itself it has `own`: not while the process is stopped or waits for a processor. Where these are over, "own" and a message.
ms.rule_timeout(seconds: number) | Sets how long a rule, a postprocessor or a mutator may run.
ms.skip_failing(whether: boolean) | Whether a rule, postprocessor or mutator that fails counts as refused, with the code `skipped`, in place of an error.
ms.skips_failing(): boolean | Whether it does.
ms.sandbox(options: {files: (string|{path: string, text: string})[], target?: string, timeout?: number, passes?: boolean}): msched.sandbox | A state of its own for the rules of files, or with `passes` for passes over networks, which they cannot get out of.
ms.sources(paths: string[]): {path: string, text: string}[] | Files, read now: sandboxes and pools that are made later load the contents of now.
ms.features(sch: msched.schedule): msched.features | A candidate's features, as cost models see them.
ms.pool(func: msched.function, options: table): msched.pool | Replay workers, for policies.
ms.divisors(extent: integer): integer[] | The divisors of an extent, ascending, as far as its prime factors are below 2^20: what a perfect tile may have.
ms.stream(seed: integer, candidate?: integer, draw?: integer, attempt?: integer): msched.stream | Numbers that depend on these alone, for policies.
ms.model(model: string|{name: string, update: function, predict: function, required?: boolean}, seed?: integer, by_rank?: boolean): msched.model|table | A cost model: xgboost or random. by_rank: samples count by their rank among those of their `task`, not by their times. Given a table: registers one of yours, and gives the table back; update(self, samples) learns from candidates that have features and seconds, predict(self, candidates) gives a score for each, the higher the better. Where it fails, the search goes on without it, or stops if it is `required`.
ms.load_model(path: string, seed?: integer): msched.model?, string? | An xgboost model that starts from what model:save wrote; nil and why, where it is of another version, of other features or damaged.
ms.estimate(func: msched.function, trace: msched.trace, machine: table): number, string | The cycles, as estimated, of a trace with all its decisions, and a name that candidates with the same innermost loops share. machine: as for `ms.estimator`.
ms.proposals(func: msched.function, machine: table, jobs: table, threads: integer): table | Proposals of many sketches, on so many threads: jobs {trace =, resample =, seed =, candidate =, budget =, most =, each =}; for each a list as `draft:best` gives it, empty where the sketch is refused. The number of threads shows in time only.
ms.estimates(func: msched.function, machine: table, traces: table, threads: integer): table, table | What ms.estimate gives of many traces, on so many threads: their cycles, false where a trace cannot be estimated, and their names.
ms.estimator(func: msched.function, sketch: msched.trace, machine: table): msched.estimator | Estimates of what candidates of a sketch cost. machine: a target's numbers, as `search/cost/analytical.lua` makes them.
ms.measurer(options: table): msched.measurer | Builds and times candidates of the functions that it is given, in processes of their own.
ms.feature_names(): string[] | The names of a candidate's features.
ms.clock(): number | Seconds of a steady clock.
ms.interrupted(): boolean | Whether the user asked to stop, or the time of the ms.within around it is over.
ms.record_fault(record): string? | Why a store keeps no record of such `status`, `seconds`, `low`, `high`, `runs`, `device`; nil: it would.
ms.stamp(): string? | What tells this program, with its rules and estimates, from any other: proposals of another are made again. nil: nothing does.
ms.versions(): string | The versions of what generates code.
ms.vendors(threads: integer, onednn?: string): msched.vendor[] | The vendors' libraries that are installed, for the benchmarks; oneDNN's at the path, where one is given.
ms.device_vendors(target: string): msched.vendor[], string[] | The vendors' libraries that are installed for the GPU that runs the target's code: cuBLAS, cuBLASLt and cuDNN, found by their names or by MSCHED_LIBCUBLAS, MSCHED_LIBCUBLASLT and MSCHED_LIBCUDNN; none for a CPU. And why others are not used.
ms.redis(host: string, port: string, seconds: number, patient?: boolean): msched.redis?, string? | A connection to a Redis server; nil and why there is none. patient: an interrupt does not end it.
ms.worker(name: string): msched.worker? | A process that runs a file of ours, as `lua.vendor.worker`, asked line by line, so that what it opens may crash; nil where the program is not beside this code.
ms.sequence(steps: table[]): msched.sequence | Kernels of one GPU in order, whose arrays stay there: a step is {kernel, its arguments...}, or {from, to}, a copy. Arrays that share memory, as views of one, share it there too.
ms.in_order(calls: table): msched.call | A call of kernels that runs them one after another, as a network's are: those of the host within one run, which ends where one faults or is stopped. Where a list of lists stands in the place of a call, these run side by side, the calls of each on one thread: none of them reads or writes what another writes.
ms.alternating(calls: msched.call[]): msched.call | A call that runs the next of these each time, and the first again after the last, as of one kernel on copies of its arrays, which lie in no cache by then.
ms.time_in_turn(calls: msched.call[], seconds: number): table[] | Times of calls, so many seconds of each, in turn: {seconds, low, high, runs, busy} each; of a GPU also clock (hertz of its processors meanwhile), raw_seconds (where slices were scaled to the clock of the first) and by_launches (no CUDA graph of it could be captured).
te.placeholder(shape: integer[], type?: string, name?: string): msched.tensor | An input.
te.compute(shape: integer[], f: fun(...: msched.expression): msched.expression, name?: string, axes?: string[]): msched.tensor | A tensor whose elements are f of their indices; f may give a list: several tensors of one shape. axes: names of the loops.
te.func(name: string, tensors: msched.tensor[], options?: {weights?: string[]}): msched.function | The function whose parameters are the tensors, in this order; `weights` names those that are constant (ms.with_weights).
te.reduce_axis(range: integer|integer[], name?: string): msched.axis | An axis that is reduced over: its extent, or {first, last + 1}.
te.sum(x: msched.expression, axes: msched.axis|msched.axis[]): msched.expression | The sum over axes.
te.prod(x: msched.expression, axes: msched.axis|msched.axis[]): msched.expression | The product over axes.
te.max(x: msched.expression|number, axes: msched.axis|msched.axis[]|msched.expression|number, ...: msched.expression|number): msched.expression | The largest over axes; of values, where these stand in place of the axes.
te.min(x: msched.expression|number, axes: msched.axis|msched.axis[]|msched.expression|number, ...: msched.expression|number): msched.expression | The smallest over axes; of values, where these stand in place of the axes.
te.argmax(pair: msched.expression[], axes: msched.axis|msched.axis[]): msched.expression | Of {index, value}: both, at the largest value.
te.argmin(pair: msched.expression[], axes: msched.axis|msched.axis[]): msched.expression | Of {index, value}: both, at the smallest value.
te.reducer(combine: function, identity: function, name?: string): function | A reduction of one's own, used as te.sum is.
te.if_then_else(condition: msched.expression, a: msched.expression|number, b: msched.expression|number): msched.expression | Only the branch taken is computed: it may guard an access.
te.select(condition: msched.expression, a: msched.expression|number, b: msched.expression|number): msched.expression | Both are computed, one is taken.
te.lt(a: msched.expression|number, b: msched.expression|number): msched.expression | a < b.
te.le(a: msched.expression|number, b: msched.expression|number): msched.expression | a <= b.
te.gt(a: msched.expression|number, b: msched.expression|number): msched.expression | a > b.
te.ge(a: msched.expression|number, b: msched.expression|number): msched.expression | a >= b.
te.eq(a: msched.expression|number, b: msched.expression|number): msched.expression | a == b.
te.ne(a: msched.expression|number, b: msched.expression|number): msched.expression | a ~= b.
te.all(...: msched.expression): msched.expression | Whether all conditions hold.
te.any(...: msched.expression): msched.expression | Whether one of the conditions holds.
te.not_(x: msched.expression): msched.expression | The opposite of a condition.
te.maximum(a: msched.expression|number, b: msched.expression|number): msched.expression | The larger of two values.
te.minimum(a: msched.expression|number, b: msched.expression|number): msched.expression | The smaller of two values.
te.floordiv(a: msched.expression|integer, b: msched.expression|integer): msched.expression | Division rounded down, as a // b.
te.floormod(a: msched.expression|integer, b: msched.expression|integer): msched.expression | Its remainder, as a % b.
te.cast(x: msched.expression|number, type: string): msched.expression | x as another type.
te.const(value: number, type?: string): msched.expression | A constant.
te.min_value(type: string): msched.expression | The smallest finite value of a type.
te.max_value(type: string): msched.expression | The largest finite value of a type.
te.is_tensor(x: any): boolean | Whether x is a tensor.
te.is_name(x: any): boolean | Whether x can be the name of a tensor or an axis: letters, digits and _, no digit first.
te.call(name: string, type: string, ...: msched.expression|number): msched.expression | A call, of this type, of a function that TVMScript knows by name, as te.call("fmod", "float32", x, y).
te.pow(a: msched.expression|number, b: msched.expression|number): msched.expression | a to the power of b.
te.abs(x: msched.expression): msched.expression | The absolute value.
ops.func(name: string, arguments?: table): msched.function | The function of an operator that is named, as ops:NAME on the command line: ops.func("conv2d", {1, 56, 56, 64, 64, 3, stride = 2}).
ops.suite(name: string, words?: string[]): msched.function[] | The functions of a suite, as suite:NAME on the command line; of those that words choose: codes, names, batch=N.
ops.conv1d(X: msched.tensor, W: msched.tensor, options?: {stride?: integer|integer[], pad?: integer|table, dilation?: integer|integer[], groups?: integer, layout?: string, accumulate?: string, name?: string}): msched.tensor | (n, l, ci) with (kernel, ci / groups, co); layout NCL: (n, ci, l) with (co, ci / groups, kernel).
ops.conv2d(X: msched.tensor, W: msched.tensor, options?: {stride?: integer|integer[], pad?: integer|table, dilation?: integer|integer[], groups?: integer, layout?: string, accumulate?: string, name?: string}): msched.tensor | (n, h, w, ci) with (kernel, kernel, ci / groups, co); layout NCHW: (n, ci, h, w) with (co, ci / groups, kernel, kernel). accumulate: the type of the sums, and of the result.
ops.conv3d(X: msched.tensor, W: msched.tensor, options?: {stride?: integer|integer[], pad?: integer|table, dilation?: integer|integer[], groups?: integer, layout?: string, accumulate?: string, name?: string}): msched.tensor | (n, d, h, w, ci) with (kernel, kernel, kernel, ci / groups, co); layout NCDHW: channels first, as in conv2d.
ops.depthwise_conv2d(X: msched.tensor, W: msched.tensor, options?: {stride?: integer|integer[], pad?: integer|table, dilation?: integer|integer[], layout?: string, accumulate?: string, name?: string}): msched.tensor | Each channel by itself: (n, h, w, c) with (kernel, kernel, c); layout NCHW: (n, c, h, w) with (c, kernel, kernel).
ops.conv2d_transpose(X: msched.tensor, W: msched.tensor, options?: {stride?: integer|integer[], pad?: integer|integer[], output_pad?: integer|integer[], layout?: string, accumulate?: string, name?: string}): msched.tensor | The transposed convolution; shapes as those of conv2d.
ops.conv2d_capsule(X: msched.tensor, W: msched.tensor, options?: {stride?: integer|integer[], pad?: integer|table, accumulate?: string, name?: string}): msched.tensor | Of matrices: (n, h, w, i, k, ci) with (kernel, kernel, k, j, ci, co) -> (n, h, w, i, j, co).
ops.matmul(A: msched.tensor, B: msched.tensor, options?: {transpose_a?: boolean, transpose_b?: boolean, accumulate?: string, name?: string}): msched.tensor | (m, k) x (k, n) -> (m, n); transpose_a: A is (k, m); accumulate: the type of the sums, int32 for short integers, float32 for short floats.
ops.batch_matmul(A: msched.tensor, B: msched.tensor, options?: {transpose_a?: boolean, transpose_b?: boolean, group?: integer, accumulate?: string, name?: string}): msched.tensor | The same of each matrix of a batch, whose dimensions come first.
ops.dense(X: msched.tensor, W: msched.tensor, options?: {bias?: msched.tensor, accumulate?: string, name?: string}): msched.tensor | (m, ci) with weights (co, ci) -> (m, co), and the bias added.
ops.max_pool(X: msched.tensor, options?: {kernel?: integer|integer[], stride?: integer|integer[], pad?: integer|table, layout?: string, name?: string}): msched.tensor | The largest in each window of an image of 1, 2 or 3 spatial dimensions; kernel 2, stride as the kernel.
ops.avg_pool(X: msched.tensor, options?: {kernel?: integer|integer[], stride?: integer|integer[], pad?: integer|table, layout?: string, name?: string, include_pad?: boolean}): msched.tensor | The mean of each window; of elements of the image alone unless include_pad.
ops.sum(X: msched.tensor, axes?: integer|integer[], options?: {keepdims?: boolean, name?: string}): msched.tensor | The sum over dimensions, counted from 1, or from the end with -1 the last; over all without axes.
ops.prod(X: msched.tensor, axes?: integer|integer[], options?: {keepdims?: boolean, name?: string}): msched.tensor | The product over dimensions.
ops.max(X: msched.tensor, axes?: integer|integer[], options?: {keepdims?: boolean, name?: string}): msched.tensor | The largest over dimensions; of two tensors, ops.maximum.
ops.min(X: msched.tensor, axes?: integer|integer[], options?: {keepdims?: boolean, name?: string}): msched.tensor | The smallest over dimensions.
ops.mean(X: msched.tensor, axes?: integer|integer[], options?: {keepdims?: boolean, name?: string}): msched.tensor | The mean over dimensions.
ops.norm(X: msched.tensor, axes?: integer|integer[], options?: {keepdims?: boolean, name?: string}): msched.tensor | The Euclidean norm over dimensions: the square root of the sum of squares.
ops.argmax(X: msched.tensor, axis?: integer, options?: {keepdims?: boolean, name?: string}): msched.tensor, msched.tensor | The index of the largest along a dimension, the first of equal ones, and that element.
ops.argmin(X: msched.tensor, axis?: integer, options?: {keepdims?: boolean, name?: string}): msched.tensor, msched.tensor | The index of the smallest along a dimension, the first of equal ones, and that element.
ops.softmax(X: msched.tensor, axis?: integer, name?: string): msched.tensor | Along a dimension, the last unless it is given.
ops.layer_norm(X: msched.tensor, gamma: msched.tensor, beta: msched.tensor, options?: {epsilon?: number, name?: string}): msched.tensor | Normalized over the last dimensions, those that gamma and beta have.
ops.rms_norm(X: msched.tensor, gamma: msched.tensor, options?: {epsilon?: number, name?: string}): msched.tensor | Over the root of the mean square of the last dimensions, those that gamma has, times gamma.
ops.rotary(X: msched.tensor, cos: msched.tensor, sin: msched.tensor, options?: {turned?: integer, interleaved?: boolean, name?: string}): msched.tensor | Rotary embedding: pairs of elements of (batch…, rows, d) are turned by an angle of their row, of which cos and sin of (rows, turned / 2) are given. A pair is an element of either half of the first `turned`, all unless it is given, or, where interleaved, two neighbours.
ops.batch_norm(X: msched.tensor, gamma: msched.tensor, beta: msched.tensor, mean: msched.tensor, variance: msched.tensor, options?: {axis?: integer, epsilon?: number, name?: string}): msched.tensor | Normalized along a dimension by a mean and a variance that are given.
ops.attention(Q: msched.tensor, K: msched.tensor, V: msched.tensor, options?: {scale?: number, causal?: boolean, mask?: msched.tensor, lengths?: msched.tensor, q_scale?: msched.tensor, k_scale?: msched.tensor, v_scale?: msched.tensor, dtype?: string, name?: string}): msched.tensor | softmax(Q K^T x scale + mask) V of a batch of matrices. causal: row i sees columns up to i alone; lengths: of each of the first dimension, how many columns there are; mask: floats that are added to the scores, with their last extents or 1. K and V may have fewer heads, the dimension before rows: each is for as many of Q in a row. q_scale, k_scale, v_scale: float32, what elements are multiplied with, of shape {1} or one for each matrix. dtype: of the result; that of Q, or float16 where Q has 8 bits.
ops.map(X: msched.tensor, f: fun(x: msched.expression, ...: msched.expression): msched.expression, name?: string): msched.tensor | f of each element, and of its indices.
ops.relu(X: msched.tensor, name?: string): msched.tensor | The larger of each element and 0.
ops.gelu(X: msched.tensor, name?: string): msched.tensor | x times the normal distribution at x, by erf.
ops.silu(X: msched.tensor, name?: string): msched.tensor | x times its sigmoid.
ops.sigmoid(X: msched.tensor, name?: string): msched.tensor | 1 / (1 + exp(-x)).
ops.tanh(X: msched.tensor, name?: string): msched.tensor | The hyperbolic tangent.
ops.exp(X: msched.tensor, name?: string): msched.tensor | The exponential.
ops.log(X: msched.tensor, name?: string): msched.tensor | The natural logarithm.
ops.sqrt(X: msched.tensor, name?: string): msched.tensor | The square root.
ops.rsqrt(X: msched.tensor, name?: string): msched.tensor | 1 over the square root.
ops.erf(X: msched.tensor, name?: string): msched.tensor | The error function.
ops.abs(X: msched.tensor, name?: string): msched.tensor | The absolute value.
ops.negative(X: msched.tensor, name?: string): msched.tensor | -x.
ops.floor(X: msched.tensor, name?: string): msched.tensor | Rounded down.
ops.ceil(X: msched.tensor, name?: string): msched.tensor | Rounded up.
ops.round(X: msched.tensor, name?: string): msched.tensor | Rounded to the nearest.
ops.leaky_relu(X: msched.tensor, alpha?: number, name?: string): msched.tensor | x, or alpha times x where that is below 0.
ops.quantize(X: msched.tensor, scale: number|msched.tensor, options?: {zero_point?: integer|msched.tensor, type?: string, axis?: integer, name?: string}): msched.tensor | Real numbers as int8 or uint8: over the scale, rounded, plus the zero point, clamped; a scale or zero point is one, or one for each channel of an axis (the last).
ops.dequantize(X: msched.tensor, scale: number|msched.tensor, options?: {zero_point?: integer|msched.tensor, axis?: integer, name?: string}): msched.tensor | Bytes as the real numbers that they stand for, float32: scale * (X - zero_point).
ops.requantize(X: msched.tensor, scale: number|msched.tensor, options?: {zero_point?: integer|msched.tensor, type?: string, axis?: integer, name?: string}): msched.tensor | Sums of int32 as bytes; scale: that of the sums over that of the bytes.
ops.quantized_add(A: msched.tensor, B: msched.tensor, options?: {a_scale?: number, b_scale?: number, scale?: number, a_zero_point?: integer, b_zero_point?: integer, zero_point?: integer, name?: string}): msched.tensor | The sum of two tensors of bytes of one type and shape, in the same type.
ops.quantized_dense(X: msched.tensor, W: msched.tensor, scale: number|msched.tensor, options?: {bias?: msched.tensor, x_zero_point?: integer, w_zero_point?: integer|msched.tensor, zero_point?: integer, type?: string, name?: string}): msched.tensor | (m, ci) x (co, ci) -> (m, co) of bytes: products added in int32, plus a bias of int32, times a scale, as in requantize. A w_zero_point that is a tensor has one for each channel.
ops.quantized_batch_matmul(X: msched.tensor, W: msched.tensor, scale: number|msched.tensor, options?: {bias?: msched.tensor, x_zero_point?: integer, w_zero_point?: integer|msched.tensor, zero_point?: integer, type?: string, transpose_b?: boolean, name?: string}): msched.tensor | (b, m, k) x (b, k, n) -> (b, m, n) of bytes, as quantized_dense; transpose_b: W is (b, n, k).
ops.quantized_conv2d(X: msched.tensor, W: msched.tensor, scale: number|msched.tensor, options?: {bias?: msched.tensor, x_zero_point?: integer, w_zero_point?: integer|msched.tensor, zero_point?: integer, type?: string, stride?: integer|integer[], pad?: integer|table, dilation?: integer|integer[], groups?: integer, layout?: string, name?: string}): msched.tensor | conv2d of bytes, as quantized_dense; around the image is x_zero_point.
ops.quantized_depthwise_conv2d(X: msched.tensor, W: msched.tensor, scale: number|msched.tensor, options?: {bias?: msched.tensor, x_zero_point?: integer, w_zero_point?: integer|msched.tensor, zero_point?: integer, type?: string, stride?: integer|integer[], pad?: integer|table, dilation?: integer|integer[], layout?: string, name?: string}): msched.tensor | depthwise_conv2d of bytes, as quantized_conv2d.
ops.quantized_avg_pool(X: msched.tensor, options?: {kernel?: integer|integer[], stride?: integer|integer[], pad?: integer|table, layout?: string, zero_point?: integer, name?: string}): msched.tensor | The mean of each window of bytes, rounded, of the same scale and zero point; zero points around the image count.
ops.dense_nbits(X: msched.tensor, W: msched.tensor, scale: msched.tensor, options?: {bits?: integer, zero_points?: msched.tensor, bias?: msched.tensor, products?: string, order?: string, name?: string}): msched.tensor | (m, k) x weights of 4 or 8 bits, uint8 of (n, groups, bytes) with a scale of (n, groups) -> (m, n) of float32; as MatMulNBits of onnxruntime. products: "int8" rounds each group of X to int8; "int24" to integers of 24 bits, as exact as float32's sums, which are three products of bytes each; "bfloat16" multiplies rows of bfloat16 by weights that are scaled, and rounded to bfloat16, first, by AMX where there are tiles. order: "halves" has the first half of a group in the lower bits of its bytes and the second half in the upper ones, as q4_0 of llama.cpp.
ops.cast(X: msched.tensor, type: string, name?: string): msched.tensor | Each element as another type.
ops.add(A: msched.tensor, B: msched.tensor|number, name?: string): msched.tensor | Sums of elements; shapes are aligned at their ends, and an extent of 1 is repeated.
ops.subtract(A: msched.tensor, B: msched.tensor|number, name?: string): msched.tensor | Differences, broadcast.
ops.multiply(A: msched.tensor, B: msched.tensor|number, name?: string): msched.tensor | Products of elements, broadcast.
ops.divide(A: msched.tensor, B: msched.tensor|number, name?: string): msched.tensor | Quotients of floats, broadcast.
ops.maximum(A: msched.tensor, B: msched.tensor|number, name?: string): msched.tensor | The larger of two, broadcast.
ops.minimum(A: msched.tensor, B: msched.tensor|number, name?: string): msched.tensor | The smaller of two, broadcast.
ops.power(A: msched.tensor, B: msched.tensor|number, name?: string): msched.tensor | A to the power of B, broadcast.
ops.broadcast_to(X: msched.tensor, shape: integer[], name?: string): msched.tensor | Repeated to a larger shape.
ops.bias_add(X: msched.tensor, bias: msched.tensor, name?: string, axis?: integer): msched.tensor | Adds a bias along a dimension, the last unless it is given.
ops.scale_shift(X: msched.tensor, scale: msched.tensor, shift: msched.tensor, name?: string, axis?: integer): msched.tensor | Scales and shifts along a dimension.
ops.transpose(X: msched.tensor, order?: integer[], name?: string): msched.tensor | Dimension d of the result is dimension order[d] of X; reversed without an order.
ops.reshape(X: msched.tensor, shape: integer[], name?: string): msched.tensor | The same elements in the same order; one extent may be -1, for what is left.
ops.concat(tensors: msched.tensor[], axis?: integer, name?: string): msched.tensor | One after another along a dimension, the last unless it is given.
ops.pad(X: msched.tensor, before: integer|integer[], after: integer|integer[], options?: {value?: number, name?: string}): msched.tensor | So many elements of a value, 0, before and after each dimension.
ops.gather(X: msched.tensor, I: msched.tensor, axis?: integer, name?: string): msched.tensor | Slices of X along a dimension, the first, that integers name; one that is no index is taken for the nearest.
function:script(options?: {colour?: boolean}): string | Its module as TVMScript.
function:name(): string | Its name.
function:hash(): string | Its structural hash.
function:params(): table[] | Its parameters: a list of {name, type, shape, elements}; elements are those of its memory, where strides or an offset lay it out: it is called with an array of one dimension and as many.
function:symbolic(): table[], string | The variables of its parameters' shapes, strides and offsets that no parameter gives: a list of {name, type, role, buffer}; and a text that names them and says what to do.
function:packing(): table? | What is packed ahead of its runs: {kernel =, pack =, of_kernel =, of_pack =, count =}, two functions, and what their parameters are, numbers from 1 of this function's, or -k, the k-th packed buffer. nil: nothing is.
function:in_place(input: integer, output: integer): msched.function?, string? | The function whose result, the parameter of that number, takes the place of an input: they are one parameter, where the input's was. nil, and why: an element might be read after it was written.
function:has_empty(): boolean | Whether an extent of it is 0: it is run, built and exported as it is; ms.without_empty gives what can be scheduled and tuned of it.
function:flops(): number | Operations on floats that it does, inits aside; 0 where extents are no constants.
function:integer_ops(): number | Operations on integers that are of what it loads; indices aside.
function:work(): table | What it does and moves, however it is scheduled: {operations = {float32 = n, …}, floats, integers, read_bytes, written_bytes}. Products that are added to longer sums are of kinds of their own ("int8 products"); conversions, choices and what makes indices count as nothing. Bytes are of parameters, each element once.
function:loads(): integer[] | Of each parameter, in order, how often a load of its elements stands in the function's statements; 0 of a number.
function:escape(): table? | A load that can leave its buffer: {block, buffer, nth, dimension, low, high, extent}; nil if there is none.
function:extract(blocks: string[], name: string, names?: string[]): msched.function | The loop nests of these blocks as a function of this name: what they read of others, and then what they give to others, are its parameters. names: of the blocks there.
schedule:func(): msched.function | The scheduled function as it is now.
schedule:copy(): msched.schedule | A copy, independent of it, whose draws go on with the same seed; schedule:handle gives its handles.
schedule:handle(other: msched.handle): msched.handle | The same block, loop or number in a copy of the schedule it came from.
schedule:workload(): msched.function | The function as it was.
schedule:trace_length(): integer | How many instructions its trace has.
schedule:keep_point(): integer | A point in its life, whose trace trace_at_point gives whatever is recorded or undone later, until forget_point was called as often.
schedule:trace_at_point(point: integer): msched.trace | The trace that it had at a point.
schedule:forget_point(point?: integer) | Gives up the points kept: all of them once it was called for each. What was only looked up since a point that is given is dropped, and its handles with it.
schedule:check_reduction_order() | Refuses a schedule that does a reduction of floats in another order than the function, naming the block and what may have changed it.
schedule:hash(): string | The structural hash of the module as it is now.
schedule:script(options?: {colour?: boolean}): string | The module as TVMScript.
schedule:build(options?: {target?: string, fast_math?: boolean}): msched.kernel | Builds the scheduled function; the kernel's check compares it with the workload.
schedule:try(instruction: string, ...: any): boolean, any | As the instruction's method with the other arguments: true and what it gives, or false where the schedule refuses it, and is as it was. A mistake in the call is raised.
schedule:undo(count?: integer) | Takes back the last instructions, one if no number is given.
schedule:redo(count?: integer) | Does again what the last undo took back, or the last so many; refused where other instructions came after it. Handles of them stand for something again.
schedule:explain(n?: integer) | Prints what the instruction numbered n from 0, or each, did and what builds on it.
schedule:split_factor(loop: msched.handle): msched.handle|integer|nil | What a split made a loop by: the handle of a number that was drawn, or a number.
schedule:save(path: string) | Writes its trace; the suffix is the form: .json (TVM's layout), .lua, .trace (the store's). ms.load_trace reads it.
schedule:draw(): string | Its loop nest as a picture in text, with the bytes that one run of each loop touches and the nearest place that holds as many.
schedule:assert(condition: string|function, ...: any) | Refuses unless a condition over drawn numbers holds: a text and a table of the handles that it names, or a function and its handles.
schedule:if_(condition: string|function, ...: any) | What the first function does with the schedule holds where the condition does, what the second does elsewhere; the condition as assert takes it. Without functions, up to else_ or end_.
schedule:for_(count: integer|msched.handle, body?: fun(sch: msched.schedule, iteration: msched.handle)): msched.handle? | Does so many times what body does; without it, what follows up to end_, and gives the number of the iteration.
handle:name(): string | What conditions and the trace call it.
handle:value(): integer? | The number drawn; nil of a block or loop.
trace:text(): string | As a Lua chunk.
trace:json(): string | As JSON, in TVM's layout.
trace:binary(): string | In the compact form that the store holds.
trace:draws(): msched.draw[] | Its draws: a list of {index, kind, draw, attrs, annotates, binds, decision}; `draw` explains these.
trace:draw(index: integer): msched.draw? | One of them, by its instruction's number from 0; nil of another instruction.
trace:changeable(kind: string, note?: string): integer[] | The draws of a kind that are decided and could be decided otherwise, by index; note: with that in the key of the annotation, or the thread axis, that the number is for.
trace:simplified(postprocessing?: boolean): msched.trace | Without look-ups and draws that nothing uses, and without the postprocessing part unless it is asked for.
trace:head(n: integer): msched.trace | Its first n instructions.
trace:part(first: integer, last: integer): msched.trace? | Instructions `first` up to `last`, which is not among them, numbered from 0; nil where they take what was given before.
trace:has_at(n: integer, part: msched.trace): boolean | Whether the instructions from number n on begin with those of the part, whatever was decided.
trace:undecided(): msched.trace | A copy with every draw open.
trace:uses(index: integer): integer[] | The instructions whose results the instruction at index takes, numbered from 0.
trace:with_decision(index: integer, values: integer[]): msched.trace | A copy with one decision changed; index as in draws.
trace:mutate(seed?: integer, options?: {mutator?: string, other?: msched.trace, target?: string}): msched.trace?, string? | Another trace, as the search makes them, and the name of its mutator: the one named, or a random one by weight that finds something to change; nil: there is nothing. other: the trace from which crossover takes decisions. It has no postprocessing: ms.pool(f, {}):replay {{trace = t}} repeats that.
array:shape(): integer[] | Its extents.
array:type(): string | Its elements' type.
array:save(path: string) | Writes a file of NumPy's format .npy, which numpy.load reads.
array:bytes(): string | The bytes of its elements, in their order.
array:reshape(shape: integer[]): msched.array | A copy with as many elements in other extents.
array:view(shape: integer[], type?: string, offset?: integer): msched.array | An array whose elements are this one's bytes from an offset on, a multiple of 64; it keeps this one alive.
array:assign(other: msched.array): msched.array | Takes the elements of another of the same type and as many; gives the array.
array:same_bytes(other: msched.array): boolean | Whether its elements are those of another array, bit for bit.
array:checksum(before?: integer): integer | A checksum of its bytes, filled with zeros to a multiple of 64: FNV-1a over words of 64 bits, behind that of others.
array:tolist(): number[] | Its elements as a flat list.
array:random(seed?: integer, digits?: boolean): msched.array | Fills it with integers from -4 to 4, or with numbers that use all digits of their type: floats of either sign from 1/8 to 1, integers of eight bits; gives the array.
array:difference(other: msched.array): number, integer, number | The largest difference of two arrays' elements; of how many elements; and the root of the mean of its squares.
network:check(): msched.network | That it is whole: every value is given once, by an input, a constant or a node, and no node waits for itself; brings the nodes into an order that can be run. All that is wrong is named at once.
network:giver(name: string): table? | The node that gives a value; nil: an input or a constant does.
network:readers(name: string): table[] | The nodes that read a value.
network:links(): {giver: (fun(links: table, name: string): table?), readers: (fun(links: table, name: string): table[])} | All givers and readers of values, found once, for a pass that asks for many. links:remove(node) before a node changes, links:add(node) behind.
network:operators(): table<string, integer> | How often each operator stands in it.
network:copy(): msched.network | A copy to change; arrays are shared.
network:plan(options?: {@run}): table | The network as calls of kernels: nodes are fused into functions, images have the layouts that cost least, values share memory. Each function has the store's fastest schedule, after a search as ms.tune's, or with `no_tune` without one; `written = true` leaves functions as they are written; `given` are arrays of inputs where shapes depend on what is in them; `passes` are files of passes; `layout` is that of images: auto, last, second or blocked. The plan has run(inputs), which gives the outputs by name, time(seconds), profile(runs), arena_bytes, constant_bytes, tasks, and unopened, the names of functions whose spaces were not open when half of `seconds` was over: on a CPU ms.auto_schedule schedules them.
network:open_extents(): string[] | The extents of its inputs that are names still; ms.onnx gives them numbers by `shapes` and `dims`.
network:static(given?: table<string, msched.array>): table | What every value is before it runs: {values, steps, fixed}; `steps` are {node, func, inputs, outputs}, a function each. `given` are arrays of inputs, whose elements are used where a shape depends on them; `fixed` names these.
network:run(inputs: table<string, msched.array>, options?: {interpret: boolean?, target: string?, most_work: integer?}): table<string, msched.array>, table | Runs it node by node, compiled, or with `interpret` on the interpreter; the outputs by name, and a report. With `most_work`, functions of at most so many operations are interpreted too, others at samples, and compared.
network:text(): string | What it is: a line a value and a node.
kernel:prepare(...: msched.array|number): msched.call | The kernel with its arguments, for ms.time_in_turn.
kernel:run(...: msched.array|number) | Runs it. Ctrl-C ends it, on all its threads; what it writes is undefined then.
kernel:time(...: msched.array|number): number, number, number, integer, boolean | Median seconds, low and high of its 95 % interval, the number of runs, and whether other programs ran whenever it was timed, so that it may be faster. Behind the arguments: seconds of sampling, at most (2).
kernel:check(options?: {seed?: integer, tolerance?: number, samples?: integer}): number, integer | Compares with the unscheduled function on the interpreter, on integers, everywhere or, where that takes long, at so many samples of each output (16); then on real numbers, unless a tolerance (1e-3) is given, and with itself under perturbed thread timing. Gives the largest difference on integers, and the number of elements that the function changed. Raises where they differ by more than the tolerance, or the result depends on thread timing.
kernel:check_timing(seed?: integer, runs?: integer): boolean | Runs it 6 times, or as often as said, on 2, 3 and 8 threads with perturbed timing; raises where results differ; false: this machine cannot run it.
kernel:check_real(func: msched.function, seed?: integer): boolean, string? | Compares with the unscheduled function, built, on real numbers; raises where they differ; false, and why, where they say nothing of it.
kernel:notes(): string[] | What the schedule asks for that the kernel does not do, and why: loops that are not parallel, vectorized, unrolled or bound.
kernel:resources(assembled?: boolean): table[] | The resources of each kernel of a GPU, in the order of launches: name, threads, shared_bytes, dynamic_bytes and local_bytes of its source; estimated_registers, the estimated registers, and estimated_spills, whether a thread is estimated to need more; where assembled is true, also registers, stack_bytes, spill_stores, spill_loads, barriers, serialized and shared_bytes as ptxas reports them. Raises where there is no NVRTC, or a block takes more than the target has.
kernel:export(path: string, name?: string): string, string? | Writes the kernel; the suffix is the form: .o .so .c .h .ll .s, of a GPU's .cu .ptx .cubin, and .c and .h that launch them through the driver's API. Gives what the function is called there: name, or its own name, or the file's where its own cannot be linked, as main, double or expf; then also whose its own name is.
kernel:target(): string | What it is built for.
kernel:passes(): {pass: string, seconds: number}[] | What each pass took that made its code, in order, in seconds of the processor.
kernel:func(): msched.function | The function it was built from.
kernel:reference(): msched.function? | The unscheduled function.
bests:lines(workload: string, target?: string, most: integer, operations: number, unit: string, bytes: number): string? | The lines of `msched top` of a workload, by its id, on a target or on all, whose function does so many operations, of a unit, and moves so many bytes. nil: the records have to be read.
store:path(): string | Its file.
store:workloads(func?: msched.function): table[] | All workloads, {id, name, records}; or those that are this function, whatever its name.
store:tasks(workload?: string): table[] | Summaries of tasks, a workload on a target each, without reading their records: {workload, target, records, measured, censored, failed, unmeasured, last, best, best_key, seconds, pinned, pinned_key, devices}; of a workload, by its id, or of all. last: seconds since 1970; best, pinned: ids of records, or nil.
store:bests(most: integer): msched.bests | The fastest records of each task, at most so many and 16 of each, without reading them.
store:outlines(): table | Of workloads, by their ids, what lists show of their functions without reading them: {arguments, floats, integers, read_bytes, written_bytes}: texts as float32[8, 4], operations, bytes of arguments. What an older version put has none until the store is compacted.
store:refresh() | Counts the records of tasks again where a deletion, or an older store, makes store:tasks read them.
store:get_workload(id: string): msched.function | A workload.
store:put_workload(func: msched.function): string | Adds a workload; gives its id.
store:workload_id(func: msched.function): string | The id that a function has in every store, kept there or not.
store:records(filter?: {workload?: string, target?: string, most?: integer, first?: integer, step?: integer, note?: string}): msched.record[] | Records, fastest first; workload: its id, as store:workloads gives it; most: no more than so many; first, step: the first so many, and every step-th of the others; note: only what lists show of each, with short_id, and noted where its trace has this text. What a record holds: `record`.
store:retime(id: string, times: table) | A record has another time from now on: seconds, low, high, runs, busy; of a device clock and raw_seconds, as ms.time_in_turn has them; of a fleet its worker, and roofline {limit, limit_seconds}.
store:pin(id: string, pinned: boolean) | Whether a record is the one to use of its workload on its target.
store:batch(f: function) | Calls f; what it puts and deletes is written together, also where it raises: any number, in parts, the first of at most 1,000, each of which is kept whole or not at all where the process is killed.
store:fail(id: string, reason: string) | A record counts as failed from now on.
store:find(words: string): msched.record? | The record whose id starts so; or by a task's name, or an operator with its arguments, as "ops:matmul(64,64,64)", the one to use of it, what is pinned or else the fastest; or "best", that of the only task.
store:schedule(words: string): msched.schedule | The schedule of the record that store:find finds, with the tensor intrinsics that it was measured with.
store:take_intrinsics(id: string) | Defines here the tensor intrinsics that a record was measured with.
store:find_module(workload: string, target: string, hash: string): msched.record? | The record of a scheduled module.
store:words(start: string): string[] | What begins so, for completion: names of tasks; of records, by as few digits as name each, the one to use of each task, or from four digits on any.
store:ids(start: string, most?: integer): string[] | The records whose ids start so, by as few digits as name each; start: at least 4 digits; most: no more than so many, 100.
store:short_id(key: string): string | As few digits as name a record.
store:put(record: table): string, string | Adds a record; on disk when it returns. Gives its id, and as few digits as name it.
store:delete(id: string): string | Removes the record whose id starts so, which may be damaged; gives its id.
store:check(): integer | Problems found in records and indexes.
store:compact() | Gives free pages back, and upgrades records that older versions wrote.
store:export(path: string) | Writes all as lines of JSON.
store:export_csv(path: string) | Writes all records, without their traces, as comma-separated values (RFC 4180).
store:backup(path: string): integer | Copies the store to a file that is not there yet, beside processes that write it, and checks the copy; gives the problems of its entries, which the store has too.
store:prune(rule: {workload: string, target: string, keep?: integer, before?: integer, within?: number, device?: string, dry?: boolean}): integer, integer | Deletes the records of a task that all rules given hold of: measured before, seconds since 1970; slower than so many times the best, or not measured; of a device. The `keep` fastest and the pinned ones stay. dry: none is deleted. Gives how many stay, and how many go.
store:export_tuning(folder: string, ids: string[]): integer, integer | Writes TVM's tuning records of these workloads; gives how many, and how many were left out.
store:import(path: string, options?: {workloads?: (msched.function|string)[], target?: string}): integer, integer, string, integer | Adds what an export wrote, or TVM's tuning records of these workloads (a text: why it cannot be read); gives how many were taken, how many lines refused, and why, and how many lines there were that are not blank.
store:merge(other: msched.store): integer, integer, integer, string | Adds what another store has, the later of what both have; gives how many records were new, how many both had, how many were refused, and why, a line each.
store:close() | Closes it.
best:schedule(): msched.schedule | Its schedule.
best:build(options?: {target?: string, fast_math?: boolean}): msched.kernel | Builds it.
best:export(path: string) | Builds it and writes the kernel, as kernel:export does.
pool:add(func: msched.function): integer | A function whose jobs it replays besides; its number, from 1 on: that of the first is 0.
pool:replay(jobs: {trace: msched.trace, task?: integer, seed?: integer, candidate?: integer, resample?: boolean}[], features?: boolean): table[], table[], string? | Candidates, {trace, sketch_trace, hash, features} or false where one was refused; what was refused, a list of {by, code, count, example}; the first error of a script.
pool:costs(): table | What its jobs have cost so far, in seconds of the processor: {jobs, accepted, memoized, replay, postprocess, hash, trace, features}; memoized: postprocessors that were cache hits, without their Lua.
pool:close() | Ends the workers.
features:without(columns: integer[]): msched.features | A copy where these columns, numbered from 1, are 0: nothing can be learned from them.
estimator:size(): number | The number of the sketch's candidates, as far as the model distinguishes them.
estimator:cost(trace: msched.trace): number | The cycles, as estimated, of a trace that differs from the sketch in its decisions only.
estimator:best(options: {seed?: integer, budget?: integer, most?: integer, each?: integer}): {trace: msched.trace, cost: number, tile: string}[] | The cheapest, at most so many and so many of each register tile: of all, or of about `budget` that are drawn and led downhill.
model:update(candidates: table[]) | Learns from candidates that have features, seconds and, where they are of several functions, task, a number of the function. Goes on in the background; the model's next method waits for it.
model:predict(candidates: table[]): number[] | Scores of candidates by their features, the higher the better.
model:save(path: string) | Writes what was learned to a file.
model:has_learned(): boolean | Whether it ranks by what it has learned, and not by chance.
model:successor(seed?: integer): msched.model | A model that starts from what this one has learned.
redis:ask(seconds: number, commands: table, patient?: boolean): table?, string?, string? | The replies to commands, lists of words: strings, integers, lists, false, {error =}; nil, a kind (lost, nonsense, large, interrupted) and why, and the connection is closed.
redis:is_open(): boolean | Whether nothing has ended it yet.
redis:close() | Ends it.
measurer:add(func: msched.function, intrinsics?: string): integer | A function whose candidates are measured; its number, its task. intrinsics: a text of the tensor intrinsics that traces name, in the place of those defined here.
measurer:reference(task: integer): boolean?, string? | Whether what the function computes is known, to compare with; nil: not yet; false and why, where it cannot be run.
measurer:submit(task: integer, id: integer, trace: msched.trace) | Hands a candidate of a task to the builders.
measurer:next(wait?: number): table? | A result, {task, id, hash, outcome, measured, censored, seconds, low, high, runs, reason, …}; nil when none came for so many seconds.
measurer:remeasure(task: integer, traces: table, seconds: number) | Times up to 16 candidates of a task again, in turn, for so many seconds each.
measurer:remeasured(wait?: number): table|boolean? | What came of it: a table for each, as ms.time_in_turn has it, in order; false: one could not be run; nil: not yet.
measurer:waiting(): string? | What its processes wait for that takes longer than a second, as a device on which another process times: once each time; nil: nothing.
measurer:set_best(task: integer, seconds: number) | What slower candidates are stopped by.
measurer:close_task(task: integer) | Gives back the memory of a task's arguments, when all its results were taken: nothing is measured of it any more.
measurer:close() | Ends its processes.
stream:below(bound: integer): integer | The next number, at least 0 and below the bound.
stream:unit(): number | The next number, at least 0 and below 1.
sandbox:sketches(func: msched.function, seed: integer, groups?: table): table | What one walk over the rules makes, with all choices or, where there are groups of blocks, block by block: {states, refused, thinned, left_out, sites}, as rules/space.lua has them.
sandbox:passes(): table[] | A list of {name, after, file}; their numbers count from 1.
sandbox:pass(pass: integer, network: table): table | The nodes and constants that the pass of that number left of a network, which is written as lua/net/plain.lua does.
sandbox:mutators(): table[] | A list of {name, weight}; their numbers count from 1.
sandbox:mutate(mutator: integer, trace: msched.trace, stream: msched.stream, other?: msched.trace): msched.trace?, string?, string? | A trace that the mutator of that number made of it, or nil; the code and message of what was refused in it. By the mutator's name: trace:mutate.
worker:say(line: string): boolean | Sends it a line; false: it has ended.
worker:line(): string?, string? | The next line that it says; nil and how its process ended.
vendor:name(): string | The library's name.
vendor:prepare(work: table): msched.call? | Its routine for what work.lua describes; nil: it has none.
call:run() | Runs it; its result is where its arguments say.
call:rounding(): number | By how much its result is rounded, of the largest element, where a vendor gives it in a shorter type than asked for; else 0.
call:routine(): string | What was taken of a vendor's library, where it has several ways: layout, engine or algorithm; else an empty string.
call:on_device(): boolean | Whether a device runs it, by whose clock it is timed.
sequence:send(...: msched.array) | Copies what arrays of its steps hold to the GPU.
sequence:run() | Runs it on what is there.
sequence:fetch(...: msched.array) | Copies what the GPU has to arrays of its steps.
sequence:time(limit?: number): table | How long a run takes as one CUDA graph, as ms.time_in_turn has it, without copies to the GPU and back; limit: seconds of sampling, at most (2).
sequence:bytes(): integer | Of its arrays on the GPU, and of what its kernels work in.
]]

-- Fields, of values and of tables; a `?` follows the names of those that may be missing.
docs.fields = {
  record = [[
id: string | of the record: 32 digits
key: string | the same as bytes, for store:short_id
workload: string | the id of the function, as bytes, for store:get_workload
target: string | what the kernel was built for
trace: string | in the compact form, for ms.read_trace
hash: string | of the scheduled module, 16 digits
status: string | measured; censored: stopped, being certain to lose; failed; unmeasured: chosen by estimate, and not run
seconds: number | the median of its runs; of one that was stopped, what it had taken at least; 0 where nothing was timed
low: number | the least that the median may be, with 95 % confidence
high: number | the most
runs: integer | how many were timed
reason: string | of a failure, or ""
versions: string | of msched and LLVM that built it
seed: integer | of the run of the search
candidate: integer | its number in that run
when: integer | seconds since 1970, as os.date takes them
has_intrinsics: boolean | whether the trace names tensor intrinsics of the user's
unsafe: boolean | whether the trace may change what is computed
busy: boolean | whether other programs ran whenever it was timed: it may be faster
pinned: boolean | whether it is the one to use of its workload on its target
device?: table | of a GPU, as far as it was known when it was measured: name, driver (13000 is CUDA 13.0), clock and memory_clock (hertz, right after it), slowed (heat or power held them down), timing_clock (hertz of the processors while it was timed), raw_seconds (what was measured, where `seconds` is scaled from that clock to the one that the run began with), uncaptured (why no CUDA graph of it could be captured, so that launches are part of its time), others (other processes that had the device then), others_bytes (of its memory that they had), memory_left (bytes, where others had the device or little was left); of its code kernels, and the most that any takes: threads, registers, spilled_bytes, stack_bytes, shared_bytes
search?: table | of one that a search had measured, in seconds since the run began: when it was asked for, asked, and its result came, came; and what building took, build_seconds, and checking and timing, run_seconds; of one that was proposed without tuning proposer, by which program and rules, and of which seed; of a fleet worker, who measured it, and batch, how many candidates its iteration asked for
roofline?: table | of one that a search had measured that knew the function's limit on the machine: limit, the unit or level of memory that bounds it, and limit_seconds, what it takes there at least
]],
  draw = [[
index: integer | the number of its instruction, from 0, for trace:with_decision
kind: string | SampleCategorical, SamplePerfectTile, …
draw: integer | its own number, from 0
attrs: any[] | the instruction's attributes: of SampleCategorical the candidates and their chances
annotates?: string | the key of the annotation that the number becomes the value of, or is in the value of
binds?: string | the thread axis that the loop is bound to which the number is the extent of
decision?: integer[] | what was decided, a number each result, of SampleCategorical the candidate's place from 0; nil while it is open
]],
  best = [[
func: msched.function | what was tuned
target: string | what it was tuned for
trace: msched.trace | the fastest schedule's
seconds?: number | the median of its runs; nil where nothing was measured
id?: string | the record's, as few digits as name it; nil where nothing was measured
interrupted?: boolean | in the session: whether Ctrl-C ended the run
]],
  schedule = [[
trace: msched.trace | a copy of its trace
]],
}

for _, f in ipairs(ms.te_functions) do
  local doc = f.doc:gsub("^the ", "The ")
  TEXT = TEXT .. string.format("te.%s(x: msched.expression): msched.expression | %s.\n", f.name, doc)
end

-- Appends what the lines of a text say to a list.
local function read_lines(text, list)
  for line in text:gmatch "[^\n]+" do
    local head, doc = line:match "^(.-) | (.*)$"
    local owner, mark, name, args, gives = head:match "^(%a+)([.:])([%w_]+)(%b()):? ?(.*)$"
    list[#list + 1] = {owner = owner, mark = mark, name = name, args = args, gives = gives ~= "" and gives or nil,
                       doc = doc}
  end
end
read_lines(TEXT:gsub("@run", function() return run_options.fields_text() end), docs.list)

-- Members that are no function, or serve the files of msched itself.
docs.others = {ms = "te ops rest map heuristics te_functions outcomes function_formats registered schedule_methods \z
                     kernel_methods intrinsics_text",
               schedule = "trace"}

local EXPRESSION = getmetatable(ms.te.const(1))
function docs.is_expression(x) return type(x) == "table" and rawequal(getmetatable(x), EXPRESSION) end

-- The member itself, where it can be got at; methods(type) gives a type's table of methods.
function docs.value(d, methods)
  local owner = d.owner == "ms" and ms or (d.owner == "te" or d.owner == "ops") and ms[d.owner] or methods(d.owner)
  return owner and rawget(owner, d.name)
end

-- name, type and doc of each field of a type.
local function fields_of(owner) return (docs.fields[owner or ""] or ""):gmatch "([%w_?]+): (%S+) | ([^\n]*)" end

-- Calls f with the name and the type of each field of a type.
function docs.each_field(owner, f)
  for name, type in fields_of(owner) do f(name:match "[%w_]+", type) end
end

-- ---- Help --------------------------------------------------------------------------------------------------------

-- One member, and all of an owner, as lines given to `put`.
function docs.explain_member(d, put)
  put(d.owner .. d.mark .. d.name .. d.args .. (d.gives and "  ->  " .. d.gives or ""))
  put("  " .. d.doc)
  if d.owner .. d.mark .. d.name ~= "ms.tune" then return end
  put "\nOptions, and what holds without them:"
  for _, o in ipairs(run_options.list) do
    put(string.format("  %-18s %-18s %s%s", o.field, o.type, o.doc,
                      o.standard ~= "" and " (" .. o.standard .. ")" or ""))
  end
end
function docs.explain_owner(owner, put)
  put(docs.about[owner])
  for name, type, doc in fields_of(owner) do put(string.format("  .%-16s %-10s %s", name, type, doc)) end
  for _, d in ipairs(docs.list) do
    if d.owner == owner then put(string.format("  %-48s %s", d.mark .. d.name .. d.args, d.doc)) end
  end
end

-- The operators and suites that are named, a line each.
local function list_named(put)
  put "\nOperators by name, as `msched tune ops:conv2d -- 1 56 56 64 64 3 stride=2`; `msched help ops:conv2d` \z
       explains one."
  put "Several in one command, in quotes: `msched tune 'ops:conv2d(1,56,56,64,64,3,stride=2)' \z
       'ops:matmul(128,128,128)'`:"
  for _, op in ipairs(ms.load "lua.lib.ops.named".list) do
    local names = {}
    for i, argument in ipairs(op.arguments) do names[i] = argument.name end
    put(string.format("  ops:%-22s %s", op.name, op.doc))
    put(string.format("  %26s %s", "", table.concat(names, " ")))
  end
  put "\nSuites of them, as `msched tune suite:ops -- C2D batch=1`, or with another type `-- C2D dtype=float16`; \z
       `msched help suite:ops` lists one:"
  for _, name in ipairs(ms.load "lua.lib.ops.suites".names) do put("  suite:" .. name) end
end

-- ops:NAME or suite:NAME; false where there is none.
local function explain_named(kind, name, put)
  local op, suites = ms.load "lua.lib.ops.named".list[name], ms.load "lua.lib.ops.suites"
  if kind == "ops" and op then
    put(string.format("ops:%s\n  %s\n\nArguments, in this order or as NAME=VALUE, and what they are without being \z
                       said:", name, op.doc))
    for _, argument in ipairs(op.arguments) do
      put(string.format("  %-12s %-12s %s: %s", argument.name, argument.default, argument.doc, argument.expected))
    end
    return true
  end
  if kind ~= "suite" or not suites.has(name) then return false end
  for _, m in ipairs(suites.members(name)) do
    put(string.format("%-10s  ops:%s -- %s", m.name, m.operator, m.arguments))
  end
  return true
end

-- A term, a module or a type by its name, or members: `te`, `te.sum`, `store:find`, `find`. False: nothing is named so.
function docs.explain(name, put)
  if name == "msched" then name = "ms" end
  if docs.pages[name] then
    docs.pages[name](put)
    return true
  end
  local term = terms.find(name)
  if term then terms.explain(term, put) end
  if docs.about[name] then
    docs.explain_owner(name, put)
    if name == "ops" then list_named(put) end
    return true
  end
  local kind, rest = name:match "^(%a+):([^(]*)"
  if kind and explain_named(kind, rest, put) then return true end
  local found = term ~= nil
  for _, d in ipairs(docs.list) do
    if d.name == name or d.owner .. "." .. d.name == name or d.owner .. ":" .. d.name == name then
      docs.explain_member(d, put)
      found = true
    end
  end
  return found
end

-- ---- Annotations for the Lua language server ---------------------------------------------------------------------

-- What is no method, besides docs.fields: operators, and classes that only appear as types.
local FIELDS = {
  ms = "---@field te msched.te\n---@field ops msched.ops\n---@field rest lightuserdata the factor that is left \z
        open\n---@field map lightuserdata an annotation that is a map without keys, since {} is a list",
  kernel = "---@overload fun(...: msched.array|number)",
  array = "---@operator len: integer\n---@field [integer[]] number",
  trace = "---@operator len: integer",
  features = "---@operator len: integer\n---@overload fun(row: integer, column: string|integer): number",
}
local function field_lines(owner)
  local lines = {}
  for name, type, doc in fields_of(owner) do
    lines[#lines + 1] = string.format("---@field %s %s %s\n", name, type, doc)
  end
  return table.concat(lines)
end
local function record_class(owner)
  return string.format("---%s\n---@class msched.%s\n%s\n", docs.about[owner], owner, field_lines(owner))
end

local OTHERS = [[
---What a target is.
---@class msched.target
---@field text string
---@field kind string
---@field cpu string
---@field cores? integer
---@field vector_bits? integer
---@field vector_registers? integer
---@field l1_bytes? integer
---@field l2_bytes? integer
---@field l3_bytes? integer
---@field l3_share? integer
---@field dots? integer
---@field table? integer
---@field tiles? integer
---@field slides? integer
---@field tile_accumulators? integer
---@field arch? integer
---@field max_threads? integer
---@field shared_bytes? integer
---@field registers? integer
---@field warp? integer
---@field max_vthread? integer
---@field vector_bytes? integer

---A tensor expression.
---@class msched.expression
---@operator add(any): msched.expression
---@operator sub(any): msched.expression
---@operator mul(any): msched.expression
---@operator div(any): msched.expression
---@operator idiv(any): msched.expression
---@operator mod(any): msched.expression
---@operator unm: msched.expression

---An axis that is reduced over.
---@class msched.axis: msched.expression

---A tensor: A[{i, j}] is an element.
---@class msched.tensor
---@field name string
---@field type string
---@field shape integer[]
---@field [table] msched.expression
]]

-- Parts of what LuaLS writes, whose types have < and > too.
local function parts_of(text) return ms.load "lua.lib.parts"(text, "[%(%[{<]", "[%)%]}>]") end

-- One function: its sentence, other ways to call it, its parameters and results, and a declaration.
local function declare(d, overloads, variable, class)
  local lines, names = {"---" .. d.doc}, {}
  for _, o in ipairs(overloads) do
    local args = o.args:sub(2, -2)
    local self = o.mark == ":" and "self: " .. class .. (args ~= "" and ", " or "") or ""
    lines[#lines + 1] = string.format("---@overload fun(%s%s)%s", self, args,
                                      o.gives and ": " .. o.gives:gsub("^(%S+) %.%.%.$", "...%1") or "")
  end
  for _, part in ipairs(parts_of(d.args:sub(2, -2))) do
    local name, mark, type = part:match "^([%w_.]+)(%??): (.*)$"
    names[#names + 1] = name
    lines[#lines + 1] = string.format("---@param %s%s %s", name, mark, type)
  end
  for _, type in ipairs(parts_of(d.gives or "")) do lines[#lines + 1] = "---@return " .. type end
  lines[#lines + 1] = string.format("function %s%s%s(%s) end\n", variable, d.mark, d.name, table.concat(names, ", "))
  return table.concat(lines, "\n")
end

-- tables: lines as those above, of what the tables of vm give. A line here says more than a line there; of two lines
-- there, the second is another way to call the same.
function docs.annotations(tables)
  local all, first, overloads, owners = table.move(docs.list, 1, #docs.list, 1, {}), {}, {}, {}
  read_lines(tables, all)
  local own = #docs.list
  for i, d in ipairs(all) do
    local key = d.owner .. "." .. d.name
    if not owners[d.owner] then
      owners[d.owner] = {}
      owners[#owners + 1] = d.owner
    end
    if not first[key] then
      first[key], overloads[key] = i, {}
      table.insert(owners[d.owner], d)
    elseif first[key] > own then
      table.insert(overloads[key], d)
    end
  end
  local out = {"---@meta msched\n\n", OTHERS, "\n" .. record_class "record", record_class "draw"}
  for _, owner in ipairs(owners) do
    local variable = owner == "function" and "func" or owner
    local class = owner == "ms" and "msched" or "msched." .. owner
    out[#out + 1] = string.format("\n---%s\n---@class %s\n%slocal %s = {}\n\n", docs.about[owner], class,
                                  field_lines(owner) .. (FIELDS[owner] and FIELDS[owner] .. "\n" or ""), variable)
    for _, d in ipairs(owners[owner]) do
      out[#out + 1] = declare(d, overloads[owner .. "." .. d.name], variable, class) .. "\n"
    end
  end
  out[#out + 1] = "return ms\n"
  return table.concat(out)
end

return docs
