#define _GNU_SOURCE
#include "fibers.h"

#include "banks.h"
#include "context.h"
#include "products.h"

#include <assert.h>
#include <link.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  WARP = 32,
  MOST_THREADS = FIBERS_MOST_THREADS,
  STACK = 256 << 10,
  GUARD = 64 << 10,
  SHARED = 232448,
  PAST_SHARED = 256
};

struct copy {
  void *to;
  const void *from;
  uint32_t bytes, width, group;
};

enum state { READY, AT_BARRIER, AT_CLUSTER, AT_NAMED, AT_SHUFFLE, AT_PHASE, ENDED };
enum { MOST_STORES = 64 };

struct fiber {
  struct context context;
  char *stack;
  struct block *block;
  struct fibers_index at;
  enum state state;
  int line; /* where it waits */
  uint32_t mask;
  uint64_t value; /* what it brings to a shuffle, and takes from it */
  int distance, width;
  struct copy *copies; /* that have not arrived */
  uint32_t copy_count, copy_room, groups;
  bool fenced;          /* its proxies, since the last barrier */
  bool makes;           /* a barrier in shared memory, which it has not fenced */
  const void *phase_of; /* the barrier whose phase it waits for */
  uint32_t parity;
  uint32_t number, comes;          /* of the barrier where so many meet */
  uint32_t arrived, arrived_for;   /* bits of such barriers that count it without its waiting; of so many, the last */
  int registers;                   /* that it set; 0: none */
  struct box *stores[MOST_STORES]; /* that it begins and has not waited for */
  unsigned store_count, store_groups, store_group[MOST_STORES];
};

struct fibers_index threadIdx, blockIdx, blockDim;
__thread unsigned char ms_shared[SHARED + PAST_SHARED] __attribute__((aligned(TIR_PANEL_ALIGNMENT)));

static struct fiber fibers[MOST_THREADS], *running;

/* The blocks of a cluster, which run side by side. Shared memory lies at the same addresses in each: one block's is
 * there at a time, the others' are kept aside. */
static struct block {
  struct fibers_index at;
  struct fiber *fibers;
  unsigned char *dynamic, *statics;
  bool proxies_see; /* at its last barrier all had fenced */
} blocks[TIR_CLUSTER_MOST], *present;
static unsigned block_count, thread_count; /* of the cluster; of a block */
static struct context scheduler;
static const struct fibers_launch *launched;
static uint64_t order_seed, random_state;
static const char *window; /* 64 KiB before what a descriptor's address was taken of first; NULL: none was */

void fibers_fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("the shim: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  _exit(1);
}

/* As the interpreter has it, without its calls: much of what tensor cores' instructions take here. */
float fibers_of_half(uint16_t half) {
  uint32_t magnitude = half & 0x7fff, bits = magnitude << 13;
  float x;
  memcpy(&x, &bits, sizeof x);
  x = magnitude < 0x7c00 ? x * 0x1p112f : magnitude == 0x7c00 ? INFINITY : NAN;
  return half & 0x8000 ? -x : x;
}

uint16_t fibers_to_half(float x) {
  uint16_t bits;
  tir_put_element(TIR_TYPE(TIR_FLOAT, 16, 1), &bits, x);
  return bits;
}

static tir_type byte_type(bool e4m3) { return TIR_TYPE(e4m3 ? TIR_E4M3 : TIR_E5M2, 8, 1); }

float fibers_of_byte(uint8_t bits, bool e4m3) { return (float)tir_fetch_element(byte_type(e4m3), &bits); }

/* As cvt.satfinite does: infinities are too large, too. */
uint8_t fibers_to_byte(float x, bool e4m3) {
  uint8_t bits;
  tir_put_element(byte_type(e4m3), &bits, isinf(x) ? copysign(1e30, x) : x);
  return bits;
}

uint32_t fibers_to_tf32(uint32_t bits) {
  const uint32_t left_out = 0x1fff, exponent = 0x7f800000;
  return (bits & exponent) == exponent ? bits : (bits + (left_out + 1) / 2) & ~left_out;
}

void fibers_check_banks(const void *const *from, int lanes, int width) {
  enum { A_PASS = 128 };
  int64_t bytes[WARP];
  for (int l = 0; l < lanes; l++) bytes[l] = (int64_t)(uintptr_t)from[l];
  int passes = bank_passes(bytes, lanes, width), least = lanes * width / A_PASS;
  if (passes > least) fibers_fail("lanes meet in banks: they load in %d passes instead of %d", passes, least);
}

void fibers_check_pairs(const void *const *from) {
  enum { PIECE = 16, HALVES = 2 };
  int64_t bytes[WARP];
  for (int l = 0; l < WARP; l++) bytes[l] = (int64_t)(uintptr_t)from[l];
  int passes = bank_passes(bytes, WARP, PIECE);
  if (passes > HALVES) fibers_fail("lanes that load 16 bytes each do so in %d passes instead of %d", passes, HALVES);
}

