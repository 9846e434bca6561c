/* Names that an exported function cannot have: words of C and C++, what C and POSIX define (symbols.def), the
 * names that runtimes keep for themselves, and what libraries of this system define besides. A program that is linked
 * with a function called expf or read calls that one, wherever its libraries mean their own. */
#include "symbols.h"

#include "jit/c/emit_c.h"

#include <ctype.h>
#include <dlfcn.h>
#include <string.h>

/* Words, each between spaces. */
static const char library[] = " "
#include "symbols.def"
    ;

static bool has_word(const char *words, const char *word, size_t length) {
  for (const char *at = words; (at = strchr(at, *word)) != NULL; at++)
    if (at > words && at[-1] == ' ' && !strncmp(at, word, length) && at[length] == ' ') return true;
  return false;
}

/* Those of other types, of 64 bits, for threads, and of a locale: cosf, ftruncate64, strtok_r, isalpha_l. */
static bool is_of_library(const char *name) {
  static const char *const suffixes[] = {"", "f16", "f32", "f32x", "f64", "f64x", "f128", "f", "l", "64", "_r", "_l"};
  size_t length = strlen(name);
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
    size_t own = strlen(suffixes[i]);
    if (own < length && !strcmp(name + length - own, suffixes[i]) && has_word(library, name, length - own)) return true;
  }
  return false;
}

static bool begins(const char *name, const char *with) { return !strncmp(name, with, strlen(with)); }

/* What is linked with kernels, and with what launches them. */
static const char *owner_by_prefix(const char *name) {
  static const char *const openmp[] = {"omp_", "ompt_", "GOMP_", "gomp_", "GOACC_", "acc_", "kmp_"};
  static const char *const cuda[] = {"cuda", "nvrtc", "cublas", "cudnn"};
  if (*name == '_') return "kept for C and its library";
  for (size_t i = 0; i < sizeof openmp / sizeof *openmp; i++)
    if (begins(name, openmp[i])) return "kept for OpenMP's runtime";
  for (size_t i = 0; i < sizeof cuda / sizeof *cuda; i++)
    if (begins(name, cuda[i])) return "kept for CUDA's libraries";
  if (begins(name, "cu") && isupper((unsigned char)name[2])) return "kept for CUDA's driver";
  return begins(name, "pthread_") ? "kept for POSIX's threads" : NULL;
}

/* Libraries of this system that every kernel is linked with, as far as they are here. */
static bool is_of_system(const char *name) {
  static const char *const files[] = {"libc.so.6", "libm.so.6", "libgomp.so.1", "libgcc_s.so.1", "libstdc++.so.6"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    void *file = dlopen(files[i], RTLD_LAZY | RTLD_NOLOAD);
    bool has = file && dlsym(file, name);
    if (file) dlclose(file);
    if (has) return true;
  }
  return false;
}

const char *symbol_owner(const char *name) {
  assert(name && *name);
  if (emit_c_is_reserved(name)) return "a word of C, C++ or the code that is written";
  const char *owner = owner_by_prefix(name);
  if (owner) return owner;
  if (is_of_library(name)) return "a name of C's or POSIX's library";
  return is_of_system(name) ? "a name of this system's libraries" : NULL;
}
