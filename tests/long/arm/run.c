/* Runs kernels on arguments from files: FOLDER/N.args, so many of 64 bits, then each with its size in front; writes all
 * of them behind one another to FOLDER/N.out. usage: run FOLDER [BYTES], which has a file `list` (kernels.lua); the
 * bytes of streaming vectors: others are refused. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t kernel(void **args, void *workspace);
extern kernel *const kernels[];

static void *take(FILE *in, uint64_t *bytes) {
  if (fread(bytes, sizeof *bytes, 1, in) != 1) exit(3);
  void *at = aligned_alloc(64, (*bytes + 64) / 64 * 64);
  if (!at || fread(at, 1, *bytes, in) != *bytes) exit(3);
  return at;
}

static int run(const char *folder, unsigned number, unsigned long workspace) {
  enum { MOST = 16 };
  char path[4096];
  void *args[MOST];
  uint64_t count, bytes[MOST];
  snprintf(path, sizeof path, "%s/%u.args", folder, number);
  FILE *in = fopen(path, "rb");
  if (!in || fread(&count, sizeof count, 1, in) != 1 || count > MOST) return 3;
  for (uint64_t i = 0; i < count; i++) args[i] = take(in, &bytes[i]);
  fclose(in);
  char *own = aligned_alloc(64, (workspace + 64) / 64 * 64);
  if (!own) return 3;
  memset(own, 0x5a, workspace);
  int status = kernels[number - 1](args, own);
  snprintf(path, sizeof path, "%s/%u.out", folder, number);
  FILE *out = fopen(path, "wb");
  if (!out) return 3;
  for (uint64_t i = 0; i < count; i++) {
    if (fwrite(args[i], 1, bytes[i], out) != bytes[i]) return 3;
    free(args[i]);
  }
  free(own);
  return fclose(out) ? 3 : status;
}

/* Bytes of streaming vectors: RDSVL X0, #1. */
static uint64_t vector_bytes(void) {
  register uint64_t bytes __asm__("x0");
  __asm__ volatile(".inst 0x04bf5820" : "=r"(bytes));
  return bytes;
}

int main(int argc, char **argv) {
  char path[4096], kind[16];
  unsigned number;
  unsigned long workspace;
  if (argc < 2) return 2;
  if (argc > 2 && vector_bytes() != (uint64_t)atoi(argv[2])) return puts("streaming vectors are of another length"), 2;
  snprintf(path, sizeof path, "%s/list", argv[1]);
  FILE *list = fopen(path, "r");
  if (!list) return 2;
  while (fscanf(list, "%u %lu %15s", &number, &workspace, kind) == 3) {
    int status = run(argv[1], number, workspace);
    if (status) return printf("kernel %u: status %d\n", number, status), 1;
  }
  fclose(list);
  return 0;
}
