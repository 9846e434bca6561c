/* From a scheduled function to code in memory, by its target's backend. */
#include "backend.h"
#include "jit/c/emit_c.h"
#include "jit/export/symbols.h"
#include "jit/measure/arrange_threads.h"

#include <stdlib.h>
#include <string.h>

/* What is reported of a lowering while it goes on. */
struct telling {
  struct jit_clock *clock;
  struct jit_notes *notes; /* NULL: they are not kept */
};
static void count_pass(void *telling, const char *pass) { jit_clock_pass(((struct telling *)telling)->clock, pass); }

/* A loop that was copied says the same again. */
static void keep_note(void *telling, const char *note) {
  struct jit_notes *notes = ((struct telling *)telling)->notes;
  for (uint32_t i = 0; notes && i < notes->count; i++)
    if (!strcmp(notes->at[i], note)) return;
  if (!notes || notes->count == JIT_MOST_NOTES) return;
  assert(strlen(note) < JIT_NOTE);
  snprintf(notes->at[notes->count++], JIT_NOTE, "%s", note);
}

bool jit_keeps_order(const struct tir *ir, tir_func f) {
  tir_block root = tir_root_block(ir, f);
  tir_expr value = root ? tir_annotation(ir, tir_stmt_at(ir, root)->annotations, JIT_FIXED_ORDER) : TIR_NONE;
  return value && !tir_is_const(ir, value, 0);
}

struct jit_options jit_options_for(const struct tir *ir, tir_func f, const struct jit_options *options) {
  struct jit_options own = options ? *options : (struct jit_options){0};
  own.no_fast_math = own.no_fast_math || jit_keeps_order(ir, f);
  return own;
}

/* A copy of the module with function f lowered for the target. */
static struct tir *lower_copy(const struct tir *ir, tir_func f, const struct jit_target *target,
                              const struct jit_options *options, struct jit_clock *clock, struct jit_notes *notes,
                              ms_error *err) {
  assert(tir_is_func(ir, f) && target);
  struct tir *lowered = tir_new();
  tir_copy(lowered, ir);
  struct tir_lower_options lower = jit_lower_options(target);
  struct telling telling = {clock, notes};
  lower.passed = count_pass;
  lower.noted = keep_note;
  lower.data = &telling;
  lower.in_double = jit_keeps_order(ir, f);
  lower.free_order = !lower.in_double && !(options && options->no_fast_math);
  lower.in_single = lower.device == TIR_CPU && lower.free_order;
  if (options) {
    lower.finite = !options->no_fast_math;
    if (options->no_fast_math) lower.dots &= ~(1u << TIR_DOT_BFLOATS); /* they add in an order of their own */
    lower.stack_bytes = options->stack_bytes;
    lower.verify = options->verify;
    lower.dump_after = options->dump_after;
    lower.dump = options->dump;
  }
  if (tir_lower(lowered, f, &lower, err)) return lowered;
  tir_free(lowered);
  return NULL;
}

/* What it is called in its code, which calls others by their names: its own, where that is nobody's. Nothing that
 * kernels are linked with calls main. */
static void name_code(struct jit_code *code, const char *own) {
  enum { PREFIX = 8 };
  char plain[sizeof code->name - PREFIX];
  emit_c_identifier(own, plain, sizeof plain);
  bool taken = strcmp(plain, "main") != 0 && symbol_owner(plain);
  snprintf(code->name, sizeof code->name, taken ? "kernel_%s" : "%s", plain);
}

bool jit_split(const struct tir *ir, tir_func f, const struct jit_target *target, struct tir_packing *cut,
               ms_error *err) {
  *cut = (struct tir_packing){0};
  return !jit_backend_of(target)->packs || tir_split_packing(ir, f, cut, err);
}

/* Loops as they were before they ran in parallel on the host. */
static void make_serial(struct tir *ir, tir_func f) {
  tir_stmt body = ir->funcs.at[f].body;
  for (tir_stmt s = body; s; s = tir_next(ir, s, body))
    if (tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind == TIR_PARALLEL)
      tir_stmt_at(ir, s)->loop_kind = TIR_SERIAL;
}

static struct tir *lowered_pack(const struct tir_packing *cut, tir_func f, const struct jit_target *target,
                                const struct jit_options *options, ms_error *err) {
  const struct jit_backend *backend = jit_backend_of(target);
  struct tir *lowered = NULL;
  if (!backend->checks) return lower_copy(cut->pack, f, target, options, NULL, NULL, err);
  for (uint32_t attempt = 0; !lowered && attempt < JIT_ARRANGE_ATTEMPTS; attempt++) {
    struct tir *ir = tir_new();
    if (err) ms_clear(err);
    tir_copy(ir, cut->pack);
    make_serial(ir, f);
    if (backend->checks->arrange(ir, f, target, attempt, err))
      lowered = lower_copy(ir, f, target, options, NULL, NULL, err);
    tir_free(ir);
  }
  return lowered;
}

struct tir *jit_lowered_kernel(const struct tir *ir, tir_func f, const struct tir_packing *cut,
                               const struct jit_target *target, const struct jit_options *options, ms_error *err) {
  return lower_copy(cut->count ? cut->kernel : ir, f, target, options, NULL, NULL, err);
}

struct tir *jit_lowered_parts(const struct tir *ir, tir_func f, const struct tir_packing *cut,
                              const struct jit_target *target, const struct jit_options *options,
                              struct jit_clock *clock, struct jit_notes *notes, struct tir **pack, ms_error *err) {
  *pack = NULL;
  struct tir *lowered = lower_copy(cut->count ? cut->kernel : ir, f, target, options, clock, notes, err);
  if (!lowered || !cut->count || (*pack = lowered_pack(cut, f, target, options, err))) return lowered;
  tir_free(lowered);
  return NULL;
}

/* Of a function, or of what is left of it where its constants are packed ahead. */
static bool compile(const struct tir *ir, tir_func f, const struct tir_packing *cut, const struct jit_options *options,
                    struct jit_clock *clock, struct jit_code *code, ms_error *err) {
  char name[JIT_PACK_NAME];
  struct tir *pack, *lowered = jit_lowered_parts(ir, f, cut, &code->target, options, clock, &code->notes, &pack, err);
  if (!lowered) return false;
  code->packing = jit_packing_of(cut, f);
  code->workspace = tir_workspace_of(lowered, f);
  if (pack) code->packing.workspace = tir_workspace_of(pack, f);
  name_code(code, tir_text(lowered, lowered->funcs.at[f].name));
  jit_pack_name(code->name, name);
  const struct jit_beside beside = {pack, f, name};
  bool ok = jit_backend_of(&code->target)->compile(lowered, f, pack ? &beside : NULL, options, clock, code, err);
  tir_free(lowered);
  if (pack) tir_free(pack);
  return ok;
}

struct jit_code *jit_compile(const struct tir *ir, tir_func f, const struct jit_target *target,
                             const struct jit_options *given, ms_error *err) {
  const struct jit_options own = jit_options_for(ir, f, given), *options = &own;
  assert(tir_is_func(ir, f) && target);
  struct jit_clock clock;
  struct tir_packing cut = {0};
  jit_clock_start(&clock);
  if (!options->in_one && !jit_split(ir, f, target, &cut, err)) return NULL;
  struct jit_code *code = calloc(1, sizeof *code);
  if (!code) abort();
  code->target = *target;
  code->no_fast_math = options->no_fast_math;
  bool ok = compile(ir, f, &cut, options, &clock, code, err);
  tir_packing_free(&cut);
  code->clock = clock;
  if (ok) return code;
  free(code->kernels.at);
  free(code);
  return NULL;
}
