/* The dialect of nvcc and NVRTC: CUDA C++ that includes nothing. Each kernel is a __global__ function; what launches
 * them in order, for nvcc, is a function of the host's.
 *
 * What the function allocates outside of kernels lies in a workspace in the device's memory, one buffer after the
 * other. Device calls are written by the table tir/gpu/calls.def, one function each. */
#include "emit_cuda.h"
#include "jit/cuda/cuda.h"
#include "jit/cuda/registers.h"
#include "jit/cuda/tensor_map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Templates: what the GPU has an instruction for ---- */

static const struct c_template templates[] = {
    {"of_half", "",
     "MS_PTX($V, ms_of_half_$N, ($U h)) {\n  $V x;\n  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"((uint16_t)h));\n "
     " return "
     "x;\n}",
     NULL},
    {"to_half", "",
     "MS_PTX($U, ms_to_half_$N, ($V x)) {\n  uint16_t h;\n  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(x));\n  "
     "return "
     "h;\n}",
     NULL},
    {"keep", "", "MS_PTX($V, ms_keep_$N, ($V x)) {\n  asm(\"\" : \"+$A\"(x));\n  return x;\n}", NULL},
    {"rsqrt", "", "$V ms_rsqrt_$N($V x) { return $Crsqrt$F(x); }", NULL},
    /* NaN is left out, and comes of two only; +0 is more than -0. Source: PTX ISA, "Floating Point Instructions:
     * max". */
    {"least", "", "$V ms_least_$N($V a, $V b) { return $Cfmin$F(a, b); }", NULL},
    {"most", "", "$V ms_most_$N($V a, $V b) { return $Cfmax$F(a, b); }", NULL},
    {"popcount", "", "$V ms_popcount_$N($V x) { return ($V)__popcll((uint64_t)($U)x); }", NULL},
    {"clz", "", "$V ms_clz_$N($V x) { return ($V)(__clzll((long long)(uint64_t)($U)x) - 64 + $B); }", NULL},
    {NULL, NULL, NULL, NULL}};

/* Floats of 8 bits, two of which an instruction converts: the other one is 0. Source: PTX ISA, "cvt". */
#define TO_BYTE(format)                                                                                                \
  "MS_PTX($U, ms_cvt_" format "_$N, ($V x)) {\n  uint16_t b;\n"                                                        \
  "  asm(\"cvt.rn.satfinite." format "x2.f32 %0, %1, %2;\" : \"=h\"(b) : \"f\"(0.0f), \"f\"(x));\n  return b;\n}\n"    \
  "MS_HELPER $U ms_to_" format "_$N($V x) { return ms_cvt_" format "_$N(x); }"
#define OF_BYTE(format)                                                                                                \
  "MS_PTX($V, ms_cvt_$N_" format ", ($U b)) {\n  $V x;\n"                                                              \
  "  asm(\"{\\n  .reg .b32 p;\\n  .reg .b16 low, high;\\n  cvt.rn.f16x2." format "x2 p, %1;\\n\"\n"                    \
  "      \"  mov.b32 {low, high}, p;\\n  cvt.f32.f16 %0, low;\\n}\" : \"=f\"(x) : \"h\"((uint16_t)b));\n"              \
  "  return x;\n}\n"                                                                                                   \
  "MS_HELPER $V ms_of_" format "_$N($U b) { return ms_cvt_$N_" format "(b); }"
static const struct c_template of_bytes[] = {{"to_e4m3", "", TO_BYTE("e4m3"), NULL},
                                             {"of_e4m3", "", OF_BYTE("e4m3"), NULL},
                                             {"to_e5m2", "", TO_BYTE("e5m2"), NULL},
                                             {NULL, NULL, NULL, NULL}};

static const struct c_template *further_templates(const struct emit_c *e) {
  return tir_has(e->target->gpu.capabilities, TIR_HAS_FLOAT_BYTES) ? of_bytes : NULL;
}

/* ---- Calls ---- */

static bool is_own(const struct emit_c *e, tir_buffer buffer) {
  return tir_memory_scope_of(e->ir, buffer) == TIR_SCOPE_LOCAL;
}

