/* Loads and stores in C source, of buffers of one dimension. */
#include "emit_c.h"

#include <string.h>

void emit_c_buffer(struct emit_c *e, tir_buffer b) {
  assert(tir_is_buffer(e->ir, b));
  if (e->buffers[b])
    fputs(e->buffers[b], e->out);
  else
    emit_c_refuse(e, "buffer %s is used outside its scope", tir_text(e->ir, tir_buffer_at(e->ir, b)->name));
}

/* The same for the canonical layout of wgmma: counts elements; no count is negative. */
static const char *panels_function(struct emit_c *e, const struct tir_swizzle *s, int bytes, char name[32]) {
  const char *type = emit_c_index_type(e);
  int log = __builtin_ctz((unsigned)bytes);
  long long row = s->row / bytes, panel = s->panel / bytes;
  snprintf(name, 32, "ms_panels_%lld_%lld_%d", row, (long long)s->rows, bytes);
  if (!emit_c_needs(e, name)) return name;
  fprintf(e->helpers, "MS_HELPER %s %s(u%s i) {\n", type, name, type);
  if (row > panel)
    fprintf(e->helpers, "  i = (i %% %lld / %lld * %lld + i / %lld) * %lld + i %% %lld;\n", row, panel,
            (long long)s->rows, row, panel, panel);
  fprintf(e->helpers, "  return (%s)(i ^ (i >> %d & %d) << %d);\n}\n", type, s->shift - log, s->mask, 4 - log);
  return name;
}

const char *emit_c_swizzle(struct emit_c *e, tir_buffer buffer, char name[32]) {
  struct tir_swizzle s = {0};
  if (!tir_swizzle_of(e->ir, buffer, &s)) return "";
  const char *type = emit_c_index_type(e);
  int bytes = emit_c_stored(tir_buffer_at(e->ir, buffer)->type, 1).bits / 8, log = __builtin_ctz((unsigned)bytes);
  if (s.panel) return panels_function(e, &s, bytes, name);
  snprintf(name, 32, "ms_swizzle_%d_%d_%d", s.shift, s.mask, bytes);
  if (emit_c_needs(e, name))
    fprintf(e->helpers, "MS_HELPER %s %s(%s i) { return i ^ (i >> %d & %d) << %d; }\n", type, name, type, s.shift - log,
            s.mask, 4 - log);
  return name;
}

/* Parentheses around an index into the buffer, and what makes a place in memory of it. */
static void open_place(struct emit_c *e, tir_buffer buffer) {
  char name[32];
  fprintf(e->out, "%s(", emit_c_swizzle(e, buffer, name));
}

static bool is_swizzled(const struct emit_c *e, tir_buffer buffer) {
  struct tir_swizzle s;
  return tir_swizzle_of(e->ir, buffer, &s);
}

/* Buffers of vectors are those of their elements, side by side. */
static int lanes_in(const struct emit_c *e, tir_buffer buffer) {
  return tir_type_lanes(tir_buffer_at(e->ir, buffer)->type);
}

bool emit_c_is_run(const struct emit_c *e, tir_buffer buffer, tir_expr index) {
  const struct tir_expr_node *n = tir_at(e->ir, index);
  bool is_ramp = n->kind == TIR_RAMP && tir_is_const(e->ir, n->b, 1);
  return is_ramp || (lanes_in(e, buffer) > 1 && tir_type_lanes(n->type) == 1);
}

static void first_of(struct emit_c *e, tir_buffer buffer, tir_expr index, struct c_chunk c) {
  int lanes = lanes_in(e, buffer);
  if (lanes > 1) fputc('(', e->out);
  emit_c_index(e, tir_at(e->ir, index)->kind == TIR_RAMP ? tir_at(e->ir, index)->a : index);
  if (lanes > 1) fprintf(e->out, ") * %d", lanes);
  if (c.lane) fprintf(e->out, " + %s", c.lane);
  if (c.first) fprintf(e->out, " + %d", c.first);
}

