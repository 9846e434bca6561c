/* Targets of kind "cuda": a GPU's architecture and the limits of a block; CUDA's part of its row in the table
 * (backend.h). Internal to jit. */
#ifndef MSCHED_JIT_CUDA_H
#define MSCHED_JIT_CUDA_H

#include "jit/backend.h"

bool cuda_parse(char *words, struct jit_target *out, ms_error *err);
void cuda_text(const struct jit_target *target, char *out, size_t size);
uint32_t cuda_numbers(const struct jit_target *target, struct jit_number out[JIT_MOST_NUMBERS]);
struct tir_lower_options cuda_lower(const struct jit_target *target);
/* Whether the shared memory of a multiprocessor has room for two blocks that ask for so many bytes. */
bool cuda_holds_two(const struct jit_target *target, int64_t bytes);

/* run.c: devices, their memory, kernels on them. bytes: of a plan and its code (launch.h) */
uint32_t cuda_count(const struct jit_target *target);
bool cuda_runs_here(const struct jit_target *target, ms_error *err);
bool cuda_open(const struct jit_target *target, uint32_t number, struct jit_device **out, ms_error *err);
void cuda_prepare(const struct jit_target *target);
void cuda_describe(const struct jit_device *device, struct jit_ran_on *out);
extern const struct jit_memory cuda_memory;
extern const struct jit_checks cuda_checks; /* cuda/device/check.c */
bool cuda_load(const void *bytes, size_t count, struct jit_kernel *kernel, ms_error *err);
void cuda_unload(struct jit_kernel *kernel);
bool cuda_run(const struct jit_kernel *kernel, void **args, void *workspace, bool outlive, const volatile int *stop,
              ms_error *err);
bool cuda_start(const struct jit_kernel *kernel, void **args, const void *workspace, void *stream, ms_error *err);
bool cuda_start_copy(struct jit_device *device, void *to, const void *from, size_t bytes, void *stream, ms_error *err);
bool cuda_run_other(struct jit_device *device, jit_routine_start *start, void *data, void *const *buffers,
                    ms_error *err);
double cuda_sample_other(struct jit_device *device, jit_routine_start *start, void *data, void *const *buffers,
                         bool cold, struct jit_captured **captured, uint32_t calls, ms_error *err);
void cuda_free_captured(struct jit_captured *captured);
void cuda_turn(struct jit_device *device, bool begins, struct jit_conditions *out);
double cuda_sample(const struct jit_kernel *kernel, void **args, void *workspace, uint32_t calls,
                   const volatile int *stop, ms_error *err);

#endif
