/* Lowering, and what it leaves of a function. Part of tir.h; included from there only. */

/* Instructions that a statement's attribute of this key can name: lower/instruction.c. */
#define TIR_INSTRUCTION "instruction"
enum tir_instruction {
  TIR_VPDPBUSD,
  TIR_TDPBSSD,
  TIR_TDPBF16PS,
  TIR_TRANSPOSE_4X32, /* squares of so many elements of so many bits: a register each row */
  TIR_TRANSPOSE_8X32,
  TIR_TRANSPOSE_16X32,
  TIR_TRANSPOSE_4X64,
  TIR_TRANSPOSE_8X64,
  TIR_INTERLEAVE_4X8, /* sixteen columns of so many rows of so many bits: those of a column side by side */
  TIR_INTERLEAVE_2X16,
  TIR_INTERLEAVE_4X8_BY_64, /* the same of 64 and of 32 columns: a vector of 512 bits each row */
  TIR_INTERLEAVE_2X16_BY_32,
  TIR_TDPBSUD, /* tiles of bytes, of A and of B signed or not */
  TIR_TDPBUSD,
  TIR_TDPBUUD,
  TIR_TILEZERO,        /* a tile of zeros */
  TIR_INTERLEAVE_2X32, /* sixteen columns of so many rows, a vector each row */
  TIR_INTERLEAVE_3X32,
  TIR_INTERLEAVE_4X32,
  TIR_TDPFP16PS,
  TIR_INTERLEAVE_2X8, /* sixteen columns of two rows of bytes */
  TIR_INSTRUCTIONS
};
enum tir_instruction tir_instruction_of(const struct tir *ir, tir_stmt s); /* TIR_INSTRUCTIONS: it names none */
struct tir_transposition {
  int side, bits; /* elements of a row and of a column, bits of one; 0: the instruction is another */
};
struct tir_transposition tir_transposition_of(enum tir_instruction which);
const char *tir_instruction_name(enum tir_instruction which);

/* A tile of products of tiles, added to one. */
bool tir_is_tile_product(enum tir_instruction which);
enum { TIR_TILE_ROWS = 16 }; /* at most. Source: Intel, "Architecture Instruction Set Extensions", "Intel AMX" */
/* How many rows the tile has that such a statement adds to, or makes zero; 0: it does neither. */
int tir_tile_rows(const struct tir *ir, tir_stmt s);
/* Lowered, an attribute around a loop that does nothing but such products: the tiles that it adds to stay in registers
 * while it runs. In front of the loop, below the attribute, stand those that begin at zero (TILEZERO). The number of
 * tiles, and two addresses of each, of its first element and of that below it; 0: the statement is no such
 * attribute. */
#define TIR_ACCUMULATORS "msched.accumulators"
uint32_t tir_accumulators_of(const struct tir *ir, tir_stmt s, const tir_expr **addresses);

/* dot_lanes(c, a, b): each lane of c, plus the products of its elements of a and of b, added up: four bytes to int32,
 * uint8 of a and int8 of b, or both int8, or both uint8, or two bfloat16 to float32, or two integers that fit in int16,
 * bytes of any sign or int16, to int32. An operand has as many elements as all lanes take, or those of one, which stand
 * for each. lower/vector/dots.c makes these calls. */
#define TIR_DOT_LANES "dot_lanes"
/* Targets that have one of equal signs have both. */
enum tir_dot { TIR_DOT_BYTES, TIR_DOT_BFLOATS, TIR_DOT_SIGNED, TIR_DOT_UNSIGNED, TIR_DOT_PAIRS, TIR_DOTS };
enum { TIR_DOTS_OF_BYTES = 1 << TIR_DOT_BYTES | 1 << TIR_DOT_SIGNED | 1 << TIR_DOT_UNSIGNED };
enum tir_dot tir_dot_of(tir_type a, tir_type b); /* of operands' types, most products first; TIR_DOTS: none */
int tir_dot_lanes_width(const struct tir *ir, const struct tir_expr_node *call); /* 4 or 2; 0: not of these types */
/* slide_lanes(words, elements): each lane's word of four bytes without its first, and behind the others its element.
 * lower/vector/slides.c makes these calls. */
