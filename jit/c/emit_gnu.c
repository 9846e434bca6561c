/* The dialect of gcc and clang: C11 with GNU vectors, and a function as machine code has it. */
#include "emit_c.h"
#include "jit/llvm/machine.h"

#include <string.h>

/* The workspace is the caller's; what is not laid out in it is small, and lies on the stack. */
static void allocate(struct emit_c *e, tir_buffer buffer, struct c_type t, uint64_t elements) {
  char type[32];
  const char *name = emit_c_declare_buffer(e, buffer);
  emit_c_type_name(e, t, type);
  if (buffer == tir_workspace_of(e->ir, e->func).buffer)
    emit_c_line(e, "%s *%s = (%s *)ms_workspace;", type, name, type);
  else
    emit_c_line(e, "%s %s[%llu] __attribute__((aligned(64), unused));", type, name, (unsigned long long)elements);
}

static bool no_call(struct emit_c *e, tir_expr call) {
  (void)e, (void)call;
  return false;
}

/* ---- The function ---- */

/* Whether the pointer of a buffer is used beside the buffer: what goes through it is not apart from the buffer then. */
static bool is_pointer_used(const struct emit_c *e, const struct tir_param *p) {
  if (!p->var) return false;
  for (tir_expr x = 1; x < e->ir->exprs.count; x++)
    if (tir_at(e->ir, x)->kind == TIR_VAR && tir_at(e->ir, x)->ref == p->var) return true;
  return false;
}

static void parameter(struct emit_c *e, const struct tir_param *p) {
  char type[32];
  if (p->buffer) {
    emit_c_type_name(e, emit_c_stored(tir_buffer_at(e->ir, p->buffer)->type, 1), type);
    const char *name = emit_c_declare_buffer(e, p->buffer);
    bool both = is_pointer_used(e, p);
    fprintf(e->out, "%s *%s%s, ", type, both ? "" : e->dialect->restricts, name);
    if (both) {
      const char *handle = emit_c_declare_var(e, p->var);
      fprintf(e->out, "void *%s, ", handle);
    }
    return;
  }
  tir_type t = e->ir->vars.at[p->var].type;
  if (tir_type_is_int(t))
    strcpy(type, "int64_t ");
  else if (tir_type_code(t) == TIR_HANDLE)
    strcpy(type, "void *");
  else
    emit_c_type_name(e, emit_c_type(e, t, 1), type), strcat(type, " ");
  fprintf(e->out, "%s%s, ", type, emit_c_declare_var(e, p->var));
}

static void write_inner(struct emit_c *e) {
  struct tir_span params = e->ir->funcs.at[e->func].params;
  uint32_t mark = emit_c_enter(e);
  fprintf(e->out, "static void %s(", e->body);
  for (uint32_t i = 0; i < params.count; i++) parameter(e, &e->ir->params.at[params.first + i]);
  fputs("int32_t *ms_status, char *ms_workspace) {\n", e->out);
  for (uint32_t i = mark; i < e->scope_count; i++) fprintf(e->out, "  (void)%s;\n", e->scope[i]);
  fputs("  (void)ms_status;\n  (void)ms_workspace;\n", e->out);
  e->indent = 1;
  emit_c_list(e, tir_stmt_at(e->ir, e->ir->funcs.at[e->func].body)->first[TIR_BODY]);
  e->indent = 0;
  emit_c_fence(e);
  fputs("}\n\n", e->out);
  emit_c_leave(e, mark);
}

static void scalar_argument(struct emit_c *e, tir_type t, uint32_t i) {
  char type[32];
  char helper[64];
  if (tir_type_code(t) == TIR_HANDLE)
    fprintf(e->out, "*(void **)args[%u], ", i);
  else if (tir_type_is_short(t))
    fprintf(e->out, "%s(*(const uint%d_t *)args[%u]), ", emit_c_short_helper(e, "of", t, 1, helper), tir_type_bits(t),
            i);
  else
    fprintf(e->out, "*(const %s *)args[%u], ", emit_c_type_name(e, emit_c_stored(t, 1), type), i);
}

