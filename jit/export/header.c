#include "header.h"

#include "jit/c/emit_c.h"
#include "jit/packing.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- Parameters ---- */

const char *header_type(tir_type type, char out[32]) {
  int bits = tir_type_bits(type);
  switch (tir_type_code(type)) {
  case TIR_FLOAT: return bits == 64 ? "double" : bits == 32 ? "float" : "uint16_t";
  case TIR_BFLOAT: return "uint16_t";
  case TIR_E4M3:
  case TIR_E5M2: return "uint8_t";
  case TIR_BOOL: return "uint8_t";
  case TIR_INT: snprintf(out, 32, "int%d_t", bits); return out;
  case TIR_UINT: snprintf(out, 32, "uint%d_t", bits); return out;
  default: return "void *"; /* a handle */
  }
}

static bool is_written(const struct tir *ir, tir_func f, tir_buffer buffer) {
  tir_stmt body = ir->funcs.at[f].body;
  for (tir_stmt s = body; s; s = tir_next(ir, s, body))
    if (tir_is(ir, s, TIR_STORE) && tir_as(ir, s, TIR_STORE)->store.buffer == buffer) return true;
  return false;
}

static bool is_free(const char *name, const char *function, char (*names)[HEADER_NAME], uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return false;
  return !emit_c_is_reserved(name) && strcmp(name, function) != 0;
}

char (*header_parameters(const struct tir *ir, struct tir_span params, const char *function))[HEADER_NAME] {
  char(*names)[HEADER_NAME] = calloc(params.count + 1, sizeof *names);
  if (!names) abort();
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &ir->params.at[params.first + i];
    char own[HEADER_NAME], base[HEADER_NAME - 16];
    if (p->buffer)
      snprintf(own, sizeof own, "%s", tir_text(ir, tir_buffer_at(ir, p->buffer)->name));
    else
      tir_name_render(ir, ir->vars.at[p->var].name, own, sizeof own);
    emit_c_identifier(own, base, sizeof base);
    snprintf(names[i], HEADER_NAME, "%s", base);
    for (unsigned n = 2; !is_free(names[i], function, names, i); n++) snprintf(names[i], HEADER_NAME, "%s_%u", base, n);
  }
  return names;
}

static bool is_zero(const struct tir *ir, tir_expr e) { return tir_is_int(ir, e) && tir_at(ir, e)->imm == 0; }

static void print_list(FILE *out, const struct tir *ir, const char *what, uint32_t count, const tir_expr *list) {
  assert(what && (list || !count));
  for (uint32_t i = 0; i < count; i++) {
    char *text = tir_print_expr(ir, list[i]);
    fprintf(out, "%s%s%s%s", i ? ", " : ", ", i ? "" : what, i ? "" : " ", text ? text : "?");
    free(text);
  }
}

static void describe_parameter(FILE *out, const struct tir *ir, const struct tir_param *p, const char *name) {
  char text[24];
  if (!p->buffer) {
    fprintf(out, " *   %s: a scalar of %s\n", name, tir_type_text(ir->vars.at[p->var].type, text));
    return;
  }
  const struct tir_buffer_node *b = tir_buffer_at(ir, p->buffer);
  fprintf(out, " *   %s: %s[", name, tir_type_text(b->type, text));
  for (uint32_t i = 0; i < b->rank; i++) {
    char *extent = tir_print_expr(ir, tir_operands(ir, b->shape)[i]);
    fprintf(out, i ? ", %s" : "%s", extent ? extent : "?");
    free(extent);
  }
  fputc(']', out);
  print_list(out, ir, "strides", b->strides.count, tir_operands(ir, b->strides.first));
  print_list(out, ir, "from element", b->elem_offset && !is_zero(ir, b->elem_offset), &b->elem_offset);
  fprintf(out, "%s%s\n", b->strides.count ? "" : ", row-major",
          !tir_type_is_short(b->type) ? ""
          : tir_type_is_byte(b->type) ? ", as 8-bit patterns"
                                      : ", as 16-bit patterns");
}

/* ---- What all headers have ---- */

void header_begin(struct header *h, const struct tir *ir, tir_func f, const char *name, const char *target) {
  struct tir_span params = ir->funcs.at[f].params;
  if (!(h->out = open_memstream(&h->text, &h->size))) abort();
  fprintf(h->out, "/* %s, made by msched for %s.\n", name, target);
  h->names = header_parameters(ir, params, name);
  for (uint32_t i = 0; i < params.count; i++)
    describe_parameter(h->out, ir, &ir->params.at[params.first + i], h->names[i]);
}

