-- The part of the interactive session that is written in Lua: how values are shown, what Tab completes, help.
-- The session (repl.c) loads it with `host`, what C knows: kind(x), the type of one of our values; methods(x), the
-- table of its methods; explain(name), which prints what the tables say; colour, whether the terminal takes it.
local ms = msched
local docs = ms.load "lua.cli.help.docs"
local stdout, print_line = io.stdout, print -- the user may replace them

return function(host)
  local repl = {}

  -- ---- How values are shown ------------------------------------------------------------------------------------

  local KEYWORDS = {}
  for word in ("and break do else elseif end false for function goto if in local nil not or repeat return then true \z
                until while"):gmatch "%a+" do
    KEYWORDS[word] = true
  end

  -- Lua text in the colours that TVMScript is printed in.
  local function coloured(text)
    text = text:gsub('("[^"\n]*")', "\27[32m%1\27[0m")
    return (text:gsub("%f[%w_][%a_][%w_]*",
                      function(word) return KEYWORDS[word] and "\27[35m" .. word .. "\27[0m" or nil end))
  end

  local show

  local MOST, DEEPEST = 64, 3 -- entries of a table that are shown, and tables in tables

  local function show_table(t, depth)
    if depth >= DEEPEST then return "{…}" end
    local parts, length = {}, math.min(rawlen(t), MOST)
    for i = 1, length do parts[i] = show(rawget(t, i), depth + 1) end
    for _, k in ipairs(repl.keys(t)) do
      if #parts > MOST then break end
      if not (math.type(k) == "integer" and k >= 1 and k <= rawlen(t)) then
        local name = type(k) == "string" and k:match "^[%a_][%w_]*$" or "[" .. show(k, DEEPEST) .. "]"
        parts[#parts + 1] = name .. " = " .. show(rawget(t, k), depth + 1)
      end
    end
    if rawlen(t) > MOST or #parts > MOST then parts[#parts + 1] = "…" end
    return "{" .. table.concat(parts, ", ") .. "}"
  end

  -- What ms.tune gave.
  local function best_text(best)
    local cli = ms.load "lua.cli.cli"
    local time = best.seconds
      and " " .. cli.time_text(best.seconds) .. " " .. cli.rate_text(cli.work_of(best.func), best.seconds) or ""
    return string.format("%s:%s%s on %s%s; :schedule(), :build() and :export(path) make it", best.func:name(), time,
                         best.id and " (" .. best.id .. ")" or "", best.target,
                         best.interrupted and ", interrupted" or "")
  end

  -- Tensors are tables of te; what else has a metatable says itself what it is.
  local function show_object(x, depth)
    if host.kind(x) == "best" then return depth > 0 and "<best>" or best_text(x) end
    local kind, shape = rawget(x, "kind"), rawget(x, "shape")
    if (kind == "placeholder" or kind == "compute") and type(shape) == "table" then
      return string.format("tensor %s: %s[%s]", x.name, x.type, table.concat(shape, ", "))
    end
    return docs.is_expression(x) and "expression of " .. tostring(x.type) or tostring(x)
  end

  local MOST_QUOTED = 200 -- bytes of a string in a table

  -- A string in a table: bytes that are no text are escaped, and what is long is cut.
  local function quoted(x)
    local text = #x > MOST_QUOTED and x:sub(1, (utf8.offset(x, 0, MOST_QUOTED) or MOST_QUOTED) - 1) or x
    text = string.format("%q", text):gsub("\\\n", "\\n"):gsub("%c",
      function(c) return string.format("\\%d", c:byte()) end)
    if not utf8.len(text) then
      text = text:gsub("[\128-\255]", function(c) return string.format("\\%d", c:byte()) end)
    end
    return #x > MOST_QUOTED and string.format("%s… (%d bytes)", text, #x) or text
  end

  -- At depth 0 as a whole; inside tables strings are quoted, and what takes many lines is named by its type.
  function show(x, depth)
    if type(x) == "string" then return depth > 0 and quoted(x) or x end
    if type(x) == "table" then return getmetatable(x) == nil and show_table(x, depth) or show_object(x, depth) end
    if rawequal(x, ms.rest) then return "ms.rest" end
    if rawequal(x, ms.map) then return "ms.map" end
    local kind = host.kind(x)
    if depth > 0 and kind and kind ~= "handle" then return "<" .. kind .. ">" end
    if kind == "function" or kind == "schedule" then return (x:script {colour = host.colour}:gsub("\n$", "")) end
    if kind == "trace" then
      local text = x:text():gsub("\n$", "")
      return host.colour and coloured(text) or text
    end
    return tostring(x)
  end

  -- What an input gave, a line each; the first is `_` afterwards.
  function repl.show(...)
    if select("#", ...) > 0 then _G._ = (...) end
    for i = 1, select("#", ...) do stdout:write(show((select(i, ...)), 0), "\n") end
    if ms.show_diff then repl.show_changes() end
  end

  -- print, with our values as they are shown.
  function repl.print(...)
    local parts = table.pack(...)
    for i = 1, parts.n do parts[i] = host.kind(parts[i]) and show(parts[i], 0) or tostring(parts[i]) end
    stdout:write(table.concat(parts, "\t"), "\n")
  end

  -- Any table's keys: numbers, strings, then others in no order.
  function repl.keys(t)
    local keys = {}
    for k in next, t do keys[#keys + 1] = k end
    table.sort(keys, function(a, b)
      local x, y = type(a), type(b)
      if x ~= y then return x < y end
      return (x == "number" or x == "string") and a < b
    end)
    return keys
  end

  -- ---- Undo and redo of inputs -----------------------------------------------------------------------------------

  local MOST_INPUTS = 100 -- that can be taken back

  local inputs, undone = {}, {} -- what inputs changed, the last one last; what undo took back
  local open -- the input that runs: its text, and by schedule the trace before it; schedules that are no more are left
             -- out

  local function input_of(text) return {text = text, traces = setmetatable({}, {__mode = "k"})} end

  -- The schedules that an input left otherwise than they were. One that was refused all its calls is as it was.
  local function changed(input)
    local list = {}
    for sch, before in next, input.traces do
      if sch.trace:binary() ~= before:binary() then list[#list + 1] = sch end
    end
    return list
  end

  local function close()
    if open and #changed(open) > 0 then
      undone = {}
      table.insert(inputs, open)
      if #inputs > MOST_INPUTS then table.remove(inputs, 1) end
    end
  end

  -- Before each input.
  function repl.begin(text)
    close()
    open = input_of(text)
    host.watch_changes(open.traces)
  end

  -- Takes schedules to the traces of an input; gives an input of the traces that they had.
  local function go_back(input)
    local other, list = input_of(input.text), changed(input)
    for _, sch in ipairs(list) do other.traces[sch] = sch.trace end
    for _, sch in ipairs(list) do host.go_to(sch, input.traces[sch]) end
    return other, #list
  end

  local function move(from, to, count, words, none)
    count = count == nil and 1 or count
    if math.type(count) ~= "integer" or count < 0 then error("a number of inputs is expected", 0) end
    if count > #from then error(#from == 0 and none or string.format("there are %d such inputs", #from), 0) end
    for _ = 1, count do
      local input = from[#from]
      local other, schedules = go_back(input)
      from[#from], to[#to + 1] = nil, other
      print_line(string.format("%s: %s%s", words, input.text:match "^%s*([^\n]*)",
                               schedules > 1 and string.format(" (%d schedules)", schedules) or ""))
    end
  end

  -- undo(), redo(): what the last input did to schedules, however many calls it made, as one.
  function repl.undo(count)
    move(inputs, undone, count, "taken back", "no input changed a schedule that could be taken back")
  end
  function repl.redo(count)
    move(undone, inputs, count, "done again", "nothing was taken back that could be done again")
  end

  -- ---- Tuning --------------------------------------------------------------------------------------------------

  -- ms.tune in the session: run(func, options) is shown as `msched tune` shows it, unless the options have a listener.
  -- Ctrl-C ends the run alone, and what it found so far is what it gives.
  function repl.watched(run, func, options)
    local progress, states, listens = ms.load "lua.cli.progress", {}, options.listen
    if not listens then
      local of_limits = ms.load "lua.bench.limits"
      local limits = options.no_tune and {unused = of_limits.unused_unmeasured} or of_limits.for_tuning()
      local screen = host.terminal_width()
        and ms.load "lua.cli.live".new {width = host.terminal_width, height = host.terminal_height}
      options = setmetatable({listen = progress.lines(screen, states), limit = limits.limit, unused = limits.unused},
                             {__index = options})
    end
    local interrupted, ok, task, path = host.patiently(run, func, options)
    if not ok then error(interrupted and "interrupted before anything was measured" or task, 0) end
    if not listens and not options.no_tune then progress.print_best(task, states[task.name]) end
    if interrupted then
      print(ms.load "search.task".kept_text(task.kept, path) .. ", and the next run goes on from there")
    end
    return task, path
  end

  -- ---- Completion ----------------------------------------------------------------------------------------------

  local function add(list, seen, name, start)
    if type(name) == "string" and not seen[name] and name:sub(1, #start) == start and name:find "^[%a_][%w_]*$" then
      seen[name] = true
      list[#list + 1] = name
    end
  end

  local MOST_OWNERS = 16 -- tables in which a member is looked for, each behind the one before

  -- The tables that hold a value's members, the nearest first: its own, and behind it each __index that is a table or,
  -- of our values, holds one. Calls nothing.
  local function owners_of(x)
    local owners = {}
    while x ~= nil and #owners < MOST_OWNERS do
      if type(x) == "string" then return {string} end
      if type(x) == "table" then owners[#owners + 1] = x end
      local behind = host.methods(x)
      if behind == x then break end
      x = behind
    end
    return owners
  end

  local function member_of(x, key)
    for _, owner in ipairs(owners_of(x)) do
      local member = rawget(owner, key)
      if member ~= nil then return member end
    end
  end

  -- What a path such as `a.b[1]["c"]` is now; reads tables only, and calls nothing.
  local function value_of(path)
    local x = _G
    for mark, name in path:gmatch "([%[%.]?)%s*([%w_\"']+)" do
      local key = mark ~= "[" and name or name:match "^[\"'](.*)[\"']$" or math.tointeger(tonumber(name))
      x = member_of(x, key)
      if x == nil then return nil end
    end
    return x
  end

  -- The methods of what a field of one of our values is of, as `sch.trace`, which is made when it is asked for.
  local function field_methods(path)
    local owner, field = path:match "^(.+)%.([%w_]+)$"
    local methods
    if owner then
      docs.each_field(host.kind(value_of(owner)), function(name, type)
        if name == field then methods = host.methods(type:match "^msched%.(%a+)$" or "") end
      end)
    end
    return methods
  end

  local function schedules(path)
    local named = path and value_of(path)
    if host.kind(named) == "schedule" then return {named} end
    local list = {}
    for _, k in ipairs(repl.keys(_G)) do
      local x = rawget(_G, k)
      if host.kind(x) == "schedule" then list[#list + 1] = x end
    end
    return list
  end

  local shown = setmetatable({}, {__mode = "k"}) -- the text of each schedule as it was last compared

  -- What the input changed in the schedules that have a name.
  function repl.show_changes()
    local explain = ms.load "lua.lib.explain"
    for _, sch in ipairs(schedules()) do
      local before, now = shown[sch] or sch:workload():script(), sch:script()
      if before ~= now then
        explain.print_changes(explain.difference(explain.lines_of(before), explain.lines_of(now)), 1, host.colour)
      end
      shown[sch] = now
    end
  end

  local function block_names(path, start)
    local list, seen = {}, {}
    for _, sch in ipairs(schedules(path)) do
      local ok, names = pcall(sch.block_names, sch)
      for _, name in ipairs(ok and names or {}) do
        if not seen[name] and name:sub(1, #start) == start then
          seen[name] = true
          list[#list + 1] = name
        end
      end
    end
    table.sort(list)
    return list
  end

  -- Names of operators, for ops.func, or of suites, for ops.suite.
  local function operator_names(method, start)
    local list, all = {}, ms.load "lua.lib.ops.suites".names
    if method == "func" then
      all = {}
      for i, op in ipairs(ms.load "lua.lib.ops.named".list) do all[i] = op.name end
    end
    for _, name in ipairs(all) do
      if name:sub(1, #start) == start then list[#list + 1] = name end
    end
    table.sort(list)
    return list
  end

  -- Methods of stores whose first argument names a record, and what its words must be like.
  local IDS, ANY = "^%x%x%x%x%x%x%x+$", ""
  local BY_WORDS = {find = ANY, schedule = ANY, pin = IDS, fail = IDS, retime = IDS, delete = IDS,
                    take_intrinsics = IDS}

  -- What a string may be that is open at the end of a text: its start, the words, the quote. nil: nothing is known of
  -- it.
  local function strings_at(text)
    local path, quote, start = text:match "([%a_][%w_.]*)%s*:%s*get_sblock%s*%(?%s*([\"'])([^\"']*)$"
    if path then return start, block_names(path, start), quote end
    path, quote, start = text:match "ops%s*%.%s*([%a_]+)%s*%(?%s*([\"'])([^\"']*)$"
    if path == "func" or path == "suite" then return start, operator_names(path, start), quote end
    local method
    path, method, quote, start = text:match "([%a_][%w_.]*)%s*:%s*([%a_]+)%s*%(?%s*([\"'])([^\"']*)$"
    local store = path and BY_WORDS[method] and value_of(path)
    if host.kind(store) == "store" then
      local list, ok, words = {}, pcall(store.words, store, start) -- it may be closed
      for _, word in ipairs(ok and words or {}) do
        if word:find(BY_WORDS[method]) then list[#list + 1] = word end
      end
      return start, list, quote
    end
  end

  -- Where the last bracket of a text is that is open; 0: none is.
  local function open_bracket(text)
    local depth = 0
    for at = #text, 1, -1 do
      local c = text:sub(at, at)
      if c:find "[})]" then depth = depth + 1
      elseif c:find "[({]" then
        if depth == 0 then return at end
        depth = depth - 1
      end
    end
    return 0
  end

  -- What of a text is an option's name begun, in a table that is an argument of a call: the function's path, and the
  -- start.
  local function option_at(text)
    local at = open_bracket(text)
    if text:sub(at, at) ~= "{" then return nil end
    local inner, before = text:sub(at + 1), text:sub(1, at - 1)
    local start = inner:match "^%s*([%a_]?[%w_]*)$" or inner:match ",%s*([%a_]?[%w_]*)$"
    local path = before:match "([%a_][%w_.:]*)%s*$"
    local call = not path and open_bracket(before) or 0
    if before:sub(call, call) == "(" then path = before:sub(1, call - 1):match "([%a_][%w_.:]*)%s*$" end
    return start and path, start
  end

  -- The options that a member takes in a table, from its description.
  local function option_names(path, start)
    local list, seen = {}, {}
    local name, is_method = path:match "[%w_]+$", path:find ":" ~= nil
    for _, d in ipairs(docs.list) do
      if d.name == name and (d.mark == ":") == is_method and (is_method or d.owner == path:match "^[%w_]+") then
        for fields in d.args:gmatch "%b{}" do
          for key in fields:gsub("%b()", ""):gmatch "([%a_][%w_]*)%??:" do add(list, seen, key, start) end
        end
      end
    end
    table.sort(list)
    return list
  end

  -- What may stand in place of the end of `text`: the end that is replaced, and the words, sorted. A name in quotes
  -- takes the closing one with it.
  function repl.complete(text)
    local begun, names, quote = strings_at(text)
    if begun then
      for i, name in ipairs(names) do names[i] = name .. quote end
      return begun, names
    end
    local _, quotes = text:gsub("[\"']", "")
    if quotes % 2 == 1 then return "", {} end
    local called, key = option_at(text)
    if called then -- where it has none, names are completed as elsewhere
      local keys = option_names(called, key)
      if #keys > 0 then
        for i, name in ipairs(keys) do keys[i] = name .. " = " end
        return key, keys
      end
    end
    local list, seen = {}, {}
    local path, mark, start = text:match "([%a_][%w_.%[%]\"']*)%s*([.:])%s*([%w_]*)$"
    if path then
      local x = value_of(path)
      if rawequal(x, ms.ops) then pairs(x) end -- its families are loaded when the first is asked for
      -- nothing is known: most are schedules
      local owners = x == nil and {field_methods(path) or mark == ":" and ms.schedule_methods or {}} or owners_of(x)
      for _, owner in ipairs(owners) do
        for k, member in next, owner do
          local is_hidden = type(k) == "string" and k:find "^__" and not start:find "^_"
          if not is_hidden and (mark == "." or type(member) == "function") then add(list, seen, k, start) end
        end
      end
      if mark == "." then docs.each_field(host.kind(x), function(name) add(list, seen, name, start) end) end
    else
      start = text:match "[%a_][%w_]*$" or ""
      if text:find "[.:%d]$" then return "", {} end
      for k in next, _G do add(list, seen, k, start) end
      for k in next, KEYWORDS do add(list, seen, k, start) end
    end
    table.sort(list)
    return start, list
  end

  -- ---- Help ----------------------------------------------------------------------------------------------------

  local GENERAL = [[
An expression shows its value; what is not complete goes on after `>> `. A `local` at the start of an input is kept.
Tab completes names, members, methods and names of blocks; Ctrl-C stops what runs, three times the session, where it does not stop; Ctrl-D leaves.

  ms, te          the module and its tensor expressions: help(ms), help(te)
  help(sch)       the methods of a schedule, a function, a trace, a kernel, an array: of any value
  help(sch.split) one function or method; help "split" is the same
  help "commands" the program's commands; also "instructions", "queries"
  undo(), redo()  takes back what the last input did to schedules, all its calls as one; does it again. undo(3): of three inputs
  sch:undo(), sch:redo()   the same of a schedule's last instructions
  sch:save "f.json"   its trace in a file (.json, .lua, .trace); ms.apply(f, ms.load_trace "f.json") makes it again
  ms.tune(f, {trials = 64})   the best schedule, as a value; shown as it goes on, Ctrl-C ends it and gives the best so far
  Ctrl-R          searches the history; Up brings an input of several lines back whole, to be edited
  ms.time(f, …)   seconds that a call takes; ms.load_array "a.npy", array:save "b.npy": NumPy's files
  ?name           the same; ??name says where it is made, too
  sch:draw()      the loops of a schedule as a picture; sch:explain() what each instruction did
  ms.show_diff = true   shows after each input what it changed in the schedules
  _               the last value
  help "ops"      operators, and those that are named: help "ops:conv2d"
]]

  -- An instruction that scripts call in a form of its own has a line of that form too.
  local function explain_method(name)
    local found = host.explain(name)
    for _, d in ipairs(docs.list) do
      if d.owner == "schedule" and d.name == name then
        docs.explain_member(d, print_line)
        found = true
      end
    end
    return found
  end

  local function explain_name(name)
    if explain_method(name) or docs.explain(name, print_line) then return end
    print_line(string.format("nothing is named %q; help() says where to look", name))
  end

  local MODULES = {[ms] = "ms", [ms.te] = "te", [ms.ops] = "ops"}

  local function explain_function(f)
    for k, method in next, ms.schedule_methods do
      if rawequal(method, f) and explain_method(k) then return true end
    end
    for _, d in ipairs(docs.list) do
      if rawequal(docs.value(d, host.methods), f) then docs.explain_member(d, print_line) return true end
    end
    return false
  end

  -- ---- Mistakes ------------------------------------------------------------------------------------------------

  -- Names of methods of our values, or of members of our modules.
  local function known_names(is_method)
    local names = {}
    for _, d in ipairs(docs.list) do
      if (d.mark == ":") == is_method then names[#names + 1] = d.name end
    end
    if is_method then
      for k in next, ms.schedule_methods do names[#names + 1] = k end
    end
    return names
  end

  -- What was meant by a name in a message that there is none of.
  local function meant(message)
    local kind, name = message:match "attempt to call a nil value %((%a+) '([%w_]+)'%)"
    if kind == "method" or kind == "field" then return name, known_names(kind == "method") end
  end

  -- A message, and what may have been meant where it is of a name.
  function repl.hint(message)
    if type(message) ~= "string" then return message end
    local nearest, name, names = ms.load "lua.lib.nearest", meant(message)
    return name and message .. nearest.meant(name, names) or nearest.hint(message)
  end

  -- The value that a name stands for, as `ms.tune`, or the method as `s.split`, `s:split`, `store:find`, of what value,
  -- or of the kind so called; and how help names that method.
  local function meant_by(name)
    local owner, method = name:match "^(.-)[.:]([%w_]+)$"
    local found, x = pcall(value_of, name)
    if not owner or found and x ~= nil and not host.kind(value_of(owner)) then return found and x or nil end
    local of = value_of(owner)
    local kind = host.kind(of) or docs.about[owner] and owner or nil
    local methods = kind and host.methods(of ~= nil and of or kind) or not kind and ms.schedule_methods
    if not methods or not rawget(methods, method) then return found and x or nil end
    return methods[method], (kind or "schedule") == "schedule" and method or kind .. ":" .. method
  end

  -- The file of our own that a chunk is, of a user's its name.
  local function file_of(info)
    local own = info.short_src:match "^msched/(.*)$"
    return own and own:gsub("%.", "/") .. ".lua" or info.short_src
  end

  -- Where a function or a method is made.
  local function print_place(name)
    local x = meant_by(name)
    local info = type(x) == "function" and debug.getinfo(ms.defined(x), "S")
    if info and info.what ~= "C" then print_line(string.format("%s:%d", file_of(info), info.linedefined))
    elseif info then
      print_line(rawequal(ms.schedule_methods[name:match "[%w_]+$"], x)
                 and "in the tables: vm/instructions.def or vm/queries.def" or "in C")
    else print_line(string.format("no function is named %q now", name)) end
  end

  -- `?name` explains, `??name` says where it is made.
  function repl.ask(text)
    local marks, name = text:match "^(%?+)%s*(.-)%s*$"
    if name == "" then return repl.help() end
    local x, method = meant_by(name)
    if name:find "^ops:" or name:find "^suite:" then repl.help(name) -- operators by name
    elseif method then
      repl.help(method)
    elseif x ~= nil and not docs.about[name] then
      repl.help(x)
    else
      repl.help(name)
    end
    if #marks > 1 then print_place(name) end
  end

  function repl.help(...)
    if select("#", ...) == 0 then stdout:write(GENERAL) return end
    local x = ...
    local kind = host.kind(x)
    if type(x) == "string" then return explain_name(x) end
    if MODULES[x] then return docs.explain(MODULES[x], print_line) end
    if type(x) == "function" and explain_function(x) then return end
    if kind and docs.about[kind] then
      docs.explain_owner(kind, print_line)
      if kind == "schedule" then
        print_line "instructions, each a method:"
        host.explain "instructions"
        print_line "queries, each a method:"
        host.explain "queries"
      end
      return
    end
    if docs.is_expression(x) then print_line(docs.about.expression) return end
    local what = type(x) == "table" and getmetatable(x) and show(x, 0) or "a " .. (kind or type(x))
    print_line(what .. "; help() says what can be explained")
  end

  return repl
end
