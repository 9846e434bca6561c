/* Bugs put into kernels on purpose, one at a time: in the lowered function, or in its source. Each is caught by the
 * oracles that this table names, and by no other; the kernels without bugs pass all three. NVRTC takes half a second a
 * kernel: it gets the kernels without bugs and the bugs that it is to catch; where MSCHED_EVERY_ORACLE is set, every
 * bug. */
#define _GNU_SOURCE
#include "cuda/oracle.h"
#include "jit/c/emit_c.h"
#include "jit/cuda/nvrtc.h"
#include "jit/cuda/resources.h"
#include "unit/script.h"

enum oracle_bit { NOBODY = 0, INTERPRETER = 1, SHIM = 2, NVRTC = 4 };
enum place { IN_LOWERED, IN_SOURCE };
struct bug {
  const char *what; /* NULL: none, the kernel as it is */
  const char *parameters;
  const char *const *lines;
  enum place place;
  const char *is, *becomes;
  unsigned caught;
  const char *const *plain; /* what the kernel is to compute, where its own lines are not run; else NULL */
};

#define LINES(...)                                                                                                     \
  (const char *const[]) { __VA_ARGS__, NULL }
#define A_C             "A: T.Buffer((64,), \"float32\"), C: T.Buffer((64,), \"float32\")"
#define BX              "for bx in T.thread_binding(2, thread=\"blockIdx.x\"):"
#define TX(n)           "    for tx in T.thread_binding(" #n ", thread=\"threadIdx.x\"):"
#define SHARED(name, n) "    " name " = T.alloc_buffer((" #n ",), scope=\"shared\")"

/* Threads of unlike nests, and a barrier between them. */
#define NESTS                                                                                                          \
  A_C, LINES(BX, SHARED("S", 32), TX(32), "        S[tx] = A[bx * 32 + tx]", TX(20),                                   \
             "        C[bx * 32 + tx] = S[31 - tx]")
/* Two buffers of one time, two barriers an iteration. */
#define CARRIED                                                                                                        \
  A_C, LINES(BX, SHARED("S", 32), SHARED("U", 32), TX(32), "        S[tx] = A[bx * 32 + tx]",                          \
             "    for k in range(20):", "    " TX(32), "            U[tx] = S[31 - tx]", "    " TX(32),                \
             "            S[tx] = U[tx] + T.float32(1)", TX(32), "        C[bx * 32 + tx] = S[tx]")
/* Rows of 20, reduced by warps of 32. */
#define ROWS                                                                                                           \
  "A: T.Buffer((6, 20), \"float32\"), C: T.Buffer((6,), \"float32\")",                                                 \
      LINES("for i in T.thread_binding(3, thread=\"threadIdx.y\"):", "    for j in range(2):",                         \
            "        for k in T.thread_binding(20, thread=\"threadIdx.x\"):", "            with T.sblock(\"C\"):",     \
            "                vi = T.axis.spatial(6, i * 2 + j)", "                vk = T.axis.reduce(20, k)",          \
            "                with T.init():", "                    C[vi] = T.float32(0)",                              \
            "                C[vi] = C[vi] + A[vi, vk]")
#define VTHREADS                                                                                                       \
  A_C, LINES(BX, "    for v in T.thread_binding(4, thread=\"vthread.x\"):",                                            \
             "        for tx in T.thread_binding(8, thread=\"threadIdx.x\"):",                                         \
             "            C[bx * 32 + v * 8 + tx] = A[bx * 32 + v * 8 + tx]")
#define VECTORS                                                                                                        \
  A_C,                                                                                                                 \
      LINES(BX, TX(8),                                                                                                 \
            "        for v in T.vectorized(4):", "            C[bx * 32 + tx * 4 + v] = A[bx * 32 + 28 - tx * 4 + v]")
/* Four elements that begin at an odd one: no vector. */
#define ODD                                                                                                            \
  "A: T.Buffer((68,), \"float32\"), C: T.Buffer((64,), \"float32\")",                                                  \
      LINES(BX, TX(8),                                                                                                 \
            "        for v in T.vectorized(4):", "            C[bx * 32 + tx * 4 + v] = A[bx * 32 + tx * 4 + v + 1]")
#define DYNAMIC                                                                                                        \
  A_C, LINES(BX, SHARED("S", 13000), TX(32), "        S[tx * 400] = A[bx * 32 + tx]", TX(32),                          \
             "        C[bx * 32 + tx] = S[12400 - tx * 400]")
#define HALF                                                                                                           \
  "A: T.Buffer((64,), \"float16\"), h: T.float16, b: T.bfloat16, C: T.Buffer((64,), \"float16\")",                     \
      LINES(BX, TX(32), "        C[bx * 32 + tx] = A[bx * 32 + tx] * h + T.Cast(\"float16\", b)")
#define BLOCKS                                                                                                         \
  "A: T.Buffer((600,), \"float32\"), C: T.Buffer((600,), \"float32\")",                                                \
      LINES("for bx in T.thread_binding(300, thread=\"blockIdx.x\"):", TX(2),                                          \
            "        C[bx * 2 + tx] = A[bx * 2 + tx]")
/* What one kernel leaves in the device's memory, another reads. */
#define KERNELS                                                                                                        \
  A_C, LINES("G = T.alloc_buffer((64,))", BX, TX(32), "        G[bx * 32 + tx] = A[bx * 32 + tx] + T.float32(1)", BX,  \
             TX(32), "        C[bx * 32 + tx] = G[63 - bx * 32 - tx]")
#define INTEGERS                                                                                                       \
  "A: T.Buffer((64,), \"int32\"), C: T.Buffer((64,), \"int32\")",                                                      \
      LINES(BX, TX(32), "        C[bx * 32 + tx] = A[bx * 32 + tx] // 4 + T.min(A[63 - bx * 32 - tx], 3) // 5 * 2")

