-- Does what parallel_vectorize_unroll noted: fuses and runs in parallel the outer loops of each block below the root,
-- fuses and vectorizes the inner ones, and marks loops of reductions to be unrolled. Longer ones than a vector are left
-- to LLVM, unless it has no vectors of what is computed there that are as good as ours, or finds none, as of halves of
-- rows that change places.
-- Parameters:
--   strided_vectors   whether vectors may leave gaps
--   vector_calls      functions that code in vectors computes by instructions which LLVM does not find
--   vector_divisions  whether divisions of floats are so computed
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

-- Fuses loops that are next to one another; nil: one loop cannot have as many iterations as they have.
local function fuse(sch, loops, from, to)
  if from == to then return loops[from] end
  local done, fused = sch:try("fuse", table.move(loops, from, to, 1, {}))
  return done and fused or nil
end

-- All loops, as vectors that are shared out among threads. nil: they are not one.
local function split_all(sch, loops, most)
  local all = fuse(sch, loops, 1, #loops)
  if not all then return nil end
  local outer, inner = sch:split(all, {msched.rest, most})
  sch:try("parallel", outer)
  sch:try("vectorize", inner)
  return outer
end

-- Whether a long loop pays to be divided into vectors: lines that go around the caches are stored whole.
local function wants_vectors(sch, block, divisions, ...)
  if not sch:is_spatial(block) then return false end
  if (sch:annotation(block, "msched.nontemporal") or 0) > 0 then return true end
  if divisions and sch:divides_floats(block) then return true end
  for _, op in ipairs {...} do if sch:has_call(block, op) then return true end end
  return false
end

-- A thread takes its share of the parallel iterations at once, so more than are wanted do no harm; vectors go first.
-- Gives the outermost loop, as it is afterwards; nil: there is none.
local parallelize_and_vectorize = msched.memoized(function(sch, block, jobs, most, strided, divisions, ...)
  local loops = {sch:get_loops(block)}
  if #loops == 0 then return nil end
  local found = sch:data_parallel_loops(block, jobs or 0, most or 0, strided and 1 or 0)
  local all = found.whole and jobs and jobs > 0 and split_all(sch, loops, most)
  if all then return all end
  local vectors = found.vector
  local parallel = math.min(found.parallel, #loops - vectors)
  local divided = found.divides and vectors == 0 and (found.pieces or wants_vectors(sch, block, divisions, ...))
  local outer, inner, lanes = loops[1], nil, nil
  if parallel > 0 then
    parallel = parallel + 1
    repeat
      parallel = parallel - 1
      outer = fuse(sch, loops, 1, parallel)
    until outer
    if divided and parallel == #loops then outer, lanes = sch:split(outer, {msched.rest, most}) end
    sch:try("parallel", outer)
  end
  if divided and not lanes then lanes = select(2, sch:split(loops[#loops], {msched.rest, most})) end
  if lanes then sch:try("vectorize", lanes) end
  if vectors > 0 then
    repeat
      inner = fuse(sch, loops, #loops - vectors + 1, #loops)
      vectors = vectors - 1
    until inner
    sch:try("vectorize", inner)
    if vectors + 1 == #loops then outer = inner end
  end
  return outer
end)

return msched.postproc {
  name = "rewrite_parallel_vectorize_unroll",
  apply = function(sch, _, self)
    local name = sch:root_block()
    if not name then return end -- loops and statements alone: nothing was noted
    local root = sch:get_sblock(name)
    local notes, p = take_notes(sch, root), self.parameters
    local step = notes[EXPLICIT] or notes[IMPLICIT] or 0
    if not notes[PARALLEL] and not notes[VECTORIZE] and step == 0 then return end
    for _, block in ipairs {sch:get_child_blocks(root)} do
      local outer =
        parallelize_and_vectorize(sch, block, notes[PARALLEL], notes[VECTORIZE], p.strided_vectors,
                                  p.vector_divisions, table.unpack(p.vector_calls or {}))
      if outer and step > 0 and not sch:is_spatial(block) then
        sch:annotate(outer, "pragma_auto_unroll_max_step", step)
        sch:annotate(outer, "pragma_unroll_explicit", notes[EXPLICIT] and 1 or 0)
      end
    end
  end,
}
