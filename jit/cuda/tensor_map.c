#include "tensor_map.h"

#include <string.h>

/* A copy knows sizes only. */
static uint32_t type_of(uint64_t bytes) {
  return bytes == 1   ? DRIVER_UNSIGNED_8
         : bytes == 2 ? DRIVER_UNSIGNED_16
         : bytes == 4 ? DRIVER_UNSIGNED_32
                      : DRIVER_UNSIGNED_64;
}

static uint32_t swizzle_of(uint64_t panel) {
  return panel == 128 ? DRIVER_SWIZZLE_128 : panel == 64 ? DRIVER_SWIZZLE_64 : DRIVER_SWIZZLE_32;
}

bool tensor_map_of(const struct tir *ir, tir_expr call, struct tensor_map *out, tir_buffer *buffer) {
  struct tir_box b;
  struct tir_swizzle s;
  if (!tir_box_of(ir, call, &b) || !tir_swizzle_of(ir, tir_pointed(ir, b.to), &s) || !s.panel) return false;
  *buffer = tir_pointed(ir, b.from);
  uint64_t bytes = (uint64_t)tir_type_bits(tir_buffer_at(ir, *buffer)->type) / 8, stride = bytes;
  *out = (struct tensor_map){.rank = b.rank, .type = type_of(bytes), .swizzle = swizzle_of(s.panel)};
  for (uint32_t d = 0; b.im2col && d + 2 < b.rank; d++) {
    uint32_t at = b.rank - 3 - d;
    out->im2col = 1;
    out->lower[d] = (int32_t)b.pixels.lower[at], out->upper[d] = (int32_t)b.pixels.upper[at];
    out->step[d] = (uint32_t)b.pixels.step[at];
  }
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

uint32_t tensor_map_step(const struct tensor_map *map, uint32_t d) {
  assert(d < map->rank);
  return map->im2col && d > 0 && d + 1 < map->rank ? map->step[d - 1] : 1;
}

static void print_list(FILE *out, const char *type, const char *name, const uint64_t *values, uint32_t count) {
  fprintf(out, "    const %s ms_%s[] = {", type, name);
  for (uint32_t d = 0; d < count; d++) fprintf(out, "%s%llu", d ? ", " : "", (unsigned long long)values[d]);
  fputs("};\n", out);
}

static void print_corner(FILE *out, const char *name, const int32_t *corner, uint32_t count) {
  fprintf(out, "    const int ms_%s[] = {", name);
  for (uint32_t d = 0; d < count; d++) fprintf(out, "%s%d", d ? ", " : "", corner[d]);
  fputs("};\n", out);
}

void tensor_map_print(FILE *out, const struct tensor_map *map, const char *name, const char *at, const char *fails) {
  uint64_t box[TIR_BOX_MOST_RANK], steps[TIR_BOX_MOST_RANK];
  for (uint32_t d = 0; d < map->rank; d++) box[d] = map->box[d], steps[d] = tensor_map_step(map, d);
  assert(map->rank > 1); /* as tir_box_of has it; C has no empty lists of strides */
  fputs("  {\n", out);
  print_list(out, "uint64_t", "extents", map->extents, map->rank);
  print_list(out, "uint64_t", "strides", map->strides, map->rank - 1);
  print_list(out, "uint32_t", "steps", steps, map->rank);
  if (map->im2col) {
    print_corner(out, "lower", map->lower, map->rank - 2);
    print_corner(out, "upper", map->upper, map->rank - 2);
    fprintf(
        out,
        "    if (cuTensorMapEncodeIm2col(&%s, %u, %u, (void *)%s, ms_extents, ms_strides, ms_lower, ms_upper, %u, %u,\n"
        "                                ms_steps, %d, %u, %d, %d))\n"
        "      %s\n  }\n",
        name, map->type, map->rank, at, map->box[0], map->box[map->rank - 1], DRIVER_INTERLEAVE_NONE, map->swizzle,
        DRIVER_PROMOTION_128, DRIVER_FILL_ZERO, fails);
    return;
  }
  print_list(out, "uint32_t", "box", box, map->rank);
  fprintf(out,
          "    if (cuTensorMapEncodeTiled(&%s, %u, %u, (void *)%s, ms_extents, ms_strides, ms_box, ms_steps, %d, %u, "
          "%d, %d))\n"
          "      %s\n  }\n",
          name, map->type, map->rank, at, DRIVER_INTERLEAVE_NONE, map->swizzle, DRIVER_PROMOTION_128, DRIVER_FILL_ZERO,
          fails);
}
