-- Networks as commands take them: FILE.onnx, --shape and --dim.
local ms = msched
local cli, rates = ms.load "lua.cli.cli", ms.load "lua.cli.rates"
local network = {}

local MOST_EXTENT = 2147483647

local function extent_of(option, text, word)
  local extent = text:find "^%d+$" and math.tointeger(tonumber(text))
  if not extent or extent > MOST_EXTENT then cli.misuse("%s %s: `%s` is no extent", option, word, text) end
  return extent
end

-- NAME=VALUE, of which the name may hold =.
local function pair_of(option, word, form)
  local name, value = word:match "^(.+)=(.*)$"
  if not name then cli.misuse("%s %s: %s is expected", option, word, form) end
  return name, value
end

-- {shapes =, dims =, constants =} of the options.
function network.given(options)
  local shapes, dims, constants = {}, {}, {}
  for _, word in ipairs(options.constant or {}) do
    local name, value = pair_of("--constant", word, "NAME=NUMBER, as sr=16000,")
    local number = tonumber(value)
    if not number or math.abs(number) == math.huge then cli.misuse("--constant %s: `%s` is no number", word, value) end
    constants[name] = number
  end
  for _, word in ipairs(options.shape or {}) do
    local name, value = pair_of("--shape", word, "NAME=SHAPE, as x=1x3x224x224,")
    shapes[name] = {}
    for text in (value .. (value ~= "" and "x" or "")):gmatch "(.-)x" do
      table.insert(shapes[name], extent_of("--shape", text, word))
    end
  end
  for _, word in ipairs(options.dim or {}) do
    local name, value = pair_of("--dim", word, "NAME=N, as batch=1,")
    dims[name] = extent_of("--dim", value, word)
  end
  return {shapes = shapes, dims = dims, constants = constants}
end

function network.read(options, path)
  local ok, net = pcall(ms.onnx, path, network.given(options))
  if ok then return net end
  if type(net) == "table" then error(net, 0) end
  cli.refuse("%s", tostring(net))
end

-- Of the options, those that say what a network's plan is made of.
local function planned(options, more)
  more = more or {}
  for _, name in ipairs {"passes", "layout", "target", "fixed_order"} do more[name] = more[name] or options[name] end
  local layout = ms.load "lua.net.layout"
  if more.layout and not layout.is_known(more.layout) then
    cli.misuse("--layout %s: it is one of %s%s", more.layout, table.concat(layout.NAMES, ", "),
               ms.load "lua.lib.nearest".meant(more.layout, layout.NAMES))
  end
  return more
end
network.planned = planned

-- Runs what a network is asked for; a refusal is the command's.
local function attempt(f, ...)
  local ok, result = ms.interruptible(f, ...)
  if ok then return result end
  if type(result) == "table" then error(result, 0) end
  cli.refuse("%s", tostring(result))
end
network.attempt = attempt

-- plan.prepare with layouts chosen by the store and what the analytical model says, as a run's options have it.
local function prepare(net, run, options)
  local store = cli.open_store(run.db)
  options.costs = ms.load "lua.net.tune".costs(run, store)
  local ok, prepared = pcall(attempt, ms.load "lua.net.plan".prepare, net, options)
  store:close()
  if not ok then error(prepared, 0) end
  return prepared
end

-- The functions of a network's plan, how often it has each, and the plan as it is prepared. options.run: the options of
-- a run of tuning, where there is one.
function network.functions(options, path)
  local net, how = network.read(options, path), planned(options)
  local prepared = options.run and prepare(net, options.run, how) or attempt(ms.load "lua.net.plan".prepare, net, how)
  local list, weights = {}, {}
  for i, entry in ipairs(prepared.functions) do list[i], weights[i] = entry.func, entry.weight end
  return list, weights, prepared
end

local function values_of(list)
  local values = {}
  for i, value in ipairs(list) do
    values[i] = {name = value.name, type = value.type, shape = value.shape and cli.list(value.shape)}
  end
  return cli.list(values)
end

