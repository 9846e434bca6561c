/* Types in C source, and the functions on them that expressions need, each written once from a template. */
#include "emit_c.h"

#include <stdlib.h>
#include <string.h>

struct c_type emit_c_type(struct emit_c *e, tir_type t, int width) {
  assert(width >= 1);
  int bits = tir_type_bits(t);
  enum tir_code code = tir_type_code(t);
  if (tir_type_is_float(t)) return (struct c_type){TIR_FLOAT, bits == 64 ? 64 : 32, width};
  if (code == TIR_BOOL) return (struct c_type){TIR_INT, 32, width};
  if (!tir_type_is_int(t) || (bits != 8 && bits != 16 && bits != 32 && bits != 64)) {
    char text[24];
    emit_c_refuse(e, "%s has no type in C", tir_type_text(t, text));
    return (struct c_type){TIR_INT, 32, width};
  }
  return (struct c_type){code, bits, width};
}

struct c_type emit_c_stored(tir_type t, int width) {
  assert(width >= 1);
  int bits = tir_type_bits(t);
  if (tir_type_is_short(t)) return (struct c_type){TIR_UINT, bits, width};
  if (tir_type_code(t) == TIR_BOOL) return (struct c_type){TIR_UINT, 8, width};
  return (struct c_type){tir_type_is_float(t) ? TIR_FLOAT : tir_type_code(t), bits, width};
}

/* ---- Names of types ---- */

static void short_name(struct c_type t, char out[32]) {
  char letter = t.code == TIR_FLOAT ? 'f' : t.code == TIR_INT ? 'i' : 'u';
  snprintf(out, 32, t.width > 1 ? "%c%dx%d" : "%c%d", letter, t.bits, t.width);
}

static void scalar_name(struct c_type t, char out[32]) {
  if (t.code == TIR_FLOAT)
    snprintf(out, 32, "%s", t.bits == 64 ? "double" : "float");
  else
    snprintf(out, 32, "%sint%d_t", t.code == TIR_UINT ? "u" : "", t.bits);
}

/* False when it was not known before: it is from now on. */
static bool is_known(struct emit_c *e, const char *name) {
  for (uint32_t i = 0; i < e->known_count; i++)
    if (!strcmp(e->known[i], name)) return true;
  e->known = tir_enlarge(e->known, &e->known_capacity, (uint64_t)e->known_count + 1, sizeof *e->known);
  char *own = strdup(name);
  if (!own) abort();
  e->known[e->known_count++] = own;
  return false;
}

bool emit_c_needs(struct emit_c *e, const char *name) { return !is_known(e, name); }

const char *emit_c_type_name(struct emit_c *e, struct c_type t, char out[32]) {
  char scalar[32];
  scalar_name(t, scalar);
  if (t.width == 1) return strcpy(out, scalar);
  short_name(t, out);
  int bytes = t.bits / 8 * t.width;
  if (!is_known(e, out)) fprintf(e->helpers, "typedef %s %s __attribute__((vector_size(%d)));\n", scalar, out, bytes);
  return out;
}

const char *emit_c_memory_name(struct emit_c *e, struct c_type t, char out[32]) {
  char value[32], scalar[32];
  emit_c_type_name(e, t, value);
  if (t.width == 1) return strcpy(out, value);
  scalar_name(t, scalar);
  snprintf(out, 32, "ms_%.20s", value);
  if (!is_known(e, out))
    fprintf(e->helpers, "typedef %s %s __attribute__((vector_size(%d), aligned(%d), may_alias));\n", scalar, out,
            t.bits / 8 * t.width, t.bits / 8);
  return out;
}

/* ---- Templates ----
 *
 * $V the type, $E its elements', $I and $U the integers of its size, $N its short name, $W its lanes, $L a loop over
 * its lanes, $C and $F what C's functions for it begin and end with, $A what PTX's statements call its registers, $X
 * `x` once a lane, $M a word, $S ms_select for it, $P ms_splat, $Hpx:NAME; a polynomial of x that p becomes, by
 * Horner's rule. `needs` are helpers written before:
 * of the same type, or with a mark of the integers (i, u) of its size. */
