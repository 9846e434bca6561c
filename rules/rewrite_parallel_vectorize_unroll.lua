-- Does what parallel_vectorize_unroll noted: fuses and runs in parallel the outer loops of each block below the root,
-- fuses and vectorizes the inner ones, and marks loops to be unrolled.
local common = msched.load "rules.common"

local NOTES = {"meta_schedule.parallel", "meta_schedule.vectorize", "meta_schedule.unroll_explicit", "meta_schedule.unroll_implicit"}

-- Nothing was done with the loop yet: another block below it may have had its turn.
local function is_free(sch, l)
  return sch:loop_iter_kind(l) == "spatial" and sch:loop_kind(l) == "serial" and not sch:annotation(l, "pragma_auto_unroll_max_step")
end

-- How many outer loops are run in parallel: the fewest that give as many jobs as are wanted (a thread takes its share of
-- them at once, so more do no harm); and how many inner ones are vectorized. Both are plain spatial loops, the first not
-- past a loop with several children, the second with unit strides.
local function adjust(sch, block, loops, jobs, max_vector)
  local n, fusible, vectors = #loops, 0, 0
  if jobs then
    local product = 1
    for i = 1, n do
      if not is_free(sch, loops[i]) then break end
      product = product * (sch:extent(loops[i]) or jobs)
      fusible = i
      if product >= jobs or sch:child_count(loops[i]) > 1 then break end
    end
  end
  if max_vector then
    local product = 1
    for i = n, fusible + 1, -1 do
      local l = loops[i]
      if not is_free(sch, l) or sch:child_count(l) > 1 then break end
      product = product * (sch:extent(l) or max_vector + 1)
      if product > max_vector then break end
      if not common.is_contiguous(sch, block, l) and sch:extent(l) ~= 1 then break end
      vectors = vectors + 1
    end
  end
  return fusible, vectors
end

local function slice(list, from, to) return table.move(list, from, to, 1, {}) end

return msched.postproc {
  name = "rewrite_parallel_vectorize_unroll",
  apply = function(sch)
    local root = sch:get_sblock("root")
    local notes = {}
    for _, key in ipairs(NOTES) do
      notes[key] = sch:annotation(root, key)
      if notes[key] ~= nil then sch:unannotate(root, key) end
    end
    for _, block in ipairs {sch:get_child_blocks(root)} do
      local loops = {sch:get_loops(block)}
      if #loops > 0 then
        local fusible, vectors = adjust(sch, block, loops, notes["meta_schedule.parallel"], notes["meta_schedule.vectorize"])
        local outer = loops[1]
        if fusible > 0 then
          outer = sch:fuse(slice(loops, 1, fusible))
          if sch:is_data_parallel(outer) then sch:parallel(outer) end
        end
        if vectors > 0 and #loops - vectors >= fusible then
          local inner = sch:fuse(slice(loops, #loops - vectors + 1, #loops))
          if sch:is_data_parallel(inner) then sch:vectorize(inner) end
        end
        local step = notes["meta_schedule.unroll_explicit"] or notes["meta_schedule.unroll_implicit"]
        if step and step > 0 and (fusible > 0 or vectors < #loops) then
          sch:annotate(outer, "pragma_auto_unroll_max_step", step)
          sch:annotate(outer, "pragma_unroll_explicit", notes["meta_schedule.unroll_explicit"] and 1 or 0)
        end
      end
    end
    return true
  end,
}
