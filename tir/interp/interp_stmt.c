/* Compiles statements for the reference interpreter. The walk keeps its own stack of frames: nesting is bounded by
 * memory, not by C's stack. */
#include "interp_compile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A statement whose lists are being compiled. */
struct frame {
  tir_stmt stmt, child; /* child: the next of the list being compiled */
  uint8_t phase;        /* lists begun */
  bool kernel;          /* the statement opened a kernel */
  bool parallel;        /* it is a loop whose iterations may be at the same time */
  bool loops;           /* it is compiled as a loop */
  struct scope scope, list;
  uint32_t to_end;  /* jumps to the statement's end, chained by their targets; UINT32_MAX: none */
  uint32_t to_next; /* jumps over the first list */
  uint32_t start;   /* where a loop goes back to */
  operand var, end; /* of a loop */
  tir_expr reducer; /* in force outside */
};
struct frames {
  INTERP_LIST(struct frame, list);
};

/* ---- Jumps ---- */

/* Until it is patched, a jump's target is the jump before it in its chain. */
static void chain(struct compiler *c, uint32_t *head, uint32_t jump) {
  if (c->failed) return;
  c->program->code.at[jump].b = (operand)*head;
  *head = jump;
}

static void patch(struct compiler *c, uint32_t *head) {
  while (!c->failed && *head != UINT32_MAX) {
    uint32_t next = (uint32_t)c->program->code.at[*head].b;
    c->program->code.at[*head].b = (operand)interp_here(c);
    *head = next;
  }
}

/* ---- Loops ---- */

static void open_loop(struct compiler *c, struct frame *f, tir_var var, operand min, operand extent) {
  f->loops = true;
  f->var = interp_registers(c, 1);
  f->end = interp_registers(c, 1);
  uint32_t at = interp_emit(c, OP_LOOP, f->var, min, 0, extent, f->end);
  chain(c, &f->to_end, at);
  f->start = interp_here(c);
  interp_define_var(c, var, f->var);
}

static void close_loop(struct compiler *c, struct frame *f) {
  interp_emit(c, OP_NEXT, f->var, f->end, (operand)f->start, 0, 0);
}

/* ---- Kernels ---- */

/* The tag of a thread that a statement binds, or NULL; with the variable and extent. */
static const char *thread_of(const struct compiler *c, tir_stmt s, tir_var *var, tir_expr *extent) {
  const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
  if (n->kind == TIR_LOOP && n->loop_kind == TIR_THREAD_BINDING) {
    *var = n->loop.var;
    *extent = n->loop.extent;
    return tir_text(c->ir, n->loop.thread);
  }
  if (n->kind != TIR_ATTR || strcmp(tir_text(c->ir, n->attr.key), "thread_extent")) return NULL;
  const struct tir_expr_node *node = tir_at(c->ir, n->attr.node);
  if (node->kind != TIR_VAR) return NULL;
  static _Thread_local char name[64];
  tir_name_render(c->ir, c->ir->vars.at[node->ref].name, name, sizeof name);
  *var = node->ref;
  *extent = n->attr.value;
  return name;
}

/* Launches all threads that the statements below `top` bind; a tag bound twice must have one extent. Blocks of a
 * cluster run side by side. */
