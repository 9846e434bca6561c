/* Targets: a target's text makes it again, whatever it is; what a text may say, and what is refused; code follows
 * it. */
#include "jit/cuda/cuda.h"
#include "unit/exported.h"
#include "unit/script.h"

#include "vm/run.h"

static const char *const cpus[] = {
#define CPU(id, family, name, base, more) name,
#include "jit/llvm/x86.def"
};
static const char *const features[] = {
#define FEATURE(id, name, where, bit, implied) name,
#include "jit/llvm/x86.def"
};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static uint64_t random_state = 1;
static size_t below(size_t n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (random_state >> 33) % n;
}

static struct jit_target target_of(const char *text) {
  struct jit_target t;
  ms_error err = {0};
  if (!jit_target_parse(text, &t, &err)) fail_msg("%s: %s", text, err.message);
  return t;
}

static const char *text_of(const struct jit_target *t) {
  static char text[JIT_TARGET_TEXT];
  jit_target_text(t, text, sizeof text);
  return text;
}

/* Every field, and the text. */
static void comes_back(const char *text) {
  struct jit_target t = target_of(text);
  char printed[JIT_TARGET_TEXT];
  snprintf(printed, sizeof printed, "%s", text_of(&t));
  struct jit_target again = target_of(printed);
  if (memcmp(&t, &again, sizeof t) != 0) fail_msg("%s: its text makes another: %s", text, printed);
  assert_string_equal(printed, text_of(&again));
}

/* ---- Texts ---- */

static void texts_make_their_targets_again(void **state) {
  (void)state;
  static const char *const texts[] = {
      "native", "llvm", "llvm -num-cores=3", "native,-avx2", "x86-64-v2", "x86-64-v4,+avx512vnni",
      "llvm -mcpu=rocketlake -mattr=+amx-int8,+amx-bf16,+amx-tile", "llvm -mcpu=sapphirerapids -mattr=-avx512f",
      "llvm -mcpu=skylake-avx512 -vector-bits=256 -num-cores=64", "llvm -mcpu=znver4 -mattr=-evex512",
      "llvm -mtriple=aarch64-linux-gnu", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1 -mattr=+sve2,-sve,+bf16",
      "llvm -mtriple=x86_64-unknown-linux-musl -mcpu=haswell", "cuda -arch=sm_70", "cuda -arch=sm_90a",
      "cuda -arch=sm_80 -max_threads_per_block=256 -max_shared_memory_per_block=16384 -thread_warp_size=64",
      /* as older stores have it: all that a machine has */
      ("llvm -mcpu=rocketlake -num-cores=2 -mattr=+prfchw,-cldemote,+avx,+aes,+sahf,+pclmul,-xop,+xsaves,+avx512fp16,"
       "-usermsr,+sse4.1,+64bit,+cmov,+avx10.1-256,+evex512,+avx512f,+amx-tile,+amx-int8,-shstk,+fxsr")};
  for (size_t i = 0; i < COUNT(texts); i++) comes_back(texts[i]);
  for (size_t i = 0; i < COUNT(cpus); i++) comes_back(cpus[i]);
}

/* By what multiprocessors have, whatever of it a text lets a block have. */
static void multiprocessors_hold_two_blocks(void **state) {
  (void)state;
  struct jit_target volta = target_of("cuda -arch=sm_70"), hopper = target_of("cuda -arch=sm_90a"),
                    less = target_of("cuda -arch=sm_90 -max_shared_memory_per_block=16384");
  assert_true(cuda_holds_two(&volta, 48 << 10) && !cuda_holds_two(&volta, (48 << 10) + 1));
  assert_true(cuda_holds_two(&hopper, 113 << 10) && !cuda_holds_two(&hopper, (113 << 10) + 1));
  assert_true(cuda_holds_two(&less, 16384));
}

static void random_texts_make_their_targets_again(void **state) {
  (void)state;
  static const char *const no_code[] = {"sha", "xsave", "evex512", "sse2", "64bit"};
  size_t longest = 0;
  for (int i = 0; i < 2000; i++) {
    char text[JIT_TARGET_TEXT];
    int used = snprintf(text, sizeof text, "llvm -mcpu=%s -num-cores=%zu", cpus[below(COUNT(cpus))], 1 + below(64));
    for (size_t n = below(i % 10 ? 6 : 60), k = 0; k < n; k++) {
      const char *name = below(9) ? features[below(COUNT(features))] : no_code[below(COUNT(no_code))];
      char sign = below(2) || !strcmp(name, "sse2") || !strcmp(name, "64bit") || !strcmp(name, "evex512") ? '+' : '-';
      used += snprintf(text + used, sizeof text - (size_t)used, "%s%c%s", k ? "," : " -mattr=", sign, name);
    }
    comes_back(text);
    struct jit_target t = target_of(text);
    if (strlen(text_of(&t)) > longest) longest = strlen(text_of(&t));
    if (strstr(t.features, "+avx512vl")) {
      snprintf(text + used, sizeof text - (size_t)used, " -vector-bits=256");
      comes_back(text);
    }
  }
  assert_true(longest < JIT_TARGET_TEXT / 2);
}

