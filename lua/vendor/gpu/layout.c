/* Tensors of convolutions: dimensions in the order in which a library has them, and elements copied there and back. */
#include "layout.h"

#include <assert.h>
#include <string.h>

int64_t vendor_count(const struct vendor_tensor *t) {
  int64_t count = 1;
  for (int d = 0; d < t->rank; d++) count *= t->extents[d];
  return count;
}

size_t vendor_size(tir_type type) { return (size_t)tir_type_bits(type) / 8; }

int vendor_groups(const struct vendor_work *w) {
  const struct vendor_tensor *filter = &w->tensors[VENDOR_WEIGHTS];
  return filter->rank > w->tensors[VENDOR_SOURCE].rank ? (int)filter->extents[0] : 1;
}

/* The order of dimensions: those before `first`, a, then b before or after those of space. */
static void order_of(const struct vendor_tensor *t, int first, int a, int b, int layout, int *order) {
  int count = 0;
  assert(t->rank <= VENDOR_MOST_RANK && a != b && a >= first && b >= first);
  for (int d = 0; d < first; d++) order[count++] = d;
  order[count++] = a;
  if (layout == LAYOUT_CHANNELS_FIRST) order[count++] = b;
  for (int d = first + 2; d < t->rank; d++) order[count++] = d;
  if (layout == LAYOUT_CHANNELS_LAST) order[count++] = b;
  assert(count == t->rank); /* each dimension once */
}

/* Two channels' dimensions, then those of space, one of which is added where there is one alone. */
static int extents_of(const struct vendor_tensor *t, int first, int a, int b, int64_t extents[LAYOUT_MOST_RANK]) {
  int rank = 2;
  extents[0] = t->extents[a], extents[1] = t->extents[b];
  if (t->rank - first == 3) extents[rank++] = 1;
  for (int d = first + 2; d < t->rank; d++) extents[rank++] = t->extents[d];
  return rank;
}

void vendor_lay(const struct vendor_work *w, int which, int layout, tir_type type, struct vendor_laid *out) {
  const struct vendor_tensor *t = &w->tensors[which];
  bool is_filter = which == VENDOR_WEIGHTS, swapped = is_filter && w->op == VENDOR_TRANSPOSED;
  int first = is_filter && t->rank > w->tensors[VENDOR_SOURCE].rank, a = first + swapped, b = first + !swapped;
  bool last = layout == LAYOUT_CHANNELS_LAST;
  assert(t->rank - first >= 3 && t->rank - first <= LAYOUT_MOST_RANK);
  *out = (struct vendor_laid){.type = type};
  out->rank = extents_of(t, first, a, b, out->extents);
  if (first) out->extents[0] *= t->extents[0];
  order_of(t, first, a, b, layout, out->order);
  int64_t stride = last ? out->extents[1] : 1;
  for (int d = out->rank - 1; d >= 2; d--) out->strides[d] = stride, stride *= out->extents[d];
  out->strides[1] = last ? 1 : stride;
  out->strides[0] = last ? stride : stride * out->extents[1];
  assert(out->rank >= LAYOUT_LEAST_RANK && out->rank <= LAYOUT_MOST_RANK &&
         out->strides[0] * out->extents[0] == vendor_count(t)); /* without gaps */
}

static void copy_element(tir_type type, void *to, tir_type of, const void *from) {
  if (type == of)
    memcpy(to, from, vendor_size(of));
  else
    tir_put_element(type, to, tir_fetch_element(of, from));
}

void vendor_copy_laid(const struct vendor_tensor *t, const int *order, tir_type type, void *laid, bool back) {
  int64_t at[VENDOR_MOST_RANK] = {0}, from = 0, count = vendor_count(t);
  size_t size = vendor_size(type);
  for (int64_t i = 0; i < count; i++) {
    char *own = (char *)t->data + (size_t)from * vendor_size(t->type), *other = (char *)laid + (size_t)i * size;
    if (back)
      copy_element(t->type, own, type, other);
    else
      copy_element(type, other, t->type, own);
    for (int d = t->rank - 1; d >= 0; d--) {
      from += t->strides[order[d]];
      if (++at[d] < t->extents[order[d]]) break;
      from -= t->strides[order[d]] * t->extents[order[d]];
      at[d] = 0;
    }
  }
}

bool vendor_convolves(const struct vendor_work *w) {
  bool transposed = w->op == VENDOR_TRANSPOSED;
  const struct vendor_tensor *image = &w->tensors[transposed ? VENDOR_RESULT : VENDOR_SOURCE],
                             *slid = &w->tensors[transposed ? VENDOR_SOURCE : VENDOR_RESULT],
                             *filter = &w->tensors[VENDOR_WEIGHTS];
  if (image->rank < 3 || image->rank > LAYOUT_MOST_RANK || slid->rank != image->rank ||
      (filter->rank != image->rank && filter->rank != image->rank + 1))
    return false;
  for (int d = 0; d < image->rank - 2; d++) {
    int64_t taps = filter->extents[filter->rank - image->rank + 2 + d];
    int64_t room = image->extents[d + 2] + 2 * w->before[d] - w->dilation[d] * (taps - 1) - 1;
    if (room < 0 || room / w->stride[d] + 1 != slid->extents[d + 2]) return false;
  }
  return true;
}
