/* Building and running functions from Lua: on the JIT, on the reference interpreter; timing, checking, exporting. */
#include "bind.h"

#include <stdlib.h>
#include <string.h>

struct bound_kernel {
  struct jit_code *code;
  struct jit_kernel *kernel; /* NULL: it is not loaded, or this machine does not run it; it can be exported */
  struct jit_target target;
  struct jit_options options;
}; /* user value 1: the function it was built from; 2: the unscheduled function, or nil */

static struct bound_kernel *check_kernel(lua_State *L, int at) { return luaL_checkudata(L, at, BOUND_KERNEL); }

static int collect(lua_State *L) {
  struct bound_kernel *k = check_kernel(L, 1);
  jit_kernel_free(k->kernel);
  jit_code_free(k->code);
  k->kernel = NULL;
  k->code = NULL;
  return 0;
}

static struct bound_function *function_of(lua_State *L, int kernel) {
  lua_getiuservalue(L, kernel, 1);
  struct bound_function *f = bind_check_function(L, -1);
  lua_pop(L, 1); /* the kernel keeps it */
  return f;
}

/* Loads the kernel, if it is not; on a GPU that is when NVRTC compiles it. Refuses where this machine does not run
 * it. */
static bool load_kernel(struct bound_kernel *k, ms_error *err) {
  if (!k->kernel && jit_target_runs_here(&k->target, err)) k->kernel = jit_load(k->code, err);
  return k->kernel != NULL;
}

/* build(function [, {target = "native", fast_math = true, stack_bytes = n, reference = function, load = true}]) */
static int build(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  lua_settop(L, 2);
  bind_check_options(L, 2,
                     "target:string fast_math:boolean stack_bytes:integer reference:msched.function "
                     "load:boolean");
  const char *target = bind_option_text(L, 2, "target", "native");
  struct bound_kernel *k = lua_newuserdatauv(L, sizeof *k, 2);
  memset(k, 0, sizeof *k);
  luaL_setmetatable(L, BOUND_KERNEL);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  if (lua_istable(L, 2)) {
    lua_getfield(L, 2, "reference");
    lua_setiuservalue(L, -2, 2);
  }
  lua_Integer stack_bytes = bind_option_int(L, 2, "stack_bytes", 0);
  luaL_argcheck(L, stack_bytes >= 0, 2, "stack_bytes is a number of bytes");
  k->options.no_fast_math = !bind_option_bool(L, 2, "fast_math", true);
  k->options.stack_bytes = (uint64_t)stack_bytes;
  ms_error err = {.instruction = -1};
  if (!jit_target_parse(target, &k->target, &err)) return bind_raise(L, &err);
  k->code = jit_compile(f->ir, f->func, &k->target, &k->options, &err);
  bool ok = k->code != NULL;
  if (ok && bind_option_bool(L, 2, "load", true) && jit_target_runs_here(&k->target, NULL)) ok = load_kernel(k, &err);
  if (!ok) return bind_raise(L, &err);
  return 1;
}

/* ---- Arguments ---- */

/* An array of one dimension for a buffer that strides or an offset lay out. */
static bool is_memory_of(const struct tir_buffer_node *n, const struct bound_array *a) {
  assert(n && a);
  return (n->strides.count || n->elem_offset) && a->rank == 1;
}

/* The elements of the parameter's type, and its extents, or, where strides and an offset lay it out, an array of one
 * dimension: its memory. */
static void check_against(lua_State *L, const struct tir *ir, tir_buffer buffer, const struct bound_array *a,
                          int number) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  const char *name = tir_text(ir, n->name);
  char wanted[24], given[24];
  if (n->type != a->type)
    bind_refuse(L, "argument %d (%s): elements of %s are expected, not %s", number, name,
                tir_type_text(n->type, wanted), tir_type_text(a->type, given));
  if (is_memory_of(n, a)) return;
  if ((int)n->rank != a->rank)
    bind_refuse(L, "argument %d (%s): %d dimension%s expected, not %d", number, name, (int)n->rank,
                n->rank == 1 ? " is" : "s are", a->rank);
  for (uint32_t i = 0; i < n->rank; i++) {
    const struct tir_expr_node *e = tir_at(ir, tir_operands(ir, n->shape)[i]);
    if (e->kind == TIR_INT_IMM && e->imm != a->shape[i])
      bind_refuse(L, "argument %d (%s): extent %d is %I, not %I", number, name, (int)i, (LUAI_UACINT)e->imm,
                  (LUAI_UACINT)a->shape[i]);
  }
}