/* The index of lane `l` of the chunk. Where the index is no ramp, its lanes are in ms_at. */
static void index_of_lane(struct emit_c *e, tir_expr index, struct c_chunk c, int l) {
  const struct tir_expr_node *n = tir_at(e->ir, index);
  struct c_chunk lane = {c.first + l, 1, c.lane};
  if (n->type && tir_type_lanes(n->type) == 1)
    emit_c_index(e, index);
  else if (n->kind == TIR_RAMP)
    emit_c_value(e, index, lane);
  else
    fprintf(e->out, "ms_at[%d]", l);
}

static bool is_gather(const struct emit_c *e, tir_expr index) {
  const struct tir_expr_node *n = tir_at(e->ir, index);
  return tir_type_lanes(n->type) > 1 && n->kind != TIR_RAMP;
}

/* Lanes of the index in ms_at, of the mask in ms_on; then `(type){one a lane}`. */
static void load_lanes(struct emit_c *e, const struct tir_expr_node *n, tir_expr index, struct c_chunk c) {
  assert(n->kind == TIR_LOAD);
  char type[32], name[32];
  struct c_type t = emit_c_stored(n->type, c.width), it = emit_c_type(e, tir_type_of(e->ir, index), c.width);
  emit_c_type_name(e, t, type);
  bool vector_mask = n->a && tir_type_lanes(tir_type_of(e->ir, n->a)) > 1;
  fputs("({ ", e->out);
  if (is_gather(e, index)) {
    fprintf(e->out, "const %s ms_at = ", emit_c_type_name(e, it, name));
    emit_c_value(e, index, c);
    fputs("; ", e->out);
  }
  if (n->a) {
    struct c_type mask = {TIR_INT, 32, vector_mask ? c.width : 1};
    fprintf(e->out, "const %s ms_on = ", emit_c_type_name(e, mask, name));
    emit_c_value(e, n->a, vector_mask ? c : C_SCALAR);
    fputs("; ", e->out);
  }
  fprintf(e->out, "(%s){", type);
  for (int l = 0; l < c.width; l++) {
    if (l) fputs(", ", e->out);
    if (vector_mask) fprintf(e->out, "ms_on[%d] ? ", l);
    if (n->a && !vector_mask) fprintf(e->out, "ms_on ? ");
    emit_c_buffer(e, n->ref);
    fputc('[', e->out);
    if (is_swizzled(e, n->ref)) open_place(e, n->ref);
    index_of_lane(e, index, c, l);
    if (is_swizzled(e, n->ref)) fputc(')', e->out);
    fputs(n->a ? "] : 0" : "]", e->out);
  }
  fputs("}; })", e->out);
}

void emit_c_element(struct emit_c *e, tir_buffer buffer, tir_expr index, struct c_chunk c) {
  emit_c_buffer(e, buffer);
  fputc('[', e->out);
  if (is_swizzled(e, buffer)) open_place(e, buffer);
  if (emit_c_is_run(e, buffer, index))
    first_of(e, buffer, index, c);
  else if (tir_type_lanes(tir_type_of(e->ir, index)) == 1)
    emit_c_index(e, index);
  else
    emit_c_value(e, index, c);
  if (is_swizzled(e, buffer)) fputc(')', e->out);
  fputc(']', e->out);
}

void emit_c_run(struct emit_c *e, tir_buffer buffer, tir_expr index, struct c_chunk c) {
  fputc('(', e->out);
  emit_c_buffer(e, buffer);
  fputs(" + ", e->out);
  if (is_swizzled(e, buffer)) open_place(e, buffer);
  first_of(e, buffer, index, c);
  fputs(is_swizzled(e, buffer) ? "))" : ")", e->out);
}

/* A lane of what the statement has loaded before all else; false: it is none. */
static bool load_ahead(struct emit_c *e, const struct tir_expr_node *n, tir_expr index, struct c_chunk c) {
  for (int i = 0; i < e->ahead_count && !n->a; i++) {
    if (e->ahead[i].buffer != n->ref || e->ahead[i].index != index) continue;
    e->dialect->ahead(e, i, c);
    return true;
  }
  return false;
}