/* Only what differs from the name is said, each once, in one order. */
static void texts_are_canonical(void **state) {
  (void)state;
  static const struct {
    const char *text, *canonical;
  } pairs[] = {
      {"x86-64-v3", "llvm -mcpu=x86-64-v3 -num-cores=2"},
      {"llvm -mattr=+amx-tile,+amx-int8 -mcpu=rocketlake", "llvm -mcpu=rocketlake -num-cores=2 -mattr=+amx-int8"},
      {"rocketlake,+amx-bf16,-avx512vnni,+amx-int8",
       "llvm -mcpu=rocketlake -num-cores=2 -mattr=-avx512vnni,+amx-bf16,+amx-int8"},
      {"sapphirerapids,-avx512f,-avx512bw", "llvm -mcpu=sapphirerapids -num-cores=2 -mattr=-avx512f"},
      {"x86-64-v3,+avx512vnni", "llvm -mcpu=x86-64-v3 -num-cores=2 -mattr=+avx512vnni"},
      {"haswell,+avx2,+sha,+sse2,-xop", "llvm -mcpu=haswell -num-cores=2"},
      {"haswell,-avx2,+avx2,+fma", "llvm -mcpu=haswell -num-cores=2"},
      {"skylake-avx512,-evex512", "llvm -mcpu=skylake-avx512 -num-cores=2 -vector-bits=256"},
      {"llvm -mcpu=skylake-avx512 -vector-bits=512", "llvm -mcpu=skylake-avx512 -num-cores=2"},
      {"llvm -mtriple=riscv -mtriple=x86_64-linux-musl -mcpu=haswell",
       "llvm -mcpu=haswell -num-cores=2 -mtriple=x86_64-unknown-linux-musl"}};
  for (size_t i = 0; i < COUNT(pairs); i++) {
    char text[JIT_TARGET_TEXT];
    snprintf(text, sizeof text, "%s%s -num-cores=2", strncmp(pairs[i].text, "llvm", 4) ? "llvm " : "", pairs[i].text);
    struct jit_target t = target_of(text);
    assert_string_equal(text_of(&t), pairs[i].canonical);
  }
}

static void wrong_texts_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } wrong[] = {{"abacus", "`abacus` is not known"},
               {"llvm -mcpu=", "`` is not known"},
               {"llvm -mcpu=znver99 -num-cores=2", "`znver99` is not known"},
               {"llvm -mcpu=pentium4", "`pentium4` is not known"},
               {"x86-64-v3,+flies", "`flies` is not a feature"},
               {"x86-64-v3,fma", "a feature is written +fma or -fma"},
               {"x86-64-v3,,", "a feature is written"},
               {"x86-64-v3,-sse2", "-sse2: there is no code"},
               {"llvm -mattr=+soft-float", "`soft-float` is not a feature"},
               {"llvm -mattr", "unknown option `mattr`"},
               {"llvm -vector-bits=0", "a number from 1 to 512"},
               {"llvm -num-cores=two", "a number from 1 to 4096"},
               {"llvm -mcpu=skylake-avx512 -vector-bits=128", "256 or 512 bits"},
               {"llvm -mcpu=knl -vector-bits=256", "512 bits; for 256 add -mattr=+avx512vl"},
               {"llvm -mcpu=knl -mattr=-evex512", "512 bits; for 256 add -mattr=+avx512vl"},
               {"llvm -mcpu=haswell -vector-bits=512", "have 256 bits; for 128 add -mattr=-avx"},
               {"llvm -mcpu=haswell -vector-bits=128", "have 256 bits"},
               {"llvm -mcpu=x86-64 -vector-bits=256", "have 128 bits"},
               {"llvm -mtriple=i386-linux-gnu", "x86_64 and aarch64"},
               {"llvm -mtriple=x86_64-pc-windows-msvc", "x86_64 and aarch64"},
               {"llvm -mtriple=x86_64-linux-gnux32", "addresses are not of 64 bits"},
               {"llvm -mtriple=aarch64-linux-gnu -mcpu=haswell", "`haswell` is not known"},
               {"llvm -mtriple=aarch64-linux-gnu -mattr=-neon", "-neon: there is no code"},
               {"llvm -mtriple=aarch64-linux-gnu -mattr=sve", "a feature is written"},
               {"cuda", "say which GPU, as cuda -arch=sm_90; known are sm_70 "},
               {"cuda -arch=sm_35", "-arch=sm_35 is not known; known are sm_70 "},
               {"cuda -arch=sm_90 -num-cores=2", "unknown option `-num-cores=2` of cuda; known are -arch= "},
               {"cuda -arch=sm_90 -max_threads_per_block=0", "a number from 1 to"},
               {"cuda -arch=sm_90 -max_threads_per_block=", "a number from 1 to"},
               {"cuda -arch=sm_90 -max_threads_per_block=1k", "a number from 1 to"}};
  for (size_t i = 0; i < COUNT(wrong); i++) {
    struct jit_target t;
    ms_error err = {0};
    assert_false(jit_target_parse(wrong[i].text, &t, &err));
    assert_int_equal(err.code, MS_UNKNOWN_TARGET);
    if (!strstr(err.message, wrong[i].says)) fail_msg("%s: %s", wrong[i].text, err.message);
  }
}

