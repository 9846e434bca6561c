/* Calls of compiled code in this process: arguments and workspace, running, timing. */
#include "machine.h"
#include "measure.h"
#include "timing.h"
#include "trap.h"

#include <stdlib.h>
#include <string.h>

struct jit_call {
  jit_entry entry;
  void **args, *workspace;
  uint64_t *scalars;
};

void jit_arguments(const struct tir *ir, tir_func f, const struct tir_arg *args, void **pointers, uint64_t *scalars) {
  assert(tir_is_func(ir, f) && pointers && scalars);
  struct tir_span params = ir->funcs.at[f].params;
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &ir->params.at[params.first + i];
    tir_type type = p->buffer ? TIR_T_VOID : ir->vars.at[p->var].type;
    pointers[i] = args[i].data ? args[i].data : &scalars[i];
    scalars[i] = (uint64_t)args[i].scalar; /* little-endian: narrower integers are read from the low bytes */
    if (!p->buffer && tir_type_is_float(type)) tir_put_element(type, &scalars[i], args[i].real);
  }
}

bool jit_passed(int32_t status, ms_error *err) {
  return !status || ms_fail(err, MS_ASSERTION, "an assertion of the function failed (status %d)", (int)status);
}

struct jit_call *jit_call_new(const struct jit_kernel *kernel, const struct tir *ir, tir_func f,
                              const struct tir_arg *args, ms_error *err) {
  assert(kernel && tir_is_func(ir, f));
  size_t bytes = jit_kernel_workspace(kernel), count = ir->funcs.at[f].params.count + (size_t)1;
  struct jit_call *call = calloc(1, sizeof *call);
  if (!call) abort();
  *call = (struct jit_call){.entry = jit_kernel_entry(kernel),
                            .args = calloc(count, sizeof *call->args),
                            .scalars = calloc(count, sizeof *call->scalars),
                            .workspace = bytes ? aligned_alloc(64, (bytes + 63) & ~(size_t)63) : NULL};
  if (!call->args || !call->scalars) abort();
  if (bytes && !call->workspace) {
    ms_fail(err, MS_TOO_LARGE, "a workspace of %zu bytes cannot be had", bytes);
    jit_call_free(call);
    return NULL;
  }
  jit_arguments(ir, f, args, call->args, call->scalars);
  trap_install();
  return call;
}

void jit_call_free(struct jit_call *call) {
  if (!call) return;
  free(call->args);
  free(call->scalars);
  free(call->workspace);
  free(call);
}

bool jit_call_run(const struct jit_call *call, ms_error *err) {
  int32_t status = 0;
  return trap_call(call->entry, call->args, call->workspace, &status, err) && jit_passed(status, err);
}

bool jit_call_time(const struct jit_call *call, double tolerance, double limit, struct jit_timing *out, ms_error *err) {
  assert(tolerance > 0 && limit > 0);
  if (!jit_call_run(call, err)) return false; /* warms caches and pages */
  double before = measure_now();
  call->entry(call->args, call->workspace);
  struct timing_plan plan = {.tolerance = tolerance, .limit = limit, .once = measure_now() - before, .again = 2};
  return timing_measure(call->entry, call->args, call->workspace, &plan, out) ||
         ms_fail(err, MS_TOO_LARGE, "memory for timing cannot be had");
}

bool jit_run(const struct tir *ir, tir_func f, const struct jit_target *target, const struct jit_options *options,
             const struct tir_arg *args, ms_error *err) {
  assert(target && args);
  struct jit_code *code = jit_compile(ir, f, target, options, err);
  struct jit_kernel *kernel = code ? jit_load(code, err) : NULL;
  struct jit_call *call = kernel ? jit_call_new(kernel, ir, f, args, err) : NULL;
  bool ok = call && jit_call_run(call, err);
  jit_call_free(call);
  jit_kernel_free(kernel);
  jit_code_free(code);
  return ok;
}
