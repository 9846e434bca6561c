/* What this machine's CPU is and has: its features as CPUID reports them, less those whose registers the operating
 * system does not keep; and the CPU whose scheduling model fits them. A virtual machine's model number says little of
 * either. */
#include "host.h"
#include "jit/jit.h"
#include "jit/llvm/api.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Bits of XCR0, each a state that the operating system saves. */
enum { XCR0_AVX = 0x6, XCR0_AVX512 = 0xe6, XCR0_TILES = 0x60000 };

/* What has registers in such a state, and all that implies it. */
static const struct {
  uint64_t bits;
  enum x86_feature first;
} states[] = {{XCR0_AVX, X86_AVX}, {XCR0_AVX512, X86_AVX512F}, {XCR0_TILES, X86_AMX_TILE}};
enum { STATES = sizeof states / sizeof *states };

static x86_set without_unkept(x86_set set, uint64_t xcr0) {
  for (size_t i = 0; i < STATES; i++)
    if ((xcr0 & states[i].bits) != states[i].bits) set = x86_without(set, states[i].first);
  return set;
}

static void describe_feature(enum x86_feature f, struct jit_feature *out) {
  static const struct {
    uint32_t leaf, subleaf, word;
  } places[X86_WORDS] = {[X86_1_ECX] = {1, 0, 2},
                         [X86_7_EBX] = {7, 0, 1},
                         [X86_7_ECX] = {7, 0, 2},
                         [X86_7_EDX] = {7, 0, 3},
                         [X86_7_1_EAX] = {7, 1, 0},
                         [X86_7_1_EDX] = {7, 1, 3},
                         [X86_80000001_ECX] = {0x80000001, 0, 2}};
  enum x86_word word;
  int bit;
  const char *name = x86_where(f, &word, &bit);
  *out = (struct jit_feature){name, places[word].leaf, places[word].subleaf, places[word].word, (uint32_t)bit, 0};
  for (size_t i = 0; i < STATES; i++)
    if (x86_has(x86_with(f), states[i].first)) out->kept |= states[i].bits;
}

uint32_t jit_target_features(const struct jit_target *target, struct jit_feature out[JIT_MOST_FEATURES]) {
  static_assert((int)X86_FEATURES <= (int)JIT_MOST_FEATURES, "a list of all fits");
  x86_set set = x86_without(target ? target->x86 : ~UINT64_C(0), X86_AMX_TILE);
  uint32_t count = 0;
  for (int f = 0; f < X86_FEATURES; f++)
    if (x86_has(set, (enum x86_feature)f)) describe_feature((enum x86_feature)f, &out[count++]);
  return count;
}

void host_of(const char *llvm_cpu, x86_set reported, uint64_t xcr0, bool tiles, struct host *out) {
  *out = (struct host){.reported = without_unkept(reported, xcr0)};
  snprintf(out->llvm_cpu, sizeof out->llvm_cpu, "%s", llvm_cpu);
  out->has = tiles ? out->reported : x86_without(out->reported, X86_AMX_TILE);
  x86_closest_cpu(out->has, llvm_cpu, &out->cpu);
  struct x86_cpu named;
  if (!x86_find_cpu(llvm_cpu, &named)) named = out->cpu;
  out->missing = named.has & ~out->has;
  out->beyond = out->has & ~named.has;
  assert(!(out->cpu.has & ~out->has));
}

/* By LLVM, where it is. */
static void ask_llvm(char name[64]) {
  char *cpu = llvm_open(NULL) ? LLVMGetHostCPUName() : NULL;
  snprintf(name, 64, "%s", cpu ? cpu : "generic");
  if (cpu) LLVMDisposeMessage(cpu);
}

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t read_xcr0(void) {
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static x86_set read_features(void) {
  uint32_t words[X86_WORDS] = {0};
  unsigned a, b, c, d, subleaves = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) words[X86_1_ECX] = c;
  if (__get_cpuid_count(7, 0, &subleaves, &b, &c, &d)) words[X86_7_EBX] = b, words[X86_7_ECX] = c, words[X86_7_EDX] = d;
  if (subleaves && __get_cpuid_count(7, 1, &a, &b, &c, &d)) words[X86_7_1_EAX] = a, words[X86_7_1_EDX] = d;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) words[X86_80000001_ECX] = c;
  return x86_reported(words);
}

/* From its maker's numbers, or by LLVM where it is one that is not known here. */
static void read_name(x86_set kept, char name[64]) {
  unsigned a = 0, b = 0, c = 0, d = 0, most;
  const char *known = NULL;
  if (__get_cpuid(0, &most, &b, &c, &d) && __get_cpuid(1, &a, &most, &most, &most)) {
    int family = a >> 8 & 15, model = a >> 4 & 15;
    if (family == 6 || family == 15) model += (int)(a >> 16 & 15) << 4;
    if (family == 15) family += a >> 20 & 255;
    if (b == signature_INTEL_ebx && c == signature_INTEL_ecx && d == signature_INTEL_edx)
      known = x86_name_of(X86_INTEL, family, model, kept);
    else if (b == signature_AMD_ebx && c == signature_AMD_ecx && d == signature_AMD_edx)
      known = x86_name_of(X86_AMD, family, model, kept);
  }
  if (known)
    snprintf(name, 64, "%s", known);
  else
    ask_llvm(name);
}

enum { ARCH_GET_XCOMP_SUPP = 0x1021, ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

/* Asks for the tiles in a child, since a process that has them needs larger signal stacks from then on. The child
 * shares our memory and stops us until it ends: it may do no more than that. Where none can be made, yes: the helper
 * finds out. */
static bool child_gets_tiles(void) {
  int status = 0;
  pid_t pid = vfork();
  if (!pid) _exit(syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) != 0);
  while (pid > 0 && waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return true; /* the host reaps all of its children, or ignores them */
  return status == 0;
}

/* Whether a process that asks for the tiles gets them: the kernel knows them, and nothing refuses the request, as a
 * container's filter of system calls may. Source: Linux, Documentation/arch/x86/xstate.rst. */
static bool tiles_are_lent(void) {
  uint64_t known = 0;
  return !syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &known) && known >> XFEATURE_XTILEDATA & 1 && child_gets_tiles();
}

static struct host this_machine;

static void ask(void) {
  char name[64];
  x86_set reported = read_features();
  uint64_t xcr0 = read_xcr0();
  read_name(without_unkept(reported, xcr0), name);
  host_of(name, reported, xcr0, tiles_are_lent(), &this_machine);
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
  if (!h) {
    ask_llvm(out->llvm_cpu);
    snprintf(out->cpu, sizeof out->cpu, "%s", out->llvm_cpu);
    return;
  }
  snprintf(out->llvm_cpu, sizeof out->llvm_cpu, "%.63s", h->llvm_cpu);
  snprintf(out->cpu, sizeof out->cpu, "%s", h->cpu.name);
  x86_write_names(h->has, out->features, sizeof out->features);
  x86_write_names(h->missing, out->missing, sizeof out->missing);
  x86_write_names(h->beyond, out->beyond, sizeof out->beyond);
  bool stated = x86_has(h->reported, X86_AMX_TILE);
  out->tiles = x86_has(h->has, X86_AMX_TILE) ? JIT_TILES_LENT : stated ? JIT_TILES_REFUSED : JIT_TILES_NONE;
}
