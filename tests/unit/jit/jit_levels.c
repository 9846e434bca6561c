/* Code for older CPUs: what is exported for a level of x86-64 holds no instruction beyond it, uses what the level has,
 * and runs equal to the interpreter where this CPU has the level. */
#include "unit/exported.h"
#include "unit/script.h"

#include <llvm-c/Core.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/Object.h>
#include <llvm-c/Target.h>

/* ---- Which level an instruction needs ---- */

enum { BEYOND = 5 }; /* no level of x86-64 has it */

/* Instructions by the beginnings of their names, the most special first; what is in no row is of level 1. Source:
 * x86-64 psABI, table 3.1. Left out is tzcnt, which older CPUs run as bsf and which stands for it in objects. */
static const struct {
  int level;
  const char *names;
} needs[] = {
    {BEYOND, "vpdpbusd vpdpwssd vdpbf16 vcvtne2ps2bf16 vcvtneps2bf16 vpmadd52 vpermb vpermi2b vpermt2b vgf2p8 gf2p8 "
             "vpopcnt vpshufbitqmb vpcompressb vpcompressw vpexpandb vpexpandw vpshld vpshrd vpclmul vaes sha tdp tile "
             "vaddph vaddsh vmulph vmulsh vsubph vdivph vfmadd132ph vfmadd213ph vfmadd231ph vcvtph2psx vcvtps2phx"},
    {3, "v andn bextr blsi blsmsk blsr bzhi mulx pdep pext rorx sarx shlx shrx lzcnt movbe"},
    {2, "popcnt crc32 cmpxchg16b addsub hadd hsub lddqu movddup movshdup movsldup pabs palignr phadd phsub pmaddubsw "
        "pmulhrsw pshufb psign blend pblend dpps dppd extractps insertps movntdqa mpsadbw packusdw pcmpeqq pcmpgtq "
        "pcmpestr pcmpistr pextrb pextrd pextrq pinsrb pinsrd pinsrq phminposuw pmaxsb pmaxsd pmaxuw pmaxud pminsb "
        "pminsd pminuw pminud pmovsx pmovzx pmuldq pmulld ptest round"},
};

static int level_of_name(const char *name) {
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
    for (const char *at = needs[i].names; *at; at += strcspn(at, " "), at += *at == ' ')
      if (!strncmp(name, at, strcspn(at, " "))) return needs[i].level;
  return 1;
}

/* Vectors of 512 bits, masks and the upper sixteen registers came with the fourth level. */
static int level_of_operands(const char *operands) {
  int level = 1;
  for (const char *at = operands; (at = strchr(at, '%')) != NULL; at++) {
    int number = -1;
    char width = at[1];
    if (width == 'k' && at[2] >= '0' && at[2] <= '7') level = 4;
    if (!strchr("xyz", width) || sscanf(at + 2, "mm%d", &number) != 1) continue;
    int needed = width == 'z' || number > 15 ? 4 : width == 'y' ? 3 : 1;
    if (needed > level) level = needed;
  }
  return level;
}

/* A line of assembly: a tab, the name, a tab, the operands. Directives, labels and comments are of level 1. */
static int level_of_line(const char *line) {
  char name[64];
  line += strspn(line, " \t");
  size_t length = strcspn(line, " \t\n");
  if (*line == '.' || *line == '#' || length == 0 || length >= sizeof name || line[length - 1] == ':') return 1;
  memcpy(name, line, length);
  name[length] = 0;
  int by_name = level_of_name(name), by_operands = level_of_operands(line + length);
  return by_name > by_operands ? by_name : by_operands;
}

/* Of a text of assembly: the highest level, and the first line that needs it. */
static int level_of_text(const char *text, char line[200]) {
  int level = 0;
  for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
    char one[200];
    snprintf(one, sizeof one, "%.*s", (int)strcspn(at, "\n"), at);
    int needed = level_of_line(one);
    if (needed > level) level = needed, strcpy(line, one);
  }
  return level;
}

static void table_tells_levels(void **state) {
  (void)state;
  assert_int_equal(level_of_line("\tmulps\t%xmm1, %xmm2"), 1);
  assert_int_equal(level_of_line("\tpmulld\t(%rax), %xmm2"), 2);
  assert_int_equal(level_of_line("\troundps\t$9, %xmm1, %xmm2"), 2);
  assert_int_equal(level_of_line("\tvmulps\t%xmm1, %xmm2, %xmm3"), 3);
  assert_int_equal(level_of_line("\tvfmadd231ps\t%ymm1, %ymm2, %ymm3"), 3);
  assert_int_equal(level_of_line("\tvmulps\t%zmm1, %zmm2, %zmm3"), 4);
  assert_int_equal(level_of_line("\tvmovups\t%ymm17, (%rax)"), 4);
  assert_int_equal(level_of_line("\tvmovups\t(%rax), %xmm1 {%k1} {z}"), 4);
  assert_int_equal(level_of_line("\tvpdpbusd\t%zmm1, %zmm2, %zmm3"), BEYOND);
  assert_int_equal(level_of_line("\t.section\t\".vzmm\""), 1);
}

