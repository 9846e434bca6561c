/* Trees of what functions asked and did: walked, and grown by what is new. */
#include "memo.h"
#include "lua/bind/bind.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 4 << 20, MOST_FRAMES = 8, MOST_VALUES = 64, MOST_HANDLES = UINT16_MAX };

struct bytes {
  uint8_t *at;
  uint32_t size, capacity;
};

enum op { ASK, PERFORM, TRY, CALL, RETURN };
struct node {
  uint8_t op, inputs, attrs; /* inputs: values of an ASK and a RETURN too, handles of a CALL */
  uint16_t id;               /* enum vm_query or vm_kind */
  uint32_t args;             /* in `kept` */
  uint32_t entry;            /* of a CALL: the edge into the other function's tree */
  uint32_t edges;            /* the first; 0: none */
};
struct edge {
  uint32_t answer, size; /* in `kept` */
  uint32_t next, to;     /* an edge and a node; 0: none */
};
/* An answer of the candidate at hand. */
struct logged {
  uint8_t op;
  bool done;
  uint32_t first, count; /* variables that an instruction gave */
  uint32_t answer;       /* in `answers` */
};
struct frame {
  uint32_t edge, first_handle; /* edge: where it is */
};

struct memo {
  struct node *nodes;
  struct edge *edges;
  uint32_t node_count, node_capacity, edge_count, edge_capacity; /* number 0 of each is none */
  struct bytes kept;
  uint32_t *functions; /* the first edge of each: what it is given leads to what it does first */
  uint32_t function_count, function_capacity;
  uint32_t *handles; /* variables, of all frames */
  uint32_t handle_count, handle_capacity;
  struct frame frames[MOST_FRAMES];
  uint32_t depth; /* 0: the Lua does not run */
  bool keeps;
  uint64_t walked; /* to the end */
  struct logged *log;
  uint32_t log_count, log_capacity, log_next;
  struct bytes answers, scratch;
  uint32_t last; /* the last answer, in `answers` */
};

/* ---- Values as bytes ---- */

static void put(struct bytes *b, const void *from, uint32_t size) {
  uint64_t all = (uint64_t)b->size + size;
  if (all > b->capacity) b->at = tir_enlarge(b->at, &b->capacity, all, 1);
  if (size) memcpy(b->at + b->size, from, size);
  b->size = (uint32_t)all;
}

/* A variable's number among the frame's handles; false: it has none. */
static bool number_of(const struct memo *r, uint32_t base, uint32_t variable, uint16_t *out) {
  for (uint32_t h = base; h < r->handle_count; h++)
    if (r->handles[h] == variable) return *out = (uint16_t)(h - base), true;
  return false;
}

static void add_handle(struct memo *r, uint32_t variable) {
  if (r->handle_count == r->handle_capacity)
    r->handles = tir_enlarge(r->handles, &r->handle_capacity, (uint64_t)r->handle_count + 1, sizeof *r->handles);
  r->handles[r->handle_count++] = variable;
}

/* A kind, then what it holds; items of lists follow. Handles are numbers among those from `base` on. */
static bool put_value(const struct memo *r, struct bytes *out, const struct vm_steps *s, const struct vm_value *v,
                      uint32_t base) {
  uint16_t number;
  put(out, &v->kind, 1);
  switch (v->kind) {
  case VM_NONE: return true;
  case VM_BOOL:
  case VM_INT:
  case VM_REAL: put(out, &v->integer, sizeof v->integer); return true;
  case VM_STRING:
    put(out, &v->count, sizeof v->count);
    put(out, s->text + v->first, v->count);
    return true;
  case VM_REF:
    if (!number_of(r, base, v->ref, &number)) return false;
    put(out, &number, sizeof number);
    return true;
  case VM_LIST:
  case VM_MAP:
    put(out, &v->count, sizeof v->count);
    for (uint32_t i = 0; i < v->count; i++)
      if (!put_value(r, out, s, &s->values[v->first + i], base)) return false;
    return true;
  default: return false;
  }
}

static bool put_values(const struct memo *r, struct bytes *out, const struct vm_steps *s, const struct vm_value *values,
                       uint32_t count, uint32_t base) {
  for (uint32_t i = 0; i < count; i++)
    if (!put_value(r, out, s, &values[i], base)) return false;
  return true;
}

