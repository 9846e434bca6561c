/* Addresses of shared memory in CUDA's source, of 32 bits: what is added to them stands in the instruction, which the
 * compiler does not find of pointers. Where a buffer is declared that holds mbarriers, or matrices that warp-group
 * MMAs and TMA copies name, its address becomes a variable, which a shuffle makes known as the same in all lanes: the
 * assembler then keeps what is computed of it in uniform registers, as these instructions take it, and computes it
 * once. What an index names in the canonical layout is a sum, of what its variables move rows and
 * tiles by, so that a loop adds to an address. Source: PTX ISA, "Matrix Descriptor Format"; TIR_PANELS. */
#include "emit_cuda.h"

#include <string.h>

enum { MOST_TERMS = 16, MOST_SIZE = INT32_MAX };

/* A place in bytes: constant + sum of coefficient * atom. */
struct place {
  int64_t constant;
  struct tir_term terms[MOST_TERMS];
  uint32_t count;
};

/* ---- Functions ---- */

const char *emit_cuda_address_function(struct emit_c *e) {
  if (emit_c_needs(e, "ms_shared_address"))
    fputs("MS_PTX(uint32_t, ms_shared_address, (const void *at)) {\n  uint32_t address;\n"
          "  asm(\"{\\n  .reg .u64 x;\\n  cvta.to.shared.u64 x, %1;\\n  cvt.u32.u64 %0, x;\\n}\" : \"=r\"(address) : "
          "\"l\"(at));\n  return address;\n}\n",
          e->helpers);
  return "ms_shared_address";
}

const char *emit_cuda_uniform(struct emit_c *e) {
  if (emit_c_needs(e, "ms_uniform"))
    fprintf(e->helpers,
            "MS_PTX(uint32_t, ms_uniform, (uint32_t x)) { /* that is the same in all lanes */\n"
            "  asm volatile(\"%s %%0, %%0, 0, 31, 0xffffffff;\" : \"+r\"(x));\n  return x;\n}\n",
            emit_cuda_spelling(TIR_UNIFORM));
  return "ms_uniform";
}

/* (value) */
void emit_cuda_warp_uniform(struct emit_c *e, tir_expr call) {
  fprintf(e->out, "(int32_t)%s((uint32_t)(", emit_cuda_uniform(e));
  emit_c_index(e, emit_cuda_operands(e, call)[0]);
  fputs("))", e->out);
}

/* ---- Variables ---- */

/* Mbarriers of the kernel lie there. */
static bool holds_mbarriers(const struct emit_c *e, tir_buffer buffer) {
  for (tir_stmt s = e->kernel; s; s = tir_next(e->ir, s, e->kernel)) {
    struct tir_pointer p;
    if (!tir_is(e->ir, s, TIR_EVALUATE)) continue;
    tir_expr call = tir_as(e->ir, s, TIR_EVALUATE)->evaluate.value;
    if (!tir_is_device_call(e->ir, call, TIR_MBARRIER_INIT)) continue;
    tir_expr at = emit_cuda_operands(e, call)[0];
    if (tir_pointer_of(e->ir, tir_at(e->ir, at), &p) && p.buffer == buffer) return true;
  }
  return false;
}

/* All lanes of a warp come by where the buffer is declared: those that use it do so as one. */
static bool is_uniform(const struct emit_c *e, tir_buffer buffer) {
  struct tir_swizzle s = {0};
  if (e->asked.threads % TIR_WARP) return false;
  return tir_swizzle_of(e->ir, buffer, &s) ? s.panel > 0 : holds_mbarriers(e, buffer);
}

/* Swizzled rows are computed of an address that stands before all loops: these add to it. */
static bool has_variable(const struct emit_c *e, tir_buffer buffer) {
  struct tir_swizzle s = {0};
  if (!e->parallel || tir_buffer_memory(e->ir, buffer) != TIR_BLOCK_MEMORY) return false;
  return is_uniform(e, buffer) || (tir_swizzle_of(e->ir, buffer, &s) && !s.panel);
}

void emit_cuda_declared(struct emit_c *e, tir_buffer buffer) {
  if (!has_variable(e, buffer)) return;
  const char *name = e->buffers[buffer], *address = emit_cuda_address_function(e);
  const char *uniform = is_uniform(e, buffer) ? emit_cuda_uniform(e) : "";
  emit_c_line(e, "const uint32_t ms_at_%s __attribute__((unused)) = %s(%s(%s));", name, uniform, address, name);
}

