-- The program's commands that are written in Lua: tune, top, show, replay, export, db, space, doctor.
-- Each gets its options by their keys (options.def), its arguments and what follows `--`, and returns an exit status.
local ms = msched
local cli = ms.load "lua.cli.cli"
local commands = {}

local DONE, FAILED = cli.DONE, cli.FAILED
local refuse, misuse, put_json = cli.refuse, cli.misuse, cli.put_json
local time_text, rate_text, print = cli.time_text, cli.rate_text, cli.print
local functions_of, open_store = cli.functions_of, cli.open_store
local stores, schedule_of = ms.load "lua.cli.store.stores", ms.load "lua.lib.records".schedule_of
local record_code, run_options = ms.load "lua.cli.store.record_code", ms.load "search.options"

-- What a record's function is built for. Records outlive the targets that were known when they were made.
local function target_of(r, options)
  if options.target then return options.target end
  local ok, message = pcall(ms.target, r.target)
  if not ok then
    refuse("record %s is of `%s`, which is no target here (%s); say which with --target", r.id:sub(1, 12), r.target,
           message)
  end
  return r.target
end

-- ---- tune ------------------------------------------------------------------------------------------------------

local LINKED = {llvm = ".so", cuda = ".cu"} -- the form of a kernel that others use most

-- What to type next with the best record.
local function next_commands(task, options)
  local id, db = task.fastest.id, options.db and " --db " .. cli.shell_word(options.db) or ""
  local commands_ = {"show " .. id, "replay " .. id,
                     string.format("export %s -o %s", id, cli.shell_word(task.func:name() .. LINKED[task.target.kind]))}
  for i, c in ipairs(commands_) do commands_[i] = "msched " .. c .. db end
  local line, width = "next:  " .. table.concat(commands_, "    "), ms.terminal_width()
  return width and utf8.len(line) and utf8.len(line) > width and "next:\n  " .. table.concat(commands_, "\n  ") or line
end

-- The options of a run that the words of a command say, in their ranges.
local function run_options_of(options)
  local given = run_options.of_command(options)
  local out = run_options.out_of_range(given)
  if out then
    misuse("%s: %s is expected", out.word, out.most and string.format("a number from %d to %d", out.least, out.most) or
           out.above and "a number of seconds above " .. out.least or "a number of at least " .. out.least)
  end
  return given
end

-- What the tasks ended with: messages, what to type next; each under its name, where there are several. Gives whether
-- each has a best. states: what progress knows of them; nil: messages alone.
local function report_tasks(tune, tasks, options, states)
  local all, progress, shown = true, ms.load "lua.cli.progress", 0
  for _, task in ipairs(tasks) do shown = shown + (task.of_whole == nil and 1 or 0) end
  for _, task in ipairs(tasks) do
    local is_part = task.of_whole ~= nil -- it may have had no trial
    all = all and (is_part or task.fastest ~= nil) and not task.error
    local message = task.error or not is_part and not task.fastest and not task:stopped() and tune.why(task)
    if message then
      cli.warn("msched tune: ", shown > 1 and progress.of_task(task.name, message) or task.name .. ": " .. message)
    end
    local tells = states and not options.json and not is_part
    if tells and shown > 1 and task.fastest then print(task.name .. ":") end
    if tells and not options["no-tune"] then progress.print_best(task, states[task.name]) end
    if tells and task.fastest and task.fastest.id then cli.print_lines(next_commands(task, options)) end
  end
  return all
end

