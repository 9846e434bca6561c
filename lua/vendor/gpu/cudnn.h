/* cuDNN's graph API beside its older interface. Internal to lua. */
#ifndef MSCHED_LUA_VENDOR_CUDNN_H
#define MSCHED_LUA_VENDOR_CUDNN_H

#include "jit/jit.h"
#include "lua/vendor/vendor.h"

struct cudnn_graphs;
/* Of an open library and its handle; NULL: the library lacks a function of it, which *missing names. It stays. */
const struct cudnn_graphs *cudnn_graphs_find(void *library, void *handle, const char **missing);
/* Whether attention is what cuDNN has: short floats, all alike. */
bool cudnn_attends(const struct vendor_work *work);
/* The fastest plan of a convolution, or of attention, of all of its engines, both layouts and types of the result, made
 * ready to run: fills out. False: the graph API has none, and why says so. */
bool cudnn_graphs_prepare(const struct cudnn_graphs *graphs, const struct vendor_work *work, struct vendor_call *out,
                          char *why, size_t size);
/* Of a result that is computed in one type and wanted in another: struct vendor_call. */
static inline double cudnn_rounding(tir_type computed, tir_type wanted) {
  return computed == wanted ? 0 : tir_type_epsilon(computed) / 2;
}

#endif
