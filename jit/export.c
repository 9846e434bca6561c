/* Writing a function to files: its name there, and LLVM's forms: objects, shared libraries, C source, assembly, LLVM's text,
 * C headers. */
#include "backend.h"
#include "emit_c.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <llvm-c/Core.h>

extern char **environ;

/* ---- Files: written beside their place and moved there, so that a failure leaves what was ---- */

bool jit_write_file(const char *path, const void *bytes, size_t size, ms_error *err) {
  assert(path && (bytes || !size));
  char temporary[4200];
  if (snprintf(temporary, sizeof temporary, "%s.%ld.part", path, (long)getpid()) >= (int)sizeof temporary)
    return ms_fail(err, MS_IO, "%s: the path is too long", path);
  FILE *file = fopen(temporary, "wb");
  bool ok = file && fwrite(bytes, 1, size, file) == size;
  if (file && fclose(file) != 0) ok = false;
  if (ok && rename(temporary, path) == 0) return true;
  int reason = errno;
  unlink(temporary);
  return ms_fail(err, MS_IO, "%s: %s", path, strerror(reason));
}

/* ---- The exported name ---- */

enum { NAME_SIZE = 256 };

/* The function's own where a C program can have it; else the file's, as an identifier. */
static void exported_name(const struct tir *ir, tir_func f, const char *path, char out[NAME_SIZE]) {
  const char *own = tir_text(ir, ir->funcs.at[f].name), *slash = strrchr(path, '/');
  emit_c_identifier(own, out, NAME_SIZE);
  if (!strcmp(own, out) && !emit_c_is_taken(own)) return;
  char base[NAME_SIZE];
  snprintf(base, sizeof base, "%s", slash ? slash + 1 : path);
  if (strrchr(base, '.')) *strrchr(base, '.') = 0;
  emit_c_identifier(base, out, NAME_SIZE - 16);
  if (emit_c_is_taken(out)) strcat(out, "_kernel");
}

/* ---- Text and objects ---- */

/* libgomp's threads live on when a library is closed: when the last that needs libgomp is, its code would go from under
 * them. So a library that has parallel loops pins it, where it is loaded: dlopen("libgomp.so.1", now, never unload). */
static void pin_libgomp(LLVMModuleRef module) {
  if (!LLVMGetNamedFunction(module, "GOMP_parallel")) return;
  LLVMContextRef context = LLVMGetModuleContext(module);
  LLVMTypeRef pointer = LLVMPointerTypeInContext(context, 0), i32 = LLVMInt32TypeInContext(context);
  LLVMTypeRef nothing = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, false);
  LLVMTypeRef signature = LLVMFunctionType(pointer, (LLVMTypeRef[]){pointer, i32}, 2, false);
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
  LLVMValueRef pin = LLVMAddFunction(module, "pin.libgomp", nothing);
  LLVMSetLinkage(pin, LLVMInternalLinkage);
  LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, pin, "entry"));
  LLVMValueRef args[] = {LLVMBuildGlobalStringPtr(builder, "libgomp.so.1", "libgomp.name"),
                         LLVMConstInt(i32, RTLD_NOW | RTLD_NODELETE, false)};
  LLVMBuildCall2(builder, signature, LLVMAddFunction(module, "dlopen", signature), args, 2, "");
  LLVMBuildRetVoid(builder);
  LLVMDisposeBuilder(builder);
  LLVMValueRef fields[] = {LLVMConstInt(i32, 65535, false), pin, LLVMConstNull(pointer)};
  LLVMValueRef entry = LLVMConstStructInContext(context, fields, 3, false);
  LLVMValueRef list = LLVMConstArray2(LLVMTypeOf(entry), &entry, 1);
  LLVMValueRef constructors = LLVMAddGlobal(module, LLVMTypeOf(list), "llvm.global_ctors");
  LLVMSetLinkage(constructors, LLVMAppendingLinkage);
  LLVMSetInitializer(constructors, list);
}

