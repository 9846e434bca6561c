-- oracles(sources): judges schedules of functions for a GPU without one, by three that agree: the interpreter runs the
-- lowered function, the source compiled for the CPU computes the same (kernel_sources.lua, RUN_KERNELS), and NVRTC
-- compiles it. judge(func, list, target [, compiled]) raises what is wrong with one of the scheduled functions; gives
-- for each a list of its kernels' resources, by NVRTC for the first `compiled`, all unless said, else estimated. Where
-- constants are packed ahead, the source is held against what is left of the scheduled function. All have the arguments
-- of one seed: the function itself runs once on them.
return function(sources)
  local function agree(func, kernels)
    sources:begin(func)
    for i, kernel in ipairs(kernels) do kernel:export(sources:path(i .. ".cu")) end
    local count, said = sources:agree()
    sources:finish()
    if count ~= #kernels then error(said, 0) end
  end
  return function(func, list, target, compiled)
    local resources, whole = {}, {}
    for i, scheduled in ipairs(list) do
      msched.check_lowered(func, scheduled, target, 1)
      local cut = scheduled:packing()
      local kernel = msched.build(cut and cut.kernel or scheduled, {target = target, load = false})
      if cut then agree(cut.kernel, {kernel}) else whole[#whole + 1] = kernel end
      resources[i] = i <= (compiled or #list) and sources:compile(kernel) or kernel:resources()
    end
    if #whole > 0 then agree(func, whole) end
    return resources
  end
end
