-- The compatibility libraries for AutoTVM, FlexTensor and Ansor: their examples, and what each refuses.
-- usage: msched compat.lua SOURCE
local ms = require "msched"
local source = ...
local support = dofile(source .. "/tests/support/lua/measurer.lua")
local lines, spaces = ms.load "lua.compat.lines", ms.load "lua.compat.space"
local autotvm, flextensor, ansor = ms.load "lua.compat.autotvm", ms.load "lua.compat.flextensor",
  ms.load "lua.compat.ansor"

assert(ms.load("lua.ways." .. "autotvm") == autotvm and ms.load("lua.ways." .. "ansor") == ansor,
       "as the files were called")
local users = ms.registered -- a rule that is loaded is registered
ms.registered = {rule = {}, postproc = {}, mutator = {}}
for was, is in pairs {["mutate_unroll"] = "mutator.mutate_unroll",
                      ["multi_level_tiling_tensor_core"] = "rule.multi_level_tiling_tensor_core",
                      ["verify_gpu_code"] = "postproc.verify_gpu_code"} do
  assert(ms.load("rules." .. was) == ms.load("rules." .. is), was)
end
ms.registered = users
assert(ms.load("search." .. "groups") == ms.load "search.groups.groups"
       and ms.load("lua.cli." .. "terms") == ms.load "lua.cli.help.terms", "as other files were called")