/* Asynchronous copies (cp.async), two iterations ahead of their use; past the 50th column there is nothing to copy. */
#define PIPELINE                                                                                                       \
  "A: T.Buffer((40, 50), \"float32\"), C: T.Buffer((64,), \"float32\")",                                               \
      LINES(BX, "    L = T.alloc_buffer((32,), scope=\"local\")", TX(32), "        L[tx] = T.float32(0)",              \
            "    for k in T.serial(40, annotations={\"software_pipeline_stage\": [0, 2], "                             \
            "\"software_pipeline_order\": [0, 1], \"software_pipeline_async_stages\": [0]}):",                         \
            "    " SHARED("S", 32), "    " TX(32),                                                                     \
            "            S[tx] = T.if_then_else(bx * 32 + tx < 50, A[k, bx * 32 + tx], T.float32(0))", "    " TX(32),  \
            "            L[tx] = L[tx] + S[31 - tx]", TX(32), "        C[bx * 32 + tx] = L[tx]")

/* A product of halves by one warp, from rows of so many elements in shared memory. */
#define PRODUCT(scope, row)                                                                                            \
  "A: T.Buffer((16, 16), \"float16\"), B: T.Buffer((16, 16), \"float16\"), C: T.Buffer((16, 16), \"float32\")",        \
      LINES("for bx in T.thread_binding(1, thread=\"blockIdx.x\"):",                                                   \
            "    S = T.alloc_buffer((16, " #row "), \"float16\", scope=\"" scope "\")",                                \
            "    U = T.alloc_buffer((16, " #row "), \"float16\", scope=\"" scope "\")",                                \
            "    X = T.alloc_buffer((16, 16), \"float16\", scope=\"mma.matrix_a\")",                                   \
            "    Y = T.alloc_buffer((16, 16), \"float16\", scope=\"mma.matrix_b\")",                                   \
            "    Z = T.alloc_buffer((16, 16), \"float32\", scope=\"mma.accumulator\")", TX(32),                        \
            "        for i in range(8):", "            S[i * 2 + tx // 16, tx % 16] = A[i * 2 + tx // 16, tx % 16]",   \
            "            U[i * 2 + tx // 16, tx % 16] = B[i * 2 + tx // 16, tx % 16]", TX(32),                         \
            "        T.mma_fill(Z.data, 0, T.float32(0))",                                                             \
            "        T.mma_load(X.data, 0, S.access_ptr(\"r\"), " #row ", \"row_major\", \"a\")",                      \
            "        T.mma_load(Y.data, 0, U.access_ptr(\"r\"), " #row ", \"row_major\", \"b\")",                      \
            "        T.mma_sync(Z.data, 0, X.data, 0, Y.data, 0, \"row_major\")",                                      \
            "        T.mma_store(Z.data, 0, C.access_ptr(\"w\"), 16)")
#define MMA      PRODUCT("shared", 24)
#define SWIZZLED PRODUCT("shared.swizzle", 16)

/* A product of halves by one warp group (wgmma), of tiles in the canonical layout. */
#define GROUP                                                                                                          \
  "A: T.Buffer((64, 64), \"float16\"), B: T.Buffer((64, 128), \"float16\"), C: T.Buffer((64, 128), \"float32\")",      \
      LINES("for bx in T.thread_binding(1, thread=\"blockIdx.x\"):",                                                   \
            "    S = T.alloc_buffer((64, 64), \"float16\", scope=\"shared.panels\")",                                  \
            "    U = T.alloc_buffer((64, 128), \"float16\", scope=\"shared.panels\")",                                 \
            "    Z = T.alloc_buffer((64, 128), \"float32\", scope=\"wgmma.accumulator\")", TX(128),                    \
            "        for i in range(32):", "            S[i * 2 + tx // 64, tx % 64] = A[i * 2 + tx // 64, tx % 64]",  \
            "        for i in range(64):", "            U[i, tx] = B[i, tx]", TX(128),                                 \
            "        T.wgmma_fill(Z.data, 0, 128, T.float32(0))", "        for k in range(4):",                        \
            "            T.wgmma_mma(Z.data, 0, 128, S.access_ptr(\"r\", offset=k * 16), 64, "                         \
            "U.access_ptr(\"r\", offset=k * 2048), 128, \"row_major\")",                                               \
            "        T.wgmma_store(Z.data, 0, 128, C.access_ptr(\"w\"), 128)")

/* Eight steps of wgmma by two warp groups on tiles that TMA copies. The copying thread waits until all warps have read
 * the buffer that it overwrites. */
#define TWO_GROUPS(producer, ...)                                                                                      \
  "A: T.Buffer((128, 512), \"float16\"), B: T.Buffer((512, 64), \"float16\"), C: T.Buffer((128, 64), \"float32\")",    \
      LINES(                                                                                                           \
          "for bx in T.thread_binding(1, thread=\"blockIdx.x\"):",                                                     \
          "    D = T.alloc_buffer((128, 64), scope=\"shared\")",                                                       \
          "    Z = T.alloc_buffer((64, 64), \"float32\", scope=\"wgmma.accumulator\")", TX(256),                       \
          "        T.wgmma_fill(Z.data, 0, 64, T.float32(0))",                                                         \
          "    for k in T.serial(8, annotations={\"software_pipeline_stage\": [0, 0, 2], "                             \
          "\"software_pipeline_order\": [0, 1, 2], \"software_pipeline_async_stages\": [0], "                          \
          "\"software_pipeline_tensor_copies\": 1, \"software_pipeline_producer\": " #producer                         \
          ", \"software_pipeline_products_in_flight\": 1}):",                                                          \
          "        S = T.alloc_buffer((128, 64), \"float16\", scope=\"shared.panels\")",                               \
          "        U = T.alloc_buffer((64, 64), \"float16\", scope=\"shared.panels\")", "    " TX(256),                \
          "            for i in range(16):", "                for v in T.vectorized(2):",                              \
          "                    S[i * 8 + tx // 32, tx % 32 * 2 + v] = A[i * 8 + tx // 32, k * 64 + tx % 32 * 2 + v]",  \
          "    " TX(256), "            for i in range(8):", "                for v in T.vectorized(2):",               \
          "                    U[i * 8 + tx // 32, tx % 32 * 2 + v] = B[k * 64 + i * 8 + tx // 32, tx % 32 * 2 + v]",  \
          "    " TX(256), "            for j in range(4):",                                                            \
          "                T.wgmma_mma(Z.data, 0, 64, S.access_ptr(\"r\", offset=tx // 128 * 4096 + j * 16), 64, "     \
          "U.access_ptr(\"r\", offset=j * 1024), 64, \"row_major\")",                                                  \
          TX(256), __VA_ARGS__)
