/* Whether a kernel's results depend on thread timing: it runs with perturbed thread timing, several times on different
 * numbers of threads, and everything that it leaves in its arguments is compared with a run on one thread. */
#include "jit/backend.h"
#include "jit/host/trap.h"
#include "perturb.h"

#include <stdlib.h>
#include <string.h>

struct timing_check {
  const struct tir *ir;
  tir_func f;
  jit_entry entry;
  const struct tir_arguments *inputs;
  void **pointers, *workspace;
  uint64_t *scalars;
  struct perturbation perturbation;
  struct jit_packed packed;
  const volatile int *stop;
  uint32_t cores;
};

static bool run(struct timing_check *c, uint32_t threads, uint64_t seed, struct tir_arguments *out, ms_error *err) {
  assert(threads > 0);
  tir_copy_arguments(c->ir, c->f, c->inputs, out);
  jit_arguments(c->ir, c->f, out->args, c->pointers, c->scalars);
  int32_t status = 0;
  return perturb_call(&c->perturbation, c->entry, jit_packed_arguments(&c->packed, c->pointers), c->workspace, threads,
                      seed, c->stop, &status, err) &&
         jit_passed(status, err);
}

/* To the bit; or as near as the order of a sum may take it, which compilers change where they cut a loop in vectors. */
static bool is_same(const struct timing_check *c, const struct tir_arguments *one, const struct tir_arguments *other,
                    ms_error *err) {
  bool same = true;
  for (uint32_t i = 0; i < one->count && same; i++)
    same = !one->args[i].data || !memcmp(one->args[i].data, other->args[i].data, one->args[i].bytes);
  return same ||
         tir_same_arguments(c->ir, c->f, one, other, tir_tolerance(c->ir, c->f, tir_coarsest_epsilon(c->ir)), err);
}

static bool run_all(struct timing_check *c, uint32_t runs, uint64_t seed, ms_error *err) {
  struct tir_arguments alone, other;
  uint32_t differing = 0;
  ms_error first = {0};
  bool ok = run(c, 1, seed, &alone, err);
  uint32_t wanted = c->perturbation.loops ? runs : 0; /* a function without parallel loops has one timing */
  for (uint32_t i = 0; i < wanted && ok; i++) {
    ms_error why = {0};
    ok = run(c, perturb_threads(i, c->cores, PERTURB_MOST_THREADS), seed + i + 1, &other, err);
    if (ok && !is_same(c, &alone, &other, &why) && !differing++) first = why;
    tir_arguments_free(&other);
  }
  tir_arguments_free(&alone);
  if (!ok || !differing) return ok;
  return ms_fail(err, MS_THREAD_TIMING, "the result depends on thread timing: %u of %u runs differ; %.600s", differing,
                 runs, first.message);
}

bool jit_check_timing(const struct jit_code *code, const struct tir *ir, tir_func f, const struct tir_arguments *args,
                      uint32_t runs, uint64_t seed, const volatile int *stop, ms_error *err) {
  assert(code && args->count == ir->funcs.at[f].params.count);
  size_t count = ir->funcs.at[f].params.count + (size_t)1;
  size_t bytes = perturb_workspace(&code->workspace, PERTURB_MOST_THREADS);
  if (!jit_backend_of(&code->target)->load_perturbed) return true; /* it has no threads of the host's */
  struct jit_kernel *kernel = jit_load_perturbed(code, err);
  if (!kernel) return false;
  struct timing_check c = {.ir = ir,
                           .f = f,
                           .entry = jit_kernel_entry(kernel),
                           .inputs = args,
                           .stop = stop,
                           .cores = (uint32_t)code->target.cores,
                           .pointers = calloc(count, sizeof *c.pointers),
                           .scalars = calloc(count, sizeof *c.scalars),
                           .workspace = bytes ? aligned_alloc(64, (bytes + 63) & ~(size_t)63) : NULL};
  if (!c.pointers || !c.scalars) abort();
  trap_install();
  jit_arguments(ir, f, args->args, c.pointers, c.scalars);
  bool ok = bytes && !c.workspace ? ms_fail(err, MS_TOO_LARGE, "a workspace of %zu bytes cannot be had", bytes)
                                  : jit_pack(&c.packed, kernel, c.pointers, true, stop, err) &&
                                        run_all(&c, runs ? runs : PERTURB_RUNS, seed, err);
  jit_packed_free(&c.packed);
  free(c.pointers);
  free(c.scalars);
  free(c.workspace);
  jit_kernel_free(kernel);
  return ok;
}
