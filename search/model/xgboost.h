/* xgboost, whose library is opened when trees are first grown. Internal to search. */
#ifndef MSCHED_SEARCH_XGBOOST_H
#define MSCHED_SEARCH_XGBOOST_H

#include "tir/tir.h"

#include <xgboost/c_api.h>

/* Its functions, by their names in the library: what is called stands here. */
#define XGBOOST_FUNCTIONS(FUNCTION)                                                                                    \
  FUNCTION(XGBGetLastError)                                                                                            \
  FUNCTION(XGBoosterBoostOneIter)                                                                                      \
  FUNCTION(XGBoosterCreate)                                                                                            \
  FUNCTION(XGBoosterFree)                                                                                              \
  FUNCTION(XGBoosterPredict)                                                                                           \
  FUNCTION(XGBoosterSaveModelToBuffer)                                                                                 \
  FUNCTION(XGBoosterSetParam)                                                                                          \
  FUNCTION(XGDMatrixFree)                                                                                              \
  FUNCTION(XGProxyDMatrixCreate)                                                                                       \
  FUNCTION(XGProxyDMatrixSetDataDense)                                                                                 \
  FUNCTION(XGQuantileDMatrixCreateFromCallback)

struct xgboost {
#define FUNCTION(name) __typeof__(name) *name;
  XGBOOST_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* Opens the library, once a process; any thread. NULL: it is missing, or lacks a function, and err says what to
 * install. */
const struct xgboost *xgboost_find(ms_error *err);

#endif
