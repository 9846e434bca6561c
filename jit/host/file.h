/* Files that are written. Internal to jit. */
#ifndef MSCHED_JIT_FILE_H
#define MSCHED_JIT_FILE_H

#include "tir/tir.h"

/* Writes a file beside its place and moves it there, so that a failure leaves what was. */
bool jit_write_file(const char *path, const void *bytes, size_t size, ms_error *err);

#endif
