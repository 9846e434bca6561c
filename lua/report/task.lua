-- The part of a report that is one task's.
local ms = msched
local cli, html, chart = ms.load "lua.cli.cli", ms.load "lua.report.html", ms.load "lua.report.chart"
local decisions, assembly, steps, boxes, roofline = ms.load "lua.report.decisions", ms.load "lua.report.assembly",
  ms.load "lua.report.steps", ms.load "lua.report.nest", ms.load "lua.report.roofline"
local record_code = ms.load "lua.cli.store.record_code"
local rates = ms.load "lua.cli.rates"
local part = {}

local CLASSES = 4 -- kinds of lines that are distinguished

function part.time(seconds) return html.number(seconds, cli.time_text(seconds)) end
function part.class(i) return "c" .. (i - 1) % CLASSES + 1 end

-- ---- Curves ---------------------------------------------------------------------------------------------------------

-- A time without the zeros behind its point.
local function short_time(seconds) return (cli.time_text(seconds):gsub("(%.%d-)0+ ", "%1 "):gsub("%. ", " ")) end

local FARTHEST = 4 -- times the best that a curve shows; what is slower is drawn at the edge

-- The best so far over `key`, "trial" or "second", of curves {name, points}; with a dot for each that was measured
-- where there is one curve.
function part.curve(curves, key, title, label)
  local layers = {}
  for i, c in ipairs(curves) do
    local best, dots, last = {}, {}, nil
    for _, p in ipairs(c.points) do
      if p.best then
        best[#best + 1], last = {p[key], p.best}, p.best
        if p.seconds then dots[#dots + 1] = {p[key], p.seconds} end
      end
    end
    if last then
      if #curves == 1 then
        layers[#layers + 1] = {kind = "dots", point = "a candidate", class = part.class(i),
                               name = "a candidate; at the edge: slower", points = dots}
      end
      layers[#layers + 1] = {kind = "steps", class = part.class(i), name = c.name,
                             point = #curves > 1 and c.name .. ", best" or "the best", points = best, last = last}
    end
  end
  if #layers == 0 then return html.paragraph "Nothing was measured: there is no curve." end
  local fastest = math.huge
  for _, l in ipairs(layers) do fastest = math.min(fastest, l.last or fastest) end
  return chart.draw {
    title = title, description = "ends at " .. cli.time_text(fastest), layers = layers,
    x = {label = label, unit = key, zero = true, show = function(n) return string.format("%.6g", n) end},
    y = {label = "time of the best so far", unit = "s", log = true, show = short_time, most = FARTHEST * fastest},
  }
end

local function curves_of(task)
  local list = {}
  for i, run in ipairs(task.runs) do
    list[i] = {name = string.format("seed %d%s", run.seed,
                                    run.versions ~= ms.versions() and ", " .. run.versions or ""), points = run.curve}
  end
  return list
end

local MOST_BESTS = 40 -- that are listed, the last ones

-- Each new best of the curves, for who reads no pictures.
local function bests(curves)
  local rows = {}
  for _, c in ipairs(curves) do
    local last
    for _, p in ipairs(c.points) do
      if p.best and p.best ~= last then
        rows[#rows + 1] = {html.text(c.name), html.number(p.trial, tostring(p.trial)),
                           html.number(p.second, string.format("%.1f", p.second)), part.time(p.best)}
        last = p.best
      end
    end
  end
  if #rows == 0 then return "" end
  local left_out = math.max(#rows - MOST_BESTS, 0)
  local caption = "Each new best" .. (left_out > 0 and string.format(", without the first %d", left_out) or "")
  return html.details("each new best", html.table(caption, {"run", "trial", "second", "best"},
                                                  table.move(rows, left_out + 1, #rows, 1, {})))
end

local function curves(task)
  local list = curves_of(task)
  return html.element("div", {class = "pair"}, part.curve(list, "trial", "The best so far, by trial",
                                                          "candidates that were measured, stopped or failed"),
                      part.curve(list, "second", "The best so far, by second",
                                 "seconds, pauses of more than ten minutes left out")) .. bests(list)
end

-- ---- Failures, and where the time went ------------------------------------------------------------------------------

local function failures(task)
  if #task.failures == 0 then return html.paragraph "No candidate failed." end
  local rows = {}
  for i, f in ipairs(task.failures) do
    rows[i] = {html.text(f.reason), html.number(f.count, tostring(f.count)),
               html.element("code", {}, html.text(cli.cut(f.example, 160)))}
  end
  return html.table("Failures by what they said, numbers left out", {"reason", "candidates", "an example"}, rows)
end

local SPENT = {{"open_seconds", "opening the space"}, {"replay_seconds", "replaying candidates"}, {"policy_seconds",
               "the policy besides"}, {"learn_seconds", "the cost model"}, {"wait_seconds", "waiting for results"}}
local MEANWHILE = {{"build_seconds", "building, all builders together"}, {"run_seconds", "checking and timing"}}

local MORE = "A log tells more: `msched tune --json … > LOG`, then `msched report --log LOG`."

-- By what the records say of the runs of the search that measured them.
local function spent_by_records(task)
  local sum, runs = {total = 0, waited = 0, build = 0, run = 0}, 0
  for _, run in ipairs(task.runs) do
    for name, seconds in pairs(run.spent or {}) do sum[name] = sum[name] + seconds end
    runs = runs + (run.spent and 1 or 0)
  end
  if runs == 0 then return html.paragraph("The store does not know what the search itself took. " .. MORE) end
  local rows = {}
  local function add(what, seconds, share)
    rows[#rows + 1] = {html.text(what), html.number(seconds, string.format("%.2f s", seconds)),
                       share and html.number(share, string.format("%.0f %%", 100 * share))
                         or "while it waited, or searched on"}
  end
  add("waiting for results", sum.waited, sum.waited / sum.total)
  add("the search itself, and other tasks of the same run", sum.total - sum.waited, 1 - sum.waited / sum.total)
  add(MEANWHILE[1][2], sum.build)
  add(MEANWHILE[2][2], sum.run)
  local title = string.format("Where the time went up to the last record, of %s", cli.count_text(runs, "run"))
  return html.table(title, {"what", "seconds", "share of the time"}, rows) .. html.paragraph(MORE)
end

-- `logged`: the task's events in which a run ends.
local function spent(task, logged)
  if #logged == 0 then return spent_by_records(task) end
  local rows, total = {}, 0
  for _, s in ipairs(SPENT) do for _, e in ipairs(logged) do total = total + (tonumber(e[s[1]]) or 0) end end
  for _, list in ipairs {SPENT, MEANWHILE} do
    for _, s in ipairs(list) do
      local seconds = 0
      for _, e in ipairs(logged) do seconds = seconds + (tonumber(e[s[1]]) or 0) end
      local share = list == SPENT and total > 0 and seconds / total
      rows[#rows + 1] = {html.text(s[2]), html.number(seconds, string.format("%.2f s", seconds)),
                         share and html.number(share, string.format("%.0f %%", 100 * share))
                           or "while it waited, or searched on"}
    end
  end
  return html.table(string.format("Where the time went, of %s in the log", cli.count_text(#logged, "run")),
                    {"what", "seconds", "share of the search's own"}, rows)
end

-- ---- Decisions ------------------------------------------------------------------------------------------------------

local SHOWN = 4 -- values of a decision

local function importance(task)
  local found = decisions.of(task)
  local busy = found.busy > 0 and string.format(" Left out: %s timed while other programs ran, whose times may be too \z
                                                 long.", cli.count_text(found.busy, "record")) or ""
  if not found.rows then
    return html.paragraph((found.busy > 0 and "No record was timed while the machine was idle"
                           or "No record that was timed has a trace that can be read")
                          .. ": nothing can be said of decisions." .. busy)
  end
  local rows = {}
  for i, r in ipairs(found.rows) do
    local best = {}
    for k = 1, math.min(#r.values, SHOWN) do
      local v = r.values[k]
      best[k] = html.text(string.format("%s: %s (%d of %d)", v.value, v.fastest and cli.time_text(v.fastest) or "none",
                                        v.measured, v.count))
    end
    local share = r.share
      and html.element("meter", {min = "0", max = "1", value = string.format("%.4f", math.min(r.share, 1))}) .. " "
        .. html.number(r.share, string.format("%.0f %%", 100 * r.share))
      or #r.values > 1 and "each value once" or "one value"
    rows[i] = {html.text(r.what), share, html.text(tostring(r.chosen)), table.concat(best, "<br>")}
  end
  return html.paragraph(string.format(
    "Candidates are ranked by time, those stopped as hopeless all last. What a decision explains is the share of the \z
     ranks' variance that lies between candidates that decided differently, less what so many groups would hold by \z
     chance (omega squared). The sketch is compared among %s, decisions among the %d of one sketch, one by one: what \z
     two do together counts for neither.",
    cli.count_text(found.all, "record"), found.records) .. busy) ..
    html.table("Decisions, those that matter most first",
               {"decision", "explains", "the best has", "values by mean rank: fastest (timed to the end, of all)"},
               rows)
end

-- ---- The best -------------------------------------------------------------------------------------------------------

local COUNTS = {{"multiply_adds", "multiply-adds"}, {"arithmetic", "other arithmetic"}, {"loads", "loads"},
                {"stores", "stores"}, {"spills", "on the stack (spills)"}, {"instructions", "instructions"}}
local LOOPS = 4 -- innermost loops that are shown

-- Of a GPU: what its kernels take, and their source.
local function kernels(sch, task)
  local code, parts = record_code.of(task.func, sch, task.target), {}
  if code.reason then parts[1] = html.paragraph(code.reason) end
  for _, k in ipairs(code.kernels or {}) do parts[#parts + 1] = html.paragraph(record_code.kernel_text(k)) end
  for _, note in ipairs(code.notes or {}) do parts[#parts + 1] = html.paragraph("note: " .. note) end
  local text = code.kernel and record_code.text(code.kernel)
  if text then
    parts[#parts + 1] = html.details("CUDA's source",
                                     html.scrolling("CUDA's source", html.element("pre", {}, html.text(text))))
  end
  return table.concat(parts)
end

local function inner_loops(sch, task)
  local text, message = record_code.text_of(sch:func(), task.target)
  if not text then return html.paragraph("The kernel cannot be built here: " .. tostring(message)) end
  local loops, columns, rows, codes = assembly.inner_loops(text), {"loop"}, {}, {}
  if #loops == 0 then return html.paragraph "The code has no loop." end
  for _, c in ipairs(COUNTS) do columns[#columns + 1] = c[2] end
  for i = 1, math.min(#loops, LOOPS) do
    local label = loops[i].lines[1]:match "^[^:%s]+" or "loop " .. i
    rows[i] = {html.element("code", {}, html.text(label))}
    for _, c in ipairs(COUNTS) do
      table.insert(rows[i], html.number(loops[i].counts[c[1]], tostring(loops[i].counts[c[1]])))
    end
    codes[i] = html.details("the code of " .. html.element("code", {}, html.text(label)), html.scrolling("code of "
                            .. label, html.element("pre", {}, html.text(table.concat(loops[i].lines, "\n")))))
  end
  local more = #loops > LOOPS and html.paragraph(#loops == LOOPS + 1 and "One more loop does less."
                                                 or string.format("%d more loops do less.", #loops - LOOPS), "soft")
    or ""
  return html.table("Innermost loops of the code, those with most multiply-adds first", columns, rows) .. more
    .. table.concat(codes)
end

local function section(title, ok, content)
  return html.element("h3", {}, html.text(title)) .. "\n"
    .. (ok and content or html.paragraph("This part cannot be shown: " .. tostring(content))) .. "\n"
end

-- What is made of the best record's function; whole: steps with all lines of it.
local function made_of_best(store, task, options)
  local made, sch, trace = pcall(function()
    store:take_intrinsics(task.best.id)
    local trace = ms.read_trace(task.best.trace)
    return ms.apply(task.func, trace), trace
  end)
  if not made then return html.paragraph("The best record cannot be made again: " .. tostring(sch)) end
  local machine = task.machine
  local parts = {section("Loop nest of the best", pcall(function()
    return html.paragraph "Of each loop: the bytes that one run of it touches, estimated from the regions of its \z
                           blocks, and the nearest place that holds as many." ..
      boxes.page(sch:script(), machine)
  end))}
  if machine then
    parts[#parts + 1] = section("Roofline", pcall(roofline.page, task, trace, options.measured, options.not_measured))
  end
  if machine then
    parts[#parts + 1] = section("Code of the best", pcall(machine.arch and kernels or inner_loops, sch, task))
  end
  parts[#parts + 1] = section("Trace of the best, step by step", pcall(steps.page, task.func, trace, options.whole))
  return table.concat(parts)
end

-- kept, where there is such: of the page before, whose best may be the same.
local function best_parts(store, task, options)
  local kept, key = options.kept, string.format("%s %.17g %s", task.best.id, task.best.seconds, options.whole)
  if not kept then return made_of_best(store, task, options) end
  if kept.best ~= key then kept.best_html, kept.best = made_of_best(store, task, options), key end
  return kept.best_html
end

-- ---- The whole ------------------------------------------------------------------------------------------------------

-- The share that the best has of its limit, as it was measured with the best or for the page (task.limit); "": it is
-- not known.
function part.share_of_limit(task)
  local share = rates.share(task.limit, task.best.seconds)
  return share and html.number(share, rates.share_text(task.limit, task.best.seconds)) or ""
end

local function best_text(store, task)
  local r = task.best
  if not r then return html.paragraph "Nothing was measured." end
  local interval = r.high < math.huge and string.format(" [%s, %s]", cli.time_text(r.low), cli.time_text(r.high)) or ""
  local notes =
    (r.unsafe and ", unsafe: it may compute something else" or "") .. (r.busy and ", on a busy machine" or "")
  local device = ms.load "lua.cli.store.stores".device_text(r.device)
  return html.element("p", {}, "Best: record ", html.element("code", {}, html.text(store:short_id(r.key))), ", ",
                      part.time(r.seconds), html.text(interval), ", ", html.text(cli.rate_text(task.work, r.seconds)),
                      task.limit and ", " or "", part.share_of_limit(task),
                      html.text(string.format(", %s%s", cli.count_text(r.runs, "run"), notes)),
                      device and html.text("; as measured: " .. device) or "")
end

-- options: logged (events in which runs of the task end), measured and not_measured (roofline.page), whole
-- (steps.page), place (its id in the page), kept (what the page before had, or nil).
function part.page(store, task, options)
  local c = task.counts
  local parts = {
    html.element("h2", {id = options.place}, html.text(task.name)),
    html.paragraph(string.format("On %s: %s: %d measured, %d stopped as hopeless, %d failed%s.", task.target,
                                 cli.count_text(task.total, "record"), c.measured, c.censored, c.failed,
                                 c.unmeasured > 0 and string.format(", %d not run", c.unmeasured) or "")),
    task.sampled and html.paragraph(string.format("What follows is of %s: the fastest half of these, and the others \z
                                                   evenly by their time. Trials are counted among these.",
                                                  cli.count_text(#task.records, "record"))) or "",
    best_text(store, task), curves(task),
    section("Failures", pcall(failures, task)), section("Where the time went", pcall(spent, task, options.logged)),
  }
  if not task.machine then
    parts[#parts + 1] = html.paragraph "The target is none that is known here: what depends on it is left out."
  end
  if task.best then parts[#parts + 1] = section("Decisions", pcall(importance, task)) end
  if task.why then
    parts[#parts + 1] = html.paragraph("The function cannot be read, and what is made of it is left out: " .. task.why)
  elseif task.best then parts[#parts + 1] = best_parts(store, task, options) end
  return table.concat(parts, "\n")
end

return part