static void take(const uint8_t **at, void *to, uint32_t size) {
  memcpy(to, *at, size);
  *at += size;
}

static struct vm_value take_value(const struct memo *r, const uint8_t **at, struct vm_trace *pool, uint32_t base) {
  struct vm_value v = {.kind = *(*at)++}, *items;
  uint16_t number;
  uint32_t count;
  switch (v.kind) {
  case VM_NONE: return v;
  case VM_BOOL:
  case VM_INT:
  case VM_REAL: take(at, &v.integer, sizeof v.integer); return v;
  case VM_REF:
    take(at, &number, sizeof number);
    assert(base + number < r->handle_count);
    return vm_ref(r->handles[base + number]);
  case VM_STRING:
    take(at, &count, sizeof count);
    v = vm_string(pool, (const char *)*at, count);
    *at += count;
    return v;
  default: break;
  }
  assert(v.kind == VM_LIST || v.kind == VM_MAP);
  take(at, &count, sizeof count);
  items = malloc((count + 1) * sizeof *items);
  if (!items) abort();
  for (uint32_t i = 0; i < count; i++) items[i] = take_value(r, at, pool, base);
  v = vm_list(pool, (enum vm_value_kind)v.kind, items, count);
  free(items);
  return v;
}

static void take_values(const struct memo *r, const uint8_t **at, struct vm_trace *pool, uint32_t base,
                        struct vm_value *out, uint32_t count) {
  assert(count <= MOST_VALUES);
  for (uint32_t i = 0; i < count; i++) out[i] = take_value(r, at, pool, base);
}

static void put_outcome(struct bytes *out, bool done, uint32_t count) {
  uint32_t answer[2] = {done, count};
  put(out, answer, sizeof answer);
}

/* ---- Trees ---- */

static uint32_t find_edge(const struct memo *r, uint32_t first, const uint8_t *answer, uint32_t size) {
  for (uint32_t e = first; e; e = r->edges[e].next)
    if (r->edges[e].size == size && !memcmp(r->kept.at + r->edges[e].answer, answer, size)) return e;
  return 0;
}

static uint32_t new_edge(struct memo *r, uint32_t next, const struct bytes *answer) {
  if (r->edge_count == r->edge_capacity)
    r->edges = tir_enlarge(r->edges, &r->edge_capacity, (uint64_t)r->edge_count + 1, sizeof *r->edges);
  r->edges[r->edge_count] = (struct edge){.answer = r->kept.size, .size = answer->size, .next = next};
  put(&r->kept, answer->at, answer->size);
  return r->edge_count++;
}

/* Nodes and edges begin at 1. */
static void forget(struct memo *r) {
  if (!r->node_capacity) r->nodes = tir_enlarge(NULL, &r->node_capacity, 1, sizeof *r->nodes);
  if (!r->edge_capacity) r->edges = tir_enlarge(NULL, &r->edge_capacity, 1, sizeof *r->edges);
  r->nodes[0] = (struct node){0};
  r->edges[0] = (struct edge){0};
  r->node_count = r->edge_count = 1;
  r->kept.size = 0;
  if (r->function_count) memset(r->functions, 0, r->function_count * sizeof *r->functions);
}

struct memo *memo_new(void) {
  struct memo *r = calloc(1, sizeof *r);
  if (!r) abort();
  struct bytes *buffers[] = {&r->kept, &r->answers, &r->scratch};
  for (int i = 0; i < 3; i++) buffers[i]->at = tir_enlarge(NULL, &buffers[i]->capacity, 1, 1);
  forget(r);
  return r;
}

void memo_free(struct memo *r) {
  if (!r) return;
  free(r->nodes), free(r->edges), free(r->kept.at), free(r->functions), free(r->handles);
  free(r->log), free(r->answers.at), free(r->scratch.at);
  free(r);
}

uint32_t memo_function(struct memo *r) {
  if (r->function_count == r->function_capacity)
    r->functions =
        tir_enlarge(r->functions, &r->function_capacity, (uint64_t)r->function_count + 1, sizeof *r->functions);
  r->functions[r->function_count] = 0;
  return r->function_count++;
}

/* The edge of what a function is given, as `scratch` has it. */
static uint32_t enter(struct memo *r, uint32_t function) {
  assert(function < r->function_count);
  uint32_t edge = find_edge(r, r->functions[function], r->scratch.at, r->scratch.size);
  if (!edge) edge = r->functions[function] = new_edge(r, r->functions[function], &r->scratch);
  return edge;
}

