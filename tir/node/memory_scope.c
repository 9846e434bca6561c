/* Memory scopes: what their names say. */
#include "tir/tir.h"

#include <string.h>

static const struct {
  const char *name;
  enum tir_memory memory;
} scopes[TIR_SCOPE_OTHER] = {
    [TIR_SCOPE_GLOBAL] = {"global", TIR_DEVICE_MEMORY},
    [TIR_SCOPE_SHARED] = {"shared", TIR_BLOCK_MEMORY},
    [TIR_SCOPE_SHARED_DYNAMIC] = {"shared.dyn", TIR_BLOCK_MEMORY},
    [TIR_SCOPE_MBARRIER] = {"shared.mbarrier", TIR_BLOCK_MEMORY},
    [TIR_SCOPE_WARP] = {"warp", TIR_THREAD_MEMORY},
    [TIR_SCOPE_LOCAL] = {"local", TIR_THREAD_MEMORY},
    [TIR_SCOPE_WORKSPACE] = {"workspace", TIR_THREAD_MEMORY},
    [TIR_SCOPE_WMMA_A] = {"wmma.matrix_a", TIR_THREAD_MEMORY},
    [TIR_SCOPE_WMMA_B] = {"wmma.matrix_b", TIR_THREAD_MEMORY},
    [TIR_SCOPE_WMMA_C] = {"wmma.accumulator", TIR_THREAD_MEMORY},
    [TIR_SCOPE_MMA_A] = {"mma.matrix_a", TIR_THREAD_MEMORY},
    [TIR_SCOPE_MMA_B] = {"mma.matrix_b", TIR_THREAD_MEMORY},
    [TIR_SCOPE_MMA_C] = {"mma.accumulator", TIR_THREAD_MEMORY},
    [TIR_SCOPE_MMA_ROWS] = {"mma.rows", TIR_THREAD_MEMORY},
    [TIR_SCOPE_MMA8_A] = {"m16n8k8.matrixA", TIR_THREAD_MEMORY},
    [TIR_SCOPE_MMA8_B] = {"m16n8k8.matrixB", TIR_THREAD_MEMORY},
    [TIR_SCOPE_MMA8_C] = {"m16n8k8.matrixC", TIR_THREAD_MEMORY},
    [TIR_SCOPE_WGMMA] = {"wgmma.accumulator", TIR_THREAD_MEMORY},
    [TIR_SCOPE_WGMMA_A] = {"wgmma.matrix_a", TIR_THREAD_MEMORY},
    [TIR_SCOPE_WGMMA_ROWS] = {"wgmma.rows", TIR_THREAD_MEMORY},
};

/* No name has fewer than two characters; most texts differ there from most names. */
static inline bool begins(const char *text, const char *with) {
  return text[0] == with[0] && text[1] == with[1] && !strncmp(text, with, strlen(with));
}

/* What follows a name is none but how rows lie in such memory. */
static bool read_rows(const char *rest, struct tir_symbol_node *c) {
  static const struct {
    const char *text;
    enum tir_rows rows;
  } kinds[] = {{TIR_SWIZZLE, TIR_ROWS_SWIZZLED}, {TIR_PANELS, TIR_ROWS_CANONICAL}, {TIR_MMA8_LANES, TIR_ROWS_OF_LANES}};
  if (!*rest) return true;
  bool shared = c->memory == TIR_BLOCK_MEMORY,
       lanes = c->memory_scope >= TIR_SCOPE_MMA8_A && c->memory_scope <= TIR_SCOPE_MMA8_C;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const char *numbers = rest + strlen(kinds[i].text);
    bool of_lanes = kinds[i].rows == TIR_ROWS_OF_LANES;
    if (!begins(rest, kinds[i].text) || (*numbers && (*numbers != '.' || of_lanes))) continue;
    c->rows = (uint8_t)kinds[i].rows, c->sized = *numbers != 0;
    return of_lanes ? lanes : shared;
  }
  return false;
}

static void classify(struct tir_symbol_node *out, enum tir_memory_scope scope, enum tir_memory memory) {
  out->memory_scope = (uint8_t)scope, out->memory = (uint8_t)memory, out->rows = TIR_ROWS_PLAIN, out->sized = false;
}

/* A name that begins as a scope's and goes on otherwise lies in the same memory, and is none of these. */
void tir_classify_scope(const char *text, struct tir_symbol_node *out) {
  size_t longest = 0;
  classify(out, *text ? TIR_SCOPE_OTHER : TIR_SCOPE_GLOBAL, *text ? TIR_THREAD_MEMORY : TIR_DEVICE_MEMORY);
  if (!*text || !strchr("gswlm", *text)) return; /* most names are of something else */
  for (enum tir_memory_scope i = 0; i < TIR_SCOPE_OTHER; i++) {
    if (!begins(text, scopes[i].name)) continue;
    size_t length = strlen(scopes[i].name);
    if (length <= longest) continue;
    classify(out, i, scopes[i].memory);
    longest = length;
  }
  if (longest && !read_rows(text + longest, out)) classify(out, TIR_SCOPE_OTHER, (enum tir_memory)out->memory);
}

bool tir_is_storage_scope(const char *text) {
  static const char *const others[] = {"texture", "amx.tmm", "metal.simdgroup"};
  bool known = false;
  for (enum tir_memory_scope i = 0; i < TIR_SCOPE_OTHER && !known; i++)
    known = i != TIR_SCOPE_WORKSPACE && begins(text, scopes[i].name); /* that one is the lowering's */
  for (size_t i = 0; i < sizeof others / sizeof *others && !known; i++) known = begins(text, others[i]);
  return known;
}

const char *tir_memory_scope_name(enum tir_memory_scope scope) {
  assert(scope < TIR_SCOPE_OTHER);
  return scopes[scope].name;
}
