-- The name that was meant by one that is none: of what is chosen by name, or of a file.
local nearest = {}

-- How many letters must be added, left out, changed or exchanged with the next to make b of a (Damerau's distance).
local function distance(a, b)
  local rows = {[0] = {}}
  for j = 0, #b do rows[0][j] = j end
  for i = 1, #a do
    rows[i] = {[0] = i}
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      local least = math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        least = math.min(least, rows[i - 2][j - 2] + 1)
      end
      rows[i][j] = least
    end
  end
  return rows[#a][#b]
end

local LONGEST = 64 -- letters of a name that is looked for

-- The name of the list that is nearest, the first in order of names; nil: none is near.
function nearest.of(name, names)
  local best, least = nil, math.max(1, #name // 3) + 1
  for _, other in ipairs(#name <= LONGEST and names or {}) do
    local far = math.abs(#other - #name) <= least and distance(name, other) or math.huge
    if #name > 1 and other:sub(1, #name) == name then far = far - 0.5 end -- begun, and not ended
    if far < least or far == least and best and other < best then best, least = other, far end
  end
  return best
end

-- What is added to a message that there is no such name: the one that was meant, or nothing.
function nearest.meant(name, names)
  local found = nearest.of(name, names)
  return found and "; did you mean `" .. found .. "`?" or ""
end

local FORMS = {".lua", ".py", ".json"} -- that a file's name may lack

local function with_form(name, names)
  for _, form in ipairs(FORMS) do
    for _, other in ipairs(names) do if other == name .. form then return other end end
  end
end

-- The same of a file that is not there: one of its folder's.
function nearest.meant_file(path)
  local folder, name = path:match "^(.*/)([^/]*)$"
  folder, name = folder or "", name or path
  local names = msched.names_in(folder == "" and "." or folder)
  local found = name ~= "" and (with_form(name, names) or nearest.of(name, names))
  return found and "; did you mean `" .. folder .. found .. "`?" or ""
end

-- A message; one that says that there is no such name, and which there are, or that a file is not there, with the one
-- that was meant.
function nearest.hint(message)
  local path = message:match "^cannot open ([^\n]*): No such file or directory$"
    or message:match "^([^\n]*): No such file or directory$"
  if path then return message .. nearest.meant_file(path) end
  local name, known = message:match "there is no [%a ]+ `([^`]*)` ?%a*; %a+ are ([%w_, %-]+)"
  if not name or message:find("did you mean", 1, true) then return message end
  local names = {}
  for each in known:gmatch "[%w_%-]+" do names[#names + 1] = each end
  return message .. nearest.meant(name, names)
end

return nearest