/* ---- Walking ---- */

static struct logged *add_logged(struct memo *r, enum op op) {
  if (r->log_count == r->log_capacity)
    r->log = tir_enlarge(r->log, &r->log_capacity, (uint64_t)r->log_count + 1, sizeof *r->log);
  r->last = r->answers.size;
  r->log[r->log_count] = (struct logged){.op = (uint8_t)op, .answer = r->last};
  return &r->log[r->log_count++];
}

static bool ask_again(struct memo *r, const struct node *n, struct vm_schedule *s, struct vm_trace *pool,
                      uint32_t base) {
  struct vm_value args[MOST_VALUES], answer = vm_none();
  const uint8_t *at = r->kept.at + n->args;
  ms_error err;
  ms_clear(&err);
  take_values(r, &at, pool, base, args, n->inputs);
  bool done = vm_ask(s, (enum vm_query)n->id, args, n->inputs, pool, &answer, &err);
  if (done) {
    add_logged(r, ASK);
    done = put_value(r, &r->answers, pool->steps, &answer, base);
    assert(done && "an answer has no handles");
  }
  pool->steps->value_count = pool->steps->text_size = 0;
  return done;
}

/* False: it is refused where that ends the Lua, and is as it was. */
static bool perform_again(struct memo *r, const struct node *n, struct vm_schedule *s, uint32_t base) {
  struct vm_value inputs[MOST_VALUES], attrs[VM_MOST_PARAMS];
  const uint8_t *at = r->kept.at + n->args;
  uint32_t first = 0, count = 0;
  ms_error err;
  ms_clear(&err);
  err.brief = true;
  take_values(r, &at, &s->trace, base, inputs, n->inputs);
  take_values(r, &at, &s->trace, base, attrs, n->attrs);
  bool done = vm_call(s, (enum vm_kind)n->id, inputs, n->inputs, attrs, n->attrs, NULL, 0, &first, &count, &err);
  if (!done && (n->op != TRY || bind_is_misuse(err.code))) return false;
  struct logged *l = add_logged(r, (enum op)n->op);
  l->done = done, l->first = first, l->count = done ? count : 0;
  put_outcome(&r->answers, done, l->count);
  for (uint32_t i = 0; i < l->count; i++) add_handle(r, first + i);
  return true;
}

static const struct node *walk(struct memo *r, uint32_t edge, struct vm_schedule *s, struct vm_trace *pool,
                               uint32_t base);

/* The other function's handles follow those of the caller, and what it gives is added to these. */
static bool call_again(struct memo *r, const struct node *n, struct vm_schedule *s, struct vm_trace *pool,
                       uint32_t base) {
  uint32_t inner = r->handle_count, given[MOST_VALUES];
  for (uint32_t i = 0; i < n->inputs; i++) {
    uint16_t number;
    memcpy(&number, r->kept.at + n->args + i * sizeof number, sizeof number);
    add_handle(r, r->handles[base + number]);
  }
  const struct node *end = walk(r, n->entry, s, pool, inner);
  if (!end) return false;
  /* The answer is what it gives, its handles unnamed. */
  const uint8_t *at = r->kept.at + end->args;
  uint32_t count = 0;
  r->last = r->answers.size;
  for (uint32_t i = 0; i < end->inputs; i++) {
    struct vm_value v = take_value(r, &at, pool, inner);
    if (v.kind == VM_REF) given[count++] = v.ref;
    v = v.kind == VM_REF ? (struct vm_value){.kind = VM_NONE, .bare = 1} : v;
    put(&r->answers, &v.bare, 1);
    put_value(r, &r->answers, pool->steps, &v, inner);
  }
  pool->steps->value_count = pool->steps->text_size = 0;
  r->handle_count = inner;
  for (uint32_t i = 0; i < count; i++) add_handle(r, given[i]);
  return true;
}