/* Groups of asynchronous copies. */
void emit_cuda_ptx_commit_group(struct emit_c *e, tir_expr call) {
  (void)call;
  if (emit_c_needs(e, "ms_copy_commit"))
    fprintf(e->helpers, "MS_PTX(void, ms_copy_commit, (void)) {\n  asm volatile(\"%s;\" : : : \"memory\");\n}\n",
            emit_cuda_spelling(TIR_COMMIT_GROUP));
  fputs("ms_copy_commit()", e->out);
}

/* How many groups may be under way is part of the instruction. */
void emit_cuda_ptx_wait_group(struct emit_c *e, tir_expr call) {
  enum { MOST_LEFT = 8 };
  if (emit_c_needs(e, "ms_copy_wait")) {
    fputs("MS_PTX(void, ms_copy_wait, (int left)) {\n", e->helpers);
    for (int left = 0; left < MOST_LEFT; left++)
      fprintf(e->helpers, "  if (left == %d) asm volatile(\"%s %d;\" : : : \"memory\");\n", left,
              emit_cuda_spelling(TIR_WAIT_GROUP), left);
    fprintf(e->helpers, "  if (left >= %d) asm volatile(\"cp.async.wait_all;\" : : : \"memory\");\n}\n", MOST_LEFT);
  }
  fputs("ms_copy_wait(", e->out);
  emit_c_index(e, emit_cuda_operands(e, call)[0]);
  fputc(')', e->out);
}

/* ---- Dot products of bytes ---- */

static const char *sign_of(const struct emit_c *e, tir_expr load) {
  return tir_type_code(tir_type_of(e->ir, load)) == TIR_UINT ? "u32" : "s32";
}

static const char *dot_function(struct emit_c *e, const char *a, const char *b, char name[32]) {
  snprintf(name, 32, "ms_dp4a_%s_%s", a, b);
  if (emit_c_needs(e, name))
    fprintf(e->helpers,
            "MS_PTX(uint32_t, %s, (uint32_t a, uint32_t b, uint32_t c)) {\n  uint32_t d;\n"
            "  asm(\"%s.%s.%s %%0, %%1, %%2, %%3;\" : \"=r\"(d) : \"r\"(a), \"r\"(b), \"r\"(c));\n  return d;\n}\n",
            name, emit_cuda_spelling(TIR_DOT), a, b);
  return name;
}

/* Of four bytes at once, which begin at a multiple of four (tir/lower/gpu/dots.c). */
void emit_cuda_dp4a(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  char name[32];
  fprintf(e->out, "(%s)%s(", tir_type_code(tir_type_of(e->ir, call)) == TIR_UINT ? "uint32_t" : "int32_t",
          dot_function(e, sign_of(e, args[0]), sign_of(e, args[1]), name));
  for (int i = 0; i < 2; i++) {
    const struct tir_expr_node *load = tir_at(e->ir, args[i]);
    fputs("*(const uint32_t *)", e->out);
    emit_c_run(e, load->ref, tir_operands(e->ir, load->operands)[0], C_SCALAR);
    fputs(", ", e->out);
  }
  fputs("(uint32_t)(", e->out);
  emit_c_value(e, args[2], C_SCALAR);
  fputs("))", e->out);
}

/* ---- Threads that synchronize, or exchange values ---- */

void emit_cuda_tvm_storage_sync(struct emit_c *e, tir_expr call) {
  (void)call;
  fprintf(e->out, "%s()", emit_cuda_spelling(TIR_STORAGE_SYNC));
}

void emit_cuda_tvm_warp_shuffle_xor(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  fprintf(e->out, "%s(0xffffffffu, ", emit_cuda_spelling(TIR_SHUFFLE_XOR));
  emit_c_value(e, args[1], C_SCALAR);
  fputs(", ", e->out);
  emit_c_value(e, args[2], C_SCALAR);
  fputc(')', e->out);
}

/* ---- Every device call ---- */