#define FREED TWO_GROUPS(0, "        T.wgmma_store(Z.data, 0, 64, C.access_ptr(\"w\", offset=tx // 128 * 4096), 64)")
/* The same, copied by a producer warp group. Accumulators are stored by way of shared memory, over the tiles. */
#define FED                                                                                                            \
  TWO_GROUPS(1, "        T.wgmma_store(Z.data, 0, 64, D.access_ptr(\"w\", offset=tx // 128 * 4096), 64)", TX(256),     \
             "        for i in range(32):", "            C[i * 4 + tx // 64, tx % 64] = D[i * 4 + tx // 64, tx % 64]")
/* Three tiles of three steps, which two blocks do one after the other. */
#define TURNS                                                                                                          \
  "A: T.Buffer((192, 192), \"float16\"), B: T.Buffer((192, 64), \"float16\"), C: T.Buffer((192, 64), \"float32\")",    \
      LINES(                                                                                                           \
          "for bx in T.thread_binding(3, thread=\"blockIdx.x\"):",                                                     \
          "    D = T.alloc_buffer((64, 64), scope=\"shared\")",                                                        \
          "    Z = T.alloc_buffer((64, 64), \"float32\", scope=\"wgmma.accumulator\")", TX(128),                       \
          "        T.wgmma_fill(Z.data, 0, 64, T.float32(0))",                                                         \
          "    for k in T.serial(3, annotations={\"software_pipeline_stage\": [0, 0, 1], "                             \
          "\"software_pipeline_order\": [0, 1, 2], \"software_pipeline_async_stages\": [0], "                          \
          "\"software_pipeline_tensor_copies\": 1, \"software_pipeline_producer\": 1, "                                \
          "\"software_pipeline_products_in_flight\": 1, \"software_pipeline_blocks\": "                                \
          "2}):",                                                                                                      \
          "        S = T.alloc_buffer((64, 64), \"float16\", scope=\"shared.panels\")",                                \
          "        U = T.alloc_buffer((64, 64), \"float16\", scope=\"shared.panels\")", "    " TX(128),                \
          "            for i in range(16):", "                for v in T.vectorized(2):",                              \
          "                    S[i * 4 + tx // 32, tx % 32 * 2 + v] = A[bx * 64 + i * 4 + tx // 32, k * 64 + tx % 32 " \
          "* 2 + v]",                                                                                                  \
          "    " TX(128), "            for i in range(16):", "                for v in T.vectorized(2):",              \
          "                    U[i * 4 + tx // 32, tx % 32 * 2 + v] = B[k * 64 + i * 4 + tx // 32, tx % 32 * 2 + v]",  \
          "    " TX(128), "            for j in range(4):",                                                            \
          "                T.wgmma_mma(Z.data, 0, 64, S.access_ptr(\"r\", offset=j * 16), 64, "                        \
          "U.access_ptr(\"r\", offset=j * 1024), 64, \"row_major\")",                                                  \
          TX(128), "        T.wgmma_store(Z.data, 0, 64, D.access_ptr(\"w\"), 64)", TX(128),                           \
          "        for i in range(32):",                                                                               \
          "            C[bx * 64 + i * 2 + tx // 64, tx % 64] = D[i * 2 + tx // 64, tx % 64]")
#define TURNS_PLAIN                                                                                                    \
  LINES("for i, j in T.grid(192, 64):", "    C[i, j] = T.float32(0)", "    for k in range(192):",                      \
        "        C[i, j] = C[i, j] + T.Cast(\"float32\", A[i, k]) * T.Cast(\"float32\", B[k, j])")
#define FREED_PLAIN                                                                                                    \
  LINES("for i, j in T.grid(128, 64):", "    C[i, j] = T.float32(0)", "    for k in range(512):",                      \
        "        C[i, j] = C[i, j] + T.Cast(\"float32\", A[i, k]) * T.Cast(\"float32\", B[k, j])")

/* Six steps of such products, of tiles that copies bring two iterations ahead; so many groups of products go on
 * meanwhile. */
#define FLIGHT(groups) AHEAD(groups, 0)
/* The same with one thread that copies. */
#define BOXES AHEAD(1, 1)
#define AHEAD(groups, boxes)                                                                                           \
  "A: T.Buffer((64, 384), \"float16\"), B: T.Buffer((384, 64), \"float16\"), C: T.Buffer((64, 64), \"float32\")",      \
      LINES(                                                                                                           \
          "for bx in T.thread_binding(1, thread=\"blockIdx.x\"):",                                                     \
          "    Z = T.alloc_buffer((64, 64), \"float32\", scope=\"wgmma.accumulator\")", TX(128),                       \
          "        T.wgmma_fill(Z.data, 0, 64, T.float32(0))",                                                         \
          "    for k in T.serial(6, annotations={\"software_pipeline_stage\": [0, 0, 2], "                             \
          "\"software_pipeline_order\": [0, 1, 2], \"software_pipeline_async_stages\": [0], "                          \
          "\"software_pipeline_tensor_copies\": " #boxes ", \"software_pipeline_products_in_flight\": " #groups "}):", \
          "        S = T.alloc_buffer((64, 64), \"float16\", scope=\"shared.panels\")",                                \
          "        U = T.alloc_buffer((64, 64), \"float16\", scope=\"shared.panels\")", "    " TX(128),                \
          "            for i in range(16):", "                for v in T.vectorized(2):",                              \
          "                    S[i * 4 + tx // 32, tx % 32 * 2 + v] = A[i * 4 + tx // 32, k * 64 + tx % 32 * 2 + v]",  \
          "    " TX(128), "            for i in range(16):", "                for v in T.vectorized(2):",              \
          "                    U[i * 4 + tx // 32, tx % 32 * 2 + v] = B[k * 64 + i * 4 + tx // 32, tx % 32 * 2 + v]",  \
          "    " TX(128), "            for j in range(4):",                                                            \
          "                T.wgmma_mma(Z.data, 0, 64, S.access_ptr(\"r\", offset=j * 16), 64, "                        \
          "U.access_ptr(\"r\", offset=j * 1024), 64, \"row_major\")",                                                  \
          TX(128), "        T.wgmma_store(Z.data, 0, 64, C.access_ptr(\"w\"), 64)")

