/* Vectors that are computed: what a statement loads side by side is loaded by as few accesses as it has 16 bytes,
 * before all else; its lanes are computed one by one, in registers; and the result is stored by as few.
 *
 *   {
 *     const uint2 ms_ahead_0 = *(const uint2 *)(A + tx * 4);
 *     const float ms_lane_0 = ms_of_half_f32((uint16_t)ms_ahead_0.x) + 1.0f;
 *     …
 *     *(float4 *)(C + tx * 4) = float4{ms_lane_0, ms_lane_1, ms_lane_2, ms_lane_3};
 *   }
 *
 * Loads that do not stand at a multiple of their size, or that no access has the size of, are of one lane each, as are
 * stores. What a condition guards is loaded under that condition, where it is one for all lanes; else lane by lane.
 * Requires of buffers what emit_alignment.c does. */
#include "emit_cuda.h"

#include <string.h>

enum { WIDEST = 16, MOST_LANES = 16, MOST_GUARDS = 3, MOST_NODES = 2000 };

/* ---- Vectors in C ---- */

/* A run of elements, in accesses of so many bytes. */
struct wide {
  const char *type; /* of an access */
  int bytes, count; /* of an access; accesses */
  int bits, lanes;  /* of an element; in an access */
  bool real;        /* a word is an element, a float; else words are of 32 bits, or one is the whole */
  bool negative;    /* elements have signs */
  bool words;       /* has members: x, y, z, w */
};

/* False: the elements fill no whole number of accesses. */
static bool find_wide(struct c_type element, int lanes, struct wide *out) {
  int bytes = element.bits / 8 * lanes;
  if (element.bits < 8 || lanes < 2 || lanes > MOST_LANES || (lanes & (lanes - 1)) != 0) return false;
  *out = (struct wide){.bytes = bytes < WIDEST ? bytes : WIDEST, .bits = element.bits};
  out->count = bytes / out->bytes, out->lanes = lanes / out->count;
  out->real = element.code == TIR_FLOAT, out->negative = element.code == TIR_INT;
  out->words = out->bytes > 4;
  if (out->real)
    out->type = element.bits == 64 ? "double2" : out->bytes == 8 ? "float2" : "float4";
  else
    out->type = out->bytes == 16 ? "uint4" : out->bytes == 8 ? "uint2" : out->bytes == 4 ? "uint32_t" : "uint16_t";
  return true;
}

/* The element of a run that is in the accesses `name`_0 and so on. */
static void write_element(struct emit_c *e, const struct wide *w, const char *name, int lane, struct c_type t) {
  int access = lane / w->lanes, in = lane % w->lanes, bit = in * w->bits;
  char type[32];
  if (w->real) {
    fprintf(e->out, "%s_%d.%c", name, access, "xyzw"[in]);
    return;
  }
  fprintf(e->out, "(%s)", emit_c_type_name(e, t, type));
  if (w->bits == 64) {
    const char *words = in ? "zw" : "xy";
    fprintf(e->out, "(%s_%d.%c | (uint64_t)%s_%d.%c << 32)", name, access, words[0], name, access, words[1]);
    return;
  }
  int shift = w->words ? bit % 32 : bit;
  if (shift) fputc('(', e->out);
  fprintf(e->out, "%s_%d", name, access);
  if (w->words) fprintf(e->out, ".%c", "xyzw"[bit / 32]);
  if (shift) fprintf(e->out, " >> %d)", shift);
}

/* The bits of a lane's variable, as they stand in a word. */
static void write_bits(struct emit_c *e, const struct wide *w, int lane, int shift) {
  fputs("(uint32_t)", e->out);
  if (w->bits < 32 && w->negative) fprintf(e->out, "(uint%d_t)", w->bits);
  fprintf(e->out, "ms_lane_%d", lane);
  if (shift) fprintf(e->out, " << %d", shift);
}

static void write_word(struct emit_c *e, const struct wide *w, int access, int word) {
  int first = access * w->lanes, bytes = w->words ? 4 : w->bytes;
  if (w->bits == 64) {
    fprintf(e->out, "(uint32_t)((uint64_t)ms_lane_%d >> %d)", first + word / 2, word % 2 * 32);
    return;
  }
  for (int at = 0; at < bytes * 8; at += w->bits) {
    if (at) fputs(" | ", e->out);
    write_bits(e, w, first + (word * 32 + at) / w->bits, at);
  }
}

/* An access's value, of variables of its lanes. */
static void write_access(struct emit_c *e, const struct wide *w, int access) {
  if (w->words) fprintf(e->out, "%s{", w->type);
  int words = w->real ? w->lanes : w->words ? w->bytes / 4 : 1;
  for (int i = 0; i < words; i++) {
    if (i) fputs(", ", e->out);
    if (w->real)
      fprintf(e->out, "ms_lane_%d", access * w->lanes + i);
    else
      write_word(e, w, access, i);
  }
  if (w->words) fputc('}', e->out);
}