/* ---- Code ---- */

static struct tir *read_product(void) {
  struct tir *ir = read_function("A: T.Buffer((16, 24), \"float32\"), B: T.Buffer((24, 32), \"float32\"), "
                                 "C: T.Buffer((16, 32), \"float32\")",
                                 "for i, j, k in T.grid(16, 32, 24):", "    with T.sblock(\"C\"):",
                                 "        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
                                 "        with T.init():", "            C[vi, vj] = T.float32(0)",
                                 "        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]");
  ms_error err = {0};
  tir_loop j[2], k = loop_of(ir, "C", 2);
  tir_expr factors[] = {TIR_NONE, tir_int(ir, TIR_T_I32, 16)};
  tir_block init;
  assert_true(tir_split(ir, loop_of(ir, "C", 1), factors, 2, true, false, j, &err));
  assert_true(tir_reorder(ir, (tir_loop[]){j[0], k, j[1]}, 3, &err));
  assert_true(tir_parallel(ir, loop_of(ir, "C", 0), &err));
  assert_true(tir_vectorize(ir, j[1], &err));
  assert_true(tir_decompose_reduction(ir, block_named(ir, "C"), k, &init, &err));
  return ir;
}

static void a_targets_text_makes_its_code(void **state) {
  (void)state;
  static const char *const texts[] = {"native",
                                      "llvm -mcpu=rocketlake",
                                      "x86-64-v3,+avx512f",
                                      "llvm -mcpu=znver4 -mattr=-avx512f",
                                      "llvm -mcpu=sapphirerapids -vector-bits=256",
                                      "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"};
  struct tir *ir = read_product();
  for (size_t i = 0; i < COUNT(texts); i++) {
    struct jit_target t = target_of(texts[i]), again = target_of(text_of(&t));
    char *first = exported(ir, &t, NULL, ".s", NULL), *second = exported(ir, &again, NULL, ".s", NULL);
    assert_string_equal(first, second);
    free(first);
    free(second);
  }
  tir_free(ir);
}

