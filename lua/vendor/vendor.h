/* Vendors' routines beside ours, for benchmarks: their libraries are opened at run time, where they are installed, and
 * their interfaces are declared here as far as they are used. Internal to lua. */
#ifndef MSCHED_LUA_VENDOR_H
#define MSCHED_LUA_VENDOR_H

#include "tir/tir.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jit_target;

enum vendor_operator {
  VENDOR_PRODUCT,     /* of matrices, or of batches of them: (batch), rows, columns */
  VENDOR_CONVOLUTION, /* image (n, channels, spatial…), filter ((groups), out, in, taps…) */
  VENDOR_TRANSPOSED,  /* the same two, transposed */
  VENDOR_SOFTMAX,     /* along the last dimension */
  VENDOR_NORM,        /* the root of the sum of squares, over the dimensions in which the result has extent 1 */
  VENDOR_ATTENTION,   /* queries, keys and values (batch, heads, rows, width): softmax(Q K^T x scale) V */
  VENDOR_OPERATORS,
};

enum { VENDOR_MOST_RANK = 12, VENDOR_MOST_SPATIAL = 3 };

/* Elements of float32; of float16 or bfloat16, or of int8 and uint8 with results of int32, for who takes them; strides
 * in elements. */
struct vendor_tensor {
  tir_type type;
  int rank;
  int64_t extents[VENDOR_MOST_RANK], strides[VENDOR_MOST_RANK];
  void *data;
};

enum { VENDOR_SOURCE, VENDOR_WEIGHTS, VENDOR_RESULT, VENDOR_TENSORS };

/* What is to be computed; softmax and norm have no weights (their rank is 0), attention has its keys there. */
struct vendor_work {
  enum vendor_operator op;
  struct vendor_tensor tensors[VENDOR_TENSORS];
  int64_t stride[VENDOR_MOST_SPATIAL], dilation[VENDOR_MOST_SPATIAL], before[VENDOR_MOST_SPATIAL],
      after[VENDOR_MOST_SPATIAL];
  struct vendor_tensor values; /* of attention, whose queries see the keys up to their own row where it is causal */
  double scale;
  bool causal;
  const struct jit_target *target; /* whose device runs it; NULL: this machine's processors */
};

/* A routine that is ready to run on the work's memory. */
struct vendor_call {
  void (*run)(void *data);
  void (*finish)(void *data); /* brings the result to where the work has it; NULL: it is there */
  void (*release)(void *data);
  void *data;
  /* On a device, in the place of `run`: to its end, on what the work's memory holds then; and the seconds of one of so
   * many in a row, on what the last run was given, below 0: one failed. */
  bool (*attempt)(void *data, ms_error *err);
  double (*sample)(void *data, uint32_t calls);
  double rounding;   /* of a result that is given in a shorter type than the tensor has: half a spacing at 1; else 0 */
  char routine[200]; /* what was taken of the library, in words; "": it has one routine for it */
};

struct vendor {
  const char *name, *library;
  /* Takes as many threads; gives what the other calls take, which stays for good, as the library does. NULL: it lacks
   * what is called, or does not start, and err says so. Of a device's: called where the device is this thread's. */
  void *(*start)(void *library, int threads, ms_error *err);
  void (*describe)(void *library, char *text, size_t size);
  /* False: the library has no routine for it. */
  bool (*prepare)(void *started, const struct vendor_work *work, struct vendor_call *out);
  bool short_floats, bytes; /* it takes them */
};

extern const struct vendor vendor_openblas;
extern const struct vendor vendor_onednn;       /* memory laid out as it chooses */
extern const struct vendor vendor_onednn_plain; /* as the tensors have it */
extern const struct vendor vendor_onednn_graph; /* attention, by its graph interface */
extern const struct vendor vendor_cublas;       /* on a GPU: products */
extern const struct vendor vendor_cublaslt;     /* on a GPU: products, by the fastest of its algorithms */
extern const struct vendor vendor_cudnn;        /* on a GPU: all others; laid out as it has them fastest */

/* oneDNN's version, in words. */
void onednn_describe(void *library, char *text, size_t size);

#endif
