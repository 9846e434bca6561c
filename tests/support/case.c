#include "case.h"
#include "layout.h"
#include "vm/vm.h"
#include "zeros.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

enum { MOST_STEPS = 200000000, MOST_MAPS = 4, MOST_PARAMS = 16 };

/* ---- Functions that cases call ---- */

/* mac_4x4x4_f32(C, stride, A, stride, B, stride): C += A * B on tiles of 4 x 4. */
static bool mac_4x4x4(struct tir_extern_call *call, void *data) {
  (void)data;
  if (tir_call_count(call) != 6) return tir_call_fail(call, "takes 6 arguments");
  int64_t strides[3];
  for (uint32_t i = 0; i < 3; i++) strides[i] = tir_call_value(call, 2 * i + 1).integer;
  for (int64_t i = 0; i < 4; i++)
    for (int64_t j = 0; j < 4; j++)
      for (int64_t k = 0; k < 4; k++) {
        struct tir_value a, b, c;
        if (!tir_call_load(call, 0, i * strides[0] + j, &c) || !tir_call_load(call, 2, i * strides[1] + k, &a) ||
            !tir_call_load(call, 4, k * strides[2] + j, &b))
          return false;
        c.real = (float)(c.real + (float)(a.real * b.real));
        if (!tir_call_store(call, 0, i * strides[0] + j, c)) return false;
      }
  return true;
}
const struct tir_extern case_externs[] = {{"mac_4x4x4_f32", mac_4x4x4, NULL}};
const uint32_t case_extern_count = sizeof case_externs / sizeof *case_externs;

/* ---- The text of a case ---- */

bool case_after(const char *text, uint32_t n, char title[64]) {
  const char *at = text;
  do {
    at = strstr(at, "\n### after");
    if (!at) return false;
    at += strlen("\n### ");
  } while (n-- > 0);
  size_t length = strcspn(at, "\n");
  snprintf(title, 64, "%.*s", (int)length, at);
  return true;
}

struct section case_section(const char *text, const char *title) {
  char heading[80];
  snprintf(heading, sizeof heading, "### %s\n", title);
  const char *at = strstr(text, heading);
  if (!at) return (struct section){0};
  at += strlen(heading);
  const char *end = strstr(at, "\n### ");
  return (struct section){at, end ? (size_t)(end + 1 - at) : strlen(at)};
}

char *case_read_file(const char *path) {
  FILE *in = fopen(path, "rb");
  if (!in) return NULL;
  char *text = NULL;
  size_t count = 0, room = 0, got;
  do {
    room = room ? 2 * room : 1 << 16;
    text = realloc(text, room + 1);
    if (!text) abort();
    got = fread(text + count, 1, room - count, in);
    count += got;
  } while (count == room);
  text[count] = 0;
  fclose(in);
  return text;
}

static void add_path(struct case_paths *paths, const char *path) {
  if (paths->count % 64 == 0) paths->at = realloc(paths->at, (paths->count + 64) * sizeof *paths->at);
  if (!paths->at || !(paths->at[paths->count++] = strdup(path))) abort();
}

