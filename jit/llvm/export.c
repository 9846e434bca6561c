/* A function's files for CPUs: objects, shared libraries, C source, assembly, LLVM's text, C headers. */
#define _GNU_SOURCE
#include "jit/backend.h"
#include "jit/c/emit_c.h"
#include "jit/export/header.h"
#include "jit/host/file.h"
#include "jit/host/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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
static bool write_form(const struct jit_exported *x, const char *form, const char *path, ms_error *err) {
  LLVMTargetMachineRef machine = jit_target_machine(x->target, err);
  if (!machine) return false;
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module =
      jit_module(context, x->lowered, x->f, x->name, x->beside, x->plain, machine, x->target, x->options, NULL, err);
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

/* A host may ignore SIGCHLD, or wait for all children itself, and nobody knows a status then: the shell writes it. CC
 * may be a command with options. */
static const char link_script[] = "set -- ${CC:-cc} \"$@\"\n"
                                  "command -v \"$1\" >/dev/null || { echo absent; exit; }\n"
                                  "\"$@\" >&2 && echo linked\n";

/* What the shell writes, up to size - 1 bytes. */
static void read_answer(int from, char *out, size_t size) {
  size_t length = 0;
  for (ssize_t got = 1; got && length + 1 < size;) {
    got = read(from, out + length, size - 1 - length);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) length += (size_t)got;
  }
  out[length] = 0;
}

/* Paths that begin with - or @ are no options, nor files of options, for a compiler. */
static void in_folder(const char *path, char *out, size_t size) {
  snprintf(out, size, "%s%s", *path == '/' ? "" : "./", path);
}

static bool run_linker(const char *object, const char *path, ms_error *err) {
  enum { MOST_PATH = 4204 };
  const char *driver = getenv("CC");
  char from[MOST_PATH], to[MOST_PATH], answer[16];
  in_folder(object, from, sizeof from);
  in_folder(path, to, sizeof to);
  char *words[] = {"/bin/sh", "-c", (char *)link_script, "sh", "-shared", "-o", to, from, "-lgomp", "-lm",
                   "-ldl",    NULL};
  static const int as[] = {STDOUT_FILENO, -1};
  if (!driver || !*driver) driver = "cc";
  int ends[2];
  pid_t child = 0;
  if (pipe2(ends, O_CLOEXEC))
    return ms_fail(err, MS_IO, "%s: no pipe for the linker: %s; %s", path, strerror(errno), process_remedy(errno));
  int failed = process_spawn(words[0], words, environ, ends[1], as, &child);
  descriptor_close(&ends[1]);
  if (!failed) read_answer(ends[0], answer, sizeof answer);
  descriptor_close(&ends[0]);
  if (failed)
    return ms_fail(err, MS_IO, "%s: cannot start /bin/sh: %s; %s", path, strerror(failed), process_remedy(failed));
  process_wait(child, NULL, 0);
  if (!strcmp(answer, "absent\n"))
    return ms_fail(err, MS_IO, "%s: there is no linker `%s`; install a C compiler, or export .o", path, driver);
  return !strcmp(answer, "linked\n") || ms_fail(err, MS_IO, "%s: the linker `%s` failed", path, driver);
}

static bool write_library(const struct jit_exported *x, const char *path, ms_error *err) {
  char object[4200];
  if (snprintf(object, sizeof object, "%s.%ld.o", path, (long)getpid()) >= (int)sizeof object)
    return ms_fail(err, MS_IO, "%s: the path is too long", path);
  int kept = jit_temporary(object);
  bool written = write_form(x, ".so", object, err);
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

static bool write_source(const struct jit_exported *x, const char *path, ms_error *err) {
  char *text = emit_c_source(&emit_c_gnu, x->lowered, x->f, x->name, x->beside, x->target, x->options, NULL, err);
  bool ok = text && jit_write_file(path, text, strlen(text), err);
  free(text);
  return ok;
}

/* A function that does not compile has none. */
static bool write_header(const struct jit_exported *x, const char *path, ms_error *err) {
  struct jit_code code = {.target = *x->target};
  char target[JIT_TARGET_TEXT];
  snprintf(code.name, sizeof code.name, "%s", x->name);
  if (!llvm_compile(x->lowered, x->f, x->beside, x->options, NULL, &code, err)) return false;
  free(code.object);
  llvm_text(x->target, target, sizeof target);
  uint64_t workspace = tir_workspace_of(x->lowered, x->f).bytes;
  uint64_t plain = x->plain ? tir_workspace_of(x->plain->lowered, x->plain->f).bytes : 0;
  if (plain > workspace) workspace = plain;
  uint64_t pack_workspace = x->beside ? tir_workspace_of(x->beside->lowered, x->beside->f).bytes : 0;
  char *text = header_of_function(x->ir, x->f, x->name, target, workspace, x->cut, pack_workspace);
  bool ok = text && jit_write_file(path, text, strlen(text), err);
  free(text);
  return ok;
}

/* ---- All of them ---- */

const char *const llvm_forms[] = {".o", ".so", ".c", ".h", ".ll", ".s", NULL};

/* C has no name for a machine's instructions. */
void llvm_narrow(struct jit_target *target, const char *form) {
  if (!strcmp(form, ".c")) {
    target->avx512_vnni = target->tile_bytes = target->tile_bfloats = target->tile_halves = false;
    target->dots = 0;
  }
}

bool llvm_withhold(const struct tir *lowered, tir_func f, struct jit_target *target) {
  bool uses = false;
  tir_stmt top = lowered->funcs.at[f].body;
  for (tir_stmt s = top; s && !uses; s = tir_next(lowered, s, top))
    uses = tir_is_tile_product(tir_instruction_of(lowered, s)) || tir_instruction_of(lowered, s) == TIR_TILEZERO;
  if (uses) target->tile_bytes = target->tile_bfloats = target->tile_halves = false;
  return uses;
}

bool llvm_export(const struct jit_exported *x, const char *form, const char *path, ms_error *err) {
  if (!strcmp(form, ".so")) return write_library(x, path, err);
  if (!strcmp(form, ".c")) return write_source(x, path, err);
  if (!strcmp(form, ".h")) return write_header(x, path, err);
  return write_form(x, form, path, err);
}