#define TIR_SLIDE_LANES "slide_lanes"
enum { TIR_SLIDE_WORD = 4 };
bool tir_is_slide(const struct tir *ir, const struct tir_expr_node *call); /* of operands that it takes */
/* How many products, of elements next to one another, are added to a sum at once where a store adds one such product: 4
 * of bytes, 2 of bfloat16; 0: none. */
int tir_dot_width(const struct tir *ir, tir_stmt store);
/* Bits of the part of a byte, widened, of which a store adds a product by a float32; 0: it adds no such. */
int tir_part_bits(const struct tir *ir, tir_stmt store);

/* An annotation of blocks, 0, 1 or 2: what they write to parameters goes around the caches; 2: beside what the next row
 * computes. Lowered, an attribute around a
 * store of a whole vector: its address is a multiple of so many bytes. Under a test, a call is_aligned(A.data, bytes),
 * that the parameter begins at a multiple of TIR_NONTEMPORAL_ALIGNMENT; the interpreter takes it that it does. */
#define TIR_NONTEMPORAL "msched.nontemporal"
#define TIR_WIDEN       "msched.widen" /* of a block, 0 or 1: copies that it fills may hold wider elements (widen.c) */
#define TIR_JAM         "msched.jam"   /* of a loop: those in it that may run side by side become one (jam.c) */

/* On a block: its body may be left out where a sum over its iterations, in their order, is above 0; a list of their
 * coefficients, and a constant. */
#define TIR_IDLE_ABOVE_ZERO "msched.idle_above_zero"
#define TIR_IS_ALIGNED      "is_aligned"
enum { TIR_NONTEMPORAL_ALIGNMENT = 64 };
/* The bytes that such an attribute states; 0: the statement is none. */
int tir_nontemporal_alignment(const struct tir *ir, tir_stmt s);

/* Virtual threads that a thread works for statement by statement; of more it does all the work of each in turn. */
enum { TIR_MOST_VIRTUAL = 16 };

/* What a function is lowered for: each has a list of passes of its own. */
enum tir_device { TIR_CPU, TIR_GPU };
struct tir_lower_options {
  enum tir_device device;
  int vector_bits, vector_registers; /* of the target; 0: 256 and 16 */
  unsigned instructions;             /* of the target: bits 1 << enum tir_instruction */
  unsigned dots;                     /* of the target, in vectors of any width: bits 1 << enum tir_dot */
  bool shifts_two_words;             /* of the target: lanes take bits of two words by one instruction */
  uint32_t tile_accumulators;        /* that registers of tiles hold beside operands; 0: 6 */
  uint32_t threads;                  /* that a parallel loop may use; 0: allocations stay where they are */
  uint64_t cache_bytes;              /* of the last cache, that a thread may count on; 0: as many as it likes */
  uint64_t stack_bytes;              /* larger allocations are laid out in the workspace; 0: 16 KiB */
  uint32_t block_threads;            /* GPU: of a block at most; 0: TIR_BLOCK_THREADS */
  uint64_t shared_bytes;             /* GPU: of a block at most; 0: TIR_STATIC_SHARED_BYTES */
  unsigned capabilities;             /* GPU: of the target: TIR_SET(ASYNC_COPIES), ... */
  bool in_double;                    /* exp and its like are float64's, rounded; +0 is more than -0 */
  bool fused;                        /* a product and a sum are rounded once, by one operation */
  bool free_order;                   /* sums, maxima and minima in any order */
  bool in_single;         /* functions of float32 become steps where there are (in_single.c, through_double.c) */
  bool finite;            /* floats are neither infinite nor NaN: what is multiplied by zero is zero */
  bool verify;            /* the verifier between passes */
  const char *dump_after; /* a pass's name: the function is printed to `dump` after it */
  FILE *dump;
  void (*passed)(void *data, const char *pass); /* NULL, or: called after each pass, with `data` */
  void (*noted)(void *data,
                const char *note); /* NULL, or: called where what a schedule asks for is not done, with why */
  void *data;
};
/* Brings a scheduled function, in place, to loops and accesses of one dimension: what code is generated from. */
bool tir_lower(struct tir *ir, tir_func f, const struct tir_lower_options *options, ms_error *err);
enum { TIR_MOST_PASSES = 96 };
/* The passes of a device in order, at most so many; NULL past the last. */
const char *tir_lower_pass(enum tir_device device, uint32_t i, const char **what);

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