/* An array has as many bytes as the function's extents, strides and offsets say for these scalars. */
static void check_sizes(lua_State *L, const struct bound_function *f, int at, const struct tir_arg *given) {
  struct tir_arg sized[BIND_MOST_ARGUMENTS];
  struct tir_span params = f->ir->funcs.at[f->func].params;
  char type[24];
  assert(params.count <= BIND_MOST_ARGUMENTS);
  memcpy(sized, given, params.count * sizeof *sized);
  tir_size_arguments(f->ir, f->func, sized);
  for (uint32_t i = 0; i < params.count; i++) {
    tir_buffer buffer = f->ir->params.at[params.first + i].buffer;
    if (!buffer || sized[i].bytes == SIZE_MAX || sized[i].bytes == given[i].bytes) continue;
    const struct bound_array *a = bind_check_array(L, at + (int)i);
    const struct tir_buffer_node *n = tir_buffer_at(f->ir, buffer);
    LUAI_UACINT elements = (LUAI_UACINT)(sized[i].bytes / (((size_t)tir_type_bits(n->type) + 7) / 8));
    bind_refuse(L,
                n->strides.count || n->elem_offset
                    ? "argument %d (%s): its extents, strides and offset reach %I elements, the array has %I: give its "
                      "memory, ms.array({%I}, \"%s\")"
                    : "argument %d (%s): its extents say %I elements, the array has %I",
                (int)i + 1, tir_text(f->ir, n->name), elements, (LUAI_UACINT)a->count, elements,
                tir_type_text(n->type, type));
  }
}

/* Reads the arguments from stack index `at` on; as many as the function has parameters. */
static void read_arguments(lua_State *L, const struct bound_function *f, int at,
                           struct tir_arg out[BIND_MOST_ARGUMENTS]) {
  const struct tir *ir = f->ir;
  struct tir_span params = ir->funcs.at[f->func].params;
  int given = lua_gettop(L) - at + 1;
  if (params.count > BIND_MOST_ARGUMENTS)
    bind_refuse(L, "functions of more than %d parameters cannot be called from here", BIND_MOST_ARGUMENTS);
  if (given != (int)params.count)
    bind_refuse(L, "%d argument%s expected, not %d", (int)params.count, params.count == 1 ? " is" : "s are", given);
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &ir->params.at[params.first + i];
    if (p->buffer) {
      struct bound_array *a = bind_check_array(L, at + (int)i);
      check_against(L, ir, p->buffer, a, (int)i + 1);
      bool whole = is_memory_of(tir_buffer_at(ir, p->buffer), a);
      out[i] = (struct tir_arg){.data = a->data, .bytes = a->bytes, .shape = whole ? NULL : a->shape};
    } else if (tir_type_is_float(ir->vars.at[p->var].type)) {
      out[i] = (struct tir_arg){.real = luaL_checknumber(L, at + (int)i)};
    } else {
      out[i] = (struct tir_arg){.scalar = luaL_checkinteger(L, at + (int)i)};
    }
  }
  check_sizes(L, f, at, out);
}

/* ---- Running ---- */

void bind_step(lua_State *L, int kernel, struct jit_step *out, struct tir_arg args[BIND_MOST_ARGUMENTS]) {
  struct bound_kernel *k = check_kernel(L, kernel);
  const struct bound_function *f = function_of(L, kernel);
  read_arguments(L, f, kernel + 1, args);
  ms_error err = {.instruction = -1};
  if (!load_kernel(k, &err)) bind_raise(L, &err);
  *out = (struct jit_step){.kernel = k->kernel, .ir = f->ir, .func = f->func, .args = args};
}

struct jit_call *bind_call(lua_State *L, int kernel, int at) {
  struct bound_kernel *k = check_kernel(L, kernel);
  struct bound_function *f = function_of(L, kernel);
  struct tir_arg args[BIND_MOST_ARGUMENTS] = {0};
  read_arguments(L, f, at, args);
  const volatile int *stop = bind_stop(L);
  ms_error err = {.instruction = -1};
  if (!load_kernel(k, &err)) bind_raise(L, &err);
  struct jit_call *made = jit_call_new(k->kernel, f->ir, f->func, args, &err);
  if (!made) bind_raise(L, &err);
  jit_call_stop_at(made, stop);
  return made;
}

