/* Compiled code loaded into this process with ORC, and run: LLVM's row in the table. */
#define _GNU_SOURCE
#include "jit/backend.h"
#include "jit/c/emit_c.h"
#include "jit/host/process.h"
#include "jit/host/trap.h"
#include "jit/measure/measure.h"
#include "jit/measure/perturb.h"
#include "jit/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

static bool orc_failed(LLVMErrorRef error, ms_error *err) {
  if (!error) return false;
  char *message = LLVMGetErrorMessage(error);
  ms_fail(err, MS_NOT_COMPILABLE, "LLVM ORC: %s", message);
  LLVMDisposeErrorMessage(message);
  return true;
}

/* Where generated code finds what it calls: in what the process exports, and in libraries that are loaded but not seen
 * by it, as when this library is part of a module that another program loaded. */
static bool add_libraries(LLVMOrcLLJITRef orc, LLVMOrcJITDylibRef library, ms_error *err) {
  static const char *const names[] = {NULL, "libgomp.so.1", "libm.so.6", "libgcc_s.so.1"};
  char prefix = LLVMOrcLLJITGetGlobalPrefix(orc);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    LLVMOrcDefinitionGeneratorRef found;
    LLVMErrorRef error = names[i]
                             ? LLVMOrcCreateDynamicLibrarySearchGeneratorForPath(&found, names[i], prefix, NULL, NULL)
                             : LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&found, prefix, NULL, NULL);
    if (names[i] && error) { /* not there: another gives what it would, or the code's lookup says what is missing */
      LLVMConsumeError(error);
      continue;
    }
    if (orc_failed(error, err)) return false;
    LLVMOrcJITDylibAddGenerator(library, found);
  }
  return true;
}

/* Our functions in the place of libgomp's, found before the libraries' own: parallel loops run where their faults are
 * caught, or with perturbed thread timing. */
static bool add_threads(LLVMOrcLLJITRef orc, LLVMOrcJITDylibRef library, bool perturbed, ms_error *err) {
  const struct {
    const char *name;
    uintptr_t address;
  } ours[] = {{"GOMP_parallel", perturbed ? (uintptr_t)perturb_parallel : (uintptr_t)trap_parallel},
              {"omp_get_thread_num", perturbed ? (uintptr_t)perturb_thread_number : (uintptr_t)team_part},
              {"omp_get_num_threads", perturbed ? (uintptr_t)perturb_thread_count : (uintptr_t)team_parts}};
  enum { COUNT = sizeof ours / sizeof *ours };
  LLVMOrcCSymbolMapPair symbols[COUNT];
  for (size_t i = 0; i < COUNT; i++)
    symbols[i] = (LLVMOrcCSymbolMapPair){
        LLVMOrcLLJITMangleAndIntern(orc, ours[i].name),
        {ours[i].address, {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0}}};
  return !orc_failed(LLVMOrcJITDylibDefine(library, LLVMOrcAbsoluteSymbols(symbols, COUNT)), err);
}

/* ---- Threads: a kernel runs with fewer too, and its time is then not the target's: they are tried before ---- */

static void *wait_for_all(void *lock) {
  pthread_mutex_lock(lock);
  pthread_mutex_unlock(lock);
  return NULL;
}

/* So many at once besides this one; those that were had once are kept by the team. */
static bool have_threads(int cores, ms_error *err) {
  static int proven = 1;
  if (cores <= __atomic_load_n(&proven, __ATOMIC_RELAXED)) return true;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_t *threads = calloc((size_t)cores, sizeof *threads);
  if (!threads) abort();
  int made = 1, failed = 0;
  pthread_mutex_lock(&lock);
  while (made < cores && !(failed = pthread_create(&threads[made], NULL, wait_for_all, &lock))) made++;
  pthread_mutex_unlock(&lock);
  for (int i = 1; i < made; i++) pthread_join(threads[i], NULL);
  free(threads);
  if (failed)
    return ms_fail(err, MS_NO_PROCESS, "could not start %d threads, but %d: %s; %s", cores, made, strerror(failed),
                   process_remedy(failed));
  __atomic_store_n(&proven, cores, __ATOMIC_RELAXED);
  return true;
}

/* Whether it has parallel loops: they call libgomp. */
static bool is_parallel(const struct jit_code *code) {
  static const char name[] = "GOMP_parallel";
  size_t bytes;
  const char *object = jit_code_object(code, &bytes);
  return memmem(object, bytes, name, sizeof name - 1) != NULL;
}

static bool find_pack(LLVMOrcLLJITRef orc, const struct jit_code *code, struct jit_kernel *kernel, ms_error *err) {
  LLVMOrcExecutorAddress address;
  char name[JIT_PACK_NAME];
  jit_pack_name(code->name, name);
  if (code->packing.count && orc_failed(LLVMOrcLLJITLookup(orc, &address, name), err)) return false;
  if (code->packing.count) kernel->pack = (jit_entry)(uintptr_t)address;
  return true;
}

