/* TMA bulk tensor copies in CUDA's source, for sm_90a, and barriers in shared memory that wait for them. What a tensor
 * is the host describes (tensor_map.h): kernels get that after their other operands. Source: PTX ISA, "mbarrier" and
 * "cp.async.bulk.tensor". */
#include "emit_cuda.h"
#include "jit/cuda/tensor_map.h"

#include <string.h>

/* A function of the barrier's address and a number: the instruction, with this before and after. */
static void barrier_function(struct emit_c *e, enum tir_device_call which, const char *name, const char *before,
                             const char *after) {
  if (!emit_c_needs(e, name)) return;
  fprintf(e->helpers,
          "MS_PTX(void, %s, (uint32_t at, uint32_t number)) {\n"
          "  asm volatile(\"%s%s%s\" : : \"r\"(at), \"r\"(number) : \"memory\");\n}\n",
          name, before, emit_cuda_spelling(which), after);
}

static void write_barrier_call(struct emit_c *e, const char *name, const tir_expr *args) {
  fprintf(e->out, "%s(", name);
  emit_cuda_shared(e, args[0], 1);
  fputs(", ", e->out);
  emit_c_index(e, args[1]);
  fputc(')', e->out);
}

/* (at, count) */
void emit_cuda_mbarrier_init(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  barrier_function(e, TIR_MBARRIER_INIT, "ms_mbarrier_init", "", " [%0], %1;");
  write_barrier_call(e, "ms_mbarrier_init", args);
}

/* (at, bytes) */
void emit_cuda_mbarrier_expect(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  barrier_function(e, TIR_MBARRIER_EXPECT, "ms_mbarrier_expect", "", " _, [%0], %1;");
  write_barrier_call(e, "ms_mbarrier_expect", args);
}

/* (at) */
void emit_cuda_mbarrier_arrive(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  if (emit_c_needs(e, "ms_mbarrier_arrive"))
    fprintf(e->helpers,
            "MS_PTX(void, ms_mbarrier_arrive, (uint32_t at)) {\n"
            "  asm volatile(\"%s _, [%%0];\" : : \"r\"(at) : \"memory\");\n}\n",
            emit_cuda_spelling(TIR_MBARRIER_ARRIVE));
  fputs("ms_mbarrier_arrive(", e->out);
  emit_cuda_shared(e, args[0], 1);
  fputc(')', e->out);
}

/* (at, block): in the shared memory of another block of the cluster. What it releases is this block's: no fence of the
 * cluster's scope is asked for. */
void emit_cuda_mbarrier_arrive_at(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  barrier_function(e, TIR_MBARRIER_ARRIVE_AT, "ms_mbarrier_arrive_at",
                   "{\\n  .reg .b32 there;\\n  mapa.shared::cluster.u32 there, %0, %1;\\n  ", " _, [there];\\n}");
  write_barrier_call(e, "ms_mbarrier_arrive_at", args);
}

void emit_cuda_cluster_barrier(struct emit_c *e, tir_expr call) {
  (void)call;
  if (emit_c_needs(e, "ms_cluster_barrier"))
    fprintf(e->helpers,
            "MS_PTX(void, ms_cluster_barrier, ()) {\n"
            "  asm volatile(\"%s.arrive.release;\\n  %s.wait.acquire;\" : : : \"memory\");\n}\n",
            emit_cuda_spelling(TIR_CLUSTER_BARRIER), emit_cuda_spelling(TIR_CLUSTER_BARRIER));
  fputs("ms_cluster_barrier()", e->out);
}

/* (at, block): a register's width of it. */
void emit_cuda_cluster_load(struct emit_c *e, tir_expr call) {
  static const struct {
    tir_type type;
    const char *suffix, *is, *constraint;
  } kinds[] = {{TIR_T_F32, "f32", "float", "f"},
               {TIR_T_I32, "s32", "int32_t", "r"},
               {TIR_TYPE(TIR_UINT, 32, 1), "u32", "uint32_t", "r"},
               {TIR_TYPE(TIR_FLOAT, 64, 1), "f64", "double", "d"},
               {TIR_TYPE(TIR_INT, 64, 1), "s64", "int64_t", "l"},
               {TIR_TYPE(TIR_UINT, 64, 1), "u64", "uint64_t", "l"}};
  const tir_expr *args = emit_cuda_operands(e, call);
  char name[32];
  size_t k = 0;
  while (k < sizeof kinds / sizeof *kinds && kinds[k].type != tir_type_of(e->ir, call)) k++;
  if (k == sizeof kinds / sizeof *kinds) {
    emit_c_refuse(e, "a load from another block that is not of 32 or 64 bits");
    return;
  }
  snprintf(name, sizeof name, "ms_cluster_load_%s", kinds[k].suffix);
  if (emit_c_needs(e, name))
    fprintf(e->helpers,
            "MS_PTX(%s, %s, (uint32_t at, uint32_t block)) {\n  %s x;\n"
            "  asm volatile(\"{\\n  .reg .b32 there;\\n  mapa.shared::cluster.u32 there, %%1, %%2;\\n  "
            "%s.%s %%0, [there];\\n}\" : \"=%s\"(x) : \"r\"(at), \"r\"(block) : \"memory\");\n  return x;\n}\n",
            kinds[k].is, name, kinds[k].is, emit_cuda_spelling(TIR_CLUSTER_LOAD), kinds[k].suffix, kinds[k].constraint);
  write_barrier_call(e, name, args);
}