struct fibers_place fibers_mma_place(int operand, int bits, int lane, int element) {
  struct tir_mma_place p = tir_mma_place((enum tir_mma_operand)operand, bits, lane, element);
  return (struct fibers_place){p.row, p.column};
}

struct fibers_place fibers_wgmma_place(int thread, int element) {
  struct tir_mma_place p = tir_wgmma_place(thread, element);
  return (struct fibers_place){p.row, p.column};
}

/* ---- Addresses of shared memory ---- */

enum { ADDRESS = (1 << 18) - 1, BEFORE = 64 << 10 };

/* Counted on from the window: none of a buffer's addresses wraps around. */
uint32_t fibers_shared_address(const void *at) {
  const char *dynamic = (const char *)ms_shared, *p = (const char *)at;
  bool is_dynamic = p >= dynamic && p < dynamic + SHARED;
  if (!window) window = is_dynamic ? dynamic : p - (uintptr_t)p % TIR_PANEL_ALIGNMENT - BEFORE;
  if (p < window || p - window > ADDRESS) fibers_fail("shared memory of two kinds has addresses");
  return (uint32_t)(p - window);
}

const void *fibers_shared_at(uint32_t address) {
  if (!window) fibers_fail("an address names shared memory that none was made of");
  if (address > ADDRESS) fibers_fail("an address is outside of shared memory");
  return window + address;
}

void fibers_proxy_fence(void) { running->fenced = true; }

void fibers_check_proxies(void) {
  if (!running->block->proxies_see)
    fibers_fail("a product or a bulk store may not see what threads wrote: not all fenced their proxies and met");
}

/* ---- Order ---- */

void fibers_set_order(uint64_t seed) { order_seed = seed, random_state = seed * 0x9e3779b97f4a7c15u | 1; }

static uint64_t draw(uint64_t below) { /* xorshift */
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return random_state % below;
}

static void make_order(unsigned *order, unsigned count) {
  for (unsigned i = 0; i < count; i++) order[i] = order_seed == 1 ? count - 1 - i : i;
  for (unsigned i = count; order_seed > 1 && i > 1; i--) {
    unsigned other = (unsigned)draw(i), kept = order[i - 1];
    order[i - 1] = order[other], order[other] = kept;
  }
}

/* ---- Fibers ---- */

static void begin(void) {
  launched->thread(launched->data);
  if (running->store_count) fibers_fail("a thread ends before bulk stores that it began have read");
  running->state = ENDED;
  context_switch(&running->context, &scheduler);
  abort();
}