static void load_scalar(struct emit_c *e, const struct tir_expr_node *n, tir_expr index, struct c_chunk c) {
  assert(n->kind == TIR_LOAD);
  bool masked = n->a != TIR_NONE;
  if (load_ahead(e, n, index, c)) return;
  if (masked) {
    fputc('(', e->out);
    emit_c_value(e, n->a, c);
    fputs(" ? ", e->out);
  }
  emit_c_element(e, n->ref, index, c);
  if (masked) fputs(" : 0)", e->out);
}

static void load_raw(struct emit_c *e, const struct tir_expr_node *n, tir_expr index, struct c_chunk c) {
  char type[32], value[32];
  if (c.width == 1) {
    load_scalar(e, n, index, c);
  } else if (emit_c_is_run(e, n->ref, index) && !n->a) {
    struct c_type t = emit_c_stored(n->type, c.width);
    fprintf(e->out, "(%s)*(const %s *)", emit_c_type_name(e, t, value), emit_c_memory_name(e, t, type));
    emit_c_run(e, n->ref, index, c);
  } else {
    load_lanes(e, n, index, c);
  }
}

void emit_c_raw(struct emit_c *e, tir_expr load, struct c_chunk c) {
  const struct tir_expr_node *n = tir_at(e->ir, load);
  assert(n->kind == TIR_LOAD && n->count == 1);
  load_raw(e, n, tir_operands(e->ir, n->operands)[0], c);
}

void emit_c_address(struct emit_c *e, tir_expr load) {
  assert(tir_at(e->ir, load)->kind == TIR_LOAD);
  const struct tir_expr_node *n = tir_at(e->ir, load);
  if (n->count != 1) {
    emit_c_refuse(e, "a load was not flattened");
    return;
  }
  if (is_swizzled(e, n->ref)) emit_c_refuse(e, "a pointer leads into a buffer with swizzled rows");
  fputs("(void *)(", e->out);
  emit_c_buffer(e, n->ref);
  fputs(" + ", e->out);
  if (lanes_in(e, n->ref) > 1)
    first_of(e, n->ref, tir_operands(e->ir, n->operands)[0], C_SCALAR);
  else
    emit_c_index(e, tir_operands(e->ir, n->operands)[0]);
  fputc(')', e->out);
}

/* An access of vectors in memory has a form where they lie side by side, and all of them are touched. */
static bool check_vectors(struct emit_c *e, tir_buffer buffer, tir_expr index, tir_expr mask) {
  tir_type type = tir_buffer_at(e->ir, buffer)->type;
  if (tir_type_lanes(type) == 1) return true;
  if (tir_type_code(type) != TIR_BOOL && !mask && emit_c_is_run(e, buffer, index)) return true;
  emit_c_refuse(e, "buffer %s is of vectors, which are accessed under a mask or apart, or have no form here",
                tir_text(e->ir, tir_buffer_at(e->ir, buffer)->name));
  return false;
}

/* A bool comes as the byte that it is. */
void emit_c_load(struct emit_c *e, tir_expr load, struct c_chunk c) {
  assert(tir_at(e->ir, load)->kind == TIR_LOAD);
  const struct tir_expr_node *n = tir_at(e->ir, load);
  if (n->count != 1) {
    emit_c_refuse(e, "a load was not flattened");
    return;
  }
  tir_expr index = tir_operands(e->ir, n->operands)[0];
  if (!check_vectors(e, n->ref, index, n->a)) return;
  if (tir_at(e->ir, index)->kind == TIR_BROADCAST && !n->a) {
    tir_expr one = tir_at(e->ir, index)->a;
    struct tir_expr_node scalar = *n;
    scalar.type = tir_type_with_lanes(n->type, 1);
    struct c_type t =
        tir_type_is_short(n->type) ? (struct c_type){TIR_FLOAT, 32, c.width} : emit_c_stored(n->type, c.width);
    char helper[64];
    fprintf(e->out, "%s(", emit_c_helper(e, "splat", t, NULL, helper));
    if (tir_type_is_short(n->type)) fprintf(e->out, "%s(", emit_c_short_helper(e, "of", n->type, 1, helper));
    load_raw(e, &scalar, one, C_SCALAR);
    fputs(tir_type_is_short(n->type) ? "))" : ")", e->out);
    return;
  }
  if (!tir_type_is_short(n->type)) {
    load_raw(e, n, index, c);
    return;
  }
  char helper[64], type[32];
  struct c_type bits = {TIR_UINT, 32, c.width};
  fprintf(e->out, "%s(", emit_c_short_helper(e, "of", n->type, c.width, helper));
  if (c.width > 1) fputs("__builtin_convertvector(", e->out);
  load_raw(e, n, index, c);
  if (c.width > 1) fprintf(e->out, ", %s)", emit_c_type_name(e, bits, type));
  fputc(')', e->out);
}