/* The node that the function ends at; NULL: what comes next is not known. */
static const struct node *walk(struct memo *r, uint32_t edge, struct vm_schedule *s, struct vm_trace *pool,
                               uint32_t base) {
  while (r->edges[edge].to) {
    const struct node *n = &r->nodes[r->edges[edge].to];
    bool done = false;
    switch ((enum op)n->op) {
    case RETURN: return n;
    case ASK: done = ask_again(r, n, s, pool, base); break;
    case PERFORM:
    case TRY: done = perform_again(r, n, s, base); break;
    case CALL: done = call_again(r, n, s, pool, base); break;
    }
    if (!done) return NULL;
    edge = find_edge(r, n->edges, r->answers.at + r->last, r->answers.size - r->last);
  }
  return NULL;
}

bool memo_walk(struct memo *r, uint32_t function, struct vm_schedule *schedule, struct vm_trace *pool, bool *accepted) {
  assert(!r->depth && function < r->function_count);
  r->log_count = r->log_next = r->answers.size = r->handle_count = 0;
  uint32_t edge = r->functions[function];
  const struct node *end = edge ? walk(r, edge, schedule, pool, 0) : NULL;
  if (end) *accepted = r->kept.at[end->args + 1] != 0;
  r->walked += end != NULL;
  return end != NULL;
}

uint64_t memo_count(const struct memo *r) { return r->walked; }

/* ---- Growing ---- */

void memo_begin(struct memo *r, uint32_t function) {
  assert(!r->depth);
  uint64_t bytes = r->kept.size + r->node_count * sizeof *r->nodes + r->edge_count * sizeof *r->edges;
  if (bytes > MOST_BYTES) forget(r);
  r->scratch.size = r->handle_count = 0;
  r->frames[0] = (struct frame){enter(r, function), 0};
  r->depth = 1;
  r->keeps = true;
}

bool memo_is_on(const struct memo *r) { return r && r->depth; }
bool memo_is_known(const struct memo *r) { return r->log_next < r->log_count; }
void memo_stop(struct memo *r) { r->keeps = false; }

static const struct logged *next_logged(struct memo *r) {
  assert(memo_is_known(r));
  return &r->log[r->log_next++];
}

void memo_answer(struct memo *r, struct vm_trace *pool, struct vm_value *answer) {
  const struct logged *l = next_logged(r);
  const uint8_t *at = r->answers.at + l->answer;
  assert(l->op == ASK && "a postprocessor of ours goes by answers alone");
  *answer = take_value(r, &at, pool, 0);
}

void memo_outcome(struct memo *r, bool *done, uint32_t *first, uint32_t *count) {
  const struct logged *l = next_logged(r);
  assert((l->op == PERFORM || l->op == TRY) && "a postprocessor of ours goes by answers alone");
  *done = l->done, *first = l->first, *count = l->count;
}

static struct frame *top(struct memo *r) { return &r->frames[r->depth - 1]; }

/* The node that comes next where the frame is, with what `scratch` has as arguments: the one there, or a new one. */
static uint32_t next_node(struct memo *r, const struct node *made) {
  struct edge *e = &r->edges[top(r)->edge];
  if (e->to) {
    const struct node *n = &r->nodes[e->to];
    assert(n->op == made->op && n->id == made->id && n->entry == made->entry &&
           r->kept.size - n->args >= r->scratch.size && !memcmp(r->kept.at + n->args, r->scratch.at, r->scratch.size) &&
           "a postprocessor of ours goes by answers alone");
    return e->to;
  }
  if (r->node_count == r->node_capacity)
    r->nodes = tir_enlarge(r->nodes, &r->node_capacity, (uint64_t)r->node_count + 1, sizeof *r->nodes);
  r->nodes[r->node_count] = *made;
  r->nodes[r->node_count].args = r->kept.size;
  put(&r->kept, r->scratch.at, r->scratch.size);
  return e->to = r->node_count++;
}

/* Goes on from the node by the answer that `scratch` has. */
static void go_on(struct memo *r, uint32_t node) {
  uint32_t edge = find_edge(r, r->nodes[node].edges, r->scratch.at, r->scratch.size);
  if (!edge) edge = r->nodes[node].edges = new_edge(r, r->nodes[node].edges, &r->scratch);
  top(r)->edge = edge;
}

void memo_asked(struct memo *r, enum vm_query query, const struct vm_value *args, uint32_t count,
                const struct vm_trace *pool, const struct vm_value *answer) {
  struct node made = {.op = ASK, .inputs = (uint8_t)count, .id = (uint16_t)query};
  uint32_t base = top(r)->first_handle;
  r->scratch.size = 0;
  r->keeps = r->keeps && put_values(r, &r->scratch, pool->steps, args, count, base);
  if (!r->keeps) return;
  uint32_t node = next_node(r, &made);
  r->scratch.size = 0;
  r->keeps = put_value(r, &r->scratch, pool->steps, answer, base);
  if (r->keeps) go_on(r, node);
}

