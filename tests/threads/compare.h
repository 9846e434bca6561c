/* What a candidate's own file says to compare.c. */
#include <stddef.h>
#include <stdint.h>

enum { MOST_ARGUMENTS = 16 };
typedef int32_t entry(void **args, void *workspace);
extern const int argument_count;
extern const size_t argument_sizes[MOST_ARGUMENTS]; /* in floats */
extern entry *const candidate, *const unscheduled;
extern const size_t candidate_workspace, unscheduled_workspace;