static void open_kernel(struct compiler *c, struct frame *f, tir_stmt top) {
  operand extents[THREAD_DIMS];
  uint32_t cluster = 1;
  for (int d = 0; d < THREAD_DIMS; d++) extents[d] = NO_OPERAND;
  for (tir_stmt s = top; s != TIR_NONE && !c->failed; s = tir_next(c->ir, s, top)) {
    tir_var var;
    tir_expr extent;
    const char *tag = thread_of(c, s, &var, &extent);
    int dim = tag ? interp_thread_dim(tag) : -1;
    if (dim < 0) continue;
    operand at = interp_expr(c, extent, 0);
    if (tir_is_bound(c->ir, s) && !tir_check_cluster(c->ir, s, MS_RUN_UNSUPPORTED, c->err)) c->failed = true;
    if (dim == TIR_BLOCK_X && tir_cluster_of(c->ir, s) > 1) cluster = (uint32_t)tir_cluster_of(c->ir, s);
    if (extents[dim] == NO_OPERAND)
      extents[dim] = at;
    else if (extents[dim] != at)
      interp_emit(c, OP_CHECK_EQUAL, 0, at, extents[dim], AGREE_THREADS, 0);
  }
  for (int d = 0; d < THREAD_DIMS; d++)
    if (extents[d] == NO_OPERAND) extents[d] = interp_int(c, 1);
  struct site site = {.args = {interp_list(c, extents, THREAD_DIMS), THREAD_DIMS}, .count = cluster};
  INTERP_PUSH(c->program->sites, site);
  chain(c, &f->to_end, interp_emit(c, OP_KERNEL, 0, (operand)(c->program->sites.count - 1), 0, 0, 0));
  f->kernel = true;
  c->in_kernel = true;
}

static void open_thread(struct compiler *c, struct frame *f, tir_stmt s, int dim, tir_var var, tir_expr min) {
  if (!c->in_kernel) open_kernel(c, f, s);
  operand at = interp_registers(c, 1);
  interp_emit(c, OP_THREAD, at, dim, min ? interp_expr(c, min, 0) : interp_int(c, 0), 0, 0);
  interp_define_var(c, var, at);
  c->dim_of[var] = (int8_t)dim;
}

/* Threads are real only in lowered functions; virtual threads take turns. */
static void begin_threads(struct compiler *c, struct frame *f, tir_stmt s, const char *tag, tir_var var,
                          tir_expr extent) {
  const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
  tir_expr min = n->kind == TIR_LOOP ? n->loop.min : TIR_NONE;
  int dim = interp_thread_dim(tag);
  if (c->options && c->options->lowered && dim >= 0) {
    open_thread(c, f, s, dim, var, min);
  } else {
    operand first = min ? interp_expr(c, min, 0) : interp_int(c, 0);
    open_loop(c, f, var, first, interp_expr(c, extent, 0));
  }
}

static const struct tir_fixed_loop *find_fixed(const struct compiler *c, tir_loop loop) {
  for (uint32_t i = 0; c->options && i < c->options->fixed_count; i++)
    if (c->options->fixed[i].loop == loop) return &c->options->fixed[i];
  return NULL;
}

static void begin_loop(struct compiler *c, struct frame *f, tir_stmt s) {
  tir_var var;
  tir_expr extent;
  const char *tag = thread_of(c, s, &var, &extent);
  struct tir_captures captures;
  bool outlined = tir_captures_of(c->ir, tir_stmt_at(c->ir, s)->parent, &captures) && captures.loop == s;
  if (tag) {
    if (outlined) interp_hide_others(c, &captures);
    begin_threads(c, f, s, tag, var, extent);
    return;
  }
  const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
  const struct tir_fixed_loop *fixed = find_fixed(c, s);
  operand min = fixed ? interp_int(c, fixed->value) : interp_expr(c, n->loop.min, 0),
          count = fixed ? interp_int(c, 1) : interp_expr(c, n->loop.extent, 0);
  /* The iterations of the outermost parallel loop of a lowered function have no order: races between them are found. */
  f->parallel = n->loop_kind == TIR_PARALLEL && c->options && c->options->lowered && !c->in_kernel && !c->in_parallel;
  if (outlined) interp_hide_others(c, &captures);
  if (f->parallel) interp_emit(c, OP_PARALLEL, 0, 0, 0, 0, 0);
  open_loop(c, f, n->loop.var, min, count);
  if (f->parallel) interp_emit(c, OP_ITERATION, 0, f->var, min, count, 0);
  c->in_parallel = c->in_parallel || f->parallel;
}