/* The object of a library, ".so", is an object that pins. */
static bool write_form(const struct tir *lowered, tir_func f, const char *name, const struct jit_target *target,
                       const struct jit_options *options, const char *form, const char *path, ms_error *err) {
  LLVMTargetMachineRef machine = jit_target_machine(target, err);
  if (!machine) return false;
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = jit_module(context, lowered, f, name, machine, target, options, NULL, err);
  bool ok = module != NULL;
  if (ok && !strcmp(form, ".ll")) {
    char *text = LLVMPrintModuleToString(module);
    ok = jit_write_file(path, text, strlen(text), err);
    LLVMDisposeMessage(text);
  } else if (ok) {
    LLVMCodeGenFileType type = !strcmp(form, ".s") ? LLVMAssemblyFile : LLVMObjectFile;
    LLVMMemoryBufferRef out = NULL;
    char *message = NULL;
    if (!strcmp(form, ".so")) pin_libgomp(module);
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, &message, &out))
      ok = ms_fail(err, MS_NOT_COMPILABLE, "LLVM: %s", message);
    else
      ok = jit_write_file(path, LLVMGetBufferStart(out), LLVMGetBufferSize(out), err);
    if (out) LLVMDisposeMemoryBuffer(out);
    LLVMDisposeMessage(message);
  }
  if (module) LLVMDisposeModule(module);
  LLVMContextDispose(context);
  LLVMDisposeTargetMachine(machine);
  return ok;
}

/* ---- Shared libraries: the system's linker through its compiler driver ---- */

static bool run_linker(const char *object, const char *path, ms_error *err) {
  const char *driver = getenv("CC");
  char *args[] = {(char *)(driver && *driver ? driver : "cc"),
                  "-shared",
                  "-o",
                  (char *)path,
                  (char *)object,
                  "-lgomp",
                  "-lm",
                  "-ldl",
                  NULL};
  pid_t child;
  int status, failed = posix_spawnp(&child, args[0], NULL, NULL, args, environ);
  if (failed)
    return ms_fail(err, MS_IO, "%s: cannot start the linker `%s`: %s; install a C compiler, or export .o", path,
                   args[0], strerror(failed));
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  return ms_fail(err, MS_IO, "%s: the linker `%s` failed", path, args[0]);
}

static bool write_library(const struct tir *lowered, tir_func f, const char *name, const struct jit_target *target,
                          const struct jit_options *options, const char *path, ms_error *err) {
  char object[4200];
  if (snprintf(object, sizeof object, "%s.%ld.o", path, (long)getpid()) >= (int)sizeof object)
    return ms_fail(err, MS_IO, "%s: the path is too long", path);
  bool ok = write_form(lowered, f, name, target, options, ".so", object, err) && run_linker(object, path, err);
  unlink(object);
  return ok;
}

/* ---- C source ---- */

static bool write_source(const struct tir *lowered, tir_func f, const char *name, const struct jit_target *target,
                         const struct jit_options *options, const char *path, ms_error *err) {
  char *text = jit_emit_c(lowered, f, name, target, options, NULL, err);
  bool ok = text && jit_write_file(path, text, strlen(text), err);
  free(text);
  return ok;
}

/* ---- C headers ---- */

static const char *c_type(tir_type type, char out[32]) {
  int bits = tir_type_bits(type);
  switch (tir_type_code(type)) {
  case TIR_FLOAT: return bits == 64 ? "double" : bits == 32 ? "float" : "uint16_t";
  case TIR_BFLOAT: return "uint16_t";
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

static bool is_free(const char *name, const char *function, char (*names)[NAME_SIZE], uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return false;
  return !emit_c_is_reserved(name) && strcmp(name, function) != 0;
}

/* The parameters' names as C's: identifiers, no keywords, each once. Owned by the caller. */
static char (*parameter_names(const struct tir *ir, struct tir_span params, const char *function))[NAME_SIZE] {
  char(*names)[NAME_SIZE] = calloc(params.count + 1, sizeof *names);
  if (!names) abort();
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &ir->params.at[params.first + i];
    char own[NAME_SIZE], base[NAME_SIZE - 16];
    if (p->buffer)
      snprintf(own, sizeof own, "%s", tir_text(ir, tir_buffer_at(ir, p->buffer)->name));
    else
      tir_name_render(ir, ir->vars.at[p->var].name, own, sizeof own);
    emit_c_identifier(own, base, sizeof base);
    snprintf(names[i], NAME_SIZE, "%s", base);
    for (unsigned n = 2; !is_free(names[i], function, names, i); n++) snprintf(names[i], NAME_SIZE, "%s_%u", base, n);
  }
  return names;
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
  fprintf(out, "], row-major%s\n",
          tir_type_bits(b->type) == 16 && tir_type_is_float(b->type) ? ", as 16-bit patterns" : "");
}

static void print_typed(FILE *out, const struct tir *ir, tir_func f, const char *name, char (*names)[NAME_SIZE]) {
  struct tir_span params = ir->funcs.at[f].params;
  fprintf(out, "static inline int32_t %s_run(", name);
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &ir->params.at[params.first + i];
    char type[32];
    if (p->buffer)
      fprintf(out, "%s%s *%s, ", is_written(ir, f, p->buffer) ? "" : "const ",
              c_type(tir_buffer_at(ir, p->buffer)->type, type), names[i]);
    else
      fprintf(out, "%s %s, ", c_type(ir->vars.at[p->var].type, type), names[i]);
  }
  fprintf(out, "void *workspace) {\n  void *args[] = {");
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &ir->params.at[params.first + i];
    fprintf(out, "%s(void *)%s%s", i ? ", " : "", p->buffer ? "" : "&", names[i]);
  }
  fprintf(out, "%s};\n  return %s(args, workspace);\n}\n", params.count ? "" : "(void *)0", name);
}