/* ---- Places in the canonical layout ---- */

/* Adds scale * x. False: it has too many terms, or too large ones. */
static bool gather(const struct tir *ir, tir_expr x, int64_t scale, struct place *out) {
  const struct tir_expr_node *n = tir_at(ir, x);
  if (scale > MOST_SIZE || scale < -MOST_SIZE) return false;
  if (n->kind == TIR_INT_IMM) {
    if (n->imm > MOST_SIZE || n->imm < -MOST_SIZE || out->constant > INT64_MAX / 4) return false;
    out->constant += scale * n->imm;
    return true;
  }
  if (n->kind == TIR_ADD) return gather(ir, n->a, scale, out) && gather(ir, n->b, scale, out);
  if (n->kind == TIR_SUB) return gather(ir, n->a, scale, out) && gather(ir, n->b, -scale, out);
  if (n->kind == TIR_MUL && tir_is_int(ir, n->b) && tir_at(ir, n->b)->imm <= MOST_SIZE && tir_at(ir, n->b)->imm > 0)
    return gather(ir, n->a, scale * tir_at(ir, n->b)->imm, out);
  if (out->count == MOST_TERMS || n->lo < -MOST_SIZE || n->hi > MOST_SIZE) return false;
  out->terms[out->count++] = (struct tir_term){scale, x};
  return true;
}

/* Threads that compute beside a producer warp group: who has other numbers comes by no address that threads decide
 * (tir/lower/gpu/pipeline/producer.c). 0: all compute. */
static int64_t consumers_of(const struct emit_c *e) {
  tir_stmt innermost = e->kernel;
  while (tir_is_bound(e->ir, tir_stmt_at(e->ir, innermost)->first[TIR_BODY]))
    innermost = tir_stmt_at(e->ir, innermost)->first[TIR_BODY];
  for (tir_stmt s = tir_stmt_at(e->ir, innermost)->first[TIR_BODY]; s; s = tir_stmt_at(e->ir, s)->next) {
    if (!tir_is(e->ir, s, TIR_IF)) continue;
    const struct tir_expr_node *test = tir_at(e->ir, tir_as(e->ir, s, TIR_IF)->test.condition);
    if (test->kind == TIR_LT && tir_is_device_call(e->ir, test->a, TIR_UNIFORM) && tir_is_int(e->ir, test->b))
      return tir_at(e->ir, test->b)->imm * TIR_WARP;
  }
  return 0;
}

/* The largest value of an atom: of the last axis of threads, which a producer made longer, among those that compute;
 * of a quotient of it, which says what part of a matrix a warp group has. */
static int64_t most_of(const struct emit_c *e, tir_expr atom) {
  const struct tir_expr_node *n = tir_at(e->ir, atom);
  int64_t before = 1, most = n->hi, computing = consumers_of(e);
  if ((n->kind == TIR_DIV || n->kind == TIR_FLOORDIV) && n->lo >= 0 && tir_is_int(e->ir, n->b)) {
    int64_t of = most_of(e, n->a) / tir_at(e->ir, n->b)->imm;
    return of < most ? of : most;
  }
  if (n->kind != TIR_VAR) return most;
  for (tir_stmt s = e->kernel; s && tir_is_bound(e->ir, s); s = tir_stmt_at(e->ir, s)->first[TIR_BODY]) {
    int64_t extent = tir_loop_extent(e->ir, s);
    if (!tir_is_thread_axis(tir_loop_axis(e->ir, s))) continue;
    bool last = before * extent == e->asked.threads, is = tir_as(e->ir, s, TIR_LOOP)->loop.var == n->ref;
    if (is && last && computing && computing % before == 0) most = computing / before - 1;
    before *= extent;
  }
  return most;
}

/* What the index of an element names in a buffer of the canonical layout, where all rows begin at one of eight, and
 * columns that vary at a tile (tir/lower/gpu/groups.c holds operands of MMAs to that). False: it is not shown. */
