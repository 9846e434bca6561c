/* AMX's tile unit in software: its instructions are decoded and computed as the manual says, and refused where it says
 * that they fault.
 * Source: Intel's Software Developer's Manual, volume 1, chapter 18; volume 2, sections 2.3 (VEX), 2.7 (classes
 * AMX-E1 to E6) and each instruction's; TDPFP16PS: Intel's Architecture Instruction Set Extensions, chapter "AMX". */
#ifndef MSCHED_TEST_AMX_UNIT_H
#define MSCHED_TEST_AMX_UNIT_H

#include <stdbool.h>
#include <stdint.h>

/* OPERATION(id, mnemonic) */
#define AMX_EACH_OPERATION(OPERATION)                                                                                  \
  OPERATION(LDTILECFG, "ldtilecfg")                                                                                    \
  OPERATION(STTILECFG, "sttilecfg")                                                                                    \
  OPERATION(TILERELEASE, "tilerelease")                                                                                \
  OPERATION(TILEZERO, "tilezero")                                                                                      \
  OPERATION(TILELOADD, "tileloadd")                                                                                    \
  OPERATION(TILELOADDT1, "tileloaddt1")                                                                                \
  OPERATION(TILESTORED, "tilestored")                                                                                  \
  OPERATION(TDPBSSD, "tdpbssd")                                                                                        \
  OPERATION(TDPBSUD, "tdpbsud")                                                                                        \
  OPERATION(TDPBUSD, "tdpbusd")                                                                                        \
  OPERATION(TDPBUUD, "tdpbuud")                                                                                        \
  OPERATION(TDPBF16PS, "tdpbf16ps")                                                                                    \
  OPERATION(TDPFP16PS, "tdpfp16ps")

#define AMX_ENUM(id, mnemonic) AMX_##id,
enum amx_operation { AMX_EACH_OPERATION(AMX_ENUM) AMX_OPERATIONS };
#undef AMX_ENUM
extern const char *const amx_names[AMX_OPERATIONS];

enum { AMX_TILES = 8, AMX_ROWS = 16, AMX_ROW_BYTES = 64, AMX_LONGEST = 15 };

struct amx_instruction {
  enum amx_operation operation;
  int length;
  int tile, left, right; /* ModRM.reg; of a product ModRM.rm and VEX.vvvv: what it multiplies */
  int base, index;       /* registers in the order of encodings; -1: none */
  int scale;             /* a shift */
  int32_t displacement;  /* added to the base */
  bool behind, narrow;   /* relative to the next instruction; addresses of 32 bits */
  const char *wrong;     /* NULL, or why the encoding is undefined (#UD) */
};
/* Whether the code begins with one of them. Reads no byte behind it. */
bool amx_decode(const uint8_t *code, struct amx_instruction *out);

struct amx_unit {
  bool configured;
  uint8_t palette, start_row, rows[AMX_TILES];
  uint16_t row_bytes[AMX_TILES];
  uint8_t tile[AMX_TILES][AMX_ROWS][AMX_ROW_BYTES] __attribute__((aligned(64)));
};
/* Performs it on the unit. at: base and displacement; stride: the index, shifted. Gives NULL, or why it faults; nothing
 * is changed then. Needs amx_is_possible(). */
const char *amx_perform(struct amx_unit *unit, const struct amx_instruction *what, uint8_t *at, int64_t stride);
/* Whether this CPU has what products are computed by: AVX2, FMA and F16C. */
bool amx_is_possible(void);

#endif