static bool write_call(struct emit_c *e, tir_expr x) {
  static void (*const writers[TIR_DEVICE_CALLS])(struct emit_c *, tir_expr) = {
#define EMIT_WRITTEN(name)                                            emit_cuda_##name
#define EMIT_WITHIN(name)                                             NULL
#define TIR_DEVICE_CALL(id, name, operands, type, by, run, text, ...) [TIR_##id] = EMIT_##text(name),
#include "tir/gpu/calls.def"
  };
  enum tir_device_call which = tir_device_call_of(e->ir, x);
  if (which == TIR_DEVICE_CALLS || !writers[which] || !tir_takes_operands(which, tir_at(e->ir, x)->count)) return false;
  int needs = tir_device_calls[which].needs;
  if (needs < 0 || emit_cuda_has(e, (enum tir_capability_id)needs)) writers[which](e, x);
  return true;
}

/* ---- Memory ---- */

/* The type of one access of so many bytes; NULL: there is none. */
static const char *wide_type(int64_t bytes) {
  switch (bytes) {
  case 2: return "uint16_t";
  case 4: return "uint32_t";
  case 8: return "uint2";
  case 16: return "uint4";
  default: return NULL;
  }
}

static const char *copy_function(struct emit_c *e, int bytes, char name[32]) {
  snprintf(name, 32, "ms_copy_%d", bytes);
  if (emit_c_needs(e, name))
    fprintf(e->helpers,
            "MS_PTX(void, %s, (uint32_t to, const void *from, uint32_t bytes)) {\n"
            "  asm volatile(\"%s.%s.shared.global [%%0], [%%1], %d, %%2;\"\n"
            "               :\n               : \"r\"(to), \"l\"(from), \"r\"(bytes)\n"
            "               : \"memory\");\n}\n",
            name, emit_cuda_spelling(TIR_ASYNC_COPY), bytes == 16 ? "cg" : "ca", bytes);
  return name;
}

/* The address in shared memory that the copy goes to. */
static void write_target(struct emit_c *e, tir_buffer to, tir_expr index) {
  char name[32], between[64];
  const struct tir_expr_node *n = tir_at(e->ir, index);
  tir_type type = tir_buffer_at(e->ir, to)->type;
  if (tir_type_lanes(type) > 1) {
    fprintf(e->out, "%s(", emit_cuda_address_function(e));
    emit_c_run(e, to, index, C_SCALAR);
  } else {
    int bytes = emit_c_stored(type, 1).bits / 8;
    snprintf(between, sizeof between, " + %d * (uint32_t)%s(", bytes, emit_c_swizzle(e, to, name));
    emit_cuda_place(e, to, n->kind == TIR_RAMP ? n->a : index, TIR_NONE, between);
  }
  fputc(')', e->out);
}

/* An asynchronous copy (tir/lower/gpu/copies.c). Where its condition does not hold none of its bytes is
 * loaded, and all of them are zero: no branch. */
static void begin_copy(struct emit_c *e, const struct tir_stmt_node *s, const struct tir_expr_node *call) {
  tir_expr condition;
  const struct tir_expr_node *load = tir_copied_load(e->ir, tir_operands(e->ir, call->operands)[0], &condition);
  char name[32];
  assert(load && load->count == 1 && !s->store.predicate);
  int bytes = tir_type_bits(call->type) * tir_type_lanes(call->type) / 8;
  assert(bytes == 4 || bytes == 8 || bytes == 16);
  emit_c_begin(e);
  fprintf(e->out, "%s(", copy_function(e, bytes, name));
  write_target(e, s->store.buffer, tir_operands(e->ir, s->store.indices)[0]);
  fputs(", ", e->out);
  emit_c_run(e, load->ref, tir_operands(e->ir, load->operands)[0], C_SCALAR);
  fputs(", ", e->out);
  if (condition) {
    fputc('(', e->out);
    emit_c_value(e, condition, C_SCALAR);
    fprintf(e->out, ") ? %d : 0", bytes);
  } else {
    fprintf(e->out, "%d", bytes);
  }
  fputs(");\n", e->out);
}

/* A vector that goes as it is from one memory to another, neither of them a thread's own, which is in registers: one
 * load and one store, at multiples of their size. */
