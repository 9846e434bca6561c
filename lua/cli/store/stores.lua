-- The store for people: `msched top`, `diff`, `db`; which of its workloads and records are meant, and their texts.
local ms = msched
local cli = ms.load "lua.cli.cli"
local stores = {}

local DONE, FAILED = cli.DONE, cli.FAILED
local refuse, misuse, put_json, time_text, rate_text, count_text, open_store = cli.refuse, cli.misuse, cli.put_json,
  cli.time_text, cli.rate_text, cli.count_text, cli.open_store
local print, rates = cli.print, ms.load "lua.cli.rates"
local record_code = ms.load "lua.cli.store.record_code"
local by_target, schedule_of = ms.load "lua.lib.records".by_target, ms.load "lua.lib.records".schedule_of

-- ---- One record -----------------------------------------------------------------------------------------------------

-- As store:find finds it.
local function find(store, words)
  local ok, r = pcall(store.find, store, words)
  if not ok then refuse("%s", tostring(r)) end
  return r or refuse("no record `%s` in %s", words, store:path())
end

-- The record to use of a file's function, with numbers for its variables: what is pinned, or else the fastest.
local function record_of_file(store, path, dims, weights)
  local func, why = cli.function_of(path, {}, nil, dims, weights)
  if not func then refuse("%s", why) end
  func = ms.without_empty(func) or func
  local best
  for _, w in ipairs(store:workloads(func)) do
    for _, t in ipairs(store:tasks(w.id)) do
      local seconds = t.pinned and 0 or t.seconds
      if (t.pinned or t.best) and (not best or seconds < best.seconds) then
        best = {id = t.pinned or t.best, seconds = seconds}
      end
    end
  end
  if best then return store:find(best.id) end
  refuse("no record of %s%s of %s in %s: `msched tune` makes some", func:name(),
         dims and " with " .. table.concat(dims, " ") or "", path, store:path())
end

-- The record that a command's only argument names: by its ID, as the best of the store's only task (`best`), as that of
-- a task by its name, or as that of a file's function, where dims are what --dim says, and weights what --weights does.
function stores.record_of(store, ids, dims, weights)
  if not ids[1] then misuse("a record's ID, a task's name or `best` is expected; `msched top` lists them") end
  if ids[2] then misuse("one record's ID is expected, not `%s` too", ids[2]) end
  if cli.is_file(ids[1]) then return record_of_file(store, ids[1], dims, weights) end
  if weights then
    misuse("--weights is for a file's function: `%s` is a record, which says what is constant", ids[1])
  end
  if dims then misuse("--dim is for a file's function: `%s` is a record, whose shapes are numbers", ids[1]) end
  return find(store, ids[1])
end