/* (at, parity) */
void emit_cuda_mbarrier_wait(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  barrier_function(e, TIR_MBARRIER_WAIT, "ms_mbarrier_wait", "{\\n  .reg .pred p;\\nwait:\\n  ",
                   " p, [%0], %1;\\n  @p bra done;\\n  bra wait;\\ndone:\\n}");
  write_barrier_call(e, "ms_mbarrier_wait", args);
}

/* (number, threads) */
static void write_named(struct emit_c *e, tir_expr call, enum tir_device_call which, const char *name) {
  const tir_expr *args = emit_cuda_operands(e, call);
  if (emit_c_needs(e, name))
    fprintf(e->helpers,
            "MS_PTX(void, %s, (uint32_t number, uint32_t threads)) {\n"
            "  asm volatile(\"%s %%0, %%1;\" : : \"r\"(number), \"r\"(threads) : \"memory\");\n}\n",
            name, emit_cuda_spelling(which));
  fprintf(e->out, "%s(", name);
  emit_c_index(e, args[0]);
  fputs(", ", e->out);
  emit_c_index(e, args[1]);
  fputc(')', e->out);
}

void emit_cuda_named_barrier(struct emit_c *e, tir_expr call) {
  write_named(e, call, TIR_NAMED_BARRIER, "ms_named_barrier");
}

void emit_cuda_named_arrive(struct emit_c *e, tir_expr call) {
  write_named(e, call, TIR_NAMED_ARRIVE, "ms_named_arrive");
}

/* The assembler knows that one lane alone goes on: copies and arrivals there are no loops over lanes. */
void emit_cuda_elect_one(struct emit_c *e, tir_expr call) {
  (void)call;
  if (emit_c_needs(e, "ms_elect_one"))
    fprintf(e->helpers,
            "MS_PTX(uint32_t, ms_elect_one, ()) {\n  uint32_t elected;\n"
            "  asm volatile(\"{\\n  .reg .pred p;\\n  %s _|p, 0xffffffff;\\n  selp.u32 %%0, 1, 0, p;\\n}\" : "
            "\"=r\"(elected));\n  return elected;\n}\n",
            emit_cuda_spelling(TIR_ELECT));
  fputs("(int32_t)ms_elect_one()", e->out);
}

/* (count, more): a constant of the instruction's. */
void emit_cuda_set_registers(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  bool more = !tir_is_const(e->ir, args[1], 0);
  const char *name = more ? "ms_more_registers" : "ms_fewer_registers";
  if (!tir_is_int(e->ir, args[0])) {
    emit_c_refuse(e, "a number of registers that is not constant");
    return;
  }
  if (emit_c_needs(e, name))
    fprintf(e->helpers,
            "template <int count> MS_PTX(void, %s, ()) {\n"
            "  asm volatile(\"%s.%s.sync.aligned.u32 %%0;\" : : \"n\"(count));\n}\n",
            name, emit_cuda_spelling(TIR_SET_REGISTERS), more ? "inc" : "dec");
  fprintf(e->out, "%s<%lld>()", name, (long long)tir_at(e->ir, args[0])->imm);
}

void emit_cuda_mbarrier_fence(struct emit_c *e, tir_expr call) {
  (void)call;
  if (emit_c_needs(e, "ms_mbarrier_fence"))
    fprintf(e->helpers, "MS_PTX(void, ms_mbarrier_fence, ()) {\n  asm volatile(\"%s;\\n  %s;\" : : : \"memory\");\n}\n",
            emit_cuda_spelling(TIR_MBARRIER_FENCE), emit_cuda_spelling(TIR_PROXY_FENCE));
  fputs("ms_mbarrier_fence()", e->out);
}

/* ---- Maps ---- */