static bool copy_whole(struct emit_c *e, const struct tir_stmt_node *s, tir_expr to) {
  tir_expr condition;
  const struct tir_expr_node *load = tir_copied_load(e->ir, s->store.value, &condition);
  if (!load || s->store.predicate) return false;
  tir_expr from = tir_operands(e->ir, load->operands)[0];
  struct c_type t = emit_c_stored(load->type, 1);
  const char *type = wide_type((int64_t)t.bits / 8 * tir_type_lanes(load->type));
  bool moves = emit_c_is_run(e, load->ref, from) && emit_c_is_run(e, s->store.buffer, to) && e->parallel;
  if (!type || !moves || is_own(e, s->store.buffer) || is_own(e, load->ref)) return false;
  if (!emit_cuda_is_aligned(e, from) || !emit_cuda_is_aligned(e, to)) return false;
  emit_c_begin(e);
  fprintf(e->out, "*(%s *)", type);
  emit_c_run(e, s->store.buffer, to, C_SCALAR);
  fputs(" = ", e->out);
  if (condition) {
    fputc('(', e->out);
    emit_c_value(e, condition, C_SCALAR);
    fputs(") ? ", e->out);
  }
  fprintf(e->out, "*(const %s *)", type);
  emit_c_run(e, load->ref, from, C_SCALAR);
  if (condition) fprintf(e->out, " : %s()", type);
  fputs(";\n", e->out);
  return true;
}

static bool store_vector(struct emit_c *e, tir_stmt store) {
  const struct tir_stmt_node *s = tir_stmt_at(e->ir, store);
  if (tir_is_device_call(e->ir, s->store.value, TIR_ASYNC_COPY)) {
    begin_copy(e, s, tir_at(e->ir, s->store.value));
    return true;
  }
  return emit_c_store_pairs(e, store) || copy_whole(e, s, tir_operands(e->ir, s->store.indices)[0]) ||
         emit_cuda_store_vector(e, store);
}

static void allocate_on_device(struct emit_c *e, const char *name, const char *type, uint64_t bytes) {
  emit_c_line(e, "%s *%s = (%s *)((char *)workspace + %llu);", type, name, type, (unsigned long long)e->device_bytes);
  assert(e->device_bytes % C_DEVICE_ALIGNMENT == 0);
  e->device_bytes += (bytes + C_DEVICE_ALIGNMENT - 1) / C_DEVICE_ALIGNMENT * C_DEVICE_ALIGNMENT;
  assert(e->device_bytes >= bytes);
}

static void allocate(struct emit_c *e, tir_buffer buffer, struct c_type t, uint64_t elements) {
  if (emit_c_fragment(e, buffer, elements)) return;
  enum tir_memory_scope scope = tir_memory_scope_of(e->ir, buffer);
  const char *name = emit_c_declare_buffer(e, buffer);
  char type[32];
  uint64_t bytes = elements * ((unsigned)t.bits / 8);
  emit_c_type_name(e, t, type);
  int own = tir_buffer_at(e->ir, buffer)->alignment,
      alignment = own > TIR_SHARED_ALIGNMENT ? own : TIR_SHARED_ALIGNMENT;
  if (!e->parallel) {
    allocate_on_device(e, name, type, bytes);
  } else if (scope == TIR_SCOPE_SHARED_DYNAMIC) {
    emit_c_line(e, "extern __shared__ __align__(%d) unsigned char ms_shared[]; /* %llu bytes */", alignment,
                (unsigned long long)bytes);
    emit_c_line(e, "%s *%s = (%s *)ms_shared;", type, name, type);
    e->asked.dynamic_bytes = (int64_t)bytes;
    e->asked.shared_bytes += (int64_t)bytes;
    emit_cuda_declared(e, buffer);
  } else if (scope == TIR_SCOPE_SHARED) {
    emit_c_line(e, "__shared__ __align__(%d) %s %s[%llu];", alignment, type, name, (unsigned long long)elements);
    e->asked.shared_bytes += (int64_t)bytes;
    emit_cuda_declared(e, buffer);
  } else if (scope == TIR_SCOPE_LOCAL) {
    emit_c_line(e, "%s %s[%llu];", type, name, (unsigned long long)elements);
    e->asked.local_bytes += (int64_t)bytes;
  } else {
    emit_c_refuse(e, "buffer %s: memory of scope \"%s\" in a kernel has no form in CUDA", name,
                  tir_text(e->ir, tir_buffer_at(e->ir, buffer)->scope));
  }
}

/* ---- Kernels ---- */

enum { AXES = 3 };

