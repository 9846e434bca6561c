-- trace:mutate(): a trace changed as the search changes them, by the mutators of a target.
local ms = msched
local mutate = {}

local sandboxes = {} -- of each target, made when it is first asked for

local function sandbox_of(target)
  local text = ms.target(target).text
  sandboxes[text] = sandboxes[text] or ms.sandbox {files = {}, target = text}
  return sandboxes[text]
end

local function refuse(format, ...) error(ms.where() .. string.format(format, ...), 0) end

-- The number of the mutator of that name.
local function number_of(mutators, name)
  local names = {}
  for i, m in ipairs(mutators) do
    if m[1] == name then return i end
    names[i] = m[1]
  end
  refuse("there is no mutator `%s`; the target has %s%s", name, table.concat(names, ", "),
         ms.load "lua.lib.nearest".meant(name, names))
end

-- Takes one out of the list of numbers, drawn by weight.
local function take(numbers, mutators, stream)
  local total = 0
  for _, n in ipairs(numbers) do total = total + mutators[n][2] end
  local left = stream:unit() * total
  for i, n in ipairs(numbers) do
    left = left - mutators[n][2]
    if left < 0 or i == #numbers then return table.remove(numbers, i) end
  end
end

-- The trace that a mutator makes of this one, and the mutator's name; nil: it changes nothing, or none does that might
-- be drawn. What postprocessing did followed from the decisions, and is left out.
function mutate.trace(trace, seed, options)
  if seed ~= nil and math.type(seed) ~= "integer" then refuse("trace:mutate takes a seed, an integer, and options") end
  options = ms.options(options, "mutator:string other:msched.trace target:string")
  local sandbox = sandbox_of(options.target or "native")
  local mutators, numbers, stream = sandbox:mutators(), {}, ms.stream(seed or 1)
  if options.mutator then
    numbers[1] = number_of(mutators, options.mutator)
  else
    for i = 1, #mutators do numbers[i] = i end
  end
  trace = trace:simplified(false)
  while #numbers > 0 do
    local number = take(numbers, mutators, stream)
    local made = sandbox:mutate(number, trace, stream, options.other and options.other:simplified(false))
    if made then return made, mutators[number][1] end
  end
end

return mutate
