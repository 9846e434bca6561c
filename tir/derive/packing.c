/* Functions cut in two: what is computed of constants alone, as their packing into another layout is, and the rest.
 *
 *   f(A, W, C): P = pack(W); C = product(A, P)     becomes     f_pack(W, P) and f(A, P, C)
 *
 * A nest of the root block goes into the packing where all that it reads is constant (the function's attribute
 * layout_free_buffers), or was written by such nests alone. */
#include "tir/tir.h"

#include <stdlib.h>
#include <string.h>

#define CONSTANTS "layout_free_buffers"
#define PACKS     "meta_schedule.layout_rewrite_preproc"

/* Of a buffer. */
struct use {
  bool constant, written;      /* written: by any nest */
  bool kept_writes, kept_uses; /* by a nest that stays */
  bool packed_uses;            /* by one that does not */
  uint32_t source;             /* the first constant that it was made of, by its number */
};

struct splitting {
  const struct tir *ir;
  tir_func f;
  tir_block root;
  struct use *uses; /* by buffer */
  bool *packs;      /* by statement of the root: it goes into the packing */
};

static struct tir_span params_of(const struct tir *ir, tir_func f) { return ir->funcs.at[f].params; }

static const char *name_of(const struct splitting *s, tir_buffer b) { return tir_buffer_name(s->ir, b); }

static bool writes(const struct tir *ir, tir_func f, tir_buffer b) {
  tir_stmt body = ir->funcs.at[f].body;
  for (tir_stmt at = body; at; at = tir_next(ir, at, body)) {
    if (tir_is(ir, at, TIR_STORE) && tir_as(ir, at, TIR_STORE)->store.buffer == b) return true;
    if (!tir_is(ir, at, TIR_BLOCK)) continue;
    struct tir_span regions = tir_regions(ir, at, true);
    for (uint32_t i = 0; i < regions.count; i++)
      if (ir->regions.at[regions.first + i].buffer == b) return true;
  }
  return false;
}

/* ---- Which parameters are constant ---- */

static bool check_number(const struct splitting *s, tir_expr e, ms_error *err) {
  struct tir_span params = params_of(s->ir, s->f);
  bool fits = tir_is_int(s->ir, e) && tir_at(s->ir, e)->imm >= 0 && tir_at(s->ir, e)->imm < params.count;
  if (fits && s->ir->params.at[params.first + tir_at(s->ir, e)->imm].buffer) return true;
  char *text = tir_print_expr(s->ir, e);
  ms_fail(err, MS_INVALID_ARGUMENT,
          "attribute " CONSTANTS " of `%s` lists numbers of parameters that are buffers, from 0 to %u; %s is none",
          tir_text(s->ir, s->ir->funcs.at[s->f].name), params.count ? params.count - 1 : 0, text ? text : "?");
  free(text);
  return false;
}

static bool read_constants(struct splitting *s, tir_expr list, ms_error *err) {
  const struct tir_expr_node *n = tir_at(s->ir, list);
  struct tir_span params = params_of(s->ir, s->f);
  if (n->kind != TIR_LIST)
    return check_number(s, list, err) && ms_fail(err, MS_INVALID_ARGUMENT, "attribute " CONSTANTS " is a list");
  for (uint32_t i = 0; i < n->count; i++) {
    tir_expr e = tir_operands(s->ir, n->operands)[i];
    if (!check_number(s, e, err)) return false;
    uint32_t number = (uint32_t)tir_at(s->ir, e)->imm;
    tir_buffer b = s->ir->params.at[params.first + number].buffer;
    if (writes(s->ir, s->f, b))
      return ms_fail(err, MS_INVALID_ARGUMENT,
                     "attribute " CONSTANTS " of `%s` lists `%s`, which the function writes: it is no constant",
                     tir_text(s->ir, s->ir->funcs.at[s->f].name), name_of(s, b));
    struct use *use = &s->uses[b];
    *use = (struct use){.constant = true, .source = number};
  }
  return true;
}

/* ---- Which nests pack ---- */