struct launch {
  tir_expr grid[AXES], block[AXES]; /* TIR_NONE: 1 */
};

/* Lanes of a warp have one value of the axis, which an instruction of the kernel takes from uniform registers. */
static bool is_uniform(const struct emit_c *e, enum tir_axis axis) {
  int64_t inner = 1;
  bool uses = false;
  if (axis <= TIR_THREAD_X) return false;
  for (tir_stmt s = e->kernel; s; s = tir_next(e->ir, s, e->kernel)) {
    if (tir_is(e->ir, s, TIR_EVALUATE)) {
      tir_expr call = tir_as(e->ir, s, TIR_EVALUATE)->evaluate.value;
      uses |= tir_is_device_call(e->ir, call, TIR_WGMMA_MMA) || tir_is_device_call(e->ir, call, TIR_TENSOR_COPY) ||
              tir_is_device_call(e->ir, call, TIR_MULTICAST_COPY) ||
              tir_is_device_call(e->ir, call, TIR_TENSOR_STORE) ||
              tir_is_device_call(e->ir, call, TIR_WGMMA_MMA_REGISTERS);
    }
    if (!tir_is_bound(e->ir, s)) continue;
    enum tir_axis other = tir_loop_axis(e->ir, s);
    if (other >= TIR_THREAD_X && other < axis) inner *= tir_loop_extent(e->ir, s);
  }
  return uses && inner % TIR_WARP == 0;
}

/* The axes of the kernel, bound to variables of its text; gives its innermost loop. */
static tir_stmt bind_axes(struct emit_c *e, tir_stmt loop, struct launch *launch) {
  *launch = (struct launch){0};
  for (tir_stmt s = loop;; s = tir_stmt_at(e->ir, s)->first[TIR_BODY]) {
    const struct tir_stmt_node *n = tir_as(e->ir, s, TIR_LOOP);
    enum tir_axis axis = tir_axis_named(tir_text(e->ir, n->loop.thread));
    assert(axis < TIR_VTHREAD_X);
    if (axis >= TIR_THREAD_X)
      launch->block[axis - TIR_THREAD_X] = n->loop.extent, e->asked.threads *= (int)tir_loop_extent(e->ir, s);
    else
      launch->grid[axis] = n->loop.extent;
    const char *type = emit_c_index_type(e);
    bool same = is_uniform(e, axis);
    emit_c_line(e, "const %s %s __attribute__((unused)) = (%s)%s%s%s%s;", type, emit_c_declare_var(e, n->loop.var),
                type, same ? emit_cuda_uniform(e) : "", same ? "(" : "", tir_axis_name(axis), same ? ")" : "");
    tir_stmt inner = n->first[TIR_BODY];
    if (!inner || !tir_is_bound(e->ir, inner)) return s;
  }
}

/* Scalars of 16 bits come as their bits: the host has no conversion of theirs. */
static void widen_scalars(struct emit_c *e, const struct tir_captures *c) {
  char helper[64];
  for (uint32_t i = c->buffers; i < c->buffers + c->vars; i++) {
    tir_var v = tir_at(e->ir, c->at[i])->ref;
    tir_type t = e->ir->vars.at[v].type;
    if (!tir_type_is_short(t)) continue;
    emit_c_short_helper(e, "of", t, 1, helper);
    emit_c_line(e, "const float %s = %s(ms_%s);", e->vars[v], helper, e->vars[v]);
  }
}

/* Its threads change how many registers they have: a block then has all that there are (PTX ISA, "setmaxnreg"). */
static bool sets_registers(const struct emit_c *e, tir_stmt kernel) {
  for (tir_stmt s = kernel; s; s = tir_next(e->ir, s, kernel)) {
    if (!tir_is(e->ir, s, TIR_EVALUATE)) continue;
    if (tir_is_device_call(e->ir, tir_as(e->ir, s, TIR_EVALUATE)->evaluate.value, TIR_SET_REGISTERS)) return true;
  }
  return false;
}

/* No other block fits on a multiprocessor beside one: of registers, or of shared memory. By the launch bounds the
 * assembler schedules loads as far ahead as the registers of a block allow, and leaves none to blocks that will not be
 * there. */
