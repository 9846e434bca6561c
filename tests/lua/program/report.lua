-- Reports: pages of a store of a thousand trials whose times are made up are parsed, and their numbers are those of the
-- store; what decisions explain, what loops touch and what code holds, worked out by hand; stores that are empty,
-- damaged or newer.
-- usage: report.lua
local ms = require "msched"
local te, ops, tune = ms.te, ms.ops, ms.load "search.tune"
local report, cli = ms.load "lua.report.report", ms.load "lua.cli.cli"
local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/measurer.lua")
local print_line = print
print = function() end -- the command's own line

local files = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/files.lua")
local read, write = files.read, files.write
local function near(a, b) return math.abs(a - b) <= 1e-6 * math.max(math.abs(a), math.abs(b)) end

-- ---- Pages, parsed --------------------------------------------------------------------------------------------------

local EMPTY = {meta = true, input = true, br = true}

-- The elements of a page in order, {name, attributes, text, path (names of those around)}; asserts that it is
-- well-formed, that nothing is fetched, that nothing is run but the page's own script, and this behind all that there
-- is to see, that ids are unique and links lead to one.
local function parse(page)
  assert(page:find "^<!DOCTYPE html>\n" and utf8.len(page), "a page in UTF-8")
  local before, script, behind = page:match "^(.-)<script>(.-)</script>(.*)$"
  if before then
    assert(behind == "\n</body>\n</html>\n" and script == "\n" .. ms.load "lua.report.script",
           "the script is not the page's own, or not behind the rest")
    assert(not script:find "fetch%(" and not script:find "XMLHttpRequest" and not script:find "import"
           and not script:find "eval" and not script:find "innerHTML", "it may fetch or run something")
    assert(page:find("content=\"default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;; script-src \z
                      &#39;unsafe-inline&#39;; ", 1, true), "it may fetch")
    page = before .. behind
  end
  assert(not page:find("<script", 1, true) and not page:find "[ \n]on%a+=", "something else is run")
  local elements, open, ids, links, at = {}, {}, {}, {}, 16
  local function take_text(text)
    assert(not text:find "[<>]" and not text:gsub("&%a+;", ""):gsub("&#%d+;", ""):find "&",
           "unescaped: " .. text:sub(1, 80))
    text = text:gsub("&lt;", "<"):gsub("&gt;", ">"):gsub("&quot;", '"'):gsub("&#39;", "'"):gsub("&amp;", "&")
    for _, e in ipairs(open) do e.text = e.text .. text end
  end
  while at <= #page do
    local from, to, slash, name, rest = page:find("<(/?)([%a][%w]*)(.-)>", at)
    if open[#open] and open[#open].name == "style" then
      from, to, slash, name, rest = page:find("<(/)(style)()>", at)
    end
    local text = page:sub(at, (from or #page + 1) - 1)
    if open[#open] and open[#open].name ~= "style" then take_text(text) end
    if not from then break end
    if slash == "/" then
      assert(open[#open] and open[#open].name == name, "</" .. name .. "> closes no element")
      table.remove(open)
    else
      local e = {name = name, attributes = {}, text = "", path = {}}
      for i, other in ipairs(open) do e.path[i] = other.name end
      for key, value in rest:gmatch '([%w-]+)="([^"]*)"' do
        assert(not e.attributes[key], "an attribute twice")
        e.attributes[key] = value
      end
      assert(name ~= "script" and not e.attributes.src and not rest:find "%son%a+=", "it runs or fetches something")
      if e.attributes.id then assert(not ids[e.attributes.id], "an id twice") end
      ids[e.attributes.id or ""] = true
      if e.attributes.href then links[#links + 1] = e.attributes.href end
      elements[#elements + 1] = e
      if not EMPTY[name] then open[#open + 1] = e end
    end
    at = to + 1
  end
  assert(#open == 0, "an element stays open")
  for _, link in ipairs(links) do
    assert(link:sub(1, 1) == "#" and ids[link:sub(2)], "a link leads nowhere: " .. link)
  end
  assert(not page:find "https?://" and not page:find "@import" and not page:find "url%(", "something is fetched")
  return elements
end

-- The elements of a name, and the numbers after one of a text: the first element whose text begins so, then each
-- <data>.
local function first(elements, name, text)
  for i, e in ipairs(elements) do
    if e.name == name and e.text:sub(1, #text) == text then return i, e end
  end
  error(string.format("there is no <%s> %s", name, text))
end
local function numbers_after(elements, at, count)
  local list = {}
  for i = at + 1, #elements do
    if elements[i].name == "data" and #list < count then
      list[#list + 1] = assert(tonumber(elements[i].attributes.value))
    end
  end
  return list
end

local page_path = os.tmpname()
local function page_of(options, words)
  options.output = page_path
  collectgarbage() -- closes the stores of the command before
  assert(report.run(options, words or {}) == cli.DONE)
  local page = read(page_path)
  return parse(page), page
end
local function refused(options, words, what)
  options.output = options.output or page_path
  collectgarbage() -- closes the stores of the command before
  local ok, why = pcall(report.run, options, words)
  assert(not ok and type(why) == "table" and why.message:find(what, 1, true),
         "not refused so: " .. (ok and "it is taken" or type(why) == "table" and why.message or why))
end

-- ---- A store of a thousand trials -----------------------------------------------------------------------------------

local A, B = te.placeholder({64, 64}, "float32", "A"), te.placeholder({64, 64}, "float32", "B")
local product = te.func("product", {A, B, ops.matmul(A, B)})
local sum = te.func("sum", {A, ops.sum(A, 2)})

-- As the measurer of tests; every tenth fails, with a number of its own, every seventh is stopped.
local function measurer()
  local m, submit, number = support.measurer(), nil, 0
  submit = m.submit
  function m:submit(...)
    submit(self, ...)
    number = number + 1
    local r = self.queue[#self.queue]
    if number % 10 == 0 then
      r.measured, r.outcome, r.reason = false, "wrong result",
        string.format("element %d is <wrong> & 0x%x", number, number)
    elseif number % 7 == 0 then r.measured, r.censored, r.outcome = false, true, "censored" end
  end
  return m
end

local path, TRIALS = support.new_path(), 1000
local log = os.tmpname()
local lines = {}
local tasks = tune.all({product, sum}, {db = path, policy = "random", measurer = measurer(), trials = TRIALS - 100,
  total = TRIALS, listen = function(e)
  if e.event == "end" then lines[#lines + 1] = cli.json_text(e) end
end})
write(log, "{\"event\":\"start\"}\nno json\n" .. table.concat(lines, "\n") .. "\n")
collectgarbage()

local store = ms.store(path, {read_only = true})
local by_name = {}
for _, w in ipairs(store:workloads()) do by_name[w.name] = store:records {workload = w.id} end
store:close()
local records = #by_name.product + #by_name.sum
assert(records >= TRIALS)

local elements, page = page_of {db = path, log = {log}}
print_line(string.format("report: %d records, %d bytes", records, #page))
assert(#page <= 2 << 20, "1,000 trials in at most 2 MB")
for _, task in ipairs(tasks) do
  local list, failed, best = by_name[task.name], 0, math.huge
  for _, r in ipairs(list) do
    if r.status == "failed" then
      failed = failed + 1
    elseif r.status == "measured" then
      best = math.min(best, r.seconds)
    end
  end
  local row = numbers_after(elements, first(elements, "a", task.name), 3)
  assert(row[1] == #list and row[2] == failed and near(row[3], best), task.name .. ": the table's row")
  local section = first(elements, "h2", task.name)
  assert(near(numbers_after(elements, section, 1)[1], best), "its best")
  local _, reason = first(table.move(elements, section, #elements, 1, {}), "th", "element #")
  assert(reason.text == "element # is <wrong> & #", "a reason without its numbers: " .. reason.text)
  assert(numbers_after(elements, first(elements, "th", "element #"), 1)[1] > 0)
end

-- The share of the limit is a column over all tasks, and the rate a number that sorts; what is below the head of a
-- narrow row is named.
do
  local schedulers = ms.load "search.scheduler"
  for _, task in ipairs(tasks) do
    local row, fastest = numbers_after(elements, first(elements, "a", task.name), 5), math.huge
    for _, r in ipairs(by_name[task.name]) do
      if r.status == "measured" then fastest = math.min(fastest, r.seconds) end
    end
    assert(near(row[4], task.func:flops() / fastest) and near(row[5],
           schedulers.bound(task.func, ms.target(task.target.text)) / fastest), task.name .. ": rate and share")
    assert(row[5] > 0 and row[5] <= 1)
  end
  local head, labels = first(elements, "th", "of the limit"), 0
  assert(elements[head].path[#elements[head].path - 1] == "thead")
  for _, e in ipairs(elements) do
    if e.name == "td" then
      assert(e.attributes["data-label"], "a cell without the name of its column: " .. e.text)
      labels = labels + 1
    end
  end
  assert(labels > 20)
end

-- A picture has the values that it shows under the pointer: of each record that was measured, and of each new best; who
-- sees no picture finds these in a table.
do
  local list, best, bests, order = {}, nil, {}, {}
  for _, r in ipairs(by_name.product) do order[#order + 1] = r end
  local section = first(elements, "h2", "product")
  local curve
  for i = section, #elements do
    if elements[i].name == "svg" and elements[i].attributes["data-x"] == "trial" then curve = i break end
  end
  local dots, steps_
  for i = curve, curve + 80 do
    local e = elements[i]
    if e.name == "path" and e.attributes["data-points"] then
      if e.attributes["data-name"] == "the best" then steps_ = steps_ or e else dots = dots or e end
    end
  end
  for pair in dots.attributes["data-points"]:gmatch "%S+" do
    local trial, seconds = pair:match "^(%d+),([%d.e+-]+)$"
    list[tonumber(trial)] = tonumber(seconds)
    best = math.min(best or math.huge, tonumber(seconds))
  end
  local measured = 0
  for _, r in ipairs(by_name.product) do measured = measured + (r.status == "measured" and 1 or 0) end
  local shown = 0
  for _ in pairs(list) do shown = shown + 1 end
  assert(shown == measured, shown .. " of " .. measured)
  for pair in steps_.attributes["data-points"]:gmatch "%S+" do
    local trial, seconds = pair:match "^(%d+),([%d.e+-]+)$"
    bests[#bests + 1] = tonumber(seconds)
    assert(list[tonumber(trial)] == tonumber(seconds), "a new best is a candidate")
    assert(#bests == 1 or bests[#bests] <= bests[#bests - 1])
  end
  assert(bests[#bests] == best)
  local rows = table.move(elements, first(table.move(elements, section, #elements, 1, {}), "caption",
                                          "Each new best") + section, #elements, 1, {})
  local each = numbers_after(rows, 0, 3 * #bests)
  for i, seconds in ipairs(bests) do
    assert(math.abs(each[3 * i] / seconds - 1) < 1e-3 and list[each[3 * i - 2]] == seconds)
  end
end

-- Where the time went is what the log says of the task.
local at = first(elements, "h2", "product")
local after = table.move(elements, at, #elements, 1, {})
local spent = numbers_after(after, first(after, "th", "replaying candidates"), 1)[1]
assert(near(spent,
            tonumber((lines[1]:find '"task":"product"' and lines[1] or lines[2]):match '"replay_seconds":([%d.e-]+)')))

-- The roofline: the rate is that of the best.
local best = math.huge
for _, r in ipairs(by_name.product) do if r.status == "measured" then best = math.min(best, r.seconds) end end
local _, reaches = first(after, "p", "The best reaches")
local rate = numbers_after(after, first(after, "p", "The best reaches"), 2)
assert(near(rate[1], product:flops() / best) and rate[2] > 0 and rate[2] < 1, reaches.text)

-- The innermost loops' counts are those of the code that stands beside.
local row = numbers_after(after, first(after, "caption", "Innermost loops"), 6)
local code = select(2, first(after, "pre", ".LBB"))
local code_lines = {}
for line in code.text:gmatch "[^\n]+" do code_lines[#code_lines + 1] = line end
local counts = ms.load "lua.report.assembly".count(code_lines)
assert(row[1] == counts.multiply_adds and row[3] == counts.loads and row[5] == counts.spills
       and row[6] == counts.instructions and row[6] > 0)

-- Each step's difference holds the function before it and after it, and the next goes on from there.
do
  local facts, steps, explain = ms.load "lua.report.facts", ms.load "lua.report.steps", ms.load "lua.lib.explain"
  local opened = ms.store(path, {read_only = true})
  local task = facts.of(opened, {"product"})[1]
  local trace = ms.read_trace(task.best.trace)
  local shown = parse("<!DOCTYPE html>\n<div>" .. steps.page(task.func, trace, true) .. "</div>")
  local number, last = 0, task.func:script():gsub("\n+", "\n")
  for _, s in ipairs(explain.steps(task.func, trace)) do
    local changed = false
    for _, c in ipairs(s.changes) do changed = changed or c[1] ~= " " end
    if changed then
      repeat number = number + 1 until shown[number].name == "pre"
      local before, after_ = {}, {}
      local k = number + 1
      while shown[k] and (shown[k].name == "ins" or shown[k].name == "del"
                          or shown[k].name == "span" and shown[k].path[#shown[k].path] == "pre") do
        for line in (shown[k].text .. "\n"):gmatch "(.-)\n" do
          if line:sub(1, 1) ~= "+" then before[#before + 1] = line:sub(3) end
          if line:sub(1, 1) ~= "-" then after_[#after_ + 1] = line:sub(3) end
        end
        k = k + 1
      end
      assert(table.concat(before, "\n") .. "\n" == last,
             "step " .. s.first .. " begins with another function than the one before it ended with")
      last = table.concat(after_, "\n") .. "\n"
    end
  end
  assert(last == ms.apply(task.func, trace):script():gsub("\n+", "\n"),
         "the last step ends with the scheduled function")
  -- A page has some steps of a trace that has any number.
  local listed = explain.steps(task.func, trace, nil, 2)
  assert(#listed == 2 and #trace > 4)
  local left =
    string.format("%d further instructions are not shown: a page has the first 2 steps", #trace - 1 - listed[2].last)
  assert(steps.page(task.func, trace, true, 2):find(left, 1, true)
         and not steps.page(task.func, trace, true):find("further instructions", 1, true))
  opened:close()
end

-- One task alone; a name that is none; a log that is not there.
local one = page_of({db = path}, {"sum"})
assert(not pcall(first, one, "h2", "product") and first(one, "h2", "sum"))
-- Without a log the records say when they came: what was waited for, and the rest of the time.
local waiting = numbers_after(one, first(one, "th", "waiting for results"), 4)
assert(near(waiting[2] + waiting[4], 1) and near(waiting[1] / (waiting[1] + waiting[3]), waiting[2]))
do
  local latest, built = 0, 0
  for _, r in ipairs(by_name.sum) do
    assert(r.search.asked <= r.search.came)
    latest, built = math.max(latest, r.search.came), built + r.search.build_seconds
  end
  assert(near(waiting[1] + waiting[3], latest)
         and near(numbers_after(one, first(one, "th", "building, all builders"), 1)[1], built))
end
first(one, "p", "A log tells more")
refused({db = path}, {"fly"}, "has no workload `fly`; it has product, sum")
refused({db = path, log = {"/nonexistent/log"}}, {}, "/nonexistent/log")
refused({db = path, output = "/nonexistent/page.html"}, {}, "/nonexistent/page.html")
refused({compare = true}, {path}, "--compare takes two stores")
refused({compare = true, peak = true}, {path, path}, "does not go with --peak")

-- ---- Two stores -----------------------------------------------------------------------------------------------------

local other = support.new_path()
local slower = support.measurer {time = function(sch) return 2 * support.time_of(sch) end}
tune.all({product}, {db = other, policy = "random", measurer = slower, trials = 40})
collectgarbage()
store = ms.store(other, {read_only = true})
local others = store:records {workload = store:workloads()[1].id}
store:close()
local both = page_of({compare = true}, {path, other})
local figures = numbers_after(both, first(both, "th", "product"), 5)
assert(figures[1] == #by_name.product and near(figures[2], best) and figures[3] == #others
       and near(figures[4], others[1].seconds) and near(figures[5], best / others[1].seconds))
assert(near(numbers_after(both, first(both, "p", "Geometric mean of 1 ratio: "), 1)[1], best / others[1].seconds))
assert(not pcall(first, page_of({compare = true}, {path, other, "product"}), "th", "sum"))

-- ---- Bad stores -----------------------------------------------------------------------------------------------------

collectgarbage()
local empty = support.new_path()
io.open(empty, "w"):close() -- a file that is there becomes a store by opening it
ms.store(empty):close()
first(page_of {db = empty}, "p", "There is no record: nothing has been measured.")
collectgarbage()
store = ms.store(empty)
store:put_workload(product)
store:close()
first(page_of {db = empty}, "p", "Without a record: product.")
refused({db = "/nonexistent/store.db"}, {}, "there is no store")

local bytes = read(other)
local newer, changed = bytes:gsub("format\4", "format\5")
assert(changed > 0)
collectgarbage()
write(empty, newer)
refused({db = empty}, {}, "the store is of another format")

-- Its records are there, what is made of the function is left out.
local lost, spoiled = bytes:gsub("def product%(", "def prodXct(")
assert(spoiled > 0)
collectgarbage()
write(empty, lost)
local without = page_of {db = empty}
assert(numbers_after(without, first(without, "a", "workload "), 1)[1] == #others)
first(without, "p", "The function cannot be read, and what is made of it is left out:")

-- ---- By hand --------------------------------------------------------------------------------------------------------

local decisions, nest, assembly = ms.load "lua.report.decisions", ms.load "lua.lib.nest", ms.load "lua.report.assembly"
-- Between groups 4 of 5, 0.5 within by the one degree of freedom each: (4 - 0.5) / (5 + 0.5).
assert(near(decisions.share({"a", "a", "b", "b"}, {1, 2, 3, 4}), 3.5 / 5.5))
assert(decisions.share({"a", "b", "a", "b"}, {1, 2, 4, 3}) == 0 and not decisions.share({1, 1}, {1, 2})
       and not decisions.share({1, 2}, {1, 2}))
local ranks = decisions.ranks_of {{status = "measured", seconds = 2}, {status = "censored", seconds = 1},
                                  {status = "censored", seconds = 9}, {status = "measured", seconds = 1}}
assert(table.concat(ranks, " ") == "2.0 3.5 3.5 1.0")

-- A run in two sessions, the second one a new start: waits do not overlap, and the curve goes on where it was.
do
  local list = {
    {when = 10, search = {asked = 1, came = 2, build_seconds = 0.25, run_seconds = 0.5}},
    {when = 12, search = {asked = 1, came = 4}},
    {when = 90, search = {asked = 0.5, came = 1.5, build_seconds = 0.25}},
  }
  for i, r in ipairs(list) do r.seed, r.versions, r.status, r.seconds = 1, "now", "measured", 10 - i end
  local facts = ms.load "lua.report.facts"
  local spent, points = facts.runs_of(list)[1].spent, facts.runs_of(list)[1].curve
  assert(spent.total == 5.5 and spent.waited == 4 and spent.build == 0.5 and spent.run == 0.5)
  for at, second in ipairs {2, 4, 5.5} do assert(points[at].second == second, at) end
  for _, wrong in ipairs {{}, {asked = 3}, {asked = 3, came = 2}, {asked = -1, came = 4}, {asked = 1, came = 1e300},
                          {asked = 1, came = 4, build_seconds = -1}, {asked = 1, came = 4, run_seconds = 1e300}} do
    list[2].search = wrong -- where one does not say, none is believed
    local run = facts.runs_of(list)[1]
    assert(not run.spent and run.curve[3].second == 80)
  end
end

-- Records of a busy machine change nothing but their own count; alone, they say nothing.
do
  local sound, mixed, busy = {}, {}, {}
  local fastest
  for at, r in ipairs(by_name.product) do
    if r.status ~= "failed" and at % 3 > 0 then
      sound[#sound + 1], mixed[#mixed + 1] = r, r
      if r.status == "measured" and (not fastest or r.seconds < fastest.seconds) then fastest = r end
    elseif r.status ~= "failed" then
      busy[#busy + 1] = setmetatable({busy = true, status = "measured", seconds = at % 2 == 0 and 1e-9 or 1},
                                     {__index = r})
      mixed[#mixed + 1] = busy[#busy]
    end
  end
  local a, b = decisions.of {records = sound, best = fastest}, decisions.of {records = mixed, best = fastest}
  assert(#busy > 100 and a.busy == 0 and b.busy == #busy and b.all == #sound and a.records == b.records
         and #a.rows == #b.rows)
  for at, r in ipairs(a.rows) do
    assert(r.what == b.rows[at].what and r.share == b.rows[at].share and r.chosen == b.rows[at].chosen
           and #r.values == #b.rows[at].values, r.what)
  end
  local none = decisions.of {records = busy, best = busy[1]}
  assert(not none.rows and none.busy == #busy)
end

-- A page says how many were left out.
do
  local noisy, from = support.new_path(), ms.store(path, {read_only = true})
  local to = ms.store(noisy)
  for at, r in ipairs(from:records {workload = from:workloads()[1].id}) do
    r.trace, r.busy = ms.read_trace(r.trace), r.status ~= "failed" and at > 50
    r.workload = to:put_workload(from:get_workload(r.workload))
    to:put(r)
  end
  from:close()
  to:close()
  local noisy_page = page_of {db = noisy}
  first(noisy_page, "th", "waiting for results")
  local _, said = first(noisy_page, "p", "Candidates are ranked by time")
  assert(said.text:find "Left out: %d+ records? timed while other programs ran", said.text)
end

local sch = ms.schedule(product)
local i, j, k = sch:get_loops(sch:get_sblock(sch:reduction_blocks()[1]))
local _, inner = sch:split(j, {ms.rest, 16})
sch:vectorize(inner)
sch:parallel(i)
local tree = nest.read(sch:script())
nest.measure(tree)
local outer = tree.children[1]
local half = outer.children[1]
assert(outer.kind == "loop" and outer.how == "parallel" and outer.extent == 64 and outer.bytes == 3 * 64 * 64 * 4)
assert(half.extent == 4 and half.bytes == (64 + 64 + 64 * 64) * 4, "of one row: a row of A and of C, all of B")
assert(half.children[1].extent == 16 and half.children[1].how == "vectorized"
       and half.children[1].bytes == (16 + 64 + 16 * 64) * 4)

local loops = assembly.inner_loops [[
	.text
f:
	movl	%eax, -8(%rsp)
.L1:
	leaq	(%rdi,%rax), %rcx
.L2:
	vbroadcastss	(%rdi,%rcx,4), %zmm12
	vfmadd231ps	64(%rsi), %zmm12, %zmm11
	vfmadd231ps	%zmm12, %zmm13, %zmm11 # 64-byte Folded Spill
	vaddps	-64(%rsp), %zmm1, %zmm2
	vmovups	%zmm11, (%rdx)
	cmpq	$8, (%rax)
	jb	.L2
	jne	.L1
	retq
]]
local c = loops[1].counts
assert(#loops == 1 and #loops[1].lines == 8 and c.multiply_adds == 2 and c.arithmetic == 1 and c.loads == 4
       and c.stores == 1 and c.spills == 1 and c.instructions == 7)

-- ---- A task of many records: some of them are read, all are counted -----------------------------------------------

do
  local db, MANY = support.new_path(), 4100
  collectgarbage()
  local store = ms.store(db)
  local id, trace, target = store:put_workload(product), ms.schedule(product).trace, ms.target "native".text
  store:batch(function()
    for i = 1, MANY do
      store:put {workload = id, target = target, trace = trace, hash = string.format("%x", i),
                 status = i % 10 == 0 and "failed" or "measured", seconds = i % 10 ~= 0 and i * 1e-6 or 0, runs = 3,
                 reason = i % 10 == 0 and "no" or ""}
    end
  end)
  local part = store:records {workload = id, first = 10, step = 1000}
  assert(#part == 15 and part[10].seconds == 11e-6 and part[11].seconds == 12e-6)
  assert(not pcall(store.records, store, {first = -1}) and not pcall(store.records, store, {step = 0}))
  store:close()
  local elements, page = page_of({db = db}, {"product"})
  first(elements, "p", string.format("On %s: 4100 records: 3690 measured, 0 stopped as hopeless, 410 failed.", target))
  first(elements, "p",
        "What follows is of 3050 records: the fastest half of these, and the others evenly by their time.")
  assert(#page < 1 << 20)
end

-- ---- A network ------------------------------------------------------------------------------------------------------

local root = arg[0]:match "^(.*)/tests/" or "."
local net_db, digits = os.tmpname(), root .. "/lua/examples/digits.onnx"
os.remove(net_db)
local function page_of_network() return page_of({db = net_db, dim = {"batch=1"}}, {digits}) end
local untuned = page_of_network()
first(untuned, "h1", "Network digits")
first(untuned, "td", "the same: nothing of it is tuned in this store")
first(untuned, "th", "conv_relu_1x8x14x14")
local rects, edges = 0, 0
for _, e in ipairs(untuned) do
  if e.name == "rect" then rects = rects + 1 end
  if e.name == "path" and e.attributes.class == "axis" then edges = edges + 1 end
end
assert(rects == 4 and edges == 3, "a rectangle a call, a line from each to the next")
local function functions_of_digits()
  return ms.load "lua.net.plan".prepare(ms.onnx(digits, {dims = {batch = 1}})).functions
end
collectgarbage()
ms.tune(functions_of_digits()[1].func, {trials = 1, db = net_db})
first(page_of_network(), "h2", "Beside the untuned plan")
-- The limit of a function is that of its records, of another one where the best has none.
first(page_of_network(), "td", "what no kernel passes")
local function limited_run(func, name, seed, db)
  collectgarbage() -- closes the store that the page was made of
  tune.all({func}, {trials = 1, db = db, seed = seed, policy = "random",
                    limit = function() return {name = name, of = "operations", seconds = 1e-9} end})
end
limited_run(functions_of_digits()[1].func, "what the test says", 7, net_db)
first(page_of_network(), "td", "what the test says")
do
  local db, unit = os.tmpname(), nil
  os.remove(db)
  for _, u in ipairs(ms.units(ms.target "native".text)) do if u.unit > 0 then unit = u.name end end
  limited_run(product, "what the test says", 1, db)
  local page = select(2, page_of({db = db}, {}))
  assert(not page:find "unused", "no unit is known by that name")
  if unit then
    limited_run(sum, unit, 1, db)
    page = select(2, page_of({db = db}, {}))
    assert(page:find(unit .. " unused: ", 1, true) and page:find " unused: %d+%.?%d* of [%d,]+%.?%d* GFLOP/s%.",
           unit .. " is not said to be unused")
  end
  assert(os.execute("rm -f " .. db .. "*"))
end
refused({db = net_db, dim = {"batch=1"}}, {digits, "sum"}, "a page is of one alone")
refused({db = net_db, dim = {"batch=1"}, follow = true}, {digits}, "--follow is not for networks")
refused({db = net_db, shape = {"x=1"}}, {"sum"}, "--shape is for networks")
refused({db = net_db, dim = {"batch=1"}}, {"sum"}, "--dim is for networks")
os.remove(net_db)
os.remove(net_db .. "-lock")

os.remove(page_path)
os.remove(log)
support.remove_stores()
