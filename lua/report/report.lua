-- `msched report`: what the store knows of tasks, as one page of HTML that needs nothing besides itself; or two stores
-- side by side; or a network (network.lua).
local ms = msched
local cli, html, facts, part, steps = ms.load "lua.cli.cli", ms.load "lua.report.html", ms.load "lua.report.facts",
  ms.load "lua.report.task", ms.load "lua.report.steps"
local roofline = ms.load "lua.report.roofline"
local report = {}

local MOST_WHOLE = 4 -- tasks whose steps are shown with all lines of their functions: what makes a page large

-- ---- Logs -----------------------------------------------------------------------------------------------------------

-- The events in which tasks end, by the task's name, of files that `tune --json` wrote. Damaged lines are none.
local function read_logs(paths)
  local by_task = {}
  for _, path in ipairs(paths) do
    local file, message = io.open(path)
    if not file then cli.refuse("%s", message) end
    local start = file:read(4096) or ""
    message = ms.not_text(path, start, "--log takes what `msched tune --json` printed")
    if message then cli.refuse("%s", message) end
    file:seek "set"
    for line in file:lines() do
      local task = line:find '"event":"end"' and line:match '"task":"([^"]*)"'
      if task then
        local event = {}
        for key, value in line:gmatch '"([%w_]+)":(%-?[%d.]+[e%d+-]*)' do event[key] = tonumber(value) end
        by_task[task] = by_task[task] or {}
        table.insert(by_task[task], event)
      end
    end
    file:close()
  end
  return by_task
end

-- ---- Parts of the page ----------------------------------------------------------------------------------------------

-- The oldest and the newest record's day.
local function days_of(tasks)
  local first, last = math.huge, -math.huge
  for _, task in ipairs(tasks) do
    for _, r in ipairs(task.records) do first, last = math.min(first, r.when), math.max(last, r.when) end
  end
  return first <= last and os.date("!%Y-%m-%d", first) .. " to " .. os.date("!%Y-%m-%d", last) or "none"
end