static bool is_alone(const struct emit_c *e, tir_stmt kernel) {
  return sets_registers(e, kernel) || !cuda_holds_two(e->target, e->asked.dynamic_bytes);
}

/* Registers that a thread may have, as __launch_bounds__ lets the assembler share them out. */
static int most_registers(const struct emit_c *e, tir_stmt kernel, int threads) {
  if (sets_registers(e, kernel)) return (int)tir_registers_each(threads);
  int warps = (threads + TIR_WARP - 1) / TIR_WARP;
  int each = TIR_BLOCK_REGISTERS / (warps * TIR_WARP) / TIR_REGISTERS_UNIT * TIR_REGISTERS_UNIT;
  return each < TIR_NAMED_REGISTERS ? each : TIR_NAMED_REGISTERS;
}

static void write_kernel(struct emit_c *e, const struct tir_captures *c, uint32_t number, uint32_t maps,
                         struct launch *launch) {
  FILE *outer = e->out;
  int indent = e->indent;
  char *text = NULL;
  size_t size;
  uint32_t mark = emit_c_enter(e);
  if (!(e->out = open_memstream(&text, &size))) abort();
  e->indent = 1, e->parallel = true, e->kernel = c->loop;
  e->asked = (struct jit_resources){.threads = 1};
  snprintf(e->asked.name, sizeof e->asked.name, "%s_kernel_%u", e->name, number);
  tir_stmt innermost = bind_axes(e, c->loop, launch);
  widen_scalars(e, c);
  emit_c_list(e, tir_stmt_at(e->ir, innermost)->first[TIR_BODY]);
  registers_estimate(e->ir, c->loop, most_registers(e, c->loop, e->asked.threads), &e->asked);
  e->indent = indent, e->parallel = false;
  emit_c_leave(e, mark);
  fclose(e->out);
  e->out = e->functions;
  fprintf(e->out, "extern \"C\" __global__ void __launch_bounds__(%d%s) ", e->asked.threads,
          is_alone(e, c->loop) ? ", 1" : "");
  int64_t cluster = tir_kernel_cluster(e->ir, c->loop);
  if (cluster > 1 && emit_cuda_has(e, TIR_HAS_CLUSTERS)) fprintf(e->out, "__cluster_dims__(%d, 1, 1) ", (int)cluster);
  fprintf(e->out, "%s(", e->asked.name);
  emit_c_captured(e, c, C_PARAMETERS);
  for (uint32_t i = 0; i < maps; i++)
    fprintf(e->out, "%sconst __grid_constant__ ms_tensor_map ms_map_%u", i || c->buffers + c->vars ? ", " : "", i);
  fprintf(e->out, ") {\n%s}\n\n", text);
  e->out = outer;
  free(text);
}

static void write_extents(struct emit_c *e, const tir_expr extents[AXES]) {
  fputs("dim3(", e->out);
  for (int a = 0; a < AXES; a++) {
    if (a) fputs(", ", e->out);
    if (extents[a])
      emit_c_index(e, extents[a]);
    else
      fputc('1', e->out);
  }
  fputs("), ", e->out);
}

/* A launch of no blocks is an error: where their number is not known here, they are counted when it is called. */
static void if_any(struct emit_c *e, const struct launch *launch) {
  const char *between = "if (";
  for (int a = 0; a < AXES; a++) {
    if (!launch->grid[a] || tir_at(e->ir, launch->grid[a])->lo > 0) continue;
    fputs(between, e->out);
    emit_c_index(e, launch->grid[a]);
    fputs(" > 0", e->out);
    between = " && ";
  }
  if (*between == ' ') fputs(") ", e->out);
}

static void note_kernel(struct emit_c *e) {
  struct c_kernels *k = e->kernels;
  if (!k) return;
  k->at = tir_enlarge(k->at, &k->capacity, (uint64_t)k->count + 1, sizeof *k->at);
  k->at[k->count++] = e->asked;
}

