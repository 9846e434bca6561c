#define _GNU_SOURCE
#include "lowering.h"

#include "case.h"
#include "jit/c/emit_c.h"
#include "jit/cuda/nvrtc.h"
#include "jit/cuda/resources.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_VALUES = 32, MOST_NOTES = 8, MOST_NESTED = 8, SEED = 5, MOST_STEPS = 100000 };

bool lowering_is_case(const char *text) { return case_section(text, "target").at != NULL; }

bool lowering_is_at(const char *path) {
  char *text = case_read_file(path);
  bool is = text && lowering_is_case(text);
  free(text);
  return is;
}

/* ---- Parameters: $NAME and ${EXPRESSION} ---- */

struct value {
  const char *name, *text;
  size_t name_length, length;
};
struct values {
  struct value at[MOST_VALUES];
  uint32_t count;
};

static const struct value *value_of(const struct values *v, const char *name, size_t length) {
  for (uint32_t i = 0; i < v->count; i++)
    if (v->at[i].name_length == length && !memcmp(v->at[i].name, name, length)) return &v->at[i];
  return NULL;
}

/* `name = text`. */
static bool set_value(struct values *v, const char *line, size_t length) {
  const char *equals = memmem(line, length, " = ", 3);
  size_t name_length = equals ? (size_t)(equals - line) : length - 2, from = equals ? name_length + 3 : length;
  if (!equals && (length < 3 || memcmp(line + length - 2, " =", 2) != 0)) return false;
  struct value *to = (struct value *)value_of(v, line, name_length);
  if (!to && v->count == MOST_VALUES) return false;
  if (!to) to = &v->at[v->count++];
  *to = (struct value){line, line + from, name_length, length - from};
  return true;
}

/* A line of them, between semicolons. */
static bool set_values(struct values *v, const char *line, size_t length) {
  for (;;) {
    const char *end = memmem(line, length, "; ", 2);
    size_t part = end ? (size_t)(end - line) : length;
    if (!set_value(v, line, part)) return false;
    if (!end) return true;
    line += part + 2, length -= part + 2;
  }
}

static size_t name_length(const char *at) {
  size_t length = 0;
  while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
  return length;
}

struct reader {
  const struct values *values;
  const char *at;
  int nested;
};

static int64_t read_sum(struct reader *r);

static void skip_spaces(struct reader *r) { r->at += strspn(r->at, " "); }

/* operand = number | name | "(" sum ")" | "{" sum "}" */
static int64_t read_operand(struct reader *r) {
  skip_spaces(r);
  if (*r->at == '(' || *r->at == '{') {
    r->at++;
    int64_t value = read_sum(r);
    if (*r->at == ')' || *r->at == '}') r->at++;
    return value;
  }
  if (isdigit((unsigned char)*r->at)) return strtoll(r->at, (char **)&r->at, 10);
  size_t length = name_length(r->at);
  const struct value *v = value_of(r->values, r->at, length);
  if (!v || r->nested == MOST_NESTED) {
    fprintf(stderr, "no number: %.20s\n", r->at);
    abort();
  }
  r->at += length;
  char *text = strndup(v->text, v->length);
  if (!text) abort();
  struct reader inner = {r->values, text + strspn(text, "$"), r->nested + 1};
  int64_t value = read_sum(&inner);
  free(text);
  return value;
}

/* product = operand {("*" | "/" | "%") operand} */
static int64_t read_product(struct reader *r) {
  int64_t value = read_operand(r);
  for (;;) {
    skip_spaces(r);
    char op = *r->at;
    if (!op || !strchr("*/%", op)) return value;
    r->at++;
    int64_t other = read_operand(r);
    if (op != '*' && !other) abort();
    value = op == '*' ? value * other : op == '/' ? value / other : value % other;
  }
}

/* sum = product {("+" | "-") product} */
static int64_t read_sum(struct reader *r) {
  int64_t value = read_product(r);
  for (;;) {
    skip_spaces(r);
    char op = *r->at;
    if (op != '+' && op != '-') return value;
    r->at++;
    int64_t other = read_product(r);
    value = op == '+' ? value + other : value - other;
  }
}