/* The type ms_tensor_map. */
static void emit_map_type(struct emit_c *e) {
  if (!emit_c_needs(e, "ms_tensor_map")) return;
  fprintf(e->helpers,
          "struct __align__(%d) ms_tensor_map { /* CUtensorMap */\n  unsigned char bytes[%d];\n};\n"
          "#ifndef __CUDACC_RTC__ /* of the driver: link with -lcuda */\nextern \"C\" {\n%s}\n#endif\n",
          TENSOR_MAP_ALIGNMENT, TENSOR_MAP_BYTES, TENSOR_MAP_DECLARATION);
}

/* The number of the copy's map among the kernel's. */
static uint32_t map_of(struct emit_c *e, tir_expr call) {
  struct tensor_map map, known[TENSOR_MAPS_MOST];
  tir_buffer buffer, buffers[TENSOR_MAPS_MOST];
  if (!tensor_map_of(e->ir, call, &map, &buffer)) {
    emit_c_refuse(e, "a TMA bulk tensor copy goes to no canonical layout of shared memory");
    return 0;
  }
  uint32_t count = tensor_maps_of(e->ir, e->kernel, known, buffers, TENSOR_MAPS_MOST);
  for (uint32_t i = 0; i < count && i < TENSOR_MAPS_MOST; i++)
    if (buffers[i] == buffer && !memcmp(&known[i], &map, sizeof map)) return i;
  emit_c_refuse(e, "a kernel has TMA bulk tensor copies of more than %d tensors", TENSOR_MAPS_MOST);
  return 0;
}

/* many: to several blocks of the cluster. */
static void copy_function(struct emit_c *e, uint32_t rank, bool many, char name[32]) {
  assert(rank && rank <= TIR_BOX_MOST_RANK);
  snprintf(name, 32, "ms_%s_copy_%ud", many ? "multicast" : "tensor", rank);
  if (!emit_c_needs(e, name)) return;
  fprintf(e->helpers, "MS_PTX(void, %s, (uint32_t to, const ms_tensor_map *from, uint32_t arrived", name);
  for (uint32_t d = 0; d < rank; d++) fprintf(e->helpers, ", int32_t at_%u", d);
  fprintf(e->helpers,
          "%s)) {\n  asm volatile(\"%s.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes%s [%%0], [%%1, {",
          many ? ", uint16_t blocks" : "", emit_cuda_spelling(TIR_TENSOR_COPY), rank,
          many ? ".multicast::cluster" : "");
  for (uint32_t d = 0; d < rank; d++) fprintf(e->helpers, "%s%%%u", d ? ", " : "", d + 3);
  fputs("}], [%2]", e->helpers);
  if (many) fprintf(e->helpers, ", %%%u", rank + 3);
  fputs(";\"\n               : : \"r\"(to), \"l\"(from), \"r\"(arrived)", e->helpers);
  for (uint32_t d = 0; d < rank; d++) fprintf(e->helpers, ", \"r\"(at_%u)", d);
  if (many) fputs(", \"h\"(blocks)", e->helpers);
  fputs("\n               : \"memory\");\n}\n", e->helpers);
}

/* The same with offsets, which are of 16 bits. */
static void im2col_function(struct emit_c *e, uint32_t rank, char name[32]) {
  assert(rank > 2 && rank <= TIR_BOX_MOST_RANK);
  snprintf(name, 32, "ms_im2col_copy_%ud", rank);
  if (!emit_c_needs(e, name)) return;
  fprintf(e->helpers, "MS_PTX(void, %s, (uint32_t to, const ms_tensor_map *from, uint32_t arrived", name);
  for (uint32_t d = 0; d < rank; d++) fprintf(e->helpers, ", int32_t at_%u", d);
  for (uint32_t d = 0; d + 2 < rank; d++) fprintf(e->helpers, ", uint16_t offset_%u", d);
  fprintf(e->helpers,
          ")) {\n  asm volatile(\"%s.%ud.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%%0], [%%1, {",
          emit_cuda_spelling(TIR_IM2COL_COPY), rank);
  for (uint32_t d = 0; d < rank; d++) fprintf(e->helpers, "%s%%%u", d ? ", " : "", d + 3);
  fputs("}], [%2], {", e->helpers);
  for (uint32_t d = 0; d + 2 < rank; d++) fprintf(e->helpers, "%s%%%u", d ? ", " : "", d + 3 + rank);
  fputs("};\"\n               : : \"r\"(to), \"l\"(from), \"r\"(arrived)", e->helpers);
  for (uint32_t d = 0; d < rank; d++) fprintf(e->helpers, ", \"r\"(at_%u)", d);
  for (uint32_t d = 0; d + 2 < rank; d++) fprintf(e->helpers, ", \"h\"(offset_%u)", d);
  fputs("\n               : \"memory\");\n}\n", e->helpers);
}

