/* What this machine's CPU is and has. Internal to jit. */
#ifndef MSCHED_HOST_H
#define MSCHED_HOST_H

#include "jit/llvm/x86.h"

/* Of an x86 CPU. */
struct host {
  char llvm_cpu[64];  /* LLVM's name, from the CPU's model number */
  x86_set reported;   /* by CPUID, where the system keeps the registers */
  struct x86_cpu cpu; /* whose scheduling model is used */
  x86_set has;        /* what code may use */
  x86_set missing;    /* LLVM's name has them, this machine does not or they are masked */
  x86_set beyond;     /* this machine has them, LLVM's name does not */
};

/* From LLVM's name, the features that CPUID reports, the register states that the operating system keeps (XCR0), and
 * whether it lets a process have AMX's tiles. Source: Intel's Software Developer's Manual, volume 1, sections 13.3,
 * 14.3, 15.2 and 18.2. */
void host_of(const char *llvm_cpu, x86_set reported, uint64_t xcr0, bool tiles, struct host *out);

/* This machine, asked once; any thread. NULL where it is no x86. */
const struct host *host_this(void);

#endif