static void write_with(FILE *out, const struct values *v, const char *at, size_t length, int nested) {
  const char *end = at + length;
  while (at < end) {
    size_t plain = 0;
    while (at + plain < end && at[plain] != '$' && !(nested && at[plain] == '\\' && at[plain + 1] == 'n')) plain++;
    fwrite(at, 1, plain, out);
    at += plain;
    if (at == end) return;
    if (*at == '\\') {
      fputc('\n', out);
      at += 2;
    } else if (at[1] == '{') {
      struct reader r = {v, at + 2, 0};
      fprintf(out, "%lld", (long long)read_sum(&r));
      at = r.at + (*r.at == '}');
    } else {
      size_t name = name_length(at + 1);
      const struct value *value = value_of(v, at + 1, name);
      if (value && nested < MOST_NESTED)
        write_with(out, v, value->text, value->length, nested + 1);
      else
        fwrite(at, 1, name + 1, out);
      at += name + 1;
    }
  }
}

static char *with_values(const struct values *v, struct section s) {
  char *text = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&text, &length);
  if (!out) abort();
  write_with(out, v, s.at, s.length, 0);
  fclose(out);
  return text;
}

/* ---- Targets and options ---- */

struct options {
  struct jit_target target;
  struct tir_lower_options lower;
  int64_t run, nvrtc, compiled, exact, source;
};

/* A line `name = number` under the target's. */
static bool set_option(struct options *o, const char *line, ms_error *err) {
  static const char *const names[] = {"vector_bits",  "threads",      "stack_bytes", "block_threads",
                                      "shared_bytes", "instructions", "run",         "compiled_nvrtc",
                                      "compiled",     "finite",       "exact",       "in_single",
                                      "source",       "fused",        "free_order",  "cache_bytes"};
  char name[32];
  long long n;
  if (sscanf(line, "%31s = %lld", name, &n) != 2)
    return ms_fail(err, MS_UNKNOWN_TARGET, "an option is NAME = NUMBER, and not: %s", line);
  struct tir_lower_options *l = &o->lower;
  size_t i = 0;
  while (i < sizeof names / sizeof *names && strcmp(names[i], name)) i++;
  switch (i) {
  case 0: l->vector_bits = (int)n; break;
  case 1: l->threads = (uint32_t)n; break;
  case 2: l->stack_bytes = (uint64_t)n; break;
  case 3: l->block_threads = (uint32_t)n; break;
  case 4: l->shared_bytes = (uint64_t)n; break;
  case 5: l->instructions = (unsigned)n; break;
  case 6: o->run = n; break;
  case 7: o->nvrtc = n; break;
  case 8: o->compiled = n; break;
  case 9: l->finite = n; break;
  case 10: o->exact = n; break;
  case 11: l->in_single = n; break;
  case 12: o->source = n; break;
  case 13: l->fused = n; break;
  case 14: l->free_order = n; break;
  case 15: l->cache_bytes = (uint64_t)n; break;
  default: return ms_fail(err, MS_UNKNOWN_TARGET, "there is no option %s", name);
  }
  return true;
}

/* The first line is the target; what its machine has besides, threads and caches, is left out. */
static bool read_options(struct options *o, char *text, ms_error *err) {
  char *line = strtok(text, "\n");
  if (!line || !jit_target_parse(line, &o->target, err)) return false;
  o->lower = jit_lower_options(&o->target);
  o->lower.threads = 0, o->lower.cache_bytes = 0, o->lower.verify = true;
  o->run = 1, o->source = 1;
  while ((line = strtok(NULL, "\n")))
    if (!set_option(o, line, err)) return false;
  return true;
}

/* ---- One function ---- */

struct outcome {
  struct tir *ir; /* as it is read; NULL: nothing was done */
  struct options options;
  bool refused, told; /* told: an expectation says so */
  ms_error err;
  char *notes[MOST_NOTES], *lowered, *emitted;
  char *assembly, *module; /* once an expectation has asked for them */
  bool note_told[MOST_NOTES];
  uint32_t note_count;
};

static void free_outcome(struct outcome *o) {
  for (uint32_t i = 0; i < o->note_count; i++) free(o->notes[i]);
  free(o->lowered);
  free(o->emitted);
  free(o->assembly);
  free(o->module);
  tir_free(o->ir);
  *o = (struct outcome){0};
}

