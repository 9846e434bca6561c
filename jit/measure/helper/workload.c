/* What candidates compute on: inputs, and what the reference gives. */
#define _GNU_SOURCE
#include "helper.h"

#include "vm/vm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- Memory ---- */

void *shared_new(size_t bytes) {
  void *at = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

/* ---- The workload ---- */

/* What the reference leaves where the function does not write is what it found there: the same memory, once a task.
 * Pages that nobody fills are no memory. */
static bool share_arguments(struct workload *w, ms_error *err) {
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    struct tir_arg *input = &w->inputs.args[i], *expected = &w->expected.args[i], *timed = &w->timed.args[i];
    if (!input->shape) continue;
    bool digits = jit_timed_with_digits(w->ir, w->f, &w->hello->target, i);
    input->data = shared_new(input->bytes);
    expected->data = w->written[i] ? shared_new(input->bytes) : input->data;
    timed->data = digits ? shared_new(input->bytes) : NULL;
    if (!input->data || !expected->data || (digits && !timed->data))
      return ms_fail(err, MS_TOO_LARGE, "no memory of %zu bytes for an argument can be had", input->bytes);
  }
  return true;
}

static bool read_texts(struct workload *w, const char *texts, size_t first, size_t length, ms_error *err) {
  char *second = strndup(texts + first, length - first);
  if (!second) abort();
  w->ir = tir_read(texts, first, "workload", err);
  w->intrinsics = w->ir ? vm_read_intrinsics(second, "intrinsics", err) : NULL;
  free(second);
  return w->intrinsics != NULL;
}

void workload_fill(const struct workload *w) {
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    if (!w->inputs.args[i].data) continue;
    tir_fill_argument(w->ir, w->f, 1, i, &w->inputs.args[i]);
    if (w->timed.args[i].data) tir_fill_real_argument(w->ir, w->f, 1, i, &w->timed.args[i]);
  }
}

/* What the interpreter does soon, and little data, are soonest made and compared by the host. */
static const double LARGE_STEPS = 0x1p21, LARGE_BYTES = 0x1p24;

static bool is_large(const struct workload *w) {
  double bytes = 0;
  for (uint32_t i = 0; i < w->inputs.count; i++) bytes += (double)w->inputs.args[i].bytes;
  return jit_backend_of(&w->hello->target)->checks && (bytes > LARGE_BYTES || jit_steps_of(w->ir, w->f) > LARGE_STEPS);
}

struct jit_contents workload_contents(const struct workload *w, uint32_t parameter) {
  tir_buffer b = w->ir->params.at[w->ir->funcs.at[w->f].params.first + parameter].buffer;
  assert(b);
  tir_type type = tir_type_with_lanes(tir_buffer_at(w->ir, b)->type, 1);
  size_t size = ((size_t)tir_type_bits(type) + 7) / 8;
  return (struct jit_contents){
      .type = type, .elements = w->inputs.args[parameter].bytes / size, .seed = 1, .stream = parameter};
}

bool workload_open(struct workload *w, const struct measure_hello *hello, const struct measure_task *task,
                   const char *texts, size_t length, ms_error *err) {
  *w = (struct workload){.hello = hello, .f = task->function, .reference = {.tolerance = -1}};
  if (!read_texts(w, texts, task->workload < length ? task->workload : length, length, err)) return false;
  if (w->f >= w->ir->funcs.count) return ms_fail(err, MS_NOT_MEASURABLE, "the workload has no function %u", w->f);
  if (!tir_shape_arguments(w->ir, w->f, 1, &w->inputs, err)) return false;
  w->written = calloc(w->inputs.count + 1, sizeof *w->written);
  if (!w->written) abort();
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    tir_buffer b = w->ir->params.at[w->ir->funcs.at[w->f].params.first + i].buffer;
    w->written[i] = b && jit_may_write(w->ir, w->f, b);
  }
  tir_copy_arguments(w->ir, w->f, &w->inputs, &w->expected);
  tir_copy_arguments(w->ir, w->f, &w->inputs, &w->timed);
  w->large = is_large(w);
  w->made = shared_new(sizeof *w->made);
  if (!w->made) return ms_fail(err, MS_TOO_LARGE, "no memory for a task can be had");
  if (!share_arguments(w, err)) return false;
  if (!w->large) workload_fill(w);
  return true;
}

static void drop(const struct tir_arg *arg) {
  if (arg->data && arg->bytes) madvise(arg->data, arg->bytes, MADV_REMOVE);
}

void workload_drop_arguments(struct workload *w) {
  assert(w->ir);
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    drop(&w->inputs.args[i]);
    drop(&w->timed.args[i]);
    if (w->written[i]) drop(&w->expected.args[i]);
  }
}