static tir_stmt first_nest(const struct splitting *s) { return tir_stmt_at(s->ir, s->root)->first[TIR_BODY]; }
static tir_stmt next_nest(const struct splitting *s, tir_stmt nest) { return tir_stmt_at(s->ir, nest)->next; }

/* Whether a buffer is no concern of the root: the nest itself allocates it, or matches it with another. */
static bool is_within(const struct splitting *s, tir_buffer b) {
  tir_stmt where = tir_buffer_at(s->ir, b)->where;
  return where && where != s->root;
}

/* Calls `see` with each buffer that blocks of the nest read, or write. */
typedef void see_buffer(struct splitting *s, tir_stmt nest, tir_buffer b, void *data);
static void each_buffer(struct splitting *s, tir_stmt nest, bool writes, see_buffer *see, void *data) {
  for (tir_stmt at = nest; at; at = tir_next(s->ir, at, nest)) {
    if (!tir_is(s->ir, at, TIR_BLOCK)) continue;
    struct tir_span regions = tir_regions(s->ir, at, writes);
    for (uint32_t i = 0; i < regions.count; i++) {
      tir_buffer b = s->ir->regions.at[regions.first + i].buffer;
      if (!is_within(s, b)) see(s, nest, b, data);
    }
  }
}

static void note_write(struct splitting *s, tir_stmt nest, tir_buffer b, void *data) {
  (void)data;
  s->uses[b].written = true;
  if (!s->packs[nest]) s->uses[b].kept_writes = true;
}

/* Why a nest cannot go into the packing, in words with the buffer that keeps it. */
struct obstacle {
  const char *words; /* NULL: none */
  tir_buffer buffer;
};

static void hinder(struct obstacle *o, const char *words, tir_buffer b) {
  if (!o->words) *o = (struct obstacle){words, b};
}

static bool is_compact_global(const struct tir *ir, tir_buffer b) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, b);
  bool known = true;
  for (uint32_t d = 0; d < n->rank; d++) known = known && tir_is_int(ir, tir_operands(ir, n->shape)[d]);
  return known && !n->strides.count && !n->elem_offset && !n->data && !n->axis_separators.count &&
         tir_memory_scope_of(ir, b) == TIR_SCOPE_GLOBAL;
}

static void check_read(struct splitting *s, tir_stmt nest, tir_buffer b, void *data) {
  (void)nest;
  const struct use *use = &s->uses[b];
  if (use->constant) return;
  if (!tir_buffer_at(s->ir, b)->where)
    hinder(data, "reads `%s`, which is not constant", b);
  else if (use->kept_writes || !use->written)
    hinder(data, "reads `%s`, which is not made of constants alone", b);
}

static void check_write(struct splitting *s, tir_stmt nest, tir_buffer b, void *data) {
  (void)nest;
  if (!tir_buffer_at(s->ir, b)->where)
    hinder(data, "writes `%s`, a parameter", b);
  else if (s->uses[b].kept_writes)
    hinder(data, "writes `%s`, which others write too that are not made of constants alone", b);
  else if (!is_compact_global(s->ir, b))
    hinder(data, "writes `%s`, which is not a compact buffer of constant shape in global memory", b);
}

static struct obstacle obstacle_of(struct splitting *s, tir_stmt nest) {
  struct obstacle o = {0};
  each_buffer(s, nest, false, check_read, &o);
  each_buffer(s, nest, true, check_write, &o);
  for (tir_stmt at = nest; at && !o.words; at = tir_next(s->ir, at, nest)) {
    if (!tir_is(s->ir, at, TIR_BLOCK) && !tir_is(s->ir, at, TIR_LOOP)) continue;
    if (tir_annotation(s->ir, tir_stmt_at(s->ir, at)->annotations, "buffer_dim_align"))
      o = (struct obstacle){"lays its rows apart (storage_align)", TIR_NONE};
    if (tir_is_bound(s->ir, at)) o = (struct obstacle){"is bound to threads", TIR_NONE};
  }
  for (tir_stmt at = nest; at && !o.words; at = tir_next(s->ir, at, nest))
    if (tir_is(s->ir, at, TIR_EVALUATE) || tir_is(s->ir, at, TIR_ASSERT) || tir_is(s->ir, at, TIR_WHILE))
      o = (struct obstacle){"does more than storing elements", TIR_NONE};
  return o;
}

