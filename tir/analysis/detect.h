/* Which regions a block reads and writes, found from what stands in it. Internal to tir. */
#ifndef MSCHED_TIR_DETECT_H
#define MSCHED_TIR_DETECT_H

#include "tir/tir.h"

/* Sets the block's reads, its writes or both to what its init and body touch: indices with the loops inside the block
 * run over their domains, buffers in order of appearance, each once with the smallest region known to hold all its
 * accesses. A block inside counts with its declared regions; buffers that the block itself allocates do not count; of a
 * block with an init, what it writes is not read. False, and nothing is changed, if a buffer from outside is used
 * through its pointer. Source: TensorIR's parser, whose results these are. */
bool tir_detect_regions(struct tir *ir, tir_block block, bool reads, bool writes);
/* Sets both likewise, whatever is used through its pointer: such a buffer counts as read and written, the whole of it,
 * after the others. */
void tir_renew_regions(struct tir *ir, tir_block block);

#endif
