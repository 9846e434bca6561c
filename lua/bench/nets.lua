-- msched bench nets: networks, each tuned as one, beside onnxruntime and OpenVINO: the same inputs, outputs compared,
-- as many threads, timed in rounds, in turn.
local ms = msched
local cli, tools, rates = ms.load "lua.cli.cli", ms.load "lua.bench.tools", ms.load "lua.cli.rates"
local network, common = ms.load "lua.cli.network", ms.load "lua.net.common"

local TRIALS, ROUNDS, SECONDS = 32, 7, 0.3 -- of a function; of a network, and of each side in a round
local TOLERANCE, HALF = 1e-3, 1e-2 -- of the largest element; where most constants have 16 bits
local SHARE = 1e-3 -- what the largest element of a sigmoid counts for at least: others compute it within 1e-7 of 1
-- Where a value that is rounded the other way is a step of 8 bits, and the layers after it carry that on: of the root
-- mean square. onnxruntime's own outputs of BERT, with its optimizations and without, are 0.04 apart, and 0.12 at most.
local QUANTIZED = 0.1
local MOST_LISTED, MOST_NAMED = 8, 3 -- functions of a network that --profile shows; of those that are far from their
                                     -- limits

-- ---- Others ---------------------------------------------------------------------------------------------------------

-- Programs that networks are compared with, by their options. prefix: of what a line says of the comparison.
local RUNTIMES = {{option = "onnxruntime", name = "onnxruntime", script = "onnxruntime_network.py", prefix = ""},
                  {option = "openvino", name = "OpenVINO", script = "openvino_network.py", prefix = "openvino_"}}

local Runtime = {}
Runtime.__index = Runtime

local quoted = ms.load "lua.lib.files".quoted

local function read_all(path)
  local file = io.open(path, "rb")
  local text = file and file:read "a" or ""
  if file then file:close() end
  return text
end

-- The next object that it prints: its numbers and strings by name.
function Runtime:answer()
  for line in self.output:lines() do
    if line:sub(1, 1) == "{" then
      local values = {}
      for name, text in line:gmatch '"([%w_]+)": ("?[^",}]+)' do
        values[name] = text:sub(1, 1) == '"' and text:sub(2) or tonumber(text)
      end
      return values
    end
  end
  cli.refuse("%s does not answer: %s, of %s; it says:\n%s", self.name, self.python, self.model,
             read_all(self.log):sub(-2000))
end

-- A process with the model's session, which has run it on these inputs. The shell opens the pipe that it answers on
-- before Python starts: where that fails, or ends, the answer is the end of the pipe; what is then written to it is
-- read by nobody but `cat`.
local function open_runtime(kind, options, model, folder, names, target)
  local runtime =
    setmetatable({option = kind.option, name = kind.name, prefix = kind.prefix, python = options[kind.option],
                  model = model, folder = folder, log = folder .. "/log"}, Runtime)
  local answers, list <close> = folder .. "/answers", assert(io.open(folder .. "/inputs", "w"))
  for _, name in ipairs(names) do list:write(name, "\n") end
  list:close()
  if not os.execute("mkfifo " .. quoted(answers)) then cli.refuse("%s: no pipe can be made", answers) end
  local command = quoted(runtime.python, options.data .. "/" .. kind.script, model, folder, target.cores or 1,
                         target.arch and "cuda" or "cpu")
  runtime.input = assert(io.popen(string.format("%s 2>%s >%s; exec cat >/dev/null", command, quoted(runtime.log),
                                                quoted(answers)), "w"))
  runtime.output = assert(io.open(answers))
  runtime.about = runtime:answer()
  return runtime
end

function Runtime:time(seconds)
  self.input:write(seconds, "\n")
  self.input:flush()
  return self:answer().seconds or cli.refuse("%s gives no seconds for %s", self.name, self.model)
end

-- Its input ends, and with that the process.
function Runtime:close()
  self.input:close()
  self.output:close()
end

-- ---- A network -----------------------------------------------------------------------------------------------------

