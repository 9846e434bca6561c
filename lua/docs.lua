-- What the members of the module are, for help in the session and for the editor's annotations. Instructions and queries
-- are in the tables of vm. A line is a member: its owner, `.` or `:`, its name, its arguments and what it gives as
-- LuaLS writes types, and after ` | ` one sentence. A test holds the lines against the members that there are.
local ms = msched
local docs = {list = {}}

docs.about = {
  ms = "msched: functions, schedules, kernels and tuning. What a rule, a search policy or a report needs is here too.",
  te = "te: tensor expressions. te.func gives a function whose tensors are what te.placeholder and te.compute made.",
  ops = "ops: operators made of tensor expressions; each takes tensors and gives a tensor.",
  ["function"] = "A function: loops and blocks over buffers. It is never changed: ms.schedule(f) works on a copy.",
  schedule = "A schedule: a function on its way to a fast kernel, and the trace that brought it there. A call of an instruction is recorded; sch.trace is the trace.",
  handle = "A handle: a block, a loop or a number of its schedule, given by an instruction.",
  trace = "A trace: the instructions of a schedule and the decisions of its draws. #trace is the number of instructions.",
  array = "An array: dense numbers. a[{i, j}] is an element, indices from 0; #a the number of elements.",
  kernel = "A kernel: a function built to run. k(a, b, c) runs it on arrays.",
  store = "A store: workloads and the records of what was measured.",
  best = "What ms.tune gives: the fastest record, with func, target, trace, seconds and id.",
  expression = "A tensor expression; help(te) lists what they are made with.",
}