/* A function lowered for a GPU is a list of allocations, which are the device's, and of kernels: nests of loops bound
 * to blockIdx and threadIdx, each axis once, outermost, with constant numbers of threads. What stood below no thread is
 * a kernel of one, and its loop is annotated TIR_ONE_THREAD. */
#define TIR_ONE_THREAD "one_thread"
/* A loop that is bound to blockIdx.x: so many blocks with consecutive numbers are a cluster, in functions before they
 * are lowered too. */
#define TIR_CLUSTER "thread_block_cluster"
int64_t tir_cluster_of(const struct tir *ir, tir_stmt loop);       /* of the loop; 1: none; 0: that is no number */
int64_t tir_kernel_cluster(const struct tir *ir, tir_stmt kernel); /* of a lowered function's kernel */
/* Whether a loop may be annotated as it is; err then has the code. */
bool tir_check_cluster(const struct tir *ir, tir_stmt loop, enum ms_code code, ms_error *err);
/* A loop that the compiler of a GPU's kernel is to unroll: so many iterations at once. What is no positive int32 says
 * nothing. */
#define TIR_UNROLL_COUNT "unroll_count"
int64_t tir_unroll_count(const struct tir *ir, tir_stmt loop); /* 0: it says nothing */

/* What stands for instructions is called by name: device calls, by the table gpu/calls.def. */

/* The load that a value is, or that it is where a condition for all lanes holds, and zeros elsewhere: what an
 * asynchronous copy, or one of a vector, can do. *condition is then that, else TIR_NONE. NULL: the value is no such. */
const struct tir_expr_node *tir_copied_load(const struct tir *ir, tir_expr value, tir_expr *condition);

/* ---- Shared memory by banks -------------------------------------------------------------------------------------- */

/* A shared buffer whose scope ends so has swizzled rows: in emitted code, byte b of it lies at
 * b ^ (b >> shift & mask) * 16; pieces of 16 bytes stay whole. Indices and the interpreter know nothing of it; only
 * code that makes addresses does. After lowering, the scope also holds a row's bytes. Source: CUTLASS, "Swizzle". */
#define TIR_SWIZZLE ".swizzle"
/* A scope that ends so has the canonical layout of wgmma: rows are cut into tiles of 128 bytes (`panel` below), or of
 * 64 or 32 where 128 does not divide a row. A tile holds its part of all rows, one after the other, swizzled by the
 * last bits of the row: column byte c of row r lies at x ^ (x >> 7 & mask) * 16, where x is
 * `(c / panel * rows + r) * panel + c % panel`. The scope also holds a row's bytes and the number of rows. It
 * begins at a multiple of TIR_PANEL_ALIGNMENT. Source: CUTLASS, "mma_traits_sm90_gmma.hpp", canonical layouts. */
#define TIR_PANELS ".panels"
struct tir_swizzle {
  int shift, mask;
  int64_t panel, row, rows; /* `panel` 0: rows are not cut into tiles */
};
bool tir_swizzle_of(const struct tir *ir, tir_buffer buffer, struct tir_swizzle *out); /* false: as indices say */
int64_t tir_panel_of(int64_t row); /* the widest swizzled tile for rows of so many bytes; 0: none divides a row */

/* ---- Fragments of tensor units ----------------------------------------------------------------------------------- */

bool tir_is_fragment(const struct tir *ir, tir_buffer buffer); /* its scope says so: it has no address */

/* Products d = a * b + c of mma, by a warp: a has 16 rows, b 16 columns, and as many products are summed as fill 32
 * bytes: 8 of 32 bits, which are rounded to TF32, 16 of 16, 32 of 8. PTX does it in two halves of 8 columns.
 * Scopes say which operand a buffer holds. */
enum tir_mma_operand { TIR_MMA_A, TIR_MMA_B, TIR_MMA_C };
bool tir_mma_operand_of(const struct tir *ir, tir_buffer buffer, enum tir_mma_operand *out); /* false: it is none */
int tir_mma_depth(int bits); /* products that are summed, of elements of 8, 16 or 32 bits */
/* What a lane holds: its elements, numbered through its registers from the low bits on, as rows and columns of the
 * operand. `bits`: of an element of a and b. Source: PTX ISA, "Matrix Fragments for mma.m16n8k8", "k16" and "k32". */
struct tir_mma_place {
  int row, column;
};
struct tir_mma_place tir_mma_place(enum tir_mma_operand operand, int bits, int lane, int element);

