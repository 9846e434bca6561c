/* Capabilities: what an architecture of CUDA's has, from its name. */
#include "tir/tir.h"

#include <stdlib.h>
#include <string.h>

const struct tir_capability tir_capabilities[TIR_CAPABILITIES] = {
#define TIR_CAPABILITY(id, name, least, what) [TIR_HAS_##id] = {#name, least, what},
#include "capabilities.def"
};

int tir_arch_number(const char *arch, bool *own) {
  char *end;
  assert(!strncmp(arch, "sm_", strlen("sm_")));
  int number = (int)strtol(arch + strlen("sm_"), &end, 10);
  *own = *end != 0;
  return number;
}

unsigned tir_capabilities_of(const char *arch) {
  unsigned set = 0;
  bool own, alone;
  int number = tir_arch_number(arch, &own);
  for (int i = 0; i < TIR_CAPABILITIES; i++) {
    int least = tir_arch_number(tir_capabilities[i].least, &alone);
    if (alone ? own && number == least : number >= least) set |= 1u << i;
  }
  return set;
}

const char *tir_capability_since(enum tir_capability_id which) {
  bool alone;
  tir_arch_number(tir_capabilities[which].least, &alone);
  return alone ? "" : " and later";
}