static void start(struct block *b, struct fiber *f, struct fibers_index at) {
  if (!f->stack) {
    f->stack = mmap(NULL, GUARD + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (f->stack == MAP_FAILED || mprotect(f->stack, GUARD, PROT_NONE)) fibers_fail("no memory for a thread's stack");
  }
  context_make(&f->context, f->stack + GUARD, STACK, begin);
  f->block = b, f->at = at, f->state = READY;
  f->copy_count = f->groups = 0;
  f->store_count = f->store_groups = 0;
  f->fenced = f->makes = false;
  f->registers = 0, f->arrived = 0;
}

/* The memory that the library shares statically. */
static struct {
  void *at;
  size_t bytes;
} statics;

static unsigned char *aside(unsigned char **kept, size_t bytes) {
  if (!*kept && bytes && !(*kept = malloc(bytes))) fibers_fail("no memory for what a block shares");
  return *kept;
}

/* The block's shared memory is there. */
static void enter(struct block *b) {
  if (b == present) return;
  const size_t bytes = launched->dynamic_bytes + PAST_SHARED;
  memcpy(aside(&present->dynamic, sizeof ms_shared), ms_shared, bytes);
  memcpy(ms_shared, aside(&b->dynamic, sizeof ms_shared), bytes);
  if (statics.bytes) memcpy(present->statics, statics.at, statics.bytes);
  if (statics.bytes) memcpy(statics.at, b->statics, statics.bytes);
  present = b;
}

static void resume(struct fiber *f) {
  enter(f->block);
  running = f, threadIdx = f->at, blockIdx = f->block->at;
  context_switch(&scheduler, &f->context);
}

static void wait_at(enum state state, int line) {
  struct fiber *f = running;
  f->state = state, f->line = line;
  context_switch(&f->context, &scheduler);
}

unsigned fibers_thread(void) { return (unsigned)(running - fibers); }

void fibers_barrier(int line) { wait_at(AT_BARRIER, line); }
void fibers_cluster_barrier(void) { wait_at(AT_CLUSTER, 0); }

static void check_named(uint32_t number, uint32_t threads) {
  if (number >= TIR_NAMED_BARRIERS || !threads || threads % WARP || threads > thread_count)
    fibers_fail("barrier %u of %u threads", number, threads);
}

void fibers_named_arrive(uint32_t number, uint32_t threads) {
  check_named(number, threads);
  if (running->arrived >> number & 1) fibers_fail("a thread arrives at barrier %u, which counts it already", number);
  running->arrived |= 1u << number, running->arrived_for = threads;
}

void fibers_named_barrier(uint32_t number, uint32_t threads) {
  check_named(number, threads);
  running->number = number, running->comes = threads;
  wait_at(AT_NAMED, 0);
}

void fibers_set_registers(int count, int more) {
  int each = (int)tir_registers_each(thread_count);
  if (count % TIR_REGISTERS_UNIT || count < TIR_LEAST_REGISTERS || count > TIR_MOST_REGISTERS ||
      (more ? count < each : count > each))
    fibers_fail("a thread that has %d registers sets %d", each, count);
  running->registers = count;
}

static void check_arrivals(const struct fiber *fibers) {
  for (unsigned i = 0; i < thread_count; i++)
    if (fibers[i].arrived) fibers_fail("a thread arrived at a barrier with a number where nobody waits");
}

static void check_registers(const struct fiber *fibers) {
  long sum = 0, each = (long)tir_registers_each(thread_count);
  for (unsigned i = 0; i < thread_count; i++) {
    if (fibers[i].registers != fibers[i - i % TIR_GROUP].registers)
      fibers_fail("threads of one warp group set unlike numbers of registers");
    sum += fibers[i].registers ? fibers[i].registers : each;
  }
  if (sum > each * (long)thread_count) fibers_fail("a block's threads wait for registers that it does not have");
}

uint64_t fibers_shuffle(uint32_t mask, uint64_t value, int distance, int width, int line) {
  struct fiber *f = running;
  f->mask = mask, f->value = value, f->distance = distance, f->width = width;
  wait_at(AT_SHUFFLE, line);
  return f->value;
}

/* ---- Copies ---- */

enum { POISON = 0xff }; /* of floats: NaN */

void fibers_copy(void *to, const void *from, uint32_t bytes, uint32_t width) {
  struct fiber *f = running;
  if ((uintptr_t)to % width || (bytes && (uintptr_t)from % width))
    fibers_fail("a copy of %u bytes is misaligned", width);
  if (bytes > width) fibers_fail("a copy of %u bytes reads %u", width, bytes);
  if (f->copy_count == f->copy_room) {
    f->copy_room = 2 * f->copy_room + 16;
    f->copies = realloc(f->copies, f->copy_room * sizeof *f->copies);
    if (!f->copies) fibers_fail("no memory for %u copies", f->copy_room);
  }
  f->copies[f->copy_count++] = (struct copy){to, from, bytes, width, f->groups};
  memset(to, POISON, width);
}

void fibers_commit(void) { running->groups++; }

void fibers_wait(int left) {
  struct fiber *f = running;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < f->copy_count; i++) {
    struct copy c = f->copies[i];
    if ((int64_t)c.group + left >= (int64_t)f->groups) {
      f->copies[kept++] = c;
      continue;
    }
    memset(c.to, 0, c.width);
    memcpy(c.to, c.from, c.bytes);
  }
  f->copy_count = kept;
}

/* ---- Barriers in shared memory, and TMA copies ---- */

enum { MOST_MBARRIERS = 64 * TIR_CLUSTER_MOST, MOST_RANK = 5, PIECE = 16, MAP_MARK = 0x70616d74 };
static struct mbarrier {
  const struct block *block;
  const void *at;
  uint32_t count, pending, phase;
  int64_t bytes;
} mbarriers[MOST_MBARRIERS];
static unsigned mbarrier_count;

static struct mbarrier *mbarrier_at(const struct block *block, const void *at) {
  for (unsigned i = 0; i < mbarrier_count; i++)
    if (mbarriers[i].at == at && mbarriers[i].block == block) return &mbarriers[i];
  fibers_fail("a barrier in shared memory is used that was not initialized");
}

static void end_phase(struct mbarrier *b) {
  if (b->pending || b->bytes) return;
  b->phase++, b->pending = b->count;
}

void fibers_mbarrier_init(const void *at, uint32_t count) {
  if (mbarrier_count == MOST_MBARRIERS || (uintptr_t)at % 8) fibers_fail("a barrier is misaligned, or one too many");
  for (unsigned i = 0; i < mbarrier_count; i++)
    if (mbarriers[i].at == at && mbarriers[i].block == running->block)
      fibers_fail("a barrier in shared memory is initialized twice");
  mbarriers[mbarrier_count++] = (struct mbarrier){running->block, at, count, count, 0, 0};
  running->makes = true;
}

void fibers_mbarrier_fence(void) { running->makes = false; }

static void arrive_at(struct mbarrier *b, uint32_t bytes) {
  if (!b->pending) fibers_fail("more threads arrive than the phase of a barrier counts");
  b->pending--, b->bytes += bytes;
  end_phase(b);
}

void fibers_mbarrier_expect(const void *at, uint32_t bytes) { arrive_at(mbarrier_at(running->block, at), bytes); }