/* On every function, the bodies of parallel loops too. */
static void functions_say_how_wide_vectors_are(void **state) {
  (void)state;
  static const struct {
    const char *target, *holds, *lacks, *width, *tune;
  } targets[] = {
      {"skylake-avx512", "%zmm", "none", "\"prefer-vector-width\"=\"512\"", "\"tune-cpu\"=\"skylake-avx512\""},
      {"rocketlake", "%zmm", "none", "\"prefer-vector-width\"=\"512\"", "\"tune-cpu\"=\"rocketlake\""},
      {"llvm -mcpu=skylake-avx512 -vector-bits=256", "%ymm", "%zmm", "\"min-legal-vector-width\"=\"256\"",
       "\"tune-cpu\"=\"skylake-avx512\""},
      {"skylake-avx512,-avx512f", "%ymm", "%zmm", "\"prefer-vector-width\"=\"256\"", "+avx2,"},
      {"x86-64", "%xmm", "%ymm", "\"prefer-vector-width\"=\"128\"", "\"tune-cpu\"=\"generic\""}};
  struct tir *ir = read_product();
  for (size_t i = 0; i < COUNT(targets); i++) {
    struct jit_target t = target_of(targets[i].target);
    char *code = exported(ir, &t, NULL, ".s", NULL), *module = exported(ir, &t, NULL, ".ll", NULL);
    assert_non_null(strstr(code, targets[i].holds));
    assert_null(strstr(code, targets[i].lacks));
    assert_non_null(strstr(module, targets[i].tune));
    for (char *at = module; (at = strstr(at, "\ndefine ")) != NULL; at++) {
      char group[16] = "";
      assert_int_equal(sscanf(strchr(at, '#'), "%15[#0-9]", group), 1);
      char needle[32];
      snprintf(needle, sizeof needle, "attributes %s = ", group);
      char *attributes = strstr(module, needle);
      assert_non_null(attributes);
      char *line = strndup(attributes, strcspn(attributes, "\n"));
      assert_non_null(strstr(line, targets[i].width));
      free(line);
    }
    free(code);
    free(module);
  }
  tir_free(ir);
}

/* Code for what this machine lacks is not loaded, whatever would come of it. */
static void foreign_code_is_not_loaded(void **state) {
  (void)state;
  static const char *const foreign[] = {"llvm -mtriple=aarch64-linux-gnu", "x86-64-v2,+xop"};
  struct tir *ir = read_product();
  for (size_t i = 0; i < COUNT(foreign); i++) {
    struct jit_target t = target_of(foreign[i]);
    ms_error err = {0};
    if (jit_target_runs_here(&t, &err)) continue; /* there are CPUs with XOP */
    struct jit_code *code = jit_compile(ir, tir_find_func(ir, "main"), &t, NULL, &err);
    assert_non_null(code);
    err.code = MS_OK;
    assert_null(jit_load(code, &err));
    assert_int_equal(err.code, MS_UNKNOWN_TARGET);
    assert_non_null(strstr(err.message, i ? "xop" : "aarch64"));
    jit_code_free(code);
  }
  struct jit_target native = target_of("native");
  assert_true(jit_target_runs_here(&native, NULL));
  tir_free(ir);
}

static void a_gpu_has_its_limits_and_source(void **state) {
  (void)state;
  struct jit_target t = target_of("  cuda  -max_threads_per_block=512 -arch=sm_75");
  assert_string_equal(t.kind, "cuda");
  assert_int_equal(t.gpu.arch, 75);
  assert_int_equal(t.gpu.max_threads, 512);
  assert_int_equal(t.gpu.shared_bytes, 65536);
  assert_int_equal(t.gpu.warp, 32);
  assert_string_equal(text_of(&t), "cuda -arch=sm_75 -max_threads_per_block=512");
  assert_int_equal(target_of("native").gpu.arch, 0);
  struct tir *ir = read_product();
  ms_error err = {0};
  struct jit_code *code = jit_compile(ir, tir_find_func(ir, "main"), &t, NULL, &err);
  size_t bytes;
  assert_non_null(code);
  assert_non_null(strstr(jit_code_object(code, &bytes), "__global__"));
  assert_int_equal(setenv("MSCHED_LIBCUDA", "/nonexistent", 1), 0);
  assert_null(jit_load(code, &err));
  assert_int_equal(err.code, MS_NO_DEVICE);
  assert_non_null(strstr(err.message, "CUDA's driver is missing (libcuda: /nonexistent"));
  jit_code_free(code);
  assert_int_equal(setenv("MSCHED_NVRTC", "/nonexistent", 1), 0);
  assert_false(jit_export(ir, tir_find_func(ir, "main"), &t, NULL, "/tmp/kernel.cubin", &err));
  assert_int_equal(err.code, MS_NO_LIBRARY);
  tir_free(ir);
}

int main(void) {
  setenv("MSCHED_LIBCUDA", "/nonexistent", 1); /* a device would say what `cuda` is */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_gpu_has_its_limits_and_source),
      cmocka_unit_test(texts_make_their_targets_again),
      cmocka_unit_test(random_texts_make_their_targets_again),
      cmocka_unit_test(multiprocessors_hold_two_blocks),
      cmocka_unit_test(texts_are_canonical),
      cmocka_unit_test(wrong_texts_are_refused),
      cmocka_unit_test(a_targets_text_makes_its_code),
      cmocka_unit_test(functions_say_how_wide_vectors_are),
      cmocka_unit_test(foreign_code_is_not_loaded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