static void keep_note(void *data, const char *note) {
  struct outcome *o = data;
  for (uint32_t i = 0; i < o->note_count; i++)
    if (!strcmp(o->notes[i], note)) return;
  if (o->note_count < MOST_NOTES && !(o->notes[o->note_count++] = strdup(note))) abort();
}

static struct tir *read_text(const struct values *v, struct section s, const char *path, ms_error *err) {
  char *text = with_values(v, s);
  struct tir *ir = tir_read(text, strlen(text), path, err);
  if (!ir) fprintf(stderr, "%s: %s\n%s", path, err->message, text);
  free(text);
  return ir;
}

static tir_func main_of(const struct tir *ir) { return tir_find_func(ir, "main"); }

/* NVRTC compiles it, where it is: no product waits for another, accumulators are in registers. */
static bool compiles(const struct outcome *o, struct c_kernels *kernels, const char *path) {
  struct nvrtc_code code;
  ms_error err = {0};
  int64_t expected = kernels->at[0].shared_bytes;
  bool ok = nvrtc_compile(o->emitted, &o->options.target, false, false, &code, &err);
  if (!ok && err.code == MS_NO_LIBRARY) return true;
  struct jit_resources *k = &kernels->at[0];
  bool fits = ok && resources_note(code.log, &o->options.target, k, 1, &err);
  bool good = fits && k->compiled && !k->serialized && !strstr(code.log, "(C75") && !k->spill_stores &&
              !k->stack_bytes && k->shared_bytes == expected;
  if (!good) fprintf(stderr, "%s: NVRTC: %s\n%s\n", path, err.message, ok ? code.log : "");
  nvrtc_code_free(&code);
  return good;
}

/* Whether it is the turn of this one of those that NVRTC may be asked of: of each MSCHED_NVRTC_EVERY the first. */
static bool is_turn(struct lowering_run *run) {
  const char *every = getenv("MSCHED_NVRTC_EVERY");
  return run->asked++ % (every ? (uint32_t)atoi(every) : 1) == 0;
}

static bool emit(struct lowering_run *run, struct outcome *o, const struct tir *lowered, const char *path) {
  struct c_kernels kernels = {0};
  o->emitted = jit_emit_c(lowered, main_of(lowered), "kernels", &o->options.target, NULL, &kernels, &o->err);
  bool asked = o->emitted && o->options.nvrtc && !run->only_text && is_turn(run);
  bool good = !asked || compiles(o, &kernels, path);
  o->refused = !o->emitted;
  free(kernels.at);
  return good;
}

static void keep_kernel(struct lowering_run *run, struct lowering_kernel *k, const char *source, const char *path) {
  if (!run->count) strcpy(run->folder, "/tmp/lowering.XXXXXX");
  if (!run->count && !mkdtemp(run->folder)) abort();
  oracle_write(run->folder, run->count, source, k->path);
  snprintf(k->name, sizeof k->name, "%s", path);
  run->kernels = tir_enlarge(run->kernels, &run->capacity, (uint64_t)run->count + 1, sizeof *run->kernels);
  run->kernels[run->count++] = *k;
}

/* Compiled for this machine, the function computes the same; or it is refused as lowering refuses it. */
static bool compiled_agrees(const struct outcome *o, const struct oracle *w, ms_error *err) {
  struct jit_target target;
  struct tir_arguments args;
  const struct jit_options options = {.stack_bytes = o->options.lower.stack_bytes, .verify = true};
  if (!jit_target_parse("native", &target, err)) return false;
  tir_copy_arguments(w->ir, w->f, &w->given, &args);
  bool ok = jit_run(o->ir, main_of(o->ir), &target, &options, args.args, err);
  ok = ok && tir_same_arguments(w->ir, w->f, &w->expected, &args, 0, err);
  tir_arguments_free(&args);
  return ok;
}

static bool refused_here(const struct outcome *o, const char *path) {
  struct jit_target target;
  ms_error err = {0};
  struct jit_code *code =
      jit_target_parse("native", &target, &err) ? jit_compile(o->ir, main_of(o->ir), &target, NULL, &err) : NULL;
  if (!code && err.code == o->err.code) return true;
  fprintf(stderr, "%s: compiled: %s\n", path, code ? "it is not refused" : err.message);
  jit_code_free(code);
  return false;
}

