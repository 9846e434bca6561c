-- Patterns that may take long are matched by msched's own matcher, which can be stopped: it finds what Lua's finds.
-- usage: patterns.lua [ROUNDS]
local rounds = tonumber(arg and arg[1]) or 4000
local state = 12345
local function below(n)
  state = (state * 6364136223846793005 + 1442695040888963407)
  return ((state >> 33) % n) + 1
end
local function pick(list) return list[below(#list)] end

-- What no text here holds, as often as may be there or not: the pattern matches the same, and may take 2^32 times as
-- long.
local IDLE = ("\1?"):rep(32)
local PIECES = {"a", "b", ".", "%a", "%d", "%s", "%w", "%A", "%z", "%p", "%x", "%u", "[ab]", "[^a]", "[a-c]", "[%d]",
                "[]x]", "[^]]", "[a-]", "[%a_]", "%.", "%%", "x", "(", ")", "()", "%b()", "%f[%w]", "%f[^%w]", "%1",
                "%2", "%0", "$a", "^", "", "*", "+", "-", "?"}
local function pattern_of()
  local list = {}
  if below(5) == 1 then list[1] = "^" end
  for _ = 1, below(4) do
    local p = pick(PIECES)
    if below(3) == 1 then p = p .. pick {"*", "+", "-", "?"} end
    if below(4) == 1 then p = "(" .. p .. ")" end
    list[#list + 1] = p
  end
  local last = below(5) == 1 and "$" or ""
  return table.concat(list), last
end
local function text_of()
  local list = {}
  for i = 1, below(12) - 1 do
    list[i] = pick {"a", "b", "c", "1", " ", ".", "(", ")", "]", "-", "%", "x", "\0", "_", "A", "\255", "$", "^"}
  end
  return table.concat(list)
end

local function shown(...)
  local list = table.pack(...)
  for i = 1, list.n do list[i] = type(list[i]) .. " " .. tostring(list[i]) end
  return table.concat(list, ", ")
end
local function called(f, ...)
  local got = table.pack(pcall(f, ...))
  if not got[1] then return "error: " .. tostring(got[2]):gsub("^.-:%d+: ", "") end
  return shown(table.unpack(got, 2, got.n))
end
local function walked(text, pattern, from)
  local list = {}
  for a, b, c in text:gmatch(pattern, from) do list[#list + 1] = shown(a, b, c) end
  return table.concat(list, "; ")
end
local REPLACEMENTS =
  {"<%0>", "%1", "%%", "", "x%2", "%", "%9", function(a, b) return b and a or nil end, function() return false end,
   function(a) return #tostring(a) end, function() return {} end, {a = "A", ["1"] = 5, b = false},
   setmetatable({}, {__index = function(_, k) return k .. k end}), 7}
local same, refused = 0, 0
for _ = 1, rounds do
  local text, first, last = text_of(), pattern_of()
  local pattern, slow, from = first .. last, first .. IDLE .. last, below(8) - 4
  if not pattern:find "[%^%$%*%+%?%.%(%[%%%-]" then pattern = pattern .. "\1?" end -- else find takes it for plain text
  local replacement, most = pick(REPLACEMENTS), below(3) == 1 and below(3) - 1 or nil
  for _, f in ipairs {{string.find, from}, {string.match, from}, {walked, from}, {string.gsub, replacement, most}} do
    local quick, own = called(f[1], text, pattern, f[2], f[3]), called(f[1], text, slow, f[2], f[3])
    -- What a pattern that is no pattern is told may name what stands behind it.
    local wrong = quick:find "^error" and own:find "^error"
    assert(quick == own or wrong or quick:find "malformed" or own:find "too complex",
           ("%q: %q: Lua %s, own %s"):format(text, pattern, quick, own))
    if wrong then refused = refused + 1 else same = same + 1 end
  end
end
assert(same > rounds and refused > rounds / 50, same .. " " .. refused)

-- What is no pattern is told as Lua tells it.
for _, p in ipairs {"[a", "%", "%b", "%f", "(a", ".)", "%1", ("("):rep(40), "[%", "(()"} do
  local quick, own = called(string.find, "a b", p), called(string.find, "a b", IDLE .. p)
  assert(quick == own and quick:find "^error", p .. ": " .. quick .. ", " .. own)
end
assert(called(string.gsub, "a", IDLE, true):find "string/function/table expected")
-- Plain texts too, and those whose search would take the square of their length.
local half = ("a"):rep(2000000)
for _, t in ipairs {{"b", -1}, {"", 1}, {"a", 4000001}, {"", 4000003}, {half, 7}, {half .. "b", 1}} do
  local text, from = half .. half .. "b", t[2] < 0 and #half * 2 + 1 + t[2] + 1 or t[2]
  local expected = from <= #text + 1 and (t[1] == half .. "b" and #half + 1 or t[1] == "a" and #text + 1 or from) or nil
  if t[1] == "a" then expected = nil end
  assert(text:find(t[1], t[2], true) == expected, #t[1] .. " " .. tostring(expected))
end

-- Long repetitions are made in pieces.
for _, t in ipairs {{"ab", 9000001, ""}, {"abc", 5000001, ","}, {("y"):rep(20000000), 2, "-"}, {"", 17000000, ";"}} do
  local made, period = t[1]:rep(t[2], t[3]), t[1] .. t[3]
  assert(#made == #period * t[2] - #t[3] and made:sub(1, #period) == period and made:sub(-#t[1]) == t[1] or #t[1] == 0)
  assert(made:sub(#period + 1) == made:sub(1, #made - #period)) -- it repeats itself
end
assert(not pcall(string.rep, "xx", math.maxinteger))
print(string.format("patterns: %d calls alike, %d refused alike", same, refused))