static void write_entry(struct emit_c *e) {
  struct tir_span params = e->ir->funcs.at[e->func].params;
  fprintf(e->out, "MS_API int32_t %s(void **args, void *workspace);\nint32_t %s(void **args, void *workspace) {\n",
          e->name, e->name);
  fputs("  int32_t ms_status = 0;\n", e->out);
  if (!params.count) fputs("  (void)args;\n", e->out);
  fprintf(e->out, "  %s(", e->body);
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &e->ir->params.at[params.first + i];
    char type[32];
    if (p->buffer) {
      fprintf(e->out, "(%s *)args[%u], ",
              emit_c_type_name(e, emit_c_stored(tir_buffer_at(e->ir, p->buffer)->type, 1), type), i);
      if (is_pointer_used(e, p)) fprintf(e->out, "args[%u], ", i);
    } else {
      scalar_argument(e, e->ir->vars.at[p->var].type, i);
    }
  }
  fputs("&ms_status, (char *)workspace);\n  return ms_status;\n}\n", e->out);
}

static void write_head(const struct emit_c *e, FILE *out) {
  char target[JIT_TARGET_TEXT];
  llvm_text(e->target, target, sizeof target);
  fprintf(out,
          "/* %s, made by msched for %s.\n"
          " * Compile with gcc or clang: cc -O3 -march=native -fopenmp -c; link with -fopenmp -lm. Without -fopenmp it "
          "runs on\n"
          " * one thread. Vectors are of %d bits: for narrower registers add -Wno-psabi. args: one a parameter, the "
          "address of a buffer's first element or of "
          "a\n"
          " * scalar's value; workspace: %llu bytes aligned to 64. Returns 0, or 1 when an assertion of the function "
          "failed. */\n",
          e->name, target, e->target->vector_bits, (unsigned long long)tir_workspace_of(e->ir, e->func).bytes);
  fputs("#include <stdint.h>\n", out);
  if (e->threads)
    fputs("#ifdef _OPENMP\n#include <omp.h>\n#define MS_THREAD omp_get_thread_num()\n"
          "#define MS_THREADS omp_get_num_threads()\n#else\n#define MS_THREAD 0\n#define MS_THREADS 1\n#endif\n",
          out);
  fputs("\n#ifdef __cplusplus\n#define MS_API extern \"C\"\n#else\n#define MS_API extern\n#endif\n", out);
  fputs("#define MS_HELPER static inline __attribute__((always_inline, unused))\n"
        "#pragma GCC diagnostic ignored \"-Wpsabi\" /* helpers are inlined: no vector crosses a call */\n"
        "#ifndef __clang__ /* guards that are the same let nothing through; copies take what a layout left gaps in */\n"
        "#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n"
        "#pragma GCC diagnostic ignored \"-Wuninitialized\"\n#endif\n",
        out);
  if (!e->fast_math)
    fputs("#ifdef __clang__\n#pragma STDC FP_CONTRACT OFF\n#else\n#pragma GCC optimize(\"fp-contract=off\")\n#endif\n",
          out);
  fputc('\n', out);
}

static void write_function(struct emit_c *e) {
  write_inner(e);
  if (!e->failed) write_entry(e);
}

static const struct c_template no_templates[] = {{NULL, NULL, NULL, NULL}};

const struct c_dialect emit_c_gnu = {.library = "__builtin_",
                                     .infinity = {"__builtin_inff()", "__builtin_inf()"},
                                     .nan = {"__builtin_nanf(\"\")", "__builtin_nan(\"\")"},
                                     .restricts = "__restrict__ ", /* in C++ too */
                                     .fails = "__atomic_store_n(ms_status, 1, __ATOMIC_RELAXED);",
                                     .bound = {"({ ", "", "})"},
                                     .polynomials = true,
                                     .vectorized = true,
                                     .templates = no_templates,
                                     .call = no_call,
                                     .allocate = allocate,
                                     .outlined = emit_c_outlined,
                                     .function = write_function,
                                     .head = write_head};
