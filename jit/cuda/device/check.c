/* Filling and comparing on CUDA's devices: what kernels compute on is made where it lies, and what they leave is
 * compared there. The numbers are those of tir_make_arguments and tir_make_real_arguments, bit for bit; the rule is
 * that of tir_same_arguments. Each block of threads leaves what it found, which the host adds up. */
#include "driver.h"
#include "jit/cuda/cuda.h"
#include "jit/cuda/nvrtc.h"
#include "jit/measure/arrange_threads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, MOST_BLOCKS = 1024, EACH = 16 /* elements of a thread, where there are fewer blocks */ };

/* How elements lie in memory: integers by their bytes, then floats. */
enum layout { BYTES_1, BYTES_2, BYTES_4, BYTES_8, HALF, BRAIN, SINGLE, DOUBLE, E4M3, E5M2 };

struct found { /* as the kernel has it */
  uint64_t differing, nans, first, most, fractions;
  double off, largest;
};

/* Names begin with what no function's kernel is called. */
static const char source[] =
    "// what fills and compares arguments, ms_check\n"
    "typedef unsigned long long ms_u64;\n"
    "__device__ static ms_u64 ms_check_drawn(ms_u64 base, ms_u64 number) {\n"
    "  ms_u64 x = base + (number + 1) * 0x9E3779B97F4A7C15ull;\n"
    "  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;\n"
    "  x = (x ^ x >> 27) * 0x94D049BB133111EBull;\n"
    "  return x ^ x >> 31;\n"
    "}\n"
    "template <class T, class U> __device__ static T ms_check_as(U x) {\n"
    "  union { U from; T to; } both;\n"
    "  both.from = x;\n"
    "  return both.to;\n"
    "}\n"
    "__device__ static double ms_check_half(unsigned short h) {\n"
    "  unsigned sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;\n"
    "  if (rest >= 0x7c00u) return ms_check_as<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);\n"
    "  float x = ms_check_as<float>(rest << 13) * 5192296858534827628530496329220096.0f;\n"
    "  return sign ? -x : x;\n"
    "}\n"
    "__device__ static double ms_check_byte(int layout, unsigned b) {\n"
    "  unsigned size = b & 0x7fu;\n"
    "  float x = layout == 8 ? ms_check_as<float>(size << 20) * 1329227995784915872903807060280344576.0f\n"
    "                        : ms_check_as<float>(size << 21) * 5192296858534827628530496329220096.0f;\n"
    "  if (layout == 8 ? size == 0x7fu : size >= 0x7cu) x = ms_check_as<float>(0x7f800000u | size << 21);\n"
    "  return b & 0x80u ? -x : x;\n"
    "}\n"
    "__device__ static double ms_check_float(int layout, const void *at, ms_u64 i) {\n"
    "  switch (layout) {\n"
    "  case 4: return ms_check_half(((const unsigned short *)at)[i]);\n"
    "  case 5: return ms_check_as<float>((unsigned)((const unsigned short *)at)[i] << 16);\n"
    "  case 6: return ((const float *)at)[i];\n"
    "  case 8: case 9: return ms_check_byte(layout, ((const unsigned char *)at)[i]);\n"
    "  default: return ((const double *)at)[i];\n"
    "  }\n"
    "}\n"
    "__device__ static ms_u64 ms_check_bits(int layout, const void *at, ms_u64 i) {\n"
    "  switch (layout) {\n"
    "  case 0: case 8: case 9: return ((const unsigned char *)at)[i];\n"
    "  case 1: case 4: case 5: return ((const unsigned short *)at)[i];\n"
    "  case 2: case 6: return ((const unsigned *)at)[i];\n"
    "  default: return ((const ms_u64 *)at)[i];\n"
    "  }\n"
    "}\n"
    "// A number that is none of the smallest nor of the largest of a short type, rounded to it: ties to even.\n"
    "__device__ static unsigned short ms_check_short(double x, int exponent_bits, int mantissa_bits) {\n"
    "  ms_u64 bits = ms_check_as<ms_u64>(x), magnitude = bits & 0x7fffffffffffffffull;\n"
    "  unsigned short sign = (unsigned short)(bits >> 63 << (exponent_bits + mantissa_bits));\n"
    "  if (!magnitude) return sign;\n"
    "  int cut = 52 - mantissa_bits;\n"
    "  magnitude -= (ms_u64)(1023 - ((1 << (exponent_bits - 1)) - 1)) << 52;\n"
    "  magnitude += ((ms_u64)1 << (cut - 1)) - 1 + (magnitude >> cut & 1);\n"
    "  return (unsigned short)(sign | (unsigned short)(magnitude >> cut));\n"
    "}\n"
    "__device__ static ms_u64 ms_check_encoded(int layout, double x) {\n"
    "  switch (layout) {\n"
    "  case 4: return ms_check_short(x, 5, 10);\n"
    "  case 5: return ms_check_short(x, 8, 7);\n"
    "  case 6: return ms_check_as<unsigned>((float)x);\n"
    "  case 8: return ms_check_short(x, 4, 3);\n"
    "  case 9: return ms_check_short(x, 5, 2);\n"
    "  default: return ms_check_as<ms_u64>(x);\n"
    "  }\n"
    "}\n"
    "__device__ static double ms_check_real(ms_u64 drawn) {\n"
    "  double x = 0.125 + 0.875 * (double)(drawn >> 12) * 2.220446049250313e-16;\n"
    "  return drawn & 1 ? x : -x;\n"
    "}\n"
    "// The bits of an element as it is filled.\n"
    "__device__ static ms_u64 ms_check_made(int layout, int real, ms_u64 base, ms_u64 count, long long first, ms_u64 "
    "i) {\n"
    "  ms_u64 drawn = ms_check_drawn(base, i);\n"
    "  if (layout >= 4 && real) return ms_check_encoded(layout, ms_check_real(drawn));\n"
    "  long long x = (long long)(drawn % count) + first;\n"
    "  if (layout >= 4) return ms_check_encoded(layout, (double)x);\n"
    "  return layout == 3 ? (ms_u64)x : (ms_u64)x & (((ms_u64)1 << (8 << layout)) - 1);\n"
    "}\n"
    "__device__ static void ms_check_put(int layout, void *at, ms_u64 i, ms_u64 bits) {\n"
    "  switch (layout) {\n"
    "  case 0: case 8: case 9: ((unsigned char *)at)[i] = (unsigned char)bits; break;\n"
    "  case 1: case 4: case 5: ((unsigned short *)at)[i] = (unsigned short)bits; break;\n"
    "  case 2: case 6: ((unsigned *)at)[i] = (unsigned)bits; break;\n"
    "  default: ((ms_u64 *)at)[i] = bits;\n"
    "  }\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(256) ms_check_fill(void *at, int layout, ms_u64 elements, ms_u64 "
    "step,\n"
    "    ms_u64 base, ms_u64 count, long long first, int how, double nudge) {\n"
    "  for (ms_u64 i = (ms_u64)blockIdx.x * 256 + threadIdx.x; i < elements; i += step) {\n"
    "    ms_u64 bits = how == 2 ? ms_check_encoded(layout, ms_check_float(layout, at, i) *\n"
    "                                 (1 + nudge * ms_check_real(ms_check_drawn(base, i))))\n"
    "                           : ms_check_made(layout, how, base, count, first, i);\n"
    "    ms_check_put(layout, at, i, bits);\n"
    "  }\n"
    "}\n"
    "struct ms_check_found { ms_u64 differing, nans, first, most, fractions; double off, largest; };\n"
    "__device__ static void ms_check_note(ms_check_found *f, ms_u64 i, double off, int allowed) {\n"
    "  if (!allowed) {\n"
    "    f->differing++;\n"
    "    if (i < f->first) f->first = i;\n"
    "  }\n"
    "  if (off > f->off || (off == f->off && i < f->most)) { f->off = off; f->most = i; }\n"
    "}\n"
    "// Where nothing is expected, it is what filling makes: the same bits.\n"
    "extern \"C\" __global__ void __launch_bounds__(256) ms_check_compare(const void *expected, const void *actual,\n"
    "    int layout, ms_u64 elements, ms_u64 step, double slack, double whole_below, ms_u64 base, ms_u64 count, long "
    "long first, "
    "int real,\n"
    "    ms_check_found *out) {\n"
    "  __shared__ ms_check_found all[256];\n"
    "  const double infinity = ms_check_as<double>(0x7ff0000000000000ull);\n"
    "  ms_check_found f = {0, 0, ~0ull, ~0ull, 0, 0, 0};\n"
    "  for (ms_u64 i = (ms_u64)blockIdx.x * 256 + threadIdx.x; i < elements; i += step) {\n"
    "    if (!expected) {\n"
    "      if (ms_check_bits(layout, actual, i) != ms_check_made(layout, real, base, count, first, i))\n"
    "        ms_check_note(&f, i, infinity, 0);\n"
    "      continue;\n"
    "    }\n"
    "    if (layout < 4) {\n"
    "      if (ms_check_bits(layout, expected, i) != ms_check_bits(layout, actual, i)) ms_check_note(&f, i, infinity, "
    "0);\n"
    "      continue;\n"
    "    }\n"
    "    double x = ms_check_float(layout, expected, i), y = ms_check_float(layout, actual, i);\n"
    "    double size = x < 0 ? -x : x, off = x < y ? y - x : x - y;\n"
    "    int finite = x - x == 0;\n"
    "    if (finite && size > f.largest) f.largest = size;\n"
    "    if (!(finite && x == floor(x) && size < whole_below)) f.fractions++;\n"
    "    if (x == y || (x != x && y != y)) continue;\n"
    "    if (y != y) f.nans++;\n"
    "    if (!(finite && y - y == 0)) off = infinity;\n"
    "    ms_check_note(&f, i, off, x == x && y == y && off <= slack);\n"
    "  }\n"
    "  all[threadIdx.x] = f;\n"
    "  __syncthreads();\n"
    "  if (threadIdx.x) return;\n"
    "  for (int t = 1; t < 256; t++) {\n"
    "    ms_check_found g = all[t];\n"
    "    f.differing += g.differing, f.nans += g.nans, f.fractions += g.fractions;\n"
    "    if (g.first < f.first) f.first = g.first;\n"
    "    if (g.largest > f.largest) f.largest = g.largest;\n"
    "    if (g.off > f.off || (g.off == f.off && g.most < f.most)) { f.off = g.off; f.most = g.most; }\n"
    "  }\n"
    "  out[blockIdx.x] = f;\n"
    "}\n";