static void begin_attr(struct compiler *c, struct frame *f, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
  tir_var var;
  tir_expr extent;
  const char *tag = thread_of(c, s, &var, &extent), *key = tir_text(c->ir, n->attr.key);
  const struct tir_expr_node *node = tir_at(c->ir, n->attr.node);
  struct tir_captures captures;
  if (tir_captures_of(c->ir, s, &captures) && !captures.loop) interp_hide_others(c, &captures);
  if (tag)
    begin_threads(c, f, s, tag, var, extent);
  else if (!strcmp(key, "virtual_thread") && node->kind == TIR_VAR)
    open_loop(c, f, node->ref, interp_int(c, 0), interp_expr(c, n->attr.value, 0));
  else if (!strcmp(key, "reduce_scope"))
    c->reducer = n->attr.node;
}

/* ---- Blocks ---- */

static bool is_within(const struct compiler *c, const struct tir_iter *iter) {
  const struct tir_expr_node *n = tir_at(c->ir, iter->binding);
  const struct tir_var_node *domain = &c->ir->vars.at[iter->var];
  if (!domain->min || !domain->extent) return true;
  if (n->kind != TIR_VAR) return false;
  const struct tir_var_node *loop = &c->ir->vars.at[n->ref];
  return loop->kind == TIR_VAR_LOOP && loop->min == domain->min && loop->extent == domain->extent;
}

static void bind_iters(struct compiler *c, tir_block b) {
  const struct tir_iter *iters = tir_iters(c->ir, b);
  for (uint32_t i = 0; i < tir_block_at(c->ir, b)->iters.count; i++) {
    const struct tir_var_node *domain = &c->ir->vars.at[iters[i].var];
    operand at = interp_expr(c, iters[i].binding, 0);
    if (!is_within(c, &iters[i]))
      interp_emit(c, OP_CHECK_DOMAIN, (operand)iters[i].var, at, interp_expr(c, domain->min, 0),
                  interp_expr(c, domain->extent, 0), 0);
    /* A register is written once in the scope of what it holds: the binding itself can stand for the variable. */
    interp_define_var(c, iters[i].var, at);
  }
}

static void begin_block(struct compiler *c, struct frame *f, tir_block b) {
  tir_expr predicate = tir_as(c->ir, b, TIR_BLOCK)->block.predicate;
  if (predicate) chain(c, &f->to_end, interp_emit(c, OP_JUMP_IF_NOT, 0, interp_expr(c, predicate, 0), 0, 0, 0));
  bind_iters(c, b);
  const struct tir_block_record *record = tir_block_at(c->ir, b);
  for (uint32_t i = 0; i < record->allocs.count; i++) interp_alloc(c, tir_operands(c->ir, record->allocs.first)[i]);
  for (uint32_t i = 0; i < record->matches.count; i++) interp_match(c, &c->ir->matches.at[record->matches.first + i]);
}

/* Init runs where every reduction binding is at its domain's minimum. */
static void begin_init(struct compiler *c, struct frame *f, tir_block b) {
  const struct tir_iter *iters = tir_iters(c->ir, b);
  struct scope scope = interp_enter(c);
  for (uint32_t i = 0; i < tir_block_at(c->ir, b)->iters.count; i++) {
    tir_expr min = c->ir->vars.at[iters[i].var].min;
    if (iters[i].kind != TIR_REDUCE || !min) continue;
    uint32_t jump = interp_emit(c, OP_JUMP_NOT_EQUAL, 0, c->var_at[iters[i].var], 0, interp_expr(c, min, 0), 0);
    chain(c, &f->to_next, jump);
  }
  interp_leave(c, scope);
}

/* ---- Flat statements ---- */

static int index_lanes(const struct compiler *c, const struct tir_stmt_node *n, uint32_t rank) {
  int most = 1;
  for (uint32_t d = 0; d < rank; d++) {
    int lanes = tir_type_lanes(tir_type_of(c->ir, tir_operands(c->ir, n->store.indices)[d]));
    if (lanes > most) most = lanes;
  }
  return most;
}

