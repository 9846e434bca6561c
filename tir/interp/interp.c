/* The reference interpreter: a run from arguments to results. */
#include "interp.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t DEFAULT_MEMORY = 4ull << 30;

/* ---- Arguments ---- */

static const struct tir_param *params_of(const struct tir *ir, tir_func f) {
  return ir->params.at + ir->funcs.at[f].params.first;
}

/* Binds the variable that an extent is, or is a multiple of (a lowered function has (n * 64,) for (n, 64)), if it has
 * no value. */
static void bind_extent(const struct tir *ir, tir_expr e, int64_t extent, union value *values, bool *set) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_CAST) {
    bind_extent(ir, n->a, extent, values, set);
  } else if (n->kind == TIR_MUL && (tir_is_int(ir, n->a) || tir_is_int(ir, n->b))) {
    tir_expr factor = tir_is_int(ir, n->a) ? n->a : n->b;
    if (tir_at(ir, factor)->imm > 0 && extent % tir_at(ir, factor)->imm == 0)
      bind_extent(ir, factor == n->a ? n->b : n->a, extent / tir_at(ir, factor)->imm, values, set);
  } else if (n->kind == TIR_VAR && !set[n->ref]) {
    values[n->ref].i = extent;
    set[n->ref] = true;
  }
}

/* Binds the variables of a buffer's shape: from the shape that the argument states, or the only one from its size. */
static void bind_shape(const struct tir *ir, tir_buffer buffer, const struct tir_arg *arg, union value *values,
                       bool *set) {
  assert(tir_is_buffer(ir, buffer));
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  const tir_expr *shape = tir_operands(ir, b->shape);
  int64_t known = interp_format_size(interp_format(tir_type_with_lanes(b->type, 1))) * tir_type_lanes(b->type);
  tir_expr missing = TIR_NONE;
  for (uint32_t d = 0; d < b->rank; d++) {
    const struct tir_expr_node *n = tir_at(ir, shape[d]);
    bool has_value = n->kind == TIR_VAR && set[n->ref];
    if (arg->shape)
      bind_extent(ir, shape[d], arg->shape[d], values, set);
    else if (n->kind == TIR_INT_IMM || has_value) {
      if (__builtin_mul_overflow(known, has_value ? values[n->ref].i : n->imm, &known)) return;
    } else if (missing)
      return;
    else
      missing = shape[d];
  }
  if (missing && known > 0) bind_extent(ir, missing, (int64_t)arg->bytes / known, values, set);
}

static bool bind_arguments(const struct tir *ir, tir_func f, const struct tir_arg *args, uint32_t count,
                           union value *values, bool *set, ms_error *err) {
  const struct tir_func_node *func = &ir->funcs.at[f];
  if (count != func->params.count)
    return ms_fail(err, MS_RUN_ARGUMENT, "function %s takes %u arguments, not %u", tir_text(ir, func->name),
                   func->params.count, count);
  for (uint32_t i = 0; i < count; i++) {
    const struct tir_param *p = &params_of(ir, f)[i];
    if (p->buffer) continue;
    tir_type t = ir->vars.at[p->var].type;
    if (tir_type_is_float(t))
      values[p->var].f = interp_round_to(t, args[i].real);
    else
      values[p->var].i = interp_wrap(t, args[i].scalar);
    set[p->var] = true;
  }
  for (uint32_t i = 0; i < count; i++)
    if (params_of(ir, f)[i].buffer) bind_shape(ir, params_of(ir, f)[i].buffer, &args[i], values, set);
  return true;
}

/* ---- A run ---- */

static double epsilon_of(const struct program *p) {
  if (interp_rounded & ROUNDED_E5M2) return 0x1p-2;
  if (interp_rounded & ROUNDED_E4M3) return 0x1p-3;
  if (interp_rounded & ROUNDED_BF16) return 0x1p-7;
  if (interp_rounded & ROUNDED_F16) return 0x1p-10;
  if (!fetestexcept(FE_INEXACT)) return 0;
  return p->has_float32 ? 0x1p-23 : 0x1p-52;
}

/* What is never written the caller gives, though nothing of this run has read it. */
static bool is_given(const struct object *o) {
  return o->read_first || (o->tolerant && o->bytes && !memchr(o->shadow, o->generation, o->bytes));
}

static void fill_report(const struct machine *m, uint32_t count) {
  struct tir_run_report *report = m->options ? m->options->report : NULL;
  if (!report) return;
  *report = (struct tir_run_report){.steps = m->steps, .epsilon = epsilon_of(m->program)};
  for (uint32_t i = 0; i < count && i < 64; i++)
    if (m->param_objects[i] != UINT32_MAX && is_given(m->objects.at[m->param_objects[i]]))
      report->read_first |= 1ull << i;
}

/* Copies of what was never written were overwritten before the end, in all arguments. */
static bool check_spoiled(struct machine *m) {
  for (uint32_t i = 0; i < m->objects.count; i++) {
    const struct object *o = m->objects.at[i];
    const uint8_t *at = o->spoiled_at ? memchr(o->shadow, SPOILED, o->bytes) : NULL;
    if (!at) continue;
    m->host.pc = o->spoiled_at - 1;
    return interp_fail(m, &m->host, MS_RUN_UNWRITTEN, "element %zu of %s is left a copy of what was never written",
                       (size_t)(at - o->shadow) / o->size, tir_buffer_name(m->ir, o->spoiled));
  }
  return true;
}

static bool execute(struct machine *m, uint32_t count) {
  const struct program *p = m->program;
  fenv_t environment;
  m->shared = calloc(((size_t)p->slots.count + 1) * TIR_CLUSTER_MOST, sizeof *m->shared);
  m->param_objects = malloc((count + 1) * sizeof *m->param_objects);
  if (!m->shared || !m->param_objects) abort();
  memset(m->param_objects, 0xFF, (count + 1) * sizeof *m->param_objects);
  feholdexcept(&environment);
  fesetenv(FE_DFL_ENV); /* however the host rounds */
  interp_rounded = 0;
  bool ok = interp_thread_init(m, &m->host, NULL) && interp_execute(m, &m->host) == THREAD_DONE && check_spoiled(m);
  fill_report(m, count);
  fesetenv(&environment);
  interp_thread_free(m, &m->host);
  interp_objects_free(m, 0);
  free(m->objects.at);
  free(m->missing.at);
  free(m->mbarriers.at);
  free(m->boxed.at);
  free(m->distant.at);
  free(m->clocks.at);
  free(m->readers.at);
  free(m->shared);
  free(m->param_objects);
  return ok;
}

bool tir_run(const struct tir *ir, tir_func f, const struct tir_arg *args, uint32_t count,
             const struct tir_run_options *options, ms_error *err) {
  assert(tir_is_func(ir, f));
  union value *values = calloc(ir->vars.count + 1, sizeof *values);
  bool *set = calloc(ir->vars.count + 1, sizeof *set);
  if (!values || !set) abort();
  struct program program = {0};
  bool ok = bind_arguments(ir, f, args, count, values, set, err) &&
            interp_compile(ir, f, options, values, set, &program, err);
  free(values);
  free(set);
  if (ok) {
    struct machine m = {.ir = ir, .program = &program, .options = options, .args = args, .err = err};
    m.memory_limit = options && options->most_memory ? options->most_memory : DEFAULT_MEMORY;
    m.step_limit = options && options->most_steps ? options->most_steps : INT64_MAX;
    ok = execute(&m, count);
  }
  interp_program_free(&program);
  return ok;
}