-- MODEL[:NAME=SHAPE]…: the path, and what --shape would be given.
local function read_word(word)
  local path, rest = word:match "^(.-%.onnx)(:?.*)$"
  if not path or rest ~= "" and rest:sub(1, 1) ~= ":" then
    cli.misuse("%s: a network is expected, FILE.onnx or FILE.onnx:NAME=SHAPE", word)
  end
  local shapes = {}
  while rest ~= "" do -- names may hold colons, as TensorFlow's do
    local shape, more = rest:match "^:([^=]+=[%dx]*)(.*)$"
    if not shape then cli.misuse("%s: `%s` is no NAME=SHAPE, as :x=1x3x224x224", word, rest) end
    shapes[#shapes + 1], rest = shape, more
  end
  return path, shapes
end

-- Arrays for the inputs, those that are given: else numbers of all digits, of integers 0 and 1, which are indices of
-- most tables.
local function inputs_of(opened, seed, given)
  local arrays = {}
  for i, input in ipairs(opened.net.inputs) do
    local own = opened.arrays[input.name]
    if given[input.name] then arrays[input.name] = given[input.name]
    elseif own:type():find "float" then arrays[input.name] = ms.array(own:shape(), own:type()):random(seed + i, true)
    else
      arrays[input.name] = ms.array(own:shape(), own:type(),
                                    function(at) return (at * 2654435761 + seed + i) >> 7 & 1 end)
    end
  end
  opened:keep_within(arrays)
  return arrays
end

-- The plan of a network: tuned with options.trials in a store; or the analytical model's.
local function plan_of(net, options, store, name, given)
  local ok, opened =
    ms.interruptible(net.plan, net, {trials = options.trials, no_tune = options["no-tune"], seed = options.seed,
                                     target = options.target, store = store, passes = options.passes,
                                     layout = options.layout, given = given, listen = tools.progress_line(name)})
  if ms.interrupted() then cli.refuse("interrupted") end
  if not ok then cli.refuse("%s", type(opened) == "table" and opened.message or tostring(opened)) end
  return opened
end

local PASSES_ON = common.set "Identity Reshape Flatten Squeeze Unsqueeze Transpose"
-- What the largest element of an output counts for at least.
local function least_scale(net, name)
  local node = net:giver(name)
  while node and PASSES_ON[node.op] do node = net:giver(node.inputs[1]) end
  return node and node.op == "Sigmoid" and SHARE or 1e-30
end

-- The largest difference of all outputs, as a share of the largest element of the other program's; and the largest of
-- the root mean squares of their differences, as a share of that of its elements.
local function difference(net, outputs, folder)
  local most, most_mean = 0.0, 0.0
  local function larger(x, y) return y == y and math.max(x, y) or math.huge end -- infinity by infinity is none
  for i, output in ipairs(net.outputs) do
    local ours, theirs = outputs[output.name], ms.load_array(string.format("%s/OUTPUT.%d.npy", folder, i - 1))
    local apart, _, mean = ours:difference(theirs)
    local largest, _, size = theirs:difference(ms.array(theirs:shape(), theirs:type()))
    local least = least_scale(net, output.name)
    most = larger(most, apart / math.max(largest, least))
    most_mean = larger(most_mean, mean / math.max(size, least))
  end
  return most, most_mean
end

local function is_quantized(net)
  for operator in pairs(net:operators()) do
    if operator:find "Quantize" or operator:find "QLinear" then return true end
  end
  return false
end

-- How far outputs may be apart, of numbers that are not quantized: by the type of most constants that are floats.
local function tolerance_of(net)
  local halves, all = 0, 0
  for _, array in pairs(net.constants) do
    if common.is_float(array:type()) then all = all + #array end
    if common.is_half(array:type()) then halves = halves + #array end
  end
  return 2 * halves > all and HALF or TOLERANCE
end

local function median(times)
  table.sort(times)
  return times[(#times + 1) // 2]
end

-- Ours and the others' in rounds, each of which begins with another one.
local function compare_times(opened, runtimes, line, seconds)
  local sides = {opened, table.unpack(runtimes)}
  local times = {}
  for k in ipairs(sides) do times[k] = {} end
  for round = 1, ROUNDS do
    for at = 1, #sides do
      local k = (at + round) % #sides + 1
      times[k][round] = sides[k]:time(seconds)
    end
    if ms.interrupted() then cli.refuse("interrupted") end
  end
  line.seconds, line.least_seconds = median(times[1]), times[1][1]
  for k, runtime in ipairs(runtimes) do
    local theirs = median(times[k + 1])
    line[runtime.option .. "_seconds"], line[runtime.option .. "_least_seconds"] = theirs, times[k + 1][1]
    line[runtime.prefix .. "ratio"], line[runtime.prefix .. "least_ratio"] = theirs / line.seconds,
      times[k + 1][1] / line.least_seconds
  end
end

-- Notes another program's version and memory before it is timed, and how its outputs differ from ours.
local function about_runtime(runtime, line, net, outputs)
  line[runtime.option], line[runtime.option .. "_peak_bytes"] = runtime.about.version,
    runtime.about.peak_bytes ~= 0 and runtime.about.peak_bytes or nil
  local most, mean = difference(net, outputs, runtime.folder)
  line[runtime.prefix .. "difference"], line[runtime.prefix .. "mean_difference"] = most, mean
  if is_quantized(net) and mean > QUANTIZED or not is_quantized(net) and most > tolerance_of(net) then
    line.wrong = true
  end
end

-- The processes of all programs that options name, which are closed together.
local function open_runtimes(options, path, folder, names, target)
  local runtimes =
    setmetatable({}, {__close = function(list) for _, runtime in ipairs(list) do runtime:close() end end})
  for _, kind in ipairs(RUNTIMES) do
    if options[kind.option] then
      local own = folder .. "/" .. kind.option
      assert(os.execute(string.format("mkdir %s && ln %s/INPUT.*.npy %s", quoted(own), quoted(folder), quoted(own))))
      runtimes[#runtimes + 1] = open_runtime(kind, options, path, own, names, target)
    end
  end
  return runtimes
end

-- Measures a network: the line of it, and its plan.
local function measure(options, store, target, path, shapes)
  local net = network.read({shape = shapes}, path)
  local name = path:match "([^/]*)%.onnx$"
  local start = ms.clock()
  local given = network.given_inputs(net, options)
  local opened = plan_of(net, options, store, name, given)
  local line = {bench = "nets", model = path, trials = options.trials, tuning_seconds = ms.clock() - start,
                functions = #opened.prepared.functions, calls = #opened.calls,
                side_by_side = opened:count_beside(), peak_bytes = opened.arena_bytes + opened.constant_bytes}
  local inputs, ok, outputs = inputs_of(opened, options.seed, given), nil, nil
  ok, outputs = pcall(opened.run, opened, inputs)
  if not ok then cli.refuse("%s", tostring(outputs)) end -- an input of another shape, an index out of its range
  ms.with_folder(function(folder)
    local names = {}
    for i, input in ipairs(opened.net.inputs) do
      names[i] = input.name
      inputs[input.name]:save(string.format("%s/INPUT.%d.npy", folder, i - 1))
    end
    local runtimes <close> = open_runtimes(options, path, folder, names, target)
    for _, runtime in ipairs(runtimes) do about_runtime(runtime, line, net, outputs) end
    compare_times(opened, runtimes, line, options.seconds)
  end)
  return line, opened
end

-- ---- What is shown -------------------------------------------------------------------------------------------------

-- The functions of a network, those that take most of its time first, with what limits a call of each, as measured
-- here.
local function shares_of(opened, target)
  local limits = ms.load "lua.bench.limits".open()
  local list = network.shares(opened, opened.tasks)
  for _, share in ipairs(list) do
    share.weight = share.entry.weight or 1
    local ok, limit = pcall(limits.of, limits, share.entry.func, target) -- copies have none
    share.limit = ok and limit or nil
  end
  return list
end

local function functions_of(shares)
  local list = {}
  for i, share in ipairs(shares) do
    list[i] = {name = share.name, seconds = share.seconds, weight = share.weight, alone_seconds = share.alone,
               limit = share.limit and share.limit.name, limit_seconds = share.limit and share.limit.seconds}
  end
  return list
end

local function print_line(line)
  local compared = ""
  for _, kind in ipairs(RUNTIMES) do
    local prefix = kind.prefix
    if line[prefix .. "ratio"] then
      compared = compared
        .. string.format("; %s %s, msched is %.2f times as fast (at its least %.2f), differs by %.2g", kind.name,
                         cli.time_text(line[kind.option .. "_seconds"]), line[prefix .. "ratio"],
                         line[prefix .. "least_ratio"], line[prefix .. "difference"])
    end
  end
  if line.wrong then compared = compared .. ", WRONG" end
  local memory = line.onnxruntime_peak_bytes and string.format(" (%.1f)", line.onnxruntime_peak_bytes / 1e6) or ""
  print(string.format("%-18s msched %s in %d calls%s; %.1f MB%s, made in %.1f s", line.model:match "([^/]*)%.onnx$",
                      cli.time_text(line.seconds), line.calls, compared, line.peak_bytes / 1e6, memory,
                      line.tuning_seconds))
end

-- What a function takes beyond its limit, in all its calls; all of its time where no limit is known.
local function beyond(share)
  return math.max(0, share.seconds - (share.limit and share.weight * share.limit.seconds or 0))
end

local function print_functions(shares)
  local whole, rest, parts = 0, 0, {}
  for _, share in ipairs(shares) do whole, rest = whole + share.seconds, rest + beyond(share) end
  for i = 1, math.min(#shares, MOST_LISTED) do
    local share = shares[i]
    local once = share.seconds / share.weight
    local of_limit = rates.share_text(share.limit, once)
    print(string.format("  %4.1f %%  %10s  %3d x  %s  %s%s", 100 * share.seconds / whole, cli.time_text(share.seconds),
                        share.weight, share.name, share.entry.func and rates.text(cli.work_of(share.entry.func), once)
                        or "", of_limit and ", " .. of_limit or ""))
  end
  table.sort(shares, function(a, b) return beyond(a) > beyond(b) end)
  for i = 1, math.min(#shares, MOST_NAMED) do
    parts[i] = string.format("%.1f %% in %s", 100 * beyond(shares[i]) / whole, shares[i].name)
  end
  print(string.format("  at their limits all functions take %.0f %% of the time; of the rest %s",
                      100 * (1 - rest / whole), table.concat(parts, ", ")))
end

local function show(options, line, opened, target)
  local shares = options.profile and shares_of(opened, target) or nil
  if options.json then
    line.by_function = shares and cli.list(functions_of(shares)) or nil
    cli.put_json(line)
    return
  end
  print_line(line)
  if shares then print_functions(shares) end
end

local function show_means(options, lines)
  local total, count = {bench = "nets total", networks = #lines}, 0
  for _, kind in ipairs(RUNTIMES) do
    local ratios = {}
    for _, line in ipairs(lines) do ratios[#ratios + 1] = line[kind.prefix .. "ratio"] end
    if #ratios > 0 then
      local mean, least = tools.geometric_mean(ratios), math.min(table.unpack(ratios))
      total[kind.prefix .. "ratio"], total[kind.prefix .. "least"], count = mean, least, count + 1
      if not options.json then
        print(string.format("%s: %.2f times as fast as %s (geometric mean), at least %.2f",
                            cli.count_text(#ratios, "network"), mean, kind.name, least))
      end
    end
  end
  if options.json and count > 0 then cli.put_json(total) end
end

local function bench(options, list, store, target)
  local lines, wrong, names = {}, {}, {}
  for _, each in ipairs(list) do
    local line, opened = measure(options, store, target, each.path, each.shapes)
    show(options, line, opened, target)
    lines[#lines + 1] = line
    if line.wrong then wrong[#wrong + 1] = each.path end
  end
  show_means(options, lines)
  for _, kind in ipairs(RUNTIMES) do names[#names + 1] = options[kind.option] and kind.name .. "'s" or nil end
  if #wrong > 0 then
    cli.refuse("outputs differ from %s: %s", table.concat(names, " or "), table.concat(wrong, ", "))
  end
  return cli.DONE
end

return function(options, words)
  if #words == 0 then cli.misuse "name a network: FILE.onnx, or FILE.onnx:NAME=SHAPE for the shape of an input" end
  if options.trials == 0 then cli.misuse("--trials: a number of at least 1 is expected") end
  local target, list = ms.target(options.target or "native", {runs = true}), {}
  for i, word in ipairs(words) do
    local path, shapes = read_word(word)
    list[i] = {path = path, shapes = shapes}
  end
  options.seed, options.seconds, options.trials = options.seed or 1, cli.seconds(options, "seconds") or SECONDS,
    not options["no-tune"] and (options.trials or TRIALS) or nil
  if options.db then return bench(options, list, cli.open_store(options.db), target) end
  return tools.with_store(function(store) return bench(options, list, store, target) end)
end