static bool write_header(const struct tir *ir, tir_func f, const char *name, const struct jit_target *target,
                         uint64_t workspace, const char *path, ms_error *err) {
  char *text = NULL, target_text[JIT_TARGET_TEXT], guard[300];
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (!out) abort();
  jit_target_text(target, target_text, sizeof target_text);
  snprintf(guard, sizeof guard, "MSCHED_KERNEL_%s_H", name);
  for (char *c = guard; *c; c++) *c = (char)toupper((unsigned char)*c);
  fprintf(out, "/* %s, made by msched for %s.\n", name, target_text);
  struct tir_span params = ir->funcs.at[f].params;
  char(*names)[NAME_SIZE] = parameter_names(ir, params, name);
  for (uint32_t i = 0; i < params.count; i++) describe_parameter(out, ir, &ir->params.at[params.first + i], names[i]);
  fprintf(out,
          " * Buffers do not overlap; each is aligned to its elements. workspace: %s_WORKSPACE bytes aligned to 64, or "
          "NULL\n"
          " * when that is 0. Returns 0; 1 when an assertion of the function failed; 2 when there are no AMX tiles. "
          "Link with "
          "-lgomp -lm. */\n",
          name);
  fprintf(out, "#ifndef %s\n#define %s\n\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n", guard,
          guard);
  fprintf(out, "#define %s_WORKSPACE %lluu\n\n", name, (unsigned long long)workspace);
  fprintf(out, "/* args: the address of each argument, in order. */\nint32_t %s(void **args, void *workspace);\n\n",
          name);
  print_typed(out, ir, f, name, names);
  free(names);
  fprintf(out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
  fclose(out);
  bool ok = jit_write_file(path, text, size, err);
  free(text);
  return ok;
}

/* ---- LLVM's forms ---- */

const char *const llvm_forms[] = {".o", ".so", ".c", ".h", ".ll", ".s", NULL};

static bool write_lowered(const struct tir *lowered, tir_func f, const char *name, const struct jit_target *target,
                          const struct jit_options *options, const char *form, const char *path, ms_error *err) {
  if (!strcmp(form, ".so")) return write_library(lowered, f, name, target, options, path, err);
  if (!strcmp(form, ".c")) return write_source(lowered, f, name, target, options, path, err);
  return write_form(lowered, f, name, target, options, form, path, err);
}

bool llvm_export(const struct tir *ir, tir_func f, const struct jit_target *target, const struct jit_options *options,
                 const char *name, const char *form, const char *path, ms_error *err) {
  if (!strcmp(form, ".h")) {
    struct jit_code *code = jit_compile(ir, f, target, options, err);
    bool ok = code && write_header(ir, f, name, target, jit_code_workspace(code), path, err);
    jit_code_free(code);
    return ok;
  }
  struct jit_target plain = *target; /* C has no name for a machine's instructions */
  if (!strcmp(form, ".c")) plain.avx512_vnni = plain.amx_int8 = plain.amx_bf16 = false;
  struct tir *lowered = jit_lowered(ir, f, &plain, options, NULL, err);
  bool ok = lowered && write_lowered(lowered, f, name, target, options, form, path, err);
  if (lowered) tir_free(lowered);
  return ok;
}

/* ---- All forms ---- */

static bool check_form(const char *suffix, const struct jit_target *target, const char *path, ms_error *err) {
  char known[64] = "";
  for (const char *const *form = jit_backend_of(target)->forms; *form; form++) {
    if (suffix && !strcmp(*form, suffix)) return true;
    strcat(strcat(known, *known ? " " : ""), *form);
  }
  return ms_fail(err, MS_INVALID_ARGUMENT, "%s: the suffix says the form: %s", path, known);
}

bool jit_export(const struct tir *ir, tir_func f, const struct jit_target *target, const struct jit_options *options,
                const char *path, ms_error *err) {
  assert(tir_is_func(ir, f) && target && path);
  const char *suffix = strrchr(path, '.');
  char name[NAME_SIZE];
  if (!check_form(suffix, target, path, err)) return false;
  exported_name(ir, f, path, name);
  return jit_backend_of(target)->export(ir, f, target, options, name, suffix, path, err);
}
