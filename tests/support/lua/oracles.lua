-- oracles(sources): judges schedules of functions for a GPU without one, by three that agree: the interpreter runs the
-- lowered function, the source compiled for the CPU computes the same (kernel_sources.lua, RUN_KERNELS), and NVRTC
-- compiles it. judge(func, list, target [, compiled]) raises what is wrong with one of the scheduled functions; gives
-- for each a list of its kernels' resources, by NVRTC for the first `compiled`, all unless said, else estimated.
return function(sources)
  local function judge_all(func, list, target, compiled)
    local resources = {}
    for i, scheduled in ipairs(list) do
      msched.check_lowered(func, scheduled, target, i)
      local kernel = msched.build(scheduled, {target = target, load = false})
      kernel:export(sources:path(i .. ".cu"))
      resources[i] = i <= (compiled or #list) and sources:compile(kernel) or kernel:resources()
    end
    local agree, said = sources:agree()
    if agree ~= #list then error(said, 0) end
    return resources
  end
  return function(...)
    sources:begin((...))
    local results = table.pack(pcall(judge_all, ...))
    sources:finish()
    if not results[1] then error(results[2], 0) end
    return results[2]
  end
end
