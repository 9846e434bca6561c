-- Refuses a candidate whose asynchronous copies leave gaps: engines that copy on their own move whole runs of memory.
-- A copy is a block in a stage of a software pipeline that is noted as asynchronous.
local STAGES, ASYNC = "software_pipeline_stage", "software_pipeline_async_stages"

local function contains(list, value)
  for _, x in ipairs(list) do if x == value then return true end end
  return false
end

-- The loops inside the pipelined one move through every access without a gap, from the innermost.
local function is_dense(sch, block, loops, pipelined)
  local seen = {}
  for i = #loops, pipelined + 1, -1 do
    local extent = sch:extent(loops[i])
    if extent ~= 1 then
      for k, stride in ipairs(sch:strides(block, loops[i])) do
        if not extent or stride ~= (seen[k] or 1) then return false end
        seen[k] = stride * extent
      end
    end
  end
  return true
end

-- Which stage of the pipeline the block is in: blocks under its loop are those of its stages in order.
local function asynchronous(sch, block, loop)
  local stages, asynchronous_stages = sch:annotation(loop, STAGES), sch:annotation(loop, ASYNC)
  for i, child in ipairs {sch:get_child_blocks(loop)} do
    if sch:block_name(child) == sch:block_name(block) then
      return stages[i] ~= nil and contains(asynchronous_stages, stages[i])
    end
  end
end

return msched.postproc {
  name = "disallow_async_strided_copy",
  apply = function(sch)
    for _, name in ipairs(sch:blocks_under(ASYNC)) do
      local block = sch:get_sblock(name)
      local loops = {sch:get_loops(block)}
      for i, l in ipairs(loops) do
        if sch:annotation(l, ASYNC) and asynchronous(sch, block, l) and not is_dense(sch, block, loops, i) then
          return false
        end
      end
    end
    return true
  end,
}