static void forget_last(struct lowering_run *run) {
  if (!run->last_text) return;
  oracle_close(&run->last.oracle);
  tir_free(run->last.reference);
  free(run->last_text);
  run->last_text = NULL;
}

/* Runs the reference, unless it is the one that ran last. */
static bool open_reference(struct lowering_run *run, const struct outcome *o, const struct tir *reference,
                           struct oracle *out, ms_error *err) {
  char *text = tir_print(reference, TIR_NONE, 0);
  if (run->last_text && !strcmp(text, run->last_text) && run->last.oracle.exact == o->options.exact) {
    oracle_copy(&run->last.oracle, reference, main_of(reference), out);
    free(text);
    return true;
  }
  if (!oracle_open_within(out, reference, main_of(reference), SEED, o->options.exact, run->only_text ? MOST_STEPS : 0,
                          err)) {
    free(text);
    return false;
  }
  forget_last(run);
  run->last_text = text;
  run->last.reference = tir_new();
  tir_copy(run->last.reference, reference);
  oracle_copy(out, run->last.reference, main_of(run->last.reference), &run->last.oracle);
  return true;
}

/* What is lowered computes what the reference does; a kernel's source is kept to be run, too. */
static bool judge(struct lowering_run *run, struct outcome *o, const struct tir *lowered, struct tir *reference,
                  const char *path) {
  struct lowering_kernel k = {.reference = reference};
  ms_error err = {0};
  bool opened = open_reference(run, o, reference, &k.oracle, &err);
  bool left = !opened && run->only_text && err.code == MS_RUN_STEPS;
  bool same = opened && oracle_interprets(&k.oracle, lowered, main_of(lowered), &err) &&
              (!o->options.compiled || compiled_agrees(o, &k.oracle, &err));
  if (!same && !left) fprintf(stderr, "%s: %s\n%s\n", path, err.message, o->lowered);
  run->left += left;
  if (same && o->emitted && o->options.lower.device == TIR_GPU && !run->only_text) {
    keep_kernel(run, &k, o->emitted, path);
    return true;
  }
  oracle_close(&k.oracle);
  tir_free(reference);
  return same || left;
}

/* The path, with the values that parameters have. */
static void name_variant(char out[LOWERING_PATH], const char *path, const struct values *v) {
  size_t length = (size_t)snprintf(out, LOWERING_PATH, "%s", path);
  for (uint32_t i = 0; i < v->count && length < LOWERING_PATH; i++)
    if (!memchr(v->at[i].text, '$', v->at[i].length))
      length += (size_t)snprintf(out + length, LOWERING_PATH - length, "%s %.*s", i ? "," : ":",
                                 (int)(v->at[i].name_length + 3 + v->at[i].length), v->at[i].name);
}

/* Lowers and emits. false: something is wrong that no expectation could say. */
static bool perform(struct lowering_run *run, struct outcome *o, const struct values *v, const char *file,
                    const char *text) {
  char path[LOWERING_PATH];
  name_variant(path, file, v);
  struct section reference = case_section(text, "reference"), before = case_section(text, "before");
  free_outcome(o);
  char *target = with_values(v, case_section(text, "target"));
  bool good = read_options(&o->options, target, &o->err);
  if (!good) fprintf(stderr, "%s: %s\n", path, o->err.message);
  free(target);
  o->ir = good && before.at ? read_text(v, before, path, &o->err) : NULL;
  if (!o->ir) return false;
  struct tir *lowered = tir_new();
  tir_copy(lowered, o->ir);
  struct tir_lower_options options = o->options.lower;
  options.noted = keep_note, options.data = o;
  o->refused = !tir_lower(lowered, main_of(lowered), &options, &o->err);
  if (!o->refused) {
    o->lowered = tir_print(lowered, TIR_NONE, TIR_PRINT_FUNCTION);
    good = !o->options.source || emit(run, o, lowered, path);
  } else if (o->options.compiled) {
    good = refused_here(o, path);
  }
  struct tir *other = NULL;
  if (good && !o->refused && o->options.run) other = read_text(v, reference.at ? reference : before, path, &o->err);
  if (other) good = judge(run, o, lowered, other, path);
  tir_free(lowered);
  return good;
}

/* ---- What is expected ---- */

