/* Names in C source: a variable's own where it is free, else with a number. */
#include "emit_c.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Words, each between spaces. */
static const char reserved[] =
    " "
    "auto break case char const continue default do double else enum extern float for goto if inline int "
    "long register restrict return short signed sizeof static struct switch typedef union unsigned void "
    "volatile while asm typeof int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t linux "
    "unix args workspace main bool true false alignas alignof nullptr constexpr class new delete template "
    "this operator private namespace public protected friend virtual using try catch throw export "
    "explicit mutable typename typeid and or not xor bitand bitor compl and_eq or_eq xor_eq not_eq "
    "wchar_t concept requires decltype noexcept consteval constinit co_await co_return co_yield char8_t "
    "char16_t char32_t i386 NULL blockIdx threadIdx blockDim gridDim warpSize dim3 stream uint2 uint4 "
    "size_t ptrdiff_t intptr_t uintptr_t intmax_t uintmax_t max_align_t nullptr_t static_assert "
    "thread_local static_cast const_cast dynamic_cast reinterpret_cast typeof_unqual FILE DIR EOF BUFSIZ "
    "NAN INFINITY HUGE_VAL HUGE_VALF HUGE_VALL CHAR_BIT M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 "
    "M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2 ";

static bool is_word(const char *name) {
  size_t length = strlen(name);
  if (!length) return false;
  for (const char *at = reserved; (at = strstr(at, name)) != NULL; at++)
    if (at[-1] == ' ' && at[length] == ' ') return true;
  return false;
}

/* INT_MAX, UINT64_C, DBL_EPSILON: in capitals, what limits.h, float.h and stdint.h define. */
static bool is_limit(const char *name) {
  static const char *const ends[] = {"_MAX", "_MIN", "_C", "_EPSILON"};
  size_t length = strlen(name);
  if (strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != length) return false;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    if (length > strlen(ends[i]) + 2 && !strcmp(name + length - strlen(ends[i]), ends[i])) return true;
  return false;
}

bool emit_c_is_reserved(const char *name) {
  if (is_word(name) || is_limit(name)) return true;
  if (!strncmp(name, "ms_", 3) || !strncmp(name, "omp_", 4) || !strncmp(name, "__", 2)) return true;
  const char *digits = name + 1; /* a vector's type: f32x16 */
  if (!strchr("fiu", *name) || !isdigit((unsigned char)*digits)) return false;
  digits += strspn(digits, "0123456789");
  return *digits == 'x' && isdigit((unsigned char)digits[1]);
}

void emit_c_identifier(const char *text, char *out, size_t size) {
  assert(size > 1);
  size_t n = 0;
  if (!isalpha((unsigned char)*text)) out[n++] = 'v';
  for (; *text && n + 1 < size; text++) out[n++] = isalnum((unsigned char)*text) ? *text : '_';
  out[n] = 0;
}

static bool is_taken(const struct emit_c *e, const char *name) {
  for (uint32_t i = 0; i < e->scope_count; i++)
    if (!strcmp(e->scope[i], name)) return true;
  return emit_c_is_reserved(name) || !strcmp(name, e->name);
}

static char *declare(struct emit_c *e, const char *wanted) {
  char base[200], name[220];
  emit_c_identifier(wanted, base, sizeof base);
  snprintf(name, sizeof name, "%s", base);
  for (unsigned n = 2; is_taken(e, name); n++) snprintf(name, sizeof name, "%s_%u", base, n);
  e->scope = tir_enlarge(e->scope, &e->scope_capacity, (uint64_t)e->scope_count + 1, sizeof *e->scope);
  char *own = strdup(name);
  if (!own) abort();
  return e->scope[e->scope_count++] = own;
}

const char *emit_c_declare_var(struct emit_c *e, tir_var v) {
  assert(v && v < e->ir->vars.count && !e->vars[v]);
  char wanted[256];
  tir_name_render(e->ir, e->ir->vars.at[v].name, wanted, sizeof wanted);
  return e->vars[v] = declare(e, wanted);
}

/* Elements of other sizes than C's have no type to be stored in. */
static void check_elements(struct emit_c *e, tir_buffer b) {
  struct c_type t = emit_c_stored(tir_buffer_at(e->ir, b)->type, 1);
  bool fits = t.bits == 32 || t.bits == 64 || (t.code != TIR_FLOAT && (t.bits == 8 || t.bits == 16));
  char text[24];
  if (!fits)
    emit_c_refuse(e, "buffer %s: %s has no type in C", tir_text(e->ir, tir_buffer_at(e->ir, b)->name),
                  tir_type_text(tir_buffer_at(e->ir, b)->type, text));
}

const char *emit_c_declare_buffer(struct emit_c *e, tir_buffer b) {
  assert(tir_is_buffer(e->ir, b) && !e->buffers[b]);
  check_elements(e, b);
  return e->buffers[b] = declare(e, tir_text(e->ir, tir_buffer_at(e->ir, b)->name));
}

uint32_t emit_c_enter(const struct emit_c *e) { return e->scope_count; }

static void forget(char **names, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (names[i] == name) names[i] = NULL;
}

void emit_c_leave(struct emit_c *e, uint32_t mark) {
  assert(mark <= e->scope_count);
  while (e->scope_count > mark) {
    char *name = e->scope[--e->scope_count];
    forget(e->vars, e->ir->vars.count, name);
    forget(e->buffers, e->ir->buffers.count, name);
    free(name);
  }
}