/* One half, by the CPU's instruction: where a function is unrolled, a thousand conversions spelled out take a compiler
 * minutes. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, VCVTPH2PS and VCVTPS2PH. */
#define BY_F16C(cast, instruction, of, x, rounding)                                                                    \
  "#ifdef __F16C__\n"                                                                                                  \
  "  typedef " of " ms_four __attribute__((vector_size(16)));\n"                                                       \
  "  return " cast "__builtin_ia32_" instruction "((ms_four){" x "}" rounding ")[0];\n"                                \
  "#else\n"
#define TO_HALF                                                                                                        \
  "  $U b = ms_bits_$N(x), sign = b >> 16 & 0x8000u, size = b & 0x7fffffffu;\n"                                        \
  "  $U small = ms_bits_$N(ms_of_bits_$N(size) + ms_of_bits_$N($P_u(0x3f000000u))) - 0x3f000000u;\n"                   \
  "  $U normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13;\n"                                           \
  "  $U h = $S_u(size < 0x38800000u, small, normal);\n"                                                                \
  "  h = $S_u(size >= 0x47800000u, $P_u(0x7c00u), h);\n"                                                               \
  "  return sign | $S_u(size > 0x7f800000u, $P_u(0x7e00u), h);\n"
#define OF_HALF                                                                                                        \
  "  $U size = (h & 0x7fffu) << 13, power = size & 0x0f800000u;\n"                                                     \
  "  $U small = ms_bits_$N(ms_of_bits_$N(size + 0x38800000u) - ms_of_bits_$N($P_u(0x38800000u)));\n"                   \
  "  $U b = $S_u(power == 0, small, size + 0x38000000u);\n"                                                            \
  "  b = $S_u(power == 0x0f800000u, size + 0x70000000u, b);\n"                                                         \
  "  return ms_of_bits_$N(b | (h & 0x8000u) << 16);\n"
/* small: a number whose addition rounds where the last bit of small ones is; apart: the exponents of both for 1; odd:
 * half of what is cut off, but for its last bit; normal: the smallest normal number; largest: the bits of that. */
#define TO_BYTE(rounding, apart, odd, shift, normal, largest)                                                          \
  "  $U b = ms_bits_$N(x), size = b & 0x7fffffffu;\n"                                                                  \
  "  $U small = ms_bits_$N(ms_of_bits_$N(size) + ms_of_bits_$N($P_u(" rounding "))) - " rounding ";\n"                 \
  "  $U r = $S_u(size < " normal ", small, (size - " apart " + " odd " + (size >> " shift " & 1u)) >> " shift ");\n"   \
  "  r = $S_u(r > " largest ", $P_u(" largest "), r);\n"                                                               \
  "  return $S_u(size > 0x7f800000u, $P_u(0x7fu), r | (b >> 24 & 0x80u));\n"

