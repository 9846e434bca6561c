-- Random convolutions and products of short types, on CPUs with AMX, dot products, or neither: no instruction of a rule
-- is refused, so that no rule gives nothing where it could give something.
-- usage: msched short_products.lua COUNT [SEED]
local ms = require "msched"
local space, targets, tiling = ms.load "rules.space", ms.load "rules.targets", ms.load "rules.tiling"
local count, seed = tonumber(arg[1]), tonumber(arg[2] or 1)
math.randomseed(seed)

local TARGETS = {"sapphirerapids", "graniterapids", "znver5", "alderlake", "skylake-avx512"}
local draws = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/short_draws.lua")
local pick, draw = draws.pick, draws.draw

-- What a rule makes one by one is tried: that is refused, too.
local refused, name = {}, nil
local function note(message) refused[#refused + 1] = name .. ": " .. (tostring(message):match "^[^\n]*") end
function tiling.attempt(make, ...)
  local done, made = pcall(make, ...)
  if done then return made end
  note(made)
end

local sketches = 0
for i = 1, count do
  local func, cpu = draw(), pick(TARGETS)
  name = func:name() .. " for " .. cpu
  local parts = space.parts(targets.context(ms.target("llvm -mcpu=" .. cpu .. " -num-cores=2")))
  local states, report = space.open(function(groups) return space.walk(func, parts, seed + i, groups) end)
  for _, key in ipairs(ms.sorted_keys(report.refused)) do note(key .. ": " .. tostring(report.refused[key].example)) end
  sketches = sketches + #states
end
assert(#refused == 0, #refused .. " refused:\n" .. table.concat(refused, "\n"))
assert(sketches > count)
print(string.format("%d functions of short types, %d sketches: ok", count, sketches))
