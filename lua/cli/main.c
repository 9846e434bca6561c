/* msched: the program. A table of subcommands. */
#define _GNU_SOURCE
#include "cli.h"

#include "jit/jit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

const struct cli_command cli_commands[] = {
    {"apply", "FILE TRACE [FILE TRACE…]",
     "Schedules the functions of a TVMScript file, or the function of a Lua file or an operator (ops:conv2d), by a "
     "trace, and prints them.",
     cli_apply},
    {"convert", "TRACE [-o FILE]", "Writes a trace in another form: JSON as TVM has it, Lua text, or binary.",
     cli_convert},
    {"run", "FILE",
     "Runs a function, or its schedule, on the reference interpreter and compiled; compares, and times it; or a "
     "network, FILE.onnx, each of its functions as the store has it tuned, or else as the analytical model proposes.",
     cli_run},
    {"lower", "FILE", "Prints a function as code is generated from it, or after a pass of the lowering.", cli_lower},
    {"bench",
     "replay [NAME… | all | growth]\nkinds\nsearch [NAME… | FILE… | all]\npolicies [NAME… | FILE…]\ntransfer [NAME… | "
     "FILE…]\nquality "
     "[NAME…]\nops [NAME… | FILE…]\nablation [NAME… | FILE…]\nnets FILE.onnx[:NAME=SHAPE]…\nauto [NAME… | "
     "FILE…]\nlenet [BATCH]\ngemm\ntune",
     "Measures: replay, traces a second on one core; kinds, the cost of each kind of instruction; search, the cost of "
     "candidates and runs of the search; policies, the best of each policy with as many trials; transfer, the trials "
     "that records of others save; quality, the time to "
     "TVM's best; ops, a suite's tuned operators beside vendors' routines; ablation, what each rule of the space is "
     "worth; nets, networks beside onnxruntime or "
     "OpenVINO; auto, "
     "schedules without tuning beside tuned ones; lenet, a network scheduled at once; gemm, tuned matrix products "
     "beside vendors'; tune, seconds a "
     "trial. A FILE is one of functions, ops:NAME(ARGUMENTS) or suite:NAME.",
     cli_bench},
    {"tune", "FILE…",
     "Searches for the fastest schedules of the functions of Lua or TVMScript files, of networks (FILE.onnx), of "
     "operators "
     "(ops:conv2d) or of suites (suite:ops).",
     cli_lua},
    {"worker", "URL",
     "Builds and times candidates of a fleet, on this machine: takes jobs from a Redis server, "
     "redis://HOST[:PORT][/N], "
     "until Ctrl-C.",
     cli_lua},
    {"fleet", "URL", "Shows a fleet's queues, its workers with their rates and failures, and its tuners.", cli_lua},
    {"top", "[NAME]", "Lists the fastest records of each workload.", cli_lua},
    {"show", "ID\nFILE\nops:NAME\nsuite:NAME",
     "Prints a record: its scheduled module and its trace, or what each instruction changed; a file's functions, or an "
     "operator's; a network, FILE.onnx; the members of a suite. An ID may be a task's name, for its best record, or "
     "`best` where the store "
     "has one task.",
     cli_lua},
    {"report", "[TASK…] -o FILE\nFILE.onnx -o FILE",
     "Makes one page of HTML of what the store knows: tasks, curves, failures, decisions, the best step by step; of "
     "two stores side by side; or of a network, which is timed: its graph, functions and calls.",
     cli_lua},
    {"replay", "ID\nFILE",
     "Replays a record, or the one to use of a file's function: builds, checks and times it again.", cli_lua},
    {"export", "[ID] -o FILE\nFILE.onnx -o FILE",
     "Writes the kernel of a record, or of the one to use of a Lua or TVMScript file's function: .o .so .c .h .ll .s, "
     "a GPU's .cu .ptx .cubin .h .c, by FILE's suffix; one library of "
     "all that is pinned; or of a network, with a header and a file of its constants.",
     cli_lua},
    {"diff", "ID ID", "Shows what differs between two records: their traces, their scheduled modules, their code.",
     cli_lua},
    {"db",
     "list\nwords [START]\npin ID…\nunpin ID…\nprune\nmerge STORE…\ncheck\nrepair\nbackup FILE\n"
     "delete ID…\ncompact\nexport [FILE]\nimport FILE",
     "Looks after the store; records come from TVM and go there.", cli_lua},
    {"space", "FILE", "Prints the design space: every sketch as a trace; of a network, of each of its functions.",
     cli_lua},
    {"doctor", "", "Shows what was found: cores, vectors, caches, measured peak and bandwidth.", cli_lua},
    {"help", "[NAME]", "Explains a command, an instruction, a query or a member of the Lua module.", cli_help},
    {NULL, NULL, NULL, NULL},
};

/* Help may be asked for anywhere before the arguments of a Lua file. */
static bool asks_for_help(int argc, char **argv) {
  for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
    if (!strcmp(argv[i], "--help")) return true;
  return false;
}