static const struct c_template templates[] = {
    {"splat", "", "$V ms_splat_$N($E x) { return x; }", "$V ms_splat_$N($E x) { return ($V){$X}; }"},
    {"select", "", "$V ms_select_$N(int c, $V a, $V b) { return c ? a : b; }",
     "$V ms_select_$N($I c, $V a, $V b) { return ($V)((($I)a & c) | (($I)b & ~c)); }"},
    {"bits", "", "$U ms_bits_$N($V x) {\n  $U bits;\n  __builtin_memcpy(&bits, &x, sizeof bits);\n  return bits;\n}",
     NULL},
    {"of_bits", "", "$V ms_of_bits_$N($U bits) {\n  $V x;\n  __builtin_memcpy(&x, &bits, sizeof x);\n  return x;\n}",
     NULL},
    {"min", "select", "$V ms_min_$N($V a, $V b) { return $S(a < b, a, b); }", NULL},
    {"max", "select", "$V ms_max_$N($V a, $V b) { return $S(a > b, a, b); }", NULL},
    /* clang does not look through it: see jit/choices.c. In memory, where vectors of any size may be. */
    {"keep", "", "$V ms_keep_$N($V x) {\n#ifdef __clang__\n  __asm__(\"\" : \"+m\"(x));\n#endif\n  return x;\n}", NULL},
    /* Of floats: NaN is left out, and comes of two only. */
    {"least", "select", "$V ms_least_$N($V a, $V b) { return $S((a < b) | (b != b), a, b); }", NULL},
    {"most", "select", "$V ms_most_$N($V a, $V b) { return $S((a > b) | (b != b), a, b); }", NULL},
    {"abs", "", "$V ms_abs_$N($V x) { return x < 0 ? ($V)-($U)x : x; }",
     "$V ms_abs_$N($V x) { return ($V)(($U)(x ^ (x < 0)) - ($U)(x < 0)); }"},
    {"popcount", "", "$V ms_popcount_$N($V x) { return ($V)__builtin_popcountll((uint64_t)($U)x); }",
     "$V ms_popcount_$N($V x) {\n  $L x[l] = ($E)__builtin_popcountll((uint64_t)(($U)x)[l]);\n  return x;\n}"},
    {"clz", "", "$V ms_clz_$N($V x) { return ($V)(x ? __builtin_clzll((uint64_t)($U)x) - 64 + $B : $B); }",
     "$V ms_clz_$N($V x) {\n  $L x[l] = ($E)(x[l] ? __builtin_clzll((uint64_t)(($U)x)[l]) - 64 + $B : $B);\n"
     "  return x;\n}"},
    /* C's library, by the word $M. */
    {"call1", "", "$V ms_$M_$N($V x) { return $C$M$F(x); }",
     "$V ms_$M_$N($V x) {\n  $L x[l] = $C$M$F(x[l]);\n  return x;\n}"},
    {"call2", "", "$V ms_$M_$N($V x, $V y) { return $C$M$F(x, y); }",
     "$V ms_$M_$N($V x, $V y) {\n  $L x[l] = $C$M$F(x[l], y[l]);\n  return x;\n}"},
    {"call3", "", "$V ms_$M_$N($V x, $V y, $V z) { return $C$M$F(x, y, z); }",
     "$V ms_$M_$N($V x, $V y, $V z) {\n  $L x[l] = $C$M$F(x[l], y[l], z[l]);\n  return x;\n}"},
    {"ldexp", "", "$V ms_ldexp_$N($V x, $I n) { return $Cldexp$F(x, (int)n); }",
     "$V ms_ldexp_$N($V x, $I n) {\n  $L x[l] = $Cldexp$F(x[l], (int)n[l]);\n  return x;\n}"},
    {"fabs", "bits of_bits", "$V ms_fabs_$N($V x) { return ms_of_bits_$N(ms_bits_$N(x) << 1 >> 1); }", NULL},
    {"copysign", "bits of_bits fabs",
     "$V ms_copysign_$N($V x, $V y) {\n"
     "  return ms_of_bits_$N(ms_bits_$N(ms_fabs_$N(x)) | (ms_bits_$N(y) >> ($B - 1) << ($B - 1)));\n}",
     NULL},
    {"rsqrt", "", "$V ms_rsqrt_$N($V x) { return 1 / $Csqrt$F(x); }",
     "$V ms_rsqrt_$N($V x) {\n  $L x[l] = 1 / $Csqrt$F(x[l]);\n  return x;\n}"},
    {"isnan", "", "int ms_isnan_$N($V x) { return x != x; }", "$I ms_isnan_$N($V x) { return x != x; }"},
    /* Cephes' range reduction; 2^k in two steps, so that results overflow and vanish as they should.
     * Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits. */
    {"power_of_two", "of_bits", "$V ms_power_of_two_$N($I k) { return ms_of_bits_$N(($U)(k + 127) << 23); }", NULL},
    {"exp", "splat select bits power_of_two",
     "$V ms_exp_$N($V x) {\n"
     "  x = $S(x > 89.0f, $P(89.0f), x);\n"
     "  x = $S(x < -104.0f, $P(-104.0f), x);\n"
     "  $V shifted = x * 1.44269504088896341f + 12582912.0f, k_real = shifted - 12582912.0f;\n"
     "  $I k = ($I)(ms_bits_$N(shifted) - ms_bits_$N($P(12582912.0f)));\n"
     "  $V r = k_real * -0.693359375f + x;\n"
     "  r = k_real * 2.12194440e-4f + r;\n"
     "  $V $Hpr:exp;\n"
     "  $I half = k >> 1;\n"
     "  return p * ms_power_of_two_$N(half) * ms_power_of_two_$N(k - half);\n}",
     NULL},
    {"tanh", "exp fabs copysign",
     "$V ms_tanh_$N($V x) {\n"
     "  $V size = ms_fabs_$N(x), s = x * x;\n"
     "  $V $Hps:tanh;\n"
     "  $V near = p * s * x + x, far = 1.0f - 2.0f / (ms_exp_$N(size + size) + 1.0f);\n"
     "  return ms_copysign_$N($S(size < 0.7f, near, far), x);\n}",
     NULL},
    {"erf", "splat select exp fabs copysign",
     "$V ms_erf_$N($V x) {\n"
     "  $V size = ms_fabs_$N(x), s = x * x;\n"
     "  $V $Hps:erf_near;\n"
     "  $V t = $S(size > 4.0f, $P(4.0f), size), $Hqt:erf_far;\n"
     "  return $S(size < 1.0f, p * x + x, ms_copysign_$N(1.0f - ms_exp_$N(q), x));\n}",
     NULL},
    /* Floats of 16 bits, in the low bits of $U: rounded to nearest, ties to even. */
    {"to_bfloat", "bits select:u",
     "$U ms_to_bfloat_$N($V x) {\n"
     "  $U b = ms_bits_$N(x);\n"
     "  return $S_u((b & 0x7fffffffu) > 0x7f800000u, b >> 16 | 0x40u, (b + 0x7fffu + (b >> 16 & 1u)) >> 16);\n}",
     NULL},
    {"of_bfloat", "of_bits", "$V ms_of_bfloat_$N($U b) { return ms_of_bits_$N(b << 16); }", NULL},
    {"round_bfloat", "to_bfloat of_bfloat",
     "$V ms_round_bfloat_$N($V x) { return ms_of_bfloat_$N(ms_to_bfloat_$N(x)); }", NULL},
    /* Small ones by an addition that rounds where their last bit is; large ones become infinite by the carry. */
    {"to_half", "bits of_bits splat select:u splat:u",
     "$U ms_to_half_$N($V x) {\n" BY_F16C("(uint16_t)", "vcvtps2ph", "float", "x", ", 0") TO_HALF "#endif\n}",
     "$U ms_to_half_$N($V x) {\n" TO_HALF "}"},
    {"of_half", "bits of_bits select:u splat:u",
     "$V ms_of_half_$N($U h) {\n" BY_F16C("", "vcvtph2ps", "short", "(short)h", "") OF_HALF "#endif\n}",
     "$V ms_of_half_$N($U h) {\n" OF_HALF "}"},
    {"round_half", "to_half of_half", "$V ms_round_half_$N($V x) { return ms_of_half_$N(ms_to_half_$N(x)); }", NULL},
    /* Floats of 8 bits, in the same way; what is larger than all is the largest. */
    {"to_e4m3", "bits of_bits select:u splat:u",
     "$U ms_to_e4m3_$N($V x) {\n" TO_BYTE("0x46800000u", "0x3c000000u", "0x7ffffu", "20", "0x3c800000u", "0x7eu") "}",
     NULL},
    {"of_e4m3", "bits of_bits select:u splat:u",
     "$V ms_of_e4m3_$N($U b) {\n"
     "  $U size = (b & 0x7fu) << 20;\n"
     "  $U small = ms_bits_$N(ms_of_bits_$N(size + 0x3c800000u) - ms_of_bits_$N($P_u(0x3c800000u)));\n"
     "  $U r = $S_u(size < 0x800000u, small, size + 0x3c000000u);\n"
     "  return ms_of_bits_$N($S_u(size == 0x7f00000u, $P_u(0x7fc00000u), r) | (b & 0x80u) << 24);\n}",
     NULL},
    {"round_e4m3", "to_e4m3 of_e4m3", "$V ms_round_e4m3_$N($V x) { return ms_of_e4m3_$N(ms_to_e4m3_$N(x)); }", NULL},
    {"copy_e4m3", "to_e4m3", "$U ms_copy_e4m3_$N($V x) { return ms_to_e4m3_$N(x); }", NULL},
    {"to_e5m2", "bits of_bits select:u splat:u",
     "$U ms_to_e5m2_$N($V x) {\n" TO_BYTE("0x43000000u", "0x38000000u", "0xfffffu", "21", "0x38800000u", "0x7bu") "}",
     NULL},
    {"of_e5m2", "of_half", "$V ms_of_e5m2_$N($U b) { return ms_of_half_$N(b << 8); }", NULL},
    {"round_e5m2", "to_e5m2 of_e5m2", "$V ms_round_e5m2_$N($V x) { return ms_of_e5m2_$N(ms_to_e5m2_$N(x)); }", NULL},
    /* Of what is one: infinities stay. */
    {"copy_e5m2", "to_half", "$U ms_copy_e5m2_$N($V x) { return ms_to_half_$N(x) >> 8; }", NULL},
};

