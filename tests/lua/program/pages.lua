-- Every listing of the guide's pages and of README.md is run, and what it prints compared with the listing of its
-- output. The tag after a listing's fence says how:
--   lua             a script            lua more        goes on with the script before it, whose locals it sees
--   lua fails       a script that ends with an error, which its output shows
--   lua file=NAME   a file that later listings use; so with any other language
--   sh              commands, in the folder of the page, where lua/examples is; msched is the program; sh needs=python3
--                   or needs=numpy: where there is a Python, or one with NumPy: python3, or what MSCHED_TVM names;
--                   needs=nvrtc: where NVRTC is installed; needs=redis: where redis-server is
--   output          what the listing before prints: `…` stands for any text within a line, or alone on one, for any
--                   lines
-- In README.md listings are indented: those with lines `$ COMMAND` are commands, those that begin with local are
-- scripts.
-- usage: msched pages.lua SOURCE PROGRAM [PAGE…]
local ms = require "msched"
local source, program, only = ..., select(2, ...), {}
for i = 3, select("#", ...) do only[select(i, ...)] = true end

local scratch = os.tmpname()
os.remove(scratch)
local failures, run_listings, skipped = {}, 0, 0

local function fail(at, ...) failures[#failures + 1] = at .. ": " .. string.format(...) end
local files = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/files.lua")
local read, write = files.read, files.write

-- A folder of its own for each page, with the examples in it and a store of its own.
local function new_folder(name)
  local folder = scratch .. "/" .. name
  assert(os.execute(string.format("mkdir -p '%s/bin' '%s/data' && ln -s '%s/lua' '%s/tests' '%s' && ln -s '%s' \z
                                   '%s/bin/msched'", folder, folder, source, source, folder, program, folder)))
  -- What pkg-config says of an installed tree is what it says here of the build's.
  local build = program:match "^(.*)/"
  write(folder .. "/bin/pkg-config",
        string.format("#!/bin/sh\necho '-I%s -L%s -lmsched -Wl,-rpath,%s'\n", source, build, build))
  assert(os.execute(string.format("chmod +x '%s/bin/pkg-config'", folder)))
  return folder
end

-- Runs commands in a folder: what they print, standard error after it, and their status.
local function run(folder, commands)
  local environment = string.format("cd '%s' && export PATH='%s/bin':$PATH XDG_DATA_HOME='%s/data' NO_COLOR=1 \z
                                     LC_ALL=C.UTF-8", folder, folder, folder)
  write(folder .. "/commands.sh", "set -e\n" .. commands)
  local _, _, status =
    os.execute(string.format("(%s && sh ./commands.sh) >'%s/out' 2>'%s/err' </dev/null", environment, folder, folder))
  run_listings = run_listings + 1
  return read(folder .. "/out"), read(folder .. "/err"), status
end

-- ---- Comparing ---------------------------------------------------------------------------------------------------

local function lines_of(text)
  local list = {}
  for line in (text:gsub("%s+$", "") .. "\n"):gmatch "([^\n]*)\n" do list[#list + 1] = (line:gsub("%s+$", "")) end
  return list
end
local function pattern_of(line)
  return "^" .. line:gsub("[%^%$%(%)%%%.%[%]%*%+%-%?]", "%%%0"):gsub("…", ".-") .. "$"
end

-- Whether lines are as expected; else the first line of what was expected that is not there.
local function compare(expected, got)
  local furthest = 0
  local function from(i, j)
    furthest = math.max(furthest, i)
    if i > #expected then return j > #got end
    if expected[i] == "…" then
      for k = j, #got + 1 do if from(i + 1, k) then return true end end
      return false
    end
    return j <= #got and got[j]:find(pattern_of(expected[i])) ~= nil and from(i + 1, j + 1)
  end
  if from(1, 1) then return true end
  return false, expected[furthest] or "the end"
end

local function check_output(at, expected, got)
  local same, missing = compare(lines_of(expected), lines_of(got))
  if not same then fail(at, "it prints otherwise, at `%s`:\n%s", missing, got) end
end

-- ---- Pages -------------------------------------------------------------------------------------------------------

-- The fenced listings of a page: {tag, text, at}.
local function listings_of(name, text)
  local list, open, number = {}, nil, 0
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    local fence = line:match "^```(.*)$"
    if fence and not open then
      open = {tag = fence, lines = {}, at = name .. ":" .. number}
    elseif fence then
      open.text = table.concat(open.lines, "\n") .. "\n"
      list[#list + 1], open = open, nil
    elseif open then
      open.lines[#open.lines + 1] = line
    end
  end
  if open then fail(open.at, "a listing without an end") end
  return list
end

-- The Python that a listing needs, python3 in the page's folder from then on; false where there is none.
local function has_python(folder, needed)
  local imported = needed == "numpy" and "numpy" or "ctypes"
  for _, python in ipairs {"python3", os.getenv "MSCHED_TVM" or os.getenv "MSCHED_PEER" or "python3"} do
    local found = io.popen(string.format("'%s' -c 'import sys, %s; print(sys.executable)' 2>/dev/null </dev/null",
                                         python, imported))
    local path = found:read "l"
    found:close()
    if path and path ~= "" then
      write(folder .. "/bin/python3", string.format("#!/bin/sh\nexec '%s' \"$@\"\n", path))
      return os.execute(string.format("chmod +x '%s/bin/python3'", folder))
    end
  end
  return false
end

local function has(folder, needed)
  if needed == "nvrtc" then return ms.devices().nvrtc:find "^%d" ~= nil end
  if needed == "redis" then return os.execute "command -v redis-server >/dev/null" ~= nil end
  return has_python(folder, needed)
end

local PART = "-- part --" -- between the parts of a script in what it prints

-- A script of one part or several, each {listing, output}.
local function run_script(folder, parts)
  local texts = {}
  for i, p in ipairs(parts) do texts[i] = p.listing.text end
  write(folder .. "/script.lua", table.concat(texts, 'print "' .. PART .. '"\n'))
  local out, err, status = run(folder, "msched script.lua\n")
  local fails, at = parts[1].listing.tag:find "fails" ~= nil, parts[1].listing.at
  if fails and status ~= 1 then return fail(at, "it does not fail") end
  if not fails and status ~= 0 then return fail(at, "status %d: %s", status, err) end
  out = fails and out .. err or out
  for _, p in ipairs(parts) do
    local first, last = out:find(PART .. "\n", 1, true)
    local printed = first and out:sub(1, first - 1) or out
    if p.output then check_output(p.output.at, p.output.text, printed) end
    out = first and out:sub(last + 1) or ""
  end
end

-- The tags of a page's listings, put together: scripts with their parts and outputs, commands, files.
local function run_page(folder, listings)
  local script, last
  local function flush()
    if script then run_script(folder, script) end
    script = nil
  end
  for _, l in ipairs(listings) do
    local file = l.tag:match "file=(%S+)"
    if l.tag == "output" then
      if not last then
        fail(l.at, "an output of nothing")
      elseif last.part then
        last.part.output = l
      elseif not last.skipped then
        check_output(l.at, l.text, last.printed)
      end
    elseif l.tag == "lua more" then
      if not script then fail(l.at, "there is no script to go on with") return end
      script[#script + 1] = {listing = l}
      last = {part = script[#script]}
    elseif file then
      flush()
      write(folder .. "/" .. file, l.text)
      last = nil
    elseif l.tag == "lua" or l.tag == "lua fails" then
      flush()
      script = {{listing = l}}
      last = {part = script[1]}
    elseif l.tag:find "^sh needs=" and not has(folder, l.tag:match "needs=(%w+)$") then
      flush()
      skipped, last = skipped + 1, {skipped = true}
    elseif l.tag == "sh" or l.tag:find "^sh needs=" then
      flush()
      local out, err, status = run(folder, l.text)
      if status ~= 0 then fail(l.at, "status %d: %s", status, err) end
      last = {printed = out}
    else
      fail(l.at, "no tag of a listing: `%s`", l.tag)
    end
  end
  flush()
end

-- ---- README.md ---------------------------------------------------------------------------------------------------

-- Commands that a test cannot run, and why; by their first words.
local NOT_RUN = {
  ["./msched tune"] = "the launcher, which builds", ["./msched test"] = "all tests",
  ["cmake --install"] = "installs: install.sh",
}
-- Trials and extents, so that it is soon done; what names a record in the page is the fastest of the store.
local FASTEST = "$(msched top -k 1 --json --db %s | sed -n 's/.*\"short_id\":\"\\([0-9a-f]*\\)\".*/\\1/p' | head -n 1)"

-- The indented listings: {text, at, before = the text before it}.
local function indented_of(name, text)
  local list, open, before, number = {}, nil, "", 0
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    number = number + 1
    if line:find "^    " then
      open = open or {lines = {}, at = name .. ":" .. number, before = before}
      open.lines[#open.lines + 1] = line:sub(5)
    elseif open and line == "" then
      open.lines[#open.lines + 1] = ""
    else
      if open then list[#list + 1], open = open, nil end
      if line ~= "" then before = line end
    end
  end
  for _, l in ipairs(list) do l.text = (table.concat(l.lines, "\n") .. "\n"):gsub("\n+$", "\n") end
  return list
end

-- Commands whose output is what was measured, or is shortened: which record is the fastest differs from run to run.
local MEASURED = {tune = true, top = true, show = true, replay = true, doctor = true}

-- Lines of a listing's output that its commands do not print.
local function find_missing(l, printed)
  local missing, got = {}, {}
  for _, line in ipairs(lines_of(printed)) do got[line] = true end
  for _, line in ipairs(l.lines) do
    local word = line:match "^%$ msched (%w+)"
    if word and MEASURED[word] then return {} end
    if not word and line ~= "" and line ~= "…" and not line:find "^%$ " and not got[line] then
      missing[#missing + 1] = line
    end
  end
  return missing
end

-- A command of README.md with the id of a record that is there.
local function with_record(command)
  local db = command:match "%-%-db (%S+)"
  return db and command:gsub("%f[%x]%x%x%x%x%x%x%x%f[%X]", function() return FASTEST:format(db) end) or command
end

local function run_readme(folder, listings)
  local script
  for _, l in ipairs(listings) do
    local first = l.lines[1]
    if first:find "^local " or first:find "^local ms = require" then
      if first:find "require" then script = {} end
      script[#script + 1] = l
    end
  end
  local scripts = {}
  for _, l in ipairs(listings) do
    local commands = {}
    for _, line in ipairs(l.lines) do
      local command = line:match "^%$ (.*)$"
      if command then commands[#commands + 1] = with_record(command:gsub("/tmp/", "./")) end
    end
    local skipped = NOT_RUN[l.lines[1]:match "^%S+ %S+" or ""]
    if #commands > 0 then
      local out, err, status = run(folder, table.concat(commands, "\n") .. "\n")
      if status ~= 0 then fail(l.at, "status %d: %s", status, err) end
      local missing = find_missing(l, out)
      if #missing > 0 then fail(l.at, "it does not print\n%s\nbut\n%s", table.concat(missing, "\n"), out) end
    elseif l.lines[1]:find "^local " then
      local name = l.before:match "`([%w_]+%.lua)`" or (l.text:find("ms.rule", 1, true) and "rule.lua") or "hand.lua"
      if l.lines[1]:find "require" then
        scripts[name] = l.text
      else
        scripts[name] = assert(scripts[name], l.at .. ": goes on with no script") .. l.text
      end
      write(folder .. "/" .. name, scripts[name])
      if name ~= "rule.lua" then
        local _, err, status = run(folder, "msched " .. name .. "\n")
        if status ~= 0 then fail(l.at, "status %d: %s", status, err) end
      end
    elseif not skipped then
      fail(l.at, "it is neither commands nor a script")
    end
  end
end

-- ---- All ---------------------------------------------------------------------------------------------------------

local pages = {"README.md"}
local list = io.popen(string.format("cd '%s' && ls lua/guide/*.md", source))
for path in list:lines() do pages[#pages + 1] = path end
list:close()
assert(#pages > 1)
for _, path in ipairs(pages) do
  local name = path:match "[^/]*$"
  if not next(only) or only[path] or only[name] then
    local text = read(source .. "/" .. path)
    local folder = new_folder(path:gsub("[/.]", "_"))
    if path == "README.md" then
      run_readme(folder, indented_of(path, text))
    else
      run_page(folder, listings_of(path, text))
    end
  end
end

-- What a comparison must notice.
assert(compare({"a", "…", "b…d"}, {"a", "x", "y", "bcd"}) and not compare({"a", "b"}, {"a"})
       and not compare({"a"}, {"a", "b"}) and not compare({"a.c"}, {"abc"}))
assert(compare({"…"}, {}) and compare({"a", "…"}, {"a"}) and select(2, compare({"a", "b"}, {"a", "c"})) == "b")

local true_failures = failures
failures = {}
run_page(new_folder "itself",
         listings_of("itself", "```lua\nprint(1)\n```\n```output\n2\n```\n```lua\nerror 'x'\n```\n```lua \z
                                fails\nprint(1)\n```\n```sh\nfalse\n```\n```nothing\n```\n"))
assert(#failures == 5, table.concat(failures, "\n"))
failures = true_failures

os.execute(string.format("rm -rf '%s'", scratch))
assert(run_listings > 0)
if #failures > 0 then
  error(string.format("%d of %d listings:\n%s", #failures, run_listings, table.concat(failures, "\n")), 0)
end
print(string.format("%d listings, %d left out for want of Python or NumPy", run_listings, skipped))