local TEXT = [[
ms.from_script(text: string, file?: string): msched.function | The function of a TVMScript text: the only one, or `main`.
ms.schedule(func: msched.function, options?: {seed?: integer}): msched.schedule | A schedule of a function, its trace empty.
ms.read_trace(text: string): msched.trace | A trace from JSON, Lua text or the binary form; it is data, and never run.
ms.apply(func: msched.function, trace: msched.trace, options?: {seed?: integer, candidate?: integer, repair?: boolean, anew?: boolean}): msched.schedule | The function scheduled by a trace; repair: a decision that does not fit becomes the nearest that does; anew: all are drawn again.
ms.build(func: msched.function, options?: {target?: string, fast_math?: boolean, reference?: msched.function}): msched.kernel | A kernel; reference: the unscheduled function, which check compares with.
ms.interpret(func: msched.function, ...: msched.array|number) | Runs a function on the reference interpreter.
ms.target(text?: string): msched.target | What a target is: text, kind, cpu, cores, vector_bits, vector_registers, l1_bytes, l2_bytes, l3_bytes.
ms.array(shape: integer[], type?: string, values?: number|number[]|fun(position: integer): number): msched.array | An array of float32 zeros, or of the type and values given: one number, a list, or a function of the position from 0.
ms.arrays_for(func: msched.function, seed: integer): msched.array[] | Arrays for a function's parameters, filled with small integers, so that sums are exact.
ms.tune(func: msched.function, options?: {target?: string, trials?: integer, seconds?: number, seed?: integer, files?: string[], policy?: string, model?: string, jobs?: integer, db?: string, simulate?: boolean, rule_timeout?: number, listen?: fun(event: table)}): msched.best | Searches for the fastest schedule; results are kept in the store.
ms.rule(rule: {name: string, apply: fun(sch: msched.schedule, block: msched.handle): msched.schedule[]}): table | Registers a rule of the design space.
ms.postproc(postproc: {name: string, apply: function}): table | Registers a postprocessor: what is done to each candidate.
ms.mutator(mutator: {name: string, apply: function, weight?: number}): table | Registers a mutator of traces.
ms.policy(policy: {name: string, run: function}): table | Registers a search policy.
ms.store(path?: string, options?: {read_only?: boolean}): msched.store | Opens a store; without a path, the user's.
ms.load(name: string): any | A file of msched's own, loaded once: "rules.common", "search.tune", …
ms.sorted_keys(t: table): any[] | A table's keys in an order that is the same in every run.
ms.type(x: any): string? | "function", "schedule", "trace", …; nil for what is not of this module.
ms.where(): string | The place in the user's file that the call comes from, as "file:line: ", or "" if there is none.
ms.compare(kernel: msched.kernel, reference: function, seed: integer): number, integer | The largest difference of what a kernel and a reference compute, and among how many elements.
ms.interpret_samples(func: msched.function, seed: integer, samples: integer, ...: msched.array|number) | What so many elements of each output need, on the reference interpreter, and little else.
ms.limited(kind: string, part: table, ...: any): any | part.apply(...), stopped when it is late; an error names the part and its place.
ms.heeding(f: function, ...: any): boolean, any | As pcall, but an interrupt ends it.
ms.rule_timeout(seconds: number) | Sets how long a rule, a postprocessor or a mutator may run.
ms.box(options: {files: string[], target?: string, timeout?: number}): msched.box | A state of its own for the rules of files, which they cannot get out of.
ms.features(sch: msched.schedule): msched.features | A candidate's features, as cost models see them.
ms.pool(func: msched.function, options: table): msched.pool | Replay workers, for policies.
ms.stream(seed: integer, candidate?: integer, draw?: integer, attempt?: integer): msched.stream | Numbers that depend on these alone, for policies.
ms.model(name: string, seed?: integer): msched.model | A cost model: xgboost or random.
ms.measurer(func: msched.function, options: table): msched.measurer | Builds and times candidates in processes of their own.
ms.feature_names(): string[] | The names of a candidate's features.
ms.clock(): number | Seconds of a steady clock.
ms.interrupted(): boolean | Whether the user asked to stop.
ms.versions(): string | The versions of what generates code.
ms.vendors(threads: integer): table[] | Vendors' matrix products that are installed, for the benchmarks.
ms.time_products(kernel: msched.kernel, vendors: table[], seconds: number, A: msched.array, B: msched.array, C: msched.array): table[] | Times a kernel and vendors' products in turn.
te.placeholder(shape: integer[], type?: string, name?: string): msched.tensor | An input.
te.compute(shape: integer[], f: fun(...: msched.expression): msched.expression, name?: string): msched.tensor | A tensor whose elements are f of their indices; f may give a list: several tensors of one shape.
te.func(name: string, tensors: msched.tensor[]): msched.function | The function whose parameters are the tensors, in this order.
te.reduce_axis(range: integer|integer[], name?: string): msched.axis | An axis that is reduced over: its extent, or {first, last + 1}.
te.sum(x: msched.expression, axes: msched.axis|msched.axis[]): msched.expression | The sum over axes.
te.prod(x: msched.expression, axes: msched.axis|msched.axis[]): msched.expression | The product over axes.
te.max(x: msched.expression, axes: msched.axis|msched.axis[]): msched.expression | The largest over axes; of two values, te.maximum.
te.min(x: msched.expression, axes: msched.axis|msched.axis[]): msched.expression | The smallest over axes; of two values, te.minimum.
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
te.pow(a: msched.expression|number, b: msched.expression|number): msched.expression | a to the power of b.
te.abs(x: msched.expression): msched.expression | The absolute value.
ops.matmul(A: msched.tensor, B: msched.tensor, options?: {transpose_a?: boolean, transpose_b?: boolean, accumulate?: string, name?: string}): msched.tensor | (M, K) x (K, N) -> (M, N); accumulate: the type of the sums.
ops.conv2d(X: msched.tensor, W: msched.tensor, options?: {pad?: integer, stride?: integer, dilation?: integer, groups?: integer, name?: string}): msched.tensor | (N, H, W, C) with (KH, KW, C / groups, O).
ops.pad2d(X: msched.tensor, pad: integer, name?: string): msched.tensor | Zeros around height and width of (N, H, W, C).
ops.map(X: msched.tensor, f: fun(x: msched.expression, ...: msched.expression): msched.expression, name?: string): msched.tensor | f of each element, and of its indices.
ops.relu(X: msched.tensor, name?: string): msched.tensor | The larger of each element and 0.
ops.bias_add(X: msched.tensor, bias: msched.tensor, name?: string): msched.tensor | Adds a bias along the last dimension.
ops.scale_shift(X: msched.tensor, scale: msched.tensor, shift: msched.tensor, name?: string): msched.tensor | Scales and shifts along the last dimension.
ops.softmax(X: msched.tensor): msched.tensor | Along the last dimension of (M, N).
function:script(options?: {colour?: boolean}): string | Its module as TVMScript.
function:name(): string | Its name.
function:hash(): string | Its structural hash.
function:params(): table[] | Its parameters: a list of {name, type, shape}.
function:flops(): number | Operations on floats that it does, inits aside; 0 where extents are no constants.
schedule:func(): msched.function | The scheduled function as it is now.
schedule:copy(): msched.schedule | A copy, made by replaying the trace; schedule:handle gives its handles.
schedule:handle(other: msched.handle): msched.handle | The same block, loop or number in a copy of the schedule it came from.
schedule:workload(): msched.function | The function as it was.
schedule:hash(): string | The structural hash of the module as it is now.
schedule:script(options?: {colour?: boolean}): string | The module as TVMScript.
schedule:build(options?: {target?: string, fast_math?: boolean}): msched.kernel | Builds the scheduled function; the kernel's check compares it with the workload.
handle:value(): integer? | The number drawn; nil of a block or loop.
trace:text(): string | As a Lua chunk.
trace:json(): string | As JSON, in TVM's layout.
trace:binary(): string | In the compact form that the store holds.
trace:draws(): table[] | Its draws: a list of {index, kind, draw, attrs, annotates, decision}.
trace:simplified(postprocessing?: boolean): msched.trace | Without look-ups and draws that nothing uses, and without the postprocessing part unless it is asked for.
trace:with_decision(index: integer, values: integer[]): msched.trace | A copy with one decision changed; index as in draws.
array:shape(): integer[] | Its extents.
array:type(): string | Its elements' type.
array:tolist(): number[] | Its elements as a flat list.
array:random(seed?: integer): msched.array | Fills it with integers from -4 to 4; gives the array.
array:difference(other: msched.array): number | The largest difference of two arrays' elements.
kernel:run(...: msched.array|number) | Runs it.
kernel:time(...: msched.array|number): number, number, number, integer | Median seconds, low and high of its 95 % interval, and the number of runs.
kernel:check(options?: {seed?: integer, tolerance?: number}): number | The largest difference from the unscheduled function on the interpreter; raises where it is past the tolerance.
kernel:export(path: string) | Writes the kernel; the suffix is the form: .o .so .c .h .ll .s
kernel:target(): string | What it is built for.
kernel:func(): msched.function | The function it was built from.
kernel:reference(): msched.function? | The unscheduled function.
store:path(): string | Its file.
store:workloads(): table[] | A list of {id, name, records}.
store:get_workload(id: string): msched.function | A workload.
store:put_workload(func: msched.function): string | Adds a workload; gives its id.
store:records(filter: {workload: string, target?: string, most?: integer}): table[] | Records, fastest first.
store:find(id: string): table? | The record whose id starts so.
store:find_module(workload: string, hash: string, target: string): table? | The record of a scheduled module.
store:short_id(key: string): string | As few digits as name a record.
store:put(record: table): string | Adds a record; on disk when it returns.
store:delete(key: string) | Removes a record.
store:check(): integer | Problems found in records and indexes.
store:compact() | Gives free pages back.
store:export(path: string) | Writes all as lines of JSON.
store:import(path: string): integer | Adds what an export wrote; gives how many are new.
store:close() | Closes it.
best:schedule(): msched.schedule | Its schedule.
best:build(options?: {target?: string, fast_math?: boolean}): msched.kernel | Builds it.
best:export(path: string) | Builds it and writes the kernel, as kernel:export does.
]]

