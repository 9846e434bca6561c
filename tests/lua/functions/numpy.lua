-- NumPy's files, in and out: every type, both orders of bytes and of dimensions, what is damaged; ms.time; and the
-- options
-- that Tab completes; huge pages.  usage: msched numpy.lua
local ms = require "msched"
local path = os.tmpname()

local function refuses(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "not refused: " .. pattern)
  assert(tostring(message):find(pattern, 1, true), tostring(message))
end
local function write(text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end
local function read()
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end
local function same(a, b)
  assert(a:type() == b:type() and table.concat(a:shape(), "x") == table.concat(b:shape(), "x"))
  for i, value in ipairs(a:tolist()) do assert(b[i - 1] == value, i) end
end

-- ---- One number everywhere ----------------------------------------------------------------------------------------

for _, type in ipairs {"float32", "float64", "float16", "int8", "int64", "uint8", "bool"} do
  for _, count in ipairs {0, 1, 2, 3, 7, 64, 100} do
    local a, number = ms.array({count}, type, 1), 0
    for _, value in ipairs(a:tolist()) do number = number + (value == 1 and 1 or 0) end
    assert(number == count and #a:tolist() == count, type .. " " .. count)
  end
end
assert(ms.array({3}, "int64", math.maxinteger)[2] == math.maxinteger)

-- ---- Out and in again --------------------------------------------------------------------------------------------

for _, type in ipairs {"float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"} do
  for _, shape in ipairs {{2, 3, 5}, {7}, {}} do
    local a = ms.array(shape, type):random(3)
    a:save(path)
    assert((#read() - #a * tonumber(type:match "%d+") // 8) % 64 == 0, "the elements begin at a multiple of 64 bytes")
    same(a, ms.load_array(path))
  end
end
local long = ms.array({9001}, "float64", function(i) return i / 7 end)
long:save(path)
same(long, ms.load_array(path))

-- A file that was there is replaced as a whole: who has it open, or by another name, keeps what it had.
do
  local first, second, other = ms.array({3}, "int32", {1, 2, 3}), ms.array({2}, "int32", {4, 5}), path .. ".other"
  first:save(path)
  assert(os.execute(string.format("ln '%s' '%s'", path, other)))
  second:save(path)
  same(first, ms.load_array(other))
  same(second, ms.load_array(path))
  os.remove(other)
end

-- What numpy 1.24 writes for arange(6).reshape(2, 3) as int16: byte for byte.
local header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }"
local function file(text, elements)
  return "\147NUMPY\1\0" .. string.pack("<s2", text .. (" "):rep(117 - #text) .. "\n") .. elements
end
local elements = string.pack("<i2i2i2i2i2i2", 0, 1, 2, 3, 4, 5)
ms.array({2, 3}, "int16", {0, 1, 2, 3, 4, 5}):save(path)
assert(read() == file(header, elements))

-- Others' order of bytes, and of dimensions; longer headers of version 2.
write(file((header:gsub("<", ">")), string.pack(">i2i2i2i2i2i2", 0, 1, 2, 3, 4, 5)))
same(ms.array({2, 3}, "int16", {0, 1, 2, 3, 4, 5}), ms.load_array(path))
write(file((header:gsub("False", "True")), string.pack("<i2i2i2i2i2i2", 0, 3, 1, 4, 2, 5)))
same(ms.array({2, 3}, "int16", {0, 1, 2, 3, 4, 5}), ms.load_array(path))
write("\147NUMPY\2\0" .. string.pack("<s4", header) .. elements)
same(ms.array({2, 3}, "int16", {0, 1, 2, 3, 4, 5}), ms.load_array(path))

-- ---- Refused -----------------------------------------------------------------------------------------------------

local whole = file(header, elements)
for length = 0, #whole - 1 do
  write(whole:sub(1, length))
  assert(not pcall(ms.load_array, path), length .. " bytes are read")
end
local function refuses_file(pattern, text)
  write(text)
  refuses(pattern, ms.load_array, path)
end
refuses_file("it is no file of NumPy's", "PK\3\4")
refuses_file("it is cut short", "\147NUMPY")
refuses_file("version 9", "\147NUMPY\9\0" .. whole:sub(9))
refuses_file("`c8`", file((header:gsub("i2", "c8")), elements))
refuses_file("a structure, or objects", file((header:gsub("'<i2'", "[('x', '<i2')]")), elements))
refuses_file("asks for more than can be", file((header:gsub("2, 3", "65536, 65536, 65536, 65536")), elements))
write(file((header:gsub("2, 3", "2, 0")), ""))
assert(#ms.load_array(path) == 0)
refuses_file("6 elements of 2 bytes are expected", whole:sub(1, -2))
refuses("No such file", ms.load_array, "/nonexistent/a.npy")
refuses("numpy.lua", ms.load_array, "/nonexistent/a.npy")
refuses("no files of bfloat16", function() ms.array({2}, "bfloat16"):save(path) end)
refuses("takes a path", function() ms.array({2}):save() end)
refuses("No such file", function() ms.array({2}):save "/nonexistent/a.npy" end)
os.remove(path)

-- ---- Time --------------------------------------------------------------------------------------------------------

local calls = 0
local median, least, most = ms.time(function(x)
  assert(x == 7)
  calls = calls + 1
  local start = ms.clock()
  while ms.clock() - start < 0.001 do end
end, 7)
assert(calls >= 3 and least >= 0.001 and least <= median and median <= most)
refuses("takes a function or a kernel", ms.time, 3)

-- ---- Options that Tab completes ----------------------------------------------------------------------------------

local host = {kind = ms.type, methods = function(x) return ({schedule = ms.schedule_methods})[ms.type(x)] end,
              explain = function() end}
local repl = ms.load "lua.cli.repl.repl"(host)
local function completes(text, start, ...)
  local begun, words = repl.complete(text)
  assert(begun == start, text .. ": `" .. begun .. "`")
  assert(table.concat(words, "|") == table.concat({...}, "|"), text .. ": " .. table.concat(words, "|"))
end
completes("ms.tune(f, {tri", "tri", "trials = ")
completes("ms.tune(f, {trials = 64, see", "see", "seed = ")
completes("ms.tune(f, {trials = (3 + 4), policy", "policy", "policy = ", "policy_timeout = ")
completes("best = ms.auto_schedule(make {1, 2}, {vec", "vec", "vector_bits = ")
completes("k:check {sam", "sam", "samples = ")
assert(#select(2, repl.complete("ms.build(f, {")) == 5, "all, where nothing is begun")
completes("ms.build(f, {target", "target", "target = ")
for _, text in ipairs {"ms.tune(f, {trials = se", "ms.tune(f, {policy = ms.no", "{tri", "ms.array({tri"} do
  for _, word in ipairs(select(2, repl.complete(text))) do assert(not word:find "=", text .. ": " .. word) end
end

-- A large array asks for huge pages, the whole ones that it covers; the system's list of memory has them by a flag.
local function huge_kilobytes()
  local file <close> = io.open "/proc/self/smaps"
  local now, sum, flags = 0, 0, 0
  for line in file and file:lines() or function() end do
    now = tonumber(line:match "^Size: +(%d+) kB") or now
    if line:find "^VmFlags:" then
      flags = flags + 1
      if line:find " hg" then sum = sum + now end
    end
  end
  return flags > 0 and sum
end
local before = huge_kilobytes()
if before and io.open "/sys/kernel/mm/transparent_hugepage/enabled" then
  local small, large = ms.array({1 << 18}), ms.array({7 << 18})
  assert(huge_kilobytes() - before == 3 << 11, "three pages of 2 MB of 7 MB, and none of 1 MB")
  large:random(1)
  assert(large:difference(ms.array({7 << 18}):random(1)) == 0 and small[1] == 0)
end

-- Differences: the largest, of how many elements, and the root of the mean of the squares.
local first, second = ms.array({4}, "float32", {0, 3, 0 / 0, 1 / 0}), ms.array({4}, "float32", {4, 0, 0 / 0, 1 / 0})
local most, count, mean = first:difference(second)
assert(most == 4 and count == 4 and mean == 2.5)
most, count, mean = first:difference(second, ms.array({4}, "float32", {4, 1, 0 / 0, 1 / 0}))
assert(most == 3 and count == 2 and math.abs(mean - math.sqrt(4.5)) < 1e-12)
most, count, mean = ms.array({0}):difference(ms.array({0}))
assert(most == 0 and count == 0 and mean == 0)
assert(first:difference(ms.array({4})) == 1 / 0)
print "numpy: ok"