/* ---- Functions ---- */

static tir_loop split_loop(struct tir *ir, tir_loop loop, int64_t inner, tir_loop out[2]) {
  tir_expr factors[] = {TIR_NONE, tir_int(ir, TIR_T_I32, inner)};
  assert_accepted(tir_split(ir, loop, factors, 2, true, false, out, err));
  return out[0];
}

/* Tiles of 4 x 16, in parallel, vectorized and unrolled. */
static void schedule_product(struct tir *ir) {
  tir_loop i[2], j[2], k = loop_of(ir, "C", 2);
  tir_block init;
  split_loop(ir, loop_of(ir, "C", 0), 4, i);
  split_loop(ir, loop_of(ir, "C", 2), 16, j);
  tir_loop order[] = {i[0], j[0], k, i[1], j[1]};
  assert_accepted(tir_reorder(ir, order, 5, err));
  assert_accepted(tir_parallel(ir, i[0], err));
  assert_accepted(tir_unroll(ir, i[1], err));
  assert_accepted(tir_vectorize(ir, j[1], err));
  assert_accepted(tir_decompose_reduction(ir, block_named(ir, "C"), k, &init, err));
}

static struct tir *read_product(void) {
  return read_function("A: T.Buffer((32, 24), \"float32\"), B: T.Buffer((24, 48), \"float32\"), "
                       "C: T.Buffer((32, 48), \"float32\")",
                       "for i, j, k in T.grid(32, 48, 24):", "    with T.sblock(\"C\"):",
                       "        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
                       "        with T.init():", "            C[vi, vj] = T.float32(0)",
                       "        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]");
}

/* What newer CPUs have instructions of their own for: rounding, counting bits, extremes, products of integers. */
static struct tir *read_elements(void) {
  return read_function("A: T.Buffer((64,), \"float32\"), I: T.Buffer((64,), \"int32\"), "
                       "B: T.Buffer((64,), \"float32\"), J: T.Buffer((64,), \"int32\")",
                       "for i in range(64):", "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(64, i)",
                       "        B[vi] = T.floor(A[vi] / T.float32(4)) + T.exp(A[vi]) * T.max(A[vi], T.float32(1))",
                       "for i in range(64):", "    with T.sblock(\"J\"):", "        vi = T.axis.spatial(64, i)",
                       "        J[vi] = T.popcount(I[vi]) + T.max(I[vi], 3) * I[vi] + T.Cast(\"int32\", A[vi])");
}

static void schedule_elements(struct tir *ir) {
  tir_loop parts[2];
  split_loop(ir, loop_of(ir, "B", 0), 16, parts);
  assert_accepted(tir_vectorize(ir, parts[1], err));
  split_loop(ir, loop_of(ir, "J", 0), 16, parts);
  assert_accepted(tir_vectorize(ir, parts[1], err));
}

static const struct {
  struct tir *(*read)(void);
  void (*schedule)(struct tir *ir);
} functions[] = {{read_product, schedule_product}, {read_elements, schedule_elements}};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* ---- Targets, and what this CPU has of them ---- */

static const struct {
  const char *target;
  int level;
  const char *uses; /* by the scheduled product */
} levels[] = {{"x86-64", 1, "mulps"},
              {"x86-64-v2", 2, "mulps"},
              {"x86-64-v3", 3, "%ymm"},
              {"x86-64-v4", 4, "%zmm"},
              {"llvm -mcpu=x86-64-v3 -num-cores=2", 3, "vfmadd"},
              {"llvm -mcpu=skylake-avx512", 4, "vfmadd"}};
enum { LEVELS = sizeof levels / sizeof *levels };