static unsigned count_state(const struct block *b, enum state state) {
  unsigned count = 0;
  for (unsigned i = 0; i < thread_count; i++) count += b->fibers[i].state == state;
  return count;
}

/* The block of this rank in the cluster. */
static struct block *block_at(uint32_t rank) {
  if (rank >= block_count) fibers_fail("a cluster of %u blocks has no block %u", block_count, rank);
  if (count_state(&blocks[rank], ENDED) == thread_count) fibers_fail("block %u of the cluster has ended", rank);
  return &blocks[rank];
}

void fibers_mbarrier_arrive_at(const void *at, uint32_t rank) { arrive_at(mbarrier_at(block_at(rank), at), 0); }

/* A load that comes too late, or too early, may find what it looks for: threads after it, and others, come first. */
void fibers_cluster_load(const void *at, uint32_t rank, void *to, size_t bytes) {
  const struct block *b = block_at(rank);
  const char *from = at, *dynamic = (const char *)ms_shared, *fixed = statics.at;
  if ((uintptr_t)at % bytes) fibers_fail("a load from another block is misaligned");
  if (b != running->block && from >= dynamic && from + bytes <= dynamic + launched->dynamic_bytes)
    from = (const char *)b->dynamic + (from - dynamic);
  else if (b != running->block && from >= fixed && from + bytes <= fixed + statics.bytes)
    from = (const char *)b->statics + (from - fixed);
  else if (b != running->block)
    fibers_fail("a load from another block is of no shared memory");
  memcpy(to, from, bytes);
}

static bool is_phase_over(const struct fiber *f) {
  return (mbarrier_at(f->block, f->phase_of)->phase & 1) != (f->parity & 1);
}

void fibers_mbarrier_wait(const void *at, uint32_t parity) {
  struct fiber *f = running;
  f->phase_of = at, f->parity = parity;
  while (!is_phase_over(f)) wait_at(AT_PHASE, 0);
}

/* What the driver makes of a tensor: here, what it was told. */
struct map {
  uint32_t mark, element, rank, swizzle, box[MOST_RANK], extents[MOST_RANK];
  const char *at;
  uint64_t strides[MOST_RANK]; /* bytes */
  /* Of pixels: corners and steps of the dimensions between the first and the last. */
  int16_t lower[MOST_RANK - 2], upper[MOST_RANK - 2];
  uint8_t step[MOST_RANK - 2], im2col;
};
static_assert(sizeof(struct map) <= 128, "a map has 128 bytes");

static bool begin_map(struct map *m, void *map, int type, uint32_t rank, void *at, const uint64_t *extents,
                      const uint64_t *strides, int interleave, int swizzle, int promotion, int fill) {
  static const uint32_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
  *m = (struct map){.mark = MAP_MARK, .rank = rank, .swizzle = swizzle ? 16u << swizzle : 0, .at = at};
  if (type < 0 || type >= (int)(sizeof bytes / sizeof *bytes) || rank < 2 || rank > MOST_RANK || swizzle > 3)
    return false;
  if ((uintptr_t)map % 64 || (uintptr_t)at % PIECE || interleave || fill || promotion < 0 || promotion > 3)
    return false;
  m->element = bytes[type];
  for (uint32_t d = 0; d < rank; d++) {
    m->extents[d] = (uint32_t)extents[d], m->strides[d] = d ? strides[d - 1] : m->element;
    if (!extents[d] || extents[d] > UINT32_MAX) return false;
    if (d && (m->strides[d] % PIECE || m->strides[d] >= 1ull << 40)) return false;
  }
  return true;
}

enum { INVALID = 1 };

static int end_map(const struct map *m, void *map) {
  if (m->box[0] * m->element % PIECE || (m->swizzle && m->box[0] * m->element > m->swizzle)) return INVALID;
  memcpy(map, m, sizeof *m);
  return 0;
}

int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *at, const uint64_t *extents,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                           int swizzle, int promotion, int fill) {
  struct map m;
  if (!begin_map(&m, map, type, rank, at, extents, strides, interleave, swizzle, promotion, fill)) return INVALID;
  for (uint32_t d = 0; d < rank; d++) {
    m.box[d] = box[d];
    if (!box[d] || box[d] > 256 || steps[d] != 1) return INVALID;
  }
  return end_map(&m, map);
}

int cuTensorMapEncodeIm2col(void *map, int type, uint32_t rank, void *at, const uint64_t *extents,
                            const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                            uint32_t pixels, const uint32_t *steps, int interleave, int swizzle, int promotion,
                            int fill) {
  struct map m;
  if (!begin_map(&m, map, type, rank, at, extents, strides, interleave, swizzle, promotion, fill)) return INVALID;
  if (rank < 3 || !channels || channels > 256 || !pixels || pixels > 1024) return INVALID;
  for (uint32_t d = 0; d < rank; d++) m.box[d] = d ? 1 : channels;
  m.box[rank - 1] = pixels, m.im2col = 1;
  if (steps[0] != 1 || steps[rank - 1] != 1) return INVALID;
  for (uint32_t d = 0; d + 2 < rank; d++) {
    int most = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;
    m.lower[d] = (int16_t)lower[d], m.upper[d] = (int16_t)upper[d], m.step[d] = (uint8_t)steps[d + 1];
    if (lower[d] < -most || lower[d] >= most || upper[d] < -most || upper[d] >= most) return INVALID;
    if (!steps[d + 1] || steps[d + 1] > 8 || lower[d] > (int64_t)extents[d + 1] - 1 + upper[d]) return INVALID;
  }
  return end_map(&m, map);
}