/* ---- Stores ---- */

/* Writes one float of 8 bits that is loaded as it stands in memory; false: the value is another. */
static bool write_copied_byte(struct emit_c *e, tir_expr value, tir_type type, struct c_chunk c) {
  const struct tir_expr_node *n = tir_at(e->ir, value);
  bool loads = tir_type_is_byte(type) && n->kind == TIR_LOAD && n->type == type && n->count == 1 && c.width == 1;
  if (!loads || tir_type_lanes(type) != 1 || n->a) return false;
  load_raw(e, n, tir_operands(e->ir, n->operands)[0], C_SCALAR);
  return true;
}

/* The value as it stands in memory. */
void emit_c_stored_value(struct emit_c *e, tir_expr value, tir_type type, struct c_chunk c) {
  char helper[64], name[32];
  struct c_type stored = emit_c_stored(type, c.width);
  if (write_copied_byte(e, value, type, c)) return;
  if (tir_type_is_short(type)) {
    bool copies = tir_type_is_byte(type) && tir_at(e->ir, value)->kind != TIR_CAST;
    emit_c_short_helper(e, copies ? "copy" : "to", type, c.width, helper);
    emit_c_type_name(e, stored, name);
    if (c.width > 1)
      fprintf(e->out, "__builtin_convertvector(%s(", helper);
    else
      fprintf(e->out, "(%s)%s(", name, helper);
    emit_c_unrounded(e, value, c);
    fputc(')', e->out);
    if (c.width > 1) fprintf(e->out, ", %s)", name);
  } else if (tir_type_code(type) == TIR_BOOL && c.width > 1) {
    fprintf(e->out, "(%s)-", emit_c_type_name(e, stored, name));
    emit_c_mask(e, value, c, 8);
  } else {
    emit_c_value(e, value, c);
  }
}

static void store_lanes(struct emit_c *e, const struct tir_stmt_node *s, tir_expr index, const char *value,
                        struct c_chunk c) {
  char name[32];
  tir_expr mask = s->store.predicate;
  bool vector_mask = mask && tir_type_lanes(tir_type_of(e->ir, mask)) > 1;
  if (mask) {
    struct c_type t = {TIR_INT, 32, vector_mask ? c.width : 1};
    emit_c_type_name(e, t, name);
    emit_c_begin(e);
    fprintf(e->out, "const %s ms_on = ", name);
    emit_c_value(e, mask, vector_mask ? c : C_SCALAR);
    fputs(";\n", e->out);
  }
  if (is_gather(e, index)) {
    emit_c_type_name(e, emit_c_type(e, tir_type_of(e->ir, index), c.width), name);
    emit_c_begin(e);
    fprintf(e->out, "const %s ms_at = ", name);
    emit_c_value(e, index, c);
    fputs(";\n", e->out);
  }
  for (int l = 0; l < c.width; l++) {
    emit_c_begin(e);
    if (mask) fprintf(e->out, vector_mask ? "if (ms_on[%d]) " : "if (ms_on) ", l);
    emit_c_buffer(e, s->store.buffer);
    fputc('[', e->out);
    if (is_swizzled(e, s->store.buffer)) open_place(e, s->store.buffer);
    index_of_lane(e, index, c, l);
    fprintf(e->out, "%s] = %s[%d];\n", is_swizzled(e, s->store.buffer) ? ")" : "", value, l);
  }
}