/* What a lane holds of accumulators of 16 x 8 x 8, as TVM's ptx_ldmatrix and ptx_mma make them: tiles of 16 x 8 follow
 * one another by the rows of the buffer, of scope m16n8k8.matrixC, four registers of each in every lane. Buffers that
 * nothing but calls touches have this at the end of their scope (lanes.c). */
#define TIR_MMA8_LANES ".lanes"
bool tir_is_mma8_fragment(const struct tir *ir, tir_buffer buffer); /* an operand of 16 x 8 x 8, of either kind */

/* What a warp group has in registers: accumulators, operand a, and values of rows. */
bool tir_is_group_fragment(const struct tir *ir, tir_buffer buffer); /* the scope says so */
bool tir_is_wgmma_width(int64_t n);                                  /* there are products of so many columns */
/* There are such products of elements of this type: integers of 8 bits, whose sums have 32, floats of 8, of 16, and of
 * 32, of which wgmma leaves out the last 13 bits. tir_mma_depth says how many are summed. */
bool tir_wgmma_multiplies(tir_type input, tir_type sum, int64_t n);
/* b may lie by rows: its columns need not be what is summed. */
bool tir_wgmma_takes_rows(tir_type input);
/* a may be in registers: floats of 16 or of 8 bits. The column of it there that meets row `row` of b: of 8 bits a
 * thread holds four of a row side by side where it has two accumulators, so that sixteen columns come in another
 * order. */
bool tir_wgmma_takes_registers(tir_type input);
int tir_wgmma_column_of(int bits, int row);
/* Whether elements of a and of b go together: they are alike, or bytes, signed or not. */
bool tir_wgmma_pairs(tir_type a, tir_type b);
double tir_wgmma_operand(tir_type input, double x); /* what is multiplied where x is read */
/* How operands of a warp-group MMA lie: by their columns, or else by rows. */
struct tir_wgmma_layout {
  bool a_by_columns, b_by_columns;
};
bool tir_wgmma_layout_of(const char *text, struct tir_wgmma_layout *out);
/* Where element `element` of a thread's n / 2 lies in the fragment of accumulators, and in one of operand a, which has
 * as many columns as it has products a sum. Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16". */
struct tir_mma_place tir_wgmma_place(int thread, int element);

/* The operands of a tensor_copy, by number, of an im2col_copy, which has four lists more, and of a multicast_copy,
 * which has the blocks behind them. */
enum { TIR_BOX_TO, TIR_BOX_STRIDE, TIR_BOX_BARRIER, TIR_BOX_FROM, TIR_BOX_RANK, TIR_BOX_LISTS };
/* Those of a tensor_store. */
enum { TIR_STORE_FROM, TIR_STORE_STRIDE, TIR_STORE_TO, TIR_STORE_RANK, TIR_STORE_LISTS };
/* Places of pixels in the dimensions between the first and the last, outermost first: from `lower` on by `step` up to
 * the tensor's last element moved by `upper`. Source: CUDA Driver API, "cuTensorMapEncodeIm2col". */
struct tir_pixels {
  int64_t lower[TIR_PIXELS_MOST_RANK], upper[TIR_PIXELS_MOST_RANK], step[TIR_PIXELS_MOST_RANK];
};
/* A tensor_copy, an im2col_copy, a multicast_copy or a tensor_store as it stands in a lowered function; false: the call
 * is none, or is not of constant extents. A store's `to` is what it reads in shared memory, and it has no barrier. In
 * im2col mode the box is box[0] pixels of box[rank - 1] channels, sides between are 1. */
struct tir_box {
  tir_expr to, barrier, from; /* pointers */
  int64_t stride;
  uint32_t rank;
  int64_t extents[TIR_BOX_MOST_RANK], box[TIR_BOX_MOST_RANK]; /* outermost first */
  tir_expr at[TIR_BOX_MOST_RANK];
  int64_t blocks; /* bits of ranks in the cluster, where it comes to several; else 0 */
  bool im2col;
  tir_expr offsets[TIR_PIXELS_MOST_RANK]; /* of a window's tap */
  struct tir_pixels pixels;
};
/* Of what a block copies to a matrix: so many rows and columns, from multiples of as many on, or numbers that divide
 * them, bulk tensor copies bring; 0 and 0: none do. (gpu/copy_tile.c) */