-- A function without its blocks of no elements, which is said; as it is where all of them have none.
local function without_empty(command, func)
  local rest = func:has_empty() and ms.without_empty(func)
  if not rest then return func end
  local names, left = {}, {}
  for _, name in ipairs(ms.schedule(rest):block_names()) do left[name] = true end
  for _, name in ipairs(ms.schedule(func):block_names()) do if not left[name] then names[#names + 1] = name end end
  cli.warn(string.format("msched %s: %s: left out, as it computes no elements: %s", command, func:name(),
                         #names > 0 and table.concat(names, ", ") or "a loop of extent 0"))
  return rest
end

function commands.tune(options, files, rest)
  if #files == 0 then misuse("give at least one file: Lua that returns functions, or TVMScript") end
  local given = run_options_of(options)
  for _, other in ipairs {"trials", "total-trials", "seconds", "simulate"} do
    if options["no-tune"] and options[other] then
      misuse("--no-tune measures nothing: it does not go with --%s", other)
    end
  end
  if options.deterministic then
    local name, why = ms.load "search.fixed".refused(given)
    if name or options["no-tune"] then
      misuse("--deterministic does not go with --%s: %s", name and name:gsub("_", "-") or "no-tune",
             why or "nothing is tried")
    end
  end
  for _, other in ipairs {"simulate", "no-tune", "vendors"} do
    if options.fleet and options[other] then
      misuse("--fleet does not go with --%s: %s", other,
             other == "vendors" and "these are timed here" or "nothing is measured")
    end
  end
  if options.vendors and (options["no-tune"] or options.simulate) then
    misuse("--vendors: nothing is timed with --no-tune or --simulate")
  end
  if options.vendors then
    local found, why = pcall(ms.vendors, 1)
    if not found then refuse("--vendors: %s", tostring(why)) end
  end
  local began = ms.clock()
  local functions, networks = cli.weighed_functions_of(files, rest, options.task, options.dim,
                                                           setmetatable({run = given}, {__index = options}))
  if #networks > 0 then given.seconds = ms.load "lua.net.tune".seconds_left(given, began) end
  local tune, progress = ms.load "search.tune", ms.load "lua.cli.progress"
  for i = #functions, 1, -1 do
    functions[i][1] = without_empty("tune", functions[i][1])
    if functions[i][1]:has_empty() then cli.warn("msched tune: ", tune.empty_text(table.remove(functions, i)[1])) end
  end
  if #functions == 0 then return DONE end
  -- a server that is not there leaves no store
  if options.fleet then ms.load "search.fleet.link".open(options.fleet):close() end
  local store, states, measures = open_store(options.db), {}, not options["no-tune"] and not options.simulate
  local of_limits = ms.load "lua.bench.limits"
  local limits = measures and not options.fleet and of_limits.for_tuning()
    or {unused = options["no-tune"] and of_limits.unused_unmeasured or nil}
  local screen = not options.json and ms.terminal_width()
    and ms.load "lua.cli.live".new {width = ms.terminal_width, height = ms.terminal_height}
  given.store, given.beside = store, options.vendors and ms.load "lua.vendor.baseline".vendors() or nil
  given.limit, given.unused, given.listen = limits.limit, limits.unused,
    options.json and progress.json() or progress.lines(screen, states, #networks > 0)
  local ok, tasks, _, unopened = pcall(tune.all, functions, given)
  if not ok then
    if ms.interrupted() then refuse("interrupted before anything was measured; %s keeps what it had", store:path()) end
    error(tasks, 0)
  end
  local all, kept = report_tasks(tune, tasks, options, #networks == 0 and states or nil), 0
  for _, task in ipairs(tasks) do kept = kept + task.kept end
  if ms.interrupted() then refuse("%s, and the next run goes on from there", tune.kept_text(kept, store:path())) end
  all = all and #unopened == 0
  for _, each in ipairs(all and measures and not options.task and networks or {}) do
    ms.load "lua.cli.network".tell(each, tasks, options, store)
  end
  return all and DONE or FAILED
end

local BUSY = "busy machine: other programs ran whenever it was timed, so it may be faster"

-- ---- The store -------------------------------------------------------------------------------------------------

-- What each instruction changed, or the one numbered options.explain, and what depends on it.
local function show_steps(func, trace, options)
  local explain, wanted = ms.load "lua.lib.explain", options.explain
  if wanted and wanted >= #trace then refuse("there is no instruction %d: the trace has %d, from 0", wanted, #trace) end
  if not options.json then
    explain.print(func, trace,
                  {wanted = wanted, dependents = wanted ~= nil, colour = ms.is_terminal() and not os.getenv "NO_COLOR"})
    return DONE
  end
  for _, s in ipairs(explain.steps(func, trace, wanted)) do
    local changes = cli.list {}
    for _, c in ipairs(s.changes) do if c[1] ~= " " then changes[#changes + 1] = c[1] .. c[2] end end
    local direct, indirect = explain.dependents_of(trace, s, wanted)
    put_json {first = s.first, last = s.last, instructions = s.texts, changes = changes, used_by = cli.list(direct),
              through_them_by = cli.list(indirect)}
  end
  return DONE
end

local is_file = cli.is_file

-- A file's functions, or an operator's; or the members of a suite, with what names each alone and the operations it
-- does.
local function show_functions(options, path, rest)
  local item = cli.named(path)
  cli.check_rest({path}, rest)
  if not item or item.kind ~= "suite" or options.task or options.dim or options.weights then
    for _, func in ipairs(functions_of(path, rest, options.task, options.dim, {weights = options.weights})) do
      local work = cli.work_of(func)
      if options.json then put_json {task = func:name(), script = func:script(), operations = work.operations}
      else io.write(ms.visible(func:script {colour = ms.is_terminal() and not os.getenv "NO_COLOR"}, "script")) end
    end
    return DONE
  end
  local ok, members =
    pcall(ms.load "lua.lib.ops.suites".choose, item.name, ms.load "lua.lib.ops.words".texts(item) or rest)
  if not ok then refuse("%s", tostring(members)) end
  for _, m in ipairs(members) do
    local work = cli.work_of(m.func())
    if options.json then
      put_json {task = m.name, operator = m.operator, arguments = m.arguments, operations = work.operations}
    else
      print(string.format("%-10s %9.4g %-5s  ops:%s -- %s", m.name, work.operations / 1e9, work.unit:match "^%a*",
                          m.operator, m.arguments))
    end
  end
  return DONE
end

local function print_code(code)
  if code.reason then print(code.reason) end
  for _, k in ipairs(code.kernels or {}) do cli.print_lines(record_code.kernel_text(k)) end
  for _, note in ipairs(code.notes or {}) do print("note: " .. note) end
end

function commands.show(options, ids, rest)
  local steps = options.diff or options.explain
  if ids[1] and ids[1]:find "%.onnx$" then
    if ids[2] or steps or options.trace or options.task or #rest > 0 then
      misuse("%s is a network: of the options, --shape, --dim, --constant, --print-after, --passes, --layout and \z
              --json are for it", ids[1])
    end
    return ms.load "lua.cli.network".show(options, ids[1])
  end
  cli.refuse_of_network(options)
  if ids[1] and (cli.named(ids[1]) or is_file(ids[1])) then
    if ids[2] or steps or options.trace then misuse("%s is no record: it has no trace", ids[1]) end
    return show_functions(options, ids[1], rest)
  end
  if options.task or options.dim or #rest > 0 then
    misuse("--task, --dim and arguments after -- are for FILE, ops:NAME and suite:NAME")
  end
  if options.trace and steps then misuse("--trace goes with neither --diff nor --explain") end
  if options.lua and not options.trace then misuse("--lua goes with --trace") end
  local store = open_store(options.db, "read")
  local r = stores.record_of(store, ids)
  local func, trace, sch = schedule_of(store, r)
  if steps then return show_steps(func, trace, options) end
  if options.json then
    local code = record_code.of(func, sch, target_of(r, options))
    put_json {id = r.id, status = r.status, seconds = r.seconds, target = r.target, versions = r.versions,
              trace = trace:text(), script = sch:script(), hash = r.hash, reason = r.reason,
              remarks = stores.remarks_on(r), notes = code.notes, kernels = code.kernels, no_code = code.reason,
              device = r.device}
    return DONE
  end
  if options.trace then io.write(options.lua and trace:text() or trace:json(), "\n") return DONE end
  local interval = r.high < math.huge and string.format(" [%s, %s]", time_text(r.low), time_text(r.high)) or ""
  local result = r.status == "unmeasured" and ""
    or string.format(", %s%s, %s", time_text(r.seconds), interval, cli.count_text(r.runs, "run"))
  print(string.format("record %s: %s%s, on %s, by %s", r.id, r.status, result, r.target, r.versions))
  if r.unsafe then print("unsafe: its trace holds instructions that may change what is computed") end
  if r.busy then print(BUSY) end
  local device = stores.device_text(r.device)
  if device then print("as measured: " .. device) end
  print_code(record_code.of(func, sch, target_of(r, options)))
  cli.print_lines(sch:script {colour = ms.is_terminal() and not os.getenv "NO_COLOR"}, "script")
  cli.print_lines(trace:text(), "lua")
  return DONE
end

function commands.report(options, words) return ms.load "lua.report.report".run(options, words) end

-- Replays a record: the module again, checked against its hash, built, compared with the unscheduled function, timed.
function commands.replay(options, ids)
  local store = open_store(options.db, "read")
  local r = stores.record_of(store, ids, options.dim, options.weights)
  ms.load "lua.cli.store.recheck".run(store, r, target_of(r, options))
  local func, _, sch = schedule_of(store, r)
  if sch:hash() ~= r.hash then refuse("the trace gives module %s, the record says %s", sch:hash(), r.hash) end
  local target = target_of(r, options)
  local kernel = ms.build(sch:func(), {target = target, reference = func})
  local base = ms.build(func, {target = ms.target(target).reference})
  local most = ms.compare(kernel, function(...) base:run(...) end, 1)
  local sampled, samples = kernel:check {tolerance = math.huge}
  local arrays = ms.arrays_for(func, 1)
  ms.fill_for_timing(func, arrays, target)
  local seconds, low, high, runs, busy = kernel:time(table.unpack(arrays))
  if options.json then
    put_json {id = r.id, seconds = seconds, low = low, high = high, runs = runs, busy = busy, difference = most,
              recorded = r.seconds, interpreted = sampled, interpreted_elements = samples}
  else
    print(string.format("%s: %s %s [%s, %s] in %s; recorded %s", r.id:sub(1, 12), time_text(seconds),
                        rate_text(cli.work_of(func), seconds), time_text(low), time_text(high),
                        cli.count_text(runs, "run"), time_text(r.seconds)))
    if busy then print(BUSY) end
    print(string.format("differs from the unscheduled function, built: by %g, everywhere; interpreted: by %g, at %s",
                        most, sampled, cli.count_text(samples, "element")))
  end
  return DONE
end

function commands.export(options, ids)
  local path = options.output
  if not path then
    misuse("say where to with -o FILE; its suffix is the form: .o .so .c .h .ll .s; of a record for CUDA .cu .ptx \z
            .cubin .h .c")
  end
  if ids[1] and cli.is_network(ids[1]) then return ms.load "lua.cli.network".export(options, ids) end
  cli.refuse_of_network(options)
  local store = open_store(options.db, "read")
  if options.pinned then
    if ids[1] or options.dim then misuse("--pinned takes what is pinned, and not %s", ids[1] and "an ID" or "--dim") end
    return ms.load "lua.cli.store.library".export(store, options)
  end
  local r = stores.record_of(store, ids, options.dim, options.weights)
  if not options.force then ms.load "lua.cli.store.recheck".export(store, r, target_of(r, options)) end
  local _, _, sch = schedule_of(store, r)
  local kernel = ms.build(sch:func(), {target = target_of(r, options)})
  if not options.force then kernel:check_timing() end -- what is given away is run before, where this machine can
  for _, note in ipairs(kernel:notes()) do cli.warn("msched export: note: ", note) end
  local replaced = cli.is_there(path)
  local name, owner = kernel:export(path, options.name)
  print(string.format("%s: %s, %s, record %s for %s", path, replaced and "replaced" or "written", cli.size_text(path),
                      r.id:sub(1, 12), kernel:target()))
  if owner then print(cli.renamed_text(path, sch:func():name(), name, owner) .. "; --name NAME gives another") end
  return DONE
end

commands.top, commands.diff, commands.db = stores.top, stores.diff, stores.db

-- ---- space, doctor ---------------------------------------------------------------------------------------------

local function print_space(func, options, tune, refusals)
  local opened = tune.open(func, ms.target(options.target or "native"), run_options_of(options))
  local product = opened.product
  for i, sch in ipairs(opened.sketches) do
    local listed = product and product.listed[i] or {}
    if options.json then
      put_json {task = func:name(), sketch = i, trace = sch.trace:json(), script = sch:script(), block = listed.block,
                choice = listed.choice}
    else
      local choice = listed.block
        and string.format(": choice %d of block %s, the first of the others", listed.choice, listed.block) or ""
      print(string.format("-- %s, sketch %d of %d%s", func:name(), i, #opened.sketches, choice))
      cli.print_lines(sch.trace:text(), "lua")
    end
  end
  if product then
    cli.warn(string.format("msched space: %s: %s, %s; each choice is printed once, with the first of the other blocks",
                           func:name(), cli.sketches_text(product:size()), cli.product_text(product:counts())))
  end
  for _, name in ipairs(opened.idle) do
    cli.warn(string.format("msched space: %s: rule `%s` changed no schedule", func:name(), name))
  end
  if opened.thinned then
    cli.warn("msched space: ", func:name(), ": there are more sketches; these were drawn by the seed")
  end
  if next(opened.refused) then
    cli.warn("msched space: ", func:name(), ": dropped where an instruction was refused:\n",
             refusals.text(opened.refused))
  end
end

function commands.space(options, files, rest)
  if #files ~= 1 then misuse("give one file") end
  cli.check_rest(files, rest)
  local tune, refusals, groups = ms.load "search.tune", ms.load "rules.refusals", ms.load "search.groups.groups"
  for _, func in ipairs(functions_of(files[1], rest, options.task, options.dim, options)) do
    func = without_empty("space", func)
    local empty = func:has_empty()
    if empty then cli.warn("msched space: ", tune.empty_text(func)) end
    local cut = not empty and not options.whole and groups.needed(func)
    if cut then
      cli.warn(string.format("msched space: %s: %s, cut into groups that are searched apart:\n%s", func:name(),
                             cli.count_text(cut.blocks, "block"), tostring(cut)))
    end
    for _, g in ipairs(empty and {} or cut or {{func = func}}) do print_space(g.func, options, tune, refusals) end
  end
  return DONE
end

local TILES = {none = "none", refused = "tiles; the kernel refuses permission",
               lent = "tiles; the kernel grants permission to processes that request it"}

-- How many cores are used, and what keeps it from more.
local function cores_text(host)
  if host.usable == host.online then return tostring(host.usable) end
  return string.format("%d of %d%s%s", host.usable, host.online, host.allowed < host.online and " (affinity)" or "",
                       (host.quota or math.huge) < host.allowed and string.format(", quota %g", host.quota) or "")
end

-- What `native` is, and why; a third text is what is printed.
local function machine_lines(t, host)
  local function list(names, otherwise) return names ~= "" and names or otherwise end
  local why = host.cpu == host.llvm_cpu and "the cpu itself" or "the newest known whose features are all here"
  return {
    {"versions", ms.versions()}, {"target", t.text}, {"cpu", host.llvm_cpu .. ", as LLVM calls it"},
    {"scheduling", string.format("as for %s: %s", host.cpu, why)},
    {"features", list(host.features, "not listed for this kind of cpu")},
    {"missing", list(host.missing, "none that a " .. host.llvm_cpu .. " has")},
    {"beyond", list(host.beyond, "none that a " .. host.llvm_cpu .. " lacks")},
    {"AMX", TILES[host.tiles]}, {"cores", t.cores, cores_text(host)},
    {"vectors", string.format("%d bits, %d registers", t.vector_bits, t.vector_registers)},
    {"caches",
     string.format("L1 %d KiB, L2 %d KiB, L3 %d KiB", t.l1_bytes // 1024, t.l2_bytes // 1024, t.l3_bytes // 1024)},
  }
end

local function device_text(i, d)
  return string.format("%d: %s, sm_%d, %d processors, %.0f GiB, L2 %d MiB, at most %.2f GHz", i, d.name, d.arch,
                       d.processors, d.memory / 2 ^ 30, d.l2_bytes >> 20, d.clock / 1e9)
end

local function clocks_text()
  local c, why = ms.device_clocks(0)
  if not c then return "not known: " .. why end
  return string.format("0: %.2f GHz now, its memory %.2f GHz%s", c.clock / 1e9, c.memory_clock / 1e9,
                       c.slowed and "; slowed, for heat or power" or "")
end

-- Both in one go, with the clock that the device had then.
local function device_peak_text(device)
  local measured, peak = pcall(ms.load "lua.bench.peak".device, device)
  if not measured then return "not measured: " .. tostring(peak):match "[^\n]*" end
  return string.format("0: %.0f GFLOP/s of float32, %.1f GB/s%s", peak.flops / 1e9, peak.bandwidth / 1e9,
                       peak.clock and string.format(", at %.2f GHz", peak.clock / 1e9) or "")
end

-- The measured peak of the tensor cores.
local function tensor_text(device)
  local measured, rates = pcall(ms.load "lua.bench.tensor_peak".all, device)
  if not measured then return "not measured: " .. tostring(rates):match "[^\n]*" end
  local parts = {}
  for i, rate in ipairs(rates) do
    parts[i] = string.format("%.0f G%sOP/s of %s", rate[2] / 1e9, rate[1] == "int8" and "" or "FL", rate[1])
  end
  return "0: " .. table.concat(parts, ", ")
end

local function device_lines()
  local found = ms.devices()
  local texts = {}
  for i, d in ipairs(found) do texts[i] = device_text(i - 1, d) end
  local lines = {{"CUDA", found.driver:find "^%d" and "driver " .. found.driver or found.driver},
                 {"NVRTC", found.nvrtc}, {"GPUs", #texts > 0 and table.concat(texts, "; ") or "none"}}
  if found[1] then
    lines[4], lines[5] = {"clocks", clocks_text()}, {"GPU peak", device_peak_text(found[1]), key = "device_peak"}
    if found[1].arch >= 70 then lines[6] = {"tensor", tensor_text(found[1])} end -- cores
  end
  return lines
end

-- What the units for short types do on all cores, and vectors of what is not float32.
local function units_text(t)
  local peak, parts = ms.load "lua.bench.peak", {}
  local function add(name, rate, unit) parts[#parts + 1] = string.format("%s %.0f %s", name, rate / 1e9, unit) end
  for _, u in ipairs(ms.units(t.text)) do
    local rate = peak.undisturbed(t.cores, function(n) return ms.unit_rate(u.unit, n, t.vector_bits) end)
    add(u.name, rate, (u.products:find "^int" and "GOP/s of " or "GFLOP/s of ") .. u.products)
  end
  add("vectors", peak.vectors(t, "float64"), "GFLOP/s of float64")
  add("", peak.vectors(t, "int32"), "GOP/s of int32")
  return string.format("%s; on all cores", (table.concat(parts, ", "):gsub("  ", " ")))
end

local function bandwidth_text(t)
  local peak, parts = ms.load "lua.bench.peak", {}
  for i, bytes in ipairs {t.l1_bytes * t.cores, t.l2_bytes * t.cores, t.l3_bytes} do
    if bytes > 0 then
      parts[#parts + 1] = string.format("%.1f in L%d", peak.bandwidth(t, bytes // 2, i < 3) / 1e9, i)
    end
  end
  return string.format("%.1f GB/s; in all caches of a level: %s", peak.bandwidth(t) / 1e9, table.concat(parts, ", "))
end

-- What this machine's processor reaches, by kernels that are compiled.
local function measured_lines(t)
  local peak = ms.load "lua.bench.peak"
  local one, all = peak.flops(1) / 1e9, peak.flops(t.cores) / 1e9
  return {
    {"peak",
     string.format("%.0f GFLOP/s of float32 on one core, %.0f on all%s", one, all,
                   all < 0.5 * t.cores * one and "; other programs ran on the others, so this may be more" or "")},
    {"units", units_text(t)},
    {"bandwidth", bandwidth_text(t)},
  }
end

function commands.doctor(options)
  local t, host = ms.target("native"), ms.host()
  local lines = machine_lines(t, host)
  for _, line in ipairs(device_lines()) do lines[#lines + 1] = line end
  local measured, own = pcall(measured_lines, t)
  if not measured and ms.interrupted() then error(own, 0) end
  if not measured then own = {{"peak", "not measured: " .. tostring(own):match "[^\n]*"}} end
  for _, line in ipairs(own) do lines[#lines + 1] = line end
  if options.json then
    local object = {}
    for _, l in ipairs(lines) do object[l.key or l[1]] = l[2] end
    object.reach = object.device_peak -- its old name
    object.cores_online, object.cores_allowed, object.cores_quota = host.online, host.allowed, host.quota
    put_json(object)
  else
    for _, l in ipairs(lines) do print(string.format("%-10s %s", l[1], l[3] or l[2])) end
  end
  return DONE
end

-- Of networks alone; the rest is C's.
function commands.run(options, files, rest)
  if #files ~= 1 or #rest > 0 or options.trace or options.task then
    misuse "of a network give the file alone, without --trace and --task"
  end
  return ms.load "lua.cli.network".run(options, files[1])
end

function commands.worker(...) return ms.load "lua.cli.fleet".worker(...) end
function commands.fleet(...) return ms.load "lua.cli.fleet".fleet(...) end
function commands.bench(...) return ms.load "lua.bench.bench"(...) end

local function run(name, options, ...)
  if options.intrinsics then ms.take_intrinsics(options.intrinsics) end
  return commands[name](options, ...)
end

-- Runs a command; a mistake of the user's is a message and its status.
return function(...)
  local ok, result = xpcall(run, function(e)
    if type(e) == "table" and e.status then return e end
    return {status = FAILED, message = tostring(e)}
  end, ...)
  if ok then return result end
  if type(result) ~= "table" then result = {status = FAILED, message = tostring(result)} end -- memory ran out
  local helped, message = pcall(function()
    local message = result.message and ms.load "lua.lib.shortened"(result.message)
    return ms.load "lua.lib.nearest".hint(message)
  end)
  return result.status, helped and message or result.message -- no file may be opened any more
end