/* The place of one element, or of a run of them. */
static void place(struct emit_c *e, const struct tir_stmt_node *s, tir_expr index, struct c_chunk c) {
  char name[32];
  if (c.width == 1) {
    emit_c_element(e, s->store.buffer, index, c);
    return;
  }
  tir_type type = tir_buffer_at(e->ir, s->store.buffer)->type;
  fprintf(e->out, "*(%s *)", emit_c_memory_name(e, emit_c_stored(type, c.width), name));
  emit_c_run(e, s->store.buffer, index, c);
}

/* Bytes of the chunk where it may be stored past the caches; 0: it may not. */
static int nontemporal_bytes(const struct emit_c *e, tir_buffer buffer, struct c_chunk c) {
  int bytes = emit_c_stored(tir_buffer_at(e->ir, buffer)->type, 1).bits / 8 * c.width;
  return (bytes == 16 || bytes == 32 || bytes == 64) && bytes <= e->aligned && c.first % c.width == 0 ? bytes : 0;
}

/* Writes the name of a function that stores so many bytes past the caches: by intrinsics of x86, for gcc and clang; by
 * clang's for other machines; else as others are. */
static void stream_name(struct emit_c *e, int bytes) {
  char name[32];
  snprintf(name, sizeof name, "ms_stream_%d", bytes);
  e->streams = true;
  fputs(name, e->out);
  if (emit_c_needs(e, "ms_immintrin")) fputs("#ifdef __x86_64__\n#include <immintrin.h>\n#endif\n", e->helpers);
  if (!emit_c_needs(e, name)) return;
  const char *feature = bytes == 64 ? "__AVX512F__" : bytes == 32 ? "__AVX__" : "__SSE2__";
  const char *word = bytes == 64 ? "_mm512_stream_si512" : bytes == 32 ? "_mm256_stream_si256" : "_mm_stream_si128";
  fprintf(e->helpers,
          "typedef long long ms_bytes_%d __attribute__((vector_size(%d), may_alias));\n"
          "MS_HELPER void %s(void *to, ms_bytes_%d value) {\n#if defined(__x86_64__) && defined(%s)\n"
          "  %s((__m%di *)to, (__m%di)value);\n#elif defined(__clang__)\n"
          "  __builtin_nontemporal_store(value, (ms_bytes_%d *)to);\n#else\n  *(ms_bytes_%d *)to = value;\n#endif\n}\n",
          bytes, bytes, name, bytes, feature, word, 8 * bytes, 8 * bytes, bytes, bytes);
}

void emit_c_fence(struct emit_c *e) {
  if (e->streams) fputs("#ifdef __x86_64__\n  _mm_sfence();\n#endif\n", e->out);
}

/* A chunk past the caches. */
static void store_nontemporal(struct emit_c *e, const struct tir_stmt_node *s, tir_expr index, struct c_chunk c,
                              const char *value, int bytes) {
  emit_c_begin(e);
  stream_name(e, bytes);
  fputc('(', e->out);
  emit_c_run(e, s->store.buffer, index, c);
  fprintf(e->out, ", (ms_bytes_%d)(", bytes);
  if (value)
    fputs(value, e->out);
  else
    emit_c_stored_value(e, s->store.value, tir_buffer_at(e->ir, s->store.buffer)->type, c);
  fputs("));\n", e->out);
}

/* value: the name of the chunk's value, or NULL: it is computed here. */
static void store_chunk(struct emit_c *e, const struct tir_stmt_node *s, tir_expr index, struct c_chunk c,
                        const char *value) {
  tir_type type = tir_buffer_at(e->ir, s->store.buffer)->type;
  bool plain = c.width == 1 || (emit_c_is_run(e, s->store.buffer, index) && !s->store.predicate);
  char name[32];
  int bytes = plain && !s->store.predicate ? nontemporal_bytes(e, s->store.buffer, c) : 0;
  if (bytes) {
    store_nontemporal(e, s, index, c, value, bytes);
    return;
  }
  if (plain) {
    emit_c_begin(e);
    if (s->store.predicate) {
      fputs("if (", e->out);
      emit_c_value(e, s->store.predicate, c);
      fputs(" != 0) ", e->out);
    }
    place(e, s, index, c);
    fputs(" = ", e->out);
    if (value)
      fputs(value, e->out);
    else
      emit_c_stored_value(e, s->store.value, type, c);
    fputs(";\n", e->out);
    return;
  }
  emit_c_line(e, "{");
  e->indent++;
  if (!value) {
    emit_c_type_name(e, emit_c_stored(type, c.width), name);
    emit_c_begin(e);
    fprintf(e->out, "const %s ms_value = ", name);
    emit_c_stored_value(e, s->store.value, type, c);
    fputs(";\n", e->out);
  }
  store_lanes(e, s, index, value ? value : "ms_value", c);
  e->indent--;
  emit_c_line(e, "}");
}

