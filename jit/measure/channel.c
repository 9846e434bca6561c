/* Framed messages over a socket: a header of type and length, then that many bytes. */
#define _GNU_SOURCE
#include "jit/host/process.h"
#include "measure.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct header {
  uint32_t type, bytes;
};
enum { CHUNK = 1 << 16 };

double measure_clock(clockid_t clock) {
  struct timespec t = {0};
  return clock_gettime(clock, &t) ? 0 : (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
double measure_now(void) { return measure_clock(CLOCK_MONOTONIC); }

static void reserve(struct bytes *b, size_t more) {
  if (b->first && b->first == b->count) b->first = b->count = 0;
  if (b->count + more <= b->capacity) return;
  if (b->count > b->first) memmove(b->at, b->at + b->first, b->count - b->first);
  b->count -= b->first, b->first = 0;
  if (b->count + more <= b->capacity) return;
  while (b->capacity < b->count + more) b->capacity = b->capacity ? 2 * b->capacity : CHUNK;
  b->at = realloc(b->at, b->capacity);
  if (!b->at) abort();
}

static void append(struct bytes *b, const void *from, size_t count) {
  assert(from || !count);
  reserve(b, count);
  if (count) memcpy(b->at + b->count, from, count);
  b->count += count;
}

static void hang_up(struct channel *c) { descriptor_close(&c->fd); }

void channel_open(struct channel *c, int fd) {
  assert(fd >= 0);
  *c = (struct channel){.fd = fd};
  int flags = fcntl(fd, F_GETFL);
  bool waits = flags < 0 || (!(flags & O_NONBLOCK) && fcntl(fd, F_SETFL, flags | O_NONBLOCK));
  if (waits || fcntl(fd, F_SETFD, FD_CLOEXEC)) hang_up(c); /* one that blocks could wait for ever */
}

void channel_close(struct channel *c) {
  hang_up(c);
  free(c->in.at);
  free(c->out.at);
  c->in = c->out = (struct bytes){0};
}

void channel_send(struct channel *c, uint32_t type, const void *head, size_t head_bytes, const void *rest,
                  size_t rest_bytes) {
  assert((head || !head_bytes) && (rest || !rest_bytes));
  assert(head_bytes + rest_bytes <= CHANNEL_MOST_BYTES);
  struct header header = {type, (uint32_t)(head_bytes + rest_bytes)};
  append(&c->out, &header, sizeof header);
  append(&c->out, head, head_bytes);
  append(&c->out, rest, rest_bytes);
  channel_flush(c);
}

void channel_flush(struct channel *c) {
  while (c->fd >= 0 && c->out.first < c->out.count) {
    ssize_t n = send(c->fd, c->out.at + c->out.first, c->out.count - c->out.first, MSG_NOSIGNAL);
    if (n > 0) {
      c->out.first += (size_t)n;
    } else if (errno != EINTR) {
      if (errno != EAGAIN) hang_up(c);
      return;
    }
  }
}

bool channel_has_unsent(const struct channel *c) { return c->fd >= 0 && c->out.first < c->out.count; }

void channel_fill(struct channel *c) {
  while (c->fd >= 0) {
    reserve(&c->in, CHUNK);
    ssize_t n = recv(c->fd, c->in.at + c->in.count, c->in.capacity - c->in.count, 0);
    if (n > 0) {
      c->in.count += (size_t)n;
    } else if (n == 0 || errno != EINTR) {
      if (n == 0 || errno != EAGAIN) hang_up(c);
      return;
    }
  }
}

bool channel_take(struct channel *c, struct message *out) {
  assert(c->in.first <= c->in.count);
  struct header header;
  size_t held = c->in.count - c->in.first;
  if (held < sizeof header) return false;
  memcpy(&header, c->in.at + c->in.first, sizeof header);
  if (header.bytes > CHANNEL_MOST_BYTES) {
    hang_up(c);
    c->in.first = c->in.count;
    return false;
  }
  if (held < sizeof header + header.bytes) return false;
  *out = (struct message){header.type, c->in.at + c->in.first + sizeof header, header.bytes};
  c->in.first += sizeof header + header.bytes;
  return true;
}

/* Waits until something can be done; a wait that fails is a short one. */
static int wait_for(struct pollfd *p, int milliseconds) {
  enum { SHORT_US = 1000 };
  assert(p->fd >= 0);
  int ready = poll(p, 1, milliseconds);
  if (ready < 0 && errno != EINTR) usleep(SHORT_US);
  return ready;
}

int channel_wait(struct channel *c, double seconds, struct message *out) {
  double end = measure_now() + seconds;
  for (;;) {
    if (channel_take(c, out)) return 1;
    if (c->fd < 0) return -1;
    struct pollfd p = {.fd = c->fd, .events = (short)(POLLIN | (channel_has_unsent(c) ? POLLOUT : 0))};
    double left = end - measure_now();
    if (seconds >= 0 && left < 0) left = 0;
    int ready = wait_for(&p, seconds < 0 ? -1 : left > 1e6 ? 1000000000 : (int)(left * 1e3 + 0.999));
    if ((ready == 0 || (ready < 0 && left <= 0)) && seconds >= 0) return 0;
    channel_flush(c);
    channel_fill(c);
  }
}

bool channel_drain(struct channel *c) {
  while (channel_has_unsent(c)) {
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    wait_for(&p, -1);
    channel_flush(c);
  }
  return c->fd >= 0;
}
