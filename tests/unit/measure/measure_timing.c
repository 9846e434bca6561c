/* How a call's time is found, by a clock of the test's own: what one slow call decides (nothing), when a machine counts
 * as busy, and that a busy one is sampled again. */
#include "unit/file.h"

#include "jit/measure/timing.h"

#include <string.h>

/* What each call takes, in seconds; the last goes on for ever. */
static struct {
  const double *seconds;
  uint32_t count, calls, rests;
  double now;
  uint64_t interruptions, more; /* more: at each call */
  uint32_t quiet_from;          /* the call from which on there are no more; 0: none */
} fake;

static double fake_now(void) { return fake.now; }
static uint64_t fake_interruptions(void) { return fake.interruptions; }
static void fake_rest(void) { fake.rests++; }
static const struct timing_clock fake_clock = {fake_now, fake_interruptions, fake_rest};

static double fake_sample(void *data, uint32_t calls) {
  (void)data;
  double before = fake.now;
  for (uint32_t i = 0; i < calls; i++) {
    fake.now += fake.seconds[fake.calls < fake.count ? fake.calls : fake.count - 1];
    fake.calls++;
    if (!fake.quiet_from || fake.calls < fake.quiet_from) fake.interruptions += fake.more;
  }
  return (fake.now - before) / calls;
}
static const struct timing_subject fake_subject = {.sample = fake_sample};

#define CALLS(...)                                                                                                     \
  do {                                                                                                                 \
    static const double list[] = {__VA_ARGS__};                                                                        \
    memset(&fake, 0, sizeof fake);                                                                                     \
    fake.seconds = list, fake.count = sizeof list / sizeof *list;                                                      \
  } while (0)

/* once: long enough that a sample is one call. */
static struct jit_timing time_calls(double hopeless, uint32_t again) {
  struct timing_plan plan = {
      .tolerance = 0.02, .limit = 0.15, .once = 2e-3, .hopeless = hopeless, .again = again, .clock = &fake_clock};
  struct jit_timing t;
  assert_true(timing_measure(&fake_subject, &plan, &t));
  return t;
}

/* The clock's sums round. */
static bool is_about(double x, double y) { return x > 0.999 * y && x < 1.001 * y; }

static void one_slow_call_decides_nothing(void **state) {
  (void)state;
  CALLS(0.1, 0.002);
  struct jit_timing t = time_calls(5e-3, 0);
  assert_false(t.censored);
  assert_true(is_about(t.seconds, 0.002));
  CALLS(0.1, 0.3, 0.002); /* nor do two, nor when time is up by then */
  t = time_calls(5e-3, 0);
  assert_false(t.censored);
}

static void three_slow_calls_do(void **state) {
  (void)state;
  CALLS(0.02, 0.011, 0.012, 0.001);
  struct jit_timing t = time_calls(5e-3, 0);
  assert_true(t.censored);
  assert_int_equal(t.runs, 3);
  assert_int_equal(fake.calls, 3);
}

/* The call that warmed the caches was slow too: it is one of the three, and enough with one that nothing
 * interrupted. */
static void the_first_call_counts(void **state) {
  (void)state;
  struct timing_plan plan = {.tolerance = 0.02, .limit = 0.15, .once = 0.02, .hopeless = 5e-3, .clock = &fake_clock};
  struct jit_timing t;
  CALLS(0.012, 0.001);
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.censored);
  assert_int_equal(fake.calls, 1);
  CALLS(0.012, 0.011, 0.001);
  fake.more = 1;
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_false(t.censored);
  CALLS(0.012, 0.011);
  fake.more = 1;
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.censored);
  assert_int_equal(fake.calls, 2 + fake.rests);
  CALLS(0.012, 0.001);
  fake.more = 1;
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_false(t.censored);
}

/* Calls that other programs interrupt are slow together: what seems hopeless is called again after a rest, three
 * times. */