local function environment(store, tasks, measured)
  local host, versions = ms.host(), {}
  for _, task in ipairs(tasks) do for _, r in ipairs(task.records) do versions[r.versions] = true end end
  local rows = {
    {"store", html.text(store:path())}, {"records of", html.text(days_of(tasks))},
    {"measured by", html.text(table.concat(ms.sorted_keys(versions), "; "))},
    {"this page by", html.text(ms.versions())},
    {"this machine", html.text(ms.target("native").text)},
    {"its cpu", html.text(host.llvm_cpu .. ", as LLVM calls it")},
  }
  for _, m in ipairs(measured) do
    rows[#rows + 1] = {"measured peak", html.text(m.text)}
  end
  return html.element("h2", {id = "environment"}, "Environment")
    .. html.table("Where this comes from", {"what", "value"}, rows)
end

local FILTERED = 3 -- tasks from which on they can be filtered

-- The rate, which sorts by how many operations a second it is.
local function rate_cell(task, record)
  local text = cli.rate_text(task.work, record.seconds)
  return text ~= "" and html.number(math.max(task.work.operations, 1) / record.seconds, text) or ""
end

local function overview(tasks)
  local rows = {}
  for i, task in ipairs(tasks) do
    local b, share = task.best, roofline.share(task)
    rows[i] = {html.element("a", {href = "#" .. task.place}, html.text(task.name)), html.text(task.target),
               html.number(task.total, tostring(task.total)),
               html.number(task.counts.failed, tostring(task.counts.failed)), b and part.time(b.seconds) or "none",
               b and rate_cell(task, b) or "",
               share and html.number(share, string.format(share < 0.1 and "%.1f %%" or "%.0f %%", 100 * share)) or "",
               html.text(share and (task.limit and task.limit.name or "what no kernel passes") or "")}
  end
  return html.table("Tasks; the limit is what was measured, for this page or with the best, or else what no kernel \z
                     passes", {"task", "target", "records", "failed", "best", "rate", "of the limit", "which is"}, rows,
                    FILTERED)
end

-- Whether what ran a task's best is here: this machine, or a device of its name.
local function is_here(task)
  if not task.machine.arch then return pcall(ms.target, task.target, {runs = true}) end
  local name = (task.best.device or {}).name
  for _, device in ipairs(ms.devices()) do if device.name == name then return true end end
  return false, string.format("%s is not found here", name or "its device")
end

-- What runs a task's kernels was measured to do: its limit (limits.lua), operations and bytes a second at it, name,
-- text. nil and why it is not known.
local function measured_limit(limits, task)
  local here, why = is_here(task)
  if not here then return nil, tostring(why):match "[^\n]*" end
  local read, trace = pcall(ms.read_trace, task.best.trace)
  local ok, limit = pcall(limits.of, limits, task.func, task.machine, nil, read and {trace} or nil)
  if not ok then return nil, tostring(limit):match "[^\n]*" end
  if not limit then return nil, "it is not known how fast its operations are done" end
  local m = {limit = limit, name = task.machine.arch and task.best.device.name or "this machine",
             bytes = task.work.bytes / limit.memory.seconds,
             operations = limit.arithmetic and task.work.operations / limit.arithmetic.seconds or math.huge}
  local parts =
    {limit.arithmetic and ms.load "lua.cli.rates".operations_text(task.work, limit.arithmetic.seconds) .. " of "
     .. limit.arithmetic.name or nil}
  parts[#parts + 1] = string.format("%.1f GB/s of %s", m.bytes / 1e9, limit.memory.name)
  m.text = table.concat(parts, ", ") .. (task.machine.arch and ", on " .. m.name or "")
  return m
end

-- A function that gives that of a task, for the page's rows of what was measured each text once.
local function measurer()
  local limits = ms.load "lua.bench.limits".open()
  return function(task)
    if not task.machine or not task.best or not task.func then return nil end
    return measured_limit(limits, task)
  end
end

-- An id of each task's part of the page that stays its own when others come.
local function place_tasks(tasks)
  local nth = {}
  for _, task in ipairs(tasks) do
    local place = "task-" .. facts.hex_of(task.id):sub(1, 12)
    nth[place] = (nth[place] or 0) + 1
    task.place = nth[place] == 1 and place or place .. "-" .. nth[place]
  end
end

-- All that a task's part shows: where it is as it was, so is the part.
local function key_of(task, options, whole)
  local parts = {task.name, task.target, tostring(whole), tostring(options.logged and #options.logged)}
  for i, r in ipairs(task.records) do
    parts[4 + i] = string.format("%s %s %.17g %s", r.id, r.status, r.seconds, r.busy)
  end
  return table.concat(parts, "\n")
end

-- A task's part; kept: parts of a page before this one, by their places; nil: there was none.
local function part_of(store, task, options, kept)
  if not kept then return part.page(store, task, options) end
  local k, key = kept[task.place] or {}, key_of(task, options, options.whole)
  kept[task.place], options.kept = k, k
  if k.key ~= key then k.html, k.key = part.page(store, task, options), key end
  return k.html
end

-- The body of the page, and its tasks; kept: as in part_of.
local function body_of(store, names, options, kept)
  local tasks, bare = facts.of(store, names)
  local logs, measure, all, seen, measured, why = read_logs(options.log or {}), options.peak and measurer(), {}, {}, {},
    {}
  place_tasks(tasks)
  for i, task in ipairs(tasks) do
    if measure then measured[i], why[i] = measure(task) end
    task.limit = measured[i] and measured[i].limit
      or task.best and ms.load "lua.cli.store.stores".limit_of(task.best, task.records) or nil
  end
  local parts = {html.element("h1", {}, "Report of msched"),
                 html.paragraph("Made from " .. store:path() .. "; times are medians.", "soft")}
  if #tasks == 0 then
    parts[#parts + 1] = html.paragraph "There is no record: nothing has been measured. `msched tune FILE` does."
  end
  if #bare > 0 then parts[#parts + 1] = html.paragraph("Without a record: " .. table.concat(bare, ", ") .. ".") end
  if #tasks > 0 then parts[#parts + 1] = overview(tasks) .. steps.choice() end
  for i, task in ipairs(tasks) do
    local m = measured[i]
    if m and not seen[m.text] then
      seen[m.text] = true
      all[#all + 1] = m
    end
    parts[#parts + 1] = part_of(store, task, {place = task.place, logged = logs[task.name] or {}, measured = m,
                                              not_measured = why[i], whole = i <= MOST_WHOLE}, kept)
  end
  parts[#parts + 1] = environment(store, tasks, all)
  return table.concat(parts, "\n"), tasks
end

-- ---- Two stores -----------------------------------------------------------------------------------------------------

-- Tasks of two lists that are the same workload on the same target, {a, b}, one of them nil where only one store has
-- it.
local function pairs_of(a, b)
  local list, by_key = {}, {}
  for side, tasks in ipairs {a, b} do
    for _, task in ipairs(tasks) do
      local key = task.id .. task.target
      if not by_key[key] then
        by_key[key] = {}
        list[#list + 1] = by_key[key]
      end
      by_key[key][side] = task
    end
  end
  return list
end

-- All records of a task as one curve, whatever run they are of.
local function curve_of(task, name)
  local points, best = {}, nil
  for i, r in ipairs(task.records) do
    if r.status == "measured" and (not best or r.seconds < best) then best = r.seconds end
    points[i] = {trial = i, best = best}
  end
  return {name = name, points = points}
end

local function compare_row(pair)
  local a, b = pair[1] and pair[1].best, pair[2] and pair[2].best
  local either = pair[1] or pair[2]
  local function side(task) return task and html.number(task.total, tostring(task.total)) or "–" end
  return {html.text(either.name), html.text(either.target), side(pair[1]), a and part.time(a.seconds) or "–",
          side(pair[2]), b and part.time(b.seconds) or "–",
          a and b and html.number(a.seconds / b.seconds, string.format("%.3f", a.seconds / b.seconds)) or "–"}
end

local function comparison(stores, names)
  local lists = {}
  for i, store in ipairs(stores) do lists[i] = facts.of(store, i == 1 and names or {}) end
  local all, rows, figures, ratios = pairs_of(lists[1], lists[2]), {}, {}, {}
  if #names > 0 then
    for i = #all, 1, -1 do if not all[i][1] then table.remove(all, i) end end
  end
  for i, pair in ipairs(all) do
    rows[i] = compare_row(pair)
    if pair[1] and pair[2] then
      figures[#figures + 1] = html.element("h2", {}, html.text(pair[1].name)) .. html.paragraph(pair[1].target, "soft")
        ..
        part.curve({curve_of(pair[1], "A"), curve_of(pair[2], "B")}, "trial", "The best so far, by trial", "records")
      if pair[1].best and pair[2].best then
        ratios[#ratios + 1] = math.log(pair[1].best.seconds / pair[2].best.seconds)
      end
    end
  end
  local sum = 0
  for _, r in ipairs(ratios) do sum = sum + r end
  local parts = {html.element("h1", {}, "Two stores of msched"),
                 html.paragraph(string.format("A is %s, B is %s.", stores[1]:path(), stores[2]:path()))}
  parts[#parts + 1] = #rows == 0 and html.paragraph "Neither has a record."
    or html.table("Tasks of both",
                  {"task", "target", "records of A", "best of A", "records of B", "best of B", "A's time / B's"}, rows)
  if #ratios > 0 then
    local mean = math.exp(sum / #ratios)
    parts[#parts + 1] = html.element("p", {}, "Geometric mean of ", cli.count_text(#ratios, "ratio"), ": ",
                                     html.number(mean, string.format("%.3f", mean)), "; above 1, B is faster.")
  end
  return html.page("Two stores of msched", table.concat(parts, "\n") .. table.concat(figures, "\n")), lists[1], lists[2]
end

-- ---- The command ----------------------------------------------------------------------------------------------------

-- What a page that is followed is made of, again and again: each time the store is opened, which others write and may
-- replace.
local function maker(options, words)
  local kept = {}
  return function(again)
    if again then kept = {} end
    local store = cli.open_store(options.db, "read")
    local path = store:path()
    local ok, body, tasks = pcall(body_of, store, table.move(words, 1, #words, 1, {}), options, kept)
    store:close()
    if not ok then error(body, 0) end
    return body, tasks, path
  end
end

function report.run(options, words)
  if not options.output then cli.misuse("say where to with -o FILE") end
  if words[1] and cli.is_network(words[1]) then
    if words[2] then cli.misuse("%s is a network: a page is of one alone", words[1]) end
    for _, other in ipairs {"follow", "compare", "log", "until-idle"} do
      if options[other] then cli.misuse("--%s is not for networks", other) end
    end
    return ms.load "lua.report.network".run(options, words[1])
  end
  cli.refuse_of_network(options)
  if options.dim then cli.misuse "--dim is for networks, FILE.onnx" end
  if options["until-idle"] and not options.follow then cli.misuse("--until-idle goes with --follow") end
  for _, other in ipairs {"compare", "peak"} do -- what is measured would be measured beside a run
    if options.follow and options[other] then cli.misuse("--follow does not go with --%s", other) end
  end
  if options.follow then return ms.load "lua.report.follow".run(options, maker(options, words)) end
  if options.compare and #words < 2 then
    cli.misuse("--compare takes two stores: msched report --compare A.db B.db -o FILE")
  end
  for _, other in ipairs {"db", "log", "peak"} do
    if options.compare and options[other] then cli.misuse("--compare does not go with --%s", other) end
  end
  local text, tasks, others
  if options.compare then
    local stores = {cli.open_store(words[1], "read"), cli.open_store(words[2], "read")}
    text, tasks, others = comparison(stores, table.move(words, 3, #words, 1, {}))
  else
    text, tasks = body_of(cli.open_store(options.db, "read"), words, options)
    text = html.page("msched report", text)
  end
  cli.write_file(options.output, text)
  local records = 0
  for _, list in ipairs {tasks, others} do for _, task in ipairs(list) do records = records + task.total end end
  if options.json then cli.put_json {file = options.output, tasks = #tasks, records = records, bytes = #text}
  else
    print(string.format("%s: %s, %s, %.0f KiB", options.output, cli.count_text(#tasks, "task"),
                        cli.count_text(records, "record"), #text / 1024))
  end
  return cli.DONE
end

return report
