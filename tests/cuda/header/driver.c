/* What jit/cuda/device/driver.def says of CUDA's driver is what the header of CUDA says; this file is compiled, and
 * never run. */
#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

/* Not their alignment: functions ask for 64 bytes of a CUtensorMap's, which newer headers align by 128. */
#define DRIVER_TYPE(name, type)               _Static_assert(sizeof(name) == sizeof(type), #name);
#define DRIVER_NUMBER(name, number, original) _Static_assert((original) == (number), #original);
#define DRIVER_FUNCTION(field, symbol, parameters)                                                                     \
  _Static_assert(__builtin_types_compatible_p(CUresult(*) parameters, __typeof__(&symbol)), #symbol);
#define DRIVER_FAULT(result, name, code, words) _Static_assert(CUDA_ERROR_##name == (result), #name);
#include "../../../jit/cuda/device/driver.def"