static void what_was_interrupted_is_called_again_after_a_rest(void **state) {
  (void)state;
  CALLS(0.012, 0.011, 0.012, 0.002);
  fake.more = 1;
  struct jit_timing t = time_calls(5e-3, 0);
  assert_false(t.censored);
  assert_int_equal(fake.rests, 1);
  CALLS(0.012);
  fake.more = 1;
  assert_true(time_calls(5e-3, 0).censored);
  assert_int_equal(fake.rests, 3);
  assert_int_equal(fake.calls, 6);
  CALLS(0.012);
  assert_true(time_calls(5e-3, 0).censored);
  assert_int_equal(fake.rests, 0);
}

/* Where little hangs on it two samples that agree are enough. */
static void as_few_samples_as_the_plan_allows(void **state) {
  (void)state;
  struct timing_plan plan = {.tolerance = 0.1, .least = 2, .limit = 0.15, .once = 2e-3, .clock = &fake_clock};
  struct jit_timing t;
  CALLS(0.002);
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_int_equal(t.runs, 2);
  CALLS(0.002, 0.0026, 0.0022);
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.runs > 2);
}

/* What is slower than the best twice, and was not interrupted, need not be known better; what is as fast is. */
static void two_samples_tell_what_is_beaten(void **state) {
  (void)state;
  struct timing_plan plan = {.tolerance = 0.02, .limit = 0.15, .once = 2e-3, .best = 4.7e-3, .clock = &fake_clock};
  struct jit_timing t;
  CALLS(0.006, 0.009, 0.001);
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_int_equal(t.runs, 2);
  assert_false(t.censored);
  CALLS(0.006, 0.004);
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.runs > 2);
  CALLS(0.006, 0.009, 0.004);
  fake.more = 1;
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.runs > 2);
}

/* So are two of a long call that are slower by little, but agree. */
static void two_that_agree_tell_what_is_not_the_best(void **state) {
  (void)state;
  struct timing_plan plan = {.tolerance = 0.02, .limit = 0.15, .once = 4.9e-3, .best = 4.7e-3, .clock = &fake_clock};
  struct jit_timing t;
  CALLS(0.0048, 0.00485, 0.001);
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_int_equal(t.runs, 2);
  assert_false(t.censored);
  CALLS(0.0048, 0.00495, 0.0048); /* they do not agree */
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.runs > 2);
  CALLS(0.0046, 0.0046); /* it is the best */
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.runs > 2);
  CALLS(0.0048, 0.0048);
  fake.more = 1;
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.runs > 2);
  CALLS(0.00495, 0.001); /* with the first call, where that is long */
  plan.once = 5e-3;
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_int_equal(t.runs, 1);
  CALLS(0.0048, 0.0048); /* the first call was cold, and short */
  plan.once = 5e-4;
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.runs > 2);
}

/* One is enough, and not interrupted, where it is far off as the first call was; not where that was too short to
 * say. */
static void one_sample_tells_what_is_far_behind(void **state) {
  (void)state;
  struct timing_plan plan = {.tolerance = 0.02, .limit = 0.15, .once = 4.9e-3, .best = 4e-3, .clock = &fake_clock};
  struct jit_timing t;
  CALLS(0.007, 0.001);
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_int_equal(fake.calls, 1);
  assert_false(t.censored);
  assert_true(is_about(t.seconds, 0.007));
  CALLS(0.0045, 0.003); /* beaten, but not by far */
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.runs > 2);
  CALLS(0.007, 0.003);
  plan.once = 4.5e-3;
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.runs > 2);
  CALLS(0.007, 0.003);
  plan.once = 4.9e-3, fake.more = 1;
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.runs > 2);
  CALLS(9e-4, 9e-4, 5e-4); /* the first call was cold: another warms, and one sample is too few */
  plan.once = 9e-4, plan.best = 5e-4;
  assert_true(timing_measure(&fake_subject, &plan, &t));
  assert_true(t.runs > 1);
}

