/* Queries that tell rules how blocks stand to one another and to the loops around them. */
#include "query.h"

#include "tir/analysis/analysis.h"

#include <assert.h>
#include <string.h>

bool vm_ask_scope(struct vm_ask *q) {
  tir_block scope = tir_scope_of(q->ir, q->args[0].statement);
  const char *name = scope ? tir_block_name(q->ir, scope) : "";
  q->answer = vm_string(q->pool, name, strlen(name));
  return true;
}

bool vm_ask_shared_loops(struct vm_ask *q) {
  tir_stmt both = tir_lowest_common_ancestor(q->ir, q->args[0].statement, q->args[1].statement);
  bool in_loop = both && tir_is(q->ir, both, TIR_LOOP);
  q->answer = vm_int(in_loop ? tir_loops_of(q->ir, both, NULL, 0) + 1 : 0);
  return true;
}

/* The dimension that a written region has at this iteration variable, or -1: the only one that is at it plainly. */
static int written_at(const struct tir *ir, const struct tir_region *write, tir_expr var) {
  uint32_t rank = tir_buffer_at(ir, write->buffer)->rank;
  for (uint32_t d = 0; d < rank; d++)
    if (tir_operands(ir, write->ranges)[2 * d] == var) return (int)d;
  return -1;
}

static bool writes_plain_variables(const struct tir *ir, const struct tir_region *write) {
  uint32_t rank = tir_buffer_at(ir, write->buffer)->rank;
  for (uint32_t d = 0; d < rank; d++)
    if (tir_at(ir, tir_operands(ir, write->ranges)[2 * d])->kind != TIR_VAR) return false;
  return true;
}

/* Each dimension read is at a constant, or at a variable of the write plus one; those come in rising order. */
static bool reads_in_order(struct tir *ir, const struct tir_region *read, const struct tir_region *write) {
  int last = -1;
  for (uint32_t d = 0; d < tir_buffer_at(ir, read->buffer)->rank; d++) {
    tir_expr min = tir_operands(ir, read->ranges)[2 * d];
    if (tir_is_int(ir, min)) continue;
    struct tir_linear l = tir_linear_of(ir, min);
    if (l.count != 1 || tir_terms(ir, l)[0].coefficient != 1) return false;
    int at = written_at(ir, write, tir_terms(ir, l)[0].atom);
    if (at <= last) return false;
    last = at;
  }
  return true;
}

bool vm_ask_reads_in_order(struct vm_ask *q) {
  struct tir_span reads = tir_block_at(q->ir, q->args[0].statement)->reads;
  struct tir_span writes = tir_block_at(q->ir, q->args[0].statement)->writes;
  bool ordered = writes.count == 1;
  struct tir_region write = ordered ? q->ir->regions.at[writes.first] : (struct tir_region){0};
  ordered = ordered && writes_plain_variables(q->ir, &write);
  for (uint32_t i = 0; ordered && i < reads.count; i++) {
    struct tir_region read = q->ir->regions.at[reads.first + i];
    ordered = reads_in_order(q->ir, &read, &write);
  }
  q->answer = vm_bool(ordered);
  return true;
}