static void note_writes(struct splitting *s) {
  for (uint32_t b = 0; b < s->ir->buffers.count; b++) s->uses[b].kept_writes = s->uses[b].written = false;
  for (tir_stmt n = first_nest(s); n; n = next_nest(s, n)) each_buffer(s, n, true, note_write, NULL);
}

/* The most nests that can: all are taken to, until none is left that cannot. */
static void choose_nests(struct splitting *s) {
  for (tir_stmt n = first_nest(s); n; n = next_nest(s, n))
    s->packs[n] = tir_is(s->ir, n, TIR_LOOP) || tir_is(s->ir, n, TIR_BLOCK);
  for (bool changed = true; changed;) {
    changed = false;
    note_writes(s);
    for (tir_stmt n = first_nest(s); n; n = next_nest(s, n)) {
      if (!s->packs[n] || !obstacle_of(s, n).words) continue;
      s->packs[n] = false;
      changed = true;
    }
  }
}

/* A block that says that it packs a constant, in a nest that stays. */
static tir_block find_left(const struct splitting *s, tir_stmt *nest) {
  for (*nest = first_nest(s); *nest; *nest = next_nest(s, *nest))
    for (tir_stmt at = *nest; at && !s->packs[*nest]; at = tir_next(s->ir, at, *nest))
      if (tir_is(s->ir, at, TIR_BLOCK) && tir_annotation(s->ir, tir_stmt_at(s->ir, at)->annotations, PACKS)) return at;
  return TIR_NONE;
}

static bool refuse_left(struct splitting *s, ms_error *err) {
  tir_stmt nest;
  char why[300];
  tir_block block = find_left(s, &nest);
  if (!block) return true;
  s->packs[nest] = true; /* its own writes are no obstacle */
  note_writes(s);
  struct obstacle o = obstacle_of(s, nest);
  snprintf(why, sizeof why, o.words ? o.words : "shares its loops with others", o.buffer ? name_of(s, o.buffer) : "");
  return ms_fail(err, MS_NOT_PACKED,
                 "block `%s` of `%s` is annotated " PACKS
                 ", but its loop nest %s; what is packed is computed in front, of "
                 "parameters that " CONSTANTS " lists alone",
                 tir_block_name(s->ir, block), tir_text(s->ir, s->ir->funcs.at[s->f].name), why);
}

static bool loads(const struct tir *ir, tir_expr e) { return e && (tir_at(ir, e)->flags & TIR_HAS_LOAD); }

/* Of a block that stands in no other but the root. */
static bool is_placed_by_loads(const struct tir *ir, tir_block block) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  bool found = loads(ir, tir_stmt_at(ir, block)->block.predicate);
  for (uint32_t i = 0; i < iters.count; i++) found = found || loads(ir, tir_iters(ir, block)[i].binding);
  return found;
}

/* Whether all that the root does is done by blocks in loops, and no extent, binding or condition loads: else a use of a
 * buffer stands in no block's regions. */
static bool is_of_nests(const struct splitting *s) {
  const struct tir *ir = s->ir;
  for (tir_stmt at = tir_next(ir, s->root, s->root); at; at = tir_next(ir, at, s->root)) {
    if (tir_parent_block(ir, at) != s->root) continue;
    if (tir_is(ir, at, TIR_LOOP) && !loads(ir, tir_stmt_at(ir, at)->loop.min) &&
        !loads(ir, tir_stmt_at(ir, at)->loop.extent))
      continue;
    if (!tir_is(ir, at, TIR_BLOCK) || is_placed_by_loads(ir, at)) return false;
  }
  return !tir_stmt_at(ir, s->root)->first[TIR_INIT];
}

