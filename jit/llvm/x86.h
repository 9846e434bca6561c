/* x86's features and CPUs by LLVM's names. Internal to jit.
 *
 * A set holds only what changes the code of tensor programs (x86.def); it is closed: whatever a feature in it implies
 * is in it too. Words for other features of CPUs are read and mean nothing here, so that any CPU's full list can be
 * read. */
#ifndef MSCHED_X86_H
#define MSCHED_X86_H

#include "tir/tir.h"

typedef uint64_t x86_set;

enum x86_feature {
#define FEATURE(id, name, where, bit, implied) X86_##id,
#include "x86.def"
  X86_FEATURES
};
static inline bool x86_has(x86_set set, enum x86_feature f) { return set >> f & 1; }

/* What CPUID reports, by leaf, subleaf and register. */
enum x86_word { X86_1_ECX, X86_7_EBX, X86_7_ECX, X86_7_EDX, X86_7_1_EAX, X86_7_1_EDX, X86_80000001_ECX, X86_WORDS };
/* Where a feature is reported; its name. */
const char *x86_where(enum x86_feature f, enum x86_word *word, int *bit);
/* The features that it reports, what they need being there too. */
x86_set x86_reported(const uint32_t words[X86_WORDS]);

enum x86_family { X86_LEVEL, X86_INTEL, X86_ATOM, X86_AMD };

struct x86_cpu {
  const char *name;
  enum x86_family family;
  x86_set has;
};
bool x86_find_cpu(const char *name, struct x86_cpu *out);
/* LLVM's name of a CPU by its maker's numbers and what it has; NULL: not known here. maker: X86_INTEL or X86_AMD. */
const char *x86_name_of(enum x86_family maker, int family, int model, x86_set has);
/* The CPU of the family of `like` (NULL or unknown: guessed from the set) that has most of the set and nothing besides:
 * the newest of equals, but `like` itself where it has as much. A level where no CPU fits. */
void x86_closest_cpu(x86_set set, const char *like, struct x86_cpu *out);

/* Changes a set as LLVM does by a list, "+avx512vnni,-amx-tile": in order, + with all that the feature implies, - with
 * all that implies it. *narrow: whether the list ends without registers of 512 bits (-evex512). False: a word that is
 * no feature, or one without which there is no code. */
bool x86_change(x86_set *set, bool *narrow, const char *list, ms_error *err);
x86_set x86_without(x86_set set, enum x86_feature f); /* and without all that implies it */
x86_set x86_with(enum x86_feature f);                 /* one with all that it implies */

/* The shortest list that makes `to` of `from`, those taken away first, each in order of names: "-avx512f,+amx-tile". */
void x86_write_change(x86_set from, x86_set to, char *out, size_t size);
/* Every feature with + or -, for LLVM: no CPU's name then implies any. */
void x86_write_all(x86_set set, char *out, size_t size);
/* Names and blanks between them: "sse3 avx". */
void x86_write_names(x86_set set, char *out, size_t size);

bool x86_is_triple(const char *triple); /* LLVM's, normalized */

#endif
