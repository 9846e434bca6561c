#include "launcher.h"

#include "jit/c/emit_c.h"
#include "jit/export/header.h"

#include <stdlib.h>

/* NAME_launch's signature, without what ends it. */
static void print_signature(FILE *out, const struct tir *ir, tir_func f, const char *name, char (*names)[HEADER_NAME]) {
  struct tir_span params = ir->funcs.at[f].params;
  fprintf(out, "int %s_launch(const struct %s_module *ms_module, ", name, name);
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &ir->params.at[params.first + i];
    char type[32];
    fprintf(out, "%s %s, ", p->buffer ? "uint64_t" : header_type(ir->vars.at[p->var].type, type), names[i]);
  }
  fputs("uint64_t workspace, void *stream)", out);
}

char *launcher_header(const struct tir *ir, tir_func f, const char *name, const char *target,
                      const struct cuda_plan *plan, const struct tir_packing *cut) {
  struct header h;
  header_begin(&h, ir, f, name, target);
  if (cut && cut->count) header_describe_packing(h.out, cut, f, name, "_launch");
  fprintf(h.out,
          " * Buffers are addresses in the device's memory (CUdeviceptr), at multiples of %d bytes; they do not "
          "overlap. So is\n"
          " * workspace: %s_WORKSPACE bytes, or 0 where that is 0. A context is current. Each function returns a "
          "CUresult, 0:\n"
          " * done. Link with -lcuda. */\n",
          TIR_BASE_ALIGNMENT, name);
  header_declare(&h, name);
  fprintf(h.out,
          "#define %s_WORKSPACE %lluu\n\n"
          "struct %s_module {\n  void *module, *kernels[%u];\n};\n\n"
          "/* image: in memory, a cubin, or the text of PTX with a zero after it. */\n"
          "int %s_load(struct %s_module *out, const void *image);\n"
          "int %s_unload(struct %s_module *module);\n\n"
          "/* Puts the kernels into the stream's queue, in order. stream: a CUstream, or NULL. */\n",
          name, (unsigned long long)plan->workspace, name, plan->launch_count ? plan->launch_count : 1, name, name,
          name, name);
  print_signature(h.out, ir, f, name, h.names);
  fputs(";\n", h.out);
  return header_end(&h);
}

/* ---- The source ---- */

static void print_load(FILE *out, const char *name, const struct cuda_plan *plan) {
  fprintf(out,
          "int %s_load(struct %s_module *out, const void *image) {\n"
          "  int status = cuModuleLoadData(&out->module, image);\n",
          name, name);
  for (uint32_t i = 0; i < plan->launch_count; i++) {
    const struct cuda_launch *l = &plan->launches[i];
    fprintf(out, "  if (!status) status = cuModuleGetFunction(&out->kernels[%u], out->module, \"%s\");\n", i, l->name);
    if (l->shared_bytes > TIR_STATIC_SHARED_BYTES)
      fprintf(out, "  if (!status) status = cuFuncSetAttribute(out->kernels[%u], MAX_DYNAMIC_SHARED, %u);\n", i,
              l->shared_bytes);
  }
  fprintf(out,
          "  return status;\n}\n\n"
          "int %s_unload(struct %s_module *module) { return cuModuleUnload(module->module); }\n\n",
          name, name);
}

/* Integers are as wide as indices are to kernels, which read as many bytes as they take. */
static void print_operand(FILE *out, const struct tir *ir, tir_func f, const struct cuda_operand *o, uint32_t number,
                          char (*names)[HEADER_NAME]) {
  const struct tir_param *p = &ir->params.at[ir->funcs.at[f].params.first + o->parameter];
  if (o->kind == CUDA_WORKSPACE)
    fprintf(out, "  uint64_t ms_operand_%u = workspace + %llu;\n", number, (unsigned long long)o->offset);
  else if (o->kind == CUDA_SCALAR && tir_type_is_int(ir->vars.at[p->var].type))
    fprintf(out, "  int64_t ms_operand_%u = %s;\n", number, names[o->parameter]);
  else if (o->kind == CUDA_SCALAR) {
    char type[32];
    fprintf(out, "  %s ms_operand_%u = %s;\n", header_type(ir->vars.at[p->var].type, type), number,
            names[o->parameter]);
  } else
    fprintf(out, "  uint64_t ms_operand_%u = %s;\n", number, names[o->parameter]);
}