static int call(lua_State *L) {
  struct jit_call *made = bind_call(L, 1, 2);
  ms_error err = {.instruction = -1};
  bool ok = jit_call_run(made, &err);
  jit_call_free(made);
  return ok ? 0 : bind_raise(L, &err);
}

/* time(arguments… [, limit]): median seconds, low and high of its 95 % interval, runs. limit: seconds of sampling, at
 * most; where other programs run it is sampled up to three times. */
static int time_kernel(lua_State *L) {
  const struct bound_function *f = function_of(L, 1);
  int arguments = (int)f->ir->funcs.at[f->func].params.count;
  double limit = 2;
  if (lua_gettop(L) == arguments + 2) {
    limit = luaL_checknumber(L, -1);
    luaL_argcheck(L, limit > 0, arguments + 2, "the limit is above 0");
    lua_pop(L, 1);
  }
  struct jit_call *made = bind_call(L, 1, 2);
  struct jit_timing timing;
  ms_error err = {.instruction = -1};
  bool ok = jit_call_time(made, 0.02, limit, &timing, &err);
  jit_call_free(made);
  if (!ok) return bind_raise(L, &err);
  lua_pushnumber(L, timing.seconds);
  lua_pushnumber(L, timing.low);
  lua_pushnumber(L, timing.high);
  lua_pushinteger(L, timing.runs);
  lua_pushboolean(L, timing.busy);
  return 5;
}

/* check_real(function [, seed]): compares with the unscheduled function, built, on real numbers; raises where they
 * differ. false: real numbers say nothing of the function, and why. */
static int check_real(lua_State *L) {
  struct bound_kernel *k = check_kernel(L, 1);
  struct bound_function *f = bind_check_function(L, 2);
  struct jit_expected expected;
  ms_error err = {.instruction = -1};
  uint64_t seed = (uint64_t)luaL_optinteger(L, 3, 1);
  const volatile int *stop = bind_stop(L);
  if (!load_kernel(k, &err)) return bind_raise(L, &err);
  int got = jit_expect(f->ir, f->func, &k->target, JIT_REAL, seed, stop, &expected, &err);
  if (got < 0 && err.code == MS_RUN_STOPPED) return bind_raise(L, &err);
  lua_pushboolean(L, got > 0);
  if (got <= 0) {
    lua_pushstring(L, err.message);
    return 2;
  }
  bool same = jit_kernel_agrees(&expected, f->ir, f->func, k->kernel, stop, NULL, &err);
  jit_expected_free(&expected);
  if (!same && err.code == MS_RUN_STOPPED) return bind_raise(L, &err);
  return same ? 1 : bind_refuse(L, "on real numbers the kernel differs from the unscheduled function: %s", err.message);
}

/* check_timing([seed [, runs]]): runs on random arguments with perturbed thread timing; raises where results
 * differ. false: the machine cannot run what the kernel is for, so that nothing was run. */
static int check_timing(lua_State *L) {
  struct bound_kernel *k = check_kernel(L, 1);
  struct bound_function *f = function_of(L, 1);
  lua_Integer seed = luaL_optinteger(L, 2, 1), runs = luaL_optinteger(L, 3, 0);
  luaL_argcheck(L, runs >= 0 && runs <= UINT32_MAX, 3, "a number of runs is expected");
  ms_error err = {.instruction = -1};
  struct tir_arguments args;
  bool here = jit_target_runs_here(&k->target, NULL);
  if (here && !load_kernel(k, &err)) return bind_raise(L, &err);
  lua_pushboolean(L, here);
  if (!here) return 1;
  const volatile int *stop = bind_stop(L);
  if (!tir_make_arguments(f->ir, f->func, (uint64_t)seed, &args, &err)) return bind_raise(L, &err);
  bool ok = jit_check_timing(k->code, f->ir, f->func, &args, (uint32_t)runs, (uint64_t)seed, stop, &err);
  tir_arguments_free(&args);
  return ok ? 1 : bind_raise(L, &err);
}