static bool llvm_load_code(const struct jit_code *code, bool perturbed, struct jit_kernel *kernel, ms_error *err) {
  if (is_parallel(code) && !have_threads(code->target.cores, err)) return false;
  if (!jit_start_llvm(err)) return false;
  (void)omp_get_max_threads(); /* vendors' libraries look for libgomp here: the linker must not leave it out */
  LLVMOrcExecutorAddress address;
  LLVMOrcLLJITRef orc;
  if (orc_failed(LLVMOrcCreateLLJIT(&orc, NULL), err)) return false;
  LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(orc);
  size_t bytes;
  const char *object = jit_code_object(code, &bytes);
  LLVMMemoryBufferRef copy = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, bytes, "kernel");
  kernel->loaded = orc;
  if (add_threads(orc, library, perturbed, err) && add_libraries(orc, library, err) &&
      !orc_failed(LLVMOrcLLJITAddObjectFile(orc, library, copy), err) &&
      !orc_failed(LLVMOrcLLJITLookup(orc, &address, code->name), err) && find_pack(orc, code, kernel, err)) {
    kernel->entry = (jit_entry)(uintptr_t)address;
    return true;
  }
  LLVMConsumeError(LLVMOrcDisposeLLJIT(orc));
  return false;
}

static bool load_plain(const struct jit_code *code, struct jit_kernel *kernel, ms_error *err) {
  return llvm_load_code(code, false, kernel, err);
}
static bool load_perturbed(const struct jit_code *code, struct jit_kernel *kernel, ms_error *err) {
  return llvm_load_code(code, true, kernel, err);
}

static void unload(struct jit_kernel *kernel) { LLVMConsumeError(LLVMOrcDisposeLLJIT(kernel->loaded)); }

/* ---- Running ---- */

static bool run(const struct jit_kernel *kernel, void **args, void *workspace, bool outlive, const volatile int *stop,
                ms_error *err) {
  int32_t status = 0;
  if (outlive) return trap_call(kernel->entry, args, workspace, stop, &status, err) && jit_passed(status, err);
  return jit_passed(kernel->entry(args, workspace), err);
}

struct sampled {
  const struct jit_kernel *kernel;
  void **args, *workspace;
  uint32_t calls;
  double seconds;
};
static void take_sample(void *data) {
  struct sampled *s = data;
  double before = measure_now();
  for (uint32_t i = 0; i < s->calls; i++) s->kernel->entry(s->args, s->workspace);
  s->seconds = (measure_now() - before) / s->calls;
}

static double sample(const struct jit_kernel *kernel, void **args, void *workspace, uint32_t calls,
                     const volatile int *stop, ms_error *err) {
  struct sampled s = {kernel, args, workspace, calls, 0};
  if (stop && !trap_run(take_sample, &s, stop, err)) return -1;
  if (!stop) take_sample(&s);
  return s.seconds;
}

/* ---- The process ---- */

/* On as many cores as the target has, the first that are allowed. */
static void pin(int cores) {
  cpu_set_t allowed, chosen;
  CPU_ZERO(&chosen);
  if (sched_getaffinity(0, sizeof allowed, &allowed) || cores >= CPU_COUNT(&allowed)) return;
  for (int cpu = 0, taken = 0; cpu < CPU_SETSIZE && taken < cores; cpu++)
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &chosen), taken++;
  sched_setaffinity(0, sizeof chosen, &chosen);
}

/* Threads start before the first candidate, which would pay for them. */
static void do_nothing(void *closure) { (void)closure; }
static void start_threads(int cores) {
  assert(cores > 0);
  team_parallel(do_nothing, NULL, (unsigned)cores);
}

static void prepare(const struct jit_target *target) {
  pin(target->cores);
  if (have_threads(target->cores, NULL)) start_threads(target->cores); /* else parallel kernels are not loaded */
}

static uint32_t count(const struct jit_target *target) {
  (void)target;
  return 1;
}

static bool open_host(const struct jit_target *target, uint32_t number, struct jit_device **out, ms_error *err) {
  (void)target, (void)number, (void)err;
  *out = NULL;
  return true;
}

const struct jit_backend llvm_backend = {.kind = "llvm",
                                         .parse = llvm_parse,
                                         .text = llvm_text,
                                         .numbers = llvm_numbers,
                                         .runs_here = llvm_runs_here,
                                         .open_compiler = jit_start_llvm,
                                         .lower = llvm_lower,
                                         .packs = true,
                                         .compile = llvm_compile,
                                         .dialect = &emit_c_gnu,
                                         .forms = llvm_forms,
                                         .narrow = llvm_narrow,
                                         .withhold = llvm_withhold,
                                         .export = llvm_export,
                                         .count = count,
                                         .open = open_host,
                                         .prepare = prepare,
                                         .memory = &host_memory,
                                         .load = load_plain,
                                         .load_perturbed = load_perturbed,
                                         .unload = unload,
                                         .run = run,
                                         .sample = sample};
