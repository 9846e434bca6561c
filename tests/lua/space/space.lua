-- The design space on small shapes: every sketch, drawn a few times, computes what the function computes.
local ms = require "msched"
local targets, space = ms.load "rules.targets", ms.load "rules.space"

local parts = space.parts(targets.context(ms.target "native"))

local root = arg[1]
local examples = {{"gemm", 48, 64, 80}, {"gemm", 37, 50, 29}, {"conv2d_bn_relu", 12, 8}, {"softmax", 8, 24}}
do -- TVMScript opens a space like Lua
  local file <close> = assert(io.open(root .. "/lua/examples/gemm.py"))
  assert(ms.from_script(file:read "a", "gemm.py"):hash()
         == assert(loadfile(root .. "/lua/examples/gemm.lua"))()[1]:hash())
end
for _, e in ipairs(examples) do
  local func = assert(loadfile(root .. "/lua/examples/" .. e[1] .. ".lua"))(table.unpack(e, 2))[1]
  local sketches = space.generate(func, parts)
  local checked, mutated = 0, 0
  for s, sketch in ipairs(sketches) do
    for c = 1, 2 do
      local ok, sch = pcall(ms.apply, func, sketch.trace, {seed = 7, candidate = 10 * s + c, resample = true})
      if ok then
        local trace = sch.trace
        if space.postprocess(sch, parts) then
          ms.build(sch:func(), {reference = func}):check {tolerance = 1e-3}
          checked = checked + 1
        end
        for m, mutator in ipairs(parts.mutators) do
          local other = mutator[1].apply(trace, ms.stream(1, s, c, m))
          if other then
            local good = pcall(ms.apply, func, other, {seed = 7, candidate = 10 * s + c, repair = true})
            mutated = mutated + (good and 1 or 0)
          end
        end
      end
    end
  end
  assert(checked >= #sketches,
         string.format("%s: %d of %d sketches drawn twice could be checked", e[1], checked, #sketches))
  assert(mutated > 0)
  print(string.format("%s: %d sketches, %d candidates equal to the interpreter, %d mutations", e[1], #sketches, checked,
                      mutated))
end