#define FLIGHT_PLAIN                                                                                                   \
  LINES("for i, j in T.grid(64, 64):", "    C[i, j] = T.float32(0)", "    for k in range(384):",                       \
        "        C[i, j] = C[i, j] + T.Cast(\"float32\", A[i, k]) * T.Cast(\"float32\", B[k, j])")

#define BARRIER "T.tvm_storage_sync(\"shared\", T.bool(False), -1)"

static const struct bug bugs[] = {
    {NULL, NESTS, .caught = NOBODY},
    {NULL, CARRIED, .caught = NOBODY},
    {NULL, ROWS, .caught = NOBODY},
    {NULL, VTHREADS, .caught = NOBODY},
    {NULL, VECTORS, .caught = NOBODY},
    {NULL, ODD, .caught = NOBODY},
    {NULL, DYNAMIC, .caught = NOBODY},
    {NULL, HALF, .caught = NOBODY},
    {NULL, BLOCKS, .caught = NOBODY},
    {NULL, KERNELS, .caught = NOBODY},
    {NULL, INTEGERS, .caught = NOBODY},
    {NULL, PIPELINE, .caught = NOBODY},
    {NULL, MMA, .caught = NOBODY},
    {NULL, SWIZZLED, .caught = NOBODY},
    {NULL, GROUP, .caught = NOBODY},
    {NULL, FLIGHT(1), .caught = NOBODY, .plain = FLIGHT_PLAIN},
    {NULL, FLIGHT(0), .caught = NOBODY, .plain = FLIGHT_PLAIN},
    {NULL, BOXES, .caught = NOBODY, .plain = FLIGHT_PLAIN},
    {NULL, FREED, .caught = NOBODY, .plain = FREED_PLAIN},
    {NULL, FED, .caught = NOBODY, .plain = FREED_PLAIN},
    {NULL, TURNS, .caught = NOBODY, .plain = TURNS_PLAIN},
    {"a barrier is left out", NESTS, IN_LOWERED, BARRIER, "T.evaluate(0)", INTERPRETER | SHIM},
    {"a barrier between iterations is left out", CARRIED, IN_LOWERED, BARRIER "\n                        S[tx]",
     "T.evaluate(0)\n                        S[tx]", INTERPRETER | SHIM},
    {"some come to a barrier", NESTS, IN_LOWERED, BARRIER, "if tx < 20:\n                        " BARRIER,
     INTERPRETER | SHIM},
    {"a guard lets one more through", NESTS, IN_LOWERED, "if tx < 20", "if tx < 21", INTERPRETER | SHIM},
    {"two shared buffers overlap", CARRIED, IN_LOWERED, "shared[128]", "shared[64]", INTERPRETER | SHIM},
    {"virtual threads change places", VTHREADS, IN_LOWERED, "tx + 16] = A[bx * 32 + tx + 16]",
     "tx + 16] = A[bx * 32 + tx + 24]", INTERPRETER | SHIM},
    {"lanes beyond the extent bring no identity", ROWS, IN_LOWERED, ", T.float32(0.0))", ", T.float32(1.0))",
     INTERPRETER | SHIM},
    {"a shuffle goes to another lane", ROWS, IN_LOWERED, ", 16, 32, 32)", ", 15, 32, 32)", INTERPRETER | SHIM},
    {"a shuffle's mask leaves lanes out", ROWS, IN_SOURCE, "0xffffffffu", "0x000fffffu", SHIM},
    {"a shuffle is of half warps", ROWS, IN_SOURCE, ", 16)", ", 16, 16)", SHIM},
    {"a vector begins between its multiples", ODD, IN_SOURCE, "  C[bx * 32 + tx * 4] = ",
     "  *(uint4 *)(C + bx * 32 + tx * 4) = *(const uint4 *)(A + bx * 32 + tx * 4 + 1);\n  C[bx * 32 + tx * 4] = ",
     SHIM},
    {"an index is narrowed", BLOCKS, IN_SOURCE, "(int32_t)blockIdx.x", "(int8_t)blockIdx.x", SHIM},
    {"a launch asks for too little shared memory", DYNAMIC, IN_SOURCE, "ms_args_0, 49632,", "ms_args_0, 49600,", SHIM},
    {"a launch has fewer blocks", BLOCKS, IN_SOURCE, "dim3(300, 1, 1)", "dim3(299, 1, 1)", SHIM},
    {"arguments change places", KERNELS, IN_SOURCE, "{(void *)&C, (void *)&G}", "{(void *)&G, (void *)&C}", SHIM},
    {"a scalar's bits are another type's", HALF, IN_SOURCE, "ms_of_half_f32(ms_h)", "ms_of_bfloat_f32(ms_h)", SHIM},
    {"a remainder becomes a quotient", INTEGERS, IN_LOWERED, "T.truncmod(", "T.truncdiv(", INTERPRETER | SHIM},
    {"a stage too few", PIPELINE, IN_LOWERED, "T.truncmod(k + 1, 3)", "T.truncmod(k + 2, 3)", INTERPRETER | SHIM},
    {"a version modulo wrong", PIPELINE, IN_LOWERED, "S[T.truncmod(k, 3)", "S[T.truncmod(k, 2)", INTERPRETER | SHIM},
    {"a wait too few", PIPELINE, IN_LOWERED, "T.ptx_wait_group(1)", "T.ptx_wait_group(2)", INTERPRETER | SHIM},
    {"a step ends no group", PIPELINE, IN_LOWERED, "T.ptx_commit_group()", "T.evaluate(0)", INTERPRETER | SHIM},
    {"no barrier follows a wait", PIPELINE, IN_LOWERED, BARRIER, "T.evaluate(0)", INTERPRETER | SHIM},
    {"a copy that there is nothing for is made", PIPELINE, IN_SOURCE, "? 4 : 0", "? 4 : 4", SHIM},
    {"a copy is of more than is there", PIPELINE, IN_SOURCE, "? 4 : 0", "? 8 : 0", SHIM},
    {"a copy of 6 bytes", PIPELINE, IN_SOURCE, "[to], [%1], 4, %2", "[to], [%1], 6, %2", NVRTC},
    {"a product begins before others have copied", MMA, IN_LOWERED, BARRIER, "T.evaluate(0)", INTERPRETER},
    {"rows of a fragment lie elsewhere", MMA, IN_LOWERED, "24, \"row_major\"", "16, \"row_major\"", INTERPRETER | SHIM},
    {"a fragment is loaded as it lies, and lies by rows", MMA, IN_SOURCE, "  ms_ldmatrix_x4_trans(d,",
     "  ms_ldmatrix_x4(d,", SHIM},
    {"lanes name rows of another matrix", MMA, IN_SOURCE, "lane % 8 + 8 * odd + 0 * upper",
     "lane % 8 + 0 * odd + 8 * upper", SHIM},
    {"the halves of a product have one b", MMA, IN_SOURCE, "(d + 4, a, b + 2)", "(d + 4, a, b)", SHIM},
    {"a lane stores to another's row", MMA, IN_SOURCE, "ms_lane() / 4 * stride", "ms_lane() / 8 * stride", SHIM},
    {"a product of a shape that there is not", MMA, IN_SOURCE, "m16n8k16.row.col", "m16n8k12.row.col", NVRTC},
    {"a copy goes where rows are not spread", SWIZZLED, IN_SOURCE, "S[ms_swizzle_7_1_2(tx + 64)]", "S[tx + 64]", SHIM},
    {"lanes load where rows are not spread", SWIZZLED, IN_SOURCE, "from + ms_swizzle_7_1_2(", "from + (", SHIM},
    {"rows that are to be spread are not", SWIZZLED, IN_SOURCE, "return i ^ (i >> 6 & 1) << 3;", "return i;", SHIM},
    {"a warp group begins before others have copied", GROUP, IN_LOWERED, BARRIER, "T.evaluate(0)", INTERPRETER | SHIM},
    {"products are not waited for", GROUP, IN_LOWERED, "T.wgmma_wait(0, Z.data)", "T.evaluate(0)", INTERPRETER | SHIM},
    {"products are committed to no group", GROUP, IN_LOWERED, "T.wgmma_commit()", "T.evaluate(0)", INTERPRETER | SHIM},
    {"no fence before products", GROUP, IN_LOWERED, "T.wgmma_fence(Z.data)", "T.evaluate(0)",
     INTERPRETER | SHIM | NVRTC},
    {"proxies are not fenced", GROUP, IN_LOWERED, "T.fence_proxy_async()", "T.evaluate(0)", SHIM},
    {"groups of rows are described too near", GROUP, IN_SOURCE, "16, 1024, 1)", "16, 512, 1)", SHIM},
    {"a descriptor has half the stride between tiles", GROUP, IN_SOURCE, "8192, 1024, 1)", "4096, 1024, 1)", SHIM},
    {"a descriptor has another swizzle", GROUP, IN_SOURCE, "16, 1024, 1)", "16, 1024, 2)", SHIM},
    {"the next products are half a step away", GROUP, IN_SOURCE, "S + ms_panels_64_64_2(16)",
     "S + ms_panels_64_64_2(8)", SHIM},
    {"a canonical layout is not swizzled", GROUP, IN_SOURCE, "return (int32_t)(i ^ (i >> 6 & 7) << 3);",
     "return (int32_t)i;", SHIM},
    {"a fragment is stored transposed", GROUP, IN_SOURCE,
     "(thread / 32 * 16 + thread % 32 / 4 * 1) * stride + thread % 4 * 2",
     "thread / 32 * 16 + thread % 32 / 4 * 1 + thread % 4 * 2 * stride", SHIM},
    {"warps have each other's rows", GROUP, IN_SOURCE, "thread / 32 * 16", "(3 - thread / 32) * 16", SHIM},
    {"b is read as though by columns", GROUP, IN_SOURCE, "(void)ms_wgmma_m64n128k16_f16_row",
     "(void)ms_wgmma_m64n128k16_f16_col", SHIM | NVRTC},
    {"sums are touched while products go on", GROUP, IN_SOURCE,
     "Z + 64 * (0), ms_wgmma_matrix(S + ms_panels_64_64_2(32)",
     "(Z[0] += 1.0f, Z), ms_wgmma_matrix(S + ms_panels_64_64_2(32)", NVRTC},
    {"a product of a width that there is not", GROUP, IN_SOURCE, "m64n128k16.f32", "m64n132k16.f32", NVRTC},
    {"threads do not meet before products", FLIGHT(1), IN_LOWERED, BARRIER, "T.evaluate(0)", INTERPRETER | SHIM,
     FLIGHT_PLAIN},
    {"a group too many is in flight", FLIGHT(1), IN_LOWERED, "T.wgmma_wait(1, Z.data)", "T.wgmma_wait(2, Z.data)",
     INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"a version too few for a group in flight", FLIGHT(0), IN_LOWERED, "T.wgmma_wait(0, Z.data)",
     "T.wgmma_wait(1, Z.data)", INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"sums are stored while a group is in flight", FLIGHT(1), IN_LOWERED,
     "T.wgmma_wait(0, Z.data)\n                    T.wgmma_store",
     "T.wgmma_wait(1, Z.data)\n                    T.wgmma_store", INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"threads wait for TMA copies by the other parity", BOXES, IN_LOWERED, "phases.data, k - 2, 8, 1), 0)",
     "phases.data, k - 2, 8, 1), 1)", INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"threads wait for the last TMA copies by the other parity", BOXES, IN_LOWERED, "phases.data, 1, 8, 1), 1)",
     "phases.data, 1, 8, 1), 0)", INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"threads wait for another iteration's TMA copies", BOXES, IN_LOWERED,
     "T.mbarrier_wait(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, k - 2",
     "T.mbarrier_wait(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, 0", INTERPRETER | SHIM,
     FLIGHT_PLAIN},
    {"threads do not wait for TMA copies", BOXES, IN_LOWERED,
     "T.mbarrier_wait(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, k - 2, 8, 1), 0)", "T.evaluate(0)",
     INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"fewer bytes are expected", BOXES, IN_LOWERED, "phases.data, 0, 8, 1), 8192)", "phases.data, 0, 8, 1), 4096)",
     INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"more bytes are expected", BOXES, IN_LOWERED, "phases.data, 0, 8, 1), 8192)", "phases.data, 0, 8, 1), 8448)",
     INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"no bytes are expected", BOXES, IN_LOWERED,
     "T.mbarrier_expect(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, 1, 8, 1), 8192)", "T.evaluate(0)",
     INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"all threads begin the copies", BOXES, IN_LOWERED, "if tx == 0:\n                        T.mbarrier_expect",
     "if tx >= 0:\n                        T.mbarrier_expect", INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"a barrier counts one thread less", BOXES, IN_LOWERED, "phases.data, 3, 8, 2), 2)", "phases.data, 3, 8, 2), 1)",
     INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"a barrier counts one thread more", BOXES, IN_LOWERED, "phases.data, 3, 8, 2), 2)", "phases.data, 3, 8, 2), 3)",
     INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"a barrier is not made", BOXES, IN_LOWERED,
     "T.mbarrier_init(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, 2, 8, 2), 2)", "T.evaluate(0)",
     INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"barriers are not fenced", BOXES, IN_LOWERED, "T.mbarrier_fence()", "T.evaluate(0)", SHIM, FLIGHT_PLAIN},
    {"barriers in memory are used before all know of them", BOXES, IN_LOWERED, BARRIER, "T.evaluate(0)",
     INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"TMA copies are of other columns", BOXES, IN_LOWERED, "2, 64, 384, 0, k * 64", "2, 64, 384, 0, k * 64 - 64",
     INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"TMA copies go to a stage buffer that is read", BOXES, IN_LOWERED, "S.data, T.truncmod(k, 4) * 4096",
     "S.data, T.truncmod(k + 2, 4) * 4096", INTERPRETER | SHIM, FLIGHT_PLAIN},
    {"who copies waits for nobody", FREED, IN_LOWERED,
     "T.mbarrier_wait(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, T.truncmod(k, 4) + 4, 8, 1), "
     "T.truncmod(T.Div(k, 4) + 1, 2))",
     "T.evaluate(0)", INTERPRETER | SHIM, FREED_PLAIN},
    {"who copies waits by the other parity", FREED, IN_LOWERED,
     "T.mbarrier_wait(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, T.truncmod(k, 4) + 4, 8, 1), "
     "T.truncmod(T.Div(k, 4) + 1, 2))",
     "T.mbarrier_wait(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, T.truncmod(k, 4) + 4, 8, 1), "
     "T.truncmod(T.Div(k, 4), 2))",
     INTERPRETER | SHIM, FREED_PLAIN},
    {"who copies waits for another version", FREED, IN_LOWERED, "phases.data, T.truncmod(k, 4) + 4, 8, 1), ",
     "phases.data, T.truncmod(k + 1, 4) + 4, 8, 1), ", INTERPRETER | SHIM, FREED_PLAIN},
    {"no warp says that it has read", FREED, IN_LOWERED,
     "T.mbarrier_arrive(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, T.truncmod(k + 1, 4) + 4, 8, 1))",
     "T.evaluate(0)", INTERPRETER | SHIM, FREED_PLAIN},
    {"one warp says that all have read", FREED, IN_LOWERED, "if T.truncmod(tx, 32) == 0", "if tx == 0",
     INTERPRETER | SHIM, FREED_PLAIN},
    {"a warp group says that both have read", FREED, IN_LOWERED, "if T.truncmod(tx, 32) == 0",
     "if T.truncmod(tx, 16) == 0 and tx < 128", INTERPRETER | SHIM, FREED_PLAIN},
    {"each thread says that its warp has read", FREED, IN_LOWERED, "if T.truncmod(tx, 32) == 0",
     "if T.truncmod(tx, 32) >= 0", INTERPRETER | SHIM, FREED_PLAIN},
    {"warps free what they have not waited for", FREED, IN_LOWERED, "T.truncmod(k + 1, 4) + 4, 8, 1))",
     "T.truncmod(k + 2, 4) + 4, 8, 1))", INTERPRETER | SHIM, FREED_PLAIN},
    {"warps free what products in flight read", FREED, IN_LOWERED,
     "T.wgmma_wait(1, Z.data)\n                        if", "T.wgmma_wait(2, Z.data)\n                        if",
     INTERPRETER | SHIM, FREED_PLAIN},
    {"warps free in the first iteration, too", FREED, IN_LOWERED, " and 3 <= k", " and 2 <= k", INTERPRETER | SHIM,
     FREED_PLAIN},
    {"a version is free a warp too early", FREED, IN_LOWERED, "phases.data, 5, 8, 2), 8)", "phases.data, 5, 8, 2), 7)",
     INTERPRETER | SHIM, FREED_PLAIN},
    {"a version is free a warp too late", FREED, IN_LOWERED, "phases.data, 5, 8, 2), 8)", "phases.data, 5, 8, 2), 9)",
     INTERPRETER | SHIM, FREED_PLAIN},
    {"the producer waits for nobody", FED, IN_LOWERED,
     "T.mbarrier_wait(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, T.truncmod(k, 4) + 4, 8, 1), "
     "T.truncmod(T.Div(k, 4) + 1, 2))",
     "T.evaluate(0)", INTERPRETER | SHIM, FREED_PLAIN},
    {"the producer waits by the other parity", FED, IN_LOWERED, "T.truncmod(T.Div(k, 4) + 1, 2))",
     "T.truncmod(T.Div(k, 4), 2))", INTERPRETER | SHIM, FREED_PLAIN},
    {"threads wait for the next tile's TMA copies by the last tile's parity", TURNS, IN_LOWERED,
     "phases.data, k, 6, 1), turn)", "phases.data, k, 6, 1), 0)", INTERPRETER | SHIM, TURNS_PLAIN},
    {"the next tile's sums begin with the last one's", TURNS, IN_LOWERED, "T.wgmma_fill(Z.data, 0, 64, T.float32(0.0))",
     "if turn == 0:\n                                T.wgmma_fill(Z.data, 0, 64, T.float32(0.0))", INTERPRETER | SHIM,
     TURNS_PLAIN},
    {"the next tile's TMA copies wait for no reader of the last tile", TURNS, IN_LOWERED,
     "T.mbarrier_wait(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, 3, 6, 1), "
     "T.truncmod(turn + 1, 2))",
     "T.evaluate(0)", INTERPRETER | SHIM, TURNS_PLAIN},
    {"two threads of the producer copy", FED, IN_LOWERED, "if tx == 256", "if tx >= 382", INTERPRETER | SHIM,
     FREED_PLAIN},
    {"no thread of the producer copies", FED, IN_LOWERED, "if tx == 256", "if tx == 384", INTERPRETER | SHIM,
     FREED_PLAIN},
    {"the producer does not know of barriers", FED, IN_LOWERED, "T.tvm_storage_sync(\"shared\", T.bool(False), -1)",
     "T.evaluate(0)", INTERPRETER | SHIM, FREED_PLAIN},
    {"consumers wait for the producer, too", FED, IN_LOWERED, "T.named_barrier(1, 256)", "T.named_barrier(1, 384)",
     INTERPRETER | SHIM, FREED_PLAIN},
    {"consumers meet where all should", FED, IN_LOWERED, "T.named_barrier(1, 256)",
     "T.tvm_storage_sync(\"shared\", T.bool(False), -1)", INTERPRETER | SHIM, FREED_PLAIN},
    {"sums are stored over what others read", FED, IN_LOWERED, "T.named_barrier(1, 256)", "T.evaluate(0)",
     INTERPRETER | SHIM, FREED_PLAIN},
    {"sums are read that others have not stored", FED, IN_LOWERED,
     "T.named_barrier(1, 256)\n                        C[tx]", "T.evaluate(0)\n                        C[tx]",
     INTERPRETER | SHIM, FREED_PLAIN},
    {"consumers have more registers than there are", FED, IN_LOWERED, "T.set_registers(232, 1)",
     "T.set_registers(240, 1)", INTERPRETER | SHIM, FREED_PLAIN},
    {"a number of registers that there is not", FED, IN_LOWERED, "T.set_registers(40, 0)", "T.set_registers(44, 0)",
     INTERPRETER | SHIM | NVRTC, FREED_PLAIN},
    {"consumers do not say that they have read", FED, IN_LOWERED,
     "T.mbarrier_arrive(T.tvm_access_ptr(T.type_annotation(\"uint64\"), phases.data, T.truncmod(k + 3, 4) + 4, 8, 1))",
     "T.evaluate(0)", INTERPRETER | SHIM, FREED_PLAIN},
    {"a tensor is described with other rows", BOXES, IN_SOURCE, "ms_strides[] = {768}", "ms_strides[] = {384}", SHIM,
     FLIGHT_PLAIN},
    {"a tensor is described with another swizzle", BOXES, IN_SOURCE, "ms_steps, 0, 3, 2, 0)", "ms_steps, 0, 2, 2, 0)",
     SHIM, FLIGHT_PLAIN},
    {"a tensor map has a smaller box", BOXES, IN_SOURCE, "ms_box[] = {64, 64}", "ms_box[] = {64, 32}", SHIM,
     FLIGHT_PLAIN},
    {"maps change places", BOXES, IN_SOURCE, "(void *)&ms_map_0_0, (void *)&ms_map_0_1",
     "(void *)&ms_map_0_1, (void *)&ms_map_0_0", SHIM, FLIGHT_PLAIN},
    {"a copy of a box of two dimensions names three", BOXES, IN_SOURCE, "bulk.tensor.2d", "bulk.tensor.3d", NVRTC,
     FLIGHT_PLAIN},
    {"PTX that there is not", HALF, IN_SOURCE, "cvt.f32.f16 %0", "cvt.f32.f61 %0", NVRTC},
    {"more shared memory than any block has", NESTS, IN_SOURCE, "shared[128]", "shared[300000]", NVRTC},
    {"shared memory that was not predicted", NESTS, IN_SOURCE, "shared[128]", "shared[160]", NVRTC},
};
enum { COUNT = sizeof bugs / sizeof *bugs };

