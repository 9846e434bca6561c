/* C headers of what is exported; target: its text. Internal to jit. */
#ifndef MSCHED_JIT_HEADER_H
#define MSCHED_JIT_HEADER_H

#include "jit/jit.h"

enum { HEADER_NAME = JIT_EXPORTED_NAME }; /* bytes of a function's name, or a parameter's */

/* Writes, as a line of a comment, which parameters a kernel has in the place of others; what packs them is called
 * NAME_pack with this ending. */
void header_describe_packing(FILE *out, const struct tir_packing *cut, tir_func f, const char *name,
                             const char *ending);
/* The header of a function for CPUs, or of what cut->count > 0 leaves of it, with what packs its constants, which works
 * in so many bytes; the caller's to free(). */
char *header_of_function(const struct tir *ir, tir_func f, const char *name, const char *target, uint64_t workspace,
                         const struct tir_packing *cut, uint64_t pack_workspace);

/* A header being written: its comment names the parameters and stays open, to be ended before what is declared. */
struct header {
  FILE *out;
  char *text;
  size_t size;
  char (*names)[HEADER_NAME];
};
void header_begin(struct header *h, const struct tir *ir, tir_func f, const char *name, const char *target);
void header_declare(struct header *h, const char *name);
char *header_end(struct header *h); /* its text, the caller's to free() */

/* The parameters' names as C's: identifiers, no keywords, each once. The caller's to free(). */
char (*header_parameters(const struct tir *ir, struct tir_span params, const char *function))[HEADER_NAME];
const char *header_type(tir_type type, char out[32]); /* of a scalar, or of a buffer's elements */

#endif
