/* LLVM's machines for our targets. Internal to jit. */
#ifndef MSCHED_JIT_MACHINE_H
#define MSCHED_JIT_MACHINE_H

#include "jit/c/emit_c.h"
#include "jit/packing.h"
#include "pipeline.h"

/* Opens LLVM (api.h) and makes it ready, once a process; any thread. It starts no thread. */
bool jit_start_llvm(ms_error *err);
/* Where LLVM cannot go on it calls this, which does not return, and not exit; nothing where LLVM is not open. */
void jit_on_llvm_fault(void (*fault)(const char *reason));
bool jit_target_is_x86(const struct jit_target *target);
/* Whether it is x86 without instructions for dot products of bytes: they are made of products of 16 bits. */
bool jit_dots_by_pairs(const struct jit_target *target);
/* Floats of 32 bits in a register that one instruction picks from, a lane each by its lowest bits; 0: there is none, or
 * it picks from fewer than 16. */
int jit_table_lanes(const struct jit_target *target);
LLVMTargetMachineRef jit_target_machine(const struct jit_target *target, ms_error *err);
/* The CPU that LLVM is given: on x86 the least, since features are all given; scheduling follows "tune-cpu". */
const char *jit_base_cpu(const struct jit_target *target);

/* LLVM's part of its row in the table (backend.h). */
struct jit_code;
bool llvm_parse(char *words, struct jit_target *out, ms_error *err);
void llvm_text(const struct jit_target *target, char *out, size_t size);
uint32_t llvm_numbers(const struct jit_target *target, struct jit_number out[JIT_MOST_NUMBERS]);
bool llvm_runs_here(const struct jit_target *target, ms_error *err);
struct tir_lower_options llvm_lower(const struct jit_target *target);
bool llvm_compile(const struct tir *lowered, tir_func f, const struct jit_beside *beside,
                  const struct jit_options *options, struct jit_clock *clock, struct jit_code *code, ms_error *err);

struct jit_exported;
void llvm_narrow(struct jit_target *target, const char *form);
bool llvm_withhold(const struct tir *lowered, tir_func f, struct jit_target *target);
bool llvm_export(const struct jit_exported *x, const char *form, const char *path, ms_error *err);
extern const char *const llvm_forms[];

struct jit_code {
  void *object;
  size_t bytes;                   /* of the object */
  struct tir_workspace workspace; /* of its sizes; the buffer means nothing */
  struct jit_packing packing;
  struct jit_target target;
  char name[128]; /* of the entry */
  bool no_fast_math;
  struct c_kernels kernels; /* of a GPU; the object is their source */
  void *launched;           /* what its backend knows of how they are launched, which it frees (backend.h) */
  bool is_assembled;        /* the object is what is loaded: that and their code */
  struct jit_clock clock;
  struct jit_notes notes;
};
/* Copies it there, in the place of another. */
void jit_code_set_object(struct jit_code *code, const void *object, size_t bytes);
/* What another process compiled; the object is copied. packing: NULL, or what its own says. */
struct jit_code *jit_code_of_object(const void *object, size_t bytes, const struct jit_target *target,
                                    const struct tir_workspace *workspace, const struct jit_packing *packing,
                                    const char *name);

/* As jit_load, but that parallel loops run as perturb.h says. */
struct jit_kernel *jit_load_perturbed(const struct jit_code *code, ms_error *err);

/* What an entry returns: 0 where it has run; else an assertion of the function failed, or the system refused tiles. */
enum { JIT_STATUS_ASSERTION = 1, JIT_STATUS_NO_TILES = 2 };
/* Of what an entry returned: false, and err says so, where it is not 0. */
bool jit_passed(int32_t status, ms_error *err);
/* Unless *stop is not 0; stop may be NULL. */
bool jit_goes_on(const volatile int *stop, ms_error *err);

/* Whether the function may write a parameter's buffer: through a block, a store, or a pointer it hands out. */
bool jit_may_write(const struct tir *ir, tir_func f, tir_buffer buffer);

/* How close results must be, given what the function computes: `after` has the arguments with it. */
double jit_tolerance(const struct tir *ir, tir_func f, const struct tir_arguments *after);

/* The module of a lowered function, optimized. Owned by the caller, with `context`. beside: NULL, or another function
 * that it has too; plain: NULL, or what runs where the system refuses tiles; clock: NULL, or counts passes. */
LLVMModuleRef jit_module(LLVMContextRef context, const struct tir *lowered, tir_func f, const char *name,
                         const struct jit_beside *beside, const struct jit_beside *plain, LLVMTargetMachineRef machine,
                         const struct jit_target *target, const struct jit_options *options, struct jit_clock *clock,
                         ms_error *err);
#endif
