/* What lua/vendor/gpu/cudnn_graph.def says of cuDNN is what its header says; this file is compiled, and never run. */
#include <cudnn.h>
#include <stddef.h>
#include <stdint.h>

#define GRAPH_TYPE(name, type)               _Static_assert(sizeof(name) == sizeof(type), #name);
#define GRAPH_NUMBER(name, number, original) _Static_assert((int)(original) == (number), #original);
#define GRAPH_FUNCTION(field, symbol, parameters)                                                                      \
  _Static_assert(__builtin_types_compatible_p(cudnnStatus_t(*) parameters, __typeof__(&symbol)), #symbol);
#include "../../../lua/vendor/gpu/cudnn_graph.def"