static bool is_case(const char *name) {
  size_t length = strlen(name);
  return length > 5 && !strcmp(name + length - 5, ".case");
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* False: it is no folder. */
static bool add_folder(struct case_paths *paths, const char *folder) {
  struct dirent **entries;
  int count = scandir(folder, &entries, is_visible, alphasort);
  for (int i = 0; i < count; i++) {
    char inner[4096];
    snprintf(inner, sizeof inner, "%s/%s", folder, entries[i]->d_name);
    if (!add_folder(paths, inner) && is_case(inner)) add_path(paths, inner);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
  return count >= 0;
}

struct case_paths case_find(const char *path) {
  struct case_paths paths = {0};
  if (!add_folder(&paths, path)) add_path(&paths, path);
  return paths;
}

void case_free_paths(struct case_paths *paths) {
  for (uint32_t i = 0; i < paths->count; i++) free(paths->at[i]);
  free(paths->at);
  *paths = (struct case_paths){0};
}

struct trace {
  bool unsafe;
  struct case_map maps[MOST_MAPS];
  uint32_t map_count;
};

static bool is_set(json_t *attrs, size_t i) {
  json_t *x = json_array_get(attrs, i);
  return json_is_true(x) || (json_is_integer(x) && json_integer_value(x) != 0);
}

static void add_map(struct trace *out, json_t *instruction) {
  const char *lambda = json_string_value(json_array_get(json_array_get(instruction, 1), 1));
  if (!lambda || out->map_count == MOST_MAPS) return;
  json_t *pad = json_array_get(json_array_get(instruction, 2), 2);
  out->maps[out->map_count++] = (struct case_map){strdup(lambda), json_number_value(pad)};
}

static struct trace read_trace(struct section s) {
  struct trace out = {0};
  json_t *root = json_loadb(s.at, s.length, JSON_DISABLE_EOF_CHECK, NULL), *instruction;
  size_t i;
  json_array_foreach(json_array_get(root, 0), i, instruction) {
    const char *kind = json_string_value(json_array_get(instruction, 0));
    json_t *attrs = json_array_get(instruction, 2);
    if (!kind) continue;
    out.unsafe = out.unsafe || !strcmp(kind, "UnsafeSetDType") || !strcmp(kind, "UnsafeHideBufferAccess") ||
                 !strcmp(kind, "AnnotateBufferAccess") || (!strcmp(kind, "Split") && is_set(attrs, 1)) ||
                 (!strcmp(kind, "TransformLayout") && is_set(attrs, 3));
    if (!strcmp(kind, "TransformLayout")) add_map(&out, instruction);
  }
  json_decref(root);
  return out;
}

/* ---- Running with transformed parameters ---- */

/* Two modules, and for each parameter the layout of the second's: place NULL, the same as the first's. */
struct pair {
  const struct tir *a, *b;
  tir_func fa, fb;
  uint64_t seed;
  const struct tir *lowered; /* the second, lowered; NULL: it is run as it is */
  bool too;                  /* lowered: it is run as it is, too */
  struct layout layouts[MOST_PARAMS];
  double pads[MOST_PARAMS];
};

static uint32_t param_count(const struct tir *ir, tir_func f) { return ir->funcs.at[f].params.count; }
static tir_buffer param_buffer(const struct tir *ir, tir_func f, uint32_t i) {
  return ir->params.at[ir->funcs.at[f].params.first + i].buffer;
}

static size_t element_size(const struct tir *ir, tir_buffer b) {
  tir_type t = tir_buffer_at(ir, b)->type;
  return (size_t)((tir_type_bits(t) + 7) / 8) * (size_t)tir_type_lanes(t);
}

/* The bytes before the first element of a parameter, which elem_offset says. */
static size_t bytes_before(const struct tir *ir, tir_func f, uint32_t i) {
  tir_buffer b = param_buffer(ir, f, i);
  tir_expr offset = tir_buffer_at(ir, b)->elem_offset;
  return offset && tir_is_int(ir, offset) ? (size_t)tir_at(ir, offset)->imm * element_size(ir, b) : 0;
}

/* Fills the argument of the second function from that of the first. */
static void relay(const struct pair *p, uint32_t i, const struct tir_arg *from, struct tir_arg *to) {
  const struct layout *l = &p->layouts[i];
  size_t size = element_size(p->a, param_buffer(p->a, p->fa, i));
  if (!l->place) {
    memcpy(to->data, from->data, from->bytes < to->bytes ? from->bytes : to->bytes);
    return;
  }
  /* Elements of the new shape that none goes to hold the pad value: zero, unless floats of 32 bits say another. */
  memset(to->data, 0, to->bytes);
  for (size_t e = 0; p->pads[i] != 0 && size == sizeof(float) && e < to->bytes / size; e++)
    ((float *)to->data)[e] = (float)p->pads[i];
  const char *source = (const char *)from->data + bytes_before(p->a, p->fa, i);
  char *target = (char *)to->data + bytes_before(p->b, p->fb, i);
  for (uint64_t e = 0; e < l->from_count; e++) memcpy(target + l->place[e] * size, source + e * size, size);
}

/* Brings what the second function left back to the layout of the first. */
static void restore(const struct pair *p, uint32_t i, const struct tir_arg *from, struct tir_arg *to) {
  const struct layout *l = &p->layouts[i];
  size_t size = element_size(p->a, param_buffer(p->a, p->fa, i));
  if (!l->place) {
    memcpy(to->data, from->data, to->bytes);
    return;
  }
  const char *source = (const char *)from->data + bytes_before(p->b, p->fb, i);
  char *target = (char *)to->data + bytes_before(p->a, p->fa, i);
  for (uint64_t e = 0; e < l->from_count; e++) memcpy(target + e * size, source + l->place[e] * size, size);
}

/* Lowered, parameters have one dimension, whose extent follows from the size. */
static bool run_second(const struct pair *p, const struct tir *lowered, const struct tir_arguments *y,
                       const struct tir_run_options *options, ms_error *err) {
  struct tir_arg args[MOST_PARAMS];
  if (!lowered) return tir_run(p->b, p->fb, y->args, y->count, options, err);
  for (uint32_t i = 0; i < y->count; i++) {
    args[i] = y->args[i];
    args[i].shape = NULL;
  }
  return tir_run(lowered, p->fb, args, y->count, options, err);
}

/* The second function, as it is or lowered, on what `y` holds: whether it leaves what the first left in `x`. */
static bool second_agrees(const struct pair *p, const struct tir *lowered, const struct tir_run_report *first,
                          const struct tir_arguments *x, struct tir_arguments *y, ms_error *err) {
  struct tir_run_report second = {0};
  struct tir_run_options options = {.most_steps = MOST_STEPS,
                                    .externs = case_externs,
                                    .extern_count = case_extern_count,
                                    .lowered = lowered != NULL,
                                    .report = &second};
  for (uint32_t i = 0; i < y->count; i++) y->args[i].unwritten = y->args[i].data && !(first->read_first >> i & 1);
  if (!run_second(p, lowered, y, &options, err)) return false;
  double epsilon = fmax(first->epsilon, second.epsilon);
  double tolerance = fmax(tir_tolerance(p->a, p->fa, epsilon), tir_tolerance(p->b, p->fb, epsilon));
  struct tir_arguments z;
  tir_copy_arguments(p->a, p->fa, x, &z);
  for (uint32_t i = 0; i < x->count; i++)
    if (x->args[i].data) restore(p, i, &y->args[i], &z.args[i]);
  bool ok = tir_same_arguments(p->a, p->fa, x, &z, tolerance, err) &&
            (!keeps_zeros(p->a, p->fa) || same_zeros(p->a, p->fa, x, &z, err));
  tir_arguments_free(&z);
  return ok;
}

static bool run_both(const struct pair *p, struct tir_arguments *x, struct tir_arguments *y, ms_error *err) {
  struct tir_run_report report;
  const struct tir_run_options options = {.most_steps = MOST_STEPS,
                                          .externs = case_externs,
                                          .extern_count = case_extern_count,
                                          .note_unwritten = true,
                                          .report = &report};
  for (uint32_t i = 0; i < x->count; i++) {
    if (x->args[i].data) relay(p, i, &x->args[i], &y->args[i]);
    x->args[i].unwritten = x->args[i].data != NULL;
  }
  if (!tir_run(p->a, p->fa, x->args, x->count, &options, err)) return false;
  if (p->lowered && p->too) {
    struct tir_arguments same;
    tir_copy_arguments(p->b, p->fb, y, &same);
    bool ok = second_agrees(p, NULL, &report, x, &same, err);
    tir_arguments_free(&same);
    if (!ok) return false;
  }
  return second_agrees(p, p->lowered, &report, x, y, err);
}

static bool shape_fits(struct layout *l, const struct tir_arg *x, const struct tir_arg *y, uint32_t rank_x,
                       uint32_t rank_y) {
  if (l->place) return layout_fit(l, y->shape, rank_y);
  return rank_x == rank_y && !memcmp(x->shape, y->shape, rank_x * sizeof *x->shape);
}

static bool shapes_fit(struct pair *p, const struct tir_arguments *x, const struct tir_arguments *y) {
  for (uint32_t i = 0; i < x->count; i++) {
    tir_buffer u = param_buffer(p->a, p->fa, i), v = param_buffer(p->b, p->fb, i);
    if (!u != !v) return false;
    if (u && !shape_fits(&p->layouts[i], &x->args[i], &y->args[i], tir_buffer_at(p->a, u)->rank,
                         tir_buffer_at(p->b, v)->rank))
      return false;
  }
  return true;
}

/* One way to give the trace's maps to parameters: digit k of `choice` is the parameter of map k, or none. */
static bool give_maps(struct pair *p, const struct case_map *maps, uint32_t count, uint32_t choice,
                      const struct tir_arguments *x) {
  uint32_t params = x->count;
  for (uint32_t k = 0; k < count; k++, choice /= params + 1) {
    uint32_t i = choice % (params + 1);
    struct layout next;
    if (i == params) continue;
    tir_buffer b = param_buffer(p->a, p->fa, i);
    struct layout *l = &p->layouts[i];
    if (!b) return false;
    const int64_t *shape = l->place ? l->to : x->args[i].shape;
    if (!layout_make(maps[k].lambda, shape, l->place ? l->to_rank : tir_buffer_at(p->a, b)->rank, &next)) return false;
    p->pads[i] = maps[k].pad;
    if (l->place) {
      layout_join(l, &next);
      layout_free(&next);
    } else {
      *l = next;
    }
  }
  return true;
}

static bool try_choice(struct pair *p, const struct case_map *maps, uint32_t count, uint32_t choice, bool *fits,
                       ms_error *err) {
  struct tir_arguments x, y;
  if (!tir_make_arguments(p->a, p->fa, p->seed, &x, err)) return false;
  if (!tir_make_arguments(p->b, p->fb, p->seed, &y, err)) {
    tir_arguments_free(&x);
    return false;
  }
  *fits = give_maps(p, maps, count, choice, &x) && shapes_fit(p, &x, &y);
  bool ok = *fits && run_both(p, &x, &y, err);
  for (uint32_t i = 0; i < x.count; i++) layout_free(&p->layouts[i]);
  tir_arguments_free(&x);
  tir_arguments_free(&y);
  return ok;
}

bool case_equal(const struct tir *before, const struct tir *after, const struct case_map *maps, uint32_t count,
                const struct tir *lowered, bool too, uint64_t seed, ms_error *err) {
  struct pair p = {.a = before, .b = after, .seed = seed, .lowered = lowered, .too = too};
  p.fa = tir_find_func(before, "main");
  p.fb = tir_find_func(after, "main");
  if (!p.fa || !p.fb || param_count(before, p.fa) != param_count(after, p.fb) ||
      param_count(before, p.fa) > MOST_PARAMS)
    return ms_fail(err, MS_RUN_SIGNATURE, "the functions have not the same parameters");
  if (count > MOST_MAPS) count = MOST_MAPS;
  uint32_t choices = 1;
  for (uint32_t k = 0; k < count; k++) choices *= param_count(before, p.fa) + 1;
  ms_error first = {.code = MS_RUN_SIGNATURE, .message = "parameters have other shapes"};
  /* Most transformed buffers are no parameters: that choice is the last number, and comes first. */
  for (uint32_t choice = choices; choice-- > 0;) {
    ms_error why = {0};
    bool fits = false;
    if (try_choice(&p, maps, count, choice, &fits, &why)) return true;
    if (fits && first.code == MS_RUN_SIGNATURE) first = why;
  }
  *err = first;
  return false;
}

/* ---- The verdict ---- */

static struct tir *read_module(struct section s, const char *file, ms_error *err) {
  struct tir *ir = tir_read(s.at, s.length, file, err);
  if (ir) return ir;
  tir_free(ir);
  return NULL;
}

/* Our own schedule of the module before: the trace replayed. NULL: refused (*refused) or not fit to be judged. */
static struct tir *schedule(struct tir *before, struct section s, bool *refused, ms_error *err) {
  struct vm_trace *trace = vm_read_trace(s.at, s.length, err);
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = trace};
  struct vm_schedule *sch = trace ? vm_apply(before, trace, &draws, err) : NULL;
  struct tir *after = NULL;
  *refused = !sch;
  if (sch && vm_verify(&sch->trace, sch->ir, err)) {
    after = tir_new();
    tir_copy(after, sch->ir);
  }
  vm_schedule_free(sch);
  vm_trace_free(trace);
  return after;
}

/* The module that is judged, verified; NULL: there is none. */
static struct tir *module_after(struct tir *before, struct section after, struct section steps, const char *file,
                                unsigned flags, bool *refused, ms_error *err) {
  if (flags & CASE_OURS) return schedule(before, steps, refused, err);
  struct tir *ir = read_module(after, file, err);
  struct vm_trace *trace = ir ? vm_read_trace(steps.at, steps.length, err) : NULL;
  bool trusted = trace && !vm_trace_is_safe(trace); /* a text does not say which buffers have user-annotated regions */
  bool holds = ir && (trusted ? tir_verify_scopes(ir, err) : tir_verify(ir, err));
  vm_trace_free(trace);
  if (holds) return ir;
  tir_free(ir);
  return NULL;
}

static bool binds_threads(const struct tir *ir) {
  for (tir_stmt s = 1; s < ir->stmts.count; s++) {
    if (tir_is_bound(ir, s)) return true;
    if (tir_is(ir, s, TIR_ATTR) && !strcmp(tir_text(ir, tir_stmt_at(ir, s)->attr.key), "thread_extent")) return true;
  }
  return false;
}

struct tir_lower_options case_lowering(const struct tir *ir) {
  return (struct tir_lower_options){.threads = binds_threads(ir) ? 0 : 3, .stack_bytes = 1};
}

/* What lowering gives of it, verified, each pass too where regions need not be trusted; NULL: it is refused, or wrong.
 */
static struct tir *lower(const struct tir *ir, bool *refused, ms_error *err) {
  ms_error none = {0};
  struct tir_lower_options options = case_lowering(ir);
  options.verify = tir_verify(ir, &none);
  struct tir *lowered = tir_new();
  tir_copy(lowered, ir);
  if (tir_lower(lowered, tir_find_func(lowered, "main"), &options, err) && tir_verify(lowered, err)) return lowered;
  *refused = err->code == MS_LOWER_UNKNOWN_STRIDE;
  tir_free(lowered);
  return NULL;
}

enum verdict case_judge(const char *text, const char *title, const char *file, unsigned flags, uint64_t seed,
                        ms_error *err) {
  struct section before = case_section(text, "before"), after = case_section(text, title);
  bool named = strlen(title) > strlen("after "), refused = false;
  struct section steps = case_section(text, named ? title + strlen("after ") : "trace");
  if (!after.at && !(flags & CASE_OURS)) return CASE_REFUSED;
  struct trace trace = read_trace(steps);
  struct tir *a = read_module(before, file, err);
  struct tir *b = a ? module_after(a, after, steps, file, flags, &refused, err) : NULL;
  bool too = flags & CASE_LOWERED_TOO;
  struct tir *lowered = b && (too || flags & CASE_LOWERED) ? lower(b, &refused, err) : NULL;
  bool alone = too && refused && b; /* lowering refuses what the trace gives */
  if (alone) refused = false;
  bool judged = b && (lowered || alone || !(flags & (CASE_LOWERED | CASE_LOWERED_TOO)));
  enum verdict verdict = refused ? CASE_REFUSED : CASE_FAILED;
  if (judged && trace.unsafe && !(flags & CASE_ANY))
    verdict = CASE_UNSAFE;
  else if (judged && case_equal(a, b, trace.maps, trace.map_count, lowered, too, seed, err))
    verdict = CASE_EQUAL;
  for (uint32_t i = 0; i < trace.map_count; i++) free(trace.maps[i].lambda);
  tir_free(a);
  tir_free(b);
  tir_free(lowered);
  return verdict;
}