static void *compile(const struct jit_target *target, size_t *bytes, ms_error *err) {
  struct nvrtc_code made;
  void *out = NULL;
  if (nvrtc_compile(source, target, true, false, &made, err)) {
    if (!(out = malloc(made.size + 1))) abort();
    memcpy(out, made.bytes, *bytes = made.size);
    ((char *)out)[made.size] = 0;
  }
  nvrtc_code_free(&made);
  return out;
}

struct jit_checker {
  struct jit_device *device;
  void *module, *fill, *compare;
  uint64_t found; /* of every block, on the device */
};

static const struct driver *driver_of(const struct jit_checker *c) { return c->device->driver; }

static void close_checker(struct jit_checker *c) {
  if (!c) return;
  if (driver_enter(c->device, NULL)) {
    if (c->found) driver_of(c)->release(c->found);
    if (c->module) driver_of(c)->unload(c->module);
  }
  free(c);
}

static struct jit_checker *open_checker(struct jit_device *device, const void *code, ms_error *err) {
  const struct driver *d = device->driver;
  struct jit_checker *c = calloc(1, sizeof *c);
  if (!c) abort();
  c->device = device;
  if (driver_enter(device, err) && driver_check(d->load(&c->module, code), "loading what compares", err) &&
      driver_check(d->function(&c->fill, c->module, "ms_check_fill"), "ms_check_fill", err) &&
      driver_check(d->function(&c->compare, c->module, "ms_check_compare"), "ms_check_compare", err) &&
      driver_check(d->allocate(&c->found, MOST_BLOCKS * sizeof(struct found)), "memory to compare with", err))
    return c;
  close_checker(c);
  return NULL;
}

