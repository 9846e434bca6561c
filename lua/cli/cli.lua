-- What the commands that are written in Lua share: messages, output, files of functions.
-- What is the user's mistake is raised as {status =, message =}.
local ms = msched
local raised_text = ms.load "lua.lib.raised"
local cli = {DONE = 0, FAILED = 1, USAGE = 2}

function cli.refuse(format, ...) error({status = cli.FAILED, message = string.format(format, ...)}, 0) end
function cli.misuse(format, ...) error({status = cli.USAGE, message = string.format(format, ...)}, 0) end
local refuse, misuse = cli.refuse, cli.misuse

-- A file with this text, as lua.lib.files writes it.
function cli.write_file(path, text)
  local ok, message = pcall(ms.load("lua.lib.files").write, path, text)
  if not ok then cli.refuse("%s", message) end
end

-- ---- Output ----------------------------------------------------------------------------------------------------

-- A list that may be empty: [] in JSON.
local List = {}
function cli.list(x) return setmetatable(x, List) end

-- A space factored by block, from its {block, choices}.
function cli.product_text(blocks)
  local parts, sum = {}, 0
  for i, b in ipairs(blocks) do parts[i], sum = string.format("%s %d", b.block, b.choices), sum + b.choices end
  return string.format("the product of %s: %s", cli.count_text(sum, "choice"), table.concat(parts, ", "))
end

-- Of a space; where it is factored, there may be more than an integer holds.
function cli.sketches_text(count) return count == 1 and "1 sketch" or string.format("%.10g sketches", count) end