/* Slower than the limit by more than any interruption: once is enough. */
static void one_that_takes_enormously_long_does(void **state) {
  (void)state;
  CALLS(0.6, 0.001);
  struct jit_timing t = time_calls(5e-3, 0);
  assert_true(t.censored);
  assert_int_equal(fake.calls, 1);
  CALLS(0.3, 0.3, 0.001);
  t = time_calls(5e-3, 0);
  assert_true(t.censored);
  assert_int_equal(fake.calls, 2);
}

static void a_quiet_machine_is_not_busy(void **state) {
  (void)state;
  CALLS(0.002);
  struct jit_timing t = time_calls(0, 2);
  assert_false(t.busy);
  assert_int_equal(t.runs, fake.calls);
}

/* Interrupted at each call until the seventh: the second time is quiet, and counts. */
static void a_busy_machine_is_sampled_again(void **state) {
  (void)state;
  CALLS(0.004, 0.0041, 0.004, 0.0041, 0.004, 0.0041, 0.002);
  fake.more = 2, fake.quiet_from = 7;
  struct jit_timing t = time_calls(0, 2);
  assert_false(t.busy);
  assert_true(is_about(t.seconds, 0.002));
  assert_true(fake.calls > t.runs);
  /* Calls in a row stay slow; each after a rest is quick. */
  CALLS(0.008, 0.008, 0.008, 0.002);
  fake.more = 2;
  t = time_calls(0, 1);
  assert_true(is_about(t.seconds, 0.002));
  assert_true(fake.rests >= 3);
}

static void a_machine_that_stays_busy_is_said_to_be(void **state) {
  (void)state;
  CALLS(0.002);
  fake.more = 1;
  struct jit_timing t = time_calls(0, 2);
  assert_true(t.busy);
  assert_int_equal(fake.rests, 2 * 8); /* and neither sampled nor rested without end */
  assert_true(fake.calls < 30);
  CALLS(0.002);
  fake.more = 1;
  t = time_calls(0, 0);
  assert_true(t.busy);
  assert_int_equal(fake.calls, t.runs);
}

/* Nobody was seen to interrupt, and yet half of the calls took half as long again. */
static void calls_that_lie_far_apart_are_of_a_busy_machine(void **state) {
  (void)state;
  CALLS(0.002, 0.003);
  assert_true(time_calls(0, 0).busy);
}

/* ---- In turn ---- */

/* Takes by turns a little less and a little more than its seconds. */
struct finalist {
  double seconds;
  uint32_t calls;
};
static double turn_sample(void *data, uint32_t calls) {
  struct finalist *c = data;
  double seconds = c->seconds * (c->calls % 2 ? 1.01 : 0.99);
  c->calls += calls;
  fake.now += seconds * calls;
  fake.interruptions += fake.more;
  return seconds;
}

static void time_three(struct finalist *all, bool to_find_fastest, struct jit_timing *out) {
  struct jit_finalist finalists[3];
  const struct timing_turns turns = {0.3, to_find_fastest, &fake_clock};
  for (int i = 0; i < 3; i++) finalists[i] = (struct jit_finalist){.sample = turn_sample, .data = &all[i]};
  memset(&fake, 0, sizeof fake);
  assert_true(timing_in_turn(finalists, 3, &turns, out));
  for (int i = 0; i < 3; i++)
    assert_true(out[i].seconds > 0.98 * all[i].seconds && out[i].seconds < 1.02 * all[i].seconds);
}

static void the_slower_get_no_more_turns(void **state) {
  (void)state;
  struct jit_timing t[3];
  struct finalist two_close[] = {{2e-3, 0}, {3e-3, 0}, {2e-3, 0}};
  time_three(two_close, true, t);
  assert_in_range(t[1].runs, 20, 22); /* two slices of 30 ms */
  assert_true(t[0].runs > 120 && t[2].runs > 120);
  struct finalist one_ahead[] = {{3e-3, 0}, {2e-3, 0}, {4e-3, 0}};
  time_three(one_ahead, true, t);
  assert_true(t[1].runs <= 34 && t[0].runs <= 22 && t[2].runs <= 18);
  time_three(one_ahead, false, t);
  assert_true(t[0].runs > 60 && t[1].runs > 90 && t[2].runs > 45);
}