/* However the program ends, what it printed is out, or it failed. */
static void finish_output(void) {
  errno = 0;
  bool failed = fflush(stdout) != 0;
  if (!failed && !ferror(stdout)) return;
  fprintf(stderr, "msched: standard output cannot be written%s%s\n", errno ? ": " : "", errno ? strerror(errno) : "");
  _exit(CLI_FAILED);
}

/* A stream that was closed by who started the program would be the next file that it opens, a store's: it is one that
 * can neither be read nor written. Not /dev/null, which a bare chroot lacks. */
static void keep_streams(void) {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF && open("/", O_PATH) != stream)
      _exit(CLI_FAILED); /* nowhere to say so */
}

/* What C cannot do without memory ends the program, wherever it is. That is said where so much as this cannot be had:
 * else it is an assertion that failed, which has said so. Calls the system alone: a signal may come anywhere. */
enum { MEMORY_LEFT = 128 << 20 };

static void on_abort(int number) {
  (void)number; /* returning ends the program as it would have: other threads may come here meanwhile */
  if (mmap(NULL, MEMORY_LEFT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) return;
  static const char message[] =
      "msched: no memory is left; allow the process more, as by `ulimit -v unlimited`, or ask for "
      "less at once, as by --jobs 1; what was measured is kept\n";
  ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
  (void)written;
  _exit(CLI_FAILED);
}

/* Libraries in C++ have constructors, which end the program by a signal where they get no memory, and LLVM recurs:
 * before them it is seen whether there is some, and a stack. Nothing of a sanitizer is there yet. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
enum { MEMORY_OF_LIBRARIES = 8 << 20, STACK_OF_LLVM = 512 << 10 };

static void end_at_once(const char *message) {
  ssize_t written = write(STDERR_FILENO, message, strlen(message));
  (void)written;
  _exit(CLI_FAILED);
}
static void look_at_limits(void) {
  struct rlimit stack;
  void *some =
      mmap(NULL, MEMORY_OF_LIBRARIES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (some == MAP_FAILED)
    end_at_once("msched: there is no memory to start with; allow the process more (`ulimit -v`)\n");
  munmap(some, MEMORY_OF_LIBRARIES);
  if (!getrlimit(RLIMIT_STACK, &stack) && stack.rlim_cur < STACK_OF_LLVM)
    end_at_once("msched: the stack may have less than 512 KiB, which compiling takes; allow it more (`ulimit -s`)\n");
}
__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(void) = look_at_limits;
#endif

/* A stack grows where it is used, and a program whose stack cannot grow ends by a signal: so much of it is there from
 * the start, when there is memory, or half of what it may have. */
enum { STACK_TAKEN = 1 << 20, PAGE = 4096 };
static __attribute__((noinline)) void take_stack(size_t bytes) {
  volatile char *pages = __builtin_alloca(bytes);
  for (size_t i = 0; i < bytes; i += PAGE) pages[i] = 0;
}
static void have_stack(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit)) return;
  take_stack(limit.rlim_cur / 2 < STACK_TAKEN ? (size_t)limit.rlim_cur / 2 : STACK_TAKEN);
}

static int unknown_command(const char *name) {
  enum { COMMANDS = sizeof cli_commands / sizeof *cli_commands - 1 };
  const char *names[COMMANDS];
  char meant[CLI_MEANT];
  for (int i = 0; i < COMMANDS; i++) names[i] = cli_commands[i].name;
  cli_meant(name, names, COMMANDS, meant);
  if (!*meant && access(name, F_OK) == 0)
    return cli_wrong_usage(NULL,
                           "\"%s\" is a file and no command; scripts that are run are files whose name ends in .lua, "
                           "and files of functions are for a command, as `msched show %s`",
                           name, name);
  return cli_wrong_usage(NULL, "unknown command \"%s\"%s", name, meant);
}

static void say_waiting(const char *text) { fprintf(stderr, "msched %s\n", text); }

int main(int argc, char **argv) {
  have_stack();
  keep_streams();
  jit_say_waiting(say_waiting);
  atexit(finish_output);
  signal(SIGABRT, on_abort);
  signal(SIGCHLD, SIG_DFL); /* ignored, as by whoever starts it, it would leave no status of a command */
  signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of writing it, with a message */
  if (argc < 2) return cli_repl();
  const char *name = argv[1];
  if (!strcmp(name, "--help") || !strcmp(name, "-h")) return cli_help(NULL, 0, NULL);
  if (!strcmp(name, "--version")) return puts("msched " MSCHED_VERSION), CLI_DONE;
  for (const struct cli_command *c = cli_commands; c->name; c++)
    if (!strcmp(c->name, name)) {
      if (asks_for_help(argc, argv)) return cli_help(c, 1, &argv[1]);
      return c->run(c, argc - 2, argv + 2);
    }
  size_t length = strlen(name);
  if (!strcmp(name, "-") || (length > 4 && !strcmp(name + length - 4, ".lua"))) return cli_script(argc - 1, argv + 1);
  return unknown_command(name);
}