static bool cpu_has(int level) {
#ifdef __x86_64__
  if (level >= 4 &&
      !(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")))
    return false;
  if (level >= 3 && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")))
    return false;
  return level < 2 || (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"));
#else
  return level < 1;
#endif
}

static struct jit_target target_of(const char *text) {
  struct jit_target target;
  assert_accepted(jit_target_parse(text, &target, err));
  return target;
}

/* ---- Exported files ---- */

static void disassemble_section(FILE *out, const char *triple, uint8_t *at, uint64_t size) {
  LLVMDisasmContextRef d = LLVMCreateDisasm(triple, NULL, 0, NULL, NULL);
  char text[200];
  assert_non_null(d);
  for (uint64_t pc = 0; pc < size;) {
    size_t length = LLVMDisasmInstruction(d, at + pc, size - pc, pc, text, sizeof text);
    assert_true(length > 0); /* what it does not know would pass unseen */
    fprintf(out, "%s\n", text);
    pc += length;
  }
  LLVMDisasmDispose(d);
}

/* The instructions of an object, as text. The caller frees. */
static char *disassembled(const char *triple, const char *object, size_t size) {
  char *text = NULL, *message = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&text, &length);
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86Disassembler();
  LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, size, "object");
  LLVMBinaryRef binary = LLVMCreateBinary(buffer, NULL, &message);
  assert_non_null(binary);
  LLVMSectionIteratorRef s = LLVMObjectFileCopySectionIterator(binary);
  for (; !LLVMObjectFileIsSectionIteratorAtEnd(binary, s); LLVMMoveToNextSection(s)) {
    const char *name = LLVMGetSectionName(s); /* NULL: the first has none */
    if (name && !strncmp(name, ".text", 5))
      disassemble_section(out, triple, (uint8_t *)LLVMGetSectionContents(s), LLVMGetSectionSize(s));
  }
  LLVMDisposeSectionIterator(s);
  LLVMDisposeBinary(binary);
  LLVMDisposeMemoryBuffer(buffer);
  fclose(out);
  return text;
}

/* ---- Tests ---- */

static void exports_hold_no_more(void **state) {
  (void)state;
  for (int f = 0; f < FUNCTIONS; f++) {
    struct tir *ir = functions[f].read();
    functions[f].schedule(ir);
    for (int i = 0; i < LEVELS; i++) {
      struct jit_target target = target_of(levels[i].target);
      size_t size;
      char line[200] = "", *text = exported(ir, &target, NULL, ".s", &size),
           *object = exported(ir, &target, NULL, ".o", &size);
      char *code = disassembled(target.triple, object, size);
      if (level_of_text(text, line) > levels[i].level) fail_msg("%s, .s: %s", levels[i].target, line);
      if (level_of_text(code, line) > levels[i].level) fail_msg("%s, .o: %s", levels[i].target, line);
      if (f == 0 && !strstr(text, levels[i].uses)) fail_msg("%s: the code has no %s", levels[i].target, levels[i].uses);
      if (f == 0) assert_non_null(strstr(code, levels[i].uses));
      assert_non_null(strstr(code, "ret"));
      free(text);
      free(object);
      free(code);
    }
    tir_free(ir);
  }
}

/* A library, loaded and called with the arguments and a workspace. */
static void call_library(struct tir *ir, const struct jit_target *target, const struct tir_arguments *with) {
  char path[64];
  void *args[8], *workspace = NULL;
  tir_func f = tir_find_func(ir, "main");
  snprintf(path, sizeof path, "/tmp/jit_levels.%ld.so", (long)getpid());
  assert_accepted(jit_export(ir, f, target, NULL, path, err));
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  unlink(path);
  struct jit_code *code = NULL;
  assert_accepted((code = jit_compile(ir, f, target, NULL, err)) != NULL);
  size_t bytes = (jit_code_workspace(code) + 63) / 64 * 64;
  if (bytes) workspace = aligned_alloc(64, bytes);
  jit_code_free(code);
  jit_entry entry;
  char name[64]; /* the file's, since the function is called main */
  snprintf(name, sizeof name, "jit_levels_%ld", (long)getpid());
  *(void **)&entry = dlsym(library, name);
  assert_non_null(*(void **)&entry);
  assert_true(with->count <= 8);
  for (uint32_t i = 0; i < with->count; i++) args[i] = with->args[i].data;
  assert_int_equal(entry(args, workspace), 0);
  free(workspace);
  dlclose(library);
}

static void runs_equal(void **state) {
  (void)state;
  int ran = 0;
  /* Its threads outlive the libraries that need it, and so must it. */
  assert_non_null(dlopen("libgomp.so.1", RTLD_NOW));
  for (int f = 0; f < FUNCTIONS; f++) {
    struct tir *source = functions[f].read(), *ir = functions[f].read();
    tir_func main = tir_find_func(source, "main");
    struct tir_arguments expected, actual, fresh;
    struct tir_run_report report = {0};
    functions[f].schedule(ir);
    assert_accepted(tir_make_arguments(source, main, 7, &fresh, err));
    tir_copy_arguments(source, main, &fresh, &expected);
    assert_accepted(
        tir_run(source, main, expected.args, expected.count, &(struct tir_run_options){.report = &report}, err));
    double tolerance = tir_tolerance(source, main, report.epsilon);
    for (int i = 0; i < LEVELS; i++) {
      if (!cpu_has(levels[i].level)) continue;
      struct jit_target target = target_of(levels[i].target);
      tir_copy_arguments(source, main, &fresh, &actual);
      call_library(ir, &target, &actual);
      ms_error err = {0};
      if (!tir_same_arguments(source, main, &expected, &actual, tolerance, &err))
        fail_msg("%s: %s", levels[i].target, err.message);
      tir_arguments_free(&actual);
      ran++;
    }
    tir_arguments_free(&expected);
    tir_arguments_free(&fresh);
    tir_free(source);
    tir_free(ir);
  }
  if (!ran) skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(table_tells_levels),
      cmocka_unit_test(exports_hold_no_more),
      cmocka_unit_test(runs_equal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
