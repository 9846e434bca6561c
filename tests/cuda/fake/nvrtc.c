/* NVRTC without CUDA: source becomes a library for this CPU, by g++ and the shim (../shim.h), in the folder that
 * FAKE_NVRTC_FOLDER names. A cubin is a line that says the version and the library's path: what the fake driver loads.
 *   FAKE_NVRTC_VERSION    of CUDA, as 13000
 *   FAKE_NVRTC_ARCHS      what it knows, as `80 86 90`, which it is unless said
 *   FAKE_NVRTC_REGISTERS  that a thread takes, as its log has it: 32 unless said
 *   FAKE_NVRTC_SPILLS     kernels of so many programs, the first of a process, spill 16 bytes a thread
 *   FAKE_NVRTC_SERIALIZED of so many, products of tensor units wait for one another
 *   FAKE_NVRTC_WRITES     so many bytes to memory that counts as a file
 *   FAKE_NVRTC_KEEPS      a library is kept by its source, and taken for the same source again */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct program {
  char *source, log[4000], cubin[1100];
};

static int version(void) {
  const char *said = getenv("FAKE_NVRTC_VERSION");
  return said && *said ? atoi(said) : 13000;
}

int nvrtcVersion(int *major, int *minor) {
  *major = version() / 1000, *minor = version() % 1000 / 10;
  return 0;
}

int nvrtcCreateProgram(void **program, const char *source, const char *name, int headers, const char *const *texts,
                       const char *const *names) {
  (void)name, (void)headers, (void)texts, (void)names;
  struct program *p = calloc(1, sizeof *p);
  if (!p || !(p->source = strdup(source))) abort();
  *program = p;
  return 0;
}

enum { MOST_ARCHS = 16 };
static int archs(int list[MOST_ARCHS]) {
  const char *at = getenv("FAKE_NVRTC_ARCHS");
  int count = 0, length;
  if (!at) at = "75 80 86 90";
  while (count < MOST_ARCHS && sscanf(at, "%d%n", &list[count], &length) == 1) at += length, count++;
  return count;
}
int nvrtcGetNumSupportedArchs(int *count) {
  int list[MOST_ARCHS];
  *count = archs(list);
  return 0;
}
int nvrtcGetSupportedArchs(int *list) {
  int all[MOST_ARCHS], count = archs(all);
  memcpy(list, all, (size_t)count * sizeof *all);
  return 0;
}

/* Whether a program, the nth of the process, is one of the first so many. */
static int is_among(const char *variable, int nth) {
  const char *most = getenv(variable);
  return most && nth < atoi(most);
}

/* The kernel's name, from what stands behind __global__ void on: bounds, and clusters, come before it. */
static const char *name_of(const char *at) {
  while (*at == '_' && at[1] == '_') at = strchr(at, ')') + 2;
  return at;
}

/* What ptxas says of each kernel. */
static void write_log(struct program *p) {
  static const char begins[] = "__global__ void ";
  const char *registers = getenv("FAKE_NVRTC_REGISTERS");
  static int programs;
  int nth = programs++, bytes = is_among("FAKE_NVRTC_SPILLS", nth) ? 16 : 0;
  for (const char *at = p->source; (at = strstr(at, begins)) != NULL;) {
    at = name_of(at + strlen(begins));
    int length = (int)strcspn(at, "(");
    size_t used = strlen(p->log);
    snprintf(p->log + used, sizeof p->log - used,
             "ptxas info    : Compiling entry function '%.*s' for 'sm_90'\n"
             "    %d bytes stack frame, %d bytes spill stores, %d bytes spill loads\n"
             "ptxas info    : Used %d registers, used 1 barriers\n",
             length, at, bytes, bytes, bytes, registers ? atoi(registers) : 32);
    used = strlen(p->log);
    if (is_among("FAKE_NVRTC_SERIALIZED", nth))
      snprintf(p->log + used, sizeof p->log - used,
               "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
               "ill formed pipeline stage in the function '%.*s'\n",
               length, at);
  }
}

/* A number that stands for the source: FNV-1a. */
static uint64_t hash_of(const char *source) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char *c = source; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
  return hash;
}

/* After the source: its number; of each kernel, a function that takes its launch's extents and operands, one that
 * gives how many bytes each of these has, and one that gives the blocks of its clusters. */