/* A lane of what a store writes: the value, whether it is written, and where; the instructions that compute the
 * value. */
struct stored_lane {
  operand value, predicate, indices[INTERP_MOST_RANK];
  uint32_t first, last;
  bool copies; /* some of these need not find what they load written */
};

/* Marks the load that the value was just compiled to as one of a copy, where it is a plain load. */
static void mark_copy(struct compiler *c, tir_expr value, operand at) {
  const struct tir_expr_node *n = tir_at(c->ir, value);
  if (c->failed || n->kind != TIR_LOAD || n->a) return;
  struct instruction *last = &c->program->code.at[interp_here(c) - 1];
  if (last->op >= OP_LOAD1 && last->op <= OP_LOAD && last->dst == at) last->copies = COPIES_ELEMENT;
}

static void compute_lane(struct compiler *c, tir_expr value, int lane, struct stored_lane *to) {
  c->stores_lanes = tir_type_lanes(tir_type_of(c->ir, value)) > 1;
  to->first = interp_here(c);
  to->value = interp_expr(c, value, lane);
  c->stores_lanes = false;
  mark_copy(c, value, to->value);
  to->last = interp_here(c) - 1;
  for (uint32_t i = to->first; i <= to->last && !c->failed; i++) to->copies |= c->program->code.at[i].copies != 0;
}

static void store(struct compiler *c, const struct tir_stmt_node *n) {
  const struct tir_buffer_node *buffer = tir_buffer_at(c->ir, n->store.buffer);
  tir_type type = tir_type_of(c->ir, n->store.value);
  if (!interp_has_format(tir_type_with_lanes(buffer->type, 1)) ||
      tir_type_is_float(type) != tir_type_is_float(buffer->type)) {
    interp_refuse(c, MS_RUN_UNSUPPORTED, "the value stored in %s is not of its type", tir_text(c->ir, buffer->name));
    return;
  }
  int lanes = tir_type_lanes(type), wanted = tir_type_lanes(buffer->type) * index_lanes(c, n, buffer->rank);
  if (lanes != wanted) {
    interp_refuse(c, MS_RUN_UNSUPPORTED, "%d lanes are stored in %s where %d are named", lanes,
                  tir_text(c->ir, buffer->name), wanted);
    return;
  }
  uint32_t slot = interp_slot(c, n->store.buffer), rank = 0;
  struct stored_lane *values = calloc((size_t)lanes, sizeof *values);
  if (!values) abort();
  bool begins = c->in_kernel && tir_is_device_call(c->ir, n->store.value, TIR_ASYNC_COPY);
  /* A vector is read whole before any of it is written. */
  for (int lane = 0; lane < lanes && !c->failed; lane++) {
    struct stored_lane *at = &values[lane];
    compute_lane(c, n->store.value, lane, at);
    at->predicate = interp_int(c, 1);
    if (n->store.predicate) {
      bool vector = tir_type_lanes(tir_type_of(c->ir, n->store.predicate)) > 1;
      at->predicate = interp_expr(c, n->store.predicate, vector ? lane : 0);
    }
    rank = interp_indices(c, n->store.buffer, tir_operands(c->ir, n->store.indices), buffer->rank, lane, at->indices);
  }
  for (int lane = 0; lane < lanes && !c->failed; lane++) {
    const struct stored_lane *at = &values[lane];
    uint32_t skip = UINT32_MAX;
    if (n->store.predicate) chain(c, &skip, interp_emit(c, OP_JUMP_IF_NOT, 0, at->predicate, 0, 0, 0));
    interp_emit_access(c, true, at->value, slot, buffer->type, at->indices, rank);
    patch(c, &skip);
    if (at->copies) interp_emit_after_store(c, OP_COPIED, at->first, at->last, at->predicate, slot, at->indices, rank);
    if (begins) interp_emit_after_store(c, OP_BEGIN_COPY, at->first, at->last, at->predicate, slot, at->indices, rank);
  }
  free(values);
}