static enum layout layout_of(tir_type type) {
  int bits = tir_type_bits(type);
  if (tir_type_is_byte(type)) return tir_type_code(type) == TIR_E4M3 ? E4M3 : E5M2;
  if (tir_type_is_float(type))
    return bits == 64 ? DOUBLE : bits == 32 ? SINGLE : tir_type_code(type) == TIR_BFLOAT ? BRAIN : HALF;
  return bits <= 8 ? BYTES_1 : bits == 16 ? BYTES_2 : bits == 32 ? BYTES_4 : BYTES_8;
}

static unsigned blocks_for(uint64_t elements) {
  uint64_t blocks = (elements + THREADS * EACH - 1) / (THREADS * EACH);
  return blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks ? (unsigned)blocks : 1;
}

static bool launch(const struct jit_checker *c, void *function, unsigned blocks, void **operands, ms_error *err) {
  return driver_check(driver_of(c)->launch(function, blocks, 1, 1, THREADS, 1, 1, 0, NULL, operands, NULL),
                      "filling and comparing", err);
}

/* Where a stream begins; tir_drawn. */
static uint64_t base_of(uint64_t seed, uint64_t stream) { return seed + stream * 0xD1B54A32D192ED03u; }

static bool fill(const struct jit_checker *c, void *at, const struct jit_contents *x, enum jit_filling how,
                 ms_error *err) {
  int layout = (int)layout_of(x->type), real = (int)how;
  struct tir_draws draws;
  uint64_t elements = x->elements, base = base_of(x->seed + (how == JIT_FILL_NUDGED), x->stream);
  double nudge = 4 * (tir_type_bits(x->type) == 64 ? 0x1p-52 : 0x1p-23);
  bool known = tir_draws_of(x->type, &draws);
  assert(known && at);
  (void)known;
  unsigned blocks = blocks_for(elements);
  uint64_t step = (uint64_t)blocks * THREADS;
  if (!elements || (how == JIT_FILL_NUDGED && layout != SINGLE && layout != DOUBLE)) return true;
  void *operands[] = {&at, &layout, &elements, &step, &base, &draws.count, &draws.first, &real, &nudge};
  return driver_enter(c->device, err) && launch(c, c->fill, blocks, operands, err);
}

