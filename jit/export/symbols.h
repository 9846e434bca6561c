/* Names that an exported function cannot have. Internal to jit. */
#ifndef MSCHED_JIT_SYMBOLS_H
#define MSCHED_JIT_SYMBOLS_H

/* Whose a name is, in words, where a program that links a function of that name would break: it would take the place of
 * C's or POSIX's own, or could not be declared. NULL: it is free. */
const char *symbol_owner(const char *name);

#endif
