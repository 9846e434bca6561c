/* Executes the instructions of the reference interpreter. */
#include "interp.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { STOP_CHECK = 1 << 14 }; /* steps between looks at the stop flag */

/* ---- What is refused, out of the way of the loop ---- */

static const char *buffer_name(const struct machine *m, tir_buffer b) { return tir_buffer_name(m->ir, b); }

/* The index operands of an access: of any rank in a list, or beside one another. Where there are none there may be no
 * list. */
static const operand *access_indices(const struct machine *m, const struct instruction *in) {
  bool listed =
      in->op == OP_LOAD || in->op == OP_STORE || in->op == OP_COPIED || in->op == OP_ADDRESS || in->op == OP_BEGIN_COPY;
  return listed && in->rank ? m->program->lists.at + in->b : &in->b;
}

static void describe_access(const struct machine *m, const struct thread *t, const struct instruction *in, char *out,
                            size_t size) {
  const operand *indices = access_indices(m, in);
  size_t length = (size_t)snprintf(out, size, "%s[", buffer_name(m, m->program->slots.at[in->a]));
  for (uint32_t d = 0; d < in->rank && length < size; d++)
    length +=
        (size_t)snprintf(out + length, size - length, "%s%lld", d ? ", " : "", (long long)interp_get(t, indices[d]).i);
  if (length < size) snprintf(out + length, size - length, "]");
}

static bool fail_bounds(struct machine *m, struct thread *t, const struct instruction *in) {
  char text[512], shape[256];
  const struct view *v = t->views[in->a];
  size_t length = 0;
  shape[0] = 0;
  for (uint32_t d = 0; d < v->rank && length < sizeof shape; d++)
    length +=
        (size_t)snprintf(shape + length, sizeof shape - length, "%s%lld", d ? ", " : "", (long long)v->dim[d].extent);
  describe_access(m, t, in, text, sizeof text);
  return interp_fail(m, t, MS_RUN_OUT_OF_BOUNDS, "%s is out of bounds: the shape is (%s)", text, shape);
}

static bool fail_outside(struct machine *m, struct thread *t, const struct instruction *in) {
  char text[512];
  describe_access(m, t, in, text, sizeof text);
  return interp_fail(m, t, MS_RUN_OUT_OF_BOUNDS, "%s lies outside of the memory that the buffer views", text);
}

static bool unwritten(struct machine *m, struct thread *t, const struct instruction *in, int64_t element) {
  const struct view *v = t->views[in->a];
  if (v->object->tolerant) return v->object->read_first = true;
  if (v->shadow[element * v->size] == COMING) {
    char coming[512];
    describe_access(m, t, in, coming, sizeof coming);
    return interp_fail(m, t, MS_RUN_RACE, "%s is read before the copy that writes it has arrived", coming);
  }
  if (in->copies) {
    uint8_t shadow = v->shadow[element * v->size];
    bool lent = in->copies == COPIES_ELEMENT && (v->object->owned ? shadow == LENT : shadow != SPOILED);
    INTERP_PUSH(m->missing, (struct missing){in, lent ? LENT : 0});
    return true;
  }
  char text[512];
  describe_access(m, t, in, text, sizeof text);
  return interp_fail(m, t, MS_RUN_UNWRITTEN, "%s is read before it is written", text);
}

static bool fail_domain(struct machine *m, struct thread *t, const struct instruction *in) {
  char name[128];
  tir_name_render(m->ir, m->ir->vars.at[in->dst].name, name, sizeof name);
  return interp_fail(m, t, MS_RUN_DOMAIN, "block variable %s is bound to %lld; its domain is [%lld, %lld)", name,
                     (long long)interp_get(t, in->a).i, (long long)interp_get(t, in->b).i,
                     (long long)(interp_get(t, in->b).i + interp_get(t, in->c).i));
}

