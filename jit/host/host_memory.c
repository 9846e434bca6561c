/* Memory of this process: between pages that cannot be touched, and in huge pages. */
#define _GNU_SOURCE
#include "jit/backend.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

static size_t page(void) { return (size_t)sysconf(_SC_PAGESIZE); }
static size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }
static size_t inside(size_t bytes) { return rounded(bytes ? bytes : 1, page()); }
static uint8_t *first_page(void *at) { return (uint8_t *)((uintptr_t)at & ~(uintptr_t)(page() - 1)); }

/* It ends within 64 bytes of the page after it. */
static void *get(struct jit_device *device, size_t bytes, ms_error *err) {
  (void)device;
  uint8_t *at = mmap(NULL, inside(bytes) + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at != MAP_FAILED && !mprotect(at + page(), inside(bytes), PROT_READ | PROT_WRITE))
    return at + page() + inside(bytes) - rounded(bytes ? bytes : 1, 64);
  if (at != MAP_FAILED) munmap(at, inside(bytes) + 2 * page());
  ms_fail(err, MS_TOO_LARGE, "memory of %zu bytes cannot be had", bytes);
  return NULL;
}

static void release(struct jit_device *device, void *at, size_t bytes) {
  (void)device;
  if (at) munmap(first_page(at) - page(), inside(bytes) + 2 * page());
}

static bool protect(void *at, size_t bytes) { return mprotect(first_page(at), inside(bytes), PROT_READ) == 0; }

static bool copy(struct jit_device *device, void *to, const void *from, size_t bytes, ms_error *err) {
  (void)device, (void)err;
  memcpy(to, from, bytes);
  return true;
}

static bool fill(struct jit_device *device, void *at, uint8_t byte, size_t bytes, ms_error *err) {
  (void)device, (void)err;
  memset(at, byte, bytes);
  return true;
}

/* Who touches the guards dies of it. */
static bool check_guards(struct jit_device *device, const void *at, size_t bytes, ms_error *err) {
  (void)device, (void)at, (void)bytes, (void)err;
  return true;
}

const struct jit_memory host_memory = {.in_place = true,
                                       .get = get,
                                       .release = release,
                                       .protect = protect,
                                       .write = copy,
                                       .read = copy,
                                       .copy = copy,
                                       .fill = fill,
                                       .check_guards = check_guards};

void *jit_new_memory(size_t bytes) {
  bool large = bytes >= HUGE_PAGE;
  size_t step = large ? HUGE_PAGE : 64;
  if (bytes > SIZE_MAX - step) return NULL;
  void *at = aligned_alloc(step, rounded(bytes ? bytes : 1, step));
  if (large && at) (void)madvise(at, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
  return at;
}