/* Functions whose constants can be packed at all; words: why not. */
static const char *unfit(struct splitting *s) {
  struct tir_span params = params_of(s->ir, s->f);
  struct tir_symbol_use symbol;
  if (params.count > TIR_MOST_PACKING - TIR_MOST_PACKED) return "it has too many parameters";
  for (uint32_t i = 0; i < params.count; i++)
    if (!s->ir->params.at[params.first + i].buffer) return "it has parameters that are scalars";
  if (tir_symbolic_variables(s->ir, s->f, &symbol, 1)) return "its shapes are not constant";
  if (s->ir->undeclared == TIR_SOME_UNDECLARED) return "buffers are used in ways that no block's regions declare";
  if (tir_block_at(s->ir, s->root)->matches.count || tir_block_at(s->ir, s->root)->iters.count)
    return "its root block has iterations or matched buffers";
  if (!is_of_nests(s)) return "it has statements that stand in no block, or extents and conditions that are loaded";
  return NULL;
}

/* ---- The two functions ---- */

static void note_use(struct splitting *s, tir_stmt nest, tir_buffer b, void *data) {
  (void)data;
  *(s->packs[nest] ? &s->uses[b].packed_uses : &s->uses[b].kept_uses) = true;
}

struct sources {
  uint32_t least;
};
static void see_source(struct splitting *s, tir_stmt nest, tir_buffer b, void *data) {
  (void)nest;
  struct sources *sources = data;
  if (s->uses[b].source < sources->least) sources->least = s->uses[b].source;
}
static void set_source(struct splitting *s, tir_stmt nest, tir_buffer b, void *data) {
  (void)nest;
  const struct sources *sources = data;
  if (sources->least < s->uses[b].source) s->uses[b].source = sources->least;
}

static void note_uses(struct splitting *s) {
  for (uint32_t b = 0; b < s->ir->buffers.count; b++)
    if (!s->uses[b].constant) s->uses[b].source = UINT32_MAX;
  for (tir_stmt n = first_nest(s); n; n = next_nest(s, n)) {
    each_buffer(s, n, false, note_use, NULL);
    each_buffer(s, n, true, note_use, NULL);
    if (!s->packs[n]) continue;
    struct sources sources = {UINT32_MAX};
    each_buffer(s, n, false, see_source, &sources);
    each_buffer(s, n, true, set_source, &sources);
  }
}

/* The buffers that the packing leaves to the rest, in the order of the constants that they are made of. */
static uint32_t list_packed(const struct splitting *s, tir_buffer out[TIR_MOST_PACKED]) {
  struct tir_span allocs = tir_block_at(s->ir, s->root)->allocs;
  uint32_t count = 0;
  for (uint32_t i = 0; i < allocs.count; i++) {
    tir_buffer b = s->ir->operands.at[allocs.first + i];
    if (!s->uses[b].packed_uses || !s->uses[b].kept_uses) continue;
    if (count == TIR_MOST_PACKED) return TIR_MOST_PACKED + 1;
    uint32_t at = count++;
    for (; at > 0 && s->uses[out[at - 1]].source > s->uses[b].source; at--) out[at] = out[at - 1];
    out[at] = b;
  }
  return count;
}

static uint32_t number_of(const tir_buffer *list, uint32_t count, tir_buffer b) {
  uint32_t i = 0;
  while (i < count && list[i] != b) i++;
  return i;
}

/* The kernel has what it uses of the parameters, and what is packed where that stands which it is made of. */
static void list_params(const struct splitting *s, const tir_buffer *packed, struct tir_packing *out) {
  struct tir_span params = params_of(s->ir, s->f);
  for (uint32_t i = 0; i < params.count; i++) {
    const struct use *use = &s->uses[s->ir->params.at[params.first + i].buffer];
    if (use->packed_uses) out->of_pack[out->pack_count++] = i;
    if (use->kept_uses || !use->packed_uses) out->of_kernel[out->kernel_count++] = i;
    for (uint32_t k = 0; k < out->count; k++)
      if (s->uses[packed[k]].source == i) out->of_kernel[out->kernel_count++] = TIR_PACKED + k;
  }
  for (uint32_t k = 0; k < out->count; k++) {
    if (s->uses[packed[k]].source == UINT32_MAX)
      out->of_kernel[out->kernel_count++] = TIR_PACKED + k; /* made of nothing */
    out->of_pack[out->pack_count++] = TIR_PACKED + k;
  }
  assert(out->kernel_count <= TIR_MOST_PACKING && out->pack_count <= TIR_MOST_PACKING);
}

