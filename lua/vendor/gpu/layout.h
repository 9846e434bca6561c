/* Tensors of convolutions as libraries have them: with channels first or last. Internal to lua. */
#ifndef MSCHED_LUA_VENDOR_LAYOUT_H
#define MSCHED_LUA_VENDOR_LAYOUT_H

#include "lua/vendor/vendor.h"

enum { LAYOUT_CHANNELS_FIRST, LAYOUT_CHANNELS_LAST, LAYOUTS }; /* as cudnnTensorFormat_t numbers them */
enum { LAYOUT_LEAST_RANK = 4, LAYOUT_MOST_RANK = 5 };

struct vendor_laid {
  tir_type type; /* of its elements there */
  int rank;      /* as the library sees it: two dimensions of channels, then two or three of space */
  int64_t extents[LAYOUT_MOST_RANK], strides[LAYOUT_MOST_RANK];
  int order[VENDOR_MOST_RANK]; /* the tensor's own dimensions, as they lie */
};

int64_t vendor_count(const struct vendor_tensor *t); /* of elements */
size_t vendor_size(tir_type type);                   /* bytes of one */
/* Of a convolution: the filter's groups, which lie before its other dimensions. */
int vendor_groups(const struct vendor_work *w);
/* A tensor of a convolution, which of the work's; where there is one dimension of space, one of extent 1 comes before
 * it. Channels that the filter is slid over come second: a transposed convolution's are the filter's outputs. */
void vendor_lay(const struct vendor_work *w, int which, int layout, tir_type type, struct vendor_laid *out);
/* Copies a tensor to where its elements, of a type, lie in the order of its dimensions, or back. */
void vendor_copy_laid(const struct vendor_tensor *t, const int *order, tir_type type, void *laid, bool back);

/* Whether the result is what a convolution of these extents gives, whose two sides are padded alike: what lies behind
 * matters only to how large the outcome is. */
bool vendor_convolves(const struct vendor_work *w);

#endif
