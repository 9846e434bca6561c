/* Kernels that fault in this process, or are stopped in the middle: the call ends with an error, on one thread and on
 * many, and the next one runs. */
#include "unit/script.h"

#include "jit/jit.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { COUNT = 64 };

static bool run(const char *loop, const char *store, const int64_t *at, int32_t *out, ms_error *err) {
  struct tir *ir = read_function("P: T.Buffer((64,), \"int64\"), Q: T.Buffer((64,), \"int32\")", loop, store);
  struct jit_target target;
  assert_true(jit_target_parse("native", &target, err));
  *err = (ms_error){.message = ""};
  struct tir_arg args[] = {{.data = (void *)at, .bytes = COUNT * sizeof *at},
                           {.data = out, .bytes = COUNT * sizeof *out}};
  bool done = jit_run(ir, tir_find_func(ir, "main"), &target, NULL, args, err);
  tir_free(ir);
  return done;
}

static const char *const loops[] = {"for i in range(64):", "for i in T.parallel(64):"};

static void faults_end_the_call(void **state) {
  (void)state;
  for (int l = 0; l < 2; l++)
    for (int bad = 0; bad < COUNT; bad += 21) {
      int64_t at[COUNT];
      int32_t out[COUNT];
      ms_error err;
      for (int i = 0; i < COUNT; i++) at[i] = i;
      at[bad] = (int64_t)1 << 44; /* no memory is there */
      assert_false(run(loops[l], "    Q[P[i]] = T.Cast(\"int32\", i)", at, out, &err));
      assert_int_equal(err.code, MS_KERNEL_FAULT);
      assert_non_null(strstr(err.message, "signal"));
      at[bad] = bad;
      assert_true(run(loops[l], "    Q[P[i]] = T.Cast(\"int32\", i)", at, out, &err));
      for (int i = 0; i < COUNT; i++) assert_int_equal(out[i], i);
    }
}

static void divisions_by_zero_end_the_call(void **state) {
  (void)state;
  int64_t at[COUNT] = {0};
  int32_t out[COUNT];
  ms_error err;
  assert_false(run(loops[0], "    Q[i] = T.Cast(\"int32\", T.truncdiv(T.int64(7), P[i]))", at, out, &err));
  assert_int_equal(err.code, MS_KERNEL_FAULT);
}

/* ---- Stops ---- */

/* What is called takes hours; another thread has it stopped once it stores. */
struct stopping {
  pthread_t caller;
  const volatile int32_t
      *stored; /* by the kernel, all the time; NULL: it is asked to stop again and again, from the start */
  volatile int done;
};
static volatile int stop;

static void on_signal(int number) {
  (void)number;
  stop = 1;
  jit_stop_calls();
}

static void *stop_it(void *data) {
  struct stopping *s = data;
  const struct timespec pause = {.tv_nsec = 2000000};
  while (s->stored && !*s->stored) nanosleep(&pause, NULL);
  do {
    pthread_kill(s->caller, SIGUSR1);
    nanosleep(&pause, NULL);
  } while (!s->stored && !s->done);
  return NULL;
}

static pthread_t begin(struct stopping *s, const int32_t *stored) {
  pthread_t thread;
  struct sigaction action = {.sa_handler = on_signal};
  sigaddset(&action.sa_mask, JIT_STOP_SIGNAL);
  *s = (struct stopping){.caller = pthread_self(), .stored = stored};
  stop = 0;
  assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
  assert_int_equal(pthread_create(&thread, NULL, stop_it, s), 0);
  return thread;
}

static const char endless[] = "    for j in range(T.int64(1099511627776)):\n"
                              "            Q[P[j % T.int64(64)]] = Q[P[j % T.int64(64)]] + T.Cast(\"int32\", i) + 1";

struct made {
  struct tir *ir;
  struct jit_code *code;
  struct jit_kernel *kernel;
  struct jit_call *call;
  tir_func f;
  int64_t at[COUNT];
  int32_t out[COUNT];
  struct tir_arg args[2];
};

static void make(struct made *m, const char *loop, const char *body) {
  ms_error err = {.message = ""};
  struct jit_target target;
  *m = (struct made){.ir = read_function("P: T.Buffer((64,), \"int64\"), Q: T.Buffer((64,), \"int32\")", loop, body)};
  m->f = tir_find_func(m->ir, "main");
  m->args[0] = (struct tir_arg){.data = m->at, .bytes = sizeof m->at};
  m->args[1] = (struct tir_arg){.data = m->out, .bytes = sizeof m->out};
  assert_true(jit_target_parse("native", &target, &err));
  target.cores = 4; /* whatever the machine has */
  m->code = jit_compile(m->ir, m->f, &target, NULL, &err);
  m->kernel = m->code ? jit_load(m->code, &err) : NULL;
  m->call = m->kernel ? jit_call_new(m->kernel, m->ir, m->f, m->args, &err) : NULL;
  if (!m->call) fail_msg("%s", err.message);
  jit_call_stop_at(m->call, &stop);
}
static void unmake(struct made *m) {
  jit_call_free(m->call);
  jit_kernel_free(m->kernel);
  jit_code_free(m->code);
  tir_free(m->ir);
}

