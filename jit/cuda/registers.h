/* How many registers a kernel will have, estimated from its lowered function before ptxas has seen it. Internal to
 * jit. */
#ifndef MSCHED_JIT_REGISTERS_H
#define MSCHED_JIT_REGISTERS_H

#include "jit/jit.h"

/* Fills estimated_registers and estimated_spills of a kernel.
 *   kernel  the outermost loop of its nest, in a lowered function
 *   most    registers that a thread of its blocks may have; where setmaxnreg raises that of a warp group, spills are
 *           held against the raised number
 * spills: a thread keeps more than registers hold: some of it, or a whole array that is not indexed by numbers once
 * the compiler has unrolled loops, lies in memory. Its registers are then estimated as `most`. Where none does, four
 * of five numbers are within 16 registers of what ptxas gives, or a factor of two, and three of five within 16 or 35
 * %; what lies in memory is right of four of five. Of 265 kernels that nothing was fitted to: 92 % and 79 % (sm_70
 * 91 and 75, sm_80 82 and 69, sm_90a 97 and 87), and 338 of 361 as to memory. What ptxas does ahead is not known: a
 * kernel that loads much may have 200 more. Fitted to what NVRTC 12 and 13 made of random draws of the 19 operators
 * and of products on tensor cores; tests/support/lua/estimated.lua holds it to that. */
void registers_estimate(const struct tir *ir, tir_loop kernel, int most, struct jit_resources *k);

#endif