static void launch_kernel(struct emit_c *e, const struct tir_captures *c) {
  struct launch launch;
  uint32_t number = e->bodies++;
  struct tensor_map maps[TENSOR_MAPS_MOST];
  tir_buffer mapped[TENSOR_MAPS_MOST];
  uint32_t map_count = tensor_maps_of(e->ir, c->loop, maps, mapped, TENSOR_MAPS_MOST);
  write_kernel(e, c, number, map_count, &launch);
  note_kernel(e);
  const char *kernel = e->asked.name;
  long long dynamic = e->asked.dynamic_bytes;
  if (dynamic)
    emit_c_line(e, "cudaFuncSetAttribute(%s, cudaFuncAttributeMaxDynamicSharedMemorySize, %lld);", kernel, dynamic);
  for (uint32_t i = 0; i < map_count && i < TENSOR_MAPS_MOST; i++) {
    char name[40];
    snprintf(name, sizeof name, "ms_map_%u_%u", number, i);
    emit_c_line(e, "ms_tensor_map %s;", name);
    tensor_map_print(e->out, &maps[i], name, e->buffers[mapped[i]], "return 1; /* cudaErrorInvalidValue */");
  }
  emit_c_begin(e);
  fprintf(e->out, "void *ms_args_%u[] = {", number);
  emit_c_captured(e, c, C_ADDRESSES);
  for (uint32_t i = 0; i < map_count; i++)
    fprintf(e->out, "%s(void *)&ms_map_%u_%u", i || c->buffers + c->vars ? ", " : "", number, i);
  fputs("};\n", e->out);
  emit_c_begin(e);
  if_any(e, &launch);
  fprintf(e->out, "cudaLaunchKernel(%s, ", kernel);
  write_extents(e, launch.grid);
  write_extents(e, launch.block);
  fprintf(e->out, "ms_args_%u, %lld, (cudaStream_t)stream);\n", number, dynamic);
}

/* ---- The function ---- */

static bool is_wide(void *data, tir_expr x) {
  struct emit_c *e = data;
  const struct tir_expr_node *n = tir_at(e->ir, x);
  bool named =
      n->kind == TIR_CALL && !strcmp(tir_text(e->ir, n->ref), "type_annotation"); /* of what a pointer leads to */
  if (!named && tir_type_is_int(n->type) && tir_type_bits(n->type) == 64) e->index_bits = 64;
  return true;
}

/* Indices have 32 bits where no integer has more and no buffer is larger than they reach. */
static void choose_index(struct emit_c *e) {
  tir_stmt top = e->ir->funcs.at[e->func].body;
  struct tir_span params = e->ir->funcs.at[e->func].params;
  e->index_bits = 32;
  for (tir_stmt s = top; s; s = tir_next(e->ir, s, top)) {
    tir_expr all[4];
    uint32_t count = tir_stmt_exprs(e->ir, s, all);
    for (uint32_t i = 0; i < count; i++)
      if (all[i]) tir_walk_expr(e->ir, all[i], is_wide, e);
    if (tir_is(e->ir, s, TIR_STORE))
      tir_walk_expr(e->ir, tir_operands(e->ir, tir_stmt_at(e->ir, s)->store.indices)[0], is_wide, e);
    if (tir_is(e->ir, s, TIR_ALLOC) && tir_allocation_bytes(e->ir, tir_stmt_at(e->ir, s)->alloc.buffer) > INT32_MAX)
      e->index_bits = 64;
  }
  for (uint32_t i = 0; i < params.count; i++) {
    tir_buffer buffer = e->ir->params.at[params.first + i].buffer;
    uint64_t bytes = buffer ? tir_allocation_bytes(e->ir, buffer) : 1;
    if (!bytes || bytes > INT32_MAX) e->index_bits = 64;
  }
}

static void argument(struct emit_c *e, const struct tir_param *p, uint32_t i) {
  char type[32];
  tir_type t = p->buffer ? tir_buffer_at(e->ir, p->buffer)->type : e->ir->vars.at[p->var].type;
  emit_c_type_name(e, emit_c_stored(t, 1), type);
  if (p->buffer)
    emit_c_line(e, "%s *%s = (%s *)args[%u];", type, emit_c_declare_buffer(e, p->buffer), type, i);
  else if (tir_type_is_int(t))
    emit_c_line(e, "const %s %s = *(const %s *)args[%u];", emit_c_index_type(e), emit_c_declare_var(e, p->var), type,
                i);
  else
    emit_c_line(e, "const %s %s = *(const %s *)args[%u];", type, emit_c_declare_var(e, p->var), type, i);
}