/* The text with the bug; the first of its places. Takes the text. */
static char *put_in(const struct bug *bug, char *text) {
  char *at = strstr(text, bug->is), *made = NULL;
  if (!at) fail_msg("%s: no \"%s\" in\n%s", bug->what, bug->is, text);
  if (asprintf(&made, "%.*s%s%s", (int)(at - text), text, bug->becomes, at + strlen(bug->is)) < 0) abort();
  free(text);
  return made;
}

static struct tir *lowered_with(const struct bug *bug, const struct tir *ir) {
  const struct tir_lower_options options = {.device = TIR_GPU,
                                            .verify = true,
                                            .vector_bits = 128,
                                            .shared_bytes = 232448,
                                            .capabilities = TIR_SET(ASYNC_COPIES) | TIR_SET(TENSOR_COPIES)};
  struct tir *lowered = tir_new();
  ms_error err = {0};
  tir_copy(lowered, ir);
  if (!tir_lower(lowered, tir_find_func(lowered, "main"), &options, &err)) fail_msg("%s", err.message);
  if (!bug->what || bug->place != IN_LOWERED) return lowered;
  char *text = put_in(bug, tir_print(lowered, TIR_NONE, 0));
  tir_free(lowered);
  if (!(lowered = tir_read(text, strlen(text), "bug", &err))) fail_msg("%s\n%s", err.message, text);
  free(text);
  return lowered;
}

