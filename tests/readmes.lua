-- Each C and Lua file of a module is named in the README of its folder, or of the nearest one above that has one, and
-- each script of tests/lua is run: CMakeLists.txt or another script there names it.
-- usage: msched readmes.lua SOURCES
local root = arg[1]

local function read(path)
  local file = io.open(root .. "/" .. path)
  if not file then return nil end
  local text <close> = file
  return text:read "a"
end

local function files_of(folders, names)
  local list = {}
  local command = string.format([[cd '%s' && find %s \( %s \) -print | sort]], root, folders, names)
  local found <close> = assert(io.popen(command))
  for path in found:lines() do list[#list + 1] = path end
  return list
end

-- The words of a README that may be names of files: `name.[ch]` is two.
local named = {}
local function names_in(folder)
  if named[folder] == nil then
    local text = read(folder .. "/README.md")
    local set = text and {}
    for word in (text or ""):gmatch "[%w_*%-]+%.[%w%[%]]+" do
      if word:find("[ch]", 1, true) then
        local stem = word:gsub("%[ch%]", "")
        set[stem .. "c"], set[stem .. "h"] = true, true
      end
      set[word] = true
    end
    named[folder] = set or false
  end
  return named[folder]
end

local missing = {}
local sources = files_of("vm tir rules lua search jit db", [[-name '*.[ch]' -o -name '*.lua' -o -name '*.def']])
assert(#sources > 500, "the sources are not in " .. root)
for _, path in ipairs(sources) do
  local folder, name = path:match "^(.*)/([^/]*)$"
  local at = folder
  while at and not names_in(at) do at = at:match "^(.*)/[^/]*$" end
  if not path:find("^lua/examples/") and not (at and names_in(at)[name]) then
    missing[#missing + 1] = string.format("%s is not in %s/README.md", path, at or folder)
  end
end

local scripts = files_of("tests/lua", [[-name '*.lua' -o -name '*.sh']])
assert(#scripts > 100)
local texts, index = {read "tests/CMakeLists.txt"}, read "tests/README.md"
for _, path in ipairs(scripts) do texts[#texts + 1] = read(path) end
for i, path in ipairs(scripts) do
  local stem = path:match "([^/]*)%.%w+$"
  local pattern = "%f[%w_]" .. stem:gsub("%-", "%%-") .. "%f[^%w_]"
  local is_run = false
  for j, text in ipairs(texts) do is_run = is_run or j ~= i + 1 and text:find(pattern) end
  if not is_run then missing[#missing + 1] = path .. " is run by nothing: name it in tests/CMakeLists.txt" end
  local is_listed = not texts[1]:find(pattern) or index:find("/" .. stem .. ".lua", 1, true)
    or index:find("/" .. stem .. ".sh", 1, true)
  if not is_listed then missing[#missing + 1] = path .. " is not in tests/README.md" end
end
assert(#missing == 0, table.concat(missing, "\n"))