static bool fail_agreement(struct machine *m, struct thread *t, const struct instruction *in) {
  static const char *what[] = {"a stride", "an extent", "the offset", "a thread's extent"};
  long long stated = interp_get(t, in->a).i, found = interp_get(t, in->b).i;
  if (in->c == AGREE_THREADS)
    return interp_fail(m, t, MS_RUN_NEEDS_THREADS, "loops bound to one thread have extents %lld and %lld", stated,
                       found);
  return interp_fail(m, t, MS_RUN_MATCH, "%s is stated as %lld and is %lld", what[in->c], stated, found);
}

static bool fail_assertion(struct machine *m, struct thread *t, const struct instruction *in) {
  const struct tir_expr_node *message = tir_at(m->ir, (tir_expr)in->b);
  bool text = in->b && message->kind == TIR_STRING_IMM;
  return interp_fail(m, t, MS_RUN_ASSERTION, "%s",
                     text ? tir_text(m->ir, message->ref) : "an assumption does not hold");
}

static bool fail_steps(struct machine *m, struct thread *t) {
  if (m->options && m->options->stop && *m->options->stop)
    return interp_fail(m, t, MS_RUN_STOPPED, "the run was stopped");
  if (m->steps < m->step_limit) return true;
  return interp_fail(m, t, MS_RUN_STEPS, "%lld steps were made", (long long)m->steps);
}

/* ---- Memory ---- */

/* The element that an access of any rank names, from the view's first; false: out of bounds. */
static bool locate(const struct machine *m, const struct thread *t, const struct instruction *in, int64_t *out) {
  const struct view *v = t->views[in->a];
  const operand *indices = access_indices(m, in);
  int64_t at = 0;
  assert(in->rank == v->rank);
  for (uint32_t d = 0; d < in->rank; d++) {
    int64_t index = interp_get(t, indices[d]).i;
    if ((uint64_t)index >= (uint64_t)v->dim[d].extent) return false;
    at += index * v->dim[d].stride;
  }
  *out = at;
  return true;
}

static bool is_inside(const struct view *v, int64_t element) {
  int64_t at = v->offset + element;
  return at >= 0 && (uint64_t)at < v->object->bytes / v->size;
}

/* An element's shadow, whose bytes are all that of v->written, which has it in each place. Sizes are constants: the C
 * library's functions, which sanitizers watch, are slower than what they do here. */
static bool is_written(const struct view *v, int64_t element) {
  const uint8_t *shadow = v->shadow + element * v->size;
  assert(v->size <= sizeof v->written);
  switch (v->size) {
  case 1: return *shadow == (uint8_t)v->written;
  case 2: return !memcmp(shadow, &v->written, 2);
  case 4: return !memcmp(shadow, &v->written, 4);
  default: return !memcmp(shadow, &v->written, 8);
  }
}
static void set_written(const struct view *v, int64_t element) {
  uint8_t *shadow = v->shadow + element * v->size;
  switch (v->size) {
  case 1: *shadow = (uint8_t)v->written; break;
  case 2: memcpy(shadow, &v->written, 2); break;
  case 4: memcpy(shadow, &v->written, 4); break;
  default: memcpy(shadow, &v->written, 8);
  }
}

static int64_t touched(const struct view *v, int64_t element) {
  return (v->offset + element) * v->size / v->object->size;
}

static bool load_slow(struct machine *m, struct thread *t, const struct instruction *in, int64_t element,
                      union value *out) {
  const struct view *v = t->views[in->a];
  if (!v->whole && !is_inside(v, element)) return fail_outside(m, t, in);
  if (v->object->touches && !interp_touch_read(m, t, v->object, touched(v, element), m->program->slots.at[in->a]))
    return false;
  if (!is_written(v, element) && !unwritten(m, t, in, element)) return false;
  *out = interp_fetch((enum format)v->format, v->data + element * v->size);
  return true;
}

