-- Networks as commands take them: FILE.onnx, --shape and --dim.
local ms = msched
local cli = ms.load "lua.cli.cli"
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

-- {shapes =, dims =} of the options.
function network.given(options)
  local shapes, dims = {}, {}
  for _, word in ipairs(options.shape or {}) do
    local name, value = pair_of("--shape", word, "NAME=SHAPE, as x=1x3x224x224,")
    shapes[name] = {}
    for text in (value .. (value ~= "" and "x" or "")):gmatch "(.-)x" do table.insert(shapes[name], extent_of("--shape", text, word)) end
  end
  for _, word in ipairs(options.dim or {}) do
    local name, value = pair_of("--dim", word, "NAME=N, as batch=1,")
    dims[name] = extent_of("--dim", value, word)
  end
  return {shapes = shapes, dims = dims}
end

function network.read(options, path)
  local ok, net = pcall(ms.onnx, path, network.given(options))
  if ok then return net end
  if type(net) == "table" then error(net, 0) end
  cli.refuse("%s", tostring(net))
end

local function values_of(list)
  local values = {}
  for i, value in ipairs(list) do values[i] = {name = value.name, type = value.type, shape = value.shape and cli.list(value.shape)} end
  return cli.list(values)
end

-- msched show FILE.onnx
function network.show(options, path)
  local net = network.read(options, path)
  if not options.json then
    cli.print_lines(net:text())
    return cli.DONE
  end
  local constants, operators = 0, net:operators()
  for _ in pairs(net.constants) do constants = constants + 1 end
  cli.put_json {network = net.name, producer = net.producer, opset = net.opsets[""], nodes = #net.nodes, constants = constants, operators = operators,
                inputs = values_of(net.inputs), outputs = values_of(net.outputs)}
  return cli.DONE
end

-- ---- msched run FILE.onnx ----------------------------------------------------------------------------------------

local function given_inputs(net, options)
  local arrays, known = {}, {}
  for _, input in ipairs(net.inputs) do known[input.name] = input end
  for _, word in ipairs(options.input or {}) do
    local name, path = pair_of("--input", word, "NAME=FILE")
    if not known[name] then
      cli.refuse("--input %s: the network has no input %s%s", word, name, ms.load "lua.lib.nearest".meant(name, ms.sorted_keys(known)))
    end
    local ok, array = pcall(ms.load_array, path)
    if not ok then cli.refuse("--input %s: %s", name, tostring(array)) end
    arrays[name] = array
  end
  return arrays
end

-- Small integers for what is not given, where its extents are known; what has none is refused when the network is looked at.
local function fill(net, arrays, seed)
  for i, input in ipairs(net.inputs) do
    local whole = input.shape ~= nil
    for _, extent in ipairs(input.shape or {}) do whole = whole and math.type(extent) == "integer" end
    if whole and not arrays[input.name] then arrays[input.name] = ms.array(input.shape, input.type):random(seed + i) end
  end
end

local function put_outputs(net, outputs, folder, quiet)
  for i, output in ipairs(net.outputs) do
    local array = outputs[output.name]
    if folder then
      local path = string.format("%s/%s.npy", folder, (output.name:gsub("[^%w_.-]", "_"):gsub("^%.", "_")))
      local ok, message = pcall(array.save, array, path)
      if not ok then cli.refuse("output %d, %s: %s", i, output.name, tostring(message)) end
      if not quiet then cli.print(string.format("%s: %s", output.name, path)) end
    else cli.print(string.format("%s: %s", output.name, tostring(array))) end
  end
end

local MOST_STEPS = 20000000 -- operations of a node that are interpreted whole, where --steps says nothing else

function network.run(options, path)
  local net = network.read(options, path)
  local arrays = given_inputs(net, options)
  fill(net, arrays, options.seed or 1)
  local ok, outputs, report = pcall(net.run, net, arrays, {target = options.target, most_work = options.steps or MOST_STEPS})
  if not ok then cli.refuse("%s", tostring(outputs)) end
  if options.json then
    cli.put_json {ok = true, functions = report.functions, seconds = report.seconds, build_seconds = report.build, elements = report.elements,
                  interpreted_elements = report.compared, difference = report.most, fixed = cli.list(report.fixed)}
    if options.output then put_outputs(net, outputs, options.output, true) end
    return cli.DONE
  end
  cli.print(string.format("%s, compiled in %s, run in %s; equal to the interpreter's at %d of %s", cli.count_text(report.functions, "function"),
                          cli.time_text(report.build), cli.time_text(report.seconds), report.compared, cli.count_text(report.elements, "element")))
  if #report.fixed > 0 then cli.print("shapes depend on what is in " .. table.concat(report.fixed, ", ") .. ": the functions are good for these values alone") end
  put_outputs(net, outputs, options.output)
  return cli.DONE
end

return network