for name in ("acos asin atan ceil cos cosh erf exp exp2 floor log log10 log2 nearbyint round rsqrt sigmoid sin sinh sqrt tan tanh trunc"):gmatch "%w+" do
  TEXT = TEXT .. string.format("te.%s(x: msched.expression): msched.expression | %s of x.\n", name, name)
end

for line in TEXT:gmatch "[^\n]+" do
  local head, doc = line:match "^(.-) | (.*)$"
  local owner, mark, name, args, gives = head:match "^(%a+)([.:])([%w_]+)(%b()):? ?(.*)$"
  docs.list[#docs.list + 1] = {owner = owner, mark = mark, name = name, args = args, gives = gives ~= "" and gives or nil, doc = doc}
end

-- Members that are no function, or serve the files of msched itself.
docs.others = {ms = "te ops rest registered schedule_methods kernel_methods", schedule = "trace"}

local EXPRESSION = getmetatable(ms.te.const(1))
function docs.is_expression(x) return type(x) == "table" and rawequal(getmetatable(x), EXPRESSION) end

-- The member itself, where it can be got at; methods(type) gives a type's table of methods.
function docs.value(d, methods)
  local owner = d.owner == "ms" and ms or (d.owner == "te" or d.owner == "ops") and ms[d.owner] or methods(d.owner)
  return owner and rawget(owner, d.name)
end

-- Annotations for the Lua language server, of all but instructions and queries, which the tables give.
function docs.annotations()
  local lines, class = {}, {ms = "msched", te = "msched.te", ops = "msched.ops"}
  local last
  for _, d in ipairs(docs.list) do
    if d.owner ~= last then
      last = d.owner
      lines[#lines + 1] = string.format("\n---%s\n---@class %s", docs.about[last], class[last] or "msched." .. last)
      if last == "ms" then lines[#lines + 1] = "---@field te msched.te\n---@field ops msched.ops\n---@field rest lightuserdata the factor that is left open" end
      if last == "schedule" then lines[#lines + 1] = "---@field trace msched.trace" end
      if last == "best" then lines[#lines + 1] = "---@field func msched.function\n---@field target string\n---@field trace msched.trace\n---@field seconds number\n---@field id string" end
    end
    local args = d.args
    if d.mark == ":" then args = args:gsub("^%(", args == "()" and "(self: " .. "msched." .. last or "(self: msched." .. last .. ", ") end
    lines[#lines + 1] = string.format("---@field %s fun%s%s # %s", d.name, args, d.gives and ": " .. d.gives or "", d.doc)
  end
  return table.concat(lines, "\n") .. "\n"
end

return docs
