/* Intrinsics that multiply: what their descriptions say of the product. */
#include "vm/query/query.h"
#include "vm/run.h"

#include <assert.h>
#include <string.h>

/* An element of the result adds products of two elements, which may be converted first. */
static bool adds_product(const struct tir *ir, tir_block block) {
  tir_stmt store = tir_stmt_at(ir, block)->first[TIR_BODY];
  if (!store || !tir_is(ir, store, TIR_STORE)) return false;
  const struct tir_expr_node *sum = tir_at(ir, tir_stmt_at(ir, store)->store.value);
  return sum->kind == TIR_ADD && (tir_at(ir, sum->a)->kind == TIR_MUL || tir_at(ir, sum->b)->kind == TIR_MUL);
}

/* The type of the elements that a block reads from other buffers than the one that it writes: the first one's, where
 * both are as long. */
static bool inputs_of(const struct tir *ir, tir_block block, tir_type *type) {
  struct tir_span reads = tir_regions(ir, block, false), writes = tir_regions(ir, block, true);
  uint32_t count = 0;
  for (uint32_t i = 0; i < reads.count && writes.count == 1; i++) {
    tir_buffer buffer = ir->regions.at[reads.first + i].buffer;
    if (buffer == ir->regions.at[writes.first].buffer) continue;
    tir_type own = tir_buffer_at(ir, buffer)->type;
    if (count && tir_type_bits(own) != tir_type_bits(*type)) return false;
    if (!count++) *type = own;
  }
  return count == 2;
}

static bool describes_product(const struct tir *ir, struct vm_product *out) {
  int64_t *extents[] = {&out->m, &out->n, &out->k};
  static const char *const kinds[] = {"spatial", "spatial", "reduce"};
  tir_stmt s = tir_stmt_at(ir, tir_root_block(ir, 1))->first[TIR_BODY];
  for (int i = 0; i < 3; i++, s = tir_stmt_at(ir, s)->first[TIR_BODY]) {
    if (!s || !tir_is(ir, s, TIR_LOOP) || strcmp(vm_loop_iter_kind(ir, s), kinds[i]) != 0) return false;
    *extents[i] = tir_loop_extent(ir, s);
  }
  return s && tir_is(ir, s, TIR_BLOCK) && adds_product(ir, s) && inputs_of(ir, s, &out->inputs);
}

bool vm_find_product(const struct vm_plan *plan, const char *name, struct vm_product *out) {
  const struct tir *description, *implementation;
  assert(plan && name && out);
  return vm_find_known_intrinsic(plan->intrinsics, name, &description, &implementation) &&
         describes_product(description, out);
}