static void set_params(struct tir *ir, tir_func f, const tir_buffer *packed, const uint32_t *list, uint32_t count) {
  struct tir_span old = ir->funcs.at[f].params;
  uint32_t first = ir->params.count;
  ir->params.at = tir_enlarge(ir->params.at, &ir->params.capacity, (uint64_t)first + count, sizeof *ir->params.at);
  for (uint32_t i = 0; i < count; i++)
    ir->params.at[first + i] = list[i] >= TIR_PACKED ? (struct tir_param){packed[list[i] - TIR_PACKED], TIR_NONE}
                                                     : ir->params.at[old.first + list[i]];
  ir->params.count += count;
  ir->funcs.at[f].params = (struct tir_span){first, count};
}

/* The nests of one part alone; the root allocates what only they use. */
static struct tir *make_part(const struct splitting *s, bool pack, const tir_buffer *packed, uint32_t count) {
  struct tir *ir = tir_new();
  tir_copy(ir, s->ir);
  struct tir_span allocs = tir_block_at(ir, s->root)->allocs;
  for (tir_stmt n = tir_stmt_at(ir, s->root)->first[TIR_BODY], next; n; n = next) {
    next = tir_stmt_at(ir, n)->next;
    if (s->packs[n] != pack) tir_kill(ir, n);
  }
  for (uint32_t i = allocs.count; i-- > 0;) {
    tir_buffer b = s->ir->operands.at[allocs.first + i];
    bool given = number_of(packed, count, b) < count, used = pack ? s->uses[b].packed_uses : s->uses[b].kept_uses;
    if (used && !given) continue;
    tir_remove_alloc(ir, s->root, b);
    tir_buffer_at(ir, b)->where = TIR_NONE;
  }
  tir_set_reads(ir, s->root, NULL, 0);
  tir_set_writes(ir, s->root, NULL, 0);
  tir_annotate_span(ir, &ir->funcs.at[s->f].attrs, tir_find_symbol(ir, CONSTANTS), TIR_NONE);
  return ir;
}

static void name_pack(struct tir *ir, tir_func f) {
  tir_symbol key = tir_find_symbol(ir, "global_symbol"),
             name = tir_symbol_format(ir, "%s_pack", tir_text(ir, ir->funcs.at[f].name));
  if (key) tir_annotate_span(ir, &ir->funcs.at[f].attrs, key, TIR_NONE);
  ir->funcs.at[f].name = name;
}

/* Its outermost loops run in parallel, where that is safe. */
static void share_loops(struct tir *ir, tir_block root) {
  ms_error refusal = {.brief = true};
  for (tir_stmt n = tir_stmt_at(ir, root)->first[TIR_BODY]; n; n = tir_stmt_at(ir, n)->next)
    if (tir_is(ir, n, TIR_LOOP) && tir_stmt_at(ir, n)->loop_kind == TIR_SERIAL) tir_parallel(ir, n, &refusal);
}

static bool make_parts(struct splitting *s, struct tir_packing *out, ms_error *err) {
  tir_buffer packed[TIR_MOST_PACKED];
  note_uses(s);
  uint32_t count = list_packed(s, packed);
  if (!count || count > TIR_MOST_PACKED) return true; /* of so many, all stay as they are */
  out->count = count;
  list_params(s, packed, out);
  out->kernel = make_part(s, false, packed, count);
  out->pack = make_part(s, true, packed, count);
  set_params(out->kernel, s->f, packed, out->of_kernel, out->kernel_count);
  set_params(out->pack, s->f, packed, out->of_pack, out->pack_count);
  name_pack(out->pack, s->f);
  share_loops(out->pack, s->root);
  if (tir_verify(out->kernel, err) && tir_verify(out->pack, err)) return true;
  tir_packing_free(out);
  return false;
}

static bool split(struct splitting *s, struct tir_packing *out, ms_error *err) {
  const char *why = unfit(s);
  if (!why) choose_nests(s);
  if (!why) return refuse_left(s, err) && make_parts(s, out, err);
  tir_stmt nest;
  tir_block left = find_left(s, &nest);
  return !left ||
         ms_fail(err, MS_NOT_PACKED, "block `%s` is annotated " PACKS ", but constants of `%s` cannot be packed: %s",
                 tir_block_name(s->ir, left), tir_text(s->ir, s->ir->funcs.at[s->f].name), why);
}