/* ---- The oracles ---- */

/* What kernels compute, by plain loops: many bugs are of one kernel. */
struct kernel {
  const char *parameters;
  const char *const *lines;
  struct tir *ir;
  struct oracle w;
};

static bool is_of(const struct kernel *k, const char *parameters, const char *const *lines) {
  uint32_t i = 0;
  while (k->lines[i] && lines[i] && !strcmp(k->lines[i], lines[i])) i++;
  return !strcmp(k->parameters, parameters) && k->lines[i] == lines[i]; /* both end */
}

static struct kernel kernels[COUNT];
static uint32_t kernel_count;

static const struct oracle *find_oracle(const struct bug *bug) {
  const char *const *lines = bug->plain ? bug->plain : bug->lines;
  ms_error err = {0};
  for (uint32_t i = 0; i < kernel_count; i++)
    if (is_of(&kernels[i], bug->parameters, lines)) return &kernels[i].w;
  struct kernel *k = &kernels[kernel_count++];
  *k = (struct kernel){bug->parameters, lines, .ir = read_lines(bug->parameters, lines)};
  if (!oracle_open(&k->w, k->ir, tir_find_func(k->ir, "main"), 5, &err)) fail_msg("%s", err.message);
  return &k->w;
}

static void free_kernels(void) {
  for (uint32_t i = 0; i < kernel_count; i++) {
    oracle_close(&kernels[i].w);
    tir_free(kernels[i].ir);
  }
}

