/* What GPUs have from some architecture on: capabilities.def. Part of the public header tir.h; included from there
 * only. */

enum tir_capability_id {
#define TIR_CAPABILITY(id, name, least, what) TIR_HAS_##id,
#include "capabilities.def"
  TIR_CAPABILITIES
};
struct tir_capability {
  const char *name, *least, *what;
};
extern const struct tir_capability tir_capabilities[TIR_CAPABILITIES];

/* A set of capabilities, as bits. */
#define TIR_SET(id) (1u << TIR_HAS_##id)
static inline bool tir_has(unsigned set, enum tir_capability_id which) { return set >> which & 1; }
/* Those of an architecture: "sm_80", "sm_90a". */
unsigned tir_capabilities_of(const char *arch);
/* What follows the name of its first architecture in messages: " and later", or nothing. */
const char *tir_capability_since(enum tir_capability_id which);
/* The number in an architecture's name. own: it has instructions that no other has, so that its code runs on no
 * other. */
int tir_arch_number(const char *arch, bool *own);