void header_declare(struct header *h, const char *name) {
  char guard[HEADER_NAME + 32];
  snprintf(guard, sizeof guard, "MSCHED_KERNEL_%s_H", name);
  for (char *c = guard; *c; c++) *c = (char)toupper((unsigned char)*c);
  fprintf(h->out, "#ifndef %s\n#define %s\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
          guard, guard);
}

char *header_end(struct header *h) {
  fprintf(h->out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
  fclose(h->out);
  free(h->names);
  return h->text;
}

/* ---- Of functions for CPUs ---- */

static void print_typed(FILE *out, const struct tir *ir, tir_func f, const char *name, char (*names)[HEADER_NAME]) {
  struct tir_span params = ir->funcs.at[f].params;
  fprintf(out, "static inline int32_t %s_run(", name);
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &ir->params.at[params.first + i];
    char type[32];
    if (p->buffer)
      fprintf(out, "%s%s *%s, ", is_written(ir, f, p->buffer) ? "" : "const ",
              header_type(tir_buffer_at(ir, p->buffer)->type, type), names[i]);
    else
      fprintf(out, "%s %s, ", header_type(ir->vars.at[p->var].type, type), names[i]);
  }
  fprintf(out, "void *workspace) {\n  void *args[] = {");
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &ir->params.at[params.first + i];
    fprintf(out, "%s(void *)%s%s", i ? ", " : "", p->buffer ? "" : "&", names[i]);
  }
  fprintf(out, "%s};\n  return %s(args, workspace);\n}\n", params.count ? "" : "(void *)0", name);
}

/* What a packed buffer takes, and the function that fills them. */
static void print_packing(FILE *out, const struct tir_packing *cut, tir_func f, const char *name, uint64_t workspace) {
  char pack[JIT_PACK_NAME];
  struct tir_span params = cut->pack->funcs.at[f].params;
  struct tir_arg args[TIR_MOST_PACKING] = {0};
  jit_pack_name(name, pack);
  char(*names)[HEADER_NAME] = header_parameters(cut->pack, params, pack);
  tir_size_arguments(cut->pack, f, args);
  fprintf(out, "\n/* Packs what is constant, once: its last %s the kernel's. */\n",
          cut->count > 1 ? "arguments are" : "argument is");
  for (uint32_t i = 0; i < cut->pack_count; i++)
    if (cut->of_pack[i] >= TIR_PACKED)
      fprintf(out, "#define %s_BYTES_%s %lluu\n", pack, names[i], (unsigned long long)args[i].bytes);
  fprintf(out, "#define %s_WORKSPACE %lluu\nint32_t %s(void **args, void *workspace);\n\n", pack,
          (unsigned long long)workspace, pack);
  print_typed(out, cut->pack, f, pack, names);
  free(names);
}

void header_describe_packing(FILE *out, const struct tir_packing *cut, tir_func f, const char *name,
                             const char *ending) {
  struct tir_span params = cut->pack->funcs.at[f].params;
  fputs(" * Packed ahead: ", out);
  for (uint32_t i = 0; i < cut->pack_count; i++) {
    const char *text = tir_buffer_name(cut->pack, cut->pack->params.at[params.first + i].buffer);
    bool first = i == 0, packed = cut->of_pack[i] >= TIR_PACKED, turn = packed && cut->of_pack[i - 1] < TIR_PACKED;
    fprintf(out, "%s%s", first ? "" : turn ? " into " : ", ", text);
  }
  fprintf(out, ". %s_pack%s does it, once: what it leaves is good for all runs.\n", name, ending);
}

char *header_of_function(const struct tir *ir, tir_func f, const char *name, const char *target, uint64_t workspace,
                         const struct tir_packing *cut, uint64_t pack_workspace) {
  struct header h;
  bool packs = cut && cut->count;
  const struct tir *whole = packs ? cut->kernel : ir;
  header_begin(&h, whole, f, name, target);
  FILE *out = h.out;
  if (packs) header_describe_packing(out, cut, f, name, "");
  fprintf(out,
          " * Buffers do not overlap; each is aligned to its elements. workspace: %s_WORKSPACE bytes aligned to 64, or "
          "NULL\n"
          " * when that is 0. Returns 0; 1 when an assertion of the function failed. Link with -lgomp -lm.\n"
          " * It does not look at the CPU, which has all that the target has; where the system refuses AMX's tiles, "
          "or SME's vectors\n * have not 512 bits, it does without tiles. */\n",
          name);
  header_declare(&h, name);
  fprintf(out, "#define %s_WORKSPACE %lluu\n\n", name, (unsigned long long)workspace);
  fprintf(out, "/* args: the address of each argument, in order. */\nint32_t %s(void **args, void *workspace);\n\n",
          name);
  print_typed(out, whole, f, name, h.names);
  if (packs) print_packing(out, cut, f, name, pack_workspace);
  return header_end(&h);
}
