/* NVRTC without CUDA: source becomes a library for this CPU, by g++ and the shim (../shim.h), in the folder that
 * FAKE_NVRTC_FOLDER names. A cubin is a line that says the version and the library's path: what the fake driver loads.
 * FAKE_NVRTC_VERSION: of CUDA, as 13000. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

/* After the source, of each kernel: a function that takes its launch's extents and operands. */
static void write_calls(FILE *out, const char *source) {
  for (const char *at = source; (at = strstr(at, "__global__ void ")) != NULL;) {
    at = strchr(at, ')') + 2; /* past __launch_bounds__(…) */
    int length = (int)strcspn(at, "(");
    fprintf(out,
            "extern \"C\" void %.*s_call(const unsigned *e, void **args, unsigned bytes) {\n"
            "  cudaLaunchKernel(%.*s, dim3(e[0], e[1], e[2]), dim3(e[3], e[4], e[5]), args, bytes, nullptr);\n}\n",
            length, at, length, at);
  }
}

static int run_compiler(struct program *p, const char *path) {
  char command[4000];
  int length = snprintf(command, sizeof command,
                        "g++ -x c++ -std=c++17 -O1 -w -shared -fPIC -fno-extern-tls-init -ffp-contract=off -I %s/cuda "
                        "-include shim.h -o %s.so %s -x none %s 2>&1",
                        TEST_ROOT, path, path, FAKE_CUDA);
  FILE *said = length < (int)sizeof command ? popen(command, "r") : NULL;
  size_t count = said ? fread(p->log, 1, sizeof p->log - 1, said) : 0;
  p->log[count] = 0;
  int status = said ? pclose(said) : -1;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 6;
}

int nvrtcCompileProgram(void *program, int count, const char *const *options) {
  struct program *p = program;
  char path[1000];
  const char *folder = getenv("FAKE_NVRTC_FOLDER");
  struct rlimit limit;
  (void)count, (void)options;
  if (!folder || snprintf(path, sizeof path - 8, "%s/kernels.XXXXXX", folder) >= (int)sizeof path - 8) return 1;
  if (!getrlimit(RLIMIT_FSIZE, &limit)) limit.rlim_cur = limit.rlim_max, setrlimit(RLIMIT_FSIZE, &limit);
  int file = mkstemp(path);
  FILE *out = file < 0 ? NULL : fdopen(file, "w");
  if (!out) return 1;
  fputs(p->source, out);
  write_calls(out, p->source);
  fclose(out);
  snprintf(p->cubin, sizeof p->cubin, "fake cubin %d %s.so\n", version(), path);
  return run_compiler(p, path);
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
