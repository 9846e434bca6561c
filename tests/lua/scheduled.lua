-- scheduled.lua ROOT EXAMPLE EXTENT…: prints the function of an example, and a candidate of each sketch of its design
-- space, if one of four is valid, in TVMScript, each after a line "### ".
local ms = require "msched"
local targets, space = ms.load "rules.targets", ms.load "rules.space"

local root, example = arg[1], arg[2]
local extents = {table.unpack(arg, 3)}
local parts = space.parts(targets.context(ms.target "x86-64-v3 -num-cores=2"))

local func = assert(loadfile(root .. "/lua/examples/" .. example .. ".lua"))(table.unpack(extents))[1]
io.write("### ", example, "\n", func:script())
for s, sketch in ipairs(space.generate(func, parts)) do
  for c = 1, 4 do
    local ok, sch = pcall(ms.apply, func, sketch.trace, {seed = 3, candidate = 10 * s + c, resample = true})
    if ok and space.postprocess(sch, parts) then
      io.write("### sketch ", s, ", candidate ", c, "\n", sch:script())
      break
    end
  end
end
