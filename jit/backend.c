/* The table of backends, and what is the same for all. */
#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct jit_backend *const backends[] = {&llvm_backend, &cuda_backend};
enum { COUNT = sizeof backends / sizeof *backends };

const struct jit_backend *jit_backend_of(const struct jit_target *target) {
  for (int i = 0; i < COUNT; i++)
    if (!strcmp(backends[i]->kind, target->kind)) return backends[i];
  assert(!"a target is of a kind");
  return NULL;
}

/* ---- Targets ---- */

/* A text that begins with no kind is one of LLVM's. */
static const struct jit_backend *backend_of_text(const char *text) {
  text += strspn(text, " \t\n");
  size_t length = strcspn(text, " \t\n");
  for (int i = 0; i < COUNT; i++)
    if (strlen(backends[i]->kind) == length && !strncmp(text, backends[i]->kind, length)) return backends[i];
  return &llvm_backend;
}

bool jit_target_parse(const char *text, struct jit_target *out, ms_error *err) {
  char words[JIT_TARGET_TEXT];
  if (strlen(text) >= sizeof words) return ms_fail(err, MS_UNKNOWN_TARGET, "target: the text is too long");
  strcpy(words, text);
  const struct jit_backend *backend = backend_of_text(text);
  struct jit_target target = {0};
  snprintf(target.kind, sizeof target.kind, "%s", backend->kind);
  if (!backend->parse(words, &target, err)) return false;
  *out = target;
  return true;
}

void jit_target_text(const struct jit_target *target, char *out, size_t size) {
  jit_backend_of(target)->text(target, out, size);
}

bool jit_target_reference(const struct jit_target *target, struct jit_target *out, ms_error *err) {
  const char *text = jit_backend_of(target)->reference;
  if (text) return jit_target_parse(text, out, err);
  *out = *target;
  return true;
}

uint32_t jit_target_numbers(const struct jit_target *target, struct jit_number out[JIT_MOST_NUMBERS]) {
  return jit_backend_of(target)->numbers(target, out);
}

bool jit_target_runs_here(const struct jit_target *target, ms_error *err) {
  return jit_backend_of(target)->runs_here(target, err);
}

struct tir_lower_options jit_lower_options(const struct jit_target *target) {
  return jit_backend_of(target)->lower(target);
}

/* ---- Code and kernels ---- */

char *jit_emit_c(const struct tir *ir, tir_func f, const char *name, const struct jit_target *target,
                 const struct jit_options *options, struct c_kernels *kernels, ms_error *err) {
  return emit_c_source(jit_backend_of(target)->dialect, ir, f, name, NULL, target, options, kernels, err);
}

bool jit_code_assemble(struct jit_code *code, ms_error *err) {
  const struct jit_backend *backend = jit_backend_of(&code->target);
  return !backend->assemble || backend->assemble(code, err);
}

void jit_code_free(struct jit_code *code) {
  if (!code) return;
  const struct jit_backend *backend = jit_backend_of(&code->target);
  free(code->object);
  free(code->kernels.at);
  if (backend->forget) backend->forget(code);
  free(code);
}

struct jit_kernel *jit_load_on(const struct jit_code *code, struct jit_device *device, bool perturbed, ms_error *err) {
  const struct jit_backend *backend = jit_backend_of(&code->target);
  struct jit_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel) abort();
  *kernel =
      (struct jit_kernel){.backend = backend, .device = device, .workspace = code->workspace, .packing = code->packing};
  assert(!perturbed || backend->load_perturbed);
  if ((perturbed ? backend->load_perturbed : backend->load)(code, kernel, err)) return kernel;
  free(kernel);
  return NULL;
}

static struct jit_kernel *load_code(const struct jit_code *code, bool perturbed, ms_error *err) {
  struct jit_device *device;
  if (!jit_target_runs_here(&code->target, err) || !jit_backend_of(&code->target)->open(&code->target, 0, &device, err))
    return NULL;
  return jit_load_on(code, device, perturbed, err);
}

struct jit_kernel *jit_load(const struct jit_code *code, ms_error *err) {
  assert(code);
  return load_code(code, false, err);
}
struct jit_kernel *jit_load_perturbed(const struct jit_code *code, ms_error *err) {
  assert(code);
  return load_code(code, true, err);
}

void jit_kernel_free(struct jit_kernel *kernel) {
  if (!kernel) return;
  kernel->backend->unload(kernel);
  free(kernel);
}

jit_entry jit_kernel_entry(const struct jit_kernel *kernel) { return kernel->entry; }
size_t jit_kernel_workspace(const struct jit_kernel *kernel) { return kernel->workspace.bytes; }

void jit_running_turn(void *data, bool begins, struct jit_conditions *out) {
  const struct jit_kernel *kernel = ((const struct jit_running *)data)->kernel;
  *out = (struct jit_conditions){0};
  if (kernel->backend->turn) kernel->backend->turn(kernel->device, begins, out);
}

double jit_sample(void *data, uint32_t calls) {
  const struct jit_running *r = data;
  return r->kernel->backend->sample(r->kernel, r->args, r->workspace, calls, r->stop, r->err);
}
