/* An NVRTC that spoils kernels: some of those that it is given get a mistake that a device really makes of, and another
 * NVRTC compiles them, so that tuning meets faults of the driver's own on a real device (long/process/faults.sh). The
 * product knows of none.
 *   SPOIL_NVRTC   the NVRTC that compiles; unset: the one that is installed
 *   SPOIL_PART    `5 2`: sources that, as a number, leave 2 by 5 are spoiled
 *   SPOIL_FAULTS  with commas, of which each gets one by its source: address, misaligned, instruction, resources,
 *                 memory, hang, wrong, nan, past
 * What kernels write is taken to be their last parameter. Kernels that measure a peak, compute what is expected or
 * compare are left as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

/* ---- The other ---- */

static void *other(const char *symbol) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  static void *library;
  const char *own = setting("SPOIL_NVRTC");
  if (!library && *own) library = dlopen(own, RTLD_NOW | RTLD_LOCAL);
  for (size_t i = 0; !*own && !library && i < sizeof names / sizeof *names; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  void *at = library ? dlsym(library, symbol) : NULL;
  if (!at) fprintf(stderr, "spoil: %s: there is no NVRTC that has it\n", symbol), abort();
  return at;
}

#define FORWARD(name, parameters, arguments)                                                                           \
  int name parameters {                                                                                                \
    int(*to) parameters;                                                                                               \
    void *at = other(#name);                                                                                           \
    memcpy(&to, &at, sizeof at);                                                                                       \
    return to arguments;                                                                                               \
  }
FORWARD(nvrtcVersion, (int *major, int *minor), (major, minor))
FORWARD(nvrtcGetNumSupportedArchs, (int *count), (count))
FORWARD(nvrtcGetSupportedArchs, (int *list), (list))
FORWARD(nvrtcCompileProgram, (void *program, int count, const char *const *options), (program, count, options))
FORWARD(nvrtcGetProgramLogSize, (void *program, size_t *bytes), (program, bytes))
FORWARD(nvrtcGetProgramLog, (void *program, char *text), (program, text))
FORWARD(nvrtcGetPTXSize, (void *program, size_t *bytes), (program, bytes))
FORWARD(nvrtcGetPTX, (void *program, char *text), (program, text))
FORWARD(nvrtcGetCUBINSize, (void *program, size_t *bytes), (program, bytes))
FORWARD(nvrtcGetCUBIN, (void *program, char *bytes), (program, bytes))
FORWARD(nvrtcDestroyProgram, (void **program), (program))

const char *nvrtcGetErrorString(int result) {
  const char *(*to)(int result);
  void *at = other("nvrtcGetErrorString");
  memcpy(&to, &at, sizeof at);
  return to(result);
}

/* ---- Spoiling ---- */

/* What stands first in the kernel: RESULT is its last parameter. */
static const struct fault {
  const char *name, *text;
} faults[] = {
    {"address", "*(volatile int *)16ull = 1;"},
    {"misaligned", "{ int one = 1; asm volatile(\"\" : \"+r\"(one)); *(volatile int *)((char *)RESULT + one) = 1; }"},
    {"instruction", "__trap();"},
    {"resources", ""}, /* compiled for blocks of one thread */
    {"memory", "volatile char large[500000]; large[threadIdx.x] = 1;"},
    {"hang", "for (volatile int on = 1; on;) {}"},
    {"wrong", "if (blockIdx.x + blockIdx.y + blockIdx.z == 0) return;"},
    {"nan", "if (blockIdx.x + blockIdx.y + blockIdx.z == 0) { *(volatile unsigned *)RESULT = 0x7fffffffu; return; }"},
    {"past", "((volatile int *)RESULT)[-1] = 1;"},
};

/* A number that stands for the source: FNV-1a. */
static uint64_t hash_of(const char *source) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char *c = source; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
  return hash;
}

/* The fault that a source gets; NULL: none. */
static const struct fault *fault_of(const char *source) {
  const char *list = setting("SPOIL_FAULTS"), *words[16];
  unsigned of, rest;
  size_t count = 0;
  uint64_t number = hash_of(source);
  if (sscanf(setting("SPOIL_PART"), "%u %u", &of, &rest) != 2 || !of || number % of != rest ||
      strstr(source, " peak") || strstr(source, "reference_of_") || strstr(source, "ms_check"))
    return NULL;
  for (const char *at = *list ? list : NULL; at && count < 16; at = strchr(at, ',')) words[count++] = at += *at == ',';
  const char *word = count ? words[number / of % count] : "";
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (strlen(faults[i].name) == strcspn(word, ",") && !strncmp(word, faults[i].name, strlen(faults[i].name)))
      return &faults[i];
  if (*word) fprintf(stderr, "spoil: there is no fault `%s`\n", word), abort();
  return NULL;
}

/* The fault's text, with the name of the last parameter of the kernel whose head is this. */
static void write_fault(FILE *out, const struct fault *fault, const char *head, const char *end) {
  const char *name = end;
  while (name > head && name[-1] != ')') name--;
  const char *last = --name;
  while (name > head && name[-1] != ' ' && name[-1] != '*') name--;
  for (const char *at = fault->text, *next; *at; at = next) {
    next = strstr(at, "RESULT");
    if (!next) {
      fputs(at, out);
      return;
    }
    fprintf(out, "%.*s%.*s", (int)(next - at), at, (int)(last - name), name);
    next += strlen("RESULT");
  }
}

/* The source with the fault in each of its kernels; owned by the caller. */
static char *spoiled(const char *source, const struct fault *fault) {
  static const char bounds[] = "__launch_bounds__(";
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  if (!out) abort();
  for (const char *at = source, *next; *at; at = next) {
    const char *kernel = strstr(at, "__global__ void "), *head = kernel ? strstr(kernel, bounds) : NULL;
    next = head ? strchr(head, '{') : NULL;
    if (!next) {
      fputs(at, out);
      break;
    }
    head += strlen(bounds);
    fprintf(out, "%.*s", (int)(head - at), at);
    if (!strcmp(fault->name, "resources")) fputc('1', out), head = strchr(head, ')');
    fprintf(out, "%.*s{\n  ", (int)(next - head), head);
    write_fault(out, fault, head, next);
    fputc('\n', out);
    next++;
  }
  fclose(out);
  return text;
}

int nvrtcCreateProgram(void **program, const char *source, const char *name, int headers, const char *const *texts,
                       const char *const *names) {
  int (*to)(void **program, const char *source, const char *name, int headers, const char *const *texts,
            const char *const *names);
  void *at = other("nvrtcCreateProgram");
  const struct fault *fault = fault_of(source);
  char *text = fault ? spoiled(source, fault) : NULL;
  memcpy(&to, &at, sizeof at);
  int result = to(program, text ? text : source, name, headers, texts, names);
  free(text);
  return result;
}
