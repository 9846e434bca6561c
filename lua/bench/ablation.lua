-- msched bench ablation: what each rule of a target's space is worth. A suite's operators are tuned with the whole
-- space, and again without one rule at a time, or with weights that are no constants; the fastest kernels are timed in
-- turn. Where the space is the same without, nothing is tuned again, and the ratio is 1.
local ms = msched
local cli, tools, tune = ms.load "lua.cli.cli", ms.load "lua.bench.tools", ms.load "search.tune"
local named, targets = ms.load "lua.lib.ops.named", ms.load "rules.targets"
local apart = ms.load "lua.vendor.apart"

local SECONDS = tools.at_most(0.3) -- of timing, each
local TRIALS = 16
local CONSTANTS <const> = "constants" -- weights that are constants, packed ahead: of the function, not of the space
local WITH = {fuse_online_softmax_amx = "fuse_online_softmax"} -- left out together with it

-- ---- What is left out --------------------------------------------------------------------------------------------

-- {name, without} each: the names of rules and postprocessors; those that were asked for, or all rules. Sketches count
-- on postprocessors: without them a space is not the smaller, but wrong.
local function parts_of(target, wanted)
  local list, names = {}, wanted
  if not wanted then
    names = table.move(targets.context(target).rules, 1, #targets.context(target).rules, 1, {})
    names[#names + 1] = CONSTANTS
  end
  for _, name in ipairs(names) do
    local part = {name = name, without = name ~= CONSTANTS and {name} or {}}
    for other, with in pairs(WITH) do if with == name then table.insert(part.without, other) end end
    if wanted or not WITH[name] then list[#list + 1] = part end
  end
  return list
end

-- The same operator of weights that are no constants; nil: its are none.
local function of_variables(member)
  local words, found = {}, false
  for _, word in ipairs(member.words or {}) do
    if word == "constant=true" then found = true else words[#words + 1] = word end
  end
  return found and named.func(member.operator, words, member.name) or nil
end

-- ---- Spaces ------------------------------------------------------------------------------------------------------

-- The traces of a space, as one text.
local function space_text(func, target, without)
  local texts = {}
  for i, sch in ipairs(tune.open(func, target, {without = without}).sketches) do texts[i] = sch.trace:text() end
  return table.concat(texts, "\n")
end

-- The function and what is left out, where that changes anything; nil: it does not. whole: the text of the space.
local function changed(member, func, whole, part, target)
  if part.name == CONSTANTS then return of_variables(member) end
  if part.name == "rewrite_layout" then return ms.schedule(func):function_attribute "layout_free_buffers" and func end
  return space_text(func, target, part.without) ~= whole and func or nil
end

-- ---- An operator -------------------------------------------------------------------------------------------------

local function tuned(member, func, target, options, without)
  local task = tools.tune_alone(member.name, func, {trials = options.trials, seed = options.seed, target = target.text,
                                                    without = without})
  return tools.kernel_of(func, ms.apply(func, task.fastest.trace):func(), target)
end

local function say_failure(what, why)
  io.stderr:write("msched bench: ", what, ": ", type(why) == "table" and why.message or apart.reason(why), "\n")
end

local function measure(member, parts, target, options)
  local func = member.func()
  local whole = space_text(func, target)
  local kernels, names, row = {tuned(member, func, target, options)}, {}, {task = member.name, ratios = {}, failed = 0}
  for _, part in ipairs(parts) do
    local own = changed(member, func, whole, part, target)
    local ok, kernel = true, nil
    if own then ok, kernel = pcall(tuned, member, own, target, options, part.without) end
    if not ok then -- as where no candidate of the space without can be measured
      if ms.interrupted() then error(kernel, 0) end
      row.failed = row.failed + 1
      say_failure(member.name .. " without " .. part.name, kernel)
    elseif kernel then
      kernels[#kernels + 1], names[#names + 1] = kernel, part.name
    end
  end
  local times = tools.time_kernels(func, kernels, SECONDS)
  row.seconds = times[1].seconds
  for i, name in ipairs(names) do row.ratios[name] = times[i + 1].seconds / row.seconds end
  return row
end

-- ---- Reports -----------------------------------------------------------------------------------------------------

local function put_row(row, parts, options)
  if options.json then
    return cli.put_json {bench = "ablation", task = row.task, seconds = row.seconds, trials = options.trials,
                         without = row.ratios}
  end
  local texts = {}
  for _, part in ipairs(parts) do
    local ratio = row.ratios[part.name]
    if ratio then texts[#texts + 1] = string.format("%s %.2f", part.name, ratio) end
  end
  print(string.format("%-11s %11s  without: %s", row.task, cli.time_text(row.seconds),
                      #texts > 0 and table.concat(texts, ", ") or "the same, whatever is left out"))
end

-- Of each part: the geometric mean of all rows, and of those that it changes.
local function put_total(rows, parts, options)
  for _, part in ipairs(parts) do
    local all, own, most = {}, {}, nil
    for i, row in ipairs(rows) do
      local ratio = row.ratios[part.name]
      all[i] = ratio or 1
      if ratio then own[#own + 1] = ratio end
      if ratio and (not most or ratio > most.ratios[part.name]) then most = row end
    end
    local mean = tools.geometric_mean(all)
    if options.json then
      cli.put_json {bench = "ablation total", without = part.name, rows = #rows, mean = mean, changed = #own,
                    changed_mean = #own > 0 and tools.geometric_mean(own) or nil,
                    most = most and most.ratios[part.name], most_task = most and most.task}
    elseif #own == 0 then
      print(string.format("without %-22s the same: it changes none of %d", part.name, #rows))
    else
      print(string.format("without %-22s %5.2f times as long by geometric mean of %d; of the %d that it changes %.2f, \z
                           most %s, %.2f", part.name, mean, #rows, #own, tools.geometric_mean(own), most.task,
                          most.ratios[part.name]))
    end
  end
end

return function(options, words)
  options.trials = options.trials or TRIALS
  return tools.of_suite(options, words, function(members, target)
    local parts = parts_of(target, options.without)
    return function()
      local rows, failed = {}, 0
      for _, member in ipairs(members) do
        -- One of several that cannot be tuned or measured is said, and leaves the others.
        local ok, row = pcall(measure, member, parts, target, options)
        if ok then
          failed = failed + row.failed
          put_row(row, parts, options)
          rows[#rows + 1] = row
        else
          if ms.interrupted() or #members == 1 then error(row, 0) end
          failed = failed + 1
          say_failure(member.name, row)
        end
      end
      put_total(rows, parts, options)
      return failed == 0 and cli.DONE or cli.FAILED
    end
  end)
end