/* A statement's lanes are all computed before the first is stored. That needs no care where the value reads of the
 * buffer only the elements that it replaces, each its own. */
struct own_element {
  tir_buffer buffer;
  tir_expr index;
};

static bool may_read_others(const struct tir *ir, const void *context, tir_expr x) {
  const struct own_element *own = context;
  const struct tir_expr_node *n = tir_at(ir, x);
  if (n->kind != TIR_LOAD) return n->kind == TIR_DATA;
  return tir_is_view(ir, n->ref) || tir_is_view(ir, own->buffer) ||
         (n->ref == own->buffer && tir_operands(ir, n->operands)[0] != own->index);
}

static bool is_independent(const struct emit_c *e, const struct tir_stmt_node *s, tir_expr index) {
  const struct own_element own = {s->store.buffer, index};
  const tir_expr all[] = {s->store.value, s->store.predicate, index};
  for (int i = 0; i < 3; i++)
    if (tir_any_node(e->ir, all[i], TIR_HAS_LOAD | TIR_HAS_POINTER, may_read_others, &own)) return false;
  return true;
}

enum { MOST_CHUNKS = 40, MOST_UNROLLED = 16 };

/* Chunks of full width, then smaller ones. */
static int cut(int from, int lanes, int width, struct c_chunk *out) {
  int count = 0;
  for (; from < lanes; from += out[count++].width) {
    while (width > lanes - from) width /= 2;
    out[count] = (struct c_chunk){from, width, NULL};
  }
  return count;
}

static void store_at_once(struct emit_c *e, const struct tir_stmt_node *s, tir_expr index, const struct c_chunk *chunks,
                          int count) {
  tir_type type = tir_buffer_at(e->ir, s->store.buffer)->type;
  char name[32], value[32];
  emit_c_line(e, "{");
  e->indent++;
  for (int i = 0; i < count; i++) {
    emit_c_type_name(e, emit_c_stored(type, chunks[i].width), name);
    emit_c_begin(e);
    fprintf(e->out, "const %s ms_value_%d = ", name, i);
    emit_c_stored_value(e, s->store.value, type, chunks[i]);
    fputs(";\n", e->out);
  }
  for (int i = 0; i < count; i++) {
    snprintf(value, sizeof value, "ms_value_%d", i);
    store_chunk(e, s, index, chunks[i], value);
  }
  e->indent--;
  emit_c_line(e, "}");
}

/* Lanes of a chunk: as many as a register holds where each has so many bits. */
static int width_for(const struct emit_c *e, int bits, int lanes) {
  int width = 1;
  while (2 * width <= lanes && 2 * width * bits <= e->target->vector_bits) width *= 2;
  return width;
}

static int width_of(struct emit_c *e, const struct tir_stmt_node *s, tir_expr index, int lanes) {
  tir_type type = tir_buffer_at(e->ir, s->store.buffer)->type;
  int bits = emit_c_stored(type, 1).bits, wide = emit_c_widest(e, s->store.value);
  if (wide > bits) bits = wide;
  if (s->store.predicate && (wide = emit_c_widest(e, s->store.predicate)) > bits) bits = wide;
  if (is_gather(e, index) && (wide = emit_c_widest(e, index)) > bits) bits = wide;
  return width_for(e, bits, lanes);
}

