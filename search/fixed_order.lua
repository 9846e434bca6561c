-- The postprocessor of --fixed-order: refuses a candidate in which a reduction of floats is done in another order than
-- in the function, and notes on the others that their code is to round as the interpreter does (jit.h,
-- JIT_FIXED_ORDER). What is computed is then, bit for bit, what the unscheduled function computes.
local fixed_order = {kind = "postproc", name = "fixed_order", note = "msched.fixed_order"}

function fixed_order.apply(sch)
  sch:check_reduction_order()
  local root = sch:root_block()
  if root and not sch:annotation(sch:get_sblock(root), fixed_order.note) then
    sch:annotate(sch:get_sblock(root), fixed_order.note, 1)
  end
end

-- Whether a record's trace has the note.
function fixed_order.has_note(record) return record.trace:find(fixed_order.note, 1, true) ~= nil end

return fixed_order