-- What is to be known of a record besides its time.
function stores.remarks_on(r)
  local list = cli.list {}
  if r.pinned then list[#list + 1] = "pinned" end
  if r.noted or r.trace and ms.load "search.fixed_order".has_note(r) then list[#list + 1] = "fixed order" end
  if r.unsafe then list[#list + 1] = "unsafe" end
  if r.busy then list[#list + 1] = "busy machine" end
  if r.versions ~= ms.versions() then list[#list + 1] = "by " .. r.versions end
  return list
end

-- What a record for a GPU keeps of the device and of its code, of that the most that any kernel takes; nil: nothing.
function stores.device_text(device)
  if not device then return end
  local parts = {}
  local function add(format, ...) parts[#parts + 1] = string.format(format, ...) end
  if device.name then add("%s", device.name) end
  if device.driver then add("driver %.0f.%.0f", device.driver // 1000, device.driver % 1000 // 10) end
  if device.clock and device.memory_clock then
    add("at %.2f GHz, its memory %.2f GHz%s", device.clock / 1e9, device.memory_clock / 1e9,
        device.slowed and "; slowed, for heat or power" or "")
  end
  if device.timing_clock then
    add("timed at %.2f GHz%s", device.timing_clock / 1e9,
        device.raw_seconds
          and string.format(", in %s, scaled to the clock of the run's first", time_text(device.raw_seconds)) or "")
  end
  if device.uncaptured then add("timed by launches: %s", device.uncaptured) end
  if device.others then
    add(device.others == 1 and "another process had the device too" or "%.0f other processes had the device too",
        device.others)
    if device.others_bytes then add("with %.1f GiB of its memory", device.others_bytes / (1 << 30)) end
  end
  if device.memory_left then add("%.1f GiB of its memory were left", device.memory_left / (1 << 30)) end
  if device.registers and device.spilled_bytes then
    add("%.0f registers, %.0f bytes spilled", device.registers, device.spilled_bytes)
  end
  if device.stack_bytes and device.shared_bytes then
    add("%.0f bytes of stack, %.0f of shared memory", device.stack_bytes, device.shared_bytes)
  end
  return #parts > 0 and table.concat(parts, "; ") or nil
end

-- ---- Which are meant ------------------------------------------------------------------------------------------------

-- The operator that a name as matmul_64x64x64 is of: what stands before its numbers.
local function operator_of(name) return name:match "^(%a[%w_]-)_%d[%w_]*$" or name end

local function shape_text(p) return table.concat(p.shape or {}, "x") end

-- Other text is of no argument's shape, and would choose no workload.
local function check_shape(shape)
  for extent in (shape .. "x"):gmatch "(.-)x" do
    if not extent:find "^%d+$" then misuse("--shape: `%s` is no shape: extents are expected, as 64x128", shape) end
  end
end

local function has_shape(func, shape)
  for _, p in ipairs(func:params()) do if shape_text(p) == shape then return true end end
  return false
end

-- The start of a day written as 2026-11-30, in seconds since 1970.
local function day_of(text)
  local year, month, day = text:match "^(%d%d%d%d)%-(%d%d)%-(%d%d)$"
  local made = year and os.time {year = tonumber(year), month = tonumber(month), day = tonumber(day), hour = 0}
  if not made or os.date("%Y-%m-%d", made) ~= text then
    misuse("--since: a day as 2026-11-30 is expected, not \"%s\"", text)
  end
  return made
end

-- The function of a workload that the store lists; nil and why, where it cannot be read.
local function function_of(store, w)
  local ok, func = pcall(store.get_workload, store, w.id)
  if ok then return func end
  return nil, tostring(func)
end

-- Summaries of tasks by their workload, from one walk over them.
local function tasks_by_workload(store)
  local of = {}
  for _, t in ipairs(store:tasks()) do
    of[t.workload] = of[t.workload] or {}
    table.insert(of[t.workload], t)
  end
  return of
end

-- Of those of a workload, in order of their targets: those of one target, by its own text or by another that means the
-- same; all without one.
local function tasks_of(all, target)
  local function of(text)
    local list = {}
    for _, t in ipairs(all) do if not text or t.target == text then list[#list + 1] = t end end
    return list
  end
  local list = of(target)
  if target and #list == 0 then
    local known, meant = pcall(ms.target, target)
    list = known and of(meant.text) or list
  end
  table.sort(list, function(a, b) return a.target < b.target end)
  return list
end

-- Whether a record is of a device with the text in its name, or of a CPU with it in its target; case does not matter.
local function is_of_device(r, text)
  return (r.device and r.device.name or r.target):lower():find(text:lower(), 1, true) ~= nil
end

-- Those of a name, or of an operator with its arguments, of which there is one at least; all without a name.
local function workloads_named(store, name)
  local all = store:workloads()
  if not name then return all end
  local ok, named = pcall(ms.load "lua.lib.records".workloads, store, name)
  if not ok then refuse("%s", tostring(named)) end
  if #named > 0 then return named end
  local names = {}
  for i, w in ipairs(all) do names[i] = w.name end
  refuse("%s has no workload `%s`%s; `msched top` lists them", store:path(), name,
         ms.load "lua.lib.nearest".meant(name, names))
end

local function arguments_of(func)
  local list = cli.list {}
  for i, p in ipairs(func and func:params() or {}) do
    list[i] = p.type .. (p.shape and "[" .. table.concat(p.shape, ", ") .. "]" or "")
  end
  return list
end

-- The workloads that --operator, --shape and a name choose, {id, name, work, arguments, why, tasks, records, count}, in
-- order of name, one at a time: what the function does, as cli.work_of says it; records that --target, --device and
-- --since choose, the fastest first, and no more than `most`; count all of these. Workloads without such a record are
-- left out where any is given. Without --device and --since, tasks say as much as their records do. With bests, as
-- store:bests gives them, `lines` in the place of the records, where bests suffice.
local function selected(store, options, name, most, bests)
  if options.shape then check_shape(options.shape) end
  local since, device, list = options.since and day_of(options.since), options.device, workloads_named(store, name)
  local note = ms.load "search.fixed_order".note
  local tasks_known, outlines = not name and tasks_by_workload(store), not name and store:outlines() or {}
  table.sort(list, function(a, b) return a.name ~= b.name and a.name < b.name or a.name == b.name and a.id < b.id end)
  local function chosen(w)
    if options.operator and operator_of(w.name) ~= options.operator then return end
    local outline, func, why = outlines[w.id], nil, nil
    if not outline or options.shape then func, why = function_of(store, w) end
    if not options.shape or func and has_shape(func, options.shape) then
      local all = not tasks_known and store:tasks(w.id) or tasks_known and tasks_known[w.id] or {}
      local tasks, records, count = tasks_of(all, options.target), {}, 0
      local target = options.target and tasks[1] and tasks[1].target
      local by_tasks = not since and not device
      for _, t in ipairs(tasks) do count = count + t.records end
      local work = cli.work_of(func or outline)
      local lines = bests and by_tasks
        and bests:lines(w.id, target or nil, most, work.operations, work.unit, work.bytes) or nil
      local read = not lines and count > 0
      for _, r in ipairs(read and store:records {workload = w.id, target = target or nil, note = note,
                                                 most = by_tasks and most or nil} or {}) do
        if (not since or r.when >= since) and (not device or is_of_device(r, device)) then records[#records + 1] = r end
      end
      if not by_tasks then count = #records end
      if count > 0 or by_tasks and not options.target then
        return {id = w.id, name = w.name, work = work, why = why, lines = lines,
                arguments = func and arguments_of(func) or cli.list(outline and outline.arguments or {}),
                tasks = by_tasks and tasks, records = records, count = count}
      end
    end
  end
  local at = 0
  return function()
    while at < #list do
      at = at + 1
      local w = chosen(list[at])
      if w then return w end
    end
  end
end

-- A line of many: unlike print's, it does not reach the system by itself.
local function put_line(text) io.stdout:write(ms.visible(text), "\n") end

local function limit_with(r)
  local known = r.roofline
  return known and known.limit and (known.limit_seconds or 0) > 0
    and {name = known.limit, seconds = known.limit_seconds} or nil
end

-- The limit that the run measured which measured a record; else what a later or earlier run did on the same target and
-- device: a limit is the function's, whatever its schedule. nil: it is not known. records: of the workload, or a
-- function that gives them.
function stores.limit_of(r, records)
  local limit, latest = limit_with(r), nil
  if limit then return limit end
  local function device_of(other) return other.device and other.device.name end
  for _, other in ipairs(type(records) == "function" and records() or records) do
    if other.target == r.target and device_of(other) == device_of(r) and limit_with(other)
        and (not latest or other.when > latest.when) then
      latest = other
    end
  end
  return latest and limit_with(latest)
end

-- ---- top ------------------------------------------------------------------------------------------------------------

local function result_text(work, r, records)
  if r.status == "failed" then return "failed: " .. r.reason end
  if r.status == "unmeasured" then return "not measured  " .. r.target end
  local limit = stores.limit_of(r, records)
  local share = r.status == "measured" and rates.share_text(limit, r.seconds)
  return string.format("%s%s  %s  %s%s", r.status == "censored" and "over " or "", time_text(r.seconds),
                       rate_text(work, r.seconds), share and share .. "  " or "", r.target)
end

function stores.top(options, rest)
  local store, most = open_store(options.db, "read"), options.k or 10
  if most < 1 then misuse("-k: a number of at least 1 is expected") end
  local bests = not options.json and not rest[1] and store:bests(most) or nil
  for w in selected(store, options, rest[1], most, bests) do
    local work, all = w.work, #w.records == w.count and w.records
    local function others()
      all = all or store:records {workload = w.id}
      return all
    end
    if not options.json then put_line(w.name .. ": " .. count_text(w.count, "record")) end
    if w.lines then io.stdout:write(w.lines) end
    for i, r in ipairs(table.move(w.records, 1, math.min(most, #w.records), 1, {})) do
      local short, limit = r.short_id, stores.limit_of(r, others) or {}
      if options.json then
        put_json {task = w.name, id = r.id, short_id = short, status = r.status, seconds = r.seconds, target = r.target,
                  when = r.when, device = r.device, operations = work.operations, unit = work.unit, bytes = work.bytes,
                  limit = limit.name, limit_seconds = limit.seconds, remarks = stores.remarks_on(r)}
      else
        local remarks = table.concat(stores.remarks_on(r), ", ")
        put_line(string.format("  %3d  %s  %s%s", i, short, result_text(work, r, others),
                               remarks ~= "" and "  (" .. remarks .. ")" or ""))
      end
    end
  end
  return DONE
end

-- ---- diff -----------------------------------------------------------------------------------------------------------

local function changes_of(a, b)
  local explain, list = ms.load "lua.lib.explain", cli.list {}
  local all = explain.difference(explain.lines_of(a), explain.lines_of(b))
  for _, c in ipairs(all) do if c[1] ~= " " then list[#list + 1] = c[1] .. c[2] end end
  return list, all
end

local function print_difference(what, all, count)
  print(what .. (count == 0 and ": the same" or ":"))
  if count > 0 then ms.load "lua.lib.explain".print_changes(all, 1, ms.is_terminal() and not os.getenv "NO_COLOR") end
end

local COUNTED = {{"instructions", "instructions"}, {"multiply_adds", "multiply-adds"}, {"arithmetic",
                 "other arithmetic"}, {"loads", "loads"}, {"stores", "stores"}, {"spills", "of the stack"}}

local function counts_text(counts)
  local parts = {}
  for i, c in ipairs(COUNTED) do parts[i] = string.format("%d %s", counts[c[1]], c[2]) end
  return table.concat(parts, ", ")
end

-- What is compared of a record's code: of a CPU the innermost loop that does most, labels without their numbers, and
-- what it holds; of a GPU the kernels' source and what they take: {text, lines, counts =}.
local function compared_code_of(r, func, sch)
  local known, target = pcall(ms.target, r.target)
  if not known then refuse("--assembly: record %s is of `%s`, which is not known here", r.id:sub(1, 12), r.target) end
  local function must(text, message)
    return text or refuse("record %s: its kernel cannot be built here: %s", r.id:sub(1, 12), tostring(message))
  end
  if target.arch then
    local code, lines = record_code.of(func, sch, r.target), {}
    must(code.kernel, code.failure)
    local text = must(record_code.text(code.kernel))
    for i, k in ipairs(code.kernels) do lines[i] = record_code.kernel_text(k) end
    return {text = text:gsub("^/%*.-%*/\n", ""), lines = lines}
  end
  local text = must(record_code.text_of(sch:func(), r.target))
  local assembly = ms.load "lua.report.assembly"
  local loop = assembly.inner_loops(text)[1] or {lines = {}, counts = assembly.count {}}
  local code = table.concat(loop.lines, "\n"):gsub("LBB%d+_%d+", "LBB"):gsub("\t", "  ")
  return {text = code, counts = loop.counts, lines = {counts_text(loop.counts)}}
end

function stores.diff(options, ids)
  if #ids ~= 2 then misuse("two records' IDs are expected, or tasks' names for their best; `msched top` lists them") end
  local store = open_store(options.db, "read")
  local records, traces, scripts, works, codes = {}, {}, {}, {}, {}
  for i = 1, 2 do
    local r = find(store, ids[i])
    local func, trace, sch = schedule_of(store, r)
    records[i], traces[i], scripts[i], works[i] = r, trace:text(), sch:script(), cli.work_of(func)
    codes[i] = options.assembly and compared_code_of(r, func, sch)
  end
  local trace, all_of_trace = changes_of(traces[1], traces[2])
  local module, all_of_module = changes_of(scripts[1], scripts[2])
  local code, all_of_code
  if options.assembly then
    if not codes[1].counts ~= not codes[2].counts then
      refuse("--assembly: one record is of a CPU, the other of a GPU")
    end
    code, all_of_code = changes_of(codes[1].text, codes[2].text)
  end
  if options.json then
    put_json {a = records[1].id, b = records[2].id, seconds_a = records[1].seconds, seconds_b = records[2].seconds,
              trace = trace, module = module, assembly = code, counts_a = code and codes[1].counts,
              counts_b = code and codes[2].counts}
    return DONE
  end
  for i, mark in ipairs {"-", "+"} do
    print(string.format("%s %s  %s", mark, store:short_id(records[i].key), result_text(works[i], records[i], records)))
  end
  if records[1].workload ~= records[2].workload then print "they are records of different workloads" end
  print_difference("trace", all_of_trace, #trace)
  print_difference("module", all_of_module, #module)
  if options.assembly then
    print_difference(codes[1].counts and "inner loop" or "source", all_of_code, #code)
    for i, mark in ipairs {"-", "+"} do
      for _, line in ipairs(codes[i].lines) do cli.print_lines("  " .. mark .. " " .. line) end
    end
  end
  return DONE
end

-- ---- db -------------------------------------------------------------------------------------------------------------

local actions = {}

function actions.check(options)
  local problems = ms.check_pages(options.db)
  if problems == 0 then problems = open_store(options.db, "read"):check() end
  if options.json then
    put_json {problems = problems}
  else
    print(problems == 0 and "clean" or count_text(problems, "problem"))
  end
  return problems == 0 and DONE or FAILED
end

-- The facts of a workload on a target: best, pinned (ids), records, last (seconds since 1970), devices that records
-- name.
local function summary_of(store, t)
  local best, last, pinned, devices, seen = t.records[1].status == "measured" and t.records[1] or nil, 0, nil,
    cli.list {}, {}
  for _, r in ipairs(t.records) do
    local device = r.device and r.device.name
    if device and not seen[device] then devices[#devices + 1], seen[device] = device, true end
    last = math.max(last, r.when)
    if r.pinned then pinned = r end
  end
  return {target = t.target, records = #t.records, best = best and best.id, seconds = best and best.seconds,
          last = last, pinned = pinned and pinned.id, devices = devices, short = best and store:short_id(best.key),
          short_pinned = pinned and store:short_id(pinned.key)}
end

-- The same of a task of the store's.
local function summary_of_task(store, t)
  return {target = t.target, records = t.records, best = t.best, seconds = t.seconds, last = t.last, pinned = t.pinned,
          devices = cli.list(t.devices), short = t.best and store:short_id(t.best_key),
          short_pinned = t.pinned and store:short_id(t.pinned_key)}
end

local function print_summary(work, s)
  local parts = {s.target, count_text(s.records, "record"), s.seconds and string.format("best %s %s %s", s.short,
                 time_text(s.seconds), rate_text(work, s.seconds)) or "nothing was measured"}
  if #s.devices > 0 then parts[#parts + 1] = "on " .. table.concat(s.devices, " and ") end
  if s.short_pinned then parts[#parts + 1] = "pinned " .. s.short_pinned end
  parts[#parts + 1] = "last of " .. os.date("%Y-%m-%d", s.last)
  put_line("  " .. table.concat(parts, ", "))
end

function actions.list(options)
  local store = open_store(options.db, "read")
  for w in selected(store, options, nil, 0) do
    local targets, work = cli.list {}, w.work
    for i, t in ipairs(w.tasks or by_target(w.records)) do
      targets[i] = (w.tasks and summary_of_task or summary_of)(store, t)
    end
    if options.json then
      for _, s in ipairs(targets) do s.short, s.short_pinned = nil, nil end
      put_json {task = w.name, operator = operator_of(w.name), arguments = w.arguments,
                operations = work.operations, records = w.count, targets = targets}
    else
      put_line(string.format("%s: %s; %s", w.name, count_text(w.count, "record"),
                             w.why or table.concat(w.arguments, ", ")))
      for _, s in ipairs(targets) do print_summary(work, s) end
    end
  end
  return DONE
end

function actions.words(options, words)
  local list = open_store(options.db, "read"):words(words[1] or "")
  if options.json then put_json {words = cli.list(list)} end
  for _, word in ipairs(not options.json and list or {}) do put_line(word) end
  return DONE
end

function actions.delete(options, ids)
  if not ids[1] then misuse("say which record's ID; `msched top` lists them") end
  local store = open_store(options.db, "change")
  for _, each in ipairs(ids) do
    local id = store:delete(each)
    if options.json then put_json {deleted = id} else print("record " .. id .. " deleted") end
  end
  return DONE
end

-- The one to use of its workload on its target: another that was is so no more.
local function pin(store, r)
  if r.pinned then store:pin(r.id, false) end
  local function others()
    for _, t in ipairs(store:tasks(r.workload)) do if t.target == r.target then return t.pinned end end
  end
  for id in others do store:pin(id, false) end
  store:pin(r.id, true)
end

local function set_pins(options, ids, pinned)
  if not ids[1] then misuse("say which record's ID, or which task's best by its name; `msched top` lists them") end
  local store = open_store(options.db, "change")
  for _, each in ipairs(ids) do
    local r = find(store, each)
    if pinned and r.status == "failed" then refuse("record %s failed: %s", r.id:sub(1, 12), r.reason) end
    store:batch(function()
      if pinned then pin(store, r) else store:pin(r.id, false) end
    end)
    if options.json then
      put_json {record = r.id, pinned = pinned}
    else
      print(string.format("record %s is %s", r.id, pinned and "pinned" or "pinned no more"))
    end
  end
  return DONE
end

function actions.pin(options, ids) return set_pins(options, ids, true) end
function actions.unpin(options, ids) return set_pins(options, ids, false) end

-- Days, weeks or years, as 90d, 12w, 2y: the time so long ago, in seconds since 1970.
local DAYS = {d = 1, w = 7, y = 365}
local function time_before(text)
  local count, unit = text:match "^(%d%d?%d?%d?%d?)([dwy])$"
  if not count then misuse("--older: days, weeks or years are expected, as 90d, 12w or 2y, not \"%s\"", text) end
  return math.max(1, os.time() - tonumber(count) * DAYS[unit] * 86400)
end

-- Deletes what all conditions given hold of, but the fastest of each workload on each target, and what is pinned.
function actions.prune(options)
  local chosen = options.older or options.device or options.within
  local rule = {keep = options.k or chosen and 1 or 10, before = options.older and time_before(options.older),
                within = options.within, device = options.device, dry = options["dry-run"]}
  if rule.keep < 1 then misuse("-k: a number of at least 1 is expected") end
  if rule.within and rule.within < 1 then
    misuse("--within: a number of at least 1 is expected: how many times the best's time a record may take")
  end
  local store, kept, deleted, tasks = open_store(options.db, rule.dry and "read" or "change"), 0, 0, cli.list {}
  for w in selected(store, {operator = options.operator, shape = options.shape, target = options.target}, nil, 0) do
    for _, t in ipairs(w.tasks) do
      rule.workload, rule.target = t.workload, t.target
      local stay, go = store:prune(rule)
      kept, deleted = kept + stay, deleted + go
      if rule.dry and go > 0 then
        tasks[#tasks + 1] = {task = w.name, target = t.target, kept = stay, deleted = go}
        if not options.json then
          put_line(string.format("%s on %s: %d of %s would be deleted", w.name, t.target, go,
                                 count_text(t.records, "record")))
        end
      end
    end
  end
  if not rule.dry then store:refresh() end
  if options.json then put_json {kept = kept, deleted = deleted, tasks = rule.dry and tasks or nil}
  elseif rule.dry then
    print(string.format("%s kept, %d would be deleted; nothing was", count_text(kept, "record"), deleted))
  else
    print(string.format("%s kept, %d deleted; `msched db compact` gives the space back", count_text(kept, "record"),
                        deleted))
  end
  return DONE
end

-- Takes another store in. Its refusals are shown, up to a number of them.
local function merge(store, path)
  local opened, from = pcall(open_store, path, "read")
  if not opened
      and tostring(type(from) == "table" and from.message or from):find("has the store open already", 1, true) then
    refuse("%s: a store is not merged into itself; --db names the one that takes the others in", path)
  elseif not opened then
    error(from, 0)
  end
  local ok, added, known, refused, why = pcall(store.merge, store, from)
  from:close()
  if not ok then refuse("%s: %s", path, tostring(added)) end
  local shown = 0
  for line in why:gmatch "[^\n]+" do
    shown = shown + 1
    cli.warn("msched db: ", path, ": ", line)
  end
  if shown < refused then
    cli.warn("msched db: ", path, ": ", count_text(refused - shown, "record"), " more refused")
  end
  return added, known, refused
end

-- Takes all of other stores in; of a record that is in several, the latest.
function actions.merge(options, paths)
  if not paths[1] then misuse("say which stores") end
  local store, added, known, refused = open_store(options.db), 0, 0, 0
  for _, path in ipairs(paths) do
    local new, old, bad = merge(store, path)
    added, known, refused = added + new, known + old, refused + bad
  end
  if options.json then put_json {added = added, known = known, refused = refused}
  else
    print(count_text(added, "record") .. " added"
          .. (known > 0 and string.format(", %d in several stores: the later one is kept", known) or "")
          .. (refused > 0 and ", " .. count_text(refused, "record") .. " refused" or "")
          .. (added + known + refused == 0 and ": " .. table.concat(paths, ", ") .. " has none" or ""))
  end
  return refused > 0 and FAILED or DONE
end

function actions.repair(options)
  local done = ms.repair(options.db)
  if options.json then
    put_json {repaired = done.needed, pages = done.pages, records = done.records, workloads = done.workloads,
              intrinsics = done.intrinsics, dropped = done.dropped, backup = done.backup}
  elseif not done.needed then
    print("clean: there is nothing to repair")
  else
    print(string.format("kept %s, %s, %s; dropped %d that are damaged; %s; the file as it was is %s",
                        count_text(done.records, "record"), count_text(done.workloads, "workload"),
                        count_text(done.intrinsics, "tensor intrinsic"), done.dropped,
                        count_text(done.pages, "damaged page"), done.backup))
  end
  return DONE
end

function actions.compact(options)
  open_store(options.db, "change"):compact()
  return DONE
end

function actions.backup(options, files)
  if not files[1] then misuse "say where to: a file that is not there yet" end
  local problems = open_store(options.db, "read"):backup(files[1])
  if options.json then put_json {backup = files[1], problems = problems}
  else
    print(files[1] .. ": " .. (problems == 0 and "a copy of the store, clean"
                               or "a copy of the store, with its " .. count_text(problems, "problem")))
  end
  return problems == 0 and DONE or FAILED
end

function actions.export(options, files)
  local store = open_store(options.db, "read")
  if options.csv and options.tvm then misuse "--csv does not go with --tvm" end
  if options.csv then
    store:export_csv(files[1] or "-")
    return DONE
  end
  if options.tvm then return ms.load "lua.cli.store.exchange".export(store, options.tvm, options.json) end
  store:export(files[1] or "-")
  return DONE
end

function actions.import(options, files)
  if not files[1] then misuse("say which file; - is standard input") end
  return ms.load "lua.cli.store.exchange".import(options, files[1])
end

-- How many words go with an action, where there is a limit.
local MOST_WORDS = {list = 0, words = 1, prune = 0, check = 0, repair = 0, compact = 0, backup = 1, export = 1,
                    import = 1}

function stores.db(options, words)
  local action = actions[words[1] or ""]
  if not action then 
    local known = ms.sorted_keys(actions)
    misuse("what to do is one of %s%s", table.concat(known, ", "),
           ms.load "lua.lib.nearest".meant(words[1] or "", known))
  end
  local most = MOST_WORDS[words[1]]
  if most and #words - 1 > most then
    local what = most == 0 and "no words" or words[1] == "words" and "one beginning" or "one file"
    misuse("%s takes %s, and not `%s` besides; --db names the store", words[1], what, words[most + 2])
  end
  return action(options, table.move(words, 2, #words, 1, {}))
end

return stores
