/* How many registers a kernel will have, foreseen from its lowered function before any assembler has seen it. Internal to
 * jit. */
#ifndef MSCHED_JIT_REGISTERS_H
#define MSCHED_JIT_REGISTERS_H

#include "jit.h"

/* Fills foreseen_registers and foreseen_spills of a kernel.
 *   kernel  the outermost loop of its nest, in a lowered function
 *   most    registers that a thread of its blocks may have
 * spills: a thread keeps more than registers hold: some of it, or a whole array that is not indexed by numbers once the
 * compiler has written loops out, lies in memory. How many registers it then has is foreseen as `most`.
 * Where none does, the number is within 16 registers of what ptxas gives, or a factor of two, for nine kernels of ten, within
 * 16 or 35 % for seven of ten; what lies in memory is known of nine of ten. What the assembler does ahead is not known: a
 * kernel that loads much may have 190 more. Fitted to what NVRTC 12 and 13 made of random draws of the 19 operators and of
 * products on tensor cores, from sm_70 to sm_90a; tests/support/foreseen.lua holds it to that. */
void registers_foresee(const struct tir *ir, tir_loop kernel, int most, struct jit_resources *k);

#endif