void memo_performed(struct memo *r, const struct memo_call *call, const struct vm_trace *trace, bool done,
                    uint32_t first, uint32_t count) {
  struct node made = {.op = call->tried ? TRY : PERFORM,
                      .inputs = (uint8_t)call->input_count,
                      .attrs = (uint8_t)call->attr_count,
                      .id = (uint16_t)call->kind};
  uint32_t base = top(r)->first_handle;
  r->scratch.size = 0;
  r->keeps = r->keeps && call->input_count <= MOST_VALUES && r->handle_count + count - base <= MOST_HANDLES &&
             put_values(r, &r->scratch, trace->steps, call->inputs, call->input_count, base) &&
             put_values(r, &r->scratch, trace->steps, call->attrs, call->attr_count, base);
  if (!r->keeps) return;
  uint32_t node = next_node(r, &made);
  r->scratch.size = 0;
  put_outcome(&r->scratch, done, done ? count : 0);
  go_on(r, node);
  for (uint32_t i = 0; done && i < count; i++) add_handle(r, first + i);
}

/* The handles that a function is given, each once, in order; behind those of the caller. */
static void add_given(struct memo *r, const struct vm_value *args, uint32_t count, uint32_t inner) {
  uint16_t number;
  for (uint32_t i = 0; i < count; i++)
    if (args[i].kind == VM_REF && !number_of(r, inner, args[i].ref, &number)) add_handle(r, args[i].ref);
}

void memo_enter(struct memo *r, uint32_t function, const struct vm_value *args, uint32_t count,
                const struct vm_trace *pool) {
  struct node made = {.op = CALL};
  uint32_t base = top(r)->first_handle, inner = r->handle_count;
  if (r->depth == MOST_FRAMES) r->keeps = false;
  if (!r->keeps) return;
  add_given(r, args, count, inner);
  r->scratch.size = 0;
  r->keeps = put_values(r, &r->scratch, pool->steps, args, count, inner);
  if (!r->keeps) return;
  made.entry = enter(r, function);
  made.inputs = (uint8_t)(r->handle_count - inner);
  r->scratch.size = 0;
  for (uint32_t h = inner; h < r->handle_count; h++) {
    uint16_t number = 0;
    r->keeps = r->keeps && number_of(r, base, r->handles[h], &number) && base + number < inner;
    put(&r->scratch, &number, sizeof number);
  }
  if (!r->keeps) return;
  next_node(r, &made);
  r->frames[r->depth++] = (struct frame){made.entry, inner};
}

void memo_leave(struct memo *r, const struct vm_value *results, uint32_t count, const struct vm_trace *pool) {
  struct node made = {.op = RETURN, .inputs = (uint8_t)count};
  if (!r->keeps) return;
  assert(r->depth > 1);
  uint32_t inner = top(r)->first_handle;
  r->scratch.size = 0;
  r->keeps = put_values(r, &r->scratch, pool->steps, results, count, inner);
  if (!r->keeps) return;
  next_node(r, &made);
  r->depth--;
  r->handle_count = inner;
  r->scratch.size = 0;
  for (uint32_t i = 0; i < count; i++) {
    bool is_handle = results[i].kind == VM_REF;
    struct vm_value v = is_handle ? (struct vm_value){.kind = VM_NONE, .bare = 1} : results[i];
    uint8_t bare = is_handle;
    put(&r->scratch, &bare, 1);
    put_value(r, &r->scratch, pool->steps, &v, inner);
    if (is_handle) add_handle(r, results[i].ref);
  }
  go_on(r, r->edges[top(r)->edge].to);
}

void memo_end(struct memo *r, bool done, bool accepted) {
  assert(r->depth);
  if (done && r->keeps && r->depth == 1) {
    struct node made = {.op = RETURN, .inputs = 1};
    uint8_t verdict[2] = {VM_BOOL, accepted};
    r->scratch.size = 0;
    put(&r->scratch, verdict, sizeof verdict);
    next_node(r, &made);
  }
  r->depth = 0;
}