/* ---- What is loaded ahead ---- */

/* A condition under which something is computed, inside of others. */
struct guard {
  tir_expr condition;
  bool holds;
};
struct load {
  tir_expr load;
  struct wide wide;
  struct guard guards[MOST_GUARDS];
  int guard_count;
  bool apart; /* wanted under several conditions: lane by lane */
};
struct ahead {
  struct emit_c *e;
  int lanes, left; /* of the statement; nodes that are looked at: what is shared is looked at again */
  struct load loads[C_MOST_AHEAD];
  int count;
};

static bool is_own(const struct emit_c *e, tir_buffer buffer) {
  return tir_buffer_memory(e->ir, buffer) == TIR_THREAD_MEMORY;
}

/* Whether the statement's lanes are read side by side, by accesses that may be whole. */
static bool find_load(const struct ahead *a, tir_expr x, struct wide *out) {
  const struct emit_c *e = a->e;
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (n->count != 1 || n->a || tir_type_lanes(n->type) != a->lanes || is_own(e, n->ref)) return false;
  tir_expr index = tir_operands(e->ir, n->operands)[0];
  return emit_c_is_run(e, n->ref, index) && emit_cuda_is_aligned(e, index) &&
         find_wide(emit_c_stored(n->type, 1), a->lanes, out);
}

static bool is_bound_within(void *data, tir_expr x) {
  struct ahead *a = data;
  const struct tir_expr_node *n = tir_at(a->e->ir, x);
  if (n->kind == TIR_VAR && !a->e->vars[n->ref]) a->left = 0;
  return a->left > 0;
}

/* Whether the expression has a meaning in front of the statement. */
static bool stands_ahead(struct ahead *a, tir_expr x) {
  int left = a->left;
  if (left <= 0) return false;
  tir_walk_expr(a->e->ir, x, is_bound_within, a);
  bool stands = a->left > 0;
  a->left = left;
  return stands;
}

static bool are_alike(const struct load *l, const struct guard *guards, int count) {
  if (l->guard_count != count) return false;
  for (int i = 0; i < count; i++)
    if (l->guards[i].condition != guards[i].condition || l->guards[i].holds != guards[i].holds) return false;
  return true;
}

static void add_load(struct ahead *a, tir_expr x, const struct guard *guards, int count) {
  struct load *l = a->loads;
  for (; l < a->loads + a->count; l++) {
    const struct tir_expr_node *known = tir_at(a->e->ir, l->load), *n = tir_at(a->e->ir, x);
    if (known->ref != n->ref || tir_operands(a->e->ir, known->operands)[0] != tir_operands(a->e->ir, n->operands)[0])
      continue;
    if (!count) l->guard_count = 0, l->apart = false;
    if (l->guard_count && !are_alike(l, guards, count)) l->apart = true;
    return;
  }
  struct wide wide;
  if (a->count == C_MOST_AHEAD || !find_load(a, x, &wide)) return;
  if (!stands_ahead(a, tir_operands(a->e->ir, tir_at(a->e->ir, x)->operands)[0])) return;
  *l = (struct load){.load = x, .wide = wide, .guard_count = count};
  for (int i = 0; i < count; i++) l->guards[i] = guards[i];
  a->count++;
}

static void find_loads(struct ahead *a, tir_expr x, const struct guard *guards, int count);

/* A branch of a choice is computed under its condition. */
static void find_guarded(struct ahead *a, tir_expr x, const struct guard *guards, int count, tir_expr condition,
                         bool holds) {
  struct guard own[MOST_GUARDS];
  const struct tir_expr_node *n = tir_at(a->e->ir, condition);
  if (n->kind == TIR_BROADCAST) condition = n->a, n = tir_at(a->e->ir, condition);
  if (count == MOST_GUARDS || tir_type_lanes(n->type) > 1 || !stands_ahead(a, condition)) return;
  for (int i = 0; i < count; i++) own[i] = guards[i];
  own[count] = (struct guard){condition, holds};
  find_loads(a, x, own, count + 1);
}

static void find_in_choice(struct ahead *a, const tir_expr *parts, const struct guard *guards, int count) {
  find_loads(a, parts[0], guards, count);
  find_guarded(a, parts[1], guards, count, parts[0], true);
  find_guarded(a, parts[2], guards, count, parts[0], false);
}