static struct box {
  struct map map;
  struct block *block;
  void *to;
  struct mbarrier *arrived;
  int32_t at[MOST_RANK];
  uint16_t offsets[MOST_RANK - 2];
} * boxes; /* that have not arrived */
static unsigned box_count, box_room;

/* The place of the r'th pixel: steps from one to the next, along the innermost dimension first. */
static void place_pixel(const struct box *b, uint32_t r, int64_t *at) {
  const struct map *m = &b->map;
  for (uint32_t d = 1; d < m->rank; d++) at[d] = b->at[d];
  for (; r; r--) {
    uint32_t d = 1;
    for (; d + 1 < m->rank; d++) {
      at[d] += m->step[d - 1];
      if (at[d] <= (int64_t)m->extents[d] - 1 + m->upper[d - 1]) break;
      at[d] = m->lower[d - 1];
    }
    if (d + 1 == m->rank) at[d]++;
  }
  for (uint32_t d = 1; d + 1 < m->rank; d++) at[d] += b->offsets[d - 1];
}

/* Calls for each row of the box: where it comes to, in pieces, and where it lies, NULL: outside. */
static void for_each_piece(const struct box *b, void visit(char *to, const char *from, uint32_t whole)) {
  const struct map *m = &b->map;
  uint32_t row = m->box[0] * m->element, rows = 1;
  for (uint32_t d = 1; d < m->rank; d++) rows *= m->box[d];
  for (uint32_t r = 0; r < rows; r++) {
    int64_t pixel[MOST_RANK] = {0};
    if (m->im2col) place_pixel(b, r, pixel);
    for (uint32_t byte = 0; byte < row; byte += m->element) {
      uint32_t left = r, to = r * row + byte;
      const char *from = m->at;
      for (uint32_t d = 0; d < m->rank; d++) {
        int64_t at = b->at[d] + (int64_t)(d ? left % m->box[d] : byte / m->element);
        if (d) left /= m->box[d];
        if (d && m->im2col) at = pixel[d];
        if (at < 0 || at >= (int64_t)m->extents[d]) from = NULL;
        if (from) from += at * (int64_t)m->strides[d];
      }
      /* Pieces are exchanged by the address, whose last ten bits are those of the pointer. */
      char *at = (char *)b->to + to;
      if (m->swizzle) at = (char *)((uintptr_t)at ^ ((uintptr_t)at >> 7 & (m->swizzle / PIECE - 1)) * PIECE);
      visit(at, from, m->element);
    }
  }
}

static void poison_piece(char *to, const char *from, uint32_t bytes) {
  (void)from;
  memset(to, POISON, bytes);
}

static void bring_piece(char *to, const char *from, uint32_t bytes) {
  if (from)
    memcpy(to, from, bytes);
  else
    memset(to, 0, bytes);
}

static void arrive(const struct box *b) {
  uint32_t bytes = b->map.element;
  for (uint32_t d = 0; d < b->map.rank; d++) bytes *= b->map.box[d];
  enter(b->block);
  for_each_piece(b, bring_piece);
  b->arrived->bytes -= bytes;
}

/* Arrives at once with threads backwards. */
static void begin_box(const struct box *b) {
  if (order_seed == 1) {
    arrive(b);
    end_phase(b->arrived);
    return;
  }
  if (box_count == box_room) {
    box_room = 2 * box_room + 16;
    boxes = realloc(boxes, box_room * sizeof *boxes);
    if (!boxes) fibers_fail("no memory for %u copies", box_room);
  }
  boxes[box_count++] = *b;
  enter(b->block);
  for_each_piece(b, poison_piece);
}

void fibers_tensor_copy(void *to, const void *map, const void *arrived, const int32_t *at, const uint16_t *offsets,
                        uint32_t rank, uint32_t to_blocks) {
  struct box b = {.to = to};
  memcpy(&b.map, map, sizeof b.map);
  memcpy(b.at, at, rank * sizeof *at);
  if (b.map.mark != MAP_MARK || b.map.rank != rank) fibers_fail("a copy of a box has no map of its dimensions");
  if (!offsets != !b.map.im2col) fibers_fail("a copy in im2col mode has a map of a box, or the other way round");
  for (uint32_t d = 0; offsets && d + 2 < rank; d++) {
    b.offsets[d] = offsets[d];
    if (offsets[d] >= (rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4)) fibers_fail("an offset of %u", offsets[d]);
    if (at[d + 1] < b.map.lower[d] || at[d + 1] > (int64_t)b.map.extents[d + 1] - 1 + b.map.upper[d])
      fibers_fail("a copy in im2col mode begins outside of its pixels");
  }
  if ((uintptr_t)to % (b.map.swizzle ? 8 * b.map.swizzle : 128))
    fibers_fail("a TMA copy is to an address where no swizzled tile begins");
  if (running->makes) fibers_fail("a TMA copy begins before its barrier is fenced");
  if (!to_blocks) to_blocks = 1u << (running->block - blocks);
  for (uint32_t other = 0; to_blocks >> other; other++) {
    if (!(to_blocks >> other & 1)) continue;
    b.block = block_at(other), b.arrived = mbarrier_at(b.block, arrived);
    begin_box(&b);
  }
  enter(running->block);
}