static const struct {
  const char *name, *coefficients;
} polynomials[] = {
#define JIT_POLYNOMIAL(name, ...) {#name, #__VA_ARGS__},
#include "jit/polynomials.def"
};

/* `from` is behind a template's $H. Returns where it ends. */
static const char *write_polynomial(FILE *out, const char *from) {
  const char p = from[0], x = from[1], *name = from + 3, *end = strchr(name, ';'), *rest = NULL;
  assert(from[2] == ':' && end);
  for (size_t i = 0; i < sizeof polynomials / sizeof *polynomials; i++)
    if (!strncmp(polynomials[i].name, name, (size_t)(end - name)) && !polynomials[i].name[end - name])
      rest = polynomials[i].coefficients;
  assert(rest);
  fprintf(out, "%c = %c * ", p, x);
  for (int n = 0;; n++) {
    int length = (int)strcspn(rest, ",");
    fprintf(out, n == 0 ? "%.*sf + " : "%.*sf;", length, rest);
    if (!rest[length]) return end;
    rest += length + 2;
    if (n > 0) fprintf(out, "\n  %c = %c * %c + ", p, p, x);
  }
}

static void expand(struct emit_c *e, const char *text, struct c_type t, const char *word) {
  char value[32], element[32], ints[32], uints[32], name[32], uname[32];
  struct c_type scalar = {t.code, t.bits, 1}, i = {TIR_INT, t.bits, t.width}, u = {TIR_UINT, t.bits, t.width};
  emit_c_type_name(e, t, value);
  scalar_name(scalar, element);
  emit_c_type_name(e, i, ints);
  emit_c_type_name(e, u, uints);
  short_name(t, name);
  short_name(u, uname);
  FILE *out = e->helpers;
  if (strncmp(text, "MS_", 3) != 0) fputs("MS_HELPER ", out);
  for (const char *c = text; *c; c++) {
    if (*c != '$') {
      fputc(*c, out);
      continue;
    }
    bool of_uints = !strncmp(c + 2, "_u", 2);
    switch (*++c) {
    case 'V': fputs(value, out); break;
    case 'E': fputs(element, out); break;
    case 'I': fputs(ints, out); break;
    case 'U': fputs(uints, out); break;
    case 'N': fputs(name, out); break;
    case 'B': fprintf(out, "%d", t.bits); break;
    case 'W': fprintf(out, "%d", t.width); break;
    case 'L': fprintf(out, "for (int l = 0; l < %d; l++)", t.width); break;
    case 'C': fputs(e->dialect->library, out); break;
    case 'F': fputs(t.bits == 32 ? "f" : "", out); break;
    case 'A': fputs(t.bits == 32 ? "f" : "d", out); break;
    case 'M': fputs(word, out); break;
    case 'S':
    case 'P':
      fprintf(out, "ms_%s_%s", *c == 'S' ? "select" : "splat", of_uints ? uname : name);
      if (of_uints) c += 2;
      break;
    case 'H': c = write_polynomial(out, c + 1); break;
    case 'X':
      for (int l = 0; l < t.width; l++) fprintf(out, l ? ", x" : "x");
      break;
    default: break;
    }
  }
  fputc('\n', out);
}

