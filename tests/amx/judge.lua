-- Candidates that multiply AMX's tiles, built and run: dofile gives a table.
local ms = require "msched"
local tune = ms.load "search.tune"
local judge = {target = ms.target "native"}

-- Programs of other machines would judge nothing.
function judge.needs_tiles()
  assert(judge.target.tiles & 3 == 3, "this machine has no AMX, and the program is not as on one that has: msched-amx is")
end

-- So many traces, drawn as a search draws them of sketches that name all of the words; nil: no sketch does.
function judge.candidates(func, count, seed, words)
  local tiled = {}
  for _, sketch in ipairs(tune.open(func, judge.target, {}).sketches) do
    local text, named = tostring(sketch.trace), true
    for _, word in ipairs(words or {"amx_1"}) do named = named and text:find(word, 1, true) end
    if named then tiled[#tiled + 1] = sketch end
  end
  if #tiled == 0 then return nil end
  local jobs, list = {}, {}
  for i = 1, count do
    jobs[i] = {trace = tiled[(i - 1) % #tiled + 1].trace:simplified(false), seed = seed, candidate = i, resample = true}
  end
  local pool = ms.pool(func, {jobs = 1, target = judge.target.text})
  for _, c in ipairs((pool:replay(jobs, false))) do if c then list[#list + 1] = c.trace end end
  pool:close()
  return list
end

-- Builds the candidate, runs it, and compares it with the function; gives the kernel.
function judge.check(func, trace, options)
  local kernel = ms.build(ms.apply(func, trace):func(), {reference = func, target = judge.target.text})
  kernel:check(options)
  return kernel
end

return judge
