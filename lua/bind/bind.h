/* The Lua module `msched`: what C gives to scripts. Internal to lua.
 *
 * Owned things are full userdata with a __gc; borrowed ones keep their owner alive as a user value. No C resource is
 * held across a call that can raise: what must be freed is put in a userdata first. */
#ifndef MSCHED_LUA_BIND_H
#define MSCHED_LUA_BIND_H

#include "jit/jit.h"
#include "vm/vm.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* ---- States (state.c) ---- */

struct script_limits {
  size_t bytes;    /* of Lua memory; 0: most of what the machine has */
  double seconds;  /* of one limited call into the state; 0: none */
  bool patient;    /* an interrupt is not raised in scripts: who calls them looks at it */
  bool sandbox;    /* rules from files: see sandbox.c */
  bool skips;      /* a rule, postprocessor or mutator that fails counts as one that was refused */
  bool fixed;      /* no option allows more seconds */
  bool is_program; /* what runs in it may end the process: a script, or a session's lines */
};
/* A state with the module `msched` loaded as a global of that name and by require. NULL: memory is out, or err. */
lua_State *script_new(const struct script_limits *limits, ms_error *err);
void script_close(lua_State *L);
/* Called where instructions and queries are: looks now and then whether the script is late or interrupted, for what
 * runs without the hook. It is stopped at its next step. */
void script_look(lua_State *L);
/* From now on the signal of that number interrupts; where `kills`, a later one of it ends the process at once. */
void script_catch(int number, bool kills);
/* After an interrupt that kills later, how to end what still goes on so many seconds later is said. */
void script_say_when_slow(unsigned seconds);
/* Forgets it: an interactive session goes on. */
void script_resume(void);
bool script_interrupted(void);
const volatile bool *script_stopped(void); /* whether it is; for measurers */
/* Raises "interrupted" where the user asked to stop and the state is not patient: before what takes long and has no
 * hook. Gives what turns from 0 while it runs; NULL: nothing does. Where it ends by that, with MS_RUN_STOPPED,
 * bind_raise says "interrupted". */
const volatile int *bind_stop(lua_State *L);
/* The same, whatever the state: for what gives what it has when it is stopped, as those who call it expect. */
const volatile int *script_stop_flag(lua_State *L);
/* Calls the function on the stack under its arguments, with a traceback in err on failure. */
bool script_call(lua_State *L, int arguments, int results, ms_error *err);
/* The same, with the message alone: for what `limited` calls. */
bool script_try(lua_State *L, int arguments, int results, ms_error *err);
/* Memory that C holds for a value of the state counts as the state's; `charged` is what was counted for it so far.
 * Raises when the limit is passed: the value must be the state's already. */
void script_charge(lua_State *L, size_t *charged, size_t bytes);
void script_discharge(lua_State *L, size_t *charged);
/* Loads (text only, no bytecode) and runs a file; its results are left on the stack. "-": standard input. */
bool script_run_file(lua_State *L, const char *path, int arguments, int results, ms_error *err);
/* Pushes what a file of ours gives, loaded once a state: "lua.cli.cli" is lua/cli/cli.lua. */
void script_push_own(lua_State *L, const char *name);
/* A file that is written for a user: what was there stays until all of it is, and where that fails. "-" is standard
 * output; devices and pipes are written to; a store is refused. */
struct bind_output {
  FILE *file;
  char *path, *made; /* NULL: standard output; a device or a pipe */
  int temporary;
};
/* false: err says why it cannot be; else bind_close_output. */
bool bind_open_output(struct bind_output *out, const char *path, ms_error *err);
/* ok: all was written, as far as the caller knows; else err has why not. Returns whether the file is there. */
bool bind_close_output(struct bind_output *out, bool ok, ms_error *err);
/* A file that a user names, opened for reading: no folder, and no device, which may never end; a pipe that nobody
 * writes to has nothing in it, and is not waited for. NULL: err says why. fclose. */
