/* Nontemporal stores: a result that is larger than the caches is written around them, in whole vectors, so that its
 * lines are not read first. A block asks for it by the annotation msched.nontemporal = 1, of the parameters it writes;
 * 2 asks for a delay besides (loop/delay.c).
 *
 * "note_results" comes while there are blocks: the parameters' numbers become an attribute of the function, of the same
 * name. "nontemporal" comes last but one. Requires: flat buffers, vector expressions. Gives: around stores of whole
 * vectors to these parameters the attribute TIR_NONTEMPORAL with the bytes that their addresses are multiples of, if
 * the buffer is aligned to TIR_NONTEMPORAL_ALIGNMENT. Callers do not promise that: a nest with such stores is there
 * twice, under a test of the addresses. Stores that are masked, of single elements, or of which no alignment is proved
 * stay as they are. Both keep what is computed. */
#include "tir/lower/lower.h"
#include "tir/node/arena.h"

#include <stdlib.h>

enum { LEAST_ALIGNMENT = 16, MOST_STATEMENTS = 1500 };

/* ---- What blocks ask for ---- */

static bool reads_note(struct lowering *low, tir_block block, bool *asks) {
  struct tir *ir = low->ir;
  tir_expr value = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, TIR_NONTEMPORAL);
  *asks = value && (tir_is_const(ir, value, 1) || tir_is_const(ir, value, 2));
  if (!value || *asks || tir_is_const(ir, value, 0)) return true;
  char *text = tir_print_expr(ir, value);
  ms_fail(low->err, MS_LOWER_NONTEMPORAL, TIR_NONTEMPORAL " must be 0, 1 or 2, not %s (annotation of block %s)",
          text ? text : "this", tir_block_name(ir, block));
  free(text);
  return false;
}

bool lower_note_results(struct lowering *low) {
  struct tir *ir = low->ir;
  struct tir_span params = ir->funcs.at[low->func].params;
  tir_expr *numbers = malloc((params.count + 1) * sizeof *numbers);
  if (!numbers) abort();
  uint32_t count = 0;
  bool asks = false, good = true;
  for (tir_stmt s = low->body; s && good; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    good = reads_note(low, s, &asks);
    for (uint32_t i = 0; asks && i < params.count; i++) {
      tir_buffer buffer = ir->params.at[params.first + i].buffer;
      tir_expr number = tir_int(ir, TIR_T_I32, i);
      for (uint32_t k = 0; k < count; k++) buffer = numbers[k] == number ? TIR_NONE : buffer;
      if (buffer && tir_has_region_of(ir, tir_block_at(ir, s)->writes, buffer)) numbers[count++] = number;
    }
  }
  if (count) {
    tir_expr list = tir_list_value(ir, numbers, count);
    tir_annotate_span(ir, &ir->funcs.at[low->func].attrs, tir_symbol_of(ir, TIR_NONTEMPORAL), list);
  }
  free(numbers);
  return good;
}

/* ---- Stores ---- */

/* The largest power of two, of at most `most`, that divides all values of the expression times `bytes`. */
static int64_t alignment_of(struct tir *ir, tir_expr e, int64_t bytes, int64_t most) {
  int64_t modulus, remainder, power = most;
  tir_modular(ir, e, &modulus, &remainder);
  while (power > 1 && (modulus * bytes % power != 0 || remainder * bytes % power != 0)) power /= 2;
  return power;
}

/* What the addresses of a store are multiples of, if its buffer is aligned; 0: it is no store of whole vectors. */
static int64_t store_alignment(struct tir *ir, tir_stmt store) {
  struct tir_stmt_node s = *tir_as(ir, store, TIR_STORE);
  tir_type type = tir_buffer_at(ir, s.store.buffer)->type;
  const struct tir_expr_node *index = tir_at(ir, ir->operands.at[s.store.indices]);
  int lanes = tir_type_lanes(index->type), bits = tir_type_bits(type);
  if (index->kind != TIR_RAMP || !tir_is_const(ir, index->b, 1) || s.store.predicate) return 0;
  if (tir_type_code(type) == TIR_BOOL || tir_type_lanes(type) != 1 || bits % 8 != 0) return 0;
  int64_t bytes = (int64_t)lanes * bits / 8;
  if (bytes % LEAST_ALIGNMENT != 0) return 0;
  int64_t least = alignment_of(ir, index->a, bits / 8, TIR_NONTEMPORAL_ALIGNMENT);
  while (bytes % least != 0) least /= 2;
  return least >= LEAST_ALIGNMENT ? least : 0;
}

struct streams {
  struct tir *ir;
  uint8_t *asked; /* by buffer */
  tir_stmt body;
};