/* The tensor map of a TMA bulk tensor copy, made of the operand's address. */
static void print_map(FILE *out, const struct cuda_plan *plan, const struct cuda_operand *o, uint32_t number) {
  char name[40], at[40];
  if (!o->map) return;
  snprintf(name, sizeof name, "ms_map_%u", number);
  snprintf(at, sizeof at, "(uintptr_t)ms_operand_%u", number);
  fprintf(out, "  struct ms_tensor_map %s;\n", name);
  tensor_map_print(out, &plan->maps[o->map - 1], name, at, "return 1; /* CUDA_ERROR_INVALID_VALUE */");
}

static void print_call(FILE *out, const struct cuda_plan *plan, const struct cuda_launch *l, uint32_t number) {
  fprintf(out, "  void *ms_args_%u[] = {", number);
  for (uint32_t i = l->first; i < l->first + l->count; i++)
    fprintf(out, plan->operands[i].map ? "&ms_map_%u, " : "&ms_operand_%u, ", i);
  fprintf(out,
          "0};\n  if (!ms_status)\n    ms_status = cuLaunchKernel(ms_module->kernels[%u], %u, %u, %u, %u, %u, %u, %u, "
          "stream, "
          "ms_args_%u, 0);\n",
          number, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->shared_bytes, number);
}

static void print_head(FILE *out, const char *name, const struct jit_target *target, const char *header) {
  fprintf(out,
          "/* What launches the kernels of %s, made by msched for cuda -arch=%s. Its header says how it is called.\n"
          " * Compile with a C compiler, link with -lcuda. */\n"
          "#include \"%s\"\n\n"
          "#ifndef MSCHED_CUDA_DRIVER /* of its API (cuda.h): a CUresult is an int, handles are pointers */\n"
          "#define MSCHED_CUDA_DRIVER\n"
          "int cuModuleLoadData(void **module, const void *image);\n"
          "int cuModuleGetFunction(void **function, void *module, const char *name);\n"
          "int cuModuleUnload(void *module);\n"
          "int cuFuncSetAttribute(void *function, int attribute, int value);\n"
          "int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,\n"
          "                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **args,\n"
          "                   void **extra);\n"
          "enum { MAX_DYNAMIC_SHARED = 8 }; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */\n"
          "#endif\n\n",
          name, target->cpu, header);
}

char *launcher_source(const struct tir *ir, tir_func f, const char *name, const struct jit_target *target,
                      const struct cuda_plan *plan, const char *header) {
  assert(!*plan->refusal);
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (!out) abort();
  char(*names)[HEADER_NAME] = header_parameters(ir, ir->funcs.at[f].params, name);
  print_head(out, name, target, header);
  if (plan->map_count)
    fprintf(out,
            "#ifndef MSCHED_TENSOR_MAP /* CUtensorMap */\n#define MSCHED_TENSOR_MAP\n"
            "struct ms_tensor_map {\n  _Alignas(%d) unsigned char bytes[%d];\n};\n%s#endif\n\n",
            TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES, TENSOR_MAP_DECLARATION);
  print_load(out, name, plan);
  print_signature(out, ir, f, name, names);
  fputs(" {\n  int ms_status = 0;\n  (void)workspace;\n", out);
  for (uint32_t i = 0; i < plan->operand_count; i++) print_operand(out, ir, f, &plan->operands[i], i, names);
  for (uint32_t i = 0; i < plan->operand_count; i++) print_map(out, plan, &plan->operands[i], i);
  for (uint32_t i = 0; i < plan->launch_count; i++) print_call(out, plan, &plan->launches[i], i);
  fputs("  return ms_status;\n}\n", out);
  free(names);
  fclose(out);
  return text;
}
