/* What lua/vendor/gpu/cublaslt.def says of cuBLASLt is what its header says; this file is compiled, and never run. */
#include <cublasLt.h>
#include <stddef.h>
#include <stdint.h>

#define LT_TYPE(name, ...)                typedef __VA_ARGS__ ours_##name;
#define LT_NUMBER(name, number, original) _Static_assert((original) == (number), #original);
#define LT_FUNCTION(field, symbol, parameters)                                                                         \
  _Static_assert(__builtin_types_compatible_p(cublasStatus_t(*) parameters, __typeof__(&symbol)), #symbol);
#include "../../../lua/vendor/gpu/cublaslt.def"

#define LT_TYPE(name, ...) _Static_assert(sizeof(name) == sizeof(ours_##name), #name);
#include "../../../lua/vendor/gpu/cublaslt.def"
#define SAME_PLACE(field)                                                                                              \
  _Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, field) ==                                                   \
                     offsetof(ours_cublasLtMatmulHeuristicResult_t, field),                                            \
                 #field);
SAME_PLACE(algo)
SAME_PLACE(workspaceSize)
SAME_PLACE(state)
SAME_PLACE(wavesCount)