static bool is_asked(const struct streams *st, tir_stmt s) {
  struct tir *ir = st->ir;
  return tir_is(ir, s, TIR_STORE) && st->asked[tir_stmt_at(ir, s)->store.buffer] && store_alignment(ir, s) &&
         !tir_nontemporal_alignment(ir, tir_stmt_at(ir, s)->parent);
}

/* The nest that is there twice: from the innermost loop around the store, the loops that hold nothing else. */
static tir_stmt site_of(const struct streams *st, tir_stmt store) {
  const struct tir *ir = st->ir;
  tir_stmt site = store;
  for (tir_stmt s = store; s != st->body && !tir_is(ir, site, TIR_LOOP); s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP)) site = s;
  for (;;) {
    tir_stmt parent = tir_stmt_at(ir, site)->parent;
    if (parent == st->body || !tir_is(ir, parent, TIR_LOOP) || tir_stmt_at(ir, site)->prev ||
        tir_stmt_at(ir, site)->next)
      return site;
    site = parent;
  }
}

static tir_expr is_aligned(struct tir *ir, tir_buffer buffer) {
  tir_expr args[] = {tir_data(ir, buffer), tir_int(ir, TIR_T_I32, TIR_NONTEMPORAL_ALIGNMENT)};
  return tir_call(ir, TIR_T_BOOL, tir_symbol_of(ir, TIR_IS_ALIGNED), args, 2);
}

/* Puts the attribute around a store. */
static void mark(struct tir *ir, tir_stmt store) {
  tir_expr bytes = tir_int(ir, TIR_T_I32, store_alignment(ir, store));
  lower_wrap_in_attr(ir, store, TIR_NONTEMPORAL, bytes);
}

/* Marks the stores of a site, and gives what is to hold of their buffers. */
static tir_expr mark_all(const struct streams *st, tir_stmt site) {
  struct tir *ir = st->ir;
  tir_expr condition = TIR_NONE;
  for (tir_stmt s = site, next; s; s = next) {
    next = tir_next(ir, s, site);
    if (!is_asked(st, s)) continue;
    condition = tir_and(ir, condition, is_aligned(ir, tir_stmt_at(ir, s)->store.buffer));
    mark(ir, s);
  }
  return condition;
}

/* Makes two of a site: one whose stores are marked, where their buffers are aligned, and one as it was. */
static void split(const struct streams *st, tir_stmt site) {
  struct tir *ir = st->ir;
  tir_subst_as_is(ir); /* what machines have no operation for does not come back */
  tir_stmt test = tir_new_stmt(ir, TIR_IF), other = tir_clone_stmt(ir, site);
  tir_wrap(ir, site, test);
  tir_append(ir, test, TIR_ELSE, other);
  tir_expr condition = mark_all(st, site);
  assert(condition);
  tir_stmt_at(ir, test)->test.condition = condition;
}

/* Of sites in one another the outermost, as long as the function does not grow too large. */
static void split_all(const struct streams *st) {
  struct tir *ir = st->ir;
  uint8_t *is_site = calloc(ir->stmts.count, 1);
  if (!is_site) abort();
  for (tir_stmt s = st->body; s; s = tir_next(ir, s, st->body))
    if (is_asked(st, s)) is_site[site_of(st, s)] = 1;
  uint32_t size = lower_size(ir, st->body);
  for (tir_stmt s = st->body, next; s; s = next) {
    next = tir_next(ir, s, st->body);
    if (!is_site[s]) continue;
    next = tir_after(ir, s, st->body);
    size += lower_size(ir, s);
    if (size <= MOST_STATEMENTS) split(st, s);
  }
  free(is_site);
}

bool lower_nontemporal(struct lowering *low) {
  struct tir *ir = low->ir;
  struct tir_span *attrs = &ir->funcs.at[low->func].attrs, params = ir->funcs.at[low->func].params;
  tir_expr list = tir_annotation(ir, *attrs, TIR_NONTEMPORAL);
  if (!list) return true;
  struct streams st = {ir, calloc(ir->buffers.count, 1), low->body};
  if (!st.asked) abort();
  for (uint32_t i = 0; i < tir_at(ir, list)->count; i++) {
    int64_t number = tir_at(ir, tir_operands(ir, tir_at(ir, list)->operands)[i])->imm;
    if (number >= 0 && number < params.count) st.asked[ir->params.at[params.first + number].buffer] = 1;
  }
  tir_annotate_span(ir, attrs, tir_symbol_of(ir, TIR_NONTEMPORAL), TIR_NONE);
  split_all(&st);
  free(st.asked);
  return true;
}

int tir_nontemporal_alignment(const struct tir *ir, tir_stmt s) {
  if (!lower_is_attr(ir, s, TIR_NONTEMPORAL)) return 0;
  tir_expr value = tir_stmt_at(ir, s)->attr.value;
  return tir_is_int(ir, value) ? (int)tir_at(ir, value)->imm : 0;
}