static void write_function(struct emit_c *e) {
  const struct tir_func_node *f = &e->ir->funcs.at[e->func];
  uint32_t mark = emit_c_enter(e);
  choose_index(e);
  emit_cuda_note_bound(e);
  e->bodies = 0; /* kernels are numbered from 0 in each function of a source */
  fprintf(e->out, "#ifndef __CUDACC_RTC__\nextern \"C\" int %s(void **args, void *workspace, void *stream) {\n",
          e->name);
  e->indent = 1;
  emit_c_line(e, "(void)args, (void)workspace;");
  for (uint32_t i = 0; i < f->params.count; i++) argument(e, &e->ir->params.at[f->params.first + i], i);
  emit_c_list(e, tir_stmt_at(e->ir, f->body)->first[TIR_BODY]);
  emit_c_line(e, "return (int)cudaGetLastError();");
  e->indent = 0;
  fputs("}\n#endif\n", e->out);
  emit_c_leave(e, mark);
  free(e->bound);
  e->bound = NULL;
  if (e->kernels) e->kernels->device_bytes = e->device_bytes;
}

static void write_head(const struct emit_c *e, FILE *out) {
  fprintf(out,
          "/* %s, made by msched for cuda -arch=%s.\n"
          " * Compile with nvcc -gencode arch=compute_%s,code=%s%s, or with NVRTC; nothing is included.\n"
          " * Its kernels are launched in order by %s, for nvcc: args: one a parameter, the device's address of a\n"
          " * buffer, or the address of a scalar's value; workspace: %llu bytes on the device.\n"
          " * Returns a cudaError_t. */\n",
          e->name, e->target->cpu, e->target->cpu + strlen("sm_"), e->target->cpu, e->fast_math ? "" : " --fmad=false",
          e->name, (unsigned long long)e->device_bytes);
  fputs("#ifdef __CUDACC_RTC__\n"
        "typedef signed char int8_t;\ntypedef unsigned char uint8_t;\ntypedef short int16_t;\n"
        "typedef unsigned short uint16_t;\ntypedef int int32_t;\ntypedef unsigned int uint32_t;\n"
        "typedef long long int64_t;\ntypedef unsigned long long uint64_t;\n"
        "#define INT8_MIN (-128)\n#define INT8_MAX 127\n#define UINT8_MAX 255\n"
        "#define INT16_MIN (-32768)\n#define INT16_MAX 32767\n#define UINT16_MAX 65535\n"
        "#define INT32_MIN (-2147483647 - 1)\n#define INT32_MAX 2147483647\n#define UINT32_MAX 4294967295u\n"
        "#define INT64_MAX 9223372036854775807LL\n#define INT64_MIN (-INT64_MAX - 1)\n"
        "#define UINT64_MAX 18446744073709551615ULL\n#define INT64_C(x) x##LL\n#define UINT64_C(x) x##ULL\n"
        "#else\n#include <stdint.h>\n#endif\n\n"
        "#define MS_HELPER static __device__ __forceinline__\n"
        "#ifndef MS_PTX /* functions of PTX */\n#define MS_PTX(type, name, parameters) MS_HELPER type name "
        "parameters\n#endif\n"
        "#define __builtin_memcpy ::memcpy\n\n",
        out);
}

const struct c_dialect emit_c_cuda = {
    .library = "::",
    .infinity = {"__int_as_float(0x7f800000)", "__longlong_as_double(0x7ff0000000000000LL)"},
    .nan = {"__int_as_float(0x7fc00000)", "__longlong_as_double(0x7ff8000000000000LL)"},
    .restricts = "__restrict__ ",
    .fails = "__trap();",
    .bound = {"([&] { ", "return ", "}())"},
    .scalars_as_bits = true,
    .templates = templates,
    .further = further_templates,
    .call = write_call,
    .copy = store_vector,
    .bind = emit_cuda_bind_vector,
    .lane = emit_c_pair_lane,
    .ahead = emit_cuda_ahead_lane,
    .allocate = allocate,
    .declared = emit_cuda_declared,
    .outlined = launch_kernel,
    .function = write_function,
    .head = write_head};
