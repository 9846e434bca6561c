/* A software pipeline while its plan is carried out (pipeline.c). */
#ifndef MSCHED_TIR_PIPELINE_H
#define MSCHED_TIR_PIPELINE_H

#include "tir/analysis/loads.h"
#include "tir/lower/lower.h"

enum { PIPELINE_UNROLLED = 16 };
enum {
  PIPELINE_READS = TIR_STATEMENT_READS,
  PIPELINE_WRITES = TIR_STATEMENT_WRITES,
  PIPELINE_COPIES = 4, /* by asynchronous copies */
  PIPELINE_BY_POINTER = 8,
  PIPELINE_BY_INDEX = 16,
  PIPELINE_TMA_COPIES = 32 /* by TMA bulk tensor copies, which an mbarrier waits for */
};

/* A statement of the plan, as it is carried out. */
struct part {
  tir_stmt stmt; /* with its attribute */
  bool copies;   /* by asynchronous copies */
  int run;       /* of such statements: which */
  bool bulk;     /* by TMA bulk tensor copies: `copy` */
  struct lower_tma_copy copy;
  bool shared; /* with the other blocks of the cluster */
};

struct pipeline {
  struct lowering *low;
  tir_stmt loop;
  tir_var var;
  tir_expr min, extent;
  struct tir_pipeline_plan plan;
  struct part parts[TIR_PIPELINE_STATEMENTS];
  uint32_t by_order[TIR_PIPELINE_STATEMENTS]; /* the part at each place */
  uint32_t runs;                              /* groups of asynchronous copies in a step */
  uint32_t buffers;                           /* that there may be */
  uint8_t *own;                               /* by buffer: the loop allocates it */
  uint8_t *uses;                              /* by part and buffer */
  uint32_t *stage_buffers;                    /* by buffer of its own: how many it needs */
  uint32_t arrivals;                          /* statements that are TMA bulk tensor copies */
  tir_buffer mbarriers;                       /* a ring of full ones, and one of empty ones where the plan frees */
  tir_stmt made;                              /* where one thread initializes them */
  tir_stmt producer;                          /* the attribute of what the producer does */
  tir_stmt axes[3];                           /* the loops of blocks, x first, where blocks are persistent */
  int64_t tiles;                              /* of all of them */
  tir_stmt along_x;                           /* the loop of blocks along x, of which a cluster's are neighbours */
  tir_expr rank;                              /* of the block in its cluster, where copies are multicast */
  tir_var block, turn;                        /* then: which block, and the number of its tile; else TIR_NONE */
};

static inline uint8_t *uses_at(const struct pipeline *p, uint32_t part, tir_buffer buffer) {
  assert(part < p->plan.count && buffer < p->buffers);
  return &p->uses[(size_t)part * p->buffers + buffer];
}
static inline unsigned uses_of(const struct pipeline *p, uint32_t part, tir_buffer buffer) {
  return *uses_at(p, part, buffer);
}

bool pipeline_refuse(const struct pipeline *p, const char *what);
int64_t pipeline_requests(const struct tir *ir, tir_stmt stage); /* bits of TIR_STATEMENT_BY_REGISTERS … */
/* Another statement needs what the part copies to the buffer, and none that copies besides has to do with it. */
bool pipeline_is_for_others(const struct pipeline *p, uint32_t part, tir_buffer buffer);
tir_stmt pipeline_kernel(const struct pipeline *p);               /* that it stands in */
tir_expr pipeline_number(struct pipeline *p, tir_expr iteration); /* counted on from tile to tile */
void pipeline_find_uses(struct pipeline *p);
bool pipeline_check_order(const struct pipeline *p);
uint32_t pipeline_buffers_for(struct pipeline *p, tir_buffer buffer); /* that it needs */
bool pipeline_multi_buffer(struct pipeline *p); /* accesses name stage buffers, and allocations have room for them */
/* TMA bulk tensor copies (mbarrier.c): finds those that are planned, all in one stage; what is none is noted. */
void pipeline_find_tma_copies(struct pipeline *p);
void pipeline_find_ring(struct pipeline *p);      /* how many stage buffers they fill, and whether these are freed */
void pipeline_put_tma_copies(struct pipeline *p); /* in place of what threads would copy */
bool pipeline_needs_tma_copies(const struct pipeline *p, uint32_t part); /* it touches what they fill */
/* Appends, around what the part does in step t, the wait for its iteration's copies, and that their stage buffer is
 * empty. */
void pipeline_wait_for_tma_copies(struct pipeline *p, uint32_t part, tir_expr t, tir_expr condition, tir_stmt to);
void pipeline_free_tma_copies(struct pipeline *p, uint32_t part, tir_expr t, tir_expr condition, tir_stmt to);
/* Grants the producer warp group that is planned (producer.c), or notes why there is none. */
void pipeline_find_producer(struct pipeline *p);
void pipeline_put_producer(
    struct pipeline *p); /* takes what copies out of the loop, to the kernel's start, with allocations */
/* Grants the persistent blocks that are planned (persistent.c), or notes why there are none. */
void pipeline_find_tiles(struct pipeline *p);
void pipeline_put_tiles(struct pipeline *p);              /* around all that the kernel does, once it stands */
void pipeline_free_last(struct pipeline *p, tir_stmt to); /* what a tile's last products have read */
/* Grants the cluster that is planned (multicast.c), or notes why there is none. */
void pipeline_find_cluster(struct pipeline *p);
struct lower_tma_copy pipeline_own_part(struct pipeline *p, uint32_t part); /* of what it copies; or all of it */
bool has_register_buffers(const struct pipeline *p);

#endif