static void store_piece(char *from, const char *to, uint32_t bytes) {
  if (to) memcpy((char *)(uintptr_t)to, from, bytes);
}

/* It reads as late as can be: who overwrites what it reads spoils it. With threads backwards it reads at once. */
void fibers_tensor_store(void *from, const void *map, const int32_t *at, uint32_t rank) {
  struct fiber *f = running;
  struct box *b = calloc(1, sizeof *b);
  if (!b || f->store_count == MOST_STORES) fibers_fail("too many bulk stores are waited for at once");
  b->to = from;
  memcpy(&b->map, map, sizeof b->map);
  memcpy(b->at, at, rank * sizeof *at);
  if (b->map.mark != MAP_MARK || b->map.rank != rank || b->map.im2col)
    fibers_fail("a bulk store has no map of its dimensions");
  if ((uintptr_t)from % (b->map.swizzle ? 8 * b->map.swizzle : 128))
    fibers_fail("a bulk store is from an address where no swizzled tile begins");
  fibers_check_proxies();
  if (order_seed == 1) for_each_piece(b, store_piece);
  f->store_group[f->store_count] = f->store_groups;
  f->stores[f->store_count++] = b;
}

void fibers_store_commit(void) { running->store_groups++; }

void fibers_store_wait(unsigned left) {
  struct fiber *f = running;
  unsigned kept = 0;
  for (unsigned i = 0; i < f->store_count; i++) {
    if (f->store_group[i] + left >= f->store_groups) {
      f->store_group[kept] = f->store_group[i], f->stores[kept++] = f->stores[i];
      continue;
    }
    if (order_seed != 1) for_each_piece(f->stores[i], store_piece);
    free(f->stores[i]);
  }
  f->store_count = kept;
}

/* Those of a block who wait for phases look again. */
static bool end_phases(const struct block *b) {
  bool any = false;
  for (unsigned i = 0; i < thread_count; i++) {
    struct fiber *f = &b->fibers[i];
    if (f->state == AT_PHASE && is_phase_over(f)) f->state = READY, any = true;
  }
  return any;
}

/* Where none can go on who waits for a phase, what is on its way arrives. */
static bool deliver(void) {
  bool waits = false;
  for (unsigned b = 0; b < block_count; b++) waits |= count_state(&blocks[b], AT_PHASE) > 0;
  if (!waits || !box_count) return false;
  for (unsigned i = 0; i < box_count; i++) arrive(&boxes[i]);
  box_count = 0;
  for (unsigned i = 0; i < mbarrier_count; i++) end_phase(&mbarriers[i]);
  return true;
}

/* ---- Barriers of a block ---- */

/* Gives each lane what its partner brings, where all whom the mask names have come to the same shuffle. */
static bool exchange(struct fiber *warp, unsigned lanes) {
  const struct fiber *first = NULL;
  uint64_t brought[WARP];
  for (unsigned l = 0; l < lanes && !first; l++)
    if (warp[l].state == AT_SHUFFLE) first = &warp[l];
  if (!first) return false;
  for (unsigned l = 0; l < WARP; l++) {
    if (!(first->mask >> l & 1)) continue;
    if (l >= lanes) fibers_fail("line %d: a shuffle's mask names lane %u of a warp of %u", first->line, l, lanes);
    if (warp[l].state != AT_SHUFFLE || warp[l].line != first->line || warp[l].mask != first->mask) return false;
    brought[l] = warp[l].value;
  }
  int line = first->line, width = first->width;
  uint32_t mask = first->mask;
  if (width < 1 || width > WARP || (width & (width - 1))) fibers_fail("line %d: a shuffle of width %d", line, width);
  for (unsigned l = 0; l < lanes; l++) {
    struct fiber *f = &warp[l];
    if (f->state != AT_SHUFFLE) continue;
    if (!(mask >> l & 1)) fibers_fail("line %d: lane %u shuffles, and the mask leaves it out", line, l);
    unsigned partner = l ^ (unsigned)f->distance, last = l | (unsigned)(width - 1);
    if (partner > last) partner = l; /* of a later group: its own */
    if (!(mask >> partner & 1)) fibers_fail("line %d: lane %u takes from one that the mask leaves out", line, l);
    f->value = brought[partner];
    f->state = READY;
  }
  return true;
}

