/* What CUDA's source needs to be C++ of a CPU, whose compiler includes this before the source. Each snippet of PTX is a
 * function of its own there, MS_PTX(type, name, parameters); what it does stands here under its name. Headers are C's
 * alone: -nostdinc++; C++'s take longer than a kernel. */
#include "fibers.h"
#include "products.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
/* Kernels of clusters stand in a section of their own, by which they are known. */
#define __cluster_dims__(x, y, z) __attribute__((section("shim_clusters_" #x)))
#define __align__(bytes)          __attribute__((aligned(bytes)))
#define __shared__                thread_local /* one a block: its fibers are of one thread */

extern "C" {
extern thread_local unsigned char ms_shared[];
}

/* ---- PTX ---- */

[[maybe_unused]] static size_t __cvta_generic_to_shared(const void *at) { return (size_t)at; }
#define MS_PTX(type, name, parameters) [[maybe_unused]] static type name##_by_ptx parameters
[[maybe_unused]] static float ms_of_half_f32(uint32_t bits) { return fibers_of_half((uint16_t)bits); }
[[maybe_unused]] static uint32_t ms_to_half_f32(float x) { return fibers_to_half(x); }
[[maybe_unused]] static float ms_cvt_f32_e4m3(uint32_t bits) { return fibers_of_byte((uint8_t)bits, true); }
[[maybe_unused]] static uint32_t ms_cvt_e4m3_f32(float x) { return fibers_to_byte(x, true); }
[[maybe_unused]] static uint32_t ms_cvt_e5m2_f32(float x) { return fibers_to_byte(x, false); }
#define SHIM_PAIR_OF_BYTES(format, is_e4m3)                                                                            \
  [[maybe_unused]] static float ms_##format##_lower(uint32_t pair) { return fibers_of_byte((uint8_t)pair, is_e4m3); }  \
  [[maybe_unused]] static float ms_##format##_upper(uint32_t pair) {                                                   \
    return fibers_of_byte((uint8_t)(pair >> 8), is_e4m3);                                                              \
  }                                                                                                                    \
  [[maybe_unused]] static uint32_t ms_pack_##format(float low, float high) {                                           \
    return fibers_to_byte(low, is_e4m3) | (uint32_t)fibers_to_byte(high, is_e4m3) << 8;                                \
  }
SHIM_PAIR_OF_BYTES(e4m3, true)
SHIM_PAIR_OF_BYTES(e5m2, false)
[[maybe_unused]] static float ms_keep_f32(float x) { return x; }
[[maybe_unused]] static double ms_keep_f64(double x) { return x; }

/* dp4a: the bytes of either operand are signed or not. */
template <class A, class B> static uint32_t shim_dot(uint32_t a, uint32_t b, uint32_t sum) {
  for (int i = 0; i < 32; i += 8) sum += (uint32_t)((int32_t)(A)(a >> i) * (int32_t)(B)(b >> i));
  return sum;
}
[[maybe_unused]] static uint32_t ms_dp4a_s32_s32(uint32_t a, uint32_t b, uint32_t c) {
  return shim_dot<int8_t, int8_t>(a, b, c);
}
[[maybe_unused]] static uint32_t ms_dp4a_s32_u32(uint32_t a, uint32_t b, uint32_t c) {
  return shim_dot<int8_t, uint8_t>(a, b, c);
}
[[maybe_unused]] static uint32_t ms_dp4a_u32_s32(uint32_t a, uint32_t b, uint32_t c) {
  return shim_dot<uint8_t, int8_t>(a, b, c);
}
[[maybe_unused]] static uint32_t ms_dp4a_u32_u32(uint32_t a, uint32_t b, uint32_t c) {
  return shim_dot<uint8_t, uint8_t>(a, b, c);
}

#define SHIM_COPY(width)                                                                                               \
  [[maybe_unused]] static void ms_copy_##width(uint32_t to, const void *from, uint32_t bytes) {                        \
    fibers_copy((void *)fibers_shared_at(to), from, bytes, width);                                                     \
  }
SHIM_COPY(4)
SHIM_COPY(8)
SHIM_COPY(16)
[[maybe_unused]] static void ms_copy_commit(void) { fibers_commit(); }
[[maybe_unused]] static void ms_copy_wait(int left) { fibers_wait(left); }

#include "shim_wmma.h"

#include "shim_mma.h"

#include "shim_wgmma.h"

#include "shim_tma_copy.h"

#include "shim_pairs.h"

#include "shim_stores.h"

#include "shim_banks.h"

/* ---- What nvcc knows without headers ---- */

#define __syncthreads()      (shim_check_loads(), fibers_barrier(__LINE__))
#define __shfl_xor_sync(...) shim_shuffle(__LINE__, __VA_ARGS__)
#define __trap()             fibers_fail("an assertion of the kernel failed")

