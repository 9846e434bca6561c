/* What this machine's CPU is and has: its features as CPUID reports them, less those whose registers the operating
 * system does not keep; and the CPU whose scheduling model fits them. A virtual machine's model number says little of
 * either. */
#include "host.h"
#include "jit/jit.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

/* Bits of XCR0, each a state that the operating system saves. */
enum { XCR0_AVX = 0x6, XCR0_AVX512 = 0xe6, XCR0_TILES = 0x60000 };

static bool has_state(uint64_t xcr0, uint64_t bits) { return (xcr0 & bits) == bits; }

void host_of(const char *llvm_cpu, const char *llvm_features, uint64_t xcr0, bool tiles, struct host *out) {
  *out = (struct host){.has = x86_stated(llvm_features)};
  snprintf(out->llvm_cpu, sizeof out->llvm_cpu, "%s", llvm_cpu);
  if (!has_state(xcr0, XCR0_AVX)) out->has = x86_without(out->has, X86_AVX);
  if (!has_state(xcr0, XCR0_AVX512)) out->has = x86_without(out->has, X86_AVX512F);
  if (!has_state(xcr0, XCR0_TILES) || !tiles) out->has = x86_without(out->has, X86_AMX_TILE);
  bool narrow = strstr(llvm_features, "-evex512");
  if (narrow && !x86_has(out->has, X86_AVX512VL)) out->has = x86_without(out->has, X86_AVX512F);
  out->narrow = narrow && x86_has(out->has, X86_AVX512F);
  x86_closest_cpu(out->has, llvm_cpu, &out->cpu);
  struct x86_cpu named;
  if (!x86_find_cpu(llvm_cpu, &named)) named = out->cpu;
  out->missing = named.has & ~out->has;
  out->beyond = out->has & ~named.has;
  assert(!(out->cpu.has & ~out->has));
}

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t read_xcr0(void) {
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

/* Whether a process that asks for the tiles gets them; asking that changes nothing. Source: Linux,
 * Documentation/arch/x86/xstate.rst. */
static bool tiles_are_lent(void) {
  enum { ARCH_GET_XCOMP_SUPP = 0x1021, XFEATURE_XTILEDATA = 18 };
  uint64_t lent = 0;
  return !syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &lent) && lent >> XFEATURE_XTILEDATA & 1;
}

static struct host this_machine;

static void ask(void) {
  char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
  host_of(cpu, features, read_xcr0(), tiles_are_lent(), &this_machine);
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
}

const struct host *host_this(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, ask);
  return &this_machine;
}
#else
const struct host *host_this(void) { return NULL; }
#endif

void jit_describe_host(struct jit_host *out) {
  const struct host *h = host_this();
  *out = (struct jit_host){0};
  char *cpu = LLVMGetHostCPUName();
  snprintf(out->llvm_cpu, sizeof out->llvm_cpu, "%s", cpu);
  LLVMDisposeMessage(cpu);
  snprintf(out->cpu, sizeof out->cpu, "%s", h ? h->cpu.name : out->llvm_cpu);
  if (!h) return;
  x86_write_names(h->has, out->features, sizeof out->features);
  x86_write_names(h->missing, out->missing, sizeof out->missing);
  x86_write_names(h->beyond, out->beyond, sizeof out->beyond);
  char *features = LLVMGetHostCPUFeatures();
  bool stated = x86_has(x86_stated(features), X86_AMX_TILE);
  LLVMDisposeMessage(features);
  out->tiles = x86_has(h->has, X86_AMX_TILE) ? JIT_TILES_LENT : stated ? JIT_TILES_REFUSED : JIT_TILES_NONE;
}