FILE *bind_open_file(const char *path, ms_error *err);
FILE *bind_open_or_say(const char *path, const char **fault); /* the same; NULL: *fault is why, without the path */
/* Bytes that are read of a text or a trace at most: none comes near it. */
#define BIND_MOST_TEXT ((uint64_t)256 << 20)
/* All of a file, or of standard input, that has at most so many bytes; a 0 follows them. NULL: err says why. free. */
char *bind_read_file(const char *path, uint64_t most, size_t *length, ms_error *err);
char *bind_read_input(uint64_t most, size_t *length, ms_error *err);
/* Pushes all of a file that has at most so many bytes, as a string; false: pushes nothing, and err says why. */
bool bind_push_file(lua_State *L, const char *path, uint64_t most, ms_error *err);
/* Pushes what a file holds, as a string; raises where it cannot be read. */
void script_push_text(lua_State *L, const char *path);
/* The path of a file of ours, such as "lua/lib/te.lua" or "lua/bench/data": under MSCHED_LUA_PATH, else in the source
 * tree of a build, else where it is installed. */
void script_path(const char *file, char *out, size_t size);
/* Makes the module `msched` in a state, as a global and as the result: what require calls in a Lua that is not ours. */
int luaopen_msched(lua_State *L);

/* ---- Types: each registers its metatable ---- */

void bind_functions(lua_State *L); /* adds to the module on the top of the stack */
void bind_specialize(lua_State *L);
int bind_symbolic(lua_State *L); /* function:symbolic() */
int bind_packing(lua_State *L);
int bind_in_place(lua_State *L);
void bind_schedules(lua_State *L);
void bind_methods(lua_State *L);
void bind_traces(lua_State *L);
void bind_arrays(lua_State *L);
void bind_kernels(lua_State *L);
void bind_calls(lua_State *L); /* after the kernels */
void bind_sequences(lua_State *L);
void bind_vendors(lua_State *L);
void bind_workers(lua_State *L);
void bind_targets(lua_State *L);
void bind_units(lua_State *L);
void bind_rates(lua_State *L);
void bind_parts(lua_State *L);    /* limited.c */
void sandbox_open(lua_State *L);  /* the libraries of a sandboxed state (sandbox.c) */
void sandbox_bound(lua_State *L); /* of any state: what a policy or a model calls ends */

struct bound_function {
  struct tir *ir;
  tir_func func;
  size_t charged;
  struct tir_expectation *expected; /* by check_lowered, which last had this seed; or NULL */
  uint64_t expected_seed;
};
#define BOUND_FUNCTION "msched.function"
#define BOUND_SCHEDULE "msched.schedule"
#define BOUND_HANDLE   "msched.handle"
#define BOUND_TRACE    "msched.trace"
#define BOUND_ARRAY    "msched.array"
#define BOUND_KERNEL   "msched.kernel"

struct bound_function *bind_check_function(lua_State *L, int at);
/* Pushes a function that owns the module. */
void bind_push_function(lua_State *L, struct tir *ir, tir_func f);
void bind_push_function_copy(lua_State *L, const struct tir *ir, tir_func f);
void bind_forget_expected(struct bound_function *f); /* frees what it makes of a seed, if that is kept */
struct vm_schedule *bind_check_schedule(lua_State *L, int at);
/* Pushes a schedule that is lent until bind_release_schedule, one at a time: for postprocessors. */
void bind_push_borrowed_schedule(lua_State *L, struct vm_schedule *schedule);
void bind_release_schedule(lua_State *L);
/* For a session. watch(table): from now on the first change of a schedule puts its trace as it was there, by the
 * schedule; watch(): no more. go_to(schedule, trace): it becomes what the trace gives, and handles that both know stay
 * good. */
int bind_watch_changes(lua_State *L);
int bind_go_to(lua_State *L);
/* The trace of the state that holds answers to queries while they are given. */
struct vm_trace *bind_answers(lua_State *L);
struct vm_trace *bind_check_trace(lua_State *L, int at);
struct vm_trace *bind_test_trace(lua_State *L, int at);        /* NULL: it is none */
void bind_push_trace(lua_State *L, struct vm_trace *trace);    /* owned */
void bind_push_packed(lua_State *L, struct vm_packed *packed); /* owned; a trace like others */

struct bound_array {
  void *data; /* 64-byte aligned; of a view, a part of the data of the array that is its user value 1 */
  bool is_view;
  size_t bytes, count;
  tir_type type;
  int rank;
  int64_t shape[32];
};
struct bound_array *bind_check_array(lua_State *L, int at);
/* Pushes a new array of zeros; raises when memory is out. */
struct bound_array *bind_new_array(lua_State *L, const int64_t *shape, int rank, tir_type type);

/* A call of a kernel with the arguments from stack index `at` on, checked against its function; raises what is wrong.
 * Owned by the caller: jit_call_free. */
struct jit_call *bind_call(lua_State *L, int kernel, int at);