local function new_file(text)
  local name = os.tmpname()
  support.paths[#support.paths + 1] = name
  local file = assert(io.open(name, "wb"))
  file:write(text or "")
  file:close()
  return name
end
local files = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/files.lua")
local read = files.read
local function refuses(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "accepted, for: " .. words)
  assert(tostring(message):find(words, 1, true), string.format("%s\nis not: %s", message, words))
end
local function count(list)
  local n = 0
  for _ in pairs(list) do n = n + 1 end
  return n
end

-- ---- Lines of JSON -----------------------------------------------------------------------------------------------

local object = {a = lines.list {1, 2.5, -3, 1e300, 4.0}, b = {c = true, d = 'é "\n\\'}, e = lines.list {},
                f = lines.list {lines.list {lines.null, false}}}
local text = lines.text(object)
assert(lines.text(lines.value(text)) == text and not text:find "\n", text)
assert(math.type(lines.value("[1, 1.0]")[1]) == "integer" and math.type(lines.value("[1, 1.0]")[2]) == "float")
assert(lines.value('"\\u00e9\\n"') == "é\n")
for wrong, words in pairs {["{"] = "a name", ["[1,]"] = "a value", ['"a'] = "without an end",
                           ["[1] 2"] = "more follows", ['{"a" 1}'] = "`:`", ["nil"] = "`nil`", ["[1"] = "`]`",
                           [("["):rep(100)] = "too deep", ["0x1"] = "`0x1`"} do
  local value, why = lines.value(wrong)
  assert(value == nil and why:find("^column %d+: ") and why:find(words, 1, true), wrong .. ": " .. tostring(why))
end
local path = new_file '{"a": 1}\n{"a": '
lines.append(path, {a = 2})
local objects, wrong = lines.read(path)
assert(#objects == 2 and objects[2].number == 3 and objects[2].object.a == 2 and #wrong == 1
       and wrong[1]:find(path .. ":2: column", 1, true), wrong[1])
refuses("cannot read", lines.read, "/nonexistent")

-- ---- Spaces of configs -------------------------------------------------------------------------------------------

-- The entities of one knob, as text.
local function entities(define)
  local space = spaces.new()
  define(space:begin())
  local list = {}
  for i, e in ipairs(space.knobs.a.list) do list[i] = spaces.text(e) end
  return table.concat(list, " ")
end
local function split(extent, options) return entities(function(cfg) cfg:define_split("a", extent, options) end) end
assert(split(6) == "[6, 1] [3, 2] [2, 3] [1, 6]")
assert(split(12, {num_outputs = 3, max_factor = 2}) == "[12, 1, 1] [6, 2, 1] [6, 1, 2] [3, 2, 2]")
assert(split(6, {policy = "power2"}) == "[6, 1] [3, 2] [-1, 4]")
assert(split(6, {policy = "power2", no_tail = true}) == "[6, 1] [3, 2]")
assert(split(6, {policy = "verbose"}) == "[6, 1] [3, 2] [2, 3] [-1, 4] [1, 6]")
assert(split(6, {policy = "candidate", candidate = {{-1, 3}, {-1, 4}, {2, 3}}}) == "[2, 3] [-1, 4]")
assert(split(6, {filter = function(e) return e.size[2] > 2 end}) == "[2, 3] [1, 6]")
assert(entities(function(cfg) cfg:define_reorder("a", 3) end)
       == "[1, 2, 3] [1, 3, 2] [2, 1, 3] [2, 3, 1] [3, 1, 2] [3, 2, 1]")
assert(entities(function(cfg) cfg:define_reorder("a", 2, {policy = "identity"}) end) == "[1, 2]")
local function annotate(policy) return entities(function(cfg) cfg:define_annotate("a", 2, {policy = policy}) end) end
assert(annotate "unroll" == "[unroll, unroll]"
       and annotate "try_unroll" == "[none, none] [none, unroll] [unroll, unroll]")
assert(annotate "vec" == "[none, vec]" and annotate "try_vec" == "[none, none] [none, vec]")
assert(annotate "try_unroll_vec" == "[none, none] [none, unroll] [unroll, unroll] [none, vec] [unroll, vec]")
assert(entities(function(cfg) cfg:define_knob("a", {1, "x", false, 1}) end) == "1 x false")

-- A number is a config and back, for each; a config is what files have of it and back.
local space = spaces.new()
local first = space:begin()
first:define_split("tile", 8, {num_outputs = 3})
first:define_reorder("order", 3)
first:define_knob("pack", {true, false})
assert(#space == 10 * 6 * 2 and tostring(space):find("120 configs", 1, true))
local seen = {}
for index = 0, #space - 1 do
  local config = space:get(index)
  assert(space:number(space:digits(index)) == index and assert(space:read(config:plain())).index == index)
  seen[tostring(config):gsub("^config %d+", "")] = true
end
assert(count(seen) == 120)
refuses("there is no config 120", space.get, space, 120)
local function unread(plain, words)
  local config, why = space:read(plain)
  assert(not config and why:find(words, 1, true), why)
end
unread({{"tile", "split", {8, 1, 1}}, {"order", "reorder", {1, 2, 3}}}, "says nothing of `pack`")
unread({{"tile", "split", {4, 1, 1}}}, "`tile` cannot be [4, 1, 1] here")
unread({{"tile", "knob", 3}}, "no knob `tile`")
unread(3, "a list")

local function asks(f) return function() f(spaces.new():begin()) end end
refuses("asks knob `x` twice", asks(function(cfg) cfg:define_knob("x", {1}) cfg:define_split("x", 4) end))
refuses("no policy `factor`, did you mean `factors`?",
        asks(function(cfg) cfg:define_split("x", 4, {policy = "factor"}) end))
refuses("option `max_facto`", asks(function(cfg) cfg:define_split("x", 4, {max_facto = 2}) end))
refuses("knob `x` has no entity",
        asks(function(cfg) cfg:define_split("x", 4, {filter = function() return false end}) end))
refuses("takes the loop's extent", asks(function(cfg) cfg:define_split("x", "4") end))
refuses("a list of values", asks(function(cfg) cfg:define_knob("x", {}) end))
refuses("`candidate`", asks(function(cfg) cfg:define_reorder("x", 2, {policy = "candidate"}) end))
refuses("no method of configs", asks(function(cfg) cfg:define_knob("plain", {1}) end))
refuses("more than 1048576 entities", asks(function(cfg) cfg:define_reorder("x", 10) end))
refuses("more than 2^60 configs", asks(function(cfg) for i = 1, 60 do cfg:define_knob("x" .. i, {1, 2, 3}) end end))

-- ---- AutoTVM -----------------------------------------------------------------------------------------------------

local made = 0
autotvm.template("product", function(cfg, m, n, k)
  made = made + 1
  local sch = ms.schedule(ms.ops.func("matmul", {m, n, k}))
  local i, j = sch:get_loops(sch:get_sblock "C")
  cfg:define_split("i", m, {num_outputs = 3})
  cfg:define_split("j", n)
  cfg:define_knob("wide", {false, true})
  cfg.i:apply(sch, i)
  local _, inner = cfg.j:apply(sch, j)
  if cfg.wide.val then sch:vectorize(inner) end -- refused where it is no inner loop of the reduction's: never here
  return sch
end)
local product = autotvm.task("product", {64, 64, 64})
assert(#product.config_space == 28 * 7 * 2 and product.func:name() == "matmul_64x64x64")

-- Each tuner, by a measurer of the test's own: as many as were asked for, each once; the same again; others by another
-- seed.
local function tuned(options)
  local m = support.measurer(options.measuring)
  local all = {measurer = m, trials = 96, db = support.new_path(), batch = 16}
  for name, value in pairs(options) do if name ~= "measuring" then all[name] = value end end
  local task = options.task or product
  all.task = nil
  local best = autotvm.tune(task, all)
  return m, best
end
local means = {}
for _, tuner in ipairs {"grid", "random", "ga", "annealing", "model"} do
  local m, best = tuned {tuner = tuner}
  local distinct = {}
  for _, hash in ipairs(m.asked[1]) do distinct[hash] = true end
  assert(count(distinct) == #m.asked[1] and #m.asked[1] == 96, tuner .. ": " .. #m.asked[1])
  local least = math.min(table.unpack(m.times[1]))
  assert(best.seconds == least and best.schedule:hash() == product:schedule(best.config):hash(), tuner)
  support.same(table.move(m.asked[1], 1, 32, 1, {}), tuned({tuner = tuner, trials = 32}).asked[1], tuner .. " again")
  if tuner == "random" or tuner == "ga" then
    assert(table.concat(tuned({tuner = tuner, seed = 2, trials = 16}).asked[1]) ~= table.concat(m.asked[1], "", 1, 16),
           tuner .. ": the seed does not show")
  end
  means[tuner] = support.mean(m.times[1], 65, 96)
end
for _, tuner in ipairs {"ga", "annealing", "model"} do
  assert(means[tuner] < 0.8 * means.random, tuner .. " learns nothing: " .. means[tuner] .. " of " .. means.random)
end

-- A grid ends with the space, by number.
local tiny = autotvm.task("product", {4, 2, 2})
local m = tuned {tuner = "grid", task = tiny, trials = 1000}
assert(#m.asked[1] <= #tiny.config_space and #tiny.config_space == 24)
assert(m.asked[1][2] == tiny:schedule(tiny.config_space:get(1)):hash())
-- Without gain it ends early.
m = tuned {tuner = "random", early_stopping = 20, measuring = {time = function() return 1 end}}
assert(#m.asked[1] == 32, #m.asked[1])

-- The log: a line a config; the same call goes on where the store knows, and asks for nothing twice.
local log, db = new_file(), support.new_path()
m = tuned {tuner = "random", log = log, db = db, trials = 24}
local list = autotvm.read_log(log)
assert(#list == 24 and #m.asked[1] == 24)
for i, line in ipairs(list) do
  assert(line.seconds == m.times[1][i] and line.at == log .. ":" .. i and line.workload == '["product", 64, 64, 64]')
end
local more = tuned {tuner = "random", db = db, trials = 24}
support.same(support.joined(m.asked[1], more.asked[1]), tuned({tuner = "random", trials = 48}).asked[1], "gone on")
-- What the log has already is not written again; what it lacks is, though nothing is measured for it.
tuned {tuner = "random", log = log, db = db, trials = 1}
list = autotvm.read_log(log)
seen = {}
for _, each in ipairs(list) do seen[lines.text(each.config)] = true end
assert(#list == 49 and count(seen) == 49, #list)

-- The best of a log, by workload and target; what does not read is left out.
lines.append(log, {input = {workload = {"product", 64, 64, 64}, target = "other"}, config = {entity = {}},
                   result = {seconds = 1e-12}})
for _, seconds in ipairs {0, -1, 5e-324, 1e300, "1", true} do
  lines.append(log, {input = {workload = {"product", 64, 64, 64}, target = "other"}, config = {entity = {}},
                     result = {seconds = seconds}})
end
io.open(log, "a"):write("{}\n[1, 2\n"):close()
local history = autotvm.apply_history_best(log)
assert(table.concat(history.wrong, "\n"):find(":51: no result: `seconds` must be from 1e-12 to 1e+06 in a", 1, true))
assert(#history.wrong == 8 and table.concat(history.wrong, "\n"):find(":57: no input", 1, true),
       table.concat(history.wrong, "\n"))
local sch, line = history:schedule("product", {64, 64, 64})
assert(line.seconds <= math.min(table.unpack(m.times[1])) and support.time_of(sch) == line.seconds)
assert(sch:build():check() == 0)
sch, line = history:schedule("product", {64, 64, 32})
assert(line == nil and sch:hash() == autotvm.task("product", {64, 64, 32}):schedule():hash())

-- What is refused.
refuses("template `changing` gives another function with config 1", (function()
  local extent = 8
  autotvm.template("changing", function(cfg)
    local other = cfg:define_knob("n", {8, 16}).val
    return ms.schedule(ms.ops.func("matmul", {extent, other, 8}))
  end)
  local task = autotvm.task("changing", {})
  return function() task:schedule(task.config_space:get(1)) end
end)())
refuses("there is no template `prodct`; did you mean `product`?", autotvm.task, "prodct", {})
refuses("argument 1 of the task is a table", autotvm.task, "product", {{}})
refuses("there is no tuner `gs`", autotvm.tune, product, {tuner = "gs"})
refuses("option `trails`", autotvm.tune, product, {trails = 2})
refuses("as autotvm.task gives it", autotvm.tune, {}, {})
autotvm.template("twice", function(cfg)
  cfg:define_knob("pack", {1})
  cfg:define_knob("pack", {1})
end)
refuses("the template asks knob `pack` twice", autotvm.task, "twice", {})
autotvm.template("none", function() end)
refuses("template `none` gives a nil: it returns a schedule", autotvm.task, "none", {})
autotvm.template("product", function(cfg, a, b, c)
  cfg:define_split("i", a)
  return ms.schedule(ms.ops.func("matmul", {a, b, c}))
end)
refuses(list[1].at:gsub(":%d+$", ""), history.schedule, history, "product", {64, 64, 64})
refuses("its config is of another template than `product` is now", history.schedule, history, "product", {64, 64, 64})
-- A config that its instructions refuse is in the log, and costs no trial.
autotvm.template("refused", function(cfg)
  local sched = ms.schedule(ms.ops.func("matmul", {8, 8, 8}))
  local _, _, k = sched:get_loops(sched:get_sblock "C")
  local how = cfg:define_knob("how", {"serial", "parallel", "unroll"}).val
  if how ~= "serial" then sched[how](sched, k) end
  return sched
end)
log = new_file()
m = tuned {task = autotvm.task("refused", {}), tuner = "grid", log = log}
list = autotvm.read_log(log)
assert(#m.asked[1] == 2 and #list == 3 and list[2].status == "refused" and list[2].error:find("Parallel", 1, true)
       and list[3].seconds)

-- All are refused, or all fail: the last reason is said. A store may know a faster kernel of the same function than
-- there is.
autotvm.template("hopeless", function(cfg)
  local sched = ms.schedule(ms.ops.func("matmul", {8, 8, 8}))
  local _, _, k = sched:get_loops(sched:get_sblock "C")
  cfg:define_knob("x", {1, 2, 3})
  sched:parallel(k)
  return sched
end)
autotvm.template("hoping", function(cfg)
  cfg:define_knob("x", {1, 2, 3})
  return ms.schedule(ms.ops.func("matmul", {8, 8, 8}))
end)
refuses("the loop cannot be parallel", autotvm.task, "hopeless", {}) -- the first config says what the space is
autotvm.template("hopeless", function(cfg)
  local sched = ms.schedule(ms.ops.func("matmul", {8, 8, 8}))
  local _, _, k = sched:get_loops(sched:get_sblock "C")
  cfg:define_knob("x", {1, 2, 3})
  if not cfg.collecting then sched:parallel(k) end
  return sched
end)
refuses("configs were refused, the last: ", tuned, {task = autotvm.task("hopeless", {}), tuner = "grid"})
local known = support.new_path()
ms.load("search.tune").run(ms.ops.func("matmul", {8, 8, 8}), {measurer = support.measurer(), trials = 2, db = known})
local nothing = support.measurer()
function nothing:next()
  local r = table.remove(self.queue, 1)
  if r then r.measured, r.outcome, r.reason = false, "crashed", "" end
  return r
end
refuses("which is of another space: give the run a store of its own", autotvm.tune, autotvm.task("hoping", {}),
        {measurer = nothing, tuner = "grid", db = known})

-- ---- FlexTensor --------------------------------------------------------------------------------------------------

local function searched(key, options)
  options.measurer, options.db = support.measurer(), support.new_path()
  local s, buffers, configs = flextensor.schedule(key, options)
  return s, buffers, configs, options.measurer
end
local conv = flextensor.task.register {op = "conv2d", args = {1, 8, 8, 4, 16, 3}}
assert(conv == "conv2d_1x8x8x4x16x3_native(0)" and flextensor.task.list()[1] == conv)
local found, buffers, configs, measured = searched(conv, {op_trial = 12})
assert(#measured.asked[1] == 12 and #buffers == 3 and buffers[3].shape[4] == 16 and configs.slevel == 4
       and configs.rlevel == 2)
assert(found:build():check() == 0 and found:script():find("T.parallel", 1, true))
path = new_file()
flextensor.save(path, configs)
assert(read(path):find('"conv2d.spatial1", "split", [', 1, true)
       and select(2, read(path):gsub("\n", "")) == 10 + #configs.knobs)
assert(flextensor.schedule_with_config(conv, flextensor.load(path)):hash() == found:hash())
local named_operators = {}
for _, op in ipairs(flextensor.library()) do named_operators[op.name] = op.doc end
assert(named_operators.matmul == "a product of matrices" and named_operators.softmax)
-- Each method, and parts of any number.
for _, method in ipairs {"annealing", "random", "grid", "ga"} do
  assert(#select(4, searched(conv, {op_trial = 4, method = method})).asked[1] == 4)
end
for slevel = 1, 4 do
  for rlevel = 1, 3 do
    assert(searched(conv, {op_trial = 2, method = "random", slevel = slevel, rlevel = rlevel}):build():check() == 0)
  end
end
-- Stages after a reduction, and before it; two reductions.
for _, each in ipairs {{"dense_bias_relu", {8, 16, 32}}, {"softmax", {"8x32"}}, {"layer_norm", {"8x32"}},
                       {"conv2d", {1, 8, 8, 4, 16, 3, pad = 1}}, {"relu", {"8x32"}}} do
  local key = flextensor.task.register {op = each[1], args = each[2]}
  assert(searched(key, {op_trial = 3, method = "random"}):build():check() < 1e-3, each[1])
end
assert(flextensor.task.func "conv2d_1x8x8x4x16x3xpad=1_native(0)":params()[3].shape[2] == 8)

local wide = flextensor.task.register {op = "conv2d", args = {1, 8, 8, 4, 32, 3}}
local gemm = flextensor.task.register {op = "matmul", args = {16, 16, 16}, name = "small"}
assert(gemm == "matmul_small_native(0)")
refuses("they are of shape [1, 8, 8, 4, 16, 3], this is [1, 8, 8, 4, 32, 3]", flextensor.schedule_with_config, wide,
        configs)
refuses("they are of operator `conv2d`, this is `matmul`", flextensor.schedule_with_config, gemm, configs)
refuses("they are what flextensor.schedule gives", flextensor.schedule_with_config, gemm, {op = "matmul"})
local changed = flextensor.load(path)
changed.knobs[2][3] = lines.list {3, 1, 1, 1}
refuses("`conv2d.spatial1` cannot be [3, 1, 1, 1] here", flextensor.schedule_with_config, conv, changed)
changed.rlevel = 3
refuses("the configs are not of task", flextensor.schedule_with_config, conv, changed)
refuses("holds no configs: column", flextensor.load, new_file '{"op": ')
refuses("cannot read", flextensor.load, "/nonexistent")
refuses("cannot write", flextensor.save, "/nonexistent/file", configs)
refuses("did you mean `matmul_small_native(0)`?", flextensor.schedule, "matmul_smal_native(0)")
refuses("there is no method `q`; known are annealing", flextensor.schedule, gemm, {method = "q"})
refuses("slevel and rlevel are from 1 to 6", flextensor.schedule, gemm, {slevel = 0})
refuses("option `op_trials`", flextensor.schedule, gemm, {op_trials = 0})
refuses("`op` names the operator", flextensor.task.register, {args = {}})
refuses("`build` of x gives a nil", flextensor.task.register, {op = "x", build = function() end})
refuses("there is no operator", flextensor.task.register, {op = "matmull", args = {1, 2, 3}})
refuses("schedules for CPUs", flextensor.task.register, {op = "matmul", args = {4, 4, 4}, target = "cuda -arch=sm_80"})

-- ---- Ansor -------------------------------------------------------------------------------------------------------

local function dense(rows)
  local te, ops = ms.te, ms.ops
  local X, W = te.placeholder({rows, 128}, "float32", "X"), te.placeholder({128, 128}, "float32", "W")
  return ansor.task(te.func("dense_relu", {X, W, ops.relu(ops.dense(X, W))}))
end
local task = dense(16)
-- Sketches: an extent that is drawn has the number's name, and what follows from it is None.
local sketches = ansor.sketches(task)
local open = sketches[2]
local named = open:placeholders()
assert(#sketches > 3 and #named == 4 + 4 + 2 + 1 + 1)
local preview = tostring(open)
for i = 1, 10 do assert(preview:find("(0, " .. named[i] .. ")", 1, true), preview) end
assert(preview:find("for ax0 (0, None)", 1, true) and preview:find("dense", 1, true) and #open:history() > 10)
assert(open:script():find("sample_perfect_tile", 1, true) and not open:script():find("decision", 1, true))

local function auto(options)
  options.measurer = options.measurer or support.measurer(options.measuring)
  options.db, options.measuring = options.db or support.new_path(), nil
  options.batch = 16
  return ansor.auto_schedule(options.task or task, (function() options.task = nil return options end)()),
    options.measurer
end
log = new_file()
local best
best, m = auto {trials = 24, log = log}
assert(#best:placeholders() == 0 and not tostring(best):find("None", 1, true)
       and tostring(best):find("parallel", 1, true))
assert(best.seconds == math.min(table.unpack(m.times[1])) and best:build():check() == 0)
-- The script makes the state again.
assert(ms.apply(task.func, ms.read_trace(best:script())):hash() == best:schedule():hash())
-- Each line of the log is the state that was measured; the best of it.
list, wrong = ansor.read_log(task, log)
assert(#list == 24 and #wrong == 0)
for i, each in ipairs(list) do
  assert(each.seconds == m.times[1][i] and ansor.replay(task, log, i):schedule():hash() == m.asked[1][i])
end
assert(ansor.load_best(task, log):schedule():hash() == best:schedule():hash())
-- Stopped, and gone on with from the log alone, in another store: the candidates of a run that was not stopped.
local part = new_file()
local ok, message = pcall(auto, {trials = 24, log = part, measuring = {most = 21}})
assert(not ok and message == "the measurer is gone", message)
local _, rest = auto {trials = 24 - 21, log = part, resume = true}
assert(#rest.asked[1] == 3)
support.same(support.joined(table.move(m.asked[1], 1, 21, 1, {}), rest.asked[1]), m.asked[1],
             "gone on with from the log")
assert(#ansor.read_log(task, part) == 24)
-- Failures are in the log, with their reasons.
local failing = support.measurer()
local next_result = failing.next
function failing:next()
  local r = next_result(self)
  if r and r.id % 2 == 0 then r.measured, r.outcome, r.reason = false, "crashed", "signal 11" end
  return r
end
log = new_file()
auto {trials = 4, log = log, measurer = failing}
local errors = 0
for _, each in ipairs((ansor.read_log(task, log))) do
  if each.status == "failed" then
    errors = errors + 1
    assert(each.error == "signal 11" and each.number)
  end
end
assert(errors >= 3)
-- A line of another task, a line that is none, no line.
local other = dense(32)
list, wrong = ansor.read_log(other, log)
assert(#list == 0 and wrong[1]:find(log .. ":1: it is of `dense_relu`, another function than `dense_relu` or other \z
                                            extents", 1, true), wrong[1])
refuses(log .. ":1: it is of `dense_relu`", ansor.replay, other, log, 1)
refuses("has no line 1000", ansor.replay, task, log, 1000)
assert(ansor.load_best(other, log) == nil)
path = new_file('{"i": 1}\nx\n' .. read(log):match "^[^\n]*":gsub('"GetSBlock"', '"GetBlok"', 1) .. "\n")
list, wrong = ansor.read_log(task, path)
assert(#list == 0 and #wrong == 3, #wrong .. " " .. table.concat(wrong, "\n"))
local whole = read(log):match '[^\n]*"status": "measured"[^\n]*'
for _, wrong in ipairs {"0", "-1.0", "1e300", '"1"', "true", "null"} do
  local spoiled = whole:gsub('"seconds": [^,}]*', '"seconds": ' .. wrong)
  list, wrong = ansor.read_log(task, new_file(spoiled .. "\n"))
  assert(#list == 0 and #wrong == 1 and wrong[1]:find ":1: ", spoiled)
end
refuses("it is no line of such a log", ansor.replay, task, path, 1)
refuses("its trace does not read", ansor.replay, task, path, 3)
refuses("resume needs the log", ansor.auto_schedule, task, {resume = true})
refuses("a task is what ansor.task gives", ansor.auto_schedule, {}, {})
refuses("ansor.task takes a function", ansor.task, 3)
refuses("option `trails`", ansor.auto_schedule, task, {trails = 3})

-- ---- The examples, measured --------------------------------------------------------------------------------------

local real_print = print
for name, arguments in pairs {autotvm = {"64", "64", "64", "2"}, flextensor = {"8", "16", "2"},
                              ansor = {"32", "32", "32", "2"}} do
  local printed = {}
  function print(...)
    for _, x in ipairs {...} do printed[#printed + 1] = tostring(x) end
  end
  log, db = new_file(), support.new_path()
  arguments[#arguments + 1], arguments[#arguments + 2] = log, db
  local result = assert(loadfile(source .. "/lua/examples/" .. name .. ".lua"))(table.unpack(arguments))
  print = real_print
  assert(result.seconds > 0 and table.concat(printed, " "):find("differs from the unscheduled function by 0", 1, true),
         name)
end
support.remove_stores()