bool tir_split_packing(const struct tir *given, tir_func f, struct tir_packing *out, ms_error *err) {
  assert(tir_is_func(given, f) && out);
  *out = (struct tir_packing){0};
  tir_expr constants = tir_annotation(given, given->funcs.at[f].attrs, CONSTANTS);
  tir_block root = tir_root_block(given, f);
  if (!constants || !root) return true;
  struct tir *ir = tir_new();
  tir_copy(ir, given);
  tir_find_undeclared(ir);
  struct splitting s = {.ir = ir, .f = f, .root = root};
  s.uses = calloc(ir->buffers.count + 1, sizeof *s.uses);
  s.packs = calloc(ir->stmts.count + 1, sizeof *s.packs);
  if (!s.uses || !s.packs) abort();
  bool ok = read_constants(&s, constants, err) && split(&s, out, err);
  free(s.uses);
  free(s.packs);
  tir_free(ir);
  return ok;
}

void tir_packing_free(struct tir_packing *packing) {
  if (packing->kernel) tir_free(packing->kernel);
  if (packing->pack) tir_free(packing->pack);
  *packing = (struct tir_packing){0};
}

/* ---- Saying which are constant ---- */

/* The number of the parameter of a name that can be constant; UINT32_MAX: there is none. */
static uint32_t find_constant(const struct tir *ir, tir_func f, const char *name, ms_error *err) {
  struct tir_span params = params_of(ir, f);
  const char *of = tir_text(ir, ir->funcs.at[f].name);
  char known[400] = "";
  for (uint32_t i = 0; i < params.count; i++) {
    tir_buffer b = ir->params.at[params.first + i].buffer;
    if (!b) continue;
    size_t length = strlen(known);
    if (!writes(ir, f, b))
      snprintf(known + length, sizeof known - length, "%s%s", length ? ", " : "", tir_buffer_name(ir, b));
    if (strcmp(tir_buffer_name(ir, b), name) != 0) continue;
    if (!writes(ir, f, b)) return i;
    ms_fail(err, MS_INVALID_ARGUMENT, "`%.60s` of `%s` is written by it, and so is no constant", name, of);
    return UINT32_MAX;
  }
  ms_fail(err, MS_INVALID_ARGUMENT, "`%s` has no buffer `%.60s` among its parameters; it reads %s", of, name,
          *known ? known : "none");
  return UINT32_MAX;
}

struct tir *tir_with_constants(const struct tir *ir, tir_func f, const char *const *names, uint32_t count,
                               ms_error *err) {
  assert(tir_is_func(ir, f) && (names || !count));
  struct tir *made = tir_new();
  tir_copy(made, ir);
  tir_expr old = tir_annotation(made, made->funcs.at[f].attrs, CONSTANTS);
  uint32_t had = old && tir_at(made, old)->kind == TIR_LIST ? tir_at(made, old)->count : 0, all = had;
  tir_expr *list = calloc((size_t)had + count + 1, sizeof *list);
  if (!list) abort();
  for (uint32_t i = 0; i < had; i++) list[i] = tir_operands(made, tir_at(made, old)->operands)[i];
  for (uint32_t i = 0; i < count && made; i++) {
    uint32_t number = find_constant(ir, f, names[i], err);
    tir_expr e = number == UINT32_MAX ? TIR_NONE : tir_int(made, TIR_T_I32, number);
    uint32_t at = 0;
    while (at < all && list[at] != e) at++;
    if (at == all) list[all++] = e;
    if (!e) tir_free(made), made = NULL;
  }
  if (made && all) {
    struct tir_span *attrs = &made->funcs.at[f].attrs;
    tir_symbol key = tir_symbol_of(made, CONSTANTS);
    if (old) tir_annotate_span(made, attrs, key, TIR_NONE);
    tir_annotate_span(made, attrs, key, tir_list_value(made, list, all));
  }
  free(list);
  return made;
}
