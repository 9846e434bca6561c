/* What several files of this folder ask of a pipeline: what its loop is annotated with, the kernel around it, the
 * number of an iteration, what a part copies. */
#include "pipeline.h"

bool pipeline_refuse(const struct pipeline *p, const char *what) {
  return tir_refuse(p->low->ir, p->low->err, MS_LOWER_PIPELINE, p->loop, "%s", what);
}

int64_t pipeline_requests(const struct tir *ir, tir_stmt stage) {
  assert(lower_is_stage(ir, stage));
  return tir_at(ir, tir_as(ir, stage, TIR_ATTR)->attr.value)->imm;
}

tir_stmt pipeline_kernel(const struct pipeline *p) {
  tir_stmt kernel = p->loop;
  for (tir_stmt s = p->loop; s != p->low->body; s = tir_stmt_at(p->low->ir, s)->parent) kernel = s;
  return kernel;
}

tir_expr pipeline_number(struct pipeline *p, tir_expr iteration) {
  struct tir *ir = p->low->ir;
  return p->turn ? tir_add(ir, tir_mul(ir, tir_var_expr(ir, p->turn), p->extent), iteration) : iteration;
}

/* Another statement needs what the part copies to the buffer, and none that copies besides has to do with it. */
bool pipeline_is_for_others(const struct pipeline *p, uint32_t part, tir_buffer buffer) {
  bool needed = false;
  assert(part < p->plan.count && p->own[buffer]);
  for (uint32_t i = 0; i < p->plan.count; i++) {
    if (i == part || !uses_of(p, i, buffer)) continue;
    if (p->plan.statements[i].async && (uses_of(p, i, buffer) & PIPELINE_WRITES)) return false;
    needed = true;
  }
  return needed && uses_of(p, part, buffer) == (PIPELINE_WRITES | PIPELINE_BY_INDEX);
}