static bool store_slow(struct machine *m, struct thread *t, const struct instruction *in, int64_t element,
                       union value value) {
  const struct view *v = t->views[in->a];
  unsigned char before[8];
  if (!v->whole && !is_inside(v, element)) return fail_outside(m, t, in);
  uint8_t *at = v->data + element * v->size;
  if (!v->object->touches) {
    interp_put((enum format)v->format, at, value);
    set_written(v, element);
    return true;
  }
  bool was_written = is_written(v, element) || v->shadow[element * v->size] == COMING;
  memcpy(before, at, v->size);
  interp_put((enum format)v->format, at, value);
  set_written(v, element);
  bool same = was_written && !memcmp(before, at, v->size);
  return interp_touch_write(m, t, v->object, touched(v, element), same, m->program->slots.at[in->a]);
}

/* After a store of what was computed by the instructions from DST to D: if their loads found unwritten elements, the
 * target is unwritten now. */
static void copied(struct machine *m, struct thread *t, const struct instruction *in) {
  struct missing copy = {0};
  uint32_t kept = 0;
  for (uint32_t i = 0; i < m->missing.count; i++) {
    int64_t by = m->missing.at[i].load - m->program->code.at;
    if (by >= in->dst && by <= in->d)
      copy = m->missing.at[i];
    else
      m->missing.at[kept++] = m->missing.at[i];
  }
  m->missing.count = kept;
  if (!copy.load) return;
  const struct view *v = t->views[in->a];
  struct object *o = v->object;
  int64_t element;
  if (!interp_get(t, in->c).i || !locate(m, t, in, &element)) return;
  if (!o->owned && copy.shadow != LENT) {
    copy.shadow = SPOILED;
    o->spoiled_at = (uint32_t)(in - m->program->code.at) + 1;
    o->spoiled = m->program->slots.at[in->a];
  }
  memset(v->shadow + element * v->size, copy.shadow, v->size);
  o->lends |= copy.shadow == LENT;
}

/* ---- Integer division ---- */

static int64_t divide(enum op op, int64_t a, int64_t b) {
  if (op == OP_DIV_UINT) return (int64_t)((uint64_t)a / (uint64_t)b);
  if (op == OP_MOD_UINT) return (int64_t)((uint64_t)a % (uint64_t)b);
  bool quotient = op == OP_DIV_INT || op == OP_FLOORDIV_INT;
  if (b == -1) return quotient ? (int64_t)(0 - (uint64_t)a) : 0;
  int64_t q = a / b, r = a % b;
  if (op == OP_DIV_INT) return q;
  if (op == OP_MOD_INT) return r;
  bool down = r != 0 && (r < 0) != (b < 0);
  return quotient ? q - down : down ? r + b : r;
}

static int64_t shift(enum op op, tir_type t, int64_t a, int64_t by) {
  int bits = tir_type_bits(t);
  bool is_signed = tir_type_code(t) == TIR_INT;
  if (op == OP_SHIFT_LEFT) return by < 0 || by >= bits ? 0 : interp_wrap(t, (int64_t)((uint64_t)a << by));
  if (by < 0 || by >= bits) return is_signed && a < 0 ? -1 : 0;
  return is_signed ? a >> by : (int64_t)((uint64_t)a >> by);
}

static int64_t leading_zeros(tir_type t, int64_t a) {
  int bits = tir_type_bits(t);
  uint64_t low = (uint64_t)a & (UINT64_MAX >> (64 - bits));
  return low ? __builtin_clzll(low) - (64 - bits) : bits;
}

static int64_t ones(tir_type t, int64_t a) {
  return __builtin_popcountll((uint64_t)a & (UINT64_MAX >> (64 - tir_type_bits(t))));
}

/* ---- The words that instructions are written in ----
 *
 * Of interp_execute: A, B, C and DST are the registers of the instruction `in`, r all registers, v the view that an
 * access goes to. A failure leaves the thread at the instruction; each step takes from the patience until the limits
 * are looked at again. */

#define A    r[in->a]
#define B    r[in->b]
#define C    r[in->c]
#define DST  r[in->dst]
#define TYPE ((tir_type)in->d)
#define NEXT                                                                                                           \
  in++;                                                                                                                \
  break
