/* run_kernels FUNCTION.py FOLDER [SEED]: compiles the CUDA source in a folder, N.cu, kernels of schedules of the
 * function, for this CPU, and compares what each computes with what the interpreter says of the function. Prints a line
 * for each that differs, then totals; exit status 1 if any does, 77: there is no g++. */
#include "cuda/oracle.h"
#include "support/case.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static int is_source(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return length > 3 && !strcmp(entry->d_name + length - 3, ".cu");
}

static int compare_all(const struct oracle *w, const char *folder) {
  struct dirent **entries;
  int count = scandir(folder, &entries, is_source, alphasort), failed = 0;
  for (int i = 0; i < count; i++) {
    char path[1024], why[ORACLE_TEXT];
    snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    if (!oracle_agrees(w, path, why)) printf("%s: %s\n", path, why), failed++;
    free(entries[i]);
  }
  if (count >= 0) free(entries);
  printf("%d compiled for the CPU, %d agree\n", count, count - failed);
  return failed;
}

int main(int argc, char **argv) {
  ms_error err = {0};
  char *text = argc > 2 ? case_read_file(argv[1]) : NULL;
  struct tir *ir = text ? tir_read(text, strlen(text), argv[1], &err) : NULL;
  struct oracle w = {0};
  tir_func f = ir ? tir_find_func(ir, "main") : TIR_NONE;
  if (!f || !oracle_open(&w, ir, f, argc > 3 ? strtoull(argv[3], NULL, 10) : 1, &err)) {
    fprintf(stderr, "run_kernels: %s\n", *err.message ? err.message : "usage: run_kernels FUNCTION.py FOLDER [SEED]");
    return 2;
  }
  int failed = oracle_compile(argv[2]) ? compare_all(&w, argv[2]) : -1;
  oracle_close(&w);
  tir_free(ir);
  free(text);
  return failed < 0 ? 77 : failed > 0;
}
