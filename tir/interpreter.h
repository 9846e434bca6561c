/* The reference interpreter, and agreement by running. Part of tir.h; included from there only. */

/* ---- Functions that a run may call --------------------------------------------------------------------------------
 */

struct tir_value {
  tir_type type;
  int64_t integer;
  double real;      /* of a float type */
  const char *text; /* of a string */
};
struct tir_extern_call; /* valid during the call only */
/* A function by name, as call_extern names it: takes its arguments from the call, may read and write the memory that
 * its pointers lead to, may return a value. false: it has failed, and said why with tir_call_fail; loads and stores
 * that are refused say so themselves. */
struct tir_extern {
  const char *name;
  bool (*run)(struct tir_extern_call *call, void *data);
  void *data;
};
uint32_t tir_call_count(const struct tir_extern_call *call);
struct tir_value tir_call_value(const struct tir_extern_call *call, uint32_t arg); /* a scalar or a string */
/* Element `index` from where pointer `arg` leads, in elements of the pointer's type; checked against its memory, the
 * extent and the access that tvm_access_ptr states, and for having been written. */
bool tir_call_load(struct tir_extern_call *call, uint32_t arg, int64_t index, struct tir_value *out);
bool tir_call_store(struct tir_extern_call *call, uint32_t arg, int64_t index, struct tir_value value);
void tir_call_return(struct tir_extern_call *call, struct tir_value value);
bool tir_call_fail(struct tir_extern_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Running ------------------------------------------------------------------------------------------------------
 */

/* An argument of a run. For a buffer: `data`, row-major, `bytes` long. */
struct tir_arg {
  void *data;
  size_t bytes;
  const int64_t
      *shape;     /* extents, where the function's shape has variables; NULL: the one not known follows from bytes */
  bool unwritten; /* an output: its contents count as never written */
  int64_t scalar; /* an integer or bool */
  double real;    /* a scalar of float type */
};
/* What a run did. */
struct tir_run_report {
  int64_t steps;       /* loop iterations and stores */
  double epsilon;      /* of the coarsest float type that was rounded to; 0: every float result was exact */
  uint64_t read_first; /* bit i: argument i was unwritten (note_unwritten), and read first, or never written */
};
/* A loop that runs for one value of its variable. */
struct tir_fixed_loop {
  tir_loop loop;
  int64_t value;
};
struct tir_run_options {
  int64_t most_steps;               /* 0: no limit; loop iterations and stores */
  uint64_t most_memory;             /* bytes, the interpreter's own counted; 0: 4 GiB */
  bool lowered;                     /* threads and barriers are real; else every loop runs serially */
  const volatile int *stop;         /* not 0: the run ends with an error; NULL: never */
  const struct tir_extern *externs; /* borrowed for the run */
  uint32_t extern_count;
  const struct tir_fixed_loop *fixed; /* borrowed for the run */
  uint32_t fixed_count;
  bool note_unwritten;           /* reading what is unwritten of an argument is noted in the report, not refused */
  struct tir_run_report *report; /* filled; NULL: not wanted */
};
/* Runs a function on the reference interpreter: every access checked against its buffer, reads of unwritten memory
 * reported, float16 and bfloat16 rounded at each operation. Before lowering every loop runs serially whatever its kind,
 * loops bound to one thread tag nested in each other included. Lowered: loops bound to threads are threads that
 * synchronize at barriers and cross-thread reductions, iterations of parallel loops have no order, and a race between
 * them is refused.
 *   args     borrowed; in order of parameters; sizes are checked; buffers are written in place
 *   options  borrowed; NULL: none
 * What the language leaves open: round and nearbyint go to even; a float too large for an integer saturates and NaN
 * gives 0; Select, and, or compute only what decides. false: err says what failed and where. Shares nothing. */
bool tir_run(const struct tir *ir, tir_func f, const struct tir_arg *args, uint32_t count,
             const struct tir_run_options *options, ms_error *err);

/* Runs what `samples` elements of each output need, drawn from the seed, and no more than that as far as blocks can be
 * computed where they are read: outputs elsewhere are left as they were. Where no loop can be cut, or the samples
 * together would take more than the function as it stands, all is run once. */
bool tir_run_samples(const struct tir *ir, tir_func f, const struct tir_arg *args, uint32_t count,
                     const struct tir_run_options *options, uint64_t seed, uint32_t samples, ms_error *err);

/* One element as stored in memory, and as the number it is: exact for floats and for integers of up to 53 bits. Storing
 * rounds as the interpreter does; an integer saturates. The type has one lane. */
double tir_fetch_element(tir_type type, const void *at);
void tir_put_element(tir_type type, void *at, double value);

/* ---- Agreement by running ------------------------------------------------------------------------------------------
 */

/* Arguments for a function, made from a seed: small integers in every type, so that sums are exact in any order.
 * Extents that are variables are drawn too. Owned by the caller: tir_arguments_free. */
struct tir_arguments {
  struct tir_arg *args;
  uint32_t count;
};
bool tir_make_arguments(const struct tir *ir, tir_func f, uint64_t seed, struct tir_arguments *out, ms_error *err);
/* The same without data: sizes, shapes and scalars. */
bool tir_shape_arguments(const struct tir *ir, tir_func f, uint64_t seed, struct tir_arguments *out, ms_error *err);
/* Sets the bytes of each buffer: from where its memory begins to the last element that its strides and offset reach;
 * SIZE_MAX: they are not known. Scalars are those of args; extents that are variables, and no parameter, are those of
 * the shapes in args, or drawn where these are NULL. */
void tir_size_arguments(const struct tir *ir, tir_func f, struct tir_arg *args);
/* Fills a buffer of that size as tir_make_arguments does. */
void tir_fill_argument(const struct tir *ir, tir_func f, uint64_t seed, uint32_t parameter, const struct tir_arg *arg);
/* What it fills one with: element i is tir_drawn(seed, parameter, i) % count + first. false: the type cannot be
 * filled. */
struct tir_draws {
  uint64_t count;
  int64_t first;
};
bool tir_draws_of(tir_type type, struct tir_draws *out);
/* A number of a stream: splitmix64 of a counter. Whatever computes it gets the same. */
uint64_t tir_drawn(uint64_t seed, uint64_t stream, uint64_t number);
void tir_copy_arguments(const struct tir *ir, tir_func f, const struct tir_arguments *from,
                        struct tir_arguments *out); /* data too; owned by the caller */
void tir_arguments_free(struct tir_arguments *arguments);
double tir_type_epsilon(tir_type type); /* the spacing of its numbers about 1; 0: it is no float */
/* What may separate results: 0 when no run rounded, else epsilon * (8 + 2 * the length of f's reductions, summed). */
double tir_tolerance(const struct tir *ir, tir_func f, double epsilon);
/* ---- On real numbers: they show arithmetic that is coarser than the function's, which small integers do not ---- */

/* As tir_make_arguments, but floats are full-mantissa data of either sign, from 1/8 to 1. */
bool tir_make_real_arguments(const struct tir *ir, tir_func f, uint64_t seed, struct tir_arguments *out, ms_error *err);
/* Gives a buffer of floats, if it is one, such numbers: drawn >> 12 of tir_drawn, as a fraction of 2^52, times 7/8 and
 * 1/8 more, below zero where the last bit of what was drawn is 0. */
void tir_fill_real_argument(const struct tir *ir, tir_func f, uint64_t seed, uint32_t parameter,
                            const struct tir_arg *arg);
/* Changes each float of 32 bits or more by up to four times its type's spacing: what becomes of the results says how
 * much of a rounding error the function makes. */
void tir_nudge_arguments(const struct tir *ir, tir_func f, uint64_t seed, struct tir_arguments *arguments);
/* Whether the module rounds floats to integers or compares them (casts, floor, <): two orders of computing may then
 * fall on two sides of a step, and results on real numbers say nothing. */
bool tir_has_steps(const struct tir *ir);
double tir_coarsest_epsilon(const struct tir *ir); /* of the float types that results of arithmetic have; 0: none */
/* What may separate results: epsilon * (8 + 8 * the square root of the length of each reduction), summed; 2 * the
 * length where that is less, or so long that terms vanish beside the sum. */
double tir_real_tolerance(const struct tir *ir, tir_func f);
/* Where every result of a buffer is a whole number that its type holds exactly, it is a sum of products of the whole
 * numbers that went in: then no order of summing is off by as much as a half, and a term left out is off by more. The
 * largest such tolerance, relative to the buffer's largest number; INFINITY where results are not whole. */
double tir_whole_tolerance(const struct tir *ir, tir_func f, const struct tir_arguments *results, uint32_t parameter);
/* The largest difference of two runs, relative to the largest number of its buffer; INFINITY where integers differ, or
 * only one is a number. */
double tir_difference(const struct tir *ir, tir_func f, const struct tir_arguments *expected,
                      const struct tir_arguments *actual);
/* Compares the buffers of two runs of f: integers exactly, floats within tolerance * the buffer's largest magnitude;
 * NaN equals NaN, -0 equals 0. false: err names the first element that differs. */
bool tir_same_arguments(const struct tir *ir, tir_func f, const struct tir_arguments *expected,
                        const struct tir_arguments *actual, double tolerance, ms_error *err);
/* Whether two elements are the same, by the rule of tir_same_arguments. The type has one lane; slack: as here below. */
bool tir_same_element(tir_type type, const void *expected, const void *actual, double slack);
/* Fills err with how an element, by its number in a row-major buffer, differs; slack: that is allowed. Gives false. */
bool tir_refuse_element(const struct tir *ir, tir_buffer buffer, const int64_t *shape, uint64_t element,
                        const void *expected, const void *actual, double slack, ms_error *err);
/* What a function makes of arguments that are drawn, with which what others of its signature make of them is compared.
 * The module is borrowed. */
struct tir_expectation {
  const struct tir *ir;
  tir_func f;
  struct tir_arguments given, results;
  double epsilon; /* tir_run_report */
  uint64_t read_first;
};
bool tir_expect(const struct tir *ir, tir_func f, const struct tir_run_options *options, uint64_t seed,
                struct tir_expectation *out, ms_error *err);
void tir_expectation_free(struct tir_expectation *expectation);
size_t tir_expectation_bytes(const struct tir_expectation *expectation);
/* As tir_equal_results, of a run before. */
bool tir_meets(const struct tir_expectation *expectation, const struct tir *ir, tir_func f,
               const struct tir_run_options *options, ms_error *err);
/* Runs two functions of one signature on the same arguments and compares what they give. What fa does not read before
 * writing it, fb may not read either. Options (each may be NULL; their reports are filled) are of fa's run and fb's. */
bool tir_equal_results(const struct tir *a, tir_func fa, const struct tir_run_options *options_a, const struct tir *b,
                       tir_func fb, const struct tir_run_options *options_b, uint64_t seed, ms_error *err);