-- Bytes that are no UTF-8, each as the character that stands for what cannot be read.
local function readable(text)
  if utf8.len(text) then return text end
  local parts, at = {}, 1
  while at <= #text do
    local _, bad = utf8.len(text, at)
    parts[#parts + 1] = text:sub(at, (bad or #text + 1) - 1) .. (bad and "\u{fffd}" or "")
    at = (bad or #text) + 1
  end
  return table.concat(parts)
end

-- What terminals act on is escaped as JSON escapes it: control characters, and marks that turn the direction of text.
local function json_string(text)
  local body = readable(text):gsub('[%c"\\\127]', function(c)
    if c == '"' or c == "\\" then return "\\" .. c end
    return string.format("\\u%04x", c:byte())
  end)
  local function escaped(c) return string.format("\\u%04x", utf8.codepoint(c)) end
  body = body:gsub("\194[\128-\159]", escaped):gsub("\226\128[\142\143\168-\174]", escaped):gsub("\226\129[\166-\169]",
    escaped)
  return '"' .. body .. '"'
end

function cli.json_text(x)
  if type(x) == "string" then return json_string(x) end
  if type(x) == "boolean" or math.type(x) == "integer" then return tostring(x) end
  if type(x) == "number" then return x == x and math.abs(x) < math.huge and string.format("%.9g", x) or "null" end
  if type(x) ~= "table" then return "null" end
  local parts = {}
  if #x > 0 or getmetatable(x) == List then
    for i, y in ipairs(x) do parts[i] = cli.json_text(y) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for _, k in ipairs(ms.sorted_keys(x)) do
    parts[#parts + 1] = cli.json_text(tostring(k)) .. ":" .. cli.json_text(x[k])
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

-- Shows text that may hold what others wrote: one line; lines, of what kind ms.visible says.
function cli.print(text) print(ms.visible(text)) end
function cli.print_lines(text, how) io.stdout:write(ms.visible(text, how or "lines"), "\n") end
function cli.warn(...) io.stderr:write(ms.visible(table.concat {...}, "lines"), "\n") end

function cli.put_json(object)
  io.stdout:write(cli.json_text(object), "\n")
  io.stdout:flush()
end

cli.time_text = ms.time_text

-- Rates, as all commands show them.
local rates = ms.load "lua.cli.rates"
cli.work_of, cli.rate_text = rates.work_of, rates.text

-- A word as a shell reads it back.
function cli.shell_word(text)
  if text:find "^[%w_@%+=:,%./-]+$" then return text end
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- "1 record", "2 records".
function cli.count_text(count, noun) return string.format("%d %s%s", count, noun, count == 1 and "" or "s") end

-- What an exported function is called that cannot have its own name.
function cli.renamed_text(path, own, name, owner)
  return string.format("%s: the function is called %s there, since `%s` is %s", path, name, own, owner)
end

-- The text cut to so many columns; each character counts as one. nil: as it is.
function cli.cut(text, columns)
  if not columns or utf8.len(text) == nil or utf8.len(text) <= columns then return text end
  return text:sub(1, utf8.offset(text, columns) - 1) .. "…"
end

-- Files: whether one is there, as a folder too; and how large it is, as text.
function cli.is_there(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end
-- Neither a record's ID nor a task's name holds a dot or a slash.
function cli.is_file(path) return path:find "%.lua$" or path:find "%.py$" or path:find "[./]" and cli.is_there(path) end
function cli.bytes_text(bytes)
  return bytes < 1024 and cli.count_text(bytes, "byte") or bytes < 1 << 20 and string.format("%.1f KiB", bytes / 1024)
    or string.format("%.1f MiB", bytes / (1 << 20))
end
function cli.size_text(path)
  local file <close> = assert(io.open(path, "rb"))
  return cli.bytes_text(file:seek "end")
end

-- An option in seconds, above 0.
function cli.seconds(options, name)
  local seconds = options[name]
  if seconds and seconds <= 0 then misuse("--%s: a number of seconds above 0 is expected", name) end
  return seconds
end

-- ---- Functions from files --------------------------------------------------------------------------------------

local function read_file(path)
  if path == "-" then return io.read("a") end
  local text, message = ms.read_file(path)
  if not text then refuse("%s", message) end
  return text
end

-- A script is text: bytes of another format are named as such, not as characters without a meaning.
local FORMATS = ms.function_formats .. ", networks from ONNX (a file whose name ends in .onnx)"
local function read_script(path)
  local text = read_file(path)
  local message = ms.not_text(path, text, FORMATS)
  if message then refuse("%s", message) end
  return text
end

local function is_function(x) return ms.type(x) == "function" end

-- That one of the list that --task means, by its number or its name.
local function pick(list, task)
  local named, names = {}, {}
  for i, f in ipairs(list) do
    names[i] = f:name()
    if f:name() == task or (task:find "^%d+$" and i == math.tointeger(task)) then named[#named + 1] = f end
  end
  if #named == 0 then
    misuse("--task %s: the file has %s%s", task, table.concat(names, ", "),
           ms.load "lua.lib.nearest".meant(task, names))
  end
  return named
end

-- What a script returned, as lists: metamethods of its tables run here.
local function read_functions(path, made)
  if is_function(made) then made = {made} end
  if type(made) ~= "table" or #made == 0 then
    refuse("%s: the script returns no function; end it with `return {te.func(…)}`", path)
  end
  local list, weights = {}, {}
  for i, f in ipairs(made) do
    if type(f) == "table" then f, weights[i] = f[1], f.weight end
    if not is_function(f) then refuse("%s: result %d is no function but a %s", path, i, type(f)) end
    list[i] = f
  end
  return list, weights
end

-- What a script returns: functions, and their weights by index, where it has {function, weight = w}.
local function functions_of_lua(path, rest)
  local chunk, message = ms.load_aside(path)
  if not chunk then refuse("%s", message) end
  local ok, made = ms.interruptible(chunk, table.unpack(rest))
  if not ok then refuse("%s", raised_text(made, path)) end
  local read, list, weights = ms.interruptible(read_functions, path, made)
  if read then return list, weights end
  local is_refusal = type(list) == "table" and math.type(rawget(list, "status"))
  error(is_refusal and list or raised_text(list, path), 0)
end

-- What `ops:NAME` or `suite:NAME` says, which are no files, as lua/lib/ops/words.lua reads it; nil: the word is
-- neither.
function cli.named(word)
  if not word:find "^ops:" and not word:find "^suite:" then return nil end
  local ok, item = pcall(ms.load "lua.lib.ops.words".read, word)
  if not ok then refuse("%s", tostring(item)) end
  return item
end

-- What --dim says, by name.
local function dims_of(texts)
  local dims = {}
  for _, text in ipairs(texts) do
    local name, number = text:match "^([^=]+)=(.+)$"
    if dims[name] and dims[name] ~= math.tointeger(number) then
      misuse("--dim: %s is given twice, as %d and as %s", name, dims[name], number)
    end
    dims[name] = math.tointeger(number)
  end
  return dims
end

-- The names of the variables that a function has: of shapes, strides and offsets, and integer parameters.
local function variables_of(func)
  local names = {}
  for _, v in ipairs((func:symbolic())) do names[#names + 1] = v.name end
  for _, p in ipairs(func:params()) do if not p.shape and p.type:find "int" then names[#names + 1] = p.name end end
  return names
end

-- The functions with numbers for variables, each for those that it has; one that none has is a mistake. texts: what
-- --dim says, or nil.
function cli.specialized(list, texts)
  if not texts then return list end
  local dims, made, used, all = dims_of(texts), {}, {}, {}
  for i, func in ipairs(list) do
    local own = {}
    for _, name in ipairs(variables_of(func)) do own[name], used[name], all[#all + 1] = dims[name], true, name end
    local ok, result = true, func
    if next(own) then ok, result = pcall(ms.specialize, func, own) end
    if not ok then refuse("%s", tostring(result)) end
    made[i] = result
  end
  for _, name in ipairs(ms.sorted_keys(dims)) do
    if not used[name] then
      refuse("--dim %s=%d: no function has a variable %s%s%s", name, dims[name], name,
             #all > 0 and "; there are " .. table.concat(all, ", ") or "", ms.load "lua.lib.nearest".meant(name, all))
    end
  end
  return made
end

-- The functions with these parameters constant, each with those that it reads; one that none reads is a mistake. names:
-- what --weights says, or nil.
function cli.with_weights(list, names)
  if not names then return list end
  local made, used, all = {}, {}, {}
  for i, func in ipairs(list) do
    local own, wanted = {}, {}
    for _, p in ipairs(func:params()) do own[p.name], all[#all + 1] = true, p.name end
    for _, name in ipairs(names) do
      if own[name] then wanted[#wanted + 1], used[name] = name, true end
    end
    local ok, result = pcall(ms.with_weights, func, wanted)
    if not ok then refuse("--weights: %s", tostring(result)) end
    made[i] = result
  end
  for _, name in ipairs(names) do
    if not used[name] then
      refuse("--weights %s: no function has a parameter %s%s", name, name, ms.load "lua.lib.nearest".meant(name, all))
    end
  end
  return made
end

function cli.is_network(path) return path:find "%.onnx$" ~= nil end

-- Ends the command where options are given that networks alone have.
function cli.refuse_of_network(options)
  for _, name in ipairs {"shape", "constant", "passes", "layout", "print-after"} do
    if options and options[name] then misuse("--%s is for networks, FILE.onnx", name) end
  end
end

-- The functions of a file: Lua that returns them, called with `rest`, or TVMScript; of the plan of a network; or of an
-- operator or a suite by its name, `rest` its arguments where it has none of its own. Of several, --task may name one;
-- dims: what --dim says; options: --weights, and of networks --shape, --constant, --passes and --layout. More results:
-- what a script says each weighs, or how often a network has each; and the plan, as lua/net/plan.lua prepares it.
local function of_network(options, dims)
  options = options or {}
  return {dim = dims, shape = options.shape, constant = options.constant, passes = options.passes,
          layout = options.layout, run = options.run, target = options.target, fixed_order = options.fixed_order}
end
function cli.functions_of(path, rest, task, dims, options)
  local constants = options and options.weights
  if cli.is_network(path) then
    if constants then misuse("--weights is for functions: of a network, its file says what is constant") end
    local list, weights, prepared = ms.load "lua.cli.network".functions(of_network(options, dims), path)
    local chosen, kept = task and pick(list, task) or list, {}
    for i, f in ipairs(chosen) do
      for at, other in ipairs(list) do if other == f then kept[i] = weights[at] end end
    end
    return chosen, kept, prepared
  end
  cli.refuse_of_network(options)
  local item = cli.named(path)
  local ok, list, weights = true, nil, nil
  if item then ok, list = pcall(ms.load "lua.lib.ops.words".functions, item, rest)
  elseif path:find("%.lua$") then list, weights = functions_of_lua(path, rest)
  else
    ok, list = pcall(ms.functions_of_script, read_script(path), path)
    if not ok and tostring(list):find "^[^\n]*:1:1: expected @T%.prim_func" then
      refuse("%s%s", tostring(list):gsub("%s*$", "\n"), FORMATS)
    end
  end
  if not ok then refuse("%s", tostring(list)) end
  return cli.with_weights(cli.specialized(task and pick(list, task) or list, dims), constants), weights or {}
end

-- That words after `--` are for something: not where each of these has its own.
function cli.check_rest(paths, rest)
  if #rest == 0 or #paths == 0 then return end
  for _, path in ipairs(paths) do
    local item = cli.named(path)
    if not (item and item.given) then return end
  end
  misuse("the words after -- (%s) are for nothing: %s has arguments of its own", table.concat(rest, " "),
         #paths == 1 and paths[1] or "each of these")
end

-- Those of networks, {function, weight = w, untuned = true} each; and their plans, {path =, prepared =} each.
local function functions_of_networks(paths, task, dims, options)
  local wanted, networks = {}, {}
  for i, path in ipairs(paths) do
    if not cli.is_network(path) then
      misuse("%s is no network: networks are tuned together with networks alone", path)
    end
    local list, weights, prepared = cli.functions_of(path, {}, task, dims, options)
    for k, f in ipairs(list) do wanted[#wanted + 1] = {f, weight = weights[k], untuned = true} end
    networks[i] = {path = path, prepared = prepared}
  end
  return wanted, networks
end

-- Those of several files, operators and suites, {function, weight = w} each; and the plans of networks.
function cli.weighed_functions_of(paths, rest, task, dims, options)
  local list, weight_of = {}, {}
  cli.check_rest(paths, rest)
  for _, path in ipairs(paths) do
    if cli.is_network(path) then return functions_of_networks(paths, task, dims, options) end
  end
  for _, path in ipairs(paths) do
    cli.refuse_of_network(options)
    local functions, weights = cli.functions_of(path, rest)
    for i, f in ipairs(functions) do
      list[#list + 1] = f
      weight_of[f] = weights[i]
    end
  end
  if task then list = pick(list, task) end
  local wanted = {}
  local made = cli.with_weights(cli.specialized(list, dims), options and options.weights)
  for i, f in ipairs(made) do wanted[i] = {f, weight = weight_of[list[i]]} end
  return wanted, {}
end

-- The one that a command works on; or nil, and what is wrong.
function cli.function_of(path, rest, task, dims, weights)
  local ok, list = pcall(function()
    cli.check_rest({path}, rest)
    return (cli.functions_of(path, rest, task, dims, {weights = weights}))
  end)
  if not ok then return nil, type(list) == "table" and list.message or tostring(list) end
  if #list == 1 then return list[1] end
  local names = {}
  for i, f in ipairs(list) do names[i] = f:name() end
  return nil, string.format("%s has several functions: say which with --task: %s", path, table.concat(names, ", "))
end

-- how: nil, where there is none the first write makes it; "read", only to be read; "change", it must be there.
function cli.open_store(path, how)
  local ok, store = pcall(ms.store, path, {read_only = how == "read", create = how ~= "change"})
  if not ok then refuse("%s", tostring(store)) end
  return store
end

return cli
