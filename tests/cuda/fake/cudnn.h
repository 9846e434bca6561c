/* What the two interfaces of the tests' cuDNN share. */
#ifndef FAKE_CUDNN_H
#define FAKE_CUDNN_H

#include <stddef.h>

enum {
  SUCCESS,
  NOT_INITIALIZED = 1001,
  BAD_PARAM = 2000,
  NOT_SUPPORTED = 3000,
  NOT_THIS_GRAPH,
  EXECUTION_FAILED = 5000
};
enum { MOST = 5 };

struct tensor {
  int type, rank, extents[MOST], strides[MOST], layout;
};
struct convolution {
  int rank, before[MOST], stride[MOST], dilation[MOST], math, groups;
};

int fake_cudnn_is_told(const char *word);
void fake_cudnn_pass(double times, const void *in);
/* Bytes of an element of a cudnnDataType_t: float32, float16, bfloat16; 0: it is none of these. */
size_t fake_cudnn_size(int type);
/* x: what is slid over, y: where the filter stands; whether their extents belong together. */
int fake_cudnn_fit(const struct tensor *x, const struct tensor *w, const struct tensor *y, const struct convolution *c);
/* Adds in float32 to y, or, backward, to x, which is nothing before. */
void fake_cudnn_convolve(const struct tensor *x, void *x_data, const struct tensor *w, const void *w_data,
                         const struct tensor *y, void *y_data, const struct convolution *c, int backward);
size_t fake_cudnn_count(const struct tensor *t);

#endif
