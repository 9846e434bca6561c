/* Units of x86 that multiply short types, and what they do in a second: chains of products in registers alone, as many
 * as cover the latency, on as many threads as there are cores. Compiled here, for features that the rest of this
 * program may not use; run where the machine has them. */
#define _GNU_SOURCE
#include "jit/host/host.h"
#include "jit/host/process.h"
#include "jit/measure/measure.h"
#include "machine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef void unit_kernel(uint64_t steps);

/* A way of a unit: what it needs of the CPU, the width of its vectors, the operations of a step, and the step's
 * loop. */
struct way {
  enum jit_unit unit;
  x86_set needs;
  int vector_bits; /* 0: of tiles, whatever vectors there are */
  double operations;
  unit_kernel *run;
};

static const struct {
  const char *name, *instructions[2]; /* the beginnings of their names */
} units[JIT_UNITS] = {
    [JIT_UNIT_PAIRS] = {"16-bit pairs", {"pmaddwd", "pmaddubsw"}}, [JIT_UNIT_VNNI] = {"VNNI", {"vpdpb", "vpdpw"}},
    [JIT_UNIT_BF16] = {"AVX512-BF16", {"vdpbf16ps", "vdpbf16ps"}}, [JIT_UNIT_AMX_INT8] = {"AMX", {"tdpbs", "tdpbu"}},
    [JIT_UNIT_AMX_BF16] = {"AMX", {"tdpbf16ps", "tdpbf16ps"}},
};

const char *jit_unit_name(enum jit_unit unit) {
  assert(unit < JIT_UNITS);
  return units[unit].name;
}

bool jit_unit_is_used(enum jit_unit unit, const char *assembly) {
  assert(unit < JIT_UNITS && assembly);
  return strstr(assembly, units[unit].instructions[0]) || strstr(assembly, units[unit].instructions[1]);
}

#ifdef __x86_64__
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Vectors ---- */

enum { CHAINS = 12 }; /* of sums: with the operands and a product they fit in 16 registers */

/* One step of a chain. An operand that might be another in each step cannot be taken out of the loop. */
#define STEP(s, constraint, step)                                                                                      \
  {                                                                                                                    \
    __asm__ volatile("" : "+" constraint(x), "+" constraint(s));                                                       \
    sum = s;                                                                                                           \
    s = step;                                                                                                          \
  }
/* A loop of so many chains, in registers of a constraint; `step` is of sum, x and y. */
#define VECTOR_KERNEL(name, features, vector, operand, zero, constraint, step)                                         \
  __attribute__((target(features), noinline)) static void name(uint64_t steps) {                                       \
    operand x = (operand)zero, y = (operand)zero;                                                                      \
    vector sum, a = zero, b = zero, c = zero, d = zero, e = zero, f = zero, g = zero, h = zero;                        \
    vector i = zero, j = zero, k = zero, l = zero;                                                                     \
    __asm__ volatile("" : "+" constraint(y));                                                                          \
    for (; steps; steps--) {                                                                                           \
      STEP(a, constraint, step)                                                                                        \
      STEP(b, constraint, step)                                                                                        \
      STEP(c, constraint, step)                                                                                        \
      STEP(d, constraint, step)                                                                                        \
      STEP(e, constraint, step)                                                                                        \
      STEP(f, constraint, step)                                                                                        \
      STEP(g, constraint, step)                                                                                        \
      STEP(h, constraint, step)                                                                                        \
      STEP(i, constraint, step)                                                                                        \
      STEP(j, constraint, step)                                                                                        \
      STEP(k, constraint, step)                                                                                        \
      STEP(l, constraint, step)                                                                                        \
    }                                                                                                                  \
    __asm__ volatile("" : : constraint(a), constraint(b), constraint(c), constraint(d), constraint(e), constraint(f)); \
    __asm__ volatile("" : : constraint(g), constraint(h), constraint(i), constraint(j), constraint(k), constraint(l)); \
  }

VECTOR_KERNEL(pairs_128, "sse2", __m128i, __m128i, _mm_setzero_si128(), "x", _mm_add_epi32(sum, _mm_madd_epi16(x, y)))
VECTOR_KERNEL(pairs_256, "avx2", __m256i, __m256i, _mm256_setzero_si256(), "x",
              _mm256_add_epi32(sum, _mm256_madd_epi16(x, y)))
