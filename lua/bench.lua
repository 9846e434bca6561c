-- msched bench gemm, bench tune: what tuning a matrix product gives, beside vendors' libraries, and what a trial costs.
local ms = msched
local cli, tools, work = ms.load "lua.cli", ms.load "lua.bench_tools", ms.load "lua.bench_work"
local tune, refusals = ms.load "search.tune", ms.load "rules.refusals"
local te, ops = ms.te, ms.ops

local function gemm(m, n, k)
  local A, B = te.placeholder({m, k}, "float32", "A"), te.placeholder({k, n}, "float32", "B")
  return te.func("gemm", {A, B, ops.matmul(A, B)})
end

-- Tunes as `msched tune` does. Gives the task, and what was counted: trials whose interval was
-- within 2 % of the median, and those that were stopped as hopeless.
local function tune_gemm(func, options, name)
  local tight, censored = 0, 0
  local task = tools.tune_alone(name, func, {trials = options.trials, seed = options.seed, target = options.target}, function(e)
    if e.event == "trial" and e.status == "measured" and e.high - e.low <= 0.04 * e.seconds then tight = tight + 1 end
    if e.event == "trial" and e.status == "censored" then censored = censored + 1 end
  end)
  return task, tight, censored
end

-- ---- bench gemm ------------------------------------------------------------------------------------------------

local SHAPES = {{1024, 1024, 1024}, {512, 512, 512}, {768, 1000, 1152}}
local SECONDS = 3 -- of timing, each

local function bench_shape(shape, options, vendors)
  local m, n, k = table.unpack(shape)
  local name = string.format("%dx%dx%d", m, n, k)
  local func = gemm(m, n, k)
  local env = tune_gemm(func, options, name)
  local kernel = ms.build(ms.apply(func, env.fastest.trace):func(), {target = env.target.text, reference = func})
  local arrays, other = ms.arrays_for(func, 1), ms.array({m, n})
  local calls = {kernel:prepare(table.unpack(arrays))}
  calls[1]:run()
  local product, rows = work.into(work.of("matmul", {dtype = "float32"}, arrays), other), {}
  for i, v in ipairs(vendors) do
    calls[i + 1] = v:prepare(product)
    calls[i + 1]:run()
    rows[i] = {name = v:name(), difference = arrays[3]:difference(other)}
  end
  local times = ms.time_in_turn(calls, SECONDS)
  for i, r in ipairs(rows) do r.seconds, r.low, r.high = times[i + 1].seconds, times[i + 1].low, times[i + 1].high end
  if options.peer then
    rows[#rows + 1] = {name = "peer", seconds = tools.ask_peer(options, "peer_tune.py", m, n, k, env.done).best_seconds}
  end
  local ours, operations = times[1], cli.work_of(func)
  if options.json then
    local line = {bench = "gemm", shape = name, trials = env.done, tuning_seconds = env.seconds, seconds = ours.seconds, low = ours.low, high = ours.high}
    for _, r in ipairs(rows) do line[(r.name:lower():gsub(" ", "_"))] = {seconds = r.seconds, ratio = r.seconds / ours.seconds, difference = r.difference} end
    cli.put_json(line)
    return
  end
  print(string.format("%-14s msched %9s [%s, %s] %s, %d trials in %.1f s", name, cli.time_text(ours.seconds), cli.time_text(ours.low),
                      cli.time_text(ours.high), cli.rate_text(operations, ours.seconds), env.done, env.seconds))
  for _, r in ipairs(rows) do
    print(string.format("%-14s %-12s %9s %s, msched is %.2f times as fast%s", "", r.name, cli.time_text(r.seconds), cli.rate_text(operations, r.seconds),
                        r.seconds / ours.seconds, r.difference and string.format(", differs by %g", r.difference) or ""))
  end
end

local function bench_gemm(options)
  local vendors = ms.vendors(ms.target(options.target or "native").cores)
  if not options.json then
    for _, v in ipairs(vendors) do print(tostring(v)) end
    if #vendors == 0 then print("no vendor's library is installed: libopenblas0 and libdnnl2 are looked for") end
  end
  for _, shape in ipairs(options.shapes) do bench_shape(shape, options, vendors) end
end

-- ---- bench tune ------------------------------------------------------------------------------------------------

local function bench_tune(options)
  local m, n, k = table.unpack(options.shapes[1])
  local func = gemm(m, n, k)
  local env, tight, censored = tune_gemm(func, options, "tune")
  local each = env.seconds / env.done
  local peer = options.peer and tools.ask_peer(options, "peer_tune.py", m, n, k, env.done).seconds_per_trial
  if options.json then
    cli.put_json {bench = "tune", trials = env.done, seconds = env.seconds, seconds_per_trial = each, within = tight, censored = censored,
                  failures = env.failures, refused = refusals.counts(env.refused), best_seconds = env.fastest.seconds, peer_seconds_per_trial = peer,
                  ratio = peer and peer / each}
    return
  end
  print(string.format("tune: %d trials in %.1f s, %.3f s each: %d timed to within 2 %%, %d stopped as hopeless, %d other; not counted: %s; best %s %s",
                      env.done, env.seconds, each, tight, censored, env.done - tight - censored, tune.reasons_text(env.failures),
                      cli.time_text(env.fastest.seconds), cli.rate_text(cli.work_of(func), env.fastest.seconds)))
  if peer then print(string.format("peer: %.2f s a trial, %.0f times as long", peer, peer / each)) end
end

-- The shapes given after `--`, or those that are always measured.
local function shapes_of(extents)
  if #extents == 0 then return SHAPES end
  local shapes = {}
  for i, text in ipairs(extents) do
    local extent = math.tointeger(tonumber(text))
    if not extent or extent < 1 then cli.misuse("an extent of at least 1 is expected, not `%s`", text) end
    local s = (i - 1) // 3 + 1
    shapes[s] = shapes[s] or {}
    table.insert(shapes[s], extent)
  end
  if #extents % 3 ~= 0 then cli.misuse("a shape is three extents: M N K") end
  return shapes
end

local benchmarks = {gemm = bench_gemm, tune = bench_tune, model = function(options) ms.load "lua.bench_model"(options) end}

-- Those with a file of their own, which takes names.
local OWN = {ops = "lua.bench_ops", policies = "lua.bench_policies", quality = "lua.bench_quality", search = "lua.bench_search"}

return function(options, names, rest)
  options.data = options.data or ms.bench_data
  if OWN[names[1]] then return ms.load(OWN[names[1]])(options, table.move(names, 2, #names, 1, {})) end
  if names[1] == "auto" or names[1] == "lenet" then return ms.load "lua.bench_auto"[names[1]](options, table.move(names, 2, #names, 1, {})) end
  local run = benchmarks[names[1]]
  if #names ~= 1 or not run then 
    local known = {"replay", "kinds", "search", "policies", "quality", "ops", "auto", "lenet", "gemm", "tune", "model"}
    cli.misuse("name a benchmark: %s or %s%s", table.concat(known, ", ", 1, #known - 1), known[#known], ms.load "lua.nearest".meant(names[1] or "", known))
  end
  options.trials = options.trials or 128
  options.shapes = shapes_of(rest)
  run(options)
  return cli.DONE
end
