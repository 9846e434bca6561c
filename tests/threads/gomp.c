/* Parallel loops of exported C source on plain threads: ThreadSanitizer knows when these start and end, and does not
 * know it of libgomp's. */
#include <pthread.h>
#include <stdlib.h>

static _Thread_local int number, count = 1;

struct part {
  void (*body)(void *closure);
  void *closure;
  int number, count;
  pthread_t thread;
};

int omp_get_thread_num(void);
int omp_get_thread_num(void) { return number; }
int omp_get_num_threads(void);
int omp_get_num_threads(void) { return count; }

static void *run(void *data) {
  struct part *p = data;
  number = p->number, count = p->count;
  p->body(p->closure);
  return NULL;
}

void GOMP_parallel(void (*body)(void *closure), void *closure, unsigned threads, unsigned flags);
void GOMP_parallel(void (*body)(void *closure), void *closure, unsigned threads, unsigned flags) {
  struct part parts[64];
  (void)flags;
  if (threads > 64) abort();
  for (unsigned i = 0; i < threads; i++) {
    parts[i] = (struct part){body, closure, (int)i, (int)threads, 0};
    if (pthread_create(&parts[i].thread, NULL, run, &parts[i])) abort();
  }
  for (unsigned i = 0; i < threads; i++) pthread_join(parts[i].thread, NULL);
}
