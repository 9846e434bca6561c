/* This machine as one with AMX, for programs that are linked with emulate.c: where it has none, what CPUID says is
 * extended, before main. Code is scheduled as Intel's with AMX is: what LLVM does for AMD's, renaming registers behind
 * their allocation, leaves tiles unconfigured. */
#include "jit/host/host.h"
#include "unit.h"

#include <stdlib.h>

__attribute__((constructor)) static void add_tiles(void) {
  struct host *h = (struct host *)(uintptr_t)host_this(); /* an object that was written, once */
  if (x86_has(h->reported, X86_AMX_TILE) || !amx_is_possible()) return;
  x86_set tiles = x86_with(X86_AMX_INT8) | x86_with(X86_AMX_BF16) | x86_with(X86_AMX_FP16);
  host_of("sapphirerapids", h->reported | tiles, UINT64_MAX, !getenv("AMX_REFUSED"), h);
}