/* The clock of a simulated device runs ahead of the machine's: its seconds count. */
static double ahead_sample(void *data, uint32_t calls) {
  *(uint32_t *)data += calls;
  fake.now += 1e-6 * calls;
  return 0.125;
}
static void seconds_of_a_clock_that_is_ahead_count(void **state) {
  (void)state;
  uint32_t calls[2] = {0};
  struct jit_finalist finalists[2];
  struct jit_timing t[2];
  const struct timing_turns turns = {1, false, &fake_clock};
  memset(&fake, 0, sizeof fake);
  for (int i = 0; i < 2; i++) finalists[i] = (struct jit_finalist){.sample = ahead_sample, .data = &calls[i]};
  assert_true(timing_in_turn(finalists, 2, &turns, t));
  for (int i = 0; i < 2; i++) assert_true(t[i].runs == 8 && calls[i] == 24 && is_about(t[i].seconds, 0.125));
}

/* By a clock that runs backwards no time is ever enough: what there is room for are. */
static double backward_sample(void *data, uint32_t calls) {
  *(uint32_t *)data += 1;
  fake.now -= 1e-6 * calls;
  return 1e-6;
}
static void a_clock_that_runs_backwards_ends_too(void **state) {
  (void)state;
  uint32_t samples[2] = {0};
  struct jit_finalist finalists[2];
  struct jit_timing t[2];
  const struct timing_turns turns = {1, false, &fake_clock};
  memset(&fake, 0, sizeof fake);
  for (int i = 0; i < 2; i++) finalists[i] = (struct jit_finalist){.sample = backward_sample, .data = &samples[i]};
  assert_true(timing_in_turn(finalists, 2, &turns, t));
  for (int i = 0; i < 2; i++) assert_true(t[i].runs == 4096 && samples[i] > 4096 && is_about(t[i].seconds, 1e-6));
}

/* ---- At a clock of a device ---- */

static struct {
  double begins, ends;         /* hertz */
  uint32_t begun, ended, step; /* step: each slice begins so many megahertz lower than the one before */
  uint32_t shared;             /* so many turns, in which others compute there */
} device;
static void fake_turn(void *data, bool begins, struct jit_conditions *out) {
  (void)data;
  *out = (struct jit_conditions){.clock = begins ? device.begins - 1e6 * device.step * device.begun : device.ends,
                                 .by_launches = device.step > 0,
                                 .shared = !begins && device.ended < device.shared};
  ++*(begins ? &device.begun : &device.ended);
}

static struct jit_timing time_at(double hertz, double reference) {
  const struct timing_subject subject = {.sample = fake_sample, .turn = fake_turn};
  struct timing_plan plan = {.tolerance = 0.02, .limit = 0.15, .once = 2e-3, .clock = &fake_clock, .hertz = reference};
  struct jit_timing t;
  memset(&device, 0, sizeof device);
  device.begins = device.ends = hertz;
  CALLS(0.002);
  assert_true(timing_measure(&subject, &plan, &t));
  assert_true(device.begun == 1 && device.ended == 1 && t.clock == hertz);
  return t;
}

static void times_are_scaled_to_one_clock(void **state) {
  (void)state;
  struct jit_timing t = time_at(1.2e9, 1.8e9);
  assert_true(is_about(t.seconds, 0.002 * 1.2 / 1.8) && is_about(t.raw, 0.002));
  assert_true(t.low <= t.seconds && t.seconds <= t.high && is_about(t.high, t.seconds));
  static const double same[][2] = {{1.8e9, 1.8e9}, {1.79e9, 1.8e9}, {0, 1.8e9}, {1.8e9, 0}};
  for (int i = 0; i < 4; i++) {
    t = time_at(same[i][0], same[i][1]);
    assert_true(is_about(t.seconds, 0.002) && t.raw == 0);
  }
}

/* Others compute there during so many turns: all is sampled again as often as the plan says, and is at that turn's
 * clock; where they go on, the fastest counts, and is said to be disturbed. */
