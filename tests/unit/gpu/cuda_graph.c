/* Kernels and routines as CUDA graphs, on the fake driver (cuda/fake): how many runs a replay has, the clock between
 * them, what cannot be captured, and who times on a device. */
#include "unit/cuda.h"

#include "jit/cuda/device/graph.h"
#include "jit/cuda/device/lease.h"
#include "jit/cuda/device/pace.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A kernel that doubles, of one thread, with arguments of its own. */
struct ready {
  struct tir *ir;
  struct tir_arguments args;
  struct jit_code *code;
  struct jit_kernel *kernel;
  struct jit_call *call;
};

static struct ready make_ready(void) {
  struct jit_target target;
  ms_error err = {0};
  struct ready r = {.ir = doubling()};
  tir_func f = tir_find_func(r.ir, "main");
  assert_true(jit_target_parse(CUDA_TARGET, &target, &err));
  assert_true(tir_make_arguments(r.ir, f, 1, &r.args, &err));
  r.code = jit_compile(r.ir, f, &target, NULL, &err);
  r.kernel = r.code ? jit_load(r.code, &err) : NULL;
  r.call = r.kernel ? jit_call_new(r.kernel, r.ir, f, r.args.args, &err) : NULL;
  if (!r.call || !jit_call_run(r.call, &err)) fail_msg("%s", err.message);
  return r;
}

static void end_ready(struct ready *r) {
  jit_call_free(r->call);
  jit_kernel_free(r->kernel);
  jit_code_free(r->code);
  tir_arguments_free(&r->args);
  tir_free(r->ir);
}

static struct jit_timing time_ready(const struct ready *r) {
  struct jit_timing t;
  ms_error err = {0};
  if (!jit_call_time(r->call, 0.02, 1, &t, &err)) fail_msg("%s", err.message);
  return t;
}

static bool is_about(double x, double y) { return x > 0.99 * y && x < 1.01 * y; }

static struct jit_device *open_device(int ordinal) {
  ms_error err = {0};
  struct jit_device *device = driver_open(ordinal, &err);
  if (!device || !driver_enter(device, &err)) fail_msg("%s", err.message);
  return device;
}

/* ---- Work of the test's own ---- */

/* Launches of the pace kernel cannot be captured here; so many fills of a byte are no launches. What is captured is a
 * routine of another library's, as the fake driver's libraries start theirs. */
static void (*pass)(double milliseconds);
static void (*on)(void *stream);
static struct {
  uint32_t started;
  double milliseconds; /* of each */
  bool deaf;           /* it starts its work on the default stream, whichever it is given */
  bool fails;
} work;

static bool start(void *data, void *stream, ms_error *err) {
  (void)data;
  work.started++;
  if (work.fails) return ms_fail(err, MS_NOT_LAUNCHED, "it does not start");
  on(work.deaf ? NULL : stream);
  if (work.milliseconds > 0) pass(work.milliseconds);
  return true;
}

static struct graph *capture_work(double milliseconds, ms_error *why) {
  bool failed;
  const struct graph_work w = {start, NULL};
  memset(&work, 0, sizeof work);
  work.milliseconds = milliseconds;
  struct graph *g = graph_new(open_device(0), &w, &failed, why);
  assert_false(failed);
  return g;
}

/* ---- Runs of a replay ---- */

static void a_replay_takes_the_window(void **state) {
  (void)state;
  static const double milliseconds[] = {0.0005, 0.002, 0.01, 0.15, 0.3, 5};
  for (size_t i = 0; i < sizeof milliseconds / sizeof *milliseconds; i++) {
    ms_error why = {0};
    struct graph *g = capture_work(milliseconds[i], &why);
    if (!g) fail_msg("%s", why.message);
    double all = graph_runs(g) * milliseconds[i];
    if (all < 0.2 || (graph_runs(g) > 1 && all > 0.3)) fail_msg("%u runs of %g ms", graph_runs(g), milliseconds[i]);
    uint32_t started = work.started;
    for (int n = 0; n < 3; n++) assert_true(is_about(graph_sample(g, &why), 1e-3 * milliseconds[i]));
    assert_int_equal(work.started, started); /* a replay launches no kernel again */
    graph_free(g);
  }
}