static char *text_after(const struct outcome *o, const char *pass) {
  struct tir_lower_options options = o->options.lower;
  char *text = NULL;
  size_t length = 0;
  ms_error err = {0};
  struct tir *ir = tir_new();
  tir_copy(ir, o->ir);
  options.dump_after = pass;
  options.dump = open_memstream(&text, &length);
  if (!options.dump) abort();
  tir_lower(ir, main_of(ir), &options, &err);
  fclose(options.dump);
  tir_free(ir);
  return text;
}

static uint32_t count_of(const char *text, const char *part) {
  uint32_t count = 0;
  for (const char *at = text; at && *part && (at = strstr(at, part)); at += strlen(part)) count++;
  return count;
}

static bool is_barrier(const struct tir *ir, tir_stmt s) {
  if (!tir_is(ir, s, TIR_EVALUATE)) return false;
  const struct tir_expr_node *n = tir_at(ir, tir_as(ir, s, TIR_EVALUATE)->evaluate.value);
  return n->kind == TIR_CALL && !strcmp(tir_text(ir, n->ref), "tvm_storage_sync");
}

static tir_stmt nth_barrier(const struct tir *ir, uint32_t n) {
  tir_stmt top = ir->funcs.at[main_of(ir)].body;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (is_barrier(ir, s) && n-- == 0) return s;
  return TIR_NONE;
}

/* Barriers without which the function goes wrong: threads race, or read what none has written. */
static uint32_t needed_barriers(const struct outcome *o) {
  struct tir *lowered = tir_new(), *less = tir_new();
  struct oracle w;
  ms_error err = {0};
  uint32_t needed = 0;
  tir_copy(lowered, o->ir);
  bool opened = tir_lower(lowered, main_of(lowered), &o->options.lower, &err) &&
                oracle_open(&w, o->ir, main_of(o->ir), SEED, &err);
  for (uint32_t n = 0; opened && nth_barrier(lowered, n); n++) {
    tir_copy(less, lowered);
    tir_kill(less, nth_barrier(less, n));
    needed += !oracle_interprets(&w, less, main_of(less), &err);
  }
  if (opened) oracle_close(&w);
  tir_free(lowered);
  tir_free(less);
  return needed;
}

/* lowered N TEXT, emitted N TEXT, after PASS N TEXT: so many times. */
static bool write_count(FILE *out, const struct outcome *o, const struct values *v, const char *line) {
  char stage[16] = "", pass[32] = "";
  unsigned n;
  int at = 0;
  bool whole = sscanf(line, " %15s %u %n", stage, &n, &at) == 2 && at;
  if (!whole && sscanf(line, " after %31s %u %n", pass, &n, &at) == 2 && at) strcpy(stage, "after");
  if (!at) return false;
  char *part = with_values(v, (struct section){line + at, strlen(line + at)});
  char *made = *pass ? text_after(o, pass) : NULL;
  const char *text = *pass ? made : !strcmp(stage, "lowered") ? o->lowered : o->emitted;
  fprintf(out, "  %s%s%s %u %s\n", stage, *pass ? " " : "", pass, count_of(text, part), line + at);
  free(made);
  free(part);
  return true;
}

/* The code for the target as assembly. NULL: an error was printed. */
static const char *assembly_of(struct outcome *o) {
  if (o->assembly) return o->assembly;
  char path[] = "/tmp/lowering.XXXXXX.s";
  ms_error err = {0};
  int file = mkstemps(path, 2);
  if (file < 0) abort();
  close(file);
  if (jit_export(o->ir, main_of(o->ir), &o->options.target, NULL, path, &err))
    o->assembly = case_read_file(path);
  else
    fprintf(stderr, "assembly: %s\n", err.message);
  unlink(path);
  return o->assembly;
}

/* LLVM's module for the target, before LLVM's passes. */
static const char *module_of(struct outcome *o) {
  if (o->module) return o->module;
  size_t length = 0;
  ms_error err = {0};
  struct jit_options options = {.dump_after = "emit", .dump = open_memstream(&o->module, &length)};
  if (!options.dump) abort();
  struct jit_code *code = jit_compile(o->ir, main_of(o->ir), &o->options.target, &options, &err);
  fclose(options.dump);
  if (!code) fprintf(stderr, "llvm: %s\n", err.message);
  jit_code_free(code);
  return o->module;
}