static void store_vector(struct emit_c *e, const struct tir_stmt_node *s, tir_expr index, int lanes) {
  assert(lanes > 1);
  struct c_chunk chunks[MOST_CHUNKS];
  int width = width_of(e, s, index, lanes), whole = lanes / width, first = 0, count;
  bool independent = is_independent(e, s, index);
  if (whole > MOST_UNROLLED && !independent) {
    emit_c_refuse(e, "a vector of %d lanes is stored to a buffer that it is read from: too wide for C", lanes);
    return;
  }
  if (whole > MOST_UNROLLED) {
    struct c_chunk each = {0, width, "ms_lane"};
    emit_c_line(e, "for (%s ms_lane = 0; ms_lane < %d; ms_lane += %d) {", emit_c_index_type(e), whole * width, width);
    e->indent++;
    store_chunk(e, s, index, each, NULL);
    e->indent--;
    emit_c_line(e, "}");
    first = whole * width;
  }
  count = cut(first, lanes, width, chunks);
  if (count > 1 && !independent) {
    store_at_once(e, s, index, chunks, count);
    return;
  }
  for (int i = 0; i < count; i++) store_chunk(e, s, index, chunks[i], NULL);
}

void emit_c_bound_lanes(struct emit_c *e, tir_var v, struct c_chunk c) {
  assert(e->arrays[v]);
  const char *more = c.lane ? " + " : "", *lane = c.lane ? c.lane : "";
  char type[32], value[32];
  if (c.width == 1) {
    emit_c_variable(e, v);
    fprintf(e->out, "[%d%s%s]", c.first, more, lane);
    return;
  }
  struct c_type t = emit_c_type(e, e->ir->vars.at[v].type, c.width);
  fprintf(e->out, "(%s)*(const %s *)(", emit_c_type_name(e, t, value), emit_c_memory_name(e, t, type));
  emit_c_variable(e, v);
  fprintf(e->out, " + %d%s%s)", c.first, more, lane);
}

void emit_c_bind_vector(struct emit_c *e, tir_var v, tir_expr value) {
  tir_type type = e->ir->vars.at[v].type;
  int lanes = tir_type_lanes(type), wide = emit_c_widest(e, value);
  struct c_type t = emit_c_type(e, type, 1);
  struct c_chunk chunks[MOST_CHUNKS];
  char name[32];
  if (tir_type_code(type) == TIR_BOOL) {
    emit_c_refuse(e, "a vector of truth values that is bound has no form in C");
    return;
  }
  if (e->dialect->bind && e->dialect->bind(e, v, value)) return;
  int width = width_for(e, wide > t.bits ? wide : t.bits, lanes);
  if (lanes / width > MOST_UNROLLED) {
    emit_c_refuse(e, "a vector of %d lanes that is bound to a name is too wide for C", lanes);
    return;
  }
  emit_c_type_name(e, t, name);
  emit_c_line(e, "%s %s[%d] __attribute__((unused));", name, emit_c_declare_var(e, v), lanes);
  e->arrays[v] = true;
  for (int i = 0, count = cut(0, lanes, width, chunks); i < count; i++) {
    struct c_type part = emit_c_type(e, type, chunks[i].width);
    emit_c_begin(e);
    fprintf(e->out, "*(%s *)(", chunks[i].width > 1 ? emit_c_memory_name(e, part, name) : emit_c_type_name(e, t, name));
    emit_c_variable(e, v);
    fprintf(e->out, " + %d) = ", chunks[i].first);
    emit_c_value(e, value, chunks[i]);
    fputs(";\n", e->out);
  }
}

void emit_c_store(struct emit_c *e, tir_stmt store) {
  assert(tir_is(e->ir, store, TIR_STORE));
  const struct tir_stmt_node *s = tir_stmt_at(e->ir, store);
  const struct tir_buffer_node *b = tir_buffer_at(e->ir, s->store.buffer);
  if (b->rank != 1) {
    emit_c_refuse(e, "a store was not flattened");
    return;
  }
  tir_expr index = tir_operands(e->ir, s->store.indices)[0];
  if (!check_vectors(e, s->store.buffer, index, s->store.predicate)) return;
  int lanes = tir_type_lanes(tir_type_of(e->ir, index)) * tir_type_lanes(b->type);
  if (e->dialect->copy && e->dialect->copy(e, store)) return;
  if (lanes == 1)
    store_chunk(e, s, index, C_SCALAR, NULL);
  else
    store_vector(e, s, index, lanes);
}