VECTOR_KERNEL(pairs_512, "avx512f,avx512bw", __m512i, __m512i, _mm512_setzero_si512(), "v",
              _mm512_add_epi32(sum, _mm512_madd_epi16(x, y)))
VECTOR_KERNEL(vnni_avx, "avxvnni", __m256i, __m256i, _mm256_setzero_si256(), "x", _mm256_dpbusd_avx_epi32(sum, x, y))
VECTOR_KERNEL(vnni_256, "avx512vnni,avx512vl", __m256i, __m256i, _mm256_setzero_si256(), "v",
              _mm256_dpbusd_epi32(sum, x, y))
VECTOR_KERNEL(vnni_512, "avx512vnni", __m512i, __m512i, _mm512_setzero_si512(), "v", _mm512_dpbusd_epi32(sum, x, y))
VECTOR_KERNEL(bf16_256, "avx512bf16,avx512vl", __m256, __m256i, _mm256_setzero_ps(), "v",
              _mm256_dpbf16_ps(sum, (__m256bh)x, (__m256bh)y))
VECTOR_KERNEL(bf16_512, "avx512bf16", __m512, __m512i, _mm512_setzero_ps(), "v",
              _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y))

/* ---- Tiles ---- */

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, PRODUCTS = 4 };

/* How tiles are: palette 1, all of them whole. Source: Intel's Software Developer's Manual, volume 1, section 18.2. */
static const struct {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} whole_tiles = {.palette = 1,
                 .row_bytes = {ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES, ROW_BYTES},
                 .rows = {ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS}};

/* Four sums of tiles, of two tiles by two. */
#define TILE_KERNEL(name, features, product)                                                                           \
  __attribute__((target("amx-tile," features), noinline)) static void name(uint64_t steps) {                           \
    _tile_loadconfig(&whole_tiles);                                                                                    \
    _tile_zero(0);                                                                                                     \
    _tile_zero(1);                                                                                                     \
    _tile_zero(2);                                                                                                     \
    _tile_zero(3);                                                                                                     \
    _tile_zero(4);                                                                                                     \
    _tile_zero(5);                                                                                                     \
    _tile_zero(6);                                                                                                     \
    _tile_zero(7);                                                                                                     \
    for (; steps; steps--) {                                                                                           \
      product(0, 4, 6);                                                                                                \
      product(1, 4, 7);                                                                                                \
      product(2, 5, 6);                                                                                                \
      product(3, 5, 7);                                                                                                \
    }                                                                                                                  \
    _tile_release();                                                                                                   \
  }
TILE_KERNEL(amx_int8, "amx-int8", _tile_dpbssd)
TILE_KERNEL(amx_bf16, "amx-bf16", _tile_dpbf16ps)

/* Asks the kernel for the tiles, for this process and its threads to come; false: it refuses. Asking again changes
 * nothing.
 * Source: Linux, Documentation/arch/x86/xstate.rst. */