static void bind(struct compiler *c, const struct tir_stmt_node *n) {
  int lanes = tir_type_lanes(tir_type_of(c->ir, n->bind.value));
  if (lanes == 1) {
    interp_define_var(c, n->bind.var, interp_expr(c, n->bind.value, 0));
    return;
  }
  operand at = interp_registers(c, lanes);
  for (int lane = 0; lane < lanes; lane++) interp_expr_to(c, at + lane, n->bind.value, lane);
  interp_define_var(c, n->bind.var, at);
}

static void flat(struct compiler *c, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
  struct scope scope = interp_enter(c);
  switch ((enum tir_stmt_kind)n->kind) {
  case TIR_BIND: bind(c, n); return; /* what these define holds for the rest of the list */
  case TIR_ALLOC: interp_alloc(c, n->alloc.buffer); return;
  case TIR_DECLARE: interp_declare(c, n->alloc.buffer); return;
  case TIR_STORE: store(c, n); break;
  case TIR_EVALUATE: interp_expr(c, n->evaluate.value, 0); break;
  case TIR_ASSERT:
    interp_emit(c, OP_ASSERT, 0, interp_expr(c, n->test.condition, 0), (operand)n->test.message, 0, 0);
    break;
  default: assert(!"a statement with lists"); break;
  }
  interp_leave(c, scope);
}

/* ---- The walk ---- */

static void begin(struct compiler *c, struct frame *f) {
  tir_stmt s = f->stmt;
  const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
  switch ((enum tir_stmt_kind)n->kind) {
  case TIR_LOOP: begin_loop(c, f, s); break;
  case TIR_BLOCK: begin_block(c, f, s); break;
  case TIR_ATTR: begin_attr(c, f, s); break;
  case TIR_IF:
    chain(c, &f->to_next, interp_emit(c, OP_JUMP_IF_NOT, 0, interp_expr(c, n->test.condition, 0), 0, 0, 0));
    break;
  case TIR_WHILE:
    f->start = interp_here(c);
    chain(c, &f->to_end, interp_emit(c, OP_JUMP_IF_NOT, 0, interp_expr(c, n->test.condition, 0), 0, 0, 0));
    break;
  default: break;
  }
}

static void end(struct compiler *c, struct frame *f) {
  if (f->loops) close_loop(c, f);
  if (tir_is(c->ir, f->stmt, TIR_WHILE)) interp_emit(c, OP_STEP, 0, 0, (operand)f->start, 0, 0);
  if (f->kernel) {
    interp_emit(c, OP_RETURN, 0, 0, 0, 0, 0);
    c->in_kernel = false;
  }
  patch(c, &f->to_end);
  if (f->parallel) {
    interp_emit(c, OP_JOIN, 0, 0, 0, 0, 0);
    c->in_parallel = false;
  }
  interp_leave(c, f->scope);
  c->reducer = f->reducer;
}

/* Starts the next list of a frame: a block's init then its body; an if's body then its else. false: none is left. */
static bool next_list(struct compiler *c, struct frame *f) {
  const struct tir_stmt_node *n = tir_stmt_at(c->ir, f->stmt);
  bool block = n->kind == TIR_BLOCK;
  if (f->phase > 0) interp_leave(c, f->list);
  c->place = f->stmt;
  if (f->phase == 1) {
    bool second = n->kind == TIR_IF && n->first[TIR_ELSE];
    if (second) chain(c, &f->to_end, interp_emit(c, OP_JUMP, 0, 0, 0, 0, 0));
    patch(c, &f->to_next);
  }
  if (f->phase == 0 && block && n->first[TIR_INIT]) begin_init(c, f, f->stmt);
  if (f->phase == 2) return false;
  enum tir_list list = f->phase == 0 ? (block ? TIR_INIT : TIR_BODY) : (block ? TIR_BODY : TIR_ELSE);
  f->phase++;
  f->child = n->first[list];
  f->list = interp_enter(c);
  return true;
}