/* Those who wait at a barrier with a number go on, if they are as many as it says. */
static bool meet_named(struct block *b) {
  struct fiber *fibers = b->fibers;
  for (unsigned first = 0; first < thread_count; first++) {
    if (fibers[first].state != AT_NAMED) continue;
    uint32_t number = fibers[first].number, come = 0;
    for (unsigned i = first; i < thread_count; i++) {
      if (fibers[i].state != AT_NAMED || fibers[i].number != number) continue;
      if (fibers[i].comes != fibers[first].comes) fibers_fail("threads come to barrier %u for unlike numbers", number);
      come++;
    }
    bool waits = come == fibers[first].comes; /* all of them do */
    for (unsigned i = 0; i < thread_count; i++) {
      if (!(fibers[i].arrived >> number & 1)) continue;
      if (fibers[i].arrived_for != fibers[first].comes)
        fibers_fail("threads come to barrier %u for unlike numbers", number);
      come++;
    }
    if (come != fibers[first].comes) continue;
    for (unsigned i = 0; i < thread_count; i++) fibers[i].arrived &= ~(1u << number);
    b->proxies_see |= waits;
    for (unsigned i = first; i < thread_count; i++) {
      if (fibers[i].state != AT_NAMED || fibers[i].number != number) continue;
      fibers[i].state = READY;
      if (waits) b->proxies_see &= fibers[i].fenced, fibers[i].fenced = false;
    }
    return true;
  }
  return false;
}

/* What its threads wait for that are not at a barrier of all does not come. */
static void check_waits(const struct block *b) {
  if (count_state(b, AT_NAMED)) fibers_fail("threads wait at a barrier with a number that not all come to");
  if (count_state(b, AT_PHASE))
    fibers_fail("threads wait for the phase of a barrier in shared memory that does not end");
  for (unsigned i = 0; i < thread_count; i++)
    if (b->fibers[i].state == AT_SHUFFLE)
      fibers_fail("line %d: not all whom a shuffle's mask names come to it", b->fibers[i].line);
  unsigned at_barrier = count_state(b, AT_BARRIER);
  for (unsigned i = 0; i < thread_count; i++)
    if (b->fibers[i].state == AT_BARRIER && at_barrier < thread_count)
      fibers_fail("line %d: %u of the block's %u threads come to a barrier", b->fibers[i].line, at_barrier,
                  thread_count);
}

/* All of the block wait at a barrier of theirs, or of the cluster, and go on. */
static void leave_barrier(struct block *b) {
  b->proxies_see = true;
  for (unsigned i = 0; i < thread_count; i++) {
    struct fiber *f = &b->fibers[i];
    if (f->line != b->fibers[0].line)
      fibers_fail("lines %d and %d: a block's threads wait at two barriers", b->fibers[0].line, f->line);
    if (f->makes) fibers_fail("barriers in shared memory are not fenced before threads synchronize");
    b->proxies_see &= f->fenced, f->fenced = false;
    f->state = READY;
  }
}

static bool meet_block(struct block *b) {
  bool meets = count_state(b, AT_BARRIER) == thread_count;
  if (meets) leave_barrier(b);
  return meets;
}

/* None of the block can run, or only who is held back: some who wait go on, those of shuffles and phases, or all. */
static bool go_on(struct block *b) {
  bool any = false;
  for (unsigned w = 0; w < thread_count; w += WARP)
    any |= exchange(&b->fibers[w], thread_count - w < WARP ? thread_count - w : WARP);
  any |= meet_named(b);
  return any || end_phases(b) || meet_block(b);
}

/* Nobody can run, and no block can meet: all of the cluster do, or the kernel is at fault. */
static void meet(void) {
  bool all = true;
  for (unsigned b = 0; b < block_count; b++) all &= count_state(&blocks[b], AT_CLUSTER) == thread_count;
  for (unsigned b = 0; b < block_count; b++)
    if (all)
      leave_barrier(&blocks[b]);
    else
      check_waits(&blocks[b]);
  if (!all) fibers_fail("not all of a cluster's threads come to its barrier");
}

/* ---- Shared memory: of no value when a block begins ---- */

static int find_library(struct dl_phdr_info *info, size_t size, void *data) {
  const char *variable = data, *memory = info->dlpi_tls_data;
  (void)size;
  for (int i = 0; memory && i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_TLS || variable < memory || variable >= memory + p->p_memsz) continue;
    statics.at = info->dlpi_tls_data, statics.bytes = p->p_memsz;
    return 1;
  }
  return 0;
}

static void find_shared(void) {
  if (!dl_iterate_phdr(find_library, (void *)(uintptr_t)launched->shared))
    fibers_fail("where the library's shared memory lies is not known");
}

static void poison_shared(struct block *b) {
  enter(b);
  memset(statics.at, POISON, statics.bytes);
  memset(ms_shared, POISON, sizeof ms_shared);
}