static void write_copy(struct emit_c *e, tir_expr call) {
  struct tir_box b;
  char name[32];
  if (!tir_box_of(e->ir, call, &b)) {
    emit_c_refuse(e, "a copy of a box whose extents are not constant");
    return;
  }
  uint32_t map = map_of(e, call);
  assert(map < TENSOR_MAPS_MOST);
  emit_map_type(e);
  if (b.im2col)
    im2col_function(e, b.rank, name);
  else
    copy_function(e, b.rank, b.blocks != 0, name);
  fprintf(e->out, "%s(", name);
  emit_cuda_shared(e, b.to, 1);
  fprintf(e->out, ", &ms_map_%u, ", map);
  emit_cuda_shared(e, b.barrier, 1);
  for (uint32_t d = b.rank; d-- > 0;) {
    fputs(", ", e->out);
    emit_c_index(e, b.at[d]);
  }
  for (uint32_t d = b.im2col ? b.rank - 2 : 0; d-- > 0;) {
    fputs(", ", e->out);
    emit_c_index(e, b.offsets[d]);
  }
  if (b.blocks) fprintf(e->out, ", %lld", (long long)b.blocks);
  fputc(')', e->out);
}

/* ---- Stores ---- */

static void store_function(struct emit_c *e, uint32_t rank, char name[32]) {
  snprintf(name, 32, "ms_tensor_store_%ud", rank);
  if (!emit_c_needs(e, name)) return;
  fprintf(e->helpers, "MS_PTX(void, %s, (const ms_tensor_map *to, uint32_t from", name);
  for (uint32_t d = 0; d < rank; d++) fprintf(e->helpers, ", int32_t at_%u", d);
  fprintf(e->helpers, ")) {\n  asm volatile(\"%s.%ud.global.shared::cta.tile.bulk_group [%%0, {",
          emit_cuda_spelling(TIR_TENSOR_STORE), rank);
  for (uint32_t d = 0; d < rank; d++) fprintf(e->helpers, "%s%%%u", d ? ", " : "", d + 2);
  fputs("}], [%1];\"\n               : : \"l\"(to), \"r\"(from)", e->helpers);
  for (uint32_t d = 0; d < rank; d++) fprintf(e->helpers, ", \"r\"(at_%u)", d);
  fputs("\n               : \"memory\");\n}\n", e->helpers);
}

/* (from, stride, to, rank, lists...) */
void emit_cuda_tensor_store(struct emit_c *e, tir_expr call) {
  struct tir_box b;
  char name[32];
  if (!tir_box_of(e->ir, call, &b)) {
    emit_c_refuse(e, "a store of a box whose extents are not constant");
    return;
  }
  uint32_t map = map_of(e, call);
  emit_map_type(e);
  store_function(e, b.rank, name);
  fprintf(e->out, "%s(&ms_map_%u, ", name, map);
  emit_cuda_shared(e, b.to, 1);
  for (uint32_t d = b.rank; d-- > 0;) {
    fputs(", ", e->out);
    emit_c_index(e, b.at[d]);
  }
  fputc(')', e->out);
}

void emit_cuda_store_commit(struct emit_c *e, tir_expr call) {
  (void)call;
  if (emit_c_needs(e, "ms_store_commit"))
    fprintf(e->helpers, "MS_PTX(void, ms_store_commit, ()) { asm volatile(\"%s;\" : : : \"memory\"); }\n",
            emit_cuda_spelling(TIR_STORE_COMMIT));
  fputs("ms_store_commit()", e->out);
}

/* (left, pointers...) */
void emit_cuda_store_wait(struct emit_c *e, tir_expr call) {
  const struct tir_expr_node *left = tir_at(e->ir, emit_cuda_operands(e, call)[0]);
  if (left->kind != TIR_INT_IMM || left->imm < 0) {
    emit_c_refuse(e, "a wait leaves a number of bulk stores that is not constant");
    return;
  }
  if (emit_c_needs(e, "ms_store_wait"))
    fprintf(e->helpers,
            "template <int left> MS_PTX(void, ms_store_wait, ()) {\n"
            "  asm volatile(\"%s %%0;\" : : \"n\"(left) : \"memory\");\n}\n",
            emit_cuda_spelling(TIR_STORE_WAIT));
  fprintf(e->out, "ms_store_wait<%lld>()", (long long)left->imm);
}

void emit_cuda_multicast_copy(struct emit_c *e, tir_expr call) { write_copy(e, call); }
void emit_cuda_tensor_copy(struct emit_c *e, tir_expr call) { write_copy(e, call); }
void emit_cuda_im2col_copy(struct emit_c *e, tir_expr call) { write_copy(e, call); }
