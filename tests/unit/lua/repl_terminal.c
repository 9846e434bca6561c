/* The interactive session on a terminal: prompts, completion, history, interrupts, colour. MSCHED_PROGRAM: the program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define UP    "\x1b[A"
#define DOWN  "\x1b[B"
#define FORTH "\x1b[C"
#define BACK  "\x7f"

enum { PATIENCE_MS = 20000 };

struct terminal {
  pid_t child;
  int fd;
  char seen[1 << 16];     /* what came, a 0 after it */
  size_t length, read_to; /* what was expected so far ends at read_to */
};

static unsigned short rows = 40;
static char home[] = "/tmp/msched_repl_XXXXXX";

static void fill(struct terminal *t) {
  struct pollfd ready = {.fd = t->fd, .events = POLLIN};
  if (poll(&ready, 1, PATIENCE_MS) != 1) fail_msg("nothing came for long; so far: %s", t->seen + t->read_to);
  ssize_t got = read(t->fd, t->seen + t->length, sizeof t->seen - 1 - t->length);
  if (got <= 0) fail_msg("the session has ended; so far: %s", t->seen + t->read_to);
  t->length += (size_t)got;
  t->seen[t->length] = 0;
}

/* Waits for the text, after what was expected before. */
static void expect(struct terminal *t, const char *text) {
  char *at;
  while (!(at = strstr(t->seen + t->read_to, text))) fill(t);
  t->read_to = (size_t)(at - t->seen) + strlen(text);
}

static void type(struct terminal *t, const char *keys) {
  assert_int_equal(write(t->fd, keys, strlen(keys)), strlen(keys));
}

/* A line, what it shows, and the next prompt. */
static void ask(struct terminal *t, const char *line, const char *answer) {
  type(t, line);
  type(t, "\r");
  expect(t, answer);
  expect(t, "> ");
}

