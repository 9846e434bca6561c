/* Loads of shared memory by threads, on a CPU, where a test names its buffers shim_counted<T>: from one barrier to the
 * next, or to the kernel's end, each thread notes the pieces of 16 bytes that it loads of, in their order, each once,
 * as a compiler loads them. What the lanes of a warp note n-th is one instruction; it must be made for half a warp at
 * once. */
enum { SHIM_MOST_PIECES = 500 };
struct shim_pieces {
  unsigned count;
  const void *at[SHIM_MOST_PIECES];
};
static struct shim_pieces *shim_pieces_of; /* by thread */
static unsigned shim_lanes_there[FIBERS_MOST_THREADS / 32];

static void shim_note_load(const void *at) {
  if (!shim_pieces_of) shim_pieces_of = (struct shim_pieces *)calloc(FIBERS_MOST_THREADS, sizeof *shim_pieces_of);
  struct shim_pieces *p = &shim_pieces_of[fibers_thread()];
  const void *piece = (const void *)((uintptr_t)at & ~(uintptr_t)15);
  for (unsigned i = 0; i < p->count; i++)
    if (p->at[i] == piece) return;
  if (p->count == SHIM_MOST_PIECES) fibers_fail("a thread loads more pieces than are counted");
  p->at[p->count++] = piece;
}

/* The last lane of a warp that comes looks at what all have noted. */
[[maybe_unused]] static void shim_check_loads() {
  unsigned warp = fibers_thread() / 32;
  if (!shim_pieces_of || ++shim_lanes_there[warp] < 32) return;
  struct shim_pieces *lanes = &shim_pieces_of[warp * 32];
  for (unsigned i = 0; i < lanes[0].count; i++) {
    const void *from[32];
    for (unsigned l = 0; l < 32; l++) {
      if (lanes[l].count != lanes[0].count) fibers_fail("lanes of a warp load unlike numbers of pieces");
      from[l] = lanes[l].at[i];
    }
    fibers_check_pairs(from);
  }
  for (unsigned l = 0; l < 32; l++) lanes[l].count = 0;
  shim_lanes_there[warp] = 0;
}

template <class T> struct shim_counted_element {
  T *at;
  operator T() const {
    shim_note_load(at);
    return *at;
  }
  void operator=(T value) const { *at = value; }
};
template <class T> struct shim_counted {
  T *first;
  shim_counted(T *first) : first(first) {}
  operator const void *() const { return first; } /* whose address copies begin at */
  T *operator+(int32_t i) const { return first + i; }
  shim_counted_element<T> operator[](int32_t i) const { return {first + i}; }
};