static int64_t static_bytes(const struct c_kernels *kernels) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < kernels->count; i++) sum += kernels->at[i].shared_bytes;
  return sum;
}

static bool is_serialized(const struct c_kernels *kernels) {
  for (uint32_t i = 0; i < kernels->count; i++)
    if (kernels->at[i].serialized) return true;
  return false;
}

/* It compiles, takes the shared memory that it was predicted to, and its products wait for nothing. */
static bool nvrtc_agrees(const char *source, const struct c_kernels *predicted, bool *missing) {
  struct jit_target target;
  struct nvrtc_code code;
  ms_error err = {0};
  assert_true(jit_target_parse("cuda -arch=sm_90a", &target, &err));
  int64_t expected = static_bytes(predicted);
  bool ok = nvrtc_compile(source, &target, false, false, &code, &err) &&
            resources_note(code.log, &target, predicted->at, predicted->count, &err) &&
            static_bytes(predicted) == expected && !is_serialized(predicted);
  *missing = err.code == MS_NO_LIBRARY;
  nvrtc_code_free(&code);
  return ok;
}

struct subject {
  const struct oracle *w;
  char path[ORACLE_PATH];
  unsigned asked, caught;
};

static bool asks_nvrtc(const struct bug *bug) {
  return !bug->what || bug->caught & NVRTC || getenv("MSCHED_EVERY_ORACLE");
}