/* Calls of the device have forms of their own for what they load, pointers lead to it. */
static void find_in_call(struct ahead *a, tir_expr x, const struct guard *guards, int count) {
  const struct tir_expr_node *n = tir_at(a->e->ir, x);
  const tir_expr *args = tir_operands(a->e->ir, n->operands);
  if (n->count == 3 && !strcmp(tir_text(a->e->ir, n->ref), "if_then_else")) {
    find_in_choice(a, args, guards, count);
    return;
  }
  if (tir_device_call_of(a->e->ir, x) != TIR_DEVICE_CALLS || tir_type_code(n->type) == TIR_HANDLE) return;
  for (uint32_t i = 0; i < n->count; i++) find_loads(a, args[i], guards, count);
}

/* Finds what the lanes of an expression load, and under which conditions each lane does. */
static void find_loads(struct ahead *a, tir_expr x, const struct guard *guards, int count) {
  const struct tir_expr_node *n = tir_at(a->e->ir, x);
  if (tir_type_lanes(n->type) == 1 || a->left-- <= 0) return;
  switch (n->kind) {
  case TIR_LOAD: add_load(a, x, guards, count); break;
  case TIR_CAST:
  case TIR_NOT:
  case TIR_AND: /* the other operand may not be computed */
  case TIR_OR: find_loads(a, n->a, guards, count); break;
  case TIR_LET:
    find_loads(a, n->a, guards, count);
    find_loads(a, n->b, guards, count);
    break;
  case TIR_SELECT: find_in_choice(a, &n->a, guards, count); break;
  case TIR_CALL: find_in_call(a, x, guards, count); break;
  default:
    if (n->kind < TIR_ADD || n->kind > TIR_GE) return;
    find_loads(a, n->a, guards, count);
    find_loads(a, n->b, guards, count);
  }
}

static void write_guards(struct emit_c *e, const struct load *l) {
  for (int i = 0; i < l->guard_count; i++) {
    fputs(i ? " && " : "", e->out);
    fputs(l->guards[i].holds ? "(" : "!(", e->out);
    emit_c_value(e, l->guards[i].condition, C_SCALAR);
    fputc(')', e->out);
  }
}

/* A line an access; from here on the loads' lanes are those of its variables. */
static void write_loads(struct ahead *a) {
  struct emit_c *e = a->e;
  int kept = 0;
  for (int i = 0; i < a->count; i++)
    if (!a->loads[i].apart) a->loads[kept++] = a->loads[i];
  a->count = kept;
  for (int i = 0; i < a->count; i++) {
    const struct load *l = &a->loads[i];
    const struct tir_expr_node *n = tir_at(e->ir, l->load);
    tir_expr index = tir_operands(e->ir, n->operands)[0];
    for (int k = 0; k < l->wide.count; k++) {
      emit_c_begin(e);
      fprintf(e->out, "const %s ms_ahead_%d_%d = ", l->wide.type, i, k);
      if (l->guard_count) {
        write_guards(e, l);
        fputs(" ? ", e->out);
      }
      fprintf(e->out, "*(const %s *)", l->wide.type);
      emit_c_run(e, n->ref, index, (struct c_chunk){k * l->wide.lanes, 1, NULL});
      fprintf(e->out, l->guard_count ? " : %s();\n" : ";\n", l->wide.type);
    }
  }
  for (int i = 0; i < a->count; i++) {
    const struct tir_expr_node *n = tir_at(e->ir, a->loads[i].load);
    e->ahead[i].buffer = n->ref, e->ahead[i].index = tir_operands(e->ir, n->operands)[0];
  }
  e->ahead_count = a->count;
}

/* What an expression of so many lanes loads ahead. */
static struct ahead ahead_of(struct emit_c *e, tir_expr value, int lanes) {
  struct ahead a = {.e = e, .lanes = lanes, .left = MOST_NODES};
  assert(!e->ahead_count); /* no statement stands in another */
  if (lanes <= MOST_LANES) find_loads(&a, value, NULL, 0);
  return a;
}

bool emit_cuda_begin_ahead(struct emit_c *e, tir_expr value, int lanes) {
  struct ahead a = ahead_of(e, value, lanes);
  if (!a.count) return false;
  emit_c_line(e, "{");
  e->indent++;
  write_loads(&a);
  return true;
}

void emit_cuda_end_ahead(struct emit_c *e) {
  e->ahead_count = 0;
  e->indent--;
  emit_c_line(e, "}");
}

int emit_cuda_find_ahead(const struct emit_c *e, tir_buffer buffer, tir_expr index) {
  for (int i = 0; i < e->ahead_count; i++)
    if (e->ahead[i].buffer == buffer && e->ahead[i].index == index) return i;
  return -1;
}

