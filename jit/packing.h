/* Constants that are packed ahead of a kernel's runs. Internal to jit.
 *
 * Code of a function that tir_split_packing cuts in two has two entries in one object. A kernel is called with the
 * function's own arguments: whoever runs it packs them first, and gives it what came of that. */
#ifndef MSCHED_JIT_PACKING_H
#define MSCHED_JIT_PACKING_H

#include "jit/jit.h"

/* A plain value: it travels with an object from process to process. */
struct jit_packing {
  uint32_t count; /* packed buffers; 0: nothing is packed */
  uint64_t bytes[TIR_MOST_PACKED];
  /* The parameters of both entries, as struct tir_packing has them. */
  uint32_t kernel_count, of_kernel[TIR_MOST_PACKING];
  uint32_t pack_count, of_pack[TIR_MOST_PACKING];
  struct tir_workspace workspace; /* of packing; the buffer means nothing */
};
/* Of functions that were cut; what the workspace is, is known once they are lowered. */
struct jit_packing jit_packing_of(const struct tir_packing *cut, tir_func f);

enum { JIT_PACK_NAME = JIT_EXPORTED_NAME + 8 };
/* What the entry that packs is called beside one of this name. */
void jit_pack_name(const char *name, char out[JIT_PACK_NAME]);

/* The arguments of a kernel that packs: args are the function's. */
struct jit_packed {
  const struct jit_kernel *kernel;
  void *at[TIR_MOST_PACKED];
  void *args[TIR_MOST_PACKING]; /* as the kernel takes them, of the last call of jit_packed_arguments */
};
/* Packs the constants into memory of its own, which is only read from then on. outlive and stop: as a backend's `run`
 * takes them. Where the kernel packs nothing, nothing is done. jit_packed_free in either case. */
bool jit_pack(struct jit_packed *packed, const struct jit_kernel *kernel, void *const *args, bool outlive,
              const volatile int *stop, ms_error *err);
/* What the kernel takes for arguments of which the constants hold the same: `args` itself where it packs nothing. */
void **jit_packed_arguments(struct jit_packed *packed, void **args);
void jit_packed_free(struct jit_packed *packed);

#endif
