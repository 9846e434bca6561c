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

return network