/* A kernel at a stack index with the arguments behind it, up to the top, as a step of a sequence; raises what is wrong.
 * The arguments are written to `args`, and the arrays are borrowed. */
enum { BIND_MOST_ARGUMENTS = 64 }; /* of a call, and numbers of a decision */
void bind_step(lua_State *L, int kernel, struct jit_step *out, struct tir_arg args[BIND_MOST_ARGUMENTS]);

/* What is ready to be run, of a kernel or of a vendor. */
struct bound_call {
  void (*run)(void *data);
  void (*finish)(void *data); /* brings the result to its place, which is not timed; NULL: it is there */
  void (*release)(void *data);
  jit_turn *turn;                               /* of kernels: of what runs them; NULL: not known */
  void *data;                                   /* NULL: nothing yet, to be released */
  bool (*attempt)(void *data, ms_error *err);   /* of kernels and of what a device runs, in the place of `run`, and */
  double (*sample)(void *data, uint32_t calls); /* seconds of one of so many in a row; below 0: one failed */
  double rounding;                              /* vendor.h */
  char routine[200];                            /* vendor.h */
};
/* Pushes one that keeps the value at the index `kept`, and is to be filled. */
struct bound_call *bind_new_call(lua_State *L, int kept);
/* Pushes a table: seconds, low, high, runs, busy; of a device clock, and raw_seconds and by_launches where they are. */
void bind_push_timing(lua_State *L, const struct jit_timing *timing);

/* The tensor intrinsics that the state's scripts have defined; the state's own, until it is closed. */
const struct vm_intrinsics *bind_intrinsics(lua_State *L);
/* Adds copies. False: there is another of a name. */
bool bind_add_intrinsics(lua_State *L, const struct vm_intrinsics *from, ms_error *err);
void bind_intrinsic(lua_State *L); /* adds to the module on the top of the stack */

/* Registers a type: `meta` are its metamethods, `methods` what __index finds. getmetatable gives the name only, so that
 * no script gets at __gc. */
void bind_type(lua_State *L, const char *name, const luaL_Reg *methods, const luaL_Reg *meta);
/* The table on top also answers to names that its members had: pairs of the old name and the new one. They are not
 * explained, and not listed. */
void bind_old_names(lua_State *L, const char *const names[][2], size_t count);
/* Pushes zeroed memory that `collect` releases what it points to, for what C holds where Lua may raise. */
void *bind_hold(lua_State *L, size_t size, const char *name, lua_CFunction collect);
/* Raises err's message. */
int bind_raise(lua_State *L, const ms_error *err);
/* The same of what an instruction refused: `limited` and code_of know such a message, and its code. */
int bind_raise_refused(lua_State *L, const ms_error *err);
/* What no module would take, or what needs to be defined first, is a mistake of the script's. */
bool bind_is_misuse(enum ms_code code);
/* The code of the refusal whose message is at `at`; MS_OK: it is that of a mistake in the script. */
enum ms_code bind_refused_code(lua_State *L, int at);
/* Raises a message, with the place in the user's file in front, if there is one; luaL_error would name ours. Formats as
 * lua_pushfstring. */
int bind_refuse(lua_State *L, const char *format, ...);
/* Raises where the options at `at` (a table, nil or nothing) have a field that is none of "name:type name:type …", or
 * of another type: what Lua's `type` says, "integer", "any", or a class of ours, as "msched.function". */
void bind_check_options(lua_State *L, int at, const char *known);
void bind_options(lua_State *L); /* adds to the module on the top of the stack */
/* Reads options: the field of the table at `at`, or the default. */
int64_t bind_option_int(lua_State *L, int at, const char *name, int64_t otherwise);
bool bind_option_bool(lua_State *L, int at, const char *name, bool otherwise);
/* The option `resample`: whether all decisions of a trace are sampled again. */
bool bind_option_resample(lua_State *L, int at);
const char *bind_option_text(lua_State *L, int at, const char *name, const char *otherwise); /* lives with the table */
/* A text that is an argument, or otherwise: without a zero byte. */
const char *bind_check_text(lua_State *L, int at);
const char *bind_opt_text(lua_State *L, int at, const char *otherwise);
/* The integer on the top of the stack, item i of a list. */
lua_Integer bind_check_item(lua_State *L, lua_Integer i);
/* The integers of the list at `at`, at most `most`; how many. */
uint32_t bind_check_items(lua_State *L, int at, int64_t *out, uint32_t most);

#endif