static void what_others_disturb_is_sampled_again(void **state) {
  (void)state;
  static const struct {
    uint32_t shared, again, turns;
    bool busy;
    double seconds;
  } cases[] = {{0, 2, 1, false, 4e-3}, {1, 2, 2, false, 2e-3}, {9, 2, 3, true, 2e-3}, {9, 0, 1, true, 4e-3}};
  const struct timing_subject subject = {.sample = fake_sample, .turn = fake_turn};
  for (int i = 0; i < 4; i++) {
    struct timing_plan plan = {
        .tolerance = 0.02, .limit = 0.15, .once = 2e-3, .clock = &fake_clock, .again = cases[i].again, .hertz = 1e9};
    struct jit_timing t;
    memset(&device, 0, sizeof device);
    device.begins = device.ends = 1e9, device.shared = cases[i].shared;
    CALLS(0.004, 0.004, 0.004, 0.002, 0.002, 0.002, 0.003);
    assert_true(timing_measure(&subject, &plan, &t));
    assert_true(device.begun == cases[i].turns && device.ended == cases[i].turns);
    assert_true(t.busy == cases[i].busy && is_about(t.seconds, cases[i].seconds) && t.clock == 1e9);
  }
}

/* Slices are in a random order, each finalist's as often as any other's. Each finalist is told when its slice begins
 * and ends; slices that begin at a lower clock are scaled to the first's clock. A finalist that is told nothing has its
 * neighbour's clock. */
static void slices_are_scaled_to_the_first(void **state) {
  (void)state;
  struct finalist all[] = {{2e-3, 0}, {2e-3, 0}};
  struct jit_finalist finalists[2];
  struct jit_timing t[2];
  const struct timing_turns turns = {0.3, false, &fake_clock};
  memset(&fake, 0, sizeof fake), memset(&device, 0, sizeof device);
  device.begins = 2e9, device.ends = 1e9, device.step = 20;
  fake.more = 1000; /* interruptions, which are the host's */
  for (int i = 0; i < 2; i++)
    finalists[i] = (struct jit_finalist){.sample = turn_sample, .turn = i ? NULL : fake_turn, .data = &all[i]};
  assert_true(timing_in_turn(finalists, 2, &turns, t));
  assert_true(device.begun == device.ended && device.begun >= 10 && device.begun % 2 == 0);
  for (int i = 0; i < 2; i++) {
    assert_true(!t[i].busy && is_about(t[i].clock, 1e9) && t[i].by_launches && is_about(t[i].raw, 2e-3));
    assert_true(t[i].seconds < 1.95e-3 && t[i].seconds > 1.6e-3);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_slow_call_decides_nothing),
      cmocka_unit_test(three_slow_calls_do),
      cmocka_unit_test(the_first_call_counts),
      cmocka_unit_test(what_was_interrupted_is_called_again_after_a_rest),
      cmocka_unit_test(as_few_samples_as_the_plan_allows),
      cmocka_unit_test(two_samples_tell_what_is_beaten),
      cmocka_unit_test(two_that_agree_tell_what_is_not_the_best),
      cmocka_unit_test(one_sample_tells_what_is_far_behind),
      cmocka_unit_test(one_that_takes_enormously_long_does),
      cmocka_unit_test(a_quiet_machine_is_not_busy),
      cmocka_unit_test(a_busy_machine_is_sampled_again),
      cmocka_unit_test(a_machine_that_stays_busy_is_said_to_be),
      cmocka_unit_test(calls_that_lie_far_apart_are_of_a_busy_machine),
      cmocka_unit_test(the_slower_get_no_more_turns),
      cmocka_unit_test(seconds_of_a_clock_that_is_ahead_count),
      cmocka_unit_test(a_clock_that_runs_backwards_ends_too),
      cmocka_unit_test(times_are_scaled_to_one_clock),
      cmocka_unit_test(what_others_disturb_is_sampled_again),
      cmocka_unit_test(slices_are_scaled_to_the_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