static bool ask_for_tiles(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

/* ---- The ways, the widest of a unit first ---- */

#define HAS(f) ((x86_set)1 << X86_##f)
static const struct way ways[] = {
    {JIT_UNIT_PAIRS, HAS(AVX512BW), 512, CHAINS * 64, pairs_512},
    {JIT_UNIT_PAIRS, HAS(AVX2), 256, CHAINS * 32, pairs_256},
    {JIT_UNIT_PAIRS, 0, 128, CHAINS * 16, pairs_128},
    {JIT_UNIT_VNNI, HAS(AVX512VNNI), 512, CHAINS * 128, vnni_512},
    {JIT_UNIT_VNNI, HAS(AVXVNNI), 256, CHAINS * 64, vnni_avx},
    {JIT_UNIT_VNNI, HAS(AVX512VNNI) | HAS(AVX512VL), 256, CHAINS * 64, vnni_256},
    {JIT_UNIT_BF16, HAS(AVX512BF16), 512, CHAINS * 64, bf16_512},
    {JIT_UNIT_BF16, HAS(AVX512BF16) | HAS(AVX512VL), 256, CHAINS * 32, bf16_256},
    {JIT_UNIT_AMX_INT8, HAS(AMX_INT8), 0, PRODUCTS * 2.0 * ROWS *ROWS *ROW_BYTES, amx_int8},
    {JIT_UNIT_AMX_BF16, HAS(AMX_BF16), 0, PRODUCTS * 2.0 * ROWS *ROWS *ROW_BYTES / 2, amx_bf16},
};

static const struct way *find_way(enum jit_unit unit, x86_set has, int vector_bits) {
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    if (ways[i].unit == unit && ways[i].vector_bits <= vector_bits && !(ways[i].needs & ~has)) return &ways[i];
  return NULL;
}
#else
static bool ask_for_tiles(void) { return false; }
static const struct way *find_way(enum jit_unit unit, x86_set has, int vector_bits) {
  (void)unit, (void)has, (void)vector_bits;
  return NULL;
}
#endif

bool jit_unit_is_here(enum jit_unit unit, const struct jit_target *target) {
  assert(unit < JIT_UNITS && target);
  const struct host *h = host_this();
  if (!h || target->gpu.arch || !jit_target_is_x86(target)) return false;
  const struct way *way = find_way(unit, target->x86 & h->has, target->vector_bits);
  return way && (way->vector_bits > 0 || ask_for_tiles());
}

/* ---- Measuring ---- */

enum { SAMPLES = 24, LEAST_STEPS = 1 << 10 };
#define SAMPLE_SECONDS 1e-3

struct work {
  unit_kernel *run;
  uint64_t steps;
  pthread_mutex_t gate; /* held until all threads were started, or one could not be */
  bool open;            /* all were */
  pthread_barrier_t barrier;
};
struct worker {
  struct work *work;
  pthread_t thread;
  double from[SAMPLES], to[SAMPLES];
};

static void *run_worker(void *data) {
  struct worker *w = data;
  pthread_mutex_lock(&w->work->gate);
  bool open = w->work->open;
  pthread_mutex_unlock(&w->work->gate);
  for (int s = 0; open && s < SAMPLES; s++) {
    pthread_barrier_wait(&w->work->barrier);
    w->from[s] = measure_now();
    w->work->run(w->work->steps);
    w->to[s] = measure_now();
  }
  return NULL;
}

/* The shortest time from the first thread's beginning to the last one's end. */
static double shortest(const struct worker *workers, int threads) {
  double least = 0;
  for (int s = 0; s < SAMPLES; s++) {
    double from = workers[0].from[s], to = workers[0].to[s];
    for (int t = 1; t < threads; t++) {
      if (workers[t].from[s] < from) from = workers[t].from[s];
      if (workers[t].to[s] > to) to = workers[t].to[s];
    }
    if (s == 0 || to - from < least) least = to - from;
  }
  return least;
}

/* Steps that take long enough to be timed. */
static uint64_t enough_steps(unit_kernel *run) {
  for (uint64_t steps = LEAST_STEPS;; steps *= 2) {
    double from = measure_now();
    run(steps);
    if (measure_now() - from >= SAMPLE_SECONDS / 2) return steps * 2;
  }
}

static int start_workers(struct worker *workers, int threads, struct work *work) {
  int failed = 0, made = 0;
  pthread_mutex_lock(&work->gate);
  while (made < threads) {
    workers[made].work = work;
    failed = pthread_create(&workers[made].thread, NULL, run_worker, &workers[made]);
    if (failed) break;
    made++;
  }
  work->open = !failed;
  pthread_mutex_unlock(&work->gate);
  for (int t = 0; t < made; t++) pthread_join(workers[t].thread, NULL);
  return failed;
}

double jit_unit_rate(enum jit_unit unit, int threads, int vector_bits, ms_error *err) {
  assert(unit < JIT_UNITS && threads > 0);
  const struct host *h = host_this();
  const struct way *way = h ? find_way(unit, h->has, vector_bits) : NULL;
  if (!way || (way->vector_bits == 0 && !ask_for_tiles())) {
    ms_fail(err, MS_UNKNOWN_TARGET, "this machine has no %s", units[unit].name);
    return 0;
  }
  struct worker *workers = calloc((size_t)threads, sizeof *workers);
  if (!workers) abort();
  struct work work = {.run = way->run, .steps = enough_steps(way->run), .gate = PTHREAD_MUTEX_INITIALIZER};
  int failed = pthread_barrier_init(&work.barrier, NULL, (unsigned)threads);
  if (!failed) {
    failed = start_workers(workers, threads, &work);
    pthread_barrier_destroy(&work.barrier);
  }
  double seconds = failed ? 0 : shortest(workers, threads);
  free(workers);
  if (failed)
    ms_fail(err, MS_NO_PROCESS, "could not start %d threads: %s; %s", threads, strerror(failed),
            process_remedy(failed));
  return seconds > 0 ? threads * way->operations * (double)work.steps / seconds : 0;
}
