/* Memory scopes of buffers: in which memory of a GPU one lies, and how its rows lie there. Part of the public header
 * tir.h; included from there only. */

/* Who sees a buffer's memory within a kernel. */
enum tir_memory { TIR_DEVICE_MEMORY, TIR_BLOCK_MEMORY, TIR_THREAD_MEMORY };

/* Scopes by name: the table in memory_scope.c. */
enum tir_memory_scope {
  TIR_SCOPE_GLOBAL, /* a buffer without a scope, too */
  TIR_SCOPE_SHARED,
  TIR_SCOPE_SHARED_DYNAMIC,
  TIR_SCOPE_MBARRIER,
  TIR_SCOPE_WARP,
  TIR_SCOPE_LOCAL,
  TIR_SCOPE_WORKSPACE,
  TIR_SCOPE_WMMA_A, /* from here on: fragments */
  TIR_SCOPE_WMMA_B,
  TIR_SCOPE_WMMA_C,
  TIR_SCOPE_MMA_A,
  TIR_SCOPE_MMA_B,
  TIR_SCOPE_MMA_C,
  TIR_SCOPE_MMA_ROWS,
  TIR_SCOPE_MMA8_A,
  TIR_SCOPE_MMA8_B,
  TIR_SCOPE_MMA8_C,
  TIR_SCOPE_WGMMA, /* from here on: of a warp group */
  TIR_SCOPE_WGMMA_A,
  TIR_SCOPE_WGMMA_ROWS,
  TIR_SCOPE_OTHER, /* none of these */
  TIR_SCOPE_COUNT
};

/* What follows a scope's name. */
enum tir_rows {
  TIR_ROWS_PLAIN,
  TIR_ROWS_SWIZZLED,  /* of shared memory: TIR_SWIZZLE */
  TIR_ROWS_CANONICAL, /* of shared memory: TIR_PANELS */
  TIR_ROWS_OF_LANES   /* of fragments of mma.m16n8k8: TIR_MMA8_LANES */
};

/* What the scope of this name says, as it is kept beside the interned name; nothing of the node changes besides. */
void tir_classify_scope(const char *text, struct tir_symbol_node *out);
/* A schedule may put buffers there: the name begins as one of these does, or one of other targets'. */
bool tir_is_storage_scope(const char *text);
/* The scope's own name: "shared.dyn"; as a symbol. */
const char *tir_memory_scope_name(enum tir_memory_scope scope);
tir_symbol tir_scope_named(struct tir *ir, enum tir_memory_scope scope);

static inline const struct tir_symbol_node *tir_scope_symbol(const struct tir *ir, tir_buffer buffer) {
  MS_CHECK(tir_buffer_at(ir, buffer)->scope < ir->symbols.count);
  return &ir->symbols.at[tir_buffer_at(ir, buffer)->scope];
}
static inline enum tir_memory_scope tir_memory_scope_of(const struct tir *ir, tir_buffer buffer) {
  return (enum tir_memory_scope)tir_scope_symbol(ir, buffer)->memory_scope;
}
static inline enum tir_memory tir_buffer_memory(const struct tir *ir, tir_buffer buffer) {
  return (enum tir_memory)tir_scope_symbol(ir, buffer)->memory;
}
static inline enum tir_rows tir_rows_of(const struct tir *ir, tir_buffer buffer) {
  return (enum tir_rows)tir_scope_symbol(ir, buffer)->rows;
}
/* How its rows lie is requested by the scope's name, which does not say yet how long they are. */
static inline bool tir_requests_rows(const struct tir *ir, tir_buffer buffer, enum tir_rows rows) {
  return tir_rows_of(ir, buffer) == rows && !tir_scope_symbol(ir, buffer)->sized;
}