/* llvm N TEXT: so many times. */
static bool write_module_count(FILE *out, struct outcome *o, const struct values *v, const char *line) {
  unsigned n;
  int at = 0;
  if (sscanf(line, "  llvm %u %n", &n, &at) != 1 || !at) return false;
  char *part = with_values(v, (struct section){line + at, strlen(line + at)});
  fprintf(out, "  llvm %u %s\n", count_of(module_of(o), part), line + at);
  free(part);
  return true;
}

/* assembly holds TEXT, assembly lacks TEXT: of the function compiled for the target. */
static bool write_assembly(FILE *out, struct outcome *o, const struct values *v, const char *line) {
  static const char begin[] = "  assembly ";
  const char *verb = line + strlen(begin);
  if (strncmp(line, begin, strlen(begin)) != 0 || (strncmp(verb, "holds ", 6) && strncmp(verb, "lacks ", 6)))
    return false;
  char *part = with_values(v, (struct section){verb + 6, strlen(verb + 6)});
  const char *text = assembly_of(o);
  if (text) fprintf(out, "%s%s %s\n", begin, strstr(text, part) ? "holds" : "lacks", verb + 6);
  free(part);
  return true;
}

/* barriers N[, needed M]: that many, and the function goes wrong without one of them; or without each of M of them. */
static bool write_barriers(FILE *out, const struct outcome *o, const char *line) {
  if (strncmp(line, "  barriers ", strlen("  barriers ")) != 0) return false;
  uint32_t count = count_of(o->lowered, "T.tvm_storage_sync("), needed = needed_barriers(o);
  fprintf(out, "  barriers %u", count);
  fprintf(out, needed == count ? "\n" : ", needed %u\n", needed);
  return true;
}

/* noted TEXT and error CODE: TEXT stay where they are so; else finish() writes what there is. */
static void write_told(FILE *out, struct outcome *o, const struct values *v, const char *line) {
  char *text = with_values(v, (struct section){line + 2, strlen(line + 2)});
  char *colon = strstr(text, ": ");
  bool stays = false;
  if (!strncmp(text, "noted ", 6))
    for (uint32_t i = 0; i < o->note_count && !stays; i++)
      if ((stays = strstr(o->notes[i], text + 6) != NULL)) o->note_told[i] = true;
  if (!strncmp(text, "error ", 6) && colon && o->refused) {
    *colon = 0;
    stays = o->told = !strcmp(text + 6, ms_code_name(o->err.code)) && strstr(o->err.message, colon + 2);
  }
  if (stays) fprintf(out, "%s\n", line);
  free(text);
}

static void write_expected(FILE *out, struct outcome *o, const struct values *v, const char *at, size_t length) {
  char *line = strndup(at, length);
  if (!line) abort();
  if (!strncmp(line, "  #", 3))
    fprintf(out, "%s\n", line);
  else if (!write_barriers(out, o, line) && !write_module_count(out, o, v, line) && !write_assembly(out, o, v, line) &&
           !write_count(out, o, v, line))
    write_told(out, o, v, line);
  free(line);
}

/* What no expectation told. */
static void finish(FILE *out, struct outcome *o) {
  for (uint32_t i = 0; i < o->note_count; i++)
    if (!o->note_told[i]) fprintf(out, "  noted %s\n", o->notes[i]);
  if (o->refused && !o->told)
    fprintf(out, "  error %s: %.*s\n", ms_code_name(o->err.code), (int)strcspn(o->err.message, "\n"), o->err.message);
  for (uint32_t i = 0; i < o->note_count; i++) o->note_told[i] = true;
  o->told = true;
}

struct writing {
  struct lowering_run *run;
  const char *path, *text;
  FILE *out;
  struct values values;
  struct outcome outcome;
  bool good, pending; /* pending: parameters were set, and nothing was done with them */
};

/* `### always`: what is expected of each variant. */
static bool expect_always(struct writing *w) {
  struct section s = case_section(w->text, "always");
  char *given = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&given, &length);
  if (!out) abort();
  for (const char *at = s.at, *end = s.at + s.length; at < end;) {
    size_t line = strcspn(at, "\n");
    write_expected(out, &w->outcome, &w->values, at, line);
    at += line + 1;
  }
  fclose(out);
  char name[LOWERING_PATH];
  name_variant(name, w->path, &w->values);
  bool good = length == s.length && !memcmp(given, s.at, length);
  if (!good) fprintf(stderr, "%s: always: expected\n%.*sgiven\n%s", name, (int)s.length, s.at, given);
  free(given);
  return good;
}