struct tir_copy_tile {
  int64_t rows, columns;
};
struct tir_copy_tile tir_copy_tile_of(const struct tir *ir, tir_block block);
/* Operands of an im2col_copy of a tensor of so many dimensions. */
static inline uint32_t tir_im2col_operands(uint32_t rank) { return TIR_BOX_LISTS + 3 * rank + 4 * (rank - 2); }
/* What the instruction's fields hold of pixels and of offsets, by the tensor's rank. */
bool tir_fits_im2col(uint32_t rank, const struct tir_pixels *pixels, int64_t most_offset);
bool tir_box_of(const struct tir *ir, tir_expr call, struct tir_box *out);

/* ---- Outlined code ----------------------------------------------------------------------------------------------- */

/* A parallel loop that is in no other, or a kernel, becomes a function of its own in generated code. Around it stands
 * what that takes of what is defined outside: attr(0, TIR_OUTLINED, captures(A.data, …, n, …)), buffers first.
 *
 * On CPUs so do nests of the function's list of serial code that add to memory in the workspace beside other memory
 * there. Where many loops are the same but for what they take, or many such nests of any kind, a number stands in place
 * of 0: one function does for all of one number, whose captures go one to one, in order. What an emitter may go by is
 * the same in all: types, constants, sizes, and which of the captured buffers are apart. */
#define TIR_OUTLINED "outlined"
struct tir_captures {
  tir_loop loop;      /* parallel, or a kernel's outermost; TIR_NONE: a nest, which runs once where it stands */
  tir_stmt first;     /* of what stands in the attribute */
  uint32_t number;    /* 0: the function is for this one only */
  const tir_expr *at; /* TIR_DATA of so many buffers, then so many TIR_VAR; valid until the arena grows */
  uint32_t buffers, vars;
};
bool tir_captures_of(const struct tir *ir, tir_stmt s, struct tir_captures *out); /* false: s states none */
/* Whether no other of the captured buffers may share memory with that of this number: views do with what they view. */
bool tir_is_captured_apart(const struct tir *ir, const struct tir_captures *captures, uint32_t i);
/* Whether a buffer is a view of what another buffer names. Allocations in the workspace are none: each has its own. */
bool tir_is_view(const struct tir *ir, tir_buffer buffer);
/* The buffer whose memory a view's is, at last; of other buffers, the buffer itself. TIR_NONE: not known. */
tir_buffer tir_viewed_memory(const struct tir *ir, tir_buffer buffer);

/* Whether memory of one buffer may be that of another, which has another name. */
bool tir_may_share_memory(const struct tir *ir, tir_buffer a, tir_buffer b);

/* Whether the node divides integers by data, or by what may be 0: it is computed only where its value is wanted. */
bool tir_division_may_trap(const struct tir *ir, const struct tir_expr_node *n);

/* ---- The workspace ----------------------------------------------------------------------------------------------- */

/* The memory that a call of a lowered function is given for its large allocations. It is one buffer of bytes, allocated
 * first in the function: what is allocated outside of parallel loops, then a piece for each thread. An allocation in it
 * is a view whose data is the address of its first byte, address_of(workspace[offset]); within a parallel loop
 * address_of(workspace[thread * thread_bytes + offset]), thread being call_extern("omp_get_thread_num"). So more
 * threads need a longer workspace and no other code. */
#define TIR_THREAD_NUMBER "omp_get_thread_num"
struct tir_workspace {
  tir_buffer buffer;     /* TIR_NONE: the function needs none */
  uint64_t bytes;        /* in all, for `threads` */
  uint64_t thread_bytes; /* of the piece of one thread, pieces being the last of it */
  uint32_t threads;
};
struct tir_workspace tir_workspace_of(const struct tir *ir, tir_func f);
/* Whether a buffer is an allocation in a workspace: no other that lives at the same time shares memory with it. */
bool tir_is_placed(const struct tir *ir, tir_buffer buffer);
bool tir_is_thread_number(const struct tir *ir, tir_expr e); /* the call that gives the number of a loop's thread */
/* Bytes that an allocation takes, a multiple of its elements'; 0: not a positive constant, or too large. */
uint64_t tir_allocation_bytes(const struct tir *ir, tir_buffer buffer);
/* Checks that no two allocations in the function's workspace overlap that live at once or are of two threads; part of
 * tir_verify. */
bool tir_verify_workspace(const struct tir *ir, tir_func f, ms_error *err);
