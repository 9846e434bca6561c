/* Queries: what may be asked of a module beyond what its nodes say. Part of tir.h; included from there only. */

/* The extent, or -1 when it is no constant. */
static inline int64_t tir_loop_extent(const struct tir *ir, tir_loop l) {
  const struct tir_expr_node *n = tir_at(ir, tir_as(ir, l, TIR_LOOP)->loop.extent);
  return n->kind == TIR_INT_IMM ? n->imm : -1;
}
/* The lowest loop or block around both (or one of them, if it is around the other). */
tir_stmt tir_lowest_common_ancestor(const struct tir *ir, tir_stmt a, tir_stmt b);
/* Of buffers that are used, one is a view of another, or two are of a third: parts that blocks match are none. */
bool tir_find_aliased(const struct tir *ir);
/* The block whose scope holds `block` as a child; TIR_NONE: it is a root, or stands in an init. */
tir_block tir_scope_of(const struct tir *ir, tir_block block);

/* What a kernel, a statement below a function's root block, takes of a GPU. Numbers that no constant bounds are -1. */
struct tir_kernel {
  bool uniform;                        /* every loop bound to an axis has the same extent */
  bool launchable;                     /* and none has more than devices launch along it */
  int64_t threads, vthreads;           /* of a block, of a thread */
  int64_t least_threads, most_threads; /* that annotations of its blocks allow; 0: any */
  int64_t shared_bytes;                /* a block's, once buffers hold only what lives at a time */
  int64_t local_bytes;                 /* a thread's, likewise, for all of its virtual threads */
  int64_t vector_bytes;                /* the widest vector, of its narrowest elements */
};
/* Returns their number, stores at most `most`. Interns expressions. */
uint32_t tir_kernels(struct tir *ir, tir_func f, struct tir_kernel *out, uint32_t most);
/* Bytes of the buffers of exactly this scope that the root block allocates, as kernels count them; -1: not known. */

/* What a function has to do and to move, however it is scheduled: operations by type, each of which is done as often as
 * the loops around it say, and bytes of its parameters. An operation is an addition, subtraction, multiplication,
 * division, remainder, minimum, maximum, comparison of what is loaded, or call; conversions and choices are none. What
 * makes indices is none: whatever stands inside of a load, and integers that no load is part of. A product that is
 * added to what is stored, of operands that are shorter than the sum, is of its own kind: there are units for such. */
enum tir_work_kind {
  TIR_WORK_F64,
  TIR_WORK_F32,
  TIR_WORK_F16,
  TIR_WORK_BF16,
  TIR_WORK_F16_PRODUCTS,  /* summed in float32 */
  TIR_WORK_F16_IN_F16,    /* such products that are summed in float16 */
  TIR_WORK_BF16_PRODUCTS, /* summed in float32 */
  TIR_WORK_I8_PRODUCTS,   /* of int8 and uint8, summed in int32 */
  TIR_WORK_I64,           /* integers by their size, signed or not */
  TIR_WORK_I32,
  TIR_WORK_I16,
  TIR_WORK_I8,
  TIR_WORK_KINDS
};
struct tir_work {
  double operations[TIR_WORK_KINDS];
  double read_bytes, written_bytes; /* of parameters: each element once, as far as indices tell which are touched */
};
/* All are 0 where extents are no constants. */
void tir_count_work(const struct tir *ir, tir_func f, struct tir_work *out);
const char *tir_work_name(enum tir_work_kind kind);  /* "float32", "int8 products" */
bool tir_work_is_of_floats(enum tir_work_kind kind); /* counted in FLOP, else in OP */
int64_t tir_scope_bytes(struct tir *ir, tir_func f, const char *scope);
/* How often a load of the buffer stands in the function's statements, as tir_count_loads counts in an expression. */
int64_t tir_count_all_loads(const struct tir *ir, tir_func f, tir_buffer buffer);

/* Some loop nests of a function as a function of their own, in the order in which they stand.
 *   blocks  names of `count` blocks below the root: all that are in the nests
 *   names   what they are called there, or NULL
 *   name    the function's
 * Its parameters are the buffers that the nests read of others, or give to them; what only they use is allocated.
 * Returns a module of that function alone, owned by the caller; NULL: refused, err says why. */
struct tir *tir_extract(const struct tir *ir, tir_func f, const char *const *blocks, const char *const *names,
                        uint32_t count, const char *name, ms_error *err);

/* A copy in which parameter `in`, by its number, is what parameter `out` was too, which is gone: results take the place
 * of what they are computed of, element by element. NULL: some element might be read after it was written; *why says
 * why, a text that lasts. */
struct tir *tir_in_place(const struct tir *ir, tir_func f, uint32_t in, uint32_t out, const char **why);

/* ---- Constants that are packed ahead: the function's attribute layout_free_buffers lists their numbers --------------
 *
 * What the root block's loop nests compute of constants alone is a function of its own, NAME_pack, and the kernel takes
 * what that leaves. */

enum { TIR_MOST_PACKED = 64, TIR_MOST_PACKING = 128 }; /* functions with more are not cut */
enum { TIR_PACKED = 1 << 16 }; /* a parameter that is a number from here on is a packed buffer */
struct tir_packing {
  struct tir *kernel, *pack; /* modules; the function has the number that it had. NULL: nothing is packed */
  uint32_t count;            /* packed buffers; 0: nothing is packed */
  /* Their parameters: each one of the whole function's, by its number, or TIR_PACKED + k, the k-th packed buffer. */
  uint32_t kernel_count, of_kernel[TIR_MOST_PACKING];
  uint32_t pack_count, of_pack[TIR_MOST_PACKING]; /* the packed ones last, which it writes */
};
/* Cuts a function in two, which it does not change. Functions without such an attribute, or without nests that
 * constants alone decide, are not cut: out->count is 0. false: the attribute lists what is no buffer, or a block that
 * is annotated meta_schedule.layout_rewrite_preproc cannot be computed ahead; err says why. tir_packing_free. */
bool tir_split_packing(const struct tir *ir, tir_func f, struct tir_packing *out, ms_error *err);
void tir_packing_free(struct tir_packing *packing);
/* A copy in which these parameters are constant, besides those that are already: that attribute lists them. NULL: there
 * is no such buffer, or the function writes it; err says so. */
struct tir *tir_with_constants(const struct tir *ir, tir_func f, const char *const *names, uint32_t count,
                               ms_error *err);