/* Nodes are bounded: of what takes next to nothing there are no more than so many. */
static void runs_are_bounded(void **state) {
  (void)state;
  ms_error why = {0};
  struct graph *g = capture_work(1e-6, &why);
  assert_non_null(g);
  assert_in_range(graph_runs(g), 1000, 2048);
  graph_free(g);
}

/* ---- What cannot be captured ---- */

static void expect_uncaptured(const char *words) {
  bool failed;
  ms_error why = {0};
  const struct graph_work w = {start, NULL};
  struct graph *g = graph_new(open_device(0), &w, &failed, &why);
  assert_null(g);
  assert_false(failed);
  if (!strstr(why.message, words)) fail_msg("\"%s\" does not say \"%s\"", why.message, words);
  /* The stream and the context are as before. */
  memset(&work, 0, sizeof work);
  unsetenv("FAKE_CUDA_CAPTURE");
  g = capture_work(0.01, &why);
  if (!g) fail_msg("%s", why.message);
  graph_free(g);
}

static void what_cannot_be_captured_is_said(void **state) {
  (void)state;
  memset(&work, 0, sizeof work);
  work.milliseconds = 0.01, work.deaf = true;
  expect_uncaptured("a call before spoiled the graph");
  memset(&work, 0, sizeof work);
  expect_uncaptured("nothing of it was started on the stream");
  work.fails = true;
  expect_uncaptured("it does not start");
  static const struct {
    const char *setting, *words;
  } cases[] = {
      {"none", "STREAM_CAPTURE_UNSUPPORTED"}, {"spoiled", "CAPTURE_INVALIDATED"}, {"instance", "instantiating"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    setenv("FAKE_CUDA_CAPTURE", cases[i].setting, 1);
    work.milliseconds = 0.01;
    expect_uncaptured(cases[i].words);
  }
}

static void a_kernel_without_a_graph_is_timed_by_launches(void **state) {
  (void)state;
  static const char *const settings[] = {"none", "spoiled", "instance"};
  setenv("FAKE_CUDA_TIMES", "1=0.125", 1);
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    struct ready r = make_ready();
    setenv("FAKE_CUDA_CAPTURE", settings[i], 1);
    struct jit_timing t = time_ready(&r);
    assert_true(t.by_launches && is_about(t.seconds, 0.125e-3) && is_about(t.clock, 1.5e9));
    unsetenv("FAKE_CUDA_CAPTURE");
    struct ready other = make_ready();
    t = time_ready(&other);
    assert_true(!t.by_launches && is_about(t.seconds, 0.125e-3));
    end_ready(&r), end_ready(&other);
  }
  unsetenv("FAKE_CUDA_TIMES");
}

/* A graph holds addresses: of other arguments another is captured. This device is faster on whole numbers. */
static void other_arguments_are_another_graph(void **state) {
  (void)state;
  struct ready r = make_ready();
  struct tir_arguments other;
  ms_error err = {0};
  tir_func f = tir_find_func(r.ir, "main");
  setenv("FAKE_CUDA_TIMES", "1=0.2", 1), setenv("FAKE_CUDA_EASY", "0.5", 1);
  tir_copy_arguments(r.ir, f, &r.args, &other);
  for (int i = 0; i < 1024; i++) ((float *)other.args[0].data)[i] = 1.2345678f;
  struct jit_call *call = jit_call_new(r.kernel, r.ir, f, other.args, &err);
  assert_true(call && jit_call_run(call, &err));
  for (int i = 0; i < 2; i++) {
    assert_true(is_about(jit_call_sample(r.call, 1, &err), 0.1e-3));
    assert_true(is_about(jit_call_sample(call, 1, &err), 0.2e-3));
  }
  unsetenv("FAKE_CUDA_TIMES"), unsetenv("FAKE_CUDA_EASY");
  jit_call_free(call);
  tir_arguments_free(&other);
  end_ready(&r);
}

/* ---- The clock ---- */