#define FAIL(call)                                                                                                     \
  do {                                                                                                                 \
    t->pc = (uint32_t)(in - code);                                                                                     \
    call;                                                                                                              \
    goto failed;                                                                                                       \
  } while (0)
#define TRY(call)                                                                                                      \
  do {                                                                                                                 \
    t->pc = (uint32_t)(in - code);                                                                                     \
    if (!(call)) goto failed;                                                                                          \
  } while (0)
#define STEP                                                                                                           \
  if (--patience < 0) {                                                                                                \
    m->steps += granted + 1;                                                                                           \
    TRY(fail_steps(m, t));                                                                                             \
    patience = granted = m->step_limit - m->steps < STOP_CHECK ? m->step_limit - m->steps : STOP_CHECK;                \
  }
#define ARITHMETIC(name, operator)                                                                                     \
  case OP_##name##_I32: DST.i = (int32_t)((uint32_t)A.i operator(uint32_t) B.i); NEXT;                                 \
  case OP_##name##_I64: DST.i = (int64_t)((uint64_t)A.i operator(uint64_t) B.i); NEXT;                                 \
  case OP_##name##_INT: DST.i = interp_wrap(TYPE, (int64_t)((uint64_t)A.i operator(uint64_t) B.i)); NEXT;              \
  case OP_##name##_F32: DST.f = (float)(A.f operator B.f); NEXT;                                                       \
  case OP_##name##_F64: DST.f = A.f operator B.f; NEXT;                                                                \
  case OP_##name##_FLOAT:                                                                                              \
    DST.f = interp_round_to(TYPE, A.f operator B.f);                                                                   \
    NEXT;
#define BOUND(d, index)                                                                                                \
  int64_t i##d = r[index].i;                                                                                           \
  if ((uint64_t)i##d >= (uint64_t)v->dim[d].extent) FAIL(fail_bounds(m, t, in))
#define BOUNDS1  BOUND(0, in->b);
#define BOUNDS2  BOUNDS1 BOUND(1, in->c);
#define BOUNDS3  BOUNDS2 BOUND(2, in->d);
#define ELEMENT1 i0 * v->dim[0].stride
#define ELEMENT2 ELEMENT1 + i1 * v->dim[1].stride
#define ELEMENT3 ELEMENT2 + i2 * v->dim[2].stride
#define ACCESSES(n)                                                                                                    \
  case OP_LOAD##n: {                                                                                                   \
    const struct view *v = t->views[in->a];                                                                            \
    BOUNDS##n TRY(load_slow(m, t, in, ELEMENT##n, &DST));                                                              \
    NEXT;                                                                                                              \
  }                                                                                                                    \
  case OP_STORE##n: {                                                                                                  \
    const struct view *v = t->views[in->a];                                                                            \
    STEP BOUNDS##n TRY(store_slow(m, t, in, ELEMENT##n, DST));                                                         \
    NEXT;                                                                                                              \
  }                                                                                                                    \
  case OP_LOAD##n##_F32: {                                                                                             \
    const struct view *v = t->views[in->a];                                                                            \
    BOUNDS##n int64_t element = ELEMENT##n;                                                                            \
    uint32_t shadow;                                                                                                   \
    float value;                                                                                                       \
    if (!v->plain) {                                                                                                   \
      TRY(load_slow(m, t, in, element, &DST));                                                                         \
      NEXT;                                                                                                            \
    }                                                                                                                  \
    memcpy(&shadow, v->shadow + element * 4, 4);                                                                       \
    if (shadow != (uint32_t)v->written) TRY(unwritten(m, t, in, element));                                             \
    memcpy(&value, v->data + element * 4, 4);                                                                          \
    DST.f = value;                                                                                                     \
    NEXT;                                                                                                              \
  }                                                                                                                    \
  case OP_STORE##n##_F32: {                                                                                            \
    const struct view *v = t->views[in->a];                                                                            \
    STEP BOUNDS##n int64_t element = ELEMENT##n;                                                                       \
    uint32_t shadow = (uint32_t)v->written;                                                                            \
    float value = (float)DST.f;                                                                                        \
    if (!v->plain) {                                                                                                   \
      TRY(store_slow(m, t, in, element, DST));                                                                         \
      NEXT;                                                                                                            \
    }                                                                                                                  \
    memcpy(v->shadow + element * 4, &shadow, 4);                                                                       \
    memcpy(v->data + element * 4, &value, 4);                                                                          \
    NEXT;                                                                                                              \
  }

