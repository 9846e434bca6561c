/* A function's files for CPUs: objects, shared libraries, C source, assembly, LLVM's text, C headers. */
#include "jit/backend.h"
#include "jit/c/emit_c.h"
#include "jit/header.h"
#include "jit/host/process.h"

#include <dlfcn.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

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
static bool write_form(const struct tir *lowered, tir_func f, const char *name, const struct jit_beside *beside,
                       const struct jit_target *target, const struct jit_options *options, const char *form,
                       const char *path, ms_error *err) {
  LLVMTargetMachineRef machine = jit_target_machine(target, err);
  if (!machine) return false;
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = jit_module(context, lowered, f, name, beside, machine, target, options, NULL, err);
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
  if (process_wait(child, &status, 0) && WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  return ms_fail(err, MS_IO, "%s: the linker `%s` failed", path, args[0]);
}

static bool write_library(const struct tir *lowered, tir_func f, const char *name, const struct jit_beside *beside,
                          const struct jit_target *target, const struct jit_options *options, const char *path,
                          ms_error *err) {
  char object[4200];
  if (snprintf(object, sizeof object, "%s.%ld.o", path, (long)getpid()) >= (int)sizeof object)
    return ms_fail(err, MS_IO, "%s: the path is too long", path);
  int kept = jit_temporary(object);
  bool written = write_form(lowered, f, name, beside, target, options, ".so", object, err);
  size_t length = strlen(object);
  if (!written && err && !strncmp(err->message, object, length)) { /* the user knows of no object */
    char why[sizeof err->message];
    snprintf(why, sizeof why, "%s", err->message + length);
    ms_fail(err, err->code, "%s%s", path, why);
  }
  bool ok = written && run_linker(object, path, err);
  unlink(object);
  jit_temporary_end(kept);
  return ok;
}

/* ---- C source ---- */

static bool write_source(const struct tir *lowered, tir_func f, const char *name, const struct jit_beside *beside,
                         const struct jit_target *target, const struct jit_options *options, const char *path,
                         ms_error *err) {
  char *text = jit_emit_c_with(lowered, f, name, beside, target, options, NULL, err);
  bool ok = text && jit_write_file(path, text, strlen(text), err);
  free(text);
  return ok;
}

static bool write_header(const struct tir *ir, tir_func f, const char *name, const struct tir_packing *cut,
                         const struct jit_target *target, const struct jit_options *options, const char *path,
                         ms_error *err) {
  struct jit_code *code = jit_compile(ir, f, target, options, err);
  char *text =
      code ? header_of_function(ir, f, name, target, jit_code_workspace(code), cut, code->packing.workspace.bytes)
           : NULL;
  bool ok = text && jit_write_file(path, text, strlen(text), err);
  jit_code_free(code);
  free(text);
  return ok;
}

/* ---- All of them ---- */

const char *const llvm_forms[] = {".o", ".so", ".c", ".h", ".ll", ".s", NULL};

static bool write_lowered(const struct tir *lowered, tir_func f, const char *name, const struct jit_beside *beside,
                          const struct jit_target *target, const struct jit_options *options, const char *form,
                          const char *path, ms_error *err) {
  if (!strcmp(form, ".so")) return write_library(lowered, f, name, beside, target, options, path, err);
  if (!strcmp(form, ".c")) return write_source(lowered, f, name, beside, target, options, path, err);
  return write_form(lowered, f, name, beside, target, options, form, path, err);
}

/* What is left of the function where its constants are packed ahead, with what packs them. */
static bool write_cut(const struct tir *ir, tir_func f, const struct tir_packing *cut, const struct jit_target *target,
                      const struct jit_options *options, const char *name, const char *form, const char *path,
                      ms_error *err) {
  char pack_name[JIT_PACK_NAME];
  struct tir *lowered = jit_lowered(cut->count ? cut->kernel : ir, f, target, options, NULL, NULL, err), *pack = NULL;
  bool ok = lowered != NULL;
  if (ok && cut->count) ok = (pack = jit_lowered(cut->pack, f, target, options, NULL, NULL, err)) != NULL;
  jit_pack_name(name, pack_name);
  const struct jit_beside beside = {pack, f, pack_name};
  ok = ok && write_lowered(lowered, f, name, pack ? &beside : NULL, target, options, form, path, err);
  if (lowered) tir_free(lowered);
  if (pack) tir_free(pack);
  return ok;
}

bool llvm_export(const struct tir *ir, tir_func f, const struct jit_target *target, const struct jit_options *options,
                 const char *name, const char *form, const char *path, ms_error *err) {
  struct jit_target plain = *target; /* C has no name for a machine's instructions */
  struct tir_packing cut;
  if (!jit_split(ir, f, target, &cut, err)) return false;
  if (!strcmp(form, ".c")) plain.avx512_vnni = plain.amx_int8 = plain.amx_bf16 = false, plain.dots = 0;
  bool ok = !strcmp(form, ".h") ? write_header(ir, f, name, &cut, target, options, path, err)
                                : write_cut(ir, f, &cut, &plain, options, name, form, path, err);
  tir_packing_free(&cut);
  return ok;
}