static void the_clock_is_that_of_the_samples(void **state) {
  (void)state;
  struct ready r = make_ready();
  static const struct {
    const char *setting;
    double clock;
  } cases[] = {{"1980", 1.98e9}, {"1200", 1.2e9}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    setenv("FAKE_CUDA_CLOCK", cases[i].setting, 1);
    struct jit_timing t = time_ready(&r);
    assert_true(is_about(t.clock, cases[i].clock) && t.raw == 0);
    assert_true(is_about(pace_now(open_device(0)), cases[i].clock));
    assert_true(pace_clock(open_device(0)) == 0); /* nothing ran since */
  }
  unsetenv("FAKE_CUDA_CLOCK");
  end_ready(&r);
}

/* ---- Leases ---- */

static void the_lock_is_in_a_folder_of_the_users(void **state) {
  (void)state;
  const struct jit_device *device = open_device(0);
  char path[300], kept[300], expected[300];
  snprintf(kept, sizeof kept, "%s", getenv("XDG_RUNTIME_DIR"));
  snprintf(expected, sizeof expected, "%s/msched-GPU-", cuda_folder);
  setenv("XDG_RUNTIME_DIR", cuda_folder, 1);
  lease_path(device, path, sizeof path);
  if (strncmp(path, expected, strlen(expected)) != 0) fail_msg("%s", path);
  assert_int_equal(strlen(path), strlen(cuda_folder) + strlen("/msched-GPU-01234567-0123-0123-0123-0123456789ab.lock"));
  static const char *const others[] = {"", "relative", "/nonexistent/folder", "/etc/passwd"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    setenv("XDG_RUNTIME_DIR", others[i], 1);
    lease_path(device, path, sizeof path);
    if (strncmp(path, "/tmp/msched-GPU-", 16) != 0) fail_msg("%s: %s", others[i], path);
  }
  setenv("XDG_RUNTIME_DIR", kept, 1);
}

static bool is_free(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  assert_true(file >= 0);
  bool free = flock(file, LOCK_EX | LOCK_NB) == 0;
  close(file);
  return free;
}

/* Another device's, so that this process has opened none of its own yet. */
static void a_lease_ends_with_its_last_holder(void **state) {
  (void)state;
  setenv("FAKE_CUDA_DEVICES", "90 90 90 90", 1);
  struct jit_device *device = open_device(1);
  char path[300];
  lease_path(device, path, sizeof path);
  lease_take(device);
  assert_false(is_free(path));
  lease_take(device);
  lease_give(device);
  assert_false(is_free(path));
  lease_give(device);
  assert_true(is_free(path));
}

/* In a folder that others write to there may be anything by that name: nobody waits, follows it, or changes it. */
static void what_is_no_file_is_no_lock(void **state) {
  (void)state;
  char path[300], target[300];
  struct stat at;
  for (int i = 2; i <= 3; i++) {
    struct jit_device *device = open_device(i);
    lease_path(device, path, sizeof path);
    snprintf(target, sizeof target, "%s/target", cuda_folder);
    assert_int_equal(i == 2 ? mkfifo(path, 0600) : symlink(target, path), 0);
    lease_take(device);
    assert_true(device->lease.file < 0);
    lease_give(device);
    assert_int_not_equal(stat(target, &at), 0);
  }
  unsetenv("FAKE_CUDA_DEVICES");
}

static char said[400];
static void note(const char *text) { snprintf(said, sizeof said, "%s", text); }

/* One that is held elsewhere is waited for, which is said after a second; its holder's end gives it back. */
static void a_lease_is_waited_for(void **state) {
  (void)state;
  struct jit_device *device = open_device(0);
  char path[300];
  int ready[2], status;
  lease_path(device, path, sizeof path);
  assert_int_equal(pipe(ready), 0);
  close(open(path, O_CREAT | O_RDONLY | O_CLOEXEC, 0600));
  pid_t child = fork();
  if (child == 0) {
    int file = open(path, O_RDONLY);
    if (flock(file, LOCK_EX) || write(ready[1], "x", 1) != 1) _exit(1);
    usleep(1300 * 1000);
    _exit(0);
  }
  char byte;
  assert_int_equal(read(ready[0], &byte, 1), 1);
  jit_say_waiting(note);
  lease_take(device);
  lease_give(device);
  jit_say_waiting(NULL);
  assert_true(waitpid(child, &status, 0) == child && status == 0);
  if (!strstr(said, "waits for the device, on which another msched times") || !strstr(said, path)) fail_msg("%s", said);
  close(ready[0]), close(ready[1]);
}