/* What the interpreter and NVRTC say; the source goes to the folder. */
static void examine(const struct bug *bug, uint32_t number, const char *folder, struct subject *s, bool *missing) {
  struct jit_target target;
  struct c_kernels made = {0};
  ms_error err = {0};
  struct tir *own = read_lines(bug->parameters, bug->lines);
  struct tir *lowered = lowered_with(bug, own);
  tir_free(own);
  s->w = find_oracle(bug);
  if (!oracle_interprets(s->w, lowered, tir_find_func(lowered, "main"), &err)) s->caught |= INTERPRETER;
  assert_true(jit_target_parse("cuda -arch=sm_90a", &target, &err));
  char *source = jit_emit_c(lowered, tir_find_func(lowered, "main"), "kernels", &target, NULL, &made, &err);
  if (!source) fail_msg("%s", err.message);
  if (bug->what && bug->place == IN_SOURCE) source = put_in(bug, source);
  s->asked = INTERPRETER | SHIM;
  if (!*missing && asks_nvrtc(bug)) {
    if (!nvrtc_agrees(source, &made, missing)) s->caught |= NVRTC;
    if (!*missing) s->asked |= NVRTC;
  }
  oracle_write(folder, number, source, s->path);
  free(source);
  free(made.at);
  tir_free(lowered);
}

static void ask_shim(const struct bug *bug, struct subject *s) {
  char why[ORACLE_TEXT];
  if (oracle_agrees(s->w, s->path, why)) return;
  s->caught |= SHIM;
  if (bug->what) printf("%s: %s\n", bug->what, why);
}

static const char *mark(const struct subject *s, enum oracle_bit bit) {
  return !(s->asked & bit) ? "not asked" : s->caught & bit ? "caught" : "-";
}

static void each_bug_is_caught(void **state) {
  (void)state;
  static struct subject subjects[COUNT];
  char folder[] = "/tmp/kernel_bugs.XXXXXX", command[64];
  bool missing = false, as_said = true;
  assert_non_null(mkdtemp(folder));
  for (uint32_t i = 0; i < COUNT; i++) examine(&bugs[i], i, folder, &subjects[i], &missing);
  if (!oracle_compile(folder)) skip();
  for (uint32_t i = 0; i < COUNT; i++) ask_shim(&bugs[i], &subjects[i]);
  printf("%-46s %-12s %-8s %s\n", "bug", "interpreter", "shim", missing ? "NVRTC: skipped, it is missing" : "NVRTC");
  for (uint32_t i = 0; i < COUNT; i++) {
    const struct subject *s = &subjects[i];
    bool same = (s->caught & s->asked) == (bugs[i].caught & s->asked);
    if (bugs[i].what || !same)
      printf("%-46s %-12s %-8s %s%s\n", bugs[i].what ? bugs[i].what : "(none)", mark(s, INTERPRETER), mark(s, SHIM),
             mark(s, NVRTC), same ? "" : "   NOT AS SAID");
    as_said &= same;
  }
  assert_true(as_said);
  free_kernels();
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_bug_is_caught)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
