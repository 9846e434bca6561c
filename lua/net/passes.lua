-- The passes over a network's graph, in order. A pass takes a network and what infer.static knows of it, and changes
-- its nodes and constants; what the network computes stays. Each stands in a file of its own in pass/: {name =, text =,
-- run = function(net, values, given, options)}; needs_values: it gets what infer.static knows of the values, else nil;
-- is_left_out(options): whether it is, by the options of passes.run. One that says false has changed nothing; a second
-- result is a list of lines, of what it left as it was and why. Users'
-- passes, of ms.pass or of files, which run in a sandbox, come behind the one that they name.
local ms = msched
local infer, network, plain = ms.load "lua.net.infer", ms.load "lua.net.network", ms.load "lua.net.plain"
local passes = {}

passes.NAMES = {"requantized", "quantized", "few_bits", "int24", "constants", "algebra", "slices", "batch_norm",
                "layer_norm", "rms_norm", "attention", "activations", "shuffles", "phases", "column_sums", "winograd",
                "duplicates", "dead"}
local FIRST = "constants" -- behind which users' passes come that name none
local TIMEOUT = 10 -- seconds of a user's pass
local MOST_NODES = 50000 -- that it leaves, where there were fewer than half as many: some seconds to look at

function passes.find(name) return ms.load("lua.net.pass." .. name) end

-- ---- Users' passes -----------------------------------------------------------------------------------------------

local function outputs_text(net, values)
  local parts = {}
  for i, output in ipairs(net.outputs) do
    local value = values[output.name]
    parts[i] = string.format("%s: %s%s", output.name, value.type, network.shape_text(value.shape))
  end
  return table.concat(parts, ", ")
end

-- What a pass left is a network again, with the same outputs.
local function check_left(net, by, before, given, had)
  local ok, message = pcall(function()
    if #net.nodes > math.max(MOST_NODES, 2 * had) then
      error(string.format("%d nodes, where there were %d; a pass leaves at most %d, or twice as many as there were",
                          #net.nodes, had, MOST_NODES), 0)
    end
    net:check()
    local after = outputs_text(net, infer.static(net, given).values)
    if after ~= before then error(string.format("the network gave %s, and now gives %s", before, after), 0) end
  end)
  if ok then return end
  if ms.interrupted() then error("interrupted", 0) end
  local place = (net.path or net.name) .. ": "
  local _, last = tostring(message):find(place, 1, true)
  network.refuse(net, {string.format("what %s left: %s", by, tostring(message):sub((last or 0) + 1))})
end

local function run_in_sandbox(sandbox, number, by, net, values)
  local sent, kept = plain.of(net, values)
  local back = sandbox:pass(number, sent)
  if not back then
    network.refuse(net,
                   {string.format("what %s left: it holds too many values to be copied, or a table in itself", by)})
  end
  net.nodes, net.constants = plain.back(back, kept, function(format, ...)
    network.refuse(net, {string.format("what %s left: %s", by, string.format(format, ...))})
  end)
end

-- One as those of pass/ are.
local function users(name, after, by, apply)
  return {name = name, after = after or FIRST, needs_values = true, run = function(net, values, given)
    local before, had = outputs_text(net, values), #net.nodes
    apply(net, values)
    check_left(net, by, before, given, had)
  end}
end

local function all_of_users(files, timeout)
  local list = {}
  for _, p in ipairs(ms.registered.pass) do
    local by = string.format("pass `%s`", p.name)
    list[#list + 1] = users(p.name, p.after, by, function(net, values) p.apply(net, values) end)
  end
  for _, source in ipairs(ms.sources(files)) do
    local sandbox = ms.sandbox {files = {source}, passes = true, timeout = timeout or TIMEOUT}
    for number, p in ipairs(sandbox:passes()) do
      local by = string.format("pass `%s` of %s", p.name, p.file)
      list[#list + 1] = users(p.name, p.after, by,
                              function(net, values) run_in_sandbox(sandbox, number, by, net, values) end)
    end
  end
  return list
end

-- ---- All of them -------------------------------------------------------------------------------------------------

-- passes.list(files [, timeout]): all, in order, with those of users, each of which ends within so many seconds.
function passes.list(files, timeout)
  local list, behind, known = {}, {}, {}
  for i, name in ipairs(passes.NAMES) do
    list[i], behind[name] = passes.find(name), {}
    known[i] = name
  end
  for _, p in ipairs(all_of_users(files or {}, timeout)) do
    if not behind[p.after] then
      error(string.format("%spass `%s` comes after `%s`, which is none of %s", ms.where(), p.name, p.after,
                          table.concat(known, ", ")), 0)
    end
    table.insert(behind[p.after], p)
  end
  local all = {}
  for _, pass in ipairs(list) do
    all[#all + 1] = pass
    for _, p in ipairs(behind[pass.name]) do all[#all + 1] = p end
  end
  return all
end

-- passes.run(net, {given = arrays, passes = files, timeout = seconds, after = f, target = text, fixed_order = bool}): a
-- copy of the network after all of them but those that are left out of such a plan. after(name, net, notes) is
-- called after each.
function passes.run(net, options)
  local work = net:copy()
  local values -- as long as nothing changes
  for _, pass in ipairs(passes.list(options.passes, options.timeout)) do
    local changed, notes
    if not pass.is_left_out or not pass.is_left_out(options) then
      if pass.needs_values and not values then values = infer.static(work, options.given).values end
      changed, notes = pass.run(work, pass.needs_values and values, options.given, options)
      if changed ~= false then values = nil end
    end
    work:check()
    if options.after then options.after(pass.name, work, notes) end
  end
  return work
end

return passes
