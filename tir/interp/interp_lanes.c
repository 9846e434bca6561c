/* What lanes store together: each what it holds, pairs of neighbours, of each eight columns one. */
#include "interp.h"

enum { PAIR = 2, GROUP = 8 };

/* Values are the arguments from `first` on, but for the lane's number, which is last. */
static bool store_pairs(struct tir_extern_call *call, uint32_t first) {
  uint32_t count = tir_call_count(call);
  int bits = count ? tir_type_bits(interp_call_type(call, 0)) : 0;
  uint32_t values = bits == 8 || bits == 16 || bits == 32 ? 128 / (uint32_t)bits : 0;
  if (!values || count != first + values + 1) return tir_call_fail(call, "lanes store 16 bytes each");
  for (uint32_t i = 0; i < values; i++)
    if (!tir_call_store(call, 0, i / PAIR * GROUP + i % PAIR, tir_call_value(call, first + i))) return false;
  return true;
}

/* (pointer, values..., lane) */
bool interp_do_store_pairs(struct tir_extern_call *call, void *data) {
  (void)data;
  return store_pairs(call, 1);
}

/* (pointer, stride, values..., lane) */
bool interp_do_store_matrices(struct tir_extern_call *call, void *data) {
  (void)data;
  return store_pairs(call, 2);
}
