-- msched bench gemm, bench tune: what tuning a matrix product gives, beside vendors' libraries, and what a trial costs.
local ms = msched
local rates = ms.load "lua.cli.rates"
local cli, tools, bench_row = ms.load "lua.cli.cli", ms.load "lua.bench.tools", ms.load "lua.bench.row"
local tune, refusals, named = ms.load "search.tune", ms.load "rules.refusals", ms.load "lua.lib.ops.named"

-- A product of matrices of these extents, and of the words that were given besides, as a member of a suite.
local function product(shape, options)
  local words = {}
  for i, extent in ipairs(shape) do words[i] = tostring(extent) end
  table.move(options.words, 1, #options.words, #words + 1, words)
  local known, func = pcall(named.func, "matmul", words)
  if not known then cli.misuse("%s", tostring(func)) end
  return {name = table.concat({table.concat(shape, "x"), table.unpack(options.words)}, " "), operator = "matmul",
          words = words}, func
end

-- TVM's result for a product, tuned with as many trials; nil: it is not asked.
local function ask_tvm(options, shape, trials)
  if not options.tvm then return nil end
  local m, n, k = table.unpack(shape)
  return tools.ask_tvm(options, "tvm_tune.py", m, n, k, trials)
end

-- Tunes as `msched tune` does. Gives the task, and what was counted: trials whose interval was
-- within 2 % of the median, and those that were stopped as hopeless.
local function tune_gemm(func, options, name)
  local tight, censored = 0, 0
  local task = tools.tune_alone(name, func, {trials = options.trials, seed = options.seed, target = options.target},
    function(e)
    if e.event == "trial" and e.status == "measured" and e.high - e.low <= 0.04 * e.seconds then tight = tight + 1 end
    if e.event == "trial" and e.status == "censored" then censored = censored + 1 end
  end)
  return task, tight, censored
end

-- ---- bench gemm ------------------------------------------------------------------------------------------------

local SHAPES = {{1024, 1024, 1024}, {512, 512, 512}, {768, 1000, 1152}}
local SECONDS, DEVICE_SECONDS = tools.at_most(3), tools.at_most(1) -- of timing, each; a device runs nothing else

local function print_row(row, func, task)
  local function rate(seconds) return cli.rate_text(cli.work_of(func), seconds) end
  local share = rates.share_text(row.limit, row.seconds)
  print(string.format("%-14s msched %9s [%s, %s] %s%s, %d trials in %.1f s", row.task, cli.time_text(row.seconds),
                      cli.time_text(row.low), cli.time_text(row.high), rate(row.seconds), share and ", " .. share or "",
                      task.done, task.seconds))
  if row.unused then print(string.format("%-14s %s", "", row.unused)) end
  for _, v in ipairs(row.vendors) do
    print(string.format("%-14s %-12s %9s %s, msched is %.2f times as fast%s", "", v.name, cli.time_text(v.seconds),
                        rate(v.seconds), v.ratio,
                        v.difference and string.format(", differs by %g", v.difference) or ""))
  end
  local routine = bench_row.routine_text(row)
  if routine then print(string.format("%-14s %s", "", routine)) end
end

local function put_row(row, task)
  local line = {bench = "gemm", shape = row.task, trials = task.done, tuning_seconds = task.seconds,
                seconds = row.seconds, low = row.low, high = row.high, operations = row.operations, unit = row.unit,
                bytes = row.bytes, limit = row.limit, share = rates.share(row.limit, row.seconds), unused = row.unused}
  for _, v in ipairs(row.vendors) do
    line[(v.name:lower():gsub(" ", "_"))] = {seconds = v.seconds, ratio = v.ratio, library = v.library,
                                             routine = v.routine ~= "" and v.routine or nil, difference = v.difference}
  end
  cli.put_json(line)
end

local function bench_gemm(options, target)
  if target.arch and options.onednn then cli.misuse("--onednn: oneDNN has no routine for %s", target.text) end
  local vendors = bench_row.vendors(target, options.onednn, options.json)
  if not options.json and #vendors == 0 then
    print(string.format("no vendor's library is installed: %s looked for",
                        target.arch and "cuBLAS and cuBLASLt are" or "libopenblas0 and libdnnl2 are"))
  end
  local failed = 0
  for _, shape in ipairs(options.shapes) do
    local member, func = product(shape, options)
    local task = tune_gemm(func, options, member.name)
    local row =
      bench_row.measure(member, func, task.fastest.trace, target, vendors, target.arch and DEVICE_SECONDS or SECONDS)
    local tvm = ask_tvm(options, shape, task.done)
    if tvm then
      table.insert(row.vendors, {name = "tvm", seconds = tvm.best_seconds, ratio = tvm.best_seconds / row.seconds})
    end
    if options.json then put_row(row, task) else print_row(row, func, task) end
    failed = failed + row.failed
    bench_row.refuse_wrong(bench_row.wrong(row))
  end
  return failed == 0 and cli.DONE or cli.FAILED
end

-- ---- bench tune ------------------------------------------------------------------------------------------------

local function bench_tune(options)
  local _, func = product(options.shapes[1], options)
  local env, tight, censored = tune_gemm(func, options, "tune")
  local each = env.seconds / env.done
  local tvm = ask_tvm(options, options.shapes[1], env.done)
  tvm = tvm and tvm.seconds_per_trial
  if options.json then
    cli.put_json {bench = "tune", trials = env.done, seconds = env.seconds, seconds_per_trial = each, within = tight,
                  censored = censored, failures = env.failures, refused = refusals.counts(env.refused),
                  best_seconds = env.fastest.seconds, tvm_seconds_per_trial = tvm, ratio = tvm and tvm / each}
    return cli.DONE
  end
  print(string.format("tune: %d trials in %.1f s, %.3f s each: %d timed to within 2 %%, %d stopped as hopeless, %d \z
                       other; not counted: %s; best %s %s", env.done, env.seconds, each, tight, censored,
                      env.done - tight - censored, tune.reasons_text(env.failures), cli.time_text(env.fastest.seconds),
                      cli.rate_text(cli.work_of(func), env.fastest.seconds)))
  if tvm then print(string.format("TVM: %.2f s a trial, %.0f times as long", tvm, tvm / each)) end
  return cli.DONE
end

-- What follows `--`: shapes, none: those that are always measured; and words of the operator, NAME=VALUE, which all of
-- them have.
local function read_rest(rest)
  local extents, words = {}, {}
  for _, text in ipairs(rest) do table.insert(text:find "=" and words or extents, text) end
  if #extents == 0 then return SHAPES, words end
  local shapes = {}
  for i, text in ipairs(extents) do
    local extent = math.tointeger(tonumber(text))
    if not extent or extent < 1 then cli.misuse("an extent of at least 1 is expected, not `%s`", text) end
    local s = (i - 1) // 3 + 1
    shapes[s] = shapes[s] or {}
    table.insert(shapes[s], extent)
  end
  if #extents % 3 ~= 0 then cli.misuse("a shape is three extents: M N K") end
  return shapes, words
end

-- Products are of float32 on CPUs where TVM is asked.
local function bench_products(bench, options, rest)
  options.trials = options.trials or 128
  options.shapes, options.words = read_rest(rest)
  local target = ms.target(options.target or "native", {runs = true})
  if options.tvm and (target.arch or #options.words > 0) then
    cli.misuse "--tvm: TVM tunes float32 on CPUs only; leave out --target and words of the operator, or --tvm"
  end
  return bench(options, target)
end

local PRODUCTS = {gemm = bench_gemm, tune = bench_tune}

-- Those with a file of their own, which takes names.
local OWN = {ablation = "lua.bench.ablation", nets = "lua.bench.nets", ops = "lua.bench.ops",
             policies = "lua.bench.policies", quality = "lua.bench.quality",
             search = "lua.bench.search", transfer = "lua.bench.transfer"}

return function(options, names, rest)
  options.data = options.data or ms.bench_data
  local name, more = names[1], table.move(names, 2, #names, 1, {})
  if OWN[name] then return ms.load(OWN[name])(options, more) end
  if name == "auto" or name == "lenet" then return ms.load "lua.bench.auto"[name](options, more) end
  if #more == 0 and PRODUCTS[name] then return bench_products(PRODUCTS[name], options, rest) end
  if #more == 0 and name == "model" then
    ms.load "lua.bench.model"(options)
    return cli.DONE
  end
  local known = {"replay", "kinds", "search", "policies", "quality", "ops", "ablation", "nets", "auto", "lenet",
                 "gemm", "tune", "model", "transfer"}
  cli.misuse("name a benchmark: %s or %s%s", table.concat(known, ", ", 1, #known - 1), known[#known],
             ms.load "lua.lib.nearest".meant(name or "", known))
end
