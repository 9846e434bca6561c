#define _GNU_SOURCE /* memmem */
#include "resources.h"

#include <stdlib.h>
#include <string.h>

/* The number that stands before these words within the text; 0: they are not there. */
static int64_t number_before(const char *text, size_t size, const char *words) {
  const char *at = memmem(text, size, words, strlen(words));
  if (!at) return 0;
  while (at > text && at[-1] >= '0' && at[-1] <= '9') at--;
  return strtoll(at, NULL, 10);
}

/* The part of the log that is of this kernel:
 *   ptxas info    : Compiling entry function 'NAME' for 'sm_90a'
 *   ptxas info    : Function properties for NAME
 *   ptxas         .     800 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *   ptxas info    : Used 40 registers, used 1 barriers, 800 bytes cumulative stack size, 400 bytes smem
 * up to the next such. */
static const char *part_of(const char *log, const char *name, size_t *size) {
  static const char begins[] = "Compiling entry function '";
  char line[sizeof begins + JIT_KERNEL_NAME + 1];
  snprintf(line, sizeof line, "%s%s'", begins, name);
  const char *at = strstr(log, line);
  if (!at) return NULL;
  const char *next = strstr(at + strlen(line), begins);
  *size = next ? (size_t)(next - at) : strlen(at);
  return at;
}

/* Warnings of tensor units' products that wait for one another: C7510, C7511, C7515, C7519. They name the function. */
static bool is_serialized(const char *log, const char *name) {
  for (const char *at = log; (at = strstr(at, "(C75")) != NULL; at++) {
    int number = atoi(at + strlen("(C"));
    if (number != 7510 && number != 7511 && number != 7515 && number != 7519) continue;
    size_t length = strcspn(at, "\n");
    if (memmem(at, length, name, strlen(name)) || !memmem(at, length, "function '", strlen("function '"))) return true;
  }
  return false;
}

static void note(const char *log, struct jit_resources *k) {
  size_t size;
  const char *part = part_of(log, k->name, &size);
  if (!part) return;
  k->compiled = true;
  k->registers = (int)number_before(part, size, " registers");
  k->barriers = (int)number_before(part, size, " barriers");
  k->stack_bytes = number_before(part, size, " bytes stack frame");
  k->spill_stores = number_before(part, size, " bytes spill stores");
  k->spill_loads = number_before(part, size, " bytes spill loads");
  k->shared_bytes = number_before(part, size, " bytes smem") + k->dynamic_bytes;
  k->serialized = is_serialized(log, k->name);
}

/* A warp's registers are handed out by TIR_WARP_REGISTERS_UNIT. */
static int64_t registers_of_block(const struct jit_resources *k) {
  int64_t warps = (k->threads + TIR_WARP - 1) / TIR_WARP, unit = TIR_WARP_REGISTERS_UNIT;
  return warps * (((int64_t)k->registers * TIR_WARP + unit - 1) / unit * unit);
}

static bool fits(const struct jit_resources *k, const struct jit_gpu *gpu, ms_error *err) {
  if (k->threads > gpu->max_threads)
    return ms_fail(err, MS_EXCEEDS_DEVICE, "%s: %d threads a block; the target has %d", k->name, k->threads,
                   gpu->max_threads);
  if (k->shared_bytes > gpu->shared_bytes)
    return ms_fail(err, MS_EXCEEDS_DEVICE, "%s: %lld bytes of shared memory a block; the target has %d", k->name,
                   (long long)k->shared_bytes, gpu->shared_bytes);
  if (registers_of_block(k) > gpu->registers)
    return ms_fail(err, MS_EXCEEDS_DEVICE, "%s: %d registers a thread, %lld for a block of %d; the target has %d",
                   k->name, k->registers, (long long)registers_of_block(k), k->threads, gpu->registers);
  return true;
}

bool resources_note(const char *log, const struct jit_target *target, struct jit_resources *kernels, uint32_t count,
                    ms_error *err) {
  assert(target->gpu.arch);
  for (uint32_t i = 0; i < count; i++) {
    if (log) note(log, &kernels[i]);
    if (!fits(&kernels[i], &target->gpu, err)) return false;
  }
  return true;
}

static void raise_to(int64_t *most, int64_t value) {
  if (value > *most) *most = value;
}

struct jit_taken resources_most(const struct jit_resources *kernels, uint32_t count) {
  struct jit_taken most = {0};
  for (uint32_t i = 0; i < count; i++) {
    const struct jit_resources *k = &kernels[i];
    if (!k->compiled) return (struct jit_taken){0};
    if (k->threads > most.threads) most.threads = k->threads;
    if (k->registers > most.registers) most.registers = k->registers;
    raise_to(&most.spilled_bytes, k->spill_stores);
    raise_to(&most.stack_bytes, k->stack_bytes);
    raise_to(&most.shared_bytes, k->shared_bytes);
  }
  most.kernels = count;
  return most;
}