template <class T> static T shim_shuffle(int line, uint32_t mask, T value, int distance, int width = 32) {
  uint64_t bits = 0;
  static_assert(sizeof value >= 4 && sizeof value <= sizeof bits, "a GPU shuffles registers");
  memcpy(&bits, &value, sizeof value);
  bits = fibers_shuffle(mask, bits, distance, width, line);
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Vectors begin at multiples of their size. A compiler that copies them as bytes may not ask. */
template <class V> static const V *shim_even(const V *at) {
  if ((size_t)at % alignof(V) != 0) __builtin_trap();
  return at;
}
#define SHIM_IS_COPIED(V)                                                                                              \
  V() = default;                                                                                                       \
  V(const V &from) { memcpy((void *)this, shim_even(&from), sizeof from); }                                            \
  V &operator=(const V &from) {                                                                                        \
    memmove((void *)shim_even(this), shim_even(&from), sizeof from);                                                   \
    return *this;                                                                                                      \
  }
struct __attribute__((aligned(8))) uint2 {
  unsigned x, y;
  SHIM_IS_COPIED(uint2)
  uint2(unsigned x, unsigned y) : x(x), y(y) {}
};
struct __attribute__((aligned(8))) int2 {
  int32_t x, y;
  SHIM_IS_COPIED(int2)
  int2(int32_t x, int32_t y) : x(x), y(y) {}
};
struct __attribute__((aligned(8))) float2 {
  float x, y;
  SHIM_IS_COPIED(float2)
  float2(float x, float y) : x(x), y(y) {}
};
struct __attribute__((aligned(16))) uint4 {
  unsigned x, y, z, w;
  SHIM_IS_COPIED(uint4)
  uint4(unsigned x, unsigned y, unsigned z, unsigned w) : x(x), y(y), z(z), w(w) {}
};
struct __attribute__((aligned(16))) float4 {
  float x, y, z, w;
  SHIM_IS_COPIED(float4)
  float4(float x, float y, float z, float w) : x(x), y(y), z(z), w(w) {}
};
struct __attribute__((aligned(16))) double2 {
  double x, y;
  SHIM_IS_COPIED(double2)
  double2(double x, double y) : x(x), y(y) {}
};

static inline float __int_as_float(int bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
[[maybe_unused]] static uint32_t __float_as_uint(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline double __longlong_as_double(long long bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline int __popcll(uint64_t x) { return __builtin_popcountll(x); }
static inline int __clzll(long long x) { return x ? __builtin_clzll((uint64_t)x) : 64; }
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }

/* ---- What launches kernels ---- */

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
typedef void *cudaStream_t;
enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
template <class F> static int cudaFuncSetAttribute(F *, int, int) { return 0; }
static int shim_error;
[[maybe_unused]] static int cudaGetLastError() { return shim_error; }

template <class... P> struct shim_call {
  void (*kernel)(P...);
  void **args;
};
/* 0 to count - 1. */
template <class T, T... I> struct shim_indices {};
#ifdef __clang__
#define SHIM_INDICES(count) __make_integer_seq<shim_indices, size_t, count>
#else
#define SHIM_INDICES(count) shim_indices<size_t, __integer_pack(count)...>
#endif
template <class... P, size_t... I> static void shim_apply(shim_call<P...> *call, shim_indices<size_t, I...>) {
  call->kernel(*(P *)call->args[I]...);
}
template <class... P> static void shim_thread(void *data) {
  shim_apply((shim_call<P...> *)data, SHIM_INDICES(sizeof...(P))());
  shim_check_loads();
}

static thread_local char shim_own; /* names the memory that is thread-local here */

#define SHIM_CLUSTERS(blocks)                                                                                          \
  extern "C" char __start_shim_clusters_##blocks[] __attribute__((weak, visibility("hidden")));                        \
  extern "C" char __stop_shim_clusters_##blocks[] __attribute__((weak, visibility("hidden")));
#define SHIM_IS_IN(at, blocks) (at >= __start_shim_clusters_##blocks && at < __stop_shim_clusters_##blocks)
SHIM_CLUSTERS(2)
SHIM_CLUSTERS(4)
SHIM_CLUSTERS(8)
static inline unsigned shim_cluster_of(const char *kernel) {
  return SHIM_IS_IN(kernel, 2) ? 2 : SHIM_IS_IN(kernel, 4) ? 4 : SHIM_IS_IN(kernel, 8) ? 8 : 1;
}

template <class... P>
static int cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void **args, size_t bytes, cudaStream_t) {
  shim_call<P...> call = {kernel, args};
  struct fibers_launch launch = {{grid.x, grid.y, grid.z},
                                 {block.x, block.y, block.z},
                                 shim_cluster_of((const char *)kernel),
                                 bytes,
                                 &shim_own,
                                 shim_thread<P...>,
                                 &call};
  return shim_error = fibers_launch(&launch);
}

/* ---- What NVRTC does not know, and other compilers do ---- */

#pragma GCC poison __builtin_inf __builtin_inff __builtin_huge_val __builtin_huge_valf __builtin_nan __builtin_nanf
#pragma GCC poison __builtin_popcountll __builtin_clzll __builtin_convertvector __builtin_isnan __builtin_isinf
#pragma GCC poison INFINITY NAN HUGE_VAL HUGE_VALF

/* Snippets of PTX are called by other names above, but a compiler may read them: `asm (…)`, `asm volatile (…)`. */
#define asm(...)
#define volatile(...) ("")
