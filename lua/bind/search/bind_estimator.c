/* The analytical model from Lua: the cost of a sketch's candidates, estimated from their decisions. */
#include "bind_search.h"
#include "lua/bind/bind.h"

#include <stdlib.h>

#define BOUND_ESTIMATOR "msched.estimator"

static struct search_estimator *check_estimator(lua_State *L) {
  return *(struct search_estimator **)luaL_checkudata(L, 1, BOUND_ESTIMATOR);
}

static int collect_estimator(lua_State *L) {
  struct search_estimator **d = luaL_checkudata(L, 1, BOUND_ESTIMATOR);
  search_estimator_free(*d);
  *d = NULL;
  return 0;
}

static double number_of(lua_State *L, int at, const char *name) {
  if (lua_getfield(L, at, name) != LUA_TNUMBER) luaL_error(L, "a machine's `%s` is a number", name);
  double number = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return number;
}

static void read_levels(lua_State *L, int at, const char *name, double out[SEARCH_LEVELS]) {
  if (lua_getfield(L, at, name) != LUA_TTABLE) luaL_error(L, "a machine's `%s` is a list", name);
  for (int i = 0; i < SEARCH_LEVELS; i++) {
    if (lua_geti(L, -1, i + 1) != LUA_TNUMBER) luaL_error(L, "a machine's `%s` has %d numbers", name, SEARCH_LEVELS);
    out[i] = lua_tonumber(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static struct search_machine read_gpu(lua_State *L, int at) {
  struct search_machine m = {.cores = 1, .vector_bits = 32};
#define SEARCH_GPU_NUMBER(name, what) m.gpu.name = number_of(L, at, #name);
  SEARCH_GPU_NUMBERS(SEARCH_GPU_NUMBER)
#undef SEARCH_GPU_NUMBER
  luaL_argcheck(L, m.gpu.sms >= 1 && m.gpu.warp >= 1 && m.gpu.warp <= 64, at, "a GPU has multiprocessors, and warps");
  return m;
}

static struct search_machine read_machine(lua_State *L, int at) {
  struct search_machine m = {0};
  luaL_checktype(L, at, LUA_TTABLE);
  bool is_gpu = lua_getfield(L, at, "sms") != LUA_TNIL;
  lua_pop(L, 1);
  if (is_gpu) return read_gpu(L, at);
#define SEARCH_CPU_NUMBER(name, what) m.name = number_of(L, at, #name);
  SEARCH_CPU_NUMBERS(SEARCH_CPU_NUMBER)
#undef SEARCH_CPU_NUMBER
  read_levels(L, at, "cache_bytes", m.cache_bytes);
  read_levels(L, at, "way_bytes", m.way_bytes);
  read_levels(L, at, "bytes_a_cycle", m.bytes_a_cycle);
  lua_getfield(L, at, "dots"); /* of CPUs that have none, left out */
  m.dots = (unsigned)luaL_optinteger(L, -1, 0);
  lua_getfield(L, at, "slides");
  m.slides = luaL_optinteger(L, -1, 0) > 0;
  lua_pop(L, 2);
  luaL_argcheck(L, m.cores >= 1 && m.vector_bits >= 32, at, "a machine has a core and vectors");
  return m;
}

/* estimator(function, sketch, machine) */
static int new_estimator(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  const struct vm_trace *sketch = bind_check_trace(L, 2);
  struct search_machine machine = read_machine(L, 3);
  struct search_estimator **d = lua_newuserdatauv(L, sizeof *d, 0);
  *d = NULL;
  luaL_setmetatable(L, BOUND_ESTIMATOR);
  ms_error err = {.instruction = -1};
  bind_stop(L);
  *d = search_estimator_new(f->ir, sketch, bind_intrinsics(L), &machine, &err);
  return *d ? 1 : bind_raise_refused(L, &err);
}

static void push_tile(lua_State *L, uint64_t tile) {
  char name[20];
  snprintf(name, sizeof name, "%016llx", (unsigned long long)tile);
  lua_pushstring(L, name);
}

/* estimate(function, trace, machine): cycles of the trace as it is, and its register tile's name */
static int estimate(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  const struct vm_trace *trace = bind_check_trace(L, 2);
  struct search_machine machine = read_machine(L, 3);
  ms_error err = {.instruction = -1};
  struct search_estimated e;
  if (!search_estimate(f->ir, trace, bind_intrinsics(L), &machine, &e, &err)) return bind_raise_refused(L, &err);
  lua_pushnumber(L, e.cycles);
  push_tile(L, e.tile);
  return 2;
}

static int estimator_size(lua_State *L) {
  lua_pushnumber(L, search_estimator_size(check_estimator(L)));
  return 1;
}

/* estimator:cost(trace): of a trace that differs from the sketch in decisions only */
static int estimator_cost(lua_State *L) {
  const struct search_estimator *d = check_estimator(L);
  const struct vm_trace *trace = bind_check_trace(L, 2);
  luaL_argcheck(L, search_estimator_has(d, trace), 2,
                "it is no candidate of the estimate's sketch, or has open decisions");
  lua_pushnumber(L, search_estimator_cost(d, trace->decisions));
  return 1;
}

struct results {
  struct search_proposal *list;
  uint32_t count;
};
static int collect_results(lua_State *L) {
  struct results *r = lua_touserdata(L, 1);
  for (uint32_t i = 0; i < r->count; i++) vm_trace_free(r->list[i].trace);
  free(r->list);
  *r = (struct results){0};
  return 0;
}

static void push_proposals(lua_State *L, struct search_proposal *list, uint32_t count) {
  lua_createtable(L, (int)count, 0);
  for (uint32_t i = 0; i < count; i++) {
    lua_createtable(L, 0, 3);
    struct vm_trace *trace = list[i].trace;
    assert(trace);
    list[i].trace = NULL;
    bind_push_trace(L, trace);
    lua_setfield(L, -2, "trace");
    lua_pushnumber(L, list[i].cost);
    lua_setfield(L, -2, "cost");
    push_tile(L, list[i].tile);
    lua_setfield(L, -2, "tile");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

enum { MOST_PROPOSALS = 1 << 20 };

/* What a table at `at` asks for: {seed =, budget =, most =, each =}. */
static struct search_proposal_job read_request(lua_State *L, int at, int64_t budget, int64_t most) {
  budget = bind_option_int(L, at, "budget", budget), most = bind_option_int(L, at, "most", most);
  int64_t each = bind_option_int(L, at, "each", most);
  if (budget < 1 || most < 1 || most > MOST_PROPOSALS || each < 1)
    luaL_error(L, "budget, most and each are at least 1");
  return (struct search_proposal_job){.seed = (uint64_t)bind_option_int(L, at, "seed", 1),
                                      .budget = (uint64_t)budget,
                                      .most = (uint32_t)most,
                                      .each = (uint32_t)(each > most ? most : each)};
}

/* estimator:best {seed =, budget =, most =, each =}: a list of {trace, cost, tile} */
static int estimator_best(lua_State *L) {
  const struct search_estimator *d = check_estimator(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  struct search_proposal_job job = read_request(L, 2, 100000, 1000);
  struct results *r = bind_hold(L, sizeof *r, "msched.proposed", collect_results);
  r->list = calloc(job.most, sizeof *r->list);
  if (!r->list) return luaL_error(L, "no memory for estimates");
  r->count = search_estimator_best(d, job.seed, job.budget, job.most, job.each, script_stop_flag(L), r->list);
  assert(r->count <= job.most);
  push_proposals(L, r->list, r->count);
  return 1;
}

/* ---- Many at a time ---- */

struct many {
  struct search_proposal_job *jobs;
  struct search_proposal_list *lists;
  const struct vm_trace **traces;
  struct search_estimated *estimates;
  uint32_t count;
};
static int collect_many(lua_State *L) {
  struct many *m = lua_touserdata(L, 1);
  for (uint32_t i = 0; m->lists && i < m->count; i++) {
    for (uint32_t k = 0; k < m->lists[i].count; k++) vm_trace_free(m->lists[i].at[k].trace);
    free(m->lists[i].at);
  }
  free(m->jobs), free(m->lists), free(m->traces), free(m->estimates);
  *m = (struct many){0};
  return 0;
}

/* Room for what `read` reads of each entry of the list at `at`, and what becomes of it; the number of threads stands
 * behind the list. */
static struct many *read_many(lua_State *L, int at, void (*read)(lua_State *, int, struct many *, uint32_t),
                              uint32_t *threads) {
  luaL_checktype(L, at, LUA_TTABLE);
  lua_Integer asked = luaL_checkinteger(L, at + 1), count = luaL_len(L, at);
  luaL_argcheck(L, asked >= 1, at + 1, "at least one thread");
  luaL_argcheck(L, count <= MOST_PROPOSALS, at, "too many");
  *threads = asked > INT32_MAX ? INT32_MAX : (uint32_t)asked;
  struct many *m = bind_hold(L, sizeof *m, "msched.many_proposals", collect_many);
  m->count = (uint32_t)count;
  m->jobs = calloc(m->count + 1, sizeof *m->jobs), m->lists = calloc(m->count + 1, sizeof *m->lists);
  m->traces = calloc(m->count + 1, sizeof *m->traces), m->estimates = calloc(m->count + 1, sizeof *m->estimates);
  if (!m->jobs || !m->lists || !m->traces || !m->estimates) luaL_error(L, "no memory for estimates");
  for (uint32_t i = 0; i < m->count; i++) {
    lua_rawgeti(L, at, (lua_Integer)i + 1);
    read(L, lua_gettop(L), m, i);
    lua_pop(L, 1);
  }
  return m;
}

static void read_job(lua_State *L, int at, struct many *m, uint32_t i) {
  luaL_argcheck(L, lua_istable(L, at), 3, "a job is a table");
  struct search_proposal_job *job = &m->jobs[i];
  *job = read_request(L, at, 1, 1);
  lua_getfield(L, at, "trace"); /* the table keeps it */
  job->trace = bind_check_trace(L, -1);
  lua_pop(L, 1);
  job->resample = bind_option_resample(L, at);
  job->candidate = (uint64_t)bind_option_int(L, at, "candidate", 0);
}

static void read_trace(lua_State *L, int at, struct many *m, uint32_t i) { m->traces[i] = bind_check_trace(L, at); }

/* proposals(function, machine, jobs, threads): jobs {trace =, resample =, seed =, candidate =, budget =, most =, each
 * =}; for each a list as estimator:best gives it, empty where the sketch is refused. On so many threads. */
static int proposals(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  struct search_machine machine = read_machine(L, 2);
  uint32_t threads;
  struct many *m = read_many(L, 3, read_job, &threads);
  search_proposals(f->ir, bind_intrinsics(L), &machine, m->jobs, m->count, threads, script_stop_flag(L), m->lists);
  lua_createtable(L, (int)m->count, 0);
  for (uint32_t i = 0; i < m->count; i++) {
    assert(m->lists[i].count <= m->jobs[i].most);
    push_proposals(L, m->lists[i].at, m->lists[i].count);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* estimates(function, machine, traces, threads): two lists, what each costs as estimate gives it, false where it cannot
 * be estimated, and its register tile's name. */
static int estimates(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  struct search_machine machine = read_machine(L, 2);
  uint32_t threads;
  struct many *m = read_many(L, 3, read_trace, &threads);
  search_estimates(f->ir, bind_intrinsics(L), &machine, m->traces, m->count, threads, script_stop_flag(L),
                   m->estimates);
  lua_createtable(L, (int)m->count, 0);
  lua_createtable(L, (int)m->count, 0);
  for (uint32_t i = 0; i < m->count; i++) {
    if (m->estimates[i].cycles < 0)
      lua_pushboolean(L, 0);
    else
      lua_pushnumber(L, m->estimates[i].cycles);
    lua_rawseti(L, -3, (lua_Integer)i + 1);
    push_tile(L, m->estimates[i].tile);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 2;
}

void bind_estimators(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg estimator[] = {
      {"size", estimator_size}, {"cost", estimator_cost}, {"best", estimator_best}, {NULL, NULL}};
  static const luaL_Reg estimator_meta[] = {{"__gc", collect_estimator}, {NULL, NULL}};
  bind_type(L, BOUND_ESTIMATOR, estimator, estimator_meta);
  static const luaL_Reg functions[] = {{"estimator", new_estimator},
                                       {"estimate", estimate},
                                       {"proposals", proposals},
                                       {"estimates", estimates},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}
