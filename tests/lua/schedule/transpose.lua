-- Transpositions in code: for each width of vectors that this machine has, of elements of 32 and 64 bits, with extents
-- that squares do not divide, every element is where it belongs; whole squares are shuffled, not gathered. usage:
-- transpose.lua FOLDER
local ms = require "msched"
local te = ms.te
local folder = assert(arg[1], "usage: transpose.lua FOLDER")

local function text_of(path)
  local f <close> = assert(io.open(path))
  return f:read "a"
end

-- A copy with its dimensions in another order, and more of it on both sides.
local function turned(type, shape, order)
  local X = te.placeholder(shape, type, "X")
  local to = {}
  for d, from in ipairs(order) do to[d] = shape[from] end
  local Y = te.compute(to, function(...)
    local at, indices = {...}, {}
    for d, from in ipairs(order) do indices[from] = at[d] end
    return X[indices]
  end, "Y")
  return te.func("turned", {X, Y})
end

local SHUFFLES = {"unpck", "vperm", "vshuf", "shufp", "movlhps", "movhlps", "insertps", "blend", "vinsertf"}
local function check(type, shape, order, target, least, rest)
  local func = turned(type, shape, order)
  for _, inner in ipairs {"vectorize", "serial"} do
    local sch = ms.schedule(func)
    local loops = {sch:get_loops(sch:get_sblock "Y")}
    if inner == "vectorize" then sch:vectorize(loops[#loops]) end
    local kernel = sch:build {target = target}
    local path = folder .. "/turned.s"
    kernel:export(path)
    local text, shuffles = text_of(path), 0
    for _, name in ipairs(SHUFFLES) do shuffles = shuffles + select(2, text:gsub(name, "")) end
    local what = string.format("%s %s of %s, %s", inner, table.concat(shape, "x"), type, target)
    assert(not text:find "gather" or rest, what)
    assert(shuffles >= least, string.format("%s: %d shuffles", what, shuffles))
    assert(kernel:check() == 0, what)
  end
end

-- Squares of a copy whose parallel loop is divided: where they begin depends on quotients and remainders.
local function check_divided(target, least)
  local sch = ms.schedule(turned("float32", {2, 64, 32}, {1, 3, 2}))
  local batch, row, column = sch:get_loops(sch:get_sblock "Y")
  local outer, inner = sch:split(column, {msched.rest, 16})
  sch:reorder(batch, outer, row, inner)
  sch:parallel(sch:fuse(batch, outer))
  local kernel, path = sch:build {target = target}, folder .. "/divided.s"
  kernel:export(path)
  local text, shuffles = text_of(path), 0
  for _, name in ipairs(SHUFFLES) do shuffles = shuffles + select(2, text:gsub(name, "")) end
  assert(shuffles >= least, string.format("%s: %d shuffles", target, shuffles))
  assert(kernel:check() == 0, target)
end

local checked = 0
for _, level in ipairs {{"x86-64-v2", 6}, {"x86-64-v3", 16}, {"x86-64-v4", 40}} do -- shuffles of a square, at least
  local target, least = "llvm -mcpu=" .. level[1] .. " -num-cores=1", level[2]
  if pcall(ms.target, target, {runs = true}) then
    for _, type in ipairs {"float32", "int32"} do
      check(type, {32, 48}, {2, 1}, target, least)
      check(type, {37, 51}, {2, 1}, target, least, true) -- LLVM may gather what squares leave over
      check(type, {3, 20, 35}, {1, 3, 2}, target, least, true)
      check(type, {3, 20, 35}, {2, 3, 1}, target, 0, true)
    end
    check_divided(target, least)
    checked = checked + 1
  end
end
assert(checked > 0 or not pcall(ms.target, "llvm -mcpu=x86-64-v2 -num-cores=1", {runs = true}))

print "transpose: ok"