/* Beneath it a float holds every whole number, and halves; tir_whole_tolerance. Integers are not asked. */
static double whole_below_of(tir_type type) { return tir_type_is_float(type) ? 1 / tir_type_epsilon(type) : 0; }

static void add_up(const struct found *f, unsigned blocks, struct jit_difference *out) {
  *out = (struct jit_difference){.first = UINT64_MAX, .most = UINT64_MAX};
  for (unsigned i = 0; i < blocks; i++) {
    out->elements += f[i].differing, out->nans += f[i].nans, out->fractions += f[i].fractions;
    out->largest = fmax(out->largest, f[i].largest);
    if (f[i].first < out->first) out->first = f[i].first;
    if (f[i].off > out->off || (f[i].off == out->off && f[i].most < out->most))
      out->off = f[i].off, out->most = f[i].most;
  }
}

static bool compare(const struct jit_checker *c, const void *expected, const void *actual, const struct jit_contents *x,
                    double slack, struct jit_difference *out, ms_error *err) {
  struct found found[MOST_BLOCKS];
  struct tir_draws draws;
  int layout = (int)layout_of(x->type), real = x->real;
  uint64_t elements = x->elements, base = base_of(x->seed, x->stream), at = c->found;
  double whole_below = whole_below_of(x->type);
  unsigned blocks = blocks_for(elements);
  uint64_t step = (uint64_t)blocks * THREADS;
  bool known = tir_draws_of(x->type, &draws);
  assert(known && slack >= 0);
  (void)known;
  void *operands[] = {&expected,    &actual, &layout,      &elements,    &step, &slack,
                      &whole_below, &base,   &draws.count, &draws.first, &real, &at};
  if (!driver_enter(c->device, err) || !launch(c, c->compare, blocks, operands, err) ||
      !driver_check(driver_of(c)->download(found, c->found, blocks * sizeof *found), "comparing", err))
    return false;
  add_up(found, blocks, out);
  return true;
}

const struct jit_checks cuda_checks = {.compile = compile,
                                       .open = open_checker,
                                       .close = close_checker,
                                       .fill = fill,
                                       .compare = compare,
                                       .arrange = jit_arrange_threads};