void emit_cuda_ahead_lane(struct emit_c *e, int number, struct c_chunk c) {
  struct wide w;
  char name[32];
  tir_buffer buffer = e->ahead[number].buffer;
  tir_type type = tir_buffer_at(e->ir, buffer)->type;
  int lanes = tir_type_lanes(tir_type_of(e->ir, e->ahead[number].index)) * tir_type_lanes(type);
  struct c_type t = emit_c_stored(type, 1);
  bool found = find_wide(t, lanes, &w);
  assert(found && c.width == 1 && !c.lane && c.first < lanes);
  (void)found;
  snprintf(name, sizeof name, "ms_ahead_%d", number);
  write_element(e, &w, name, c.first, t);
}

/* ---- Statements ---- */

/* What is copied needs no conversion. */
static bool is_copied(const struct emit_c *e, tir_expr value, tir_type type) {
  const struct tir_expr_node *n = tir_at(e->ir, value);
  return n->kind == TIR_LOAD && n->count == 1 && tir_type_is_short(type) &&
         tir_type_with_lanes(n->type, 1) == tir_type_with_lanes(type, 1);
}

static void write_lanes(struct emit_c *e, tir_expr value, tir_type type, int lanes) {
  char name[32];
  bool copied = is_copied(e, value, type);
  emit_c_type_name(e, emit_c_stored(type, 1), name);
  for (int l = 0; l < lanes; l++) {
    emit_c_begin(e);
    fprintf(e->out, "const %s ms_lane_%d = ", name, l);
    if (copied)
      emit_c_raw(e, value, (struct c_chunk){l, 1, NULL});
    else
      emit_c_stored_value(e, value, type, (struct c_chunk){l, 1, NULL});
    fputs(";\n", e->out);
  }
}

static void write_result(struct emit_c *e, tir_buffer buffer, tir_expr index, const struct wide *whole, int lanes) {
  for (int k = 0; whole && k < whole->count; k++) {
    emit_c_begin(e);
    fprintf(e->out, "*(%s *)", whole->type);
    emit_c_run(e, buffer, index, (struct c_chunk){k * whole->lanes, 1, NULL});
    fputs(" = ", e->out);
    write_access(e, whole, k);
    fputs(";\n", e->out);
  }
  for (int l = 0; !whole && l < lanes; l++) {
    emit_c_begin(e);
    emit_c_element(e, buffer, index, (struct c_chunk){l, 1, NULL});
    fprintf(e->out, " = ms_lane_%d;\n", l);
  }
}

bool emit_cuda_store_vector(struct emit_c *e, tir_stmt store) {
  const struct tir_stmt_node *s = tir_stmt_at(e->ir, store);
  tir_expr index = tir_operands(e->ir, s->store.indices)[0], on = s->store.predicate;
  tir_type type = tir_buffer_at(e->ir, s->store.buffer)->type;
  int lanes = tir_type_lanes(tir_type_of(e->ir, index)) * tir_type_lanes(type);
  if (!e->parallel || lanes < 2 || lanes > MOST_LANES || !emit_c_is_run(e, s->store.buffer, index)) return false;
  if (on && tir_type_lanes(tir_type_of(e->ir, on)) > 1) return false;
  struct wide whole;
  bool stores =
      !is_own(e, s->store.buffer) && emit_cuda_is_aligned(e, index) && find_wide(emit_c_stored(type, 1), lanes, &whole);
  struct ahead a = ahead_of(e, s->store.value, lanes);
  if (!stores && !a.count) return false;
  if (on) {
    emit_c_begin(e);
    fputs("if (", e->out);
    emit_c_value(e, on, C_SCALAR);
    fputs(" != 0) {\n", e->out);
  } else {
    emit_c_line(e, "{");
  }
  e->indent++;
  write_loads(&a);
  write_lanes(e, s->store.value, type, lanes);
  e->ahead_count = 0;
  write_result(e, s->store.buffer, index, stores ? &whole : NULL, lanes);
  e->indent--;
  emit_c_line(e, "}");
  return true;
}

bool emit_cuda_bind_vector(struct emit_c *e, tir_var v, tir_expr value) {
  tir_type type = e->ir->vars.at[v].type;
  char name[32];
  if (!e->parallel || tir_type_code(type) == TIR_BOOL) return false;
  struct ahead a = ahead_of(e, value, tir_type_lanes(type));
  if (!a.count) return false;
  emit_c_type_name(e, emit_c_type(e, type, 1), name);
  emit_c_line(e, "%s %s[%d] __attribute__((unused));", name, emit_c_declare_var(e, v), tir_type_lanes(type));
  e->arrays[v] = true;
  emit_c_line(e, "{");
  e->indent++;
  write_loads(&a);
  for (int l = 0; l < a.lanes; l++) {
    emit_c_begin(e);
    emit_c_variable(e, v);
    fprintf(e->out, "[%d] = ", l);
    emit_c_value(e, value, (struct c_chunk){l, 1, NULL});
    fputs(";\n", e->out);
  }
  e->ahead_count = 0;
  e->indent--;
  emit_c_line(e, "}");
  return true;
}