enum { RUN, TIME, SAMPLE, WAYS };
static bool go(const struct made *m, int way, ms_error *err) {
  struct jit_timing timing;
  return way == RUN    ? jit_call_run(m->call, err)
         : way == TIME ? jit_call_time(m->call, 0.1, 0.01, &timing, err)
                       : jit_call_sample(m->call, 1, err) >= 0;
}

static void stops_end_the_call(void **state) {
  (void)state;
  for (int l = 0; l < 2; l++)
    for (int way = 0; way < WAYS; way++) {
      struct made m, other;
      struct stopping s;
      ms_error err = {.message = ""};
      make(&m, loops[l], endless);
      pthread_t thread = begin(&s, m.out);
      assert_false(go(&m, way, &err));
      assert_int_equal(err.code, MS_RUN_STOPPED);
      pthread_join(thread, NULL);
      assert_false(go(&m, way, &err)); /* as long as it is asked, none begins */
      assert_int_equal(err.code, MS_RUN_STOPPED);
      stop = 0;
      make(&other, loops[l], "    Q[i] = T.Cast(\"int32\", i) * 3");
      if (!go(&other, way, &err)) fail_msg("%s", err.message);
      for (int i = 0; i < COUNT; i++) assert_int_equal(other.out[i], 3 * i);
      sigset_t mask;
      sigprocmask(SIG_BLOCK, NULL, &mask); /* the handler was left in an orderly way */
      assert_false(sigismember(&mask, SIGUSR1) || sigismember(&mask, JIT_STOP_SIGNAL));
      unmake(&other);
      unmake(&m);
    }
}

/* The threads of a check of timing are not libgomp's. */
static void stops_end_checks(void **state) {
  (void)state;
  for (int l = 0; l < 2; l++) {
    struct made m;
    struct stopping s;
    struct tir_arguments args;
    struct jit_expected expected = {0};
    ms_error err = {.message = ""};
    make(&m, loops[l], endless);
    assert_true(tir_make_arguments(m.ir, m.f, 1, &args, &err));
    memset(args.args[0].data, 0, args.args[0].bytes);
    pthread_t thread = begin(&s, NULL);
    assert_false(jit_check_timing(m.code, m.ir, m.f, &args, 0, 1, &stop, &err));
    assert_int_equal(err.code, MS_RUN_STOPPED);
    s.done = 1;
    pthread_join(thread, NULL);
    expected.before = args;
    thread = begin(&s, NULL);
    assert_false(jit_kernel_agrees(&expected, m.ir, m.f, m.kernel, &stop, NULL, &err));
    assert_int_equal(err.code, MS_RUN_STOPPED);
    s.done = 1;
    pthread_join(thread, NULL);
    tir_arguments_free(&args);
    unmake(&m);
  }
}

/* Short calls in a row, stopped wherever they are: where a loop begins or ends, in libgomp, in between. */
static void stops_come_at_any_moment(void **state) {
  (void)state;
  enum { ROUNDS = 100 };
  for (int l = 0; l < 2; l++) {
    struct made m;
    make(&m, loops[l], "    Q[i] = T.Cast(\"int32\", i) * 3");
    for (int i = 0; i < ROUNDS; i++) {
      struct stopping s;
      ms_error err = {.message = ""};
      pthread_t thread = begin(&s, NULL);
      while (go(&m, i % WAYS, &err)) {}
      assert_int_equal(err.code, MS_RUN_STOPPED);
      s.done = 1;
      pthread_join(thread, NULL);
    }
    unmake(&m);
  }
}

/* A fault in a perturbed run ends the check, as one in another run ends the call. */
static void faults_end_checks(void **state) {
  (void)state;
  for (int l = 0; l < 2; l++) {
    struct made m;
    struct tir_arguments args;
    ms_error err = {.message = ""};
    make(&m, loops[l], "    Q[P[i]] = T.Cast(\"int32\", i)");
    assert_true(tir_make_arguments(m.ir, m.f, 1, &args, &err));
    for (int i = 0; i < COUNT; i++) ((int64_t *)args.args[0].data)[i] = i == 40 ? (int64_t)1 << 44 : i;
    assert_false(jit_check_timing(m.code, m.ir, m.f, &args, 0, 1, NULL, &err));
    assert_int_equal(err.code, MS_KERNEL_FAULT);
    tir_arguments_free(&args);
    unmake(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(faults_end_the_call),      cmocka_unit_test(divisions_by_zero_end_the_call),
      cmocka_unit_test(stops_end_the_call),       cmocka_unit_test(stops_end_checks),
      cmocka_unit_test(stops_come_at_any_moment), cmocka_unit_test(faults_end_checks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
