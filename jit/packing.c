#include "packing.h"

#include "backend.h"

#include <stdlib.h>
#include <string.h>

struct jit_packing jit_packing_of(const struct tir_packing *cut, tir_func f) {
  struct jit_packing out = {.count = cut->count, .kernel_count = cut->kernel_count, .pack_count = cut->pack_count};
  memcpy(out.of_kernel, cut->of_kernel, sizeof out.of_kernel);
  memcpy(out.of_pack, cut->of_pack, sizeof out.of_pack);
  if (!cut->count) return out;
  struct tir_arg args[TIR_MOST_PACKING] = {0};
  tir_size_arguments(cut->pack, f, args);
  for (uint32_t i = 0; i < cut->pack_count; i++)
    if (cut->of_pack[i] >= TIR_PACKED) out.bytes[cut->of_pack[i] - TIR_PACKED] = args[i].bytes;
  return out;
}

void jit_pack_name(const char *name, char out[JIT_PACK_NAME]) {
  snprintf(out, JIT_PACK_NAME, "%.*s_pack", JIT_EXPORTED_NAME - 1, name);
}

/* Those of an entry whose parameters are listed. */
static void arrange(const uint32_t *list, uint32_t count, void *const *args, void *const *packed, void **out) {
  for (uint32_t i = 0; i < count; i++) out[i] = list[i] >= TIR_PACKED ? packed[list[i] - TIR_PACKED] : args[list[i]];
}

static bool place(struct jit_packed *p, ms_error *err) {
  const struct jit_kernel *kernel = p->kernel;
  for (uint32_t i = 0; i < kernel->packing.count; i++) {
    p->at[i] = kernel->backend->memory->get(kernel->device, kernel->packing.bytes[i], err);
    if (!p->at[i]) return false;
  }
  return true;
}

static bool run(const struct jit_packed *p, void *const *args, bool outlive, const volatile int *stop, ms_error *err) {
  const struct jit_packing *packing = &p->kernel->packing;
  const struct jit_memory *memory = p->kernel->backend->memory;
  void *given[TIR_MOST_PACKING], *workspace = NULL;
  size_t bytes = packing->workspace.bytes;
  struct jit_kernel pack = *p->kernel;
  pack.entry = p->kernel->pack, pack.workspace = packing->workspace;
  if (pack.pack_loaded) pack.loaded = pack.pack_loaded;
  arrange(packing->of_pack, packing->pack_count, args, p->at, given);
  if (bytes && !(workspace = memory->get(pack.device, bytes, err))) return false;
  bool ok = pack.backend->run(&pack, given, workspace, outlive, stop, err);
  memory->release(pack.device, workspace, bytes);
  return ok;
}

bool jit_pack(struct jit_packed *p, const struct jit_kernel *kernel, void *const *args, bool outlive,
              const volatile int *stop, ms_error *err) {
  const struct jit_packing *packing = &kernel->packing;
  *p = (struct jit_packed){.kernel = kernel};
  if (!packing->count) return true;
  assert(packing->kernel_count <= TIR_MOST_PACKING && (kernel->pack || kernel->pack_loaded));
  if (!place(p, err) || !run(p, args, outlive, stop, err)) return false;
  for (uint32_t i = 0; i < packing->count; i++)
    if (kernel->backend->memory->protect) kernel->backend->memory->protect(p->at[i], packing->bytes[i]);
  return true;
}

void **jit_packed_arguments(struct jit_packed *p, void **args) {
  const struct jit_packing *packing = &p->kernel->packing;
  if (!packing->count) return args;
  arrange(packing->of_kernel, packing->kernel_count, args, p->at, p->args);
  return p->args;
}

void jit_packed_free(struct jit_packed *p) {
  for (uint32_t i = 0; p->kernel && i < p->kernel->packing.count; i++)
    if (p->at[i]) p->kernel->backend->memory->release(p->kernel->device, p->at[i], p->kernel->packing.bytes[i]);
  *p = (struct jit_packed){0};
}
