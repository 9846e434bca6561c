/* Functions as TVM's graphs of nodes, read and compared with the same as TVMScript; and written, which reads back as it
 * was.
 * usage: same_graphs FOLDER   NAME.json and NAME.py beside it */
#include "support/case.h"
#include "vm/vm.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static struct tir *read_file(const char *folder, const char *name, const char *suffix, bool graph) {
  char path[4096];
  ms_error err = {.instruction = -1};
  snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
  char *text = case_read_file(path);
  struct tir *ir = !text   ? NULL
                   : graph ? vm_read_module_graph(text, strlen(text), &err)
                           : tir_read(text, strlen(text), path, &err);
  if (!ir) printf("%s: %s\n", path, text ? err.message : "cannot be read");
  free(text);
  return ir;
}

/* Whether a function, written as a graph and read, is the same. */
static bool is_written(const struct tir *ir, tir_func f, const char *name) {
  char why[400] = "";
  ms_error err = {.instruction = -1};
  char *text = vm_write_module_graph(ir, f, &err);
  struct tir *again = text ? vm_read_module_graph(text, strlen(text), &err) : NULL;
  bool equal = again && tir_structural_equal(ir, f, again, 1, why, sizeof why);
  if (!equal) printf("%s, written: %s\n", name, again ? why : err.message);
  tir_free(again);
  free(text);
  return equal;
}

static bool same(const char *folder, const char *name) {
  char why[400] = "";
  struct tir *graph = read_file(folder, name, ".json", true), *script = read_file(folder, name, ".py", false);
  bool equal = graph && script && tir_structural_equal(graph, TIR_NONE, script, TIR_NONE, why, sizeof why);
  if (graph && script && !equal) printf("%s/%s: the graph and the script differ: %s\n", folder, name, why);
  if (equal && graph->funcs.count == 2) equal = is_written(graph, 1, name);
  tir_free(graph);
  tir_free(script);
  return equal;
}

int main(int argc, char **argv) {
  int count = 0, good = 0;
  DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
  if (!folder) return fprintf(stderr, "usage: same_graphs FOLDER\n"), 2;
  for (struct dirent *entry; (entry = readdir(folder));) {
    size_t length = strlen(entry->d_name);
    if (length < 6 || strcmp(entry->d_name + length - 5, ".json") != 0) continue;
    entry->d_name[length - 5] = 0;
    good += same(argv[1], entry->d_name);
    count++;
  }
  closedir(folder);
  printf("%d of %d agree\n", good, count);
  return count && good == count ? 0 : 1;
}