/* What the real driver refuses of streams and graphs, the tests' own does. */
static void the_driver_is_strict(void **state) {
  (void)state;
  const struct driver *d = open_device(0)->driver;
  void *stream, *event, *graph, *executable;
  size_t nodes;
  uint64_t at;
  assert_int_equal(d->new_stream(&stream, 0), 0);
  assert_int_equal(d->new_event(&event, 0), 0);
  assert_int_equal(d->end_capture(stream, &graph), 903);
  assert_int_equal(d->begin_capture(NULL, DRIVER_CAPTURE_RELAXED), 900);
  assert_int_equal(d->begin_capture(stream, DRIVER_CAPTURE_RELAXED), 0);
  assert_int_equal(d->record(event, NULL), 906); /* and what is captured is spoiled by it */
  assert_int_equal(d->end_capture(stream, &graph), 901);
  assert_null(graph);
  assert_int_equal(d->begin_capture(stream, DRIVER_CAPTURE_RELAXED), 0);
  assert_int_equal(d->end_capture(stream, &graph), 0);
  assert_int_equal(d->graph_nodes(graph, NULL, &nodes), 0);
  assert_int_equal(nodes, 0);
  assert_int_equal(d->instantiate(&executable, graph, 0), 0);
  assert_int_equal(d->free_graph(graph), 0);
  assert_int_equal(d->launch_graph(executable, stream), 0);
  assert_int_equal(d->free_executable(executable), 0);
  assert_int_equal(d->allocate(&at, 64), 0);
  assert_int_equal(d->release(at) + d->free_event(event), 0);
}

/* A kernel that faults in a replay is the kernel's fault, by its name, and no reason to launch it again by itself. The
 * context does not outlive it. */
static void a_fault_in_a_replay_is_the_kernels(void **state) {
  (void)state;
  struct ready r = make_ready();
  ms_error err = {0};
  setenv("FAKE_CUDA_FAULTS", "1=700", 1);
  assert_true(jit_call_sample(r.call, 1, &err) < 0);
  assert_int_equal(err.code, MS_ILLEGAL_ADDRESS);
  unsetenv("FAKE_CUDA_FAULTS");
  end_ready(&r);
}

static int open_all(void **state) {
  void *library = dlopen(getenv("MSCHED_LIBCUDA"), RTLD_NOW);
  void *passes = library ? dlsym(library, "fake_cuda_pass") : NULL,
       *ons = library ? dlsym(library, "fake_cuda_on") : NULL;
  memcpy(&pass, &passes, sizeof pass), memcpy(&on, &ons, sizeof on);
  return pass && on ? open_folder(state) : -1;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_replay_takes_the_window),
                                     cmocka_unit_test(runs_are_bounded),
                                     cmocka_unit_test(what_cannot_be_captured_is_said),
                                     cmocka_unit_test(a_kernel_without_a_graph_is_timed_by_launches),
                                     cmocka_unit_test(other_arguments_are_another_graph),
                                     cmocka_unit_test(the_clock_is_that_of_the_samples),
                                     cmocka_unit_test(the_lock_is_in_a_folder_of_the_users),
                                     cmocka_unit_test(a_lease_ends_with_its_last_holder),
                                     cmocka_unit_test(what_is_no_file_is_no_lock),
                                     cmocka_unit_test(a_lease_is_waited_for),
                                     cmocka_unit_test(the_driver_is_strict),
                                     cmocka_unit_test(a_fault_in_a_replay_is_the_kernels)};
  need_fakes();
  return cmocka_run_group_tests(tests, open_all, close_folder);
}
