/* A software pipeline while it is made (pipeline.c), and the versions of what it holds (multi_buffer.c). */
#ifndef MSCHED_TIR_PIPELINE_H
#define MSCHED_TIR_PIPELINE_H

#include "tir/analysis/loads.h"
#include "tir/lower/lower.h"

enum { PIPELINE_MOST = 64, PIPELINE_DEEPEST = 8, PIPELINE_WRITTEN_OUT = 16 };
enum {
  PIPELINE_READS = 1,
  PIPELINE_WRITES = 2,
  PIPELINE_COPIES = 4, /* by copies that go on by themselves */
  PIPELINE_BY_POINTER = 8,
  PIPELINE_BY_INDEX = 16,
  PIPELINE_TMA_COPIES = 32 /* by copies of boxes of tensors, which a barrier waits for */
};

struct part {
  tir_stmt stmt;   /* with its attribute */
  int64_t stage;   /* from 0 */
  uint32_t order;  /* its place in a step */
  bool doubles;    /* asks for two versions of what it writes, at least */
  bool async;      /* its stage is */
  bool copies;     /* by copies that go on by themselves */
  bool multiplies; /* by warp groups */
  int run;         /* of such statements: which */
  bool boxes;      /* by copies of boxes: `box` */
  struct lower_tma_copy box;
};

struct pipeline {
  struct lowering *low;
  tir_stmt loop;
  tir_var var;
  tir_expr min, extent;
  struct part parts[PIPELINE_MOST];
  uint32_t count, by_order[PIPELINE_MOST]; /* the part at each place */
  int64_t depth;                           /* the last stage */
  uint32_t runs;                           /* groups of copies in a step */
  int64_t in_flight;                       /* groups of products that an iteration leaves so */
  uint32_t buffers;                        /* that there may be */
  uint8_t *own;                            /* by buffer: the loop allocates it */
  uint8_t *uses;                           /* by part and buffer */
  uint32_t *versions;                      /* by buffer of its own */
  uint32_t arrivals;                       /* statements that copy boxes */
  tir_buffer phases;   /* barriers: one a version for boxes that arrive, one for what may be overwritten */
  uint32_t ring;       /* so many versions */
  tir_stmt made;       /* where one thread makes them */
  bool produces, lets; /* a warp group more copies; what it would copy depends on lets */
  bool frees;          /* who reads boxes tells when their version may be overwritten */
  tir_stmt producer;   /* the attribute of what it does */
  tir_stmt axes[3];    /* the loops of blocks, x first, where these do several tiles each */
  int64_t tiles;       /* of all of them */
  tir_var block, turn; /* then: which block, and the number of its tile; else TIR_NONE */
};

static inline uint8_t *uses_at(const struct pipeline *p, uint32_t part, tir_buffer buffer) {
  assert(part < p->count && buffer < p->buffers);
  return &p->uses[(size_t)part * p->buffers + buffer];
}
static inline unsigned uses_of(const struct pipeline *p, uint32_t part, tir_buffer buffer) {
  return *uses_at(p, part, buffer);
}

bool pipeline_refuse(const struct pipeline *p, const char *what);
/* Whether the loop's annotation is 1; none is as 0. False: refused as `what` says, being neither. */
bool pipeline_read_wish(const struct pipeline *p, const char *key, const char *what, bool *wish);
int64_t pipeline_wishes(const struct tir *ir, tir_stmt stage); /* bits of LOWER_STAGE_BY_REGISTERS … */
/* Another statement needs what the part copies to the buffer, and none that copies besides has to do with it. */
bool pipeline_is_for_others(const struct pipeline *p, uint32_t part, tir_buffer buffer);
tir_stmt pipeline_kernel(const struct pipeline *p);               /* that it stands in */
tir_expr pipeline_number(struct pipeline *p, tir_expr iteration); /* counted on from tile to tile */
void pipeline_find_uses(struct pipeline *p);
bool pipeline_check_order(const struct pipeline *p);
uint32_t pipeline_buffers_for(struct pipeline *p, tir_buffer buffer); /* that it needs */
bool pipeline_multi_buffer(struct pipeline *p); /* accesses name them, and allocations have room for them */
/* Copies of boxes (mbarrier.c). Finds what copies them, all of it in one stage; what asks for it and does not is noted.
 * False: refused. */
bool pipeline_find_tma_copies(struct pipeline *p);
void pipeline_find_ring(struct pipeline *p);      /* how many versions boxes have, and whether they are freed */
void pipeline_put_tma_copies(struct pipeline *p); /* in place of what threads would copy */
bool pipeline_needs_tma_copies(const struct pipeline *p, uint32_t part); /* it touches what boxes are copied to */
/* Appends, around what the part does in step t, the wait for its iteration's boxes, and that they may be overwritten. */
void pipeline_wait_for_tma_copies(struct pipeline *p, uint32_t part, tir_expr t, tir_expr condition, tir_stmt to);
void pipeline_free_tma_copies(struct pipeline *p, uint32_t part, tir_expr t, tir_expr condition, tir_stmt to);
/* A warp group more copies boxes (producer.c), if the annotation asks for it; where it may not, that is noted. False: refused. */
bool pipeline_find_producer(struct pipeline *p);
void pipeline_put_producer(
    struct pipeline *p); /* takes what copies out of the loop, to the kernel's start, with allocations */
/* Blocks do one tile after the other (persistent.c), if the annotation asks for so many; where they may not, that is noted. False:
 * refused. */
bool pipeline_find_turns(struct pipeline *p);
void pipeline_put_turns(struct pipeline *p);              /* around all that the kernel does, once it stands */
void pipeline_free_last(struct pipeline *p, tir_stmt to); /* what a tile's last products have read */
bool has_register_buffers(const struct pipeline *p);

#endif