-- Prints what a pass left, or each with `all`, and what the stages behind them did.
local function print_after(options, net)
  local plan, wanted, names = ms.load "lua.net.plan", options["print-after"], {}
  for _, pass in ipairs(attempt(ms.load "lua.net.passes".list, options.passes)) do names[#names + 1] = pass.name end
  table.move(plan.STAGES, 1, #plan.STAGES, #names + 1, names)
  local known = wanted == "all"
  for _, name in ipairs(names) do known = known or name == wanted end
  if not known then
    cli.misuse("--print-after %s: the passes are %s; `all` prints after each%s", wanted, table.concat(names, ", "),
               ms.load "lua.lib.nearest".meant(wanted, names))
  end
  local how = planned(options, {after = function(name, x, notes)
    if wanted ~= "all" and name ~= wanted then return end
    local lines = {x:text()}
    for i, note in ipairs(notes or {}) do lines[i + 1] = "  " .. ms.visible(note) end
    local text = table.concat(lines, "\n")
    if options.json then cli.put_json {after = name, text = text}
    else cli.print_lines(wanted == "all" and string.format("after %s:\n%s", name, text) or text) end
  end})
  if wanted == "all" or wanted == "layout" or wanted == "fusion" then
    prepare(net, {no_tune = true, db = options.db, target = options.target}, how)
  else attempt(plan.prepare, net, how) end
  return cli.DONE
end

-- msched show FILE.onnx
function network.show(options, path)
  local net = network.read(options, path)
  if options["print-after"] then return print_after(options, net) end
  for _, name in ipairs {"passes", "layout"} do
    if options[name] then
      cli.misuse("--%s goes with --print-after: without it the network is shown as the file has it", name)
    end
  end
  if not options.json then
    cli.print_lines(net:text())
    return cli.DONE
  end
  local constants, operators = 0, net:operators()
  for _ in pairs(net.constants) do constants = constants + 1 end
  cli.put_json {network = net.name, producer = net.producer, opset = net.opsets[""], nodes = #net.nodes,
                constants = constants, operators = operators, inputs = values_of(net.inputs),
                outputs = values_of(net.outputs)}
  return cli.DONE
end

-- ---- msched tune FILE.onnx ---------------------------------------------------------------------------------------

local MOST_LISTED, RUNS = 12, 5 -- lines of the table; runs that are looked into

-- Functions by their time in the network, the longest first: {entry, name, seconds, alone}. profile: as plan:profile
-- gives it.
function network.shares(opened, tasks, profile)
  local alone, by_entry, list = {}, {}, {}
  for _, task in ipairs(tasks) do alone[task.func:hash()] = task.fastest and task.fastest.seconds end
  for _, each in ipairs(profile or opened:profile(RUNS)) do
    local entry = each.group.kernel or "copies"
    if not by_entry[entry] then
      by_entry[entry] = {entry = entry, seconds = 0, alone = 0, name = each.group.kernel and entry.name or "copies"}
      list[#list + 1] = by_entry[entry]
    end
    local known = by_entry[entry]
    known.seconds, known.alone = known.seconds + each.seconds,
      known.alone + (each.group.kernel and alone[entry.hash] or 0)
  end
  table.sort(list, function(a, b) return a.seconds > b.seconds end)
  return list
end

-- How many calls a plan has, and how many of them run side by side.
function network.calls_text(opened)
  local text, beside = cli.count_text(#opened.calls, "call"), opened:count_beside()
  return beside > 0 and string.format("%s (%d side by side)", text, beside) or text
end

-- Whether a task's fastest was measured: what the analytical model proposes has no time.
function network.is_tuned(task) return task.fastest ~= nil and (task.fastest.seconds or 0) > 0 end

-- The plan as the analytical model proposes it, where functions were measured; nil: it is the same.
function network.untuned_of(net, options, tasks)
  local tuned = false
  for _, task in ipairs(tasks or {}) do tuned = tuned or network.is_tuned(task) end
  if not tuned then return nil end
  return ms.load "lua.bench.tools".with_store(function(store)
    return attempt(net.plan, net, planned(options, {no_tune = true, store = store}))
  end)
end

local ROUNDS, EACH = 5, 0.1 -- of the whole; seconds of each plan in one

-- The seconds of plans, in rounds, each in turn: medians.
function network.times_of(plans)
  local times, medians = {}, {}
  for i in ipairs(plans) do times[i] = {} end
  for _ = 1, ROUNDS do
    for i, opened in ipairs(plans) do table.insert(times[i], (opened:time(EACH))) end
    if ms.interrupted() then cli.refuse "interrupted" end
  end
  for i, list in ipairs(times) do
    table.sort(list)
    medians[i] = list[(#list + 1) // 2]
  end
  return medians
end

-- The plan with what is best of each task, its seconds, those of the untuned plan where that is another one, and what
-- was chosen, as tune.settle gives it.
local function settled(each, tasks, options, store)
  local tune, chosen = ms.load "lua.net.tune", {compared = 0, changed = 0}
  if not options.deterministic then chosen = attempt(tune.settle, each.prepared, tasks, store, options.target) end
  if chosen.plan then return chosen.plan, chosen.seconds, chosen.untuned_seconds, chosen end
  local opened =
    attempt(ms.load "lua.net.plan".open, each.prepared, tune.builder(tasks, options.target), options.target)
  local base = options.deterministic and not options.seconds -- which takes time
    and network.untuned_of(each.prepared.net, options, tasks) or nil
  local plans = {opened, base}
  for _, one in ipairs(plans) do one:fill(options.seed or 1) end
  local seconds, untuned = table.unpack(network.times_of(plans))
  return opened, seconds, untuned, chosen
end

-- Prints how finalists inside the network were chosen, and whether the whole is that without tuning.
local function print_chosen(chosen)
  if chosen.compared > 0 then
    local changed = chosen.changed == 0 and "the best alone are the best there" or
      string.format("of %d another one is the best there", chosen.changed)
    cli.print(string.format("  finalists of %s timed again inside it: %s", cli.count_text(chosen.compared, "function"),
                            changed))
  end
  if chosen.kept_untuned then
    cli.print(string.format("  as a whole it is faster without tuning: %s the untuned candidate from now on",
                            chosen.kept_untuned == 1 and "1 function has"
                              or string.format("%d functions have", chosen.kept_untuned)))
  end
end

-- After tuning: finalists timed inside the network, then the whole with the best of each task, beside the untuned plan,
-- and where its time goes.
function network.tell(each, tasks, options, store)
  local opened, seconds, untuned, chosen = settled(each, tasks, options, store)
  local list, inside, alone = network.shares(opened, tasks), 0, 0
  for _, share in ipairs(list) do inside, alone = inside + share.seconds, alone + share.alone end
  if options.json then
    local functions = {}
    for i, share in ipairs(list) do
      functions[i] = {name = share.name, seconds = share.seconds, alone_seconds = share.alone,
                      weight = share.entry.weight}
    end
    cli.put_json {event = "network", network = each.path, seconds = seconds, untuned_seconds = untuned,
                  calls = #opened.calls, side_by_side = opened:count_beside(), functions = cli.list(functions),
                  alone_seconds = alone, arena_bytes = opened.arena_bytes,
                  constant_bytes = opened.constant_bytes, compared = chosen.compared,
                  changed = chosen.changed, kept_untuned = chosen.kept_untuned}
    return
  end
  local before = untuned and string.format(" (untuned %s)", cli.time_text(untuned)) or ""
  cli.print(string.format("network %s: %s%s, %s of %s; its functions one by one %s, alone %s; %s of values, %s of \z
                           constants", each.path, cli.time_text(seconds), before, network.calls_text(opened),
                          cli.count_text(#each.prepared.functions, "function"), cli.time_text(inside),
                          cli.time_text(alone), cli.bytes_text(opened.arena_bytes),
                          cli.bytes_text(opened.constant_bytes)))
  print_chosen(chosen)
  for i = 1, math.min(#list, MOST_LISTED) do
    local share = list[i]
    local count = share.entry.weight or 1
    cli.print(string.format("  %4.1f %%  %10s  %3d x  %s  %s", 100 * share.seconds / inside,
                            cli.time_text(share.seconds), count, share.name,
                            share.entry.func and rates.text(cli.work_of(share.entry.func), share.seconds / count)
                              or ""))
  end
  if #list > MOST_LISTED then cli.print(string.format("  and %d more", #list - MOST_LISTED)) end
end

-- ---- msched export FILE.onnx -------------------------------------------------------------------------------------

-- The plan as the store has it tuned, or else as the analytical model proposes. store: the user's, where it is open.
function network.plan_of(net, options, given, store)
  return attempt(net.plan, net,
                 planned(options, {no_tune = true, store = store or cli.open_store(options.db), given = given}))
end

function network.export(options, ids)
  if ids[2] or options.pinned or options.name then
    cli.misuse("%s is a network: it is exported alone, and the library's name is its functions' prefix", ids[1])
  end
  local folder = options.output:match "^(.*/)[^/]*$"
  if folder and not cli.is_there(folder .. ".") then cli.refuse("%s: there is no folder %s", options.output, folder) end
  local opened = network.plan_of(network.read(options, ids[1]), options)
  local replaced = cli.is_there(options.output)
  local paths = attempt(opened.export, opened, options.output)
  local beside = paths[2] and "; beside it " .. table.concat(paths, ", ", 2) or ""
  cli.print(string.format("%s: %s, %s; %s in %s%s", paths[1], replaced and "replaced" or "written",
                          cli.size_text(paths[1]), cli.count_text(#opened.prepared.functions, "function"),
                          network.calls_text(opened), beside))
  return cli.DONE
end

-- ---- msched run FILE.onnx ----------------------------------------------------------------------------------------

-- The arrays of --input, by the input's name.
function network.given_inputs(net, options)
  local arrays, known = {}, {}
  for _, input in ipairs(net.inputs) do known[input.name] = input end
  for _, word in ipairs(options.input or {}) do
    local name, path = pair_of("--input", word, "NAME=FILE")
    if not known[name] then
      cli.refuse("--input %s: the network has no input %s%s", word, name,
                 ms.load "lua.lib.nearest".meant(name, ms.sorted_keys(known)))
    end
    local ok, array = pcall(ms.load_array, path)
    if not ok then cli.refuse("--input %s: %s", name, tostring(array)) end
    arrays[name] = array
  end
  return arrays
end

-- Small integers for what is not given, where its extents are known; what has none is refused when the network is
-- looked at. Gives those arrays.
local function fill(net, arrays, seed)
  local drawn = {}
  for i, input in ipairs(net.inputs) do
    local whole = input.shape ~= nil
    for _, extent in ipairs(input.shape or {}) do whole = whole and math.type(extent) == "integer" end
    if whole and not arrays[input.name] then
      local ok, array = pcall(ms.array, input.shape, input.type)
      if not ok then cli.refuse("%s: input %s: %s", net.path, input.name, tostring(array)) end
      arrays[input.name] = array:random(seed + i)
      drawn[input.name] = array
    end
  end
  return drawn
end

-- The name of each output's file, without what a path cannot have; two outputs have two.
local function file_names(net)
  local names, taken = {}, {}
  for i, output in ipairs(net.outputs) do
    local name = output.name:gsub("[^%w_.-]", "_"):gsub("^%.", "_")
    while taken[name] do name = name .. "_" .. i end
    names[i], taken[name] = name, true
  end
  return names
end

local function put_outputs(net, outputs, folder, quiet)
  local names = file_names(net)
  for i, output in ipairs(net.outputs) do
    local array = outputs[output.name]
    if folder then
      local path = string.format("%s/%s.npy", folder, names[i])
      local ok, message = pcall(array.save, array, path)
      if not ok then cli.refuse("output %d, %s: %s", i, output.name, tostring(message)) end
      if not quiet then cli.print(string.format("%s: %s", output.name, path)) end
    else cli.print(string.format("%s: %s", output.name, tostring(array))) end
  end
end

local MOST_STEPS = 20000000 -- operations of a node that are interpreted whole, where --steps says nothing else

-- The kernels are those that the store has as the fastest, and of what was never tuned what the analytical model
-- proposes.
function network.run(options, path)
  local net = network.read(options, path)
  if options.output and not cli.is_there(options.output .. "/.") then
    cli.refuse("%s: there is no folder of this name to put the outputs in; make it first", options.output)
  end
  local arrays = network.given_inputs(net, options)
  local drawn = fill(net, arrays, options.seed or 1)
  local start = ms.clock()
  local opened = network.plan_of(net, options, arrays)
  opened:keep_within(drawn)
  local build = ms.clock() - start
  local outputs, report =
    table.unpack(attempt(function() return {opened:run(arrays, {most_work = options.steps or MOST_STEPS})} end))
  local seconds, fixed = opened:time(0), opened.prepared.fixed
  if options.json then
    cli.put_json {ok = true, functions = #opened.prepared.functions, calls = #opened.calls,
                  side_by_side = opened:count_beside(), seconds = seconds, build_seconds = build,
                  elements = report.elements, interpreted_elements = report.compared, difference = report.most,
                  fixed = cli.list(fixed), arena_bytes = opened.arena_bytes,
                  constant_bytes = opened.constant_bytes}
    if options.output then put_outputs(net, outputs, options.output, true) end
    return cli.DONE
  end
  cli.print(string.format("%s in %s, made in %s, run in %s; equal to the interpreter's at %d of %s",
                          cli.count_text(#opened.prepared.functions, "function"), network.calls_text(opened),
                          cli.time_text(build), cli.time_text(seconds), report.compared,
                          cli.count_text(report.elements, "element")))
  if #fixed > 0 then
    cli.print("shapes depend on what is in " .. table.concat(fixed, ", ")
              .. ": the functions are good for these values alone")
  end
  put_outputs(net, outputs, options.output)
  return cli.DONE
end

return network