static void start_with(struct terminal *t, const char *no_color, unsigned short columns, char *const *words) {
  memset(t, 0, sizeof *t);
  struct winsize size = {.ws_row = rows, .ws_col = columns};
  t->child = forkpty(&t->fd, NULL, NULL, &size);
  assert_true(t->child >= 0);
  if (!t->child) {
    const char *program = getenv("MSCHED_PROGRAM");
    setenv("HOME", home, 1);
    setenv("TERM", "xterm", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* the line editor keeps some memory to the end */
    unsetenv("XDG_STATE_HOME");
    if (no_color)
      setenv("NO_COLOR", no_color, 1);
    else
      unsetenv("NO_COLOR");
    execv(program, words);
    _exit(127);
  }
}

static void start(struct terminal *t, const char *no_color) {
  start_with(t, no_color, 150, (char *[]){"msched", NULL});
  expect(t, "help() explains");
  expect(t, "> ");
}

static void leave(struct terminal *t) {
  type(t, "\x04");
  int status;
  char rest[4096];
  struct pollfd ready = {.fd = t->fd, .events = POLLIN};
  while (poll(&ready, 1, PATIENCE_MS) == 1 && read(t->fd, rest, sizeof rest) > 0) {}
  assert_true(t->child > 1);
  if (!(ready.revents & (POLLHUP | POLLIN))) kill(t->child, SIGKILL); /* it does not leave */
  assert_int_equal(waitpid(t->child, &status, 0), t->child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  close(t->fd);
}

static void make_schedule(struct terminal *t) {
  ask(t, "local A = te.placeholder({8, 8}, 'float32', 'A')", "");
  ask(t, "local B = te.compute({8, 8}, function(i, j) return A[{i, j}] + 1 end, 'plus_one')", "");
  ask(t, "sch = ms.schedule(te.func('f', {A, B})); return 40 + 2", "\n42");
}

static void test_lines(void **unused) {
  (void)unused;
  struct terminal t;
  start(&t, NULL);
  ask(&t, "20 + 3", "\n23");
  type(&t, "for i = 1, 2 do\r");
  expect(&t, ">> ");
  type(&t, "print(i * 111)\r");
  expect(&t, ">> ");
  ask(&t, "end", "\n222");
  ask(&t, "nil + 1", "msched: attempt to perform arithmetic on a nil value");
  ask(&t, "'\xc3\xa9\xe2\x82\xac'", "\n\xc3\xa9\xe2\x82\xac");
  leave(&t);
}

static void test_completion(void **unused) {
  (void)unused;
  struct terminal t;
  start(&t, NULL);
  make_schedule(&t);
  ask(&t, "te.placeh\t == te.placeholder and 'same'", "\nsame");
  ask(&t, "ms.read_t\t == ms.read_trace and 'same'", "\nsame");
  ask(&t, "sch.child_c\t == sch.child_count and 'same'", "\nsame");
  ask(&t, "#sch:iter_k\t(sch:get_sblock \"plus_one\")", "\n2");
  ask(&t, "sch:block_name(sch:get_sblock \"plu\t)", "\nplus_one");
  ask(&t, "ms.ops.func(\"conv2d_c\t):name()", "\nconv2d_capsule_1x16");
  ask(&t, "#ms.ops.suite(\"sub\t)", "\n24");
  ask(&t, "type(sch.trac\t)", "\nuserdata");
  ask(&t, "sch.get_l\t == sch.get_loops and 'same'", "\nsame");
  ask(&t, "best = ms.tune(ms.ops.func(\"relu\", {\"8x8\"}), {no_tune = true, db = os.tmpname() .. \".db\"})", "\n");
  ask(&t, "type(best.tra\t)", "\nuserdata"); /* what ms.tune gives, and what is in it */
  ask(&t, "best:sch\t():func():name()", "\nrelu_8x8");
  ask(&t, "best.func:na\t()", "\nrelu_8x8");
  type(&t, "te.argm\t"); /* several */
  expect(&t, "argmax  argmin");
  expect(&t, "te.argm");
  ask(&t, "ax == te.argmax and 'same'", "\nsame");
  type(&t, "f\t"); /* keywords and globals */
  expect(&t, "false");
  expect(&t, "function");
  type(&t, "\x15");
  ask(&t, "\t7 * 3", "\n21"); /* at the start of a line: blanks */
  leave(&t);
}

static void test_interrupts(void **unused) {
  (void)unused;
  struct terminal t;
  start(&t, NULL);
  type(&t, "print 'runs' while true do pcall(function() while true do end end) end\r");
  expect(&t, "\nruns");
  type(&t, "\x03");
  expect(&t, "msched: interrupted");
  expect(&t, "> ");
  ask(&t, "6 * 7", "\n42");
  type(&t, "this is no line (");
  expect(&t, "(");
  type(&t, "\x03");
  expect(&t, "\n");
  expect(&t, "> ");
  ask(&t, "7 * 7", "\n49");
  type(&t, "print(\r");
  expect(&t, ">> ");
  type(&t, "\x03");
  expect(&t, "> ");
  ask(&t, "8 * 8", "\n64");
  leave(&t);
}

/* Ctrl-C ends a kernel that runs for hours, on one thread and on several, however it is called; and the next one
 * runs. */
static void test_interrupted_kernels(void **unused) {
  (void)unused;
  static const char *const calls[] = {"k(P, Q)", "k:time(P, Q)", "k:check_timing()", "ms.time(k, P, Q)",
                                      "ms.time_in_turn({k:prepare(P, Q)}, 1)"};
  struct terminal t;
  char line[512];
  start(&t, "1");
  ask(&t, "P, Q = ms.array({64}, 'int64'), ms.array({64}, 'int32')", "");
  ask(&t, "head = '@T.prim_func\\ndef main(P: T.Buffer((64,), \"int64\"), Q: T.Buffer((64,), \"int32\")):\\n'", "");
  ask(&t, "body = '    Q[P[j % T.int64(64)] * P[j % T.int64(64)]] = Q[P[0] * P[0]] + T.Cast(\"int32\", i) + 1\\n'", "");
  ask(&t,
      "function made(loop, rounds) return ms.build(ms.from_script(head .. '  for i in ' .. loop .. '(4):\\n'"
      " .. '   for j in range(T.int64(' .. rounds .. ')):\\n' .. body), {target = 'native -num-cores=4'}) end",
      "");
  for (int parallel = 0; parallel < 2; parallel++) {
    const char *loop = parallel ? "T.parallel" : "range";
    snprintf(line, sizeof line, "k = made('%s', 1 << 40)", loop);
    ask(&t, line, "");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
      snprintf(line, sizeof line, "print 'runs' io.flush() %s\r", calls[i]);
      type(&t, line);
      expect(&t, "\nruns");
      type(&t, "\x03");
      expect(&t, "msched: interrupted");
      expect(&t, "> ");
    }
    snprintf(line, sizeof line, "Q = ms.array({64}, 'int32') made('%s', 1)(P, Q) return 'sum ' .. Q:tolist()[1]", loop);
    ask(&t, line, parallel ? "\nsum " : "\nsum 10"); /* threads race for it */
  }
  leave(&t);
}

static void test_history(void **unused) {
  (void)unused;
  struct terminal t;
  start(&t, NULL);
  ask(&t, "1000 + 234", "\n1234");
  ask(&t, "5", "\n5");
  leave(&t);
  char file[sizeof home + 40];
  snprintf(file, sizeof file, "%s/.local/state/msched/history", home);
  assert_int_equal(access(file, R_OK), 0);
  start(&t, NULL);
  ask(&t, "\x1b[A\x1b[A", "\n1234");
  leave(&t);
}

/* An input of several lines comes back whole, in this session and the next; its lines are gone up and down in. */
static void test_inputs_of_lines(void **unused) {
  (void)unused;
  struct terminal t;
  start(&t, NULL);
  type(&t, "for i = 1, 2 do\r");
  expect(&t, ">> ");
  type(&t, "print(i * 1111)\r");
  expect(&t, ">> ");
  ask(&t, "end", "\n2222");
  ask(&t, "9 + 9", "\n18");
  ask(&t, UP UP, "\n2222"); /* as it was */
  /* two lines up is the first, at the column of the end: for| i = 1, 2 do */
  ask(&t, UP UP UP FORTH FORTH FORTH FORTH FORTH FORTH BACK "-3", "\n-3333");
  leave(&t);
  start(&t, NULL);
  ask(&t, UP DOWN "4 + 4", "\n8"); /* what is below the last input is an empty one */
  ask(&t, UP UP UP UP FORTH FORTH FORTH FORTH FORTH FORTH FORTH BACK "4", "\n-4444");
  leave(&t);
}

/* Ctrl-R finds an input by what is in it. */
static void test_history_search(void **unused) {
  (void)unused;
  struct terminal t;
  start(&t, NULL);
  ask(&t, "777 + 11", "\n788");
  ask(&t, "'some' .. 'thing'", "\nsomething");
  ask(&t, "5", "\n5");
  type(&t, "\x12"
           "777");
  expect(&t, "777 + 11");
  type(&t, "\r");
  expect(&t, "\n788");
  expect(&t, "> ");
  leave(&t);
}

/* Tuning draws its table; Ctrl-C ends it, the prompt is back, and what it found is a value. */
static void test_tuning(void **unused) {
  (void)unused;
  struct terminal t;
  start(&t, "1");
  ask(&t, "f = ms.ops.func('matmul', {'64', '64', '64'})", ""); /* of a space that does not end */
  ask(&t, "options = {trials = 100000, policy = 'replay_trace', target = 'native -num-cores=1'}", "");
  type(&t, "best = ms.tune(f, options)\r");
  expect(&t, "of roof");
  expect(&t, "best so far");
  expect(&t, " to "); /* there is a best */
  type(&t, "\x03");
  expect(&t, "kept in ");
  expect(&t, "> ");
  ask(&t, "best", ", interrupted; :schedule(), :build() and :export(path) make it");
  ask(&t, "best.seconds > 0 and best.interrupted and 'a value'", "\na value");
  ask(&t, "best:schedule():hash() ~= '' and 6 * 7", "\n42"); /* nothing is left of the interrupt */
  leave(&t);
}

/* What to type next stands in lines of its own where one line is not wide enough. */
static void test_narrow_commands(void **unused) {
  (void)unused;
  for (unsigned short columns = 60; columns <= 300; columns += 240) {
    struct terminal t;
    char store[sizeof home + 24];
    snprintf(store, sizeof store, "%s/store%d.db", home, columns);
    start_with(&t, "1", columns,
               (char *[]){"msched", "tune", "ops:relu", "--trials", "1", "--target", "native -num-cores=1", "--db",
                          store, "--", "64", NULL});
    expect(&t, columns == 60 ? "next:\r\n  msched show " : "next:  msched show ");
    expect(&t, columns == 60 ? "\r\n  msched replay " : "    msched replay ");
    leave(&t);
  }
}

static void test_colour(void **unused) {
  (void)unused;
  struct terminal t;
  start(&t, NULL);
  make_schedule(&t);
  type(&t, "sch\r");
  expect(&t, "\x1b[");
  expect(&t, "prim_func");
  expect(&t, "> ");
  ask(&t, "sch:get_sblock 'plus_one'", "block plus_one");
  type(&t, "sch.trace\r");
  expect(&t, "\x1b[35mreturn\x1b[0m");
  expect(&t, "> ");
  leave(&t);
  start(&t, "1");
  make_schedule(&t);
  type(&t, "print(sch)\r");
  expect(&t, "\n    @T.prim_func(s_tir=True)\r\n    def f(A: T.Buffer((8, 8), \"float32\")");
  expect(&t, "\r\n> ");
  leave(&t);
}

/* The editor has all cells of the terminal in memory: gigabytes, where so many are told of. */
static void test_huge_terminal(void **unused) {
  (void)unused;
  struct terminal t;
  rows = 65535;
  start_with(&t, NULL, 65535, (char *[]){"msched", NULL});
  rows = 40;
  expect(&t, "65535 x 65535 cells, so lines are not edited");
  type(&t, "for i = 1, 2 do\rprint(i * 111)\rend\r");
  expect(&t, "\n222");
  leave(&t);
}

static int remove_home(void **unused) {
  (void)unused;
  char command[sizeof home + 16];
  snprintf(command, sizeof command, "rm -rf %s", home);
  return system(command);
}

int main(void) {
  if (!getenv("MSCHED_PROGRAM")) return fprintf(stderr, "MSCHED_PROGRAM is not set\n"), 77;
  int master, slave;
  if (openpty(&master, &slave, NULL, NULL, NULL) < 0) return perror("skipped, for want of a pseudo-terminal"), 77;
  close(master), close(slave);
  if (!mkdtemp(home)) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lines),          cmocka_unit_test(test_completion),
      cmocka_unit_test(test_interrupts),     cmocka_unit_test(test_interrupted_kernels),
      cmocka_unit_test(test_history),        cmocka_unit_test(test_inputs_of_lines),
      cmocka_unit_test(test_history_search), cmocka_unit_test(test_tuning),
      cmocka_unit_test(test_colour),         cmocka_unit_test(test_narrow_commands),
      cmocka_unit_test(test_huge_terminal),
  };
  return cmocka_run_group_tests(tests, NULL, remove_home);
}