static bool find_place(const struct emit_c *e, const struct tir_swizzle *s, int bytes, tir_expr index,
                       struct place *out) {
  int64_t stride = s->row / bytes, panel = s->panel / bytes, group = TIR_PANEL_ROWS * stride;
  *out = (struct place){0};
  if (s->rows % TIR_PANEL_ROWS || !gather(e->ir, index, 1, out) || out->constant < 0) return false;
  int64_t column = out->constant % group, lo = column, hi = column, row = out->constant / group * TIR_PANEL_ROWS;
  bool whole = column % panel == 0, varies = false;
  for (uint32_t i = 0; i < out->count; i++) {
    struct tir_term *t = &out->terms[i];
    const struct tir_expr_node *atom = tir_at(e->ir, t->atom);
    if (t->coefficient % group == 0) {
      t->coefficient = t->coefficient / stride * s->panel;
      continue;
    }
    int64_t a = t->coefficient * atom->lo, b = t->coefficient * most_of(e, t->atom);
    lo += a < b ? a : b, hi += a < b ? b : a, varies = true;
    whole &= t->coefficient % panel == 0;
    t->coefficient *= s->rows * bytes;
  }
  if (lo < 0 || hi >= stride || (varies && !whole)) return false;
  out->constant = (column / panel * s->rows + row) * s->panel + column % panel * bytes;
  return true;
}

/* ---- Text ---- */

static bool is_of_threads(void *data, tir_expr x) {
  const struct emit_c *e = ((void **)data)[0];
  bool *only = ((void **)data)[1];
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (n->kind != TIR_VAR) return true;
  bool found = false;
  for (tir_stmt s = e->kernel; tir_is_bound(e->ir, s); s = tir_stmt_at(e->ir, s)->first[TIR_BODY])
    found |= tir_as(e->ir, s, TIR_LOOP)->loop.var == n->ref;
  *only &= found;
  return true;
}

/* Terms of the kernel's axes alone, or the others and the constant, in units of so many bytes; between: what comes
 * before the first. */
static void write_terms(struct emit_c *e, const struct place *p, bool of_threads, int64_t unit, const char *between) {
  for (uint32_t i = 0; i < p->count; i++) {
    bool only = true;
    tir_walk_expr(e->ir, p->terms[i].atom, is_of_threads, (void *[]){e, &only});
    if (only != of_threads) continue;
    assert(p->terms[i].coefficient % unit == 0);
    fprintf(e->out, "%s%lld * (uint32_t)(", between, (long long)(p->terms[i].coefficient / unit));
    emit_c_index(e, p->terms[i].atom);
    fputc(')', e->out);
    between = " + ";
  }
  if (!of_threads && (p->constant || *between == ','))
    fprintf(e->out, "%s%lld", between, (long long)(p->constant / unit));
}

void emit_cuda_shared_base(struct emit_c *e, tir_buffer buffer) {
  const char *name = e->buffers[buffer];
  if (!name) {
    emit_c_buffer(e, buffer); /* refuses it */
  } else if (has_variable(e, buffer)) {
    fprintf(e->out, "ms_at_%s", name);
  } else {
    fprintf(e->out, "%s(%s)", emit_cuda_address_function(e), name);
  }
}

static bool is_whole(const struct place *p, int64_t unit) {
  bool whole = p->constant % unit == 0;
  for (uint32_t i = 0; i < p->count; i++) whole &= p->terms[i].coefficient % unit == 0;
  return whole;
}

void emit_cuda_shared(struct emit_c *e, tir_expr pointer, int64_t unit) {
  struct tir_swizzle s = {0};
  struct place p;
  char name[32];
  tir_expr offset;
  tir_buffer buffer = emit_c_pointed(e, pointer, &offset);
  if (!buffer) return;
  int bytes = emit_c_stored(tir_buffer_at(e->ir, buffer)->type, 1).bits / 8;
  emit_cuda_shared_base(e, buffer);
  bool panels = tir_swizzle_of(e->ir, buffer, &s) && s.panel;
  if (panels && find_place(e, &s, bytes, offset, &p) && is_whole(&p, unit)) {
    write_terms(e, &p, true, 1, " + ");
    write_terms(e, &p, false, unit, unit > 1 ? ", " : " + ");
    return;
  }
  fprintf(e->out, " + %d * (uint32_t)%s(", bytes, emit_c_swizzle(e, buffer, name));
  emit_c_index(e, offset);
  fputs(unit > 1 ? "), 0" : ")", e->out);
}