static void check_dynamic(struct block *b) {
  enter(b);
  for (size_t i = 0; i < PAST_SHARED; i++)
    if (ms_shared[launched->dynamic_bytes + i] != POISON)
      fibers_fail("shared memory is written past the %zu bytes that the launch asks for", launched->dynamic_bytes);
}

/* ---- Blocks ---- */

/* The threads from *first on that others run ahead of, of one block; their number. */
static unsigned draw_slow(unsigned *first, struct block **of) {
  unsigned size = order_seed == 2 ? TIR_GROUP : WARP, parts = thread_count / size;
  *first = order_seed == 2 && parts ? (parts - 1) * size : 0;
  *of = &blocks[block_count - 1];
  if (order_seed < 2 || parts < 2) return 0;
  if (order_seed > 2) *first = (unsigned)draw(parts) * size;
  if (block_count > 1) *of = &blocks[draw(block_count)];
  return size;
}

/* False: nobody of them is ready. */
static bool run_ready(struct block *b, unsigned first, unsigned count) {
  bool any = false;
  unsigned order[MOST_THREADS];
  make_order(order, thread_count);
  for (unsigned i = 0; i < thread_count; i++) {
    struct fiber *f = &b->fibers[order[i]];
    if (f->state != READY || order[i] - first < count) continue;
    resume(f), any = true;
  }
  return any;
}

static bool have_ended(void) {
  unsigned ended = 0;
  for (unsigned b = 0; b < block_count; b++) ended += count_state(&blocks[b], ENDED);
  return ended == thread_count * block_count;
}

/* A block runs on until it waits for others of its cluster, or for copies. */
static void run_blocks(void) {
  struct block *of;
  unsigned turns[TIR_CLUSTER_MOST], first, slow = draw_slow(&first, &of);
  while (!have_ended()) {
    bool any = false;
    make_order(turns, block_count);
    for (unsigned i = 0; i < block_count; i++) {
      struct block *b = &blocks[turns[i]];
      while (run_ready(b, first, b == of ? slow : 0) || go_on(b)) any = true;
    }
    any = any || deliver();
    if (!any && slow) any = run_ready(of, 0, 0);
    if (!any) meet();
  }
}

/* The blocks from this one on, neighbours along x. */
static void run_cluster(struct fibers_index at) {
  const struct fibers_index *shape = &launched->block;
  blockDim = *shape;
  unsigned room = (thread_count + TIR_GROUP - 1) / TIR_GROUP * TIR_GROUP;
  window = NULL;
  mbarrier_count = box_count = 0;
  for (unsigned b = 0; b < block_count; b++) {
    struct block *block = &blocks[b];
    block->at = (struct fibers_index){at.x + b, at.y, at.z};
    block->fibers = &fibers[b * room], block->proxies_see = false;
    poison_shared(block);
    for (unsigned i = 0; i < thread_count; i++)
      start(block, &block->fibers[i],
            (struct fibers_index){i % shape->x, i / shape->x % shape->y, i / shape->x / shape->y});
  }
  run_blocks();
  if (box_count) fibers_fail("a block ends before TMA copies have arrived");
  for (unsigned b = 0; b < block_count; b++) check_registers(blocks[b].fibers), check_arrivals(blocks[b].fibers);
  for (unsigned b = 0; b < block_count; b++) check_dynamic(&blocks[b]);
}

int fibers_launch(const struct fibers_launch *launch) {
  enum { INVALID_CLUSTER_SIZE = 912, MOST_BLOCK_THREADS = 1024 };
  const struct fibers_index *grid = &launch->grid, *block = &launch->block;
  launched = launch;
  thread_count = block->x * block->y * block->z, block_count = launch->cluster;
  present = blocks;
  if (!thread_count || thread_count > MOST_BLOCK_THREADS)
    fibers_fail("a block of %u threads is launched", thread_count);
  if (launch->dynamic_bytes > SHARED) fibers_fail("%zu bytes of shared memory are asked for", launch->dynamic_bytes);
  if (!block_count || grid->x % block_count || block_count > TIR_CLUSTER_MOST) return INVALID_CLUSTER_SIZE;
  if (block_count * thread_count > MOST_THREADS) fibers_fail("a cluster of %u blocks", block_count);
  find_shared();
  products_forget();
  for (unsigned b = 0; block_count > 1 && b < block_count; b++) {
    free(blocks[b].statics);
    blocks[b].statics = NULL;
    aside(&blocks[b].statics, statics.bytes);
  }
  unsigned wide = grid->x / block_count, clusters = wide * grid->y * grid->z;
  unsigned *order = calloc(clusters, sizeof *order);
  if (!order) fibers_fail("%u blocks are launched", clusters);
  make_order(order, clusters);
  for (unsigned i = 0; i < clusters; i++)
    run_cluster(
        (struct fibers_index){order[i] % wide * block_count, order[i] / wide % grid->y, order[i] / wide / grid->y});
  free(order);
  return 0;
}