/* ---- The loop ---- */

/* The compiler gives every instruction registers that exist and slots whose views stand: nothing of it is checked here.
 */
enum thread_status interp_execute(struct machine *m, struct thread *t) {
  const struct instruction *code = m->program->code.at;
  const struct instruction *in = code + t->pc;
  union value *const r = t->regs;
  int64_t patience = m->step_limit - m->steps < STOP_CHECK ? m->step_limit - m->steps : STOP_CHECK;
  int64_t granted = patience;

  for (;;) {
    switch ((enum op)in->op) {
    case OP_HALT:
    case OP_RETURN: t->pc = (uint32_t)(in - code); goto done;
    case OP_JUMP: in = code + in->b; break;
    case OP_JUMP_IF: in = A.i ? code + in->b : in + 1; break;
    case OP_JUMP_IF_NOT: in = A.i ? in + 1 : code + in->b; break;
    case OP_JUMP_NOT_EQUAL: in = A.i != C.i ? code + in->b : in + 1; break;
    case OP_LOOP:
      DST.i = A.i;
      r[in->d].i = (int64_t)((uint64_t)A.i + (uint64_t)C.i);
      in = C.i > 0 ? in + 1 : code + in->b;
      break;
    case OP_NEXT: STEP in = ++DST.i < A.i ? code + in->b : in + 1; break;
    case OP_STEP: STEP in = code + in->b; break;
    case OP_MOVE:
      DST = A;
      NEXT;

      ARITHMETIC(ADD, +)
      ARITHMETIC(SUB, -)
      ARITHMETIC(MUL, *)
    case OP_DIV_F32: DST.f = (float)(A.f / B.f); NEXT;
    case OP_DIV_FLOAT: DST.f = interp_round_to(TYPE, A.f / B.f); NEXT;
    case OP_MOD_FLOAT: DST.f = interp_round_to(TYPE, fmod(A.f, B.f)); NEXT;
    case OP_DIV_INT:
    case OP_MOD_INT:
    case OP_FLOORDIV_INT:
    case OP_FLOORMOD_INT:
    case OP_DIV_UINT:
    case OP_MOD_UINT:
      if (B.i == 0) FAIL(interp_fail(m, t, MS_RUN_DIVISION_BY_ZERO, "%lld is divided by zero", (long long)A.i));
      DST.i = interp_wrap(TYPE, divide((enum op)in->op, A.i, B.i));
      NEXT;
    case OP_MIN_INT: DST.i = A.i < B.i ? A.i : B.i; NEXT;
    case OP_MAX_INT: DST.i = A.i > B.i ? A.i : B.i; NEXT;
    case OP_MIN_UINT: DST.i = (uint64_t)A.i < (uint64_t)B.i ? A.i : B.i; NEXT;
    case OP_MAX_UINT: DST.i = (uint64_t)A.i > (uint64_t)B.i ? A.i : B.i; NEXT;
    case OP_MIN_FLOAT: DST.f = interp_least(A.f, B.f); NEXT;
    case OP_MAX_FLOAT: DST.f = interp_most(A.f, B.f); NEXT;
    case OP_EQ_INT: DST.i = A.i == B.i; NEXT;
    case OP_NE_INT: DST.i = A.i != B.i; NEXT;
    case OP_LT_INT: DST.i = A.i < B.i; NEXT;
    case OP_LE_INT: DST.i = A.i <= B.i; NEXT;
    case OP_LT_UINT: DST.i = (uint64_t)A.i < (uint64_t)B.i; NEXT;
    case OP_LE_UINT: DST.i = (uint64_t)A.i <= (uint64_t)B.i; NEXT;
    case OP_EQ_FLOAT: DST.i = A.f == B.f; NEXT;
    case OP_NE_FLOAT: DST.i = A.f != B.f; NEXT;
    case OP_LT_FLOAT: DST.i = A.f < B.f; NEXT;
    case OP_LE_FLOAT: DST.i = A.f <= B.f; NEXT;
    case OP_NOT: DST.i = !A.i; NEXT;
    case OP_AND: DST.i = A.i && B.i; NEXT;
    case OP_OR: DST.i = A.i || B.i; NEXT;
    case OP_SHIFT_LEFT:
    case OP_SHIFT_RIGHT: DST.i = shift((enum op)in->op, TYPE, A.i, B.i); NEXT;
    case OP_BIT_AND: DST.i = A.i & B.i; NEXT;
    case OP_BIT_OR: DST.i = A.i | B.i; NEXT;
    case OP_BIT_XOR: DST.i = A.i ^ B.i; NEXT;
    case OP_BIT_NOT: DST.i = interp_wrap(TYPE, ~A.i); NEXT;
    case OP_WRAP: DST.i = interp_wrap(TYPE, A.i); NEXT;
    case OP_FROM_INT: DST.f = interp_from_int(TYPE, A.i, true); NEXT;
    case OP_FROM_UINT: DST.f = interp_from_int(TYPE, A.i, false); NEXT;
    case OP_TO_INT: DST.i = interp_to_int(TYPE, A.f); NEXT;
    case OP_ROUND: DST.f = interp_round_to(TYPE, A.f); NEXT;
    case OP_INT_TO_BOOL: DST.i = A.i != 0; NEXT;
    case OP_FLOAT_TO_BOOL: DST.i = A.f != 0; NEXT;
    case OP_REINTERPRET: DST = interp_reinterpret((tir_type)in->b, TYPE, A); NEXT;
    case OP_ABS_INT: DST.i = A.i < 0 ? interp_wrap(TYPE, (int64_t)(0 - (uint64_t)A.i)) : A.i; NEXT;
    case OP_CLZ: DST.i = leading_zeros(TYPE, A.i); NEXT;
    case OP_POPCOUNT: DST.i = ones(TYPE, A.i); NEXT;
    case OP_IS_NAN: DST.i = isnan(A.f) != 0; NEXT;
    case OP_IS_INF: DST.i = isinf(A.f) != 0; NEXT;
    case OP_IS_FINITE: DST.i = isfinite(A.f) != 0; NEXT;
    case OP_MATH1: DST.f = interp_round_to(TYPE, interp_math1(in->b, A.f)); NEXT;
    case OP_MATH2: DST.f = interp_round_to(TYPE, interp_math2(TYPE, in->c, A.f, B.f)); NEXT;
    case OP_FMA:
      DST.f = interp_round_to(TYPE, fma(A.f, B.f, C.f));
      NEXT;

      ACCESSES(1)
      ACCESSES(2)
      ACCESSES(3)
    case OP_LOAD:
    case OP_STORE: {
      int64_t element;
      STEP if (!locate(m, t, in, &element)) FAIL(fail_bounds(m, t, in));
      if (in->op == OP_LOAD)
        TRY(load_slow(m, t, in, element, &DST));
      else
        TRY(store_slow(m, t, in, element, DST));
      NEXT;
    }

    case OP_COPIED:
      if (m->missing.count) copied(m, t, in);
      NEXT;

    case OP_BEGIN_COPY: {
      int64_t element;
      if (C.i && locate(m, t, in, &element))
        interp_begin_copy(t, t->views[in->a], element, m->program->slots.at[in->a]);
      NEXT;
    }

    case OP_CHECK_DOMAIN:
      if (A.i < B.i || A.i - B.i >= C.i) FAIL(fail_domain(m, t, in));
      NEXT;
    case OP_CHECK_EQUAL:
      if (A.i != B.i) FAIL(fail_agreement(m, t, in));
      NEXT;
    case OP_CHECK_DIVISIBLE:
      if (A.i % B.i)
        FAIL(interp_fail(m, t, MS_RUN_MATCH, "offset %lld of %s is no multiple of %lld", (long long)A.i,
                         buffer_name(m, m->program->slots.at[in->d]), (long long)B.i));
      NEXT;
    case OP_ASSERT:
      if (!A.i) FAIL(fail_assertion(m, t, in));
      NEXT;

    case OP_PARAM: TRY(interp_make_param(m, t, &m->program->sites.at[in->a])); NEXT;
    case OP_ALLOC: TRY(interp_make_alloc(m, t, &m->program->sites.at[in->a])); NEXT;
    case OP_MATCH: TRY(interp_make_match(m, t, &m->program->sites.at[in->a])); NEXT;
    case OP_DECLARE: TRY(interp_make_declare(m, t, &m->program->sites.at[in->a])); NEXT;
    case OP_VIEW_STRIDE: DST.i = t->views[in->a]->dim[in->b].stride; NEXT;
    case OP_VIEW_OFFSET: DST.i = t->views[in->a]->offset; NEXT;
    case OP_DATA: DST.i = interp_pointer(t->views[in->a]->object->index, t->views[in->a]->base); NEXT;
    case OP_ADDRESS: {
      int64_t element;
      if (!locate(m, t, in, &element)) FAIL(fail_bounds(m, t, in));
      const struct view *v = t->views[in->a];
      DST.i = interp_pointer(v->object->index, (v->offset + element) * v->size);
      NEXT;
    }
    case OP_POINTER_ADD: DST.i = A.i + B.i * C.i; NEXT;
    case OP_EXTERN: {
      STEP TRY(interp_call_extern(m, t, &m->program->sites.at[in->a], &DST));
      NEXT;
    }

    case OP_KERNEL:
      TRY(interp_run_kernel(m, t, &m->program->sites.at[in->a]));
      in = code + in->b;
      break;
    case OP_THREAD: DST.i = t->at[in->a] + B.i; NEXT;
    case OP_PARALLEL:
      TRY(interp_watch(m, t));
      m->grid_epoch = m->block_epoch = ++m->epoch;
      NEXT;
    case OP_ITERATION:
      t->index = (uint32_t)A.i;
      t->number = interp_thread_of(m->threads, A.i - B.i, C.i);
      NEXT;
    case OP_THREAD_NUMBER: DST.i = t->number; NEXT;
    case OP_JOIN:
      interp_unwatch(m, t);
      t->number = 0;
      m->epoch++;
      NEXT;
    case OP_COMMIT: t->groups++; NEXT;
    case OP_WAIT: TRY(interp_wait_copies(m, t, A.i)); NEXT;
    case OP_PHASE: {
      bool ended = false;
      t->pc = (uint32_t)(in - code);
      TRY(interp_is_phase_over(m, t, A.i, B.i, &ended));
      if (!ended) {
        t->status = THREAD_AT_PHASE;
        goto paused;
      }
      NEXT;
    }
    case OP_BARRIER:
      t->pc = (uint32_t)(in - code);
      t->status = THREAD_AT_BARRIER;
      goto paused;
    case OP_CLUSTER:
      t->pc = (uint32_t)(in - code);
      t->status = THREAD_AT_CLUSTER;
      goto paused;
    case OP_NAMED:
      t->pc = (uint32_t)(in - code);
      t->status = THREAD_AT_NAMED;
      goto paused;
    case OP_WARP:
    case OP_SHUFFLE:
      t->pc = (uint32_t)(in - code);
      t->status = THREAD_AT_WARP;
      goto paused;
    case OP_ALLREDUCE:
      t->pc = (uint32_t)(in - code);
      t->status = THREAD_AT_REDUCE;
      goto paused;
    }
  }
done:
  t->status = THREAD_DONE;
  goto paused;
failed:
  t->status = THREAD_FAILED;
paused:
  m->steps += granted - patience;
  return (enum thread_status)t->status;
}
