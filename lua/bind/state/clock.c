/* Clocks of calls: how long one has, by the steady clock or by what it takes itself. */
#include "state.h"

#include <math.h>

int64_t script_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

double script_now(void) { return 1e-9 * (double)script_now_ns(); }

double script_clock_seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What waits, or is stopped, uses no processor. Where no thread adds up which of these it is, a call has so many times
 * its seconds by the steady clock, and as many once more: a process that is stopped for long loses the first. */
static const double WAITS = 5;

void script_start_clock(struct script *s, struct script_clock *c, double seconds, bool own) {
  *c = (struct script_clock){.outer = s->clock, .seconds = seconds, .own = own, .began = script_now()};
  s->calls++;
  if (own) c->processor = vm_thread_seconds();
  if (seconds <= 0) return;
  c->next = c->began + seconds;
  c->waits_until = own && s->limits.sandbox ? INFINITY : c->began + WAITS * seconds;
  s->clock = c;
}

void script_stop_clock(struct script *s, struct script_clock *c) {
  assert(s->calls > 0 && (s->clock == c || c->seconds <= 0));
  s->calls--;
  s->clock = c->outer;
}

void script_pause_outer(struct script *s, struct script_clock *c) {
  struct script_clock *outer = c->outer;
  while (outer && outer->own) outer = outer->outer;
  c->outer = outer;
  if (c->seconds <= 0) s->clock = outer;
}

void script_resume_outer(struct script *s, struct script_clock *c, struct script_clock *outer) {
  double passed = script_now() - c->began, worked = vm_thread_seconds() - c->processor;
  c->outer = outer;
  if (c->seconds <= 0) s->clock = outer;
  for (struct script_clock *o = outer; o && o->own; o = o->outer) {
    o->next += passed, o->waits_until += passed;
    o->processor += worked;
  }
}

/* It is looked at often: before the least time that it can take, no processor's clock is asked. */
static bool is_over(struct script_clock *c, double now) {
  if (c->over) return true;
  if (now <= c->next) return false;
  if (!c->own) return c->over = true;
  double left = c->seconds - (vm_thread_seconds() - c->processor);
  if (left <= 0) return c->over = true;
  c->next = now + left;
  if (c->followed) return false;
  if (now > c->waits_until) {
    if (c->waited) return c->over = true;
    c->waited = true;
    c->waits_until = now + WAITS * c->seconds;
  }
  c->next = fmin(c->next, c->waits_until);
  return false;
}

struct script_clock *script_late_clock(const struct script *s) {
  if (!s->clock) return NULL;
  double now = script_now();
  struct script_clock *c = s->clock;
  while (c && !is_over(c, now)) c = c->outer;
  return c;
}

bool script_is_late(const struct script *s) { return script_late_clock(s) != NULL; }
