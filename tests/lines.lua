-- Lines of at most 120 characters, in Lua, C, the prose of Markdown, and the comments of shell, Python and CMake. A Lua
-- string in long brackets is text that a program writes, and stays as it is; so do rows of tables, in files .def and of
-- Markdown, its listings and pictures.
-- usage: msched lines.lua SOURCES
local MOST = 120

-- The lines of a Lua file that hold a string in long brackets, or a part of one, by their numbers.
local function quoting(text)
  local lines, at, line = {}, 1, 1
  while true do
    local from, to, level = text:find("%[(=*)%[", at)
    local close = from and text:find("]" .. level .. "]", to + 1, true)
    if not close then return lines end
    line = line + select(2, text:sub(at, from - 1):gsub("\n", ""))
    local last = line + select(2, text:sub(from, close):gsub("\n", ""))
    for i = line, last do lines[i] = true end
    at, line = close, last
  end
end

-- The lines of a page's listings.
local function listings(text)
  local lines, inside, number = {}, false, 0
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    local fence = line:find "^```" ~= nil
    lines[number] = inside or fence
    inside = inside ~= fence
  end
  return lines
end

-- What a line of a file of this kind is judged by: all of it, or its comment alone.
local function judged(line, kind)
  if kind == "md" then return not line:find "^    " and not line:find "^[|!<]" and line end
  return (kind == "lua" or kind == "c" or kind == "h") and line or line:match "^%s*# .*"
end

local function check(folder, path, found)
  local file <close> = assert(io.open(folder .. "/" .. path))
  local text, kind, number = file:read "a", path:match "%.(%w+)$", 0
  local left = kind == "lua" and quoting(text) or kind == "md" and listings(text) or {}
  for line in text:gmatch "([^\n]*)\n" do
    number = number + 1
    local part = not left[number] and judged(line, kind)
    local length = part and (utf8.len(part) or #part) or 0
    if length > MOST then found[#found + 1] = string.format("%s:%d: %d characters", path, number, length) end
  end
end

local folder, found, files = arg[1], {}, 0
local list <close> = assert(io.popen(string.format([[cd '%s' && find . \( -name 'build*' -o -path ./tests/case -o -name .git \) -prune \
  -o \( -name '*.lua' -o -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name '*.md' -o -name CMakeLists.txt -o -path ./tests/run \) -print | sort]], folder)))
for path in list:lines() do
  check(folder, path:sub(3), found)
  files = files + 1
end
assert(files > 1000, "the sources are not in " .. folder)
assert(#found == 0, string.format("lines are longer than %d:\n%s", MOST, table.concat(found, "\n")))