/* timed_with_digits(function, target): of each parameter, whether it is timed on full-mantissa data */
static int timed_with_digits(lua_State *L) {
  const struct bound_function *f = bind_check_function(L, 1);
  struct jit_target target;
  ms_error err = {.instruction = -1};
  if (!jit_target_parse(bind_check_text(L, 2), &target, &err)) return bind_raise(L, &err);
  lua_newtable(L);
  for (uint32_t i = 0; i < f->ir->funcs.at[f->func].params.count; i++) {
    lua_pushboolean(L, jit_timed_with_digits(f->ir, f->func, &target, i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* interpret(function, arguments…): on the reference interpreter */
static int interpret(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  struct tir_arg args[BIND_MOST_ARGUMENTS] = {0};
  read_arguments(L, f, 2, args);
  ms_error err = {.instruction = -1};
  struct tir_run_options options = {.stop = bind_stop(L)};
  if (!tir_run(f->ir, f->func, args, f->ir->funcs.at[f->func].params.count, &options, &err)) return bind_raise(L, &err);
  return 0;
}

/* What the function makes of the arguments of a seed, by which it runs once. */
static const struct tir_expectation *expect(lua_State *L, struct bound_function *f, uint64_t seed) {
  struct tir_run_options options = {.stop = bind_stop(L)};
  ms_error err = {.instruction = -1};
  if (f->expected && f->expected_seed == seed) return f->expected;
  bind_forget_expected(f);
  script_charge(L, &f->charged, tir_bytes(f->ir));
  struct tir_expectation made;
  if (!tir_expect(f->ir, f->func, &options, seed, &made, &err)) bind_raise_refused(L, &err);
  f->expected = malloc(sizeof *f->expected);
  if (!f->expected) abort();
  *f->expected = made, f->expected_seed = seed;
  script_charge(L, &f->charged, tir_bytes(f->ir) + tir_expectation_bytes(&made));
  return f->expected;
}

/* check_lowered(function, scheduled, target, seed): lowers `scheduled` for the target and runs it with threads that are
 * real, each pass verified; raises where it is refused, races, or computes something else than the function, which runs
 * once for calls in a row with one seed. */
static int check_lowered(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1), *scheduled = bind_check_function(L, 2);
  const char *target_text = bind_check_text(L, 3);
  lua_Integer seed = luaL_checkinteger(L, 4);
  ms_error err = {.instruction = -1};
  struct jit_target target;
  if (!jit_target_parse(target_text, &target, &err)) return bind_raise(L, &err);
  const struct tir_expectation *expected = expect(L, f, (uint64_t)seed);
  struct tir_lower_options options = jit_lower_options(&target);
  struct tir_run_options threads = {.lowered = true, .stop = bind_stop(L)};
  struct tir *lowered = tir_new();
  options.verify = true;
  tir_copy(lowered, scheduled->ir);
  bool ok = tir_lower(lowered, scheduled->func, &options, &err) &&
            tir_meets(expected, lowered, scheduled->func, &threads, &err);
  tir_free(lowered);
  return ok ? 0 : bind_raise_refused(L, &err);
}

/* interpret_samples(function, seed, samples, arguments…): what so many elements of each output need, and little else */
static int interpret_samples(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  lua_Integer seed = luaL_checkinteger(L, 2), samples = luaL_checkinteger(L, 3);
  luaL_argcheck(L, samples > 0 && samples <= UINT32_MAX, 3, "a number from 1 on is expected");
  struct tir_arg args[BIND_MOST_ARGUMENTS] = {0};
  read_arguments(L, f, 4, args);
  ms_error err = {.instruction = -1};
  struct tir_run_options options = {.stop = bind_stop(L)};
  if (!tir_run_samples(f->ir, f->func, args, f->ir->funcs.at[f->func].params.count, &options, (uint64_t)seed,
                       (uint32_t)samples, &err))
    return bind_raise(L, &err);
  return 0;
}

/* export(path, name): what the function is called there, and whose its own name is, where it cannot be called that */
static int export(lua_State *L) {
  struct bound_kernel *k = check_kernel(L, 1);
  struct bound_function *f = function_of(L, 1);
  const char *path = bind_check_text(L, 2), *owner = NULL;
  char name[JIT_EXPORTED_NAME];
  struct jit_options options = k->options;
  ms_error err = {.instruction = -1};
  options.export_name = bind_opt_text(L, 3, NULL);
  if (!jit_exported_name(f->ir, f->func, options.export_name, path, name, &owner, &err) ||
      !jit_export(f->ir, f->func, &k->target, &options, path, &err))
    return bind_raise(L, &err);
  lua_pushstring(L, name);
  lua_pushstring(L, owner);
  return 2;
}

/* check_exported(name): raises why no exported function may be called so */
static int check_exported(lua_State *L) {
  ms_error err = {.instruction = -1};
  return jit_may_export(bind_check_text(L, 1), &err) ? 0 : bind_raise(L, &err);
}

static int target_text(lua_State *L) {
  char text[JIT_TARGET_TEXT];
  jit_target_text(&check_kernel(L, 1)->target, text, sizeof text);
  lua_pushstring(L, text);
  return 1;
}

/* passes(): what each pass took that made the code, a list of {pass =, seconds =} in order */
static int passes(lua_State *L) {
  uint32_t count;
  const struct jit_pass *all = jit_code_passes(check_kernel(L, 1)->code, &count);
  lua_createtable(L, (int)count, 0);
  for (uint32_t i = 0; i < count; i++) {
    lua_createtable(L, 0, 2);
    lua_pushstring(L, all[i].name), lua_setfield(L, -2, "pass");
    lua_pushnumber(L, all[i].seconds), lua_setfield(L, -2, "seconds");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* notes(): what the schedule asks for that the kernel does not do, each a sentence */
static int notes(lua_State *L) {
  const struct jit_notes *all = jit_code_notes(check_kernel(L, 1)->code);
  lua_createtable(L, (int)all->count, 0);
  for (uint32_t i = 0; i < all->count; i++) {
    lua_pushstring(L, all->at[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static void set_resources(lua_State *L, const struct jit_resources *k) {
  const struct {
    const char *name;
    int64_t value;
    bool asked; /* known before the assembler's word */
  } numbers[] = {{"threads", k->threads, true},
                 {"shared_bytes", k->shared_bytes, true},
                 {"dynamic_bytes", k->dynamic_bytes, true},
                 {"local_bytes", k->local_bytes, true},
                 {"estimated_registers", k->estimated_registers, true},
                 {"registers", k->registers, false},
                 {"stack_bytes", k->stack_bytes, false},
                 {"spill_stores", k->spill_stores, false},
                 {"spill_loads", k->spill_loads, false},
                 {"barriers", k->barriers, false}};
  lua_pushstring(L, k->name), lua_setfield(L, -2, "name");
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (!k->compiled && !numbers[i].asked) continue;
    lua_pushinteger(L, numbers[i].value), lua_setfield(L, -2, numbers[i].name);
  }
  lua_pushboolean(L, k->estimated_spills), lua_setfield(L, -2, "estimated_spills");
  if (k->compiled) lua_pushboolean(L, k->serialized), lua_setfield(L, -2, "serialized");
}

/* What scripts may know by the names that it had. */
static int old_name(lua_State *L) {
  const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
  if (!strcmp(key, "foreseen_registers")) return lua_getfield(L, 1, "estimated_registers"), 1;
  if (!strcmp(key, "foreseen_spills")) return lua_getfield(L, 1, "estimated_spills"), 1;
  return 0;
}
static void set_old_names(lua_State *L) {
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, old_name);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
}

/* resources([assembled]): what each kernel of a GPU takes, in the order of launches: as its source asks, and where
 * `assembled` is true, as NVRTC's assembler says; raises where there is no NVRTC, or a block takes more than the target
 * has. */
static int resources(lua_State *L) {
  struct bound_kernel *k = check_kernel(L, 1);
  ms_error err = {.instruction = -1};
  uint32_t count;
  luaL_argcheck(L, k->target.gpu.arch, 1, "a kernel for a GPU is expected");
  if (lua_toboolean(L, 2) && !jit_code_assemble(k->code, &err)) return bind_raise(L, &err);
  const struct jit_resources *all = jit_code_resources(k->code, &count);
  lua_createtable(L, (int)count, 0);
  for (uint32_t i = 0; i < count; i++) {
    lua_createtable(L, 0, 11);
    set_resources(L, &all[i]);
    set_old_names(L);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int kernel_function(lua_State *L) {
  check_kernel(L, 1);
  lua_getiuservalue(L, 1, 1);
  return 1;
}

static int kernel_reference(lua_State *L) {
  check_kernel(L, 1);
  lua_getiuservalue(L, 1, 2);
  return 1;
}

static int text(lua_State *L) {
  struct bound_kernel *k = check_kernel(L, 1);
  char target[JIT_TARGET_TEXT];
  jit_target_text(&k->target, target, sizeof target);
  lua_pushfstring(L, "kernel for %s", target);
  return 1;
}

/* target([text [, {runs = true}]]): what a target is, as a table, with its numbers. Where kernels are to be run, it
 * raises if this machine does not run them. */
static int target(lua_State *L) {
  struct jit_target t, reference;
  char text[JIT_TARGET_TEXT];
  ms_error err = {.instruction = -1};
  bind_check_options(L, 2, "runs:boolean");
  if (!jit_target_parse(bind_opt_text(L, 1, "native"), &t, &err)) return bind_raise(L, &err);
  if (bind_option_bool(L, 2, "runs", false) && !jit_target_runs_here(&t, &err)) return bind_raise(L, &err);
  jit_target_text(&t, text, sizeof text);
  lua_newtable(L);
  lua_pushstring(L, text), lua_setfield(L, -2, "text");
  if (!jit_target_reference(&t, &reference, &err)) return bind_raise(L, &err);
  jit_target_text(&reference, text, sizeof text);
  lua_pushstring(L, text), lua_setfield(L, -2, "reference");
  lua_pushstring(L, t.kind), lua_setfield(L, -2, "kind");
  lua_pushstring(L, t.cpu), lua_setfield(L, -2, "cpu");
  struct jit_number numbers[JIT_MOST_NUMBERS];
  uint32_t count = jit_target_numbers(&t, numbers);
  for (uint32_t i = 0; i < count; i++) {
    lua_pushinteger(L, numbers[i].value);
    lua_setfield(L, -2, numbers[i].name);
  }
  return 1;
}

/* cpu_features([target]): what code for it may use of x86, or all that is known, and where CPUID says that it is
 * there */
static int cpu_features(lua_State *L) {
  struct jit_target t;
  struct jit_feature list[JIT_MOST_FEATURES];
  ms_error err = {.instruction = -1};
  const char *text = bind_opt_text(L, 1, NULL);
  if (text && !jit_target_parse(text, &t, &err)) return bind_raise(L, &err);
  uint32_t count = jit_target_features(text ? &t : NULL, list);
  lua_createtable(L, (int)count, 0);
  for (uint32_t i = 0; i < count; i++) {
    const struct {
      const char *name;
      uint64_t value;
    } numbers[] = {{"leaf", list[i].leaf},
                   {"subleaf", list[i].subleaf},
                   {"word", list[i].word},
                   {"bit", list[i].bit},
                   {"kept", list[i].kept}};
    lua_newtable(L);
    lua_pushstring(L, list[i].name), lua_setfield(L, -2, "name");
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
      lua_pushinteger(L, (lua_Integer)numbers[k].value), lua_setfield(L, -2, numbers[k].name);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* host(): how the target `native` came to be, as a table */
static int host(lua_State *L) {
  static const char *const tiles[] = {"none", "refused", "lent"};
  struct jit_host h;
  struct jit_cores cores;
  jit_describe_host(&h);
  jit_count_cores(&cores);
  lua_newtable(L);
  const struct {
    const char *name, *value;
  } texts[] = {{"llvm_cpu", h.llvm_cpu}, {"cpu", h.cpu},       {"features", h.features},
               {"missing", h.missing},   {"beyond", h.beyond}, {"tiles", tiles[h.tiles]}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    lua_pushstring(L, texts[i].value), lua_setfield(L, -2, texts[i].name);
  const struct {
    const char *name;
    int value;
  } counts[] = {{"online", cores.online}, {"allowed", cores.allowed}, {"usable", cores.usable}};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    lua_pushinteger(L, counts[i].value), lua_setfield(L, -2, counts[i].name);
  if (cores.quota > 0) lua_pushnumber(L, cores.quota), lua_setfield(L, -2, "quota");
  const size_t memory = jit_usable_memory();
  lua_pushinteger(L, memory < (size_t)LUA_MAXINTEGER ? (lua_Integer)memory : LUA_MAXINTEGER);
  lua_setfield(L, -2, "memory");
  return 1;
}

/* see_device(name): this process and those that it starts have one GPU alone, named as CUDA_VISIBLE_DEVICES names it.
 * CUDA reads that once: it is called before devices are asked for, and no thread runs. Source: CUDA C++ Programming
 * Guide, "CUDA Environment Variables". */
static int see_device(lua_State *L) {
  if (setenv("CUDA_VISIBLE_DEVICES", bind_check_text(L, 1), 1)) return luaL_error(L, "no memory");
  return 0;
}

void bind_kernels(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"time", time_kernel},
                                     {"check_real", check_real},
                                     {"check_timing", check_timing},
                                     {"export", export},
                                     {"target", target_text},
                                     {"resources", resources},
                                     {"notes", notes},
                                     {"func", kernel_function},
                                     {"reference", kernel_reference},
                                     {"passes", passes},
                                     {"run", call},
                                     {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__call", call}, {"__gc", collect}, {"__tostring", text}, {NULL, NULL}};
  bind_type(L, BOUND_KERNEL, methods, meta);
  luaL_getmetatable(L, BOUND_KERNEL);
  lua_getfield(L, -1, "__index");
  lua_setfield(L, -3, "kernel_methods"); /* for those written in Lua */
  lua_pop(L, 1);
  static const luaL_Reg functions[] = {{"build", build},
                                       {"interpret", interpret},
                                       {"timed_with_digits", timed_with_digits},
                                       {"interpret_samples", interpret_samples},
                                       {"check_lowered", check_lowered},
                                       {"check_exported", check_exported},
                                       {"see_device", see_device},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

static void set_version(lua_State *L, const char *name, int version, const ms_error *why) {
  if (version)
    lua_pushfstring(L, "%d.%d", version / 1000, version % 1000 / 10);
  else
    lua_pushstring(L, why->message);
  lua_setfield(L, -2, name);
}

/* devices(): GPUs, a list of tables; driver and nvrtc: their versions, or what is missing */
static int devices(lua_State *L) {
  struct jit_device_info all[16];
  ms_error err = {.instruction = -1};
  uint32_t count = jit_devices(all, sizeof all / sizeof *all, NULL);
  lua_createtable(L, (int)count, 2);
  set_version(L, "driver", jit_driver_version(&err), &err);
  set_version(L, "nvrtc", jit_nvrtc_version(&err), &err);
  for (uint32_t i = 0; i < count; i++) {
    lua_newtable(L);
    lua_pushstring(L, all[i].name), lua_setfield(L, -2, "name");
    lua_pushinteger(L, all[i].arch), lua_setfield(L, -2, "arch");
    lua_pushinteger(L, all[i].processors), lua_setfield(L, -2, "processors");
    lua_pushinteger(L, all[i].l2_bytes), lua_setfield(L, -2, "l2_bytes");
    lua_pushinteger(L, all[i].shared_bytes), lua_setfield(L, -2, "shared_bytes");
    lua_pushinteger(L, (lua_Integer)all[i].memory), lua_setfield(L, -2, "memory");
    lua_pushnumber(L, all[i].clock), lua_setfield(L, -2, "clock");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* device_clocks(number): a GPU's, as they are now: {clock, memory_clock, slowed}; nil and what is missing */
static int device_clocks(lua_State *L) {
  lua_Integer number = luaL_checkinteger(L, 1);
  struct jit_device_clocks clocks;
  ms_error err = {.instruction = -1};
  luaL_argcheck(L, number >= 0 && number < 16, 1, "a device's number is expected");
  if (!jit_device_clocks((uint32_t)number, &clocks, &err)) {
    lua_pushnil(L);
    lua_pushstring(L, err.message);
    return 2;
  }
  lua_createtable(L, 0, 3);
  lua_pushnumber(L, clocks.processors), lua_setfield(L, -2, "clock");
  lua_pushnumber(L, clocks.memory), lua_setfield(L, -2, "memory_clock");
  lua_pushboolean(L, clocks.slowed), lua_setfield(L, -2, "slowed");
  return 1;
}

void bind_targets(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg functions[] = {{"target", target},   {"cpu_features", cpu_features},   {"host", host},
                                       {"devices", devices}, {"device_clocks", device_clocks}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
  bind_units(L);
}
