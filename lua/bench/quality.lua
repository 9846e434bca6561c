-- msched bench quality: how long tuning takes until its best kernel is as fast as the best that TVM finds with so many
-- trials. Both times are as each measures its own kernels, on as many threads.
local ms = msched
local cli, tools = ms.load "lua.cli.cli", ms.load "lua.bench.tools"

local USUAL = {"GMM1024", "C2D", "DEP", "C1D", "SFM", "NRM"}

-- When the best of a run was first as fast: seconds since it began, and trials; nil: never.
local function reach(name, func, seconds, options)
  local at, trials
  local task = tools.tune_alone(name, func, {trials = options.trials, seed = options.seed, target = options.target},
    function(e)
    if e.event == "trial" and not at and e.best_seconds and e.best_seconds <= seconds then
      at, trials = e.elapsed, e.done
    end
  end)
  return at, trials, task
end

local function report(line)
  local reached = line.reached_seconds and string.format("reached after %.2f s, %d trials: %.0f times as soon",
    line.reached_seconds, line.reached_trials, line.tvm_tuning_seconds / line.reached_seconds) or "not reached"
  print(string.format("%-9s TVM %s of %d trials in %.0f s; %s; best %s, %.2f times as fast, in %.1f s", line.workload,
                      cli.time_text(line.tvm_seconds), line.trials, line.tvm_tuning_seconds, reached,
                      cli.time_text(line.best_seconds), line.tvm_seconds / line.best_seconds, line.tuning_seconds))
end

return function(options, names)
  options.seed, options.trials = options.seed or 1, options.trials or 128
  if not options.tvm then cli.misuse "--tvm PYTHON is needed: a Python with TVM" end
  if options.trials < 1 then cli.misuse "--trials: a number of at least 1 is expected" end
  local target = ms.target(options.target or "native", {runs = true})
  if target.arch then cli.misuse("--target: TVM is measured on CPUs only, not for %s", target.text) end
  for _, name in ipairs(#names > 0 and names or USUAL) do
    local func = cli.functions_of(string.format("%s/workloads/%s.py", options.data, name))[1]
    local tvm = tools.ask_tvm(options, "tvm_quality.py", options.data, name, target.cores, options.trials)
    local at, trials, task = reach(name, func, tvm.best_seconds, options)
    local line = {bench = "quality", workload = name, trials = options.trials, seed = options.seed,
                  tvm_seconds = tvm.best_seconds, tvm_tuning_seconds = tvm.seconds, reached_seconds = at,
                  reached_trials = trials, best_seconds = task.fastest.seconds, tuning_seconds = task.seconds}
    if options.json then cli.put_json(line) else report(line) end
  end
  return cli.DONE
end