static struct frame new_frame(struct compiler *c, tir_stmt s) {
  struct frame f = {
      .stmt = s, .scope = interp_enter(c), .to_end = UINT32_MAX, .to_next = UINT32_MAX, .reducer = c->reducer};
  c->place = s;
  begin(c, &f);
  return f;
}

static bool has_lists(const struct compiler *c, tir_stmt s) {
  switch ((enum tir_stmt_kind)tir_stmt_at(c->ir, s)->kind) {
  case TIR_FUNCTION:
  case TIR_LOOP:
  case TIR_BLOCK:
  case TIR_IF:
  case TIR_WHILE:
  case TIR_ATTR: return true;
  default: return false;
  }
}

static void walk(struct compiler *c, tir_stmt top) {
  struct frames frames = {0};
  INTERP_PUSH(frames.list, new_frame(c, top));
  while (frames.list.count && !c->failed) {
    struct frame *f = &frames.list.at[frames.list.count - 1];
    if (f->phase == 0 || !f->child) {
      if (next_list(c, f)) continue;
      end(c, f);
      frames.list.count--;
      continue;
    }
    tir_stmt s = f->child;
    f->child = tir_stmt_at(c->ir, s)->next;
    interp_begin_statement(c, s);
    if (has_lists(c, s))
      INTERP_PUSH(frames.list, new_frame(c, s));
    else
      flat(c, s);
  }
  free(frames.list.at);
}

/* ---- A function ---- */

static operand *table(uint32_t count) {
  operand *at = malloc(sizeof(operand) * ((size_t)count + 1));
  if (!at) abort();
  for (uint32_t i = 0; i < count; i++) at[i] = NO_OPERAND;
  return at;
}

static void compile_function(struct compiler *c, tir_func f, const union value *values, const bool *set) {
  const struct tir_func_node *func = &c->ir->funcs.at[f];
  const struct tir_param *params = c->ir->params.at + func->params.first;
  c->place = TIR_NONE;
  c->workspace = tir_workspace_of(c->ir, f);
  for (tir_var v = 1; v < c->ir->vars.count; v++)
    if (set[v]) interp_define_var(c, v, interp_constant(c, values[v]));
  for (uint32_t i = 0; i < func->params.count; i++)
    if (params[i].buffer) interp_param(c, &params[i], i);
  walk(c, func->body);
  interp_emit(c, OP_HALT, 0, 0, 0, 0, 0);
}

bool interp_compile(const struct tir *ir, tir_func f, const struct tir_run_options *options, const union value *values,
                    const bool *set, struct program *out, ms_error *err) {
  assert(tir_is_func(ir, f));
  struct compiler c = {.ir = ir, .options = options, .program = out, .err = err};
  c.computed = table(ir->exprs.count);
  c.computed_by = calloc((size_t)ir->exprs.count + 1, sizeof *c.computed_by);
  if (!c.computed_by) abort();
  c.var_at = table(ir->vars.count);
  c.slot_of = table(ir->buffers.count);
  c.dim_of = malloc(ir->vars.count + 1);
  if (!c.dim_of) abort();
  memset(c.dim_of, -1, ir->vars.count + 1);
  compile_function(&c, f, values, set);
  free(c.computed);
  free(c.computed_by);
  free(c.var_at);
  free(c.slot_of);
  free(c.dim_of);
  free(c.undos.at);
  return !c.failed;
}

void interp_program_free(struct program *p) {
  free(p->code.at);
  free(p->places.at);
  free(p->constants.at);
  free(p->lists.at);
  free(p->sites.at);
  free(p->slots.at);
  memset(p, 0, sizeof *p);
}
