/* What candidates compute on: inputs, what the reference gives, and each process's own arguments. */
#define _GNU_SOURCE
#include "helper.h"

#include "../machine.h"

#include "vm/vm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Memory ---- */

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

void *shared_new(size_t bytes) {
  void *at = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) abort();
  return at;
}

void *guarded_new(size_t bytes) {
  size_t inside = rounded(bytes ? bytes : 1, page());
  uint8_t *at = mmap(NULL, inside + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return NULL;
  if (mprotect(at + page(), inside, PROT_READ | PROT_WRITE)) {
    munmap(at, inside + 2 * page());
    return NULL;
  }
  return at + page() + inside - rounded(bytes ? bytes : 1, 64);
}

static uint8_t *first_page(void *at) { return (uint8_t *)((uintptr_t)at & ~(uintptr_t)(page() - 1)); }

void guarded_free(void *at, size_t bytes) {
  if (at) munmap(first_page(at) - page(), rounded(bytes ? bytes : 1, page()) + 2 * page());
}

/* ---- The workload ---- */

static void share(struct tir_arg *arg) {
  if (!arg->data) return;
  void *shared = shared_new(arg->bytes);
  memcpy(shared, arg->data, arg->bytes);
  free(arg->data);
  arg->data = shared;
}

/* What the reference leaves where the function does not write is what it found there: the same memory, once a task. */
static void share_arguments(struct workload *w) {
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    struct tir_arg *expected = &w->expected.args[i];
    share(&w->inputs.args[i]);
    if (w->written[i]) {
      share(expected);
    } else {
      free(expected->data);
      expected->data = w->inputs.args[i].data;
    }
  }
}

static bool read_texts(struct workload *w, const char *texts, size_t first, size_t length, ms_error *err) {
  char *second = strndup(texts + first, length - first);
  if (!second) abort();
  w->ir = tir_read(texts, first, "workload", err);
  w->intrinsics = w->ir ? vm_read_intrinsics(second, "intrinsics", err) : NULL;
  free(second);
  return w->intrinsics != NULL;
}

bool workload_open(struct workload *w, const struct measure_hello *hello, const struct measure_task *task,
                   const char *texts, size_t length, ms_error *err) {
  *w = (struct workload){.hello = hello, .f = task->function, .reference = {.tolerance = -1}};
  if (!read_texts(w, texts, task->workload < length ? task->workload : length, length, err)) return false;
  if (w->f >= w->ir->funcs.count) return ms_fail(err, MS_NOT_MEASURABLE, "the workload has no function %u", w->f);
  if (!tir_make_arguments(w->ir, w->f, 1, &w->inputs, err)) return false;
  w->written = calloc(w->inputs.count + 1, sizeof *w->written);
  if (!w->written) abort();
  for (uint32_t i = 0; i < w->inputs.count; i++) {
    tir_buffer b = w->ir->params.at[w->ir->funcs.at[w->f].params.first + i].buffer;
    w->written[i] = b && jit_may_write(w->ir, w->f, b);
  }
  tir_copy_arguments(w->ir, w->f, &w->inputs, &w->expected);
  share_arguments(w);
  return true;
}

/* ---- One process's arguments ---- */

void arena_open(struct arena *a, const struct workload *w) {
  uint32_t count = w->inputs.count;
  uint64_t *scalars = calloc(count + 1, sizeof *scalars);
  *a = (struct arena){.w = w, .pointers = calloc(count + 1, sizeof *a->pointers), .scalars = scalars};
  a->args = (struct tir_arguments){calloc(count + 1, sizeof *a->args.args), count};
  if (!a->pointers || !a->args.args || !scalars) abort();
  for (uint32_t i = 0; i < count; i++) {
    a->args.args[i] = w->inputs.args[i];
    if (!w->inputs.args[i].data) continue;
    size_t bytes = w->inputs.args[i].bytes;
    void *at = guarded_new(bytes);
    if (!at) abort();
    memcpy(at, w->inputs.args[i].data, bytes);
    if (!w->written[i]) mprotect(first_page(at), rounded(bytes ? bytes : 1, page()), PROT_READ);
    a->args.args[i].data = at;
  }
  jit_arguments(w->ir, w->f, a->args.args, a->pointers, scalars);
}

void arena_close(struct arena *a) {
  for (uint32_t i = 0; i < a->args.count; i++)
    if (a->w->inputs.args[i].data) guarded_free(a->args.args[i].data, a->args.args[i].bytes);
  free(a->args.args);
  free(a->pointers);
  free(a->scalars);
}

void arena_reset(struct arena *a) {
  for (uint32_t i = 0; i < a->args.count; i++)
    if (a->w->written[i]) memcpy(a->args.args[i].data, a->w->inputs.args[i].data, a->args.args[i].bytes);
}

bool arena_compare(const struct arena *a, double tolerance, ms_error *err) {
  struct tir_arguments expected = a->w->expected, actual = a->args;
  struct tir_arg *args = malloc(2 * (actual.count + 1) * sizeof *args);
  if (!args) abort();
  for (uint32_t i = 0; i < actual.count; i++) {
    args[i] = expected.args[i], args[actual.count + i] = actual.args[i];
    if (!a->w->written[i]) args[i].bytes = args[actual.count + i].bytes = 0; /* write-protected: as it was */
  }
  expected.args = args, actual.args = args + actual.count;
  bool same = tir_same_arguments(a->w->ir, a->w->f, &expected, &actual, tolerance, err);
  free(args);
  return same;
}
