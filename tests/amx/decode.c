/* VEX-encoded instructions of AMX. */
#include "unit.h"

#include <stddef.h>
#include <string.h>

#define AMX_NAME(id, mnemonic) mnemonic,
const char *const amx_names[AMX_OPERATIONS] = {AMX_EACH_OPERATION(AMX_NAME)};

enum { NO_PREFIX, PREFIX_66, PREFIX_F3, PREFIX_F2 }; /* VEX.pp */
enum form { MEMORY, STRIDED, ONE_TILE, PRODUCT, NOTHING };

static const struct {
  enum amx_operation operation;
  uint8_t opcode, prefix;
  bool of_registers; /* ModRM.mod is 3 */
  enum form form;
} rows[] = {
    {AMX_LDTILECFG, 0x49, NO_PREFIX, false, MEMORY},   {AMX_STTILECFG, 0x49, PREFIX_66, false, MEMORY},
    {AMX_TILERELEASE, 0x49, NO_PREFIX, true, NOTHING}, {AMX_TILEZERO, 0x49, PREFIX_F2, true, ONE_TILE},
    {AMX_TILELOADD, 0x4b, PREFIX_F2, false, STRIDED},  {AMX_TILELOADDT1, 0x4b, PREFIX_66, false, STRIDED},
    {AMX_TILESTORED, 0x4b, PREFIX_F3, false, STRIDED}, {AMX_TDPBSSD, 0x5e, PREFIX_F2, true, PRODUCT},
    {AMX_TDPBSUD, 0x5e, PREFIX_F3, true, PRODUCT},     {AMX_TDPBUSD, 0x5e, PREFIX_66, true, PRODUCT},
    {AMX_TDPBUUD, 0x5e, NO_PREFIX, true, PRODUCT},     {AMX_TDPBF16PS, 0x5c, PREFIX_F3, true, PRODUCT},
    {AMX_TDPFP16PS, 0x5c, PREFIX_F2, true, PRODUCT},
};

/* What a VEX prefix of three bytes says: registers' fourth bits, the operand in its own field. */
struct vex {
  int reg, index, base, own;
  bool wide, is_long;
  uint8_t prefix;
};

/* Base, index and displacement behind a ModRM byte; gives how many bytes these are. */
static int decode_address(const uint8_t *at, uint8_t modrm, const struct vex *vex, struct amx_instruction *out) {
  int mod = modrm >> 6, rm = modrm & 7, bytes = 0;
  out->base = rm | vex->base, out->index = -1;
  if (rm == 4) {
    uint8_t sib = at[bytes++];
    out->scale = sib >> 6;
    out->index = (sib >> 3 & 7) | vex->index;
    if (out->index == 4) out->index = -1;
    rm = sib & 7;
    out->base = rm | vex->base;
    if (rm == 5 && mod == 0) out->base = -1;
  } else if (rm == 5 && mod == 0) {
    out->base = -1, out->behind = true;
  }
  if (mod == 1) {
    out->displacement = (int8_t)at[bytes];
    return bytes + 1;
  }
  if (mod == 0 && out->base >= 0) return bytes;
  memcpy(&out->displacement, at + bytes, sizeof out->displacement);
  return bytes + (int)sizeof out->displacement;
}

static const char *why_undefined(enum form form, uint8_t modrm, const struct vex *vex) {
  if (vex->wide || vex->is_long) return "VEX.W and VEX.L must be 0";
  if (form != PRODUCT && vex->own != 0) return "VEX.vvvv must be 1111b";
  if ((form == MEMORY || form == NOTHING) && (modrm >> 3 & 7) != 0) return "ModRM.reg must be 0";
  if ((form == NOTHING || form == ONE_TILE) && (modrm & 7) != 0) return "ModRM.rm must be 0";
  if (form == STRIDED && (modrm & 7) != 4) return "its address must have a SIB byte";
  if ((form == STRIDED || form == ONE_TILE || form == PRODUCT) && vex->reg) return "there are eight tiles";
  if (form == PRODUCT && (vex->base || vex->own >= AMX_TILES)) return "there are eight tiles";
  return NULL;
}

bool amx_decode(const uint8_t *code, struct amx_instruction *out) {
  const uint8_t *at = code;
  *out = (struct amx_instruction){.base = -1, .index = -1};
  for (; *at == 0x67 || *at == 0x2e || *at == 0x36 || *at == 0x3e || *at == 0x26; at++) out->narrow |= *at == 0x67;
  if (at[0] != 0xc4 || (at[1] & 0x1f) != 2) return false; /* map 0F 38 */
  const struct vex vex = {.reg = at[1] & 0x80 ? 0 : 8,
                          .index = at[1] & 0x40 ? 0 : 8,
                          .base = at[1] & 0x20 ? 0 : 8,
                          .own = ~at[2] >> 3 & 15,
                          .wide = at[2] & 0x80,
                          .is_long = at[2] & 4,
                          .prefix = at[2] & 3};
  uint8_t opcode = at[3], modrm = at[4];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].opcode != opcode || rows[i].prefix != vex.prefix || rows[i].of_registers != (modrm >> 6 == 3)) continue;
    out->operation = rows[i].operation;
    out->tile = modrm >> 3 & 7, out->left = modrm & 7, out->right = vex.own;
    out->wrong = why_undefined(rows[i].form, modrm, &vex);
    out->length = (int)(at + 5 - code);
    if (!rows[i].of_registers) out->length += decode_address(at + 5, modrm, &vex, out);
    return true;
  }
  return false;
}