/* NULL: it is not among them. */
static const struct c_template *find_among(const struct c_template *list, const char *name) {
  while (list && list->name && strcmp(list->name, name) != 0) list++;
  return list && list->name ? list : NULL;
}

static const struct c_template *find_template(const struct emit_c *e, const char *name) {
  const struct c_template *own = find_among(e->dialect->templates, name);
  if (!own && e->dialect->further) own = find_among(e->dialect->further(e), name);
  if (own) return own;
  for (size_t i = 0; i < sizeof templates / sizeof *templates; i++)
    if (!strcmp(templates[i].name, name)) return &templates[i];
  assert(!"a helper without a template");
  return NULL;
}

const char *emit_c_helper(struct emit_c *e, const char *name, struct c_type t, const char *word, char out[64]) {
  char type[32];
  short_name(t, type);
  snprintf(out, 64, "ms_%.30s_%.24s", word ? word : name, type);
  if (is_known(e, out)) return out;
  const struct c_template *template = find_template(e, name);
  char needs[80], *rest = needs, other[64];
  snprintf(needs, sizeof needs, "%s", template->needs);
  for (char *need; (need = strsep(&rest, " ")) != NULL;) {
    char *mark = strchr(need, ':');
    if (mark) *mark = 0;
    struct c_type of = mark ? (struct c_type){TIR_UINT, t.bits, t.width} : t;
    if (*need) emit_c_helper(e, need, of, NULL, other);
  }
  expand(e, t.width > 1 && template->vector ? template->vector : template->scalar, t, word);
  return out;
}

