/* CUDA's targets: from a text to what code is made for, and back. */
#include "cuda.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct arch {
  const char *name;
  int shared_bytes, multiprocessor_bytes;
};
static const struct arch archs[] = {
#define CUDA_ARCH(name, shared_bytes, multiprocessor_bytes) {name, shared_bytes, multiprocessor_bytes},
#include "cuda.def"
};

struct limit {
  const char *option;
  size_t field; /* an int's place in struct jit_gpu */
  int standard;
};
static const struct limit limits[] = {
#define CUDA_LIMIT(field, option, standard) {option, offsetof(struct jit_gpu, field), standard},
#include "cuda.def"
};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static int *limit_of(struct jit_gpu *gpu, const struct limit *l) { return (int *)(void *)((char *)gpu + l->field); }

static int standard_of(const struct arch *arch, const struct limit *l) {
  return l->standard ? l->standard : arch->shared_bytes;
}

static const struct arch *find_arch(const char *name) {
  for (size_t i = 0; i < COUNT(archs); i++)
    if (!strcmp(archs[i].name, name)) return &archs[i];
  return NULL;
}

bool cuda_holds_two(const struct jit_target *target, int64_t bytes) {
  const struct arch *arch = find_arch(target->cpu);
  assert(arch && bytes >= 0);
  int taken = arch->multiprocessor_bytes - arch->shared_bytes; /* of each block, beside what it asks for */
  return 2 * (bytes + taken) <= arch->multiprocessor_bytes;
}

static bool refuse_arch(const char *name, ms_error *err) {
  char known[256] = "";
  for (size_t i = 0; i < COUNT(archs); i++) strcat(strcat(known, i ? " " : ""), archs[i].name);
  return name ? ms_fail(err, MS_UNKNOWN_TARGET, "target: -arch=%s is not known; known are %s", name, known)
              : ms_fail(err, MS_UNKNOWN_TARGET,
                        "target: no device is found here: say which GPU, as cuda -arch=sm_90; known are %s", known);
}

/* That of the first device here: the latest of its generation that it runs. NULL: there is none. */
static const struct arch *arch_of_device(void) {
  struct jit_device_info device;
  const struct arch *latest = NULL;
  ms_error ignored = {0};
  if (!jit_devices(&device, 1, &ignored)) return NULL;
  for (size_t i = 0; i < COUNT(archs); i++) {
    bool own;
    int number = tir_arch_number(archs[i].name, &own);
    if (own ? number == device.arch : number / 10 == device.arch / 10 && number <= device.arch) latest = &archs[i];
  }
  return latest;
}

static bool refuse_option(const char *word, ms_error *err) {
  char known[256] = "-arch= -timing=warm|cold";
  for (size_t i = 0; i < COUNT(limits); i++) strcat(strcat(strcat(known, " -"), limits[i].option), "=");
  return ms_fail(err, MS_UNKNOWN_TARGET, "target: unknown option `%s` of cuda; known are %s", word, known);
}

/* -option=value of a limit: it stays 0 where no word gives it. */
static bool parse_limit(struct jit_gpu *gpu, const char *word, ms_error *err) {
  const char *name = word + strspn(word, "-"), *value = strchr(name, '=');
  for (size_t i = 0; value && i < COUNT(limits); i++) {
    size_t length = strlen(limits[i].option);
    if (length != (size_t)(value - name) || strncmp(name, limits[i].option, length) != 0) continue;
    char *end;
    long n = strtol(value + 1, &end, 10), most = 1 << 20;
    if (!value[1] || *end || n < 1 || n > most)
      return ms_fail(err, MS_UNKNOWN_TARGET, "target: %s: a number from 1 to %ld is expected", word, most);
    *limit_of(gpu, &limits[i]) = (int)n;
    return true;
  }
  return refuse_option(word, err);
}

bool cuda_parse(char *words, struct jit_target *out, ms_error *err) {
  struct jit_target t = *out;
  const char *name = NULL;
  for (char *word; (word = strsep(&words, " \t\n")) != NULL;) {
    if (!*word || !strcmp(word, "cuda")) continue;
    const char *option = word + strspn(word, "-");
    if (!strncmp(option, "arch=", 5))
      name = option + 5;
    else if (!strcmp(option, "timing=warm") || !strcmp(option, "timing=cold"))
      t.gpu.cold = !strcmp(option, "timing=cold");
    else if (!parse_limit(&t.gpu, word, err))
      return false;
  }
  const struct arch *arch = name ? find_arch(name) : arch_of_device();
  if (!arch) return refuse_arch(name, err);
  strcpy(t.cpu, arch->name);
  bool own;
  t.gpu.arch = tir_arch_number(arch->name, &own), t.gpu.capabilities = tir_capabilities_of(arch->name);
  for (size_t i = 0; i < COUNT(limits); i++) {
    int *limit = limit_of(&t.gpu, &limits[i]);
    if (!*limit) *limit = standard_of(arch, &limits[i]);
  }
  *out = t;
  return true;
}

/* Limits are written where they are not the architecture's own. */
void cuda_text(const struct jit_target *target, char *out, size_t size) {
  const struct arch *arch = find_arch(target->cpu);
  assert(arch);
  struct jit_gpu gpu = target->gpu;
  snprintf(out, size, "cuda -arch=%s%s", arch->name, gpu.cold ? " -timing=cold" : "");
  for (size_t i = 0; i < COUNT(limits); i++) {
    size_t length = strlen(out);
    int value = *limit_of(&gpu, &limits[i]);
    if (value != standard_of(arch, &limits[i]))
      snprintf(out + length, size - length, " -%s=%d", limits[i].option, value);
  }
}

uint32_t cuda_numbers(const struct jit_target *target, struct jit_number out[JIT_MOST_NUMBERS]) {
  const struct jit_number all[] = {
      {"arch", target->gpu.arch},
#define CUDA_LIMIT(field, option, standard) {#field, target->gpu.field},
#include "cuda.def"
#define TIR_CAPABILITY(id, name, least, what) {#name, tir_has(target->gpu.capabilities, TIR_HAS_##id)},
#include "tir/gpu/capabilities.def"
  };
  static_assert(COUNT(all) <= JIT_MOST_NUMBERS, "a target's numbers fit");
  memcpy(out, all, sizeof all);
  return COUNT(all);
}

struct tir_lower_options cuda_lower(const struct jit_target *target) {
  return (struct tir_lower_options){.device = TIR_GPU,
                                    .fused = true,
                                    .vector_bits = target->gpu.vector_bytes * 8,
                                    .capabilities = target->gpu.capabilities,
                                    .block_threads = (uint32_t)target->gpu.max_threads,
                                    .shared_bytes = (uint64_t)target->gpu.shared_bytes};
}
