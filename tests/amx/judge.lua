-- Candidates that multiply AMX's tiles, built and run: dofile gives a table.
local ms = require "msched"
local tune = ms.load "search.tune"
local judge = {target = ms.target "native"}

-- Ends the script as skipped where nothing can run them.
function judge.needs_tiles()
  if judge.target.tiles & 3 == 3 then return end
  print "skipped: neither has this machine AMX, nor is this msched-amx on a CPU with AVX2, FMA and F16C"
  os.exit(77)
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

-- ---- What is performed ---------------------------------------------------------------------------------------------

local MNEMONICS = {"ldtilecfg", "sttilecfg", "tilerelease", "tilezero", "tileloadd", "tileloaddt1", "tilestored",
                   "tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud", "tdpbf16ps", "tdpfp16ps"}
judge.counts = os.getenv "AMX_COUNTS" -- a file of them; nil: nothing is counted

-- How often each instruction was performed so far, by name; nil: they are not counted.
function judge.performed()
  local file <close> = judge.counts and io.open(judge.counts, "rb")
  if not file then return nil end
  local text, counts = file:read "a", {}
  for i, name in ipairs(MNEMONICS) do counts[name] = string.unpack("<I8", text, 8 * i - 7) end
  return counts
end

-- Runs what is given; how often each instruction was performed meanwhile.
function judge.count(run)
  local before = judge.performed()
  run()
  local after = judge.performed()
  for name, n in pairs(before or {}) do after[name] = after[name] - n end
  return after
end

return judge
