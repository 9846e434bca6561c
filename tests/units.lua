-- units.lua FOLDER MOST FOLDERS… <SOURCES: of the C sources that standard input names, a path a line, writes units into
-- FOLDER, each of which includes at most MOST of them, and prints their paths: a header is read once a unit, and not
-- once a source, by cppcheck and by compilers that do not optimize. No two sources of a unit, with what they
-- include by its path from themselves or from FOLDERS, give one name two meanings at file scope, and macros of one are
-- undone before the next: what is read of each is what is there. But for main of a unit test: NAME.c's is unit_NAME.
local folder, most, folders = arg[1], math.tointeger(arg[2]), table.move(arg, 3, #arg, 1, {})
assert(folder and most, "usage: lua5.4 units.lua FOLDER MOST FOLDERS… <SOURCES")

-- What a text gives a meaning to at file scope: true where it is this text's own, false where it is of the whole
-- program. Declarations begin at the left margin: a name is what stands in front of the first "(", "[", "=" or ";", a
-- tag, what an enumeration lists, or a macro of a header that is written as functions are; nothing calls main.
local function names_of(text, is_header)
  local names = {}
  if is_header then
    for name in text:gmatch "\n#define (%l[%w_]*)" do names[name] = true end
  end
  text = text:gsub("/%*.-%*/", ""):gsub("\\\n", " "):gsub("\n#[^\n]*", "")
  for line in text:gmatch "\n([%a_][^\n]+)" do
    local tag = line:match "%f[%a]%l+ ([%w_]+) {"
    for each in (line:match "^static [^(]+;$" or ""):gmatch "([%w_]+)," do names[each] = true end
    local name = not line:find "^%l+ [%w_]+;" and line:match "([%w_]+)[^%w_]*[%(%[=;]"
    if name then names[name] = line:find "^static" ~= nil or line:find "^typedef" ~= nil end
    if tag then names[tag] = true end
  end
  for tag in text:gmatch "\n +struct ([%w_]+) {\n" do names[tag] = true end
  for list in text:gmatch "\nenum [^;{]*(%b{})" do
    for name in list:gmatch "[{,]%s*([%a_][%w_]*)" do names[name] = true end
  end
  names.main, names.struct, names.enum = nil, nil, nil
  return names
end

local texts = {} -- by path; false: there is none
local function text_of(path)
  if texts[path] == nil then
    local file = io.open(path)
    texts[path] = file and "\n" .. file:read "a" or false
    if file then file:close() end
  end
  return texts[path]
end

local names = {} -- of each path, by name
local function visit(path, seen)
  if seen[path] then return end
  seen[path] = not path:find "%.def$"
  local text = text_of(path)
  names[path] = names[path] or names_of(text, path:find "%.h$")
  for include in text:gmatch '\n#include "([^"]+)"' do
    local at = path:gsub("[^/]*$", "") .. include
    for i = 0, #folders do
      if i > 0 then at = (folders[i] .. "/" .. include):gsub("^%./", "") end
      if text_of(at) then
        visit(at, seen)
        break
      end
    end
  end
end

-- Each of its names, and where it has its meaning: "" in the whole program.
local function meanings_of(path)
  local meanings, seen = {}, {}
  visit(path, seen)
  for each, counts in pairs(seen) do
    for name, own in pairs(counts and names[each] or {}) do
      local at = own and each or ""
      if at >= (meanings[name] or "") then meanings[name] = at end
    end
  end
  return meanings
end

local units = {}
for path in io.lines() do
  local meanings, to = meanings_of(path), nil
  for _, unit in ipairs(units) do
    to = #unit < most and unit
    for name, at in pairs(to and meanings or {}) do
      if to and (unit.meanings[name] or at) ~= at then to = nil end
    end
    if to then break end
  end
  if not to then
    to = {meanings = {}}
    table.insert(units, to)
  end
  table.insert(to, path)
  for name, at in pairs(meanings) do to.meanings[name] = at end
end

-- One that is there and has this text stays as old as it is.
local function write(path, text)
  local file = io.open(path)
  local same = file and file:read "a" == text
  if file then file:close() end
  if same then return end
  file = assert(io.open(path, "w"))
  file:write(text)
  assert(file:close())
end

for i, unit in ipairs(units) do
  local at, lines = string.format("%s/%d.c", folder, i), {}
  for _, path in ipairs(unit) do
    local main = path:find "^tests/unit/" and path:match "([%w_]+)%.c$"
    if main then lines[#lines + 1] = string.format("#define main unit_%s\n", main) end
    lines[#lines + 1] = string.format('#include "%s"\n', path)
    if main then lines[#lines + 1] = "#undef main\n" end
    if path:find "%.c$" then
      for name in text_of(path):gmatch "\n#define ([%w_]+)" do lines[#lines + 1] = "#undef " .. name .. "\n" end
    end
  end
  write(at, table.concat(lines))
  print(at)
end
