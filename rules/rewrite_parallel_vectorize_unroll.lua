-- Does what parallel_vectorize_unroll noted: fuses and runs in parallel the outer loops of each block below the root,
-- fuses and vectorizes the inner ones, and marks loops of reductions to be unrolled.
local common = msched.load "rules.common"

local PARALLEL, VECTORIZE = "meta_schedule.parallel", "meta_schedule.vectorize"
local EXPLICIT, IMPLICIT = "meta_schedule.unroll_explicit", "meta_schedule.unroll_implicit"

-- What is noted on the root, and is done now.
local function take_notes(sch, root)
  local notes = sch:annotations(root)
  for _, key in ipairs {PARALLEL, VECTORIZE, EXPLICIT, IMPLICIT} do
    if notes[key] ~= nil then sch:unannotate(root, key) end
  end
  return notes
end

-- A plain loop over space of known extent; nothing was done with it yet: another block below it may have had its turn.
local function is_free(sch, l)
  return sch:loop_kind(l) == "serial" and sch:extent(l) and sch:loop_iter_kind(l) == "spatial" and not sch:annotation(l, "pragma_auto_unroll_max_step")
end

-- How many outer loops are run in parallel: the fewest that give more jobs than are wanted (a thread takes its share of
-- them at once, so more do no harm), not past a loop with several children.
local function count_parallel(sch, loops, jobs)
  local count, product = 0, 1
  for i, l in ipairs(loops) do
    if not is_free(sch, l) then break end
    count, product = i, product * sch:extent(l)
    if product > jobs or sch:child_count(l) > 1 then break end
  end
  return product > 1 and count or 0
end

-- Whether every access goes on without a gap when the loop is fused with those inside it: seen[i] is where access i
-- stands after one run of these, once it moves.
local function goes_on(strides, extent, seen, innermost, strided)
  for i, stride in ipairs(strides) do
    if stride ~= 0 then
      local expected = seen[i] or 1
      if stride ~= expected and not (strided and innermost) then return false end
      seen[i] = (stride or 0) * extent
    end
  end
  return true
end

-- How many inner loops are one vector: contiguous in every access, no longer than is wanted. strided: the innermost alone
-- may leave gaps. And whether all loops are contiguous, and together longer: a whole number of such vectors.
local function count_vector(sch, block, loops, most, strided)
  local count, product, seen = 0, 1, {}
  for i = #loops, 1, -1 do
    local l = loops[i]
    if not is_free(sch, l) or sch:child_count(l) > 1 then break end
    local extent = sch:extent(l)
    if not goes_on(sch:strides(block, l), extent, seen, i == #loops, strided) then break end
    product = product * extent
    if product <= most then count = count + 1
    elseif i == 1 then return count, product % most == 0 end
  end
  return product > 1 and count or 0, false
end

local function slice(list, from, to) return table.move(list, from, to, 1, {}) end

-- All loops, as vectors that are shared out among threads.
local function split_all(sch, loops, most)
  local outer, inner = sch:split(sch:fuse(loops), {msched.rest, most})
  if sch:is_data_parallel(outer) then sch:parallel(outer) end
  if sch:is_data_parallel(inner) then sch:vectorize(inner) end
  return outer
end

-- Gives the outermost loop, as it is afterwards.
local function parallelize_and_vectorize(sch, block, loops, notes, strided)
  local jobs, most = notes[PARALLEL], notes[VECTORIZE]
  local vectors, whole = 0, false
  if most then vectors, whole = count_vector(sch, block, loops, most, strided) end
  if whole and jobs then return split_all(sch, loops, most) end
  local parallel = jobs and math.min(count_parallel(sch, loops, jobs), #loops - vectors) or 0
  local outer = loops[1]
  if parallel > 0 then
    outer = sch:fuse(slice(loops, 1, parallel))
    if sch:is_data_parallel(outer) then sch:parallel(outer) end
  end
  if vectors > 0 then
    local inner = sch:fuse(slice(loops, #loops - vectors + 1, #loops))
    if sch:is_data_parallel(inner) then sch:vectorize(inner) end
    if vectors == #loops then outer = inner end
  end
  return outer
end

return msched.postproc {
  name = "rewrite_parallel_vectorize_unroll",
  apply = function(sch, _, self)
    local root = sch:get_sblock("root")
    local notes = take_notes(sch, root)
    local step = notes[EXPLICIT] or notes[IMPLICIT] or 0
    if not notes[PARALLEL] and not notes[VECTORIZE] and step == 0 then return end
    for _, block in ipairs {sch:get_child_blocks(root)} do
      local loops = {sch:get_loops(block)}
      if #loops > 0 then
        local outer = parallelize_and_vectorize(sch, block, loops, notes, self.parameters.strided_vectors)
        if step > 0 and not common.is_spatial(sch, block) then
          sch:annotate(outer, "pragma_auto_unroll_max_step", step)
          sch:annotate(outer, "pragma_unroll_explicit", notes[EXPLICIT] and 1 or 0)
        end
      end
    end
  end,
}
