-- `msched report FILE.onnx`: a network's page: its graph coloured by time, its functions with their share of the
-- network's time and of the roofline, the calls one by one beside the whole, and the plan beside the untuned one.
local ms = msched
local cli, html, rates = ms.load "lua.cli.cli", ms.load "lua.report.html", ms.load "lua.cli.rates"
local network = ms.load "lua.cli.network"
local schedulers = ms.load "search.scheduler"
local report = {}

local RUNS = 9 -- that are looked into

local function time(seconds) return html.number(seconds, cli.time_text(seconds)) end
local function share_cell(share)
  return share and html.number(share, string.format(share < 0.1 and "%.1f %%" or "%.0f %%", 100 * share)) or ""
end

-- ---- The graph ---------------------------------------------------------------------------------------------------

local WIDTH, HEIGHT, GAP, LANE = 250, 34, 22, 14 -- of a rectangle, between two, between lines beside them
local MOST_NAMED = 34 -- characters of a name in a box

-- The calls by level: one stands below all that it reads from. {at, level, column, reads = {levels' calls}} each.
local function levels_of(calls, groups)
  local maker, nodes, widths = {}, {}, {}
  local by_group = {}
  for i, each in ipairs(calls) do by_group[each.group] = i end
  for _, g in ipairs(groups) do
    local node = by_group[g] and {at = by_group[g], level = 1, reads = {}}
    local seen = {}
    for _, name in ipairs(g.inputs) do
      local before = maker[name]
      if node and before and not seen[before] then
        seen[before], node.reads[#node.reads + 1] = true, before
        node.level = math.max(node.level, before.level + 1)
      end
    end
    if node then
      widths[node.level] = (widths[node.level] or 0) + 1
      node.column, nodes[#nodes + 1] = widths[node.level], node
    end
    for _, name in ipairs(g.outputs) do maker[name] = node or maker[g.inputs[1]] end -- what only has another shape
  end
  return nodes, widths
end

local function corner(node)
  return LANE * 6 + (node.column - 1) * (WIDTH + GAP), (node.level - 1) * (HEIGHT + GAP) + 4
end

-- A line from a call to one that reads from it: straight to the next level, else around those between.
local function edge(from, to)
  local x1, y1 = corner(from)
  local x2, y2 = corner(to)
  local down, into = y1 + HEIGHT, y2
  if to.level == from.level + 1 then
    local a, b = x1 + WIDTH // 2, x2 + WIDTH // 2
    return string.format("M%d %dC%d %d %d %d %d %d", a, down, a, down + GAP // 2, b, into - GAP // 2, b, into)
  end
  local side = x1 - LANE * math.min(5, 1 + (to.level - from.level) // 2)
  return string.format("M%d %dC%d %d %d %d %d %d", x1, y1 + HEIGHT // 2, side, down, side, into - GAP // 2, x2 + 12,
                       into)
end

local function rectangle(node, call, seconds, most)
  local x, y = corner(node)
  local name = call.group.kernel and call.group.name or "copy of " .. call.group.name
  local short = #name > MOST_NAMED and name:sub(1, MOST_NAMED - 1) .. "…" or name
  local fill = string.format("%.3f", 0.06 + 0.6 * seconds / most)
  local rect = html.element("rect", {x = x, y = y, width = WIDTH, height = HEIGHT, rx = 4, class = "heat",
                                     ["fill-opacity"] = fill})
  local title = html.element("title", {}, html.text(string.format("%s: %s", name, cli.time_text(seconds))))
  return html.element("g", {}, title, rect,
                      html.element("text", {x = x + 6, y = y + 14}, html.text(short)),
                      html.element("text", {x = x + 6, y = y + 28}, html.text(cli.time_text(seconds))))
end

local function picture(opened, profile)
  local nodes, widths = levels_of(opened.calls, opened.prepared.groups)
  local most, columns, parts = 1e-12, 1, {}
  for _, each in ipairs(profile) do most = math.max(most, each.seconds) end
  for _, width in pairs(widths) do columns = math.max(columns, width) end
  for _, node in ipairs(nodes) do
    for _, before in ipairs(node.reads) do
      parts[#parts + 1] = html.element("path", {class = "axis", d = edge(before, node)})
    end
  end
  for _, node in ipairs(nodes) do
    parts[#parts + 1] = rectangle(node, opened.calls[node.at], profile[node.at].seconds, most)
  end
  local width, height = LANE * 7 + columns * (WIDTH + GAP), #widths * (HEIGHT + GAP) + 8
  local label =
    string.format("the graph: %s, coloured by time; the tables have the numbers", cli.count_text(#nodes, "call"))
  local svg = html.element("svg", {viewBox = string.format("0 0 %d %d", width, height), width = width, height = height,
                                   role = "img", ["aria-label"] = label}, table.concat(parts, "\n"))
  local caption =
    "Each is a call of the plan, below those that it reads from; the more of the network's time it takes, " ..
    "the fuller its colour."
  return html.element("figure", {class = "graph"}, html.scrolling("The graph", svg),
                      html.element("figcaption", {}, html.text(caption)))
end

-- ---- Tables ------------------------------------------------------------------------------------------------------

-- The share that a function has of its limit in so many seconds, and which limit that is: of what is measured now, of
-- what was measured with its record, or of what no kernel passes.
local function limit_share(limits, machine, func, known, seconds)
  if not func or seconds <= 0 then return nil end
  local ok, limit = false, nil
  if limits then ok, limit = pcall(limits.of, limits, func, machine) end
  limit = ok and limit or known
  if limit then return rates.share(limit, seconds), limit.name end
  return math.min(1, schedulers.bound(func, machine) / seconds), "what no kernel passes"
end

-- tuned: by function, the limit that the store has of it, true where it has none; nil: it is not tuned.
local function functions_table(shares, whole, limits, machine, tuned)
  local rows = {}
  for i, share in ipairs(shares) do
    local func, count = share.entry.func, share.entry.weight or 1
    local once = share.seconds / count
    local of_roofline, name =
      limit_share(limits, machine, func, type(tuned[share.entry]) == "table" and tuned[share.entry] or nil, once)
    rows[i] = {html.text(share.name), html.number(count, tostring(count)), time(share.seconds), share_cell(share.seconds
               / whole), func and html.text(rates.text(cli.work_of(func), once)) or "", share_cell(of_roofline),
               html.text(name or ""), tuned[share.entry] and time(share.alone) or html.text("not tuned")}
  end
  local caption =
    "Functions, those that take most time first; the limit is what was measured, for this page or with the best, " ..
    "or else what no kernel passes"
  return html.table(caption, {"function", "calls", "in the network", "share", "rate", "of the limit", "which is",
                              "as tuned, alone"}, rows, 3)
end

local function calls_table(profile, whole)
  local rows, sum, beside = {}, 0, false
  for _, each in ipairs(profile) do beside = beside or each.beside ~= nil end
  for i, each in ipairs(profile) do
    sum = sum + each.seconds
    local operators = {}
    for k, step in ipairs(each.group.steps) do operators[k] = step.node.op end
    local name = each.group.kernel and each.group.name or "copy"
    rows[i] = {html.number(i, tostring(i)), html.text(name), html.text(table.concat(operators, " ")),
               html.text(table.concat(each.group.outputs, ", ")), time(each.seconds), share_cell(each.seconds / whole),
               time(sum)}
    if beside then
      table.insert(rows[i], each.beside and html.number(each.beside, "step " .. each.beside) or html.text "")
    end
  end
  local caption = "Calls in order, the medians of runs of the whole, and their sum up to each"
  if beside then caption = caption .. "; those of a step run side by side, and share its time" end
  return html.table(caption, {"call", "function", "operators", "gives", "seconds", "share", "sum",
                              beside and "side by side" or nil}, rows, 3)
end

-- The seconds of functions, by their hashes.
local function by_function(profile)
  local seconds = {}
  for _, each in ipairs(profile) do
    local entry = each.group.kernel
    if entry then seconds[entry.hash] = (seconds[entry.hash] or 0) + each.seconds end
  end
  return seconds
end

-- What tuning changed, by function.
local function differences(opened, profile, base_profile)
  local before, now, rows = by_function(base_profile), by_function(profile), {}
  for _, entry in ipairs(opened.prepared.functions) do
    local a, b = before[entry.hash], now[entry.hash]
    if a and b and b > 0 then
      local ratio = html.number(a / b, string.format("%.2f", a / b))
      rows[#rows + 1] = {seconds = a - b, html.text(entry.name), time(a), time(b), ratio}
    end
  end
  table.sort(rows, function(x, y) return x.seconds > y.seconds end)
  return html.table("Functions, those that tuning gained most in first",
                    {"function", "untuned", "as the store has it", "times as fast"}, rows, 3)
end

-- ---- The page ----------------------------------------------------------------------------------------------------

local function head(net, path, opened, seconds, base_seconds, sum)
  local calls, functions = network.calls_text(opened), cli.count_text(#opened.prepared.functions, "function")
  local values, constants = cli.bytes_text(opened.arena_bytes), cli.bytes_text(opened.constant_bytes)
  local untuned = html.text "the same: nothing of it is tuned in this store"
  if base_seconds then
    untuned = time(base_seconds) .. html.text(string.format(": %.2f times as long", base_seconds / seconds))
  end
  local rows = {
    {"file", html.text(path)}, {"whole", time(seconds) .. html.text(string.format(", %s of %s", calls, functions))},
    {"call by call", time(sum)}, {"untuned", untuned},
    {"memory", html.text(string.format("%s of values, %s of constants", values, constants))},
    {"machine", html.text(ms.target("native").text)}, {"this page by", html.text(ms.versions())},
  }
  for _, input in ipairs(net.inputs) do
    local shape = table.concat(input.shape or {}, ", ")
    rows[#rows + 1] = {"input", html.text(string.format("%s: %s[%s]", input.name, input.type, shape))}
  end
  return html.table("The network", {"what", "value"}, rows, #rows + 1)
end

-- The limit that the store has of a task that is tuned; true: none; nil: it is not tuned.
local function known_limit(task, store)
  if not network.is_tuned(task) then return nil end
  local record = store:find(task.fastest.full_id)
  return ms.load "lua.cli.store.stores".limit_of(record, store:records {workload = record.workload}) or true
end

-- msched report FILE.onnx -o PAGE: writes the page.
function report.run(options, path)
  local net = network.read(options, path)
  local store = cli.open_store(options.db)
  local opened = network.plan_of(net, options, nil, store)
  local base, tuned = network.untuned_of(net, options, opened.tasks), {}
  local plans = {opened, base}
  for _, each in ipairs(plans) do each:fill(options.seed or 1) end
  local by_hash = {}
  for _, task in ipairs(opened.tasks or {}) do by_hash[task.func:hash()] = known_limit(task, store) end
  for _, entry in ipairs(opened.prepared.functions) do tuned[entry] = by_hash[entry.hash] end
  local seconds = network.times_of(plans)
  local profile = opened:profile(RUNS)
  local shares, sum = network.shares(opened, opened.tasks or {}, profile), 0
  for _, each in ipairs(profile) do sum = sum + each.seconds end
  local limits, machine = options.peak and ms.load "lua.bench.limits".open() or nil, ms.target "native"
  local parts = {
    html.element("h1", {}, html.text("Network " .. (net.name ~= "" and net.name or path))),
    head(net, path, opened, seconds[1], seconds[2], sum),
    html.element("h2", {id = "graph"}, "Graph"), picture(opened, profile),
    html.element("h2", {id = "functions"}, "Functions"), functions_table(shares, sum, limits, machine, tuned),
    base and html.element("h2", {id = "tuning"}, "Beside the untuned plan") or "",
    base and differences(opened, profile, base:profile(RUNS)) or "",
    html.element("h2", {id = "calls"}, "Call by call"), calls_table(profile, sum),
  }
  local text = html.page("msched report: " .. path, table.concat(parts, "\n"))
  cli.write_file(options.output, text)
  if options.json then
    cli.put_json {file = options.output, network = path, calls = #opened.calls, functions = #opened.prepared.functions,
                  seconds = seconds[1], untuned_seconds = seconds[2], bytes = #text}
  else
    local untuned = seconds[2] and string.format(", untuned %s", cli.time_text(seconds[2])) or ""
    cli.print(string.format("%s: %s of %s, %s%s, %.0f KiB", options.output, network.calls_text(opened),
                            cli.count_text(#opened.prepared.functions, "function"), cli.time_text(seconds[1]), untuned,
                            #text / 1024))
  end
  return cli.DONE
end

return report
