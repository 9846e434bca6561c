#include "tensor_map.h"

#include <string.h>

enum { UNSIGNED_8, UNSIGNED_16, UNSIGNED_32, UNSIGNED_64 = 4 }; /* CUtensorMapDataType: a copy knows sizes only */

bool tensor_map_of(const struct tir *ir, tir_expr call, struct tensor_map *out, tir_buffer *buffer) {
  struct tir_box b;
  struct tir_swizzle s;
  if (!tir_box_of(ir, call, &b) || !tir_swizzle_of(ir, tir_pointed(ir, b.to), &s) || !s.panel) return false;
  *buffer = tir_pointed(ir, b.from);
  uint64_t bytes = (uint64_t)tir_type_bits(tir_buffer_at(ir, *buffer)->type) / 8, stride = bytes;
  *out = (struct tensor_map){.rank = b.rank, .swizzle = s.panel == 128 ? 3 : s.panel == 64 ? 2 : 1};
  out->type = bytes == 1 ? UNSIGNED_8 : bytes == 2 ? UNSIGNED_16 : bytes == 4 ? UNSIGNED_32 : UNSIGNED_64;
  for (uint32_t d = 0; d < b.rank; d++) {
    out->extents[d] = (uint64_t)b.extents[b.rank - 1 - d];
    out->box[d] = (uint32_t)b.box[b.rank - 1 - d];
    stride *= out->extents[d];
    if (d + 1 < b.rank) out->strides[d] = stride;
  }
  return true;
}

uint32_t tensor_maps_of(const struct tir *ir, tir_stmt top, struct tensor_map *out, tir_buffer *buffers,
                        uint32_t most) {
  uint32_t count = 0;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    struct tensor_map map;
    tir_buffer buffer;
    if (!tir_is(ir, s, TIR_EVALUATE) || !tensor_map_of(ir, tir_stmt_at(ir, s)->evaluate.value, &map, &buffer)) continue;
    uint32_t i = 0;
    while (i < count && i < most && (buffers[i] != buffer || memcmp(&out[i], &map, sizeof map) != 0)) i++;
    if (i < count) continue;
    if (count < most) out[count] = map, buffers[count] = buffer;
    count++;
  }
  return count;
}

static void print_list(FILE *out, const char *type, const char *name, const uint64_t *values, uint32_t count) {
  fprintf(out, "    const %s ms_%s[] = {", type, name);
  for (uint32_t d = 0; d < count; d++) fprintf(out, "%s%llu", d ? ", " : "", (unsigned long long)values[d]);
  fputs("};\n", out);
}

void tensor_map_print(FILE *out, const struct tensor_map *map, const char *name, const char *at, const char *fails) {
  uint64_t box[TIR_BOX_MOST_RANK], steps[TIR_BOX_MOST_RANK];
  for (uint32_t d = 0; d < map->rank; d++) box[d] = map->box[d], steps[d] = 1;
  fputs("  {\n", out);
  print_list(out, "uint64_t", "extents", map->extents, map->rank);
  print_list(out, "uint64_t", "strides", map->strides, map->rank - 1);
  print_list(out, "uint32_t", "box", box, map->rank);
  print_list(out, "uint32_t", "steps", steps, map->rank);
  fprintf(out,
          "    if (cuTensorMapEncodeTiled(&%s, %u, %u, (void *)%s, ms_extents, ms_strides, ms_box, ms_steps, 0, %u, "
          "%d, 0))\n"
          "      %s\n  }\n",
          name, map->type, map->rank, at, map->swizzle, TENSOR_MAP_PROMOTION, fails);
}
