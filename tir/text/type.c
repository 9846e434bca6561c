/* The text of data types: "float32", "int8x4", "bool", "handle". */
#include "tir/tir.h"

#include <stdio.h>
#include <string.h>

struct base {
  const char *name;
  enum tir_code code;
  int bits; /* 0: a number follows */
};

/* "uint" stands before "int", "bfloat" before "float": the first prefix that fits is taken. Floats of 8 bits have two
 * names, TVM's older ones the second. */
static const struct base bases[] = {
    {"float8_e4m3fn", TIR_E4M3, 8}, {"float8_e5m2", TIR_E5M2, 8},
    {"e4m3_float8", TIR_E4M3, 8},   {"e5m2_float8", TIR_E5M2, 8},
    {"bool", TIR_BOOL, 1},          {"handle", TIR_HANDLE, 64},
    {"void", TIR_VOID, -1},         {"string", TIR_STRING, -1},
    {"uint", TIR_UINT, 0},          {"int", TIR_INT, 0},
    {"bfloat", TIR_BFLOAT, 0},      {"float", TIR_FLOAT, 0},
};
enum { BASE_COUNT = sizeof bases / sizeof bases[0] };

/* A decimal number without sign or leading zeros, at most `most`; 0 when there is none. */
static int read_number(const char **text, int most) {
  int value = 0;
  if (**text == '0') return 0;
  for (; **text >= '0' && **text <= '9'; ++*text) {
    value = value * 10 + (**text - '0');
    if (value > most) return 0;
  }
  return value;
}

static bool has_width(enum tir_code code, int bits) {
  if (code == TIR_INT || code == TIR_UINT)
    return bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 32 || bits == 64;
  if (code == TIR_BFLOAT) return bits == 16;
  return bits == 16 || bits == 32 || bits == 64;
}

bool tir_type_parse(const char *text, tir_type *out) {
  for (int i = 0; i < BASE_COUNT; i++) {
    size_t length = strlen(bases[i].name);
    if (strncmp(text, bases[i].name, length)) continue;
    const char *rest = text + length;
    int bits = bases[i].bits, lanes = 1;
    if (bits == 0) {
      bits = read_number(&rest, 64);
      if (!has_width(bases[i].code, bits)) return false;
    } else if (bits < 0) {
      if (*rest) return false;
      *out = bases[i].code == TIR_VOID ? TIR_T_VOID : TIR_T_STRING;
      return true;
    }
    if (*rest == 'x') {
      rest++;
      if (!(lanes = read_number(&rest, TIR_MOST_LANES))) return false;
    }
    if (*rest) return false;
    *out = TIR_TYPE(bases[i].code, bits, lanes);
    return true;
  }
  return false;
}

const char *tir_type_text(tir_type t, char buffer[24]) {
  static const char *const names[] = {"void",   "bool",   "int",    "uint",          "float",
                                      "bfloat", "handle", "string", "float8_e4m3fn", "float8_e5m2"};
  _Static_assert(sizeof names / sizeof *names == TIR_CODES, "a name for each code");
  enum tir_code code = tir_type_code(t);
  int length = snprintf(buffer, 24, "%s", (int)code < TIR_CODES ? names[code] : "unknown");
  bool sized = code == TIR_INT || code == TIR_UINT || code == TIR_FLOAT || code == TIR_BFLOAT;
  if (sized) length += snprintf(buffer + length, 24 - (size_t)length, "%d", tir_type_bits(t));
  if (tir_type_lanes(t) > 1) snprintf(buffer + length, 24 - (size_t)length, "x%d", tir_type_lanes(t));
  return buffer;
}
