-- What `msched db` takes from TVM and gives it: a folder of tuning records, as MetaSchedule's JSONDatabase keeps them,
-- and the functions that they number. The functions may be TVMScript too: workload_0.py and so on.
local ms = msched
local cli = ms.load "lua.cli.cli"
local refuse = cli.refuse
local exchange = {}

local RECORDS, WORKLOADS = "database_tuning_record.json", "database_workload.json"
local function numbered(folder, i) return string.format("%s/workload_%d.py", folder, i) end

local function exists(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

local print = cli.print
local function warn(format, ...) cli.warn("msched db: ", string.format(format, ...)) end

-- A folder that TVM's JSONDatabase opens, and the functions as TVMScript beside. What TVM lacks is left out: functions
-- with their records, records by themselves.
function exchange.export(store, folder, json)
  local ids, lines, scripts, without = {}, {}, {}, 0
  for _, w in ipairs(store:workloads()) do
    local func = store:get_workload(w.id)
    local ok, line = pcall(ms.write_workload, func)
    if ok then
      ids[#ids + 1], lines[#lines + 1] = w.id, line .. "\n"
      -- as traces call it, and TVM with them
      scripts[#scripts + 1] = func:script():gsub("(\n%s*def )[%w_]+%(", "%1main(", 1)
    else
      warn("%s, with %s, is left out: %s", w.name, cli.count_text(w.records, "record"), line)
      without = without + w.records
    end
  end
  local written, left_out = store:export_tuning(folder, ids)
  cli.write_file(folder .. "/" .. WORKLOADS, table.concat(lines))
  for i, script in ipairs(scripts) do cli.write_file(numbered(folder, i - 1), script .. "\n") end
  left_out = left_out + without
  if json then cli.put_json {written = written, left_out = left_out}
  else
    print(string.format("%s of %s written, %d left out", cli.count_text(written, "record"),
                        cli.count_text(#ids, "function"), left_out))
  end
  return cli.DONE
end

-- ---- In --------------------------------------------------------------------------------------------------------

local start_of = ms.read_start

local IS_A_FOLDER = 21 -- the system's number of an error
local function is_folder(path) return select(3, start_of(path, 1)) == IS_A_FOLDER end

-- The folder that a path names, itself or by a file of TVM's in it; nil: it names other records.
local function folder_of(path)
  for _, name in ipairs {RECORDS, WORKLOADS} do
    if exists(path .. "/" .. name) then return path end
    if path:sub(-#name) == name then return path:match "^(.*)/[^/]*$" or "." end
  end
  if is_folder(path) then refuse("%s: the folder has neither %s nor %s", path, RECORDS, WORKLOADS) end
end

-- Adds the functions of TVM's lines; in the place of one that cannot be read, why. Gives how many of these there are.
local function read_lines(path, workloads)
  local number, refused = 0, 0
  for line in io.lines(path) do
    number = number + 1
    if line:find "%S" then
      local ok, made = pcall(ms.read_workload, line)
      if not ok then
        refused = refused + 1
        warn("%s:%d: %s", path, number, made)
      end
      workloads[#workloads + 1] = made
    end
  end
  return refused
end

-- The functions of the files: TVM's lines, TVMScript, Lua. Those beside the records are TVM's lines before others.
local function read_workloads(options, folder)
  local paths, workloads, refused = options.workload or {}, {}, 0
  if not options.workload and folder and exists(folder .. "/" .. WORKLOADS) then
    paths = {folder .. "/" .. WORKLOADS}
  elseif not options.workload and folder then
    while exists(numbered(folder, #paths)) do paths[#paths + 1] = numbered(folder, #paths) end
    if #paths == 0 and start_of(folder .. "/" .. RECORDS, 1) then
      refuse("%s: there is neither %s nor workload_0.py, and no --workload is given", folder, WORKLOADS)
    end
  end
  for _, p in ipairs(paths) do
    if p:sub(-#WORKLOADS) == WORKLOADS or start_of(p, 2) == '["' then refused = refused + read_lines(p, workloads)
    else
      for _, f in ipairs(cli.functions_of(p, {})) do workloads[#workloads + 1] = f end
    end
  end
  return workloads, refused
end

-- The lines of the file; the first of those refused are shown.
function exchange.import_records(store, path, options)
  local added, refused, why, lines = store:import(path, options)
  local shown = 0
  for line in why:gmatch "[^\n]+" do
    local first = line:sub(1, #path + 1) == path .. ":"
    if first then shown = shown + 1 end
    if first then warn("%s", line) else cli.warn(line) end
  end
  if shown < refused then warn("%s more refused", cli.count_text(refused - shown, "line")) end
  return added, refused, lines
end

-- The first page of an LMDB file says what it is behind its own header.
local function is_store(path) return path ~= "-" and (start_of(path, 20) or ""):sub(17) == "\xde\xc0\xef\xbe" end

local LINES = "records come as lines of JSON, which `msched db export` and TVM write"
local START = 4096 -- bytes of a file by which its format is known

-- Of a file of another format the whole is refused, and not each of its lines; a damaged line among others is refused
-- alone.
local function expect_lines(path)
  local start = path ~= "-" and start_of(path, START) or ""
  local message = not start:find "^%s*[%[{]" and ms.not_text(path, start, LINES)
  if message then refuse("%s", message) end
end

-- Everything of TVM's folder, or lines of records or of an export.
function exchange.import(options, path)
  if is_store(path) then
    refuse("%s: this is a store; `msched db merge %s` takes its records", path, cli.shell_word(path))
  end
  local folder = folder_of(path)
  if not folder then expect_lines(path) end
  local workloads, refused = read_workloads(options, folder)
  local target = ms.target(options.target or "native").text
  local store = cli.open_store(options.db)
  local kept, added, others, lines = 0, 0, 0, 0
  for _, f in ipairs(folder and workloads or {}) do
    if type(f) ~= "string" then
      store:put_workload(f)
      kept = kept + 1
    end
  end
  if folder then path = folder .. "/" .. RECORDS end
  if not folder or exists(path) then
    added, others, lines = exchange.import_records(store, path, {workloads = workloads, target = target})
    if not folder and lines == 0 then refuse("%s: the file is empty; %s", path, LINES) end
  end
  refused = refused + others
  if options.json then cli.put_json {added = added, functions = kept, refused = refused}
  else
    print(cli.count_text(added, "record") .. " added" .. (folder and " of " .. cli.count_text(kept, "function") or "")
          .. (refused > 0 and ", " .. cli.count_text(refused, "line") .. " refused" or "")
          .. (added + refused == 0 and not folder and ": no line has a record that is new" or ""))
  end
  return refused > 0 and cli.FAILED or cli.DONE
end

return exchange