static void write_calls(FILE *out, const char *source) {
  fputs("template <class... P> static unsigned fake_sizes(void (*)(P...), size_t *out) {\n"
        "  const size_t all[] = {sizeof(P)..., 0};\n"
        "  for (size_t i = 0; i < sizeof...(P); i++) out[i] = all[i];\n"
        "  return sizeof...(P);\n}\n",
        out);
  fprintf(out, "extern \"C\" const uint64_t fake_source = %lluu;\n", (unsigned long long)hash_of(source));
  for (const char *at = source; (at = strstr(at, "__global__ void ")) != NULL;) {
    at = name_of(at + strlen("__global__ void "));
    int length = (int)strcspn(at, "(");
    fprintf(out,
            "extern \"C\" void %.*s_call(const unsigned *e, void **args, unsigned bytes) {\n"
            "  cudaLaunchKernel(%.*s, dim3(e[0], e[1], e[2]), dim3(e[3], e[4], e[5]), args, bytes, nullptr);\n}\n",
            length, at, length, at);
    fprintf(out, "extern \"C\" unsigned %.*s_cluster(void) { return shim_cluster_of((const char *)%.*s); }\n", length,
            at, length, at);
    fprintf(out, "extern \"C\" unsigned %.*s_sizes(size_t *out) { return fake_sizes(%.*s, out); }\n", length, at,
            length, at);
  }
}

static int run_compiler(struct program *p, const char *path) {
  char command[4000];
  int length = snprintf(command, sizeof command, "sh " COMPILE_FAKE " %s %s.so %s 2>&1", path, path, FAKE_CUDA);
  FILE *said = length < (int)sizeof command ? popen(command, "r") : NULL;
  size_t count = said ? fread(p->log, 1, sizeof p->log - 1, said) : 0;
  p->log[count] = 0;
  int status = said ? pclose(said) : -1;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 6;
}

/* As an assembler that keeps what it makes in memory of its own, which counts as a file. */
static bool write_aside(struct program *p) {
  const char *said = getenv("FAKE_NVRTC_WRITES");
  off_t bytes = said ? atoll(said) : 0;
  if (bytes <= 0) return true;
  int memory = memfd_create("assembled", MFD_CLOEXEC);
  bool written = memory >= 0 && !ftruncate(memory, bytes) && pwrite(memory, "x", 1, bytes - 1) == 1;
  if (!written) snprintf(p->log, sizeof p->log, "error: %s", strerror(errno));
  if (memory >= 0) close(memory);
  return written;
}

int nvrtcCompileProgram(void *program, int count, const char *const *options) {
  struct program *p = program;
  char path[1000], kept[1020] = "", made[1020];
  const char *folder = getenv("FAKE_NVRTC_FOLDER");
  (void)count, (void)options;
  if (!write_aside(p)) return 11;
  if (folder && getenv("FAKE_NVRTC_KEEPS"))
    snprintf(kept, sizeof kept, "%.900s/kept.%016llx.so", folder, (unsigned long long)hash_of(p->source));
  if (*kept && access(kept, R_OK) == 0) {
    snprintf(p->cubin, sizeof p->cubin, "fake cubin %d %s\n", version(), kept);
    write_log(p);
    return 0;
  }
  if (!folder || snprintf(path, sizeof path - 8, "%s/kernels.XXXXXX", folder) >= (int)sizeof path - 8) return 1;
  int file = mkstemp(path);
  FILE *out = file < 0 ? NULL : fdopen(file, "w");
  if (!out) return 1;
  fputs(p->source, out);
  write_calls(out, p->source);
  fclose(out);
  int failed = run_compiler(p, path);
  snprintf(made, sizeof made, "%s.so", path);
  if (!failed && *kept) failed = rename(made, kept) || unlink(path);
  snprintf(p->cubin, sizeof p->cubin, "fake cubin %d %s\n", version(), *kept ? kept : made);
  if (!failed) write_log(p);
  return failed;
}

int nvrtcGetProgramLogSize(void *program, size_t *bytes) {
  *bytes = strlen(((struct program *)program)->log) + 1;
  return 0;
}
int nvrtcGetProgramLog(void *program, char *text) {
  strcpy(text, ((struct program *)program)->log);
  return 0;
}
int nvrtcGetPTXSize(void *program, size_t *bytes) {
  (void)program;
  *bytes = 0;
  return 1;
}
int nvrtcGetPTX(void *program, char *text) {
  (void)program, (void)text;
  return 1;
}
int nvrtcGetCUBINSize(void *program, size_t *bytes) {
  *bytes = strlen(((struct program *)program)->cubin) + 1;
  return 0;
}
int nvrtcGetCUBIN(void *program, char *bytes) {
  strcpy(bytes, ((struct program *)program)->cubin);
  return 0;
}
int nvrtcDestroyProgram(void **program) {
  struct program *p = *program;
  free(p->source);
  free(p);
  *program = NULL;
  return 0;
}
const char *nvrtcGetErrorString(int result) { return result == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR"; }