static void perform_pending(struct writing *w) {
  if (!w->pending) return;
  w->pending = false;
  bool good = perform(w->run, &w->outcome, &w->values, w->path, w->text);
  if (good && case_section(w->text, "always").at) good = expect_always(w);
  w->good = good && w->good;
}

static void write_variants(struct writing *w, struct section s) {
  const char *end = s.at + s.length;
  for (const char *at = s.at; at < end;) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t length = stop ? (size_t)(stop - at) : (size_t)(end - at);
    if (length && *at == ' ') {
      perform_pending(w);
      if (w->outcome.ir) write_expected(w->out, &w->outcome, &w->values, at, length);
    } else {
      if (!w->pending) finish(w->out, &w->outcome);
      w->pending = true;
      if (length && *at != '#' && !set_values(&w->values, at, length)) w->good = false;
      fprintf(w->out, "%.*s\n", (int)length, at);
    }
    at += length + 1;
  }
  perform_pending(w);
  finish(w->out, &w->outcome);
}

/* Whole texts, of the last variant. */
static void write_whole(struct writing *w, const char *title) {
  const char *pass = title + strcspn(title, " ");
  perform_pending(w);
  if (!w->outcome.ir) return;
  char *made = *pass ? text_after(&w->outcome, pass + 1) : NULL;
  const char *text = made ? made : *title == 'l' ? w->outcome.lowered : w->outcome.emitted;
  fprintf(w->out, "%s", text ? text : "");
  free(made);
}

/* Of a case that has no expectations, or none for what was refused. */
static void finish_all(struct writing *w) {
  perform_pending(w);
  bool untold = w->outcome.refused && !w->outcome.told;
  for (uint32_t i = 0; i < w->outcome.note_count; i++) untold = untold || !w->outcome.note_told[i];
  if (untold) fprintf(w->out, "### expect\n");
  finish(w->out, &w->outcome);
}

static bool is_whole(const char *title) { return !strncmp(title, "lowered", 7) || !strcmp(title, "emitted"); }

char *lowering_rewritten(struct lowering_run *run, const char *path, const char *text) {
  char *made = NULL, title[64];
  size_t length = 0;
  struct writing w = {.run = run, .path = path, .text = text, .good = true, .pending = true};
  const char *at = strstr(text, "### ");
  w.out = open_memstream(&made, &length);
  if (!w.out) abort();
  fwrite(text, 1, (size_t)(at - text), w.out);
  while (at && w.good) {
    snprintf(title, sizeof title, "%.*s", (int)strcspn(at + 4, "\n"), at + 4);
    struct section s = case_section(text, title);
    fprintf(w.out, "### %s\n", title);
    if (!strcmp(title, "expect"))
      write_variants(&w, s);
    else if (is_whole(title))
      write_whole(&w, title);
    else
      fwrite(s.at, 1, s.length, w.out);
    at = strstr(s.at, "\n### ") ? strstr(s.at, "\n### ") + 1 : NULL;
  }
  finish_all(&w);
  fclose(w.out);
  free_outcome(&w.outcome);
  if (w.good) return made;
  free(made);
  return NULL;
}

uint32_t lowering_end(struct lowering_run *run) {
  char command[64];
  uint32_t failed = 0;
  bool runs = run->count && oracle_compile(run->folder);
  for (uint32_t i = 0; i < run->count; i++) {
    struct lowering_kernel *k = &run->kernels[i];
    char why[ORACLE_TEXT];
    k->oracle.ir = k->reference;
    if (runs && !oracle_agrees(&k->oracle, k->path, why)) {
      fprintf(stderr, "%s: as C++ of this CPU: %s\n", k->name, why);
      failed++;
    }
    oracle_close(&k->oracle);
    tir_free(k->reference);
  }
  snprintf(command, sizeof command, "rm -r %s", run->folder);
  if (run->count && system(command)) failed++;
  if (run->count && !runs) printf("kernels as C++ of this CPU: skipped: there is no g++\n");
  forget_last(run);
  free(run->kernels);
  *run = (struct lowering_run){0};
  return failed;
}