const char *emit_c_short_word(tir_type t) {
  enum tir_code code = tir_type_code(t);
  return code == TIR_E4M3 ? "e4m3" : code == TIR_E5M2 ? "e5m2" : code == TIR_BFLOAT ? "bfloat" : "half";
}

const char *emit_c_short_helper(struct emit_c *e, const char *what, tir_type t, int width, char out[64]) {
  char name[16];
  snprintf(name, sizeof name, "%s_%s", what, emit_c_short_word(t));
  return emit_c_helper(e, name, (struct c_type){TIR_FLOAT, 32, width}, NULL, out);
}

/* A float outside the integer's range saturates, NaN becomes 0. */
const char *emit_c_conversion(struct emit_c *e, struct c_type from, struct c_type to, char out[64]) {
  char from_name[32], to_name[32], from_type[32], to_type[32];
  short_name(from, from_name);
  short_name(to, to_name);
  snprintf(out, 64, "ms_%.24s_to_%.24s", from_name, to_name);
  if (is_known(e, out)) return out;
  emit_c_type_name(e, from, from_type);
  emit_c_type_name(e, to, to_type);
  if (to.width > 1) {
    struct c_type scalar_from = {from.code, from.bits, 1}, scalar_to = {to.code, to.bits, 1};
    char each[64];
    emit_c_conversion(e, scalar_from, scalar_to, each);
    fprintf(e->helpers,
            "MS_HELPER %s %s(%s x) {\n  %s y;\n  for (int l = 0; l < %d; l++) y[l] = %s(x[l]);\n  return y;\n}\n",
            to_type, out, from_type, to_type, to.width, each);
    return out;
  }
  const char *suffix = from.bits == 32 ? "f" : "";
  fprintf(e->helpers, "MS_HELPER %s %s(%s x) {\n", to_type, out, from_type);
  if (to.code == TIR_INT)
    fprintf(e->helpers, "  if (x != x) return 0;\n  if (x < -0x1p%d%s) return INT%d_MIN;\n", to.bits - 1, suffix,
            to.bits);
  else
    fprintf(e->helpers, "  if (!(x > 0)) return 0;\n");
  fprintf(e->helpers, "  if (x >= 0x1p%d%s) return %sINT%d_MAX;\n  return (%s)x;\n}\n",
          to.code == TIR_INT ? to.bits - 1 : to.bits, suffix, to.code == TIR_INT ? "" : "U", to.bits, to_type);
  return out;
}
