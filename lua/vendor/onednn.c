/* oneDNN, of its second or third interface: primitives on memory that is laid out as they choose, with the reorders
 * outside of what is timed; or as the tensors are. They run on as many threads as libgomp has. */
#include "vendor.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values of its enumerations, the same in both interfaces. */
enum { CPU = 1, ANY_LAYOUT = 1, INFERENCE = 0x60, STREAM_FLAGS = 1 };
enum { F16 = 1, BF16 = 2, F32 = 3, S32 = 4, S8 = 5, U8 = 6 };
enum { DIRECT = 1, TRANSPOSED_DIRECT = 0xa, SOFTMAX_ACCURATE = 0x30000, NORM_LP_SUM = 0x2fff8 };

static const struct {
  int argument, query; /* DNNL_ARG_*, dnnl_query_*_md */
} places[VENDOR_TENSORS] = {
    [VENDOR_SOURCE] = {0x1, 0x81}, [VENDOR_WEIGHTS] = {0x21, 0x83}, [VENDOR_RESULT] = {0x11, 0x85}};

struct argument {
  int place;
  void *memory;
};

/* ---- The library ---- */

/* The second interface describes a layout by a struct, the third by what it allocates: the struct, or a pointer. */
struct layout {
  _Alignas(16) char at[1024];
};

struct onednn {
  int major;
  void *engine, *stream;
  int (*create_engine)(void **engine, int kind, size_t index);
  int (*create_stream)(void **stream, void *engine, unsigned flags);
  int (*wait)(void *stream);
  int (*lay_by_strides)(struct layout *layout, int rank, const int64_t *extents, int type, const int64_t *strides);
  int (*lay_by_tag)(struct layout *layout, int rank, const int64_t *extents, int type, int tag);
  int (*destroy_layout)(void *layout); /* of the third */
  int (*same_layout)(const void *a, const void *b);
  size_t (*layout_bytes)(const void *layout);
  int (*create_memory)(void **memory, const void *layout, void *engine, void *handle);
  int (*destroy_memory)(void *memory);
  int (*describe_operation)(void **description, const void *operation, const void *attributes, void *engine,
                            const void *hint); /* of the second */
  int (*describe_reorder)(void **description, const void *from, void *from_engine, const void *to, void *to_engine,
                          const void *attributes);
  const void *(*query_layout)(const void *description, int what, int index);
  int (*destroy_description)(void *description);
  int (*create_primitive)(void **primitive, const void *description);
  int (*destroy_primitive)(void *primitive);
  int (*execute)(const void *primitive, void *stream, int count, const struct argument *arguments);
  void (*operators[VENDOR_OPERATORS])(void); /* called as describe_… below says; NULL: not there */
};

/* A function, by its name in each of the interfaces; NULL: that one has none. */
static const struct {
  size_t at;
  const char *second, *third;
} functions[] = {
#define BOTH(field, name)                                                                                              \
  { offsetof(struct onednn, field), name, name }
#define EACH(field, second, third)                                                                                     \
  { offsetof(struct onednn, field), second, third }
    BOTH(create_engine, "dnnl_engine_create"),
    BOTH(create_stream, "dnnl_stream_create"),
    BOTH(wait, "dnnl_stream_wait"),
    EACH(lay_by_strides, "dnnl_memory_desc_init_by_strides", "dnnl_memory_desc_create_with_strides"),
    EACH(lay_by_tag, "dnnl_memory_desc_init_by_tag", "dnnl_memory_desc_create_with_tag"),
    EACH(destroy_layout, NULL, "dnnl_memory_desc_destroy"),
    BOTH(same_layout, "dnnl_memory_desc_equal"),
    BOTH(layout_bytes, "dnnl_memory_desc_get_size"),
    BOTH(create_memory, "dnnl_memory_create"),
    BOTH(destroy_memory, "dnnl_memory_destroy"),
    EACH(describe_operation, "dnnl_primitive_desc_create", NULL),
    BOTH(describe_reorder, "dnnl_reorder_primitive_desc_create"),
    BOTH(query_layout, "dnnl_primitive_desc_query_md"),
    BOTH(destroy_description, "dnnl_primitive_desc_destroy"),
    BOTH(create_primitive, "dnnl_primitive_create"),
    BOTH(destroy_primitive, "dnnl_primitive_destroy"),
    BOTH(execute, "dnnl_primitive_execute"),
};

static const char *const operators[VENDOR_OPERATORS][2] = {
    [VENDOR_PRODUCT] = {"dnnl_matmul_desc_init", "dnnl_matmul_primitive_desc_create"},
    [VENDOR_CONVOLUTION] = {"dnnl_dilated_convolution_forward_desc_init",
                            "dnnl_convolution_forward_primitive_desc_create"},
    [VENDOR_TRANSPOSED] = {"dnnl_dilated_deconvolution_forward_desc_init",
                           "dnnl_deconvolution_forward_primitive_desc_create"},
    [VENDOR_SOFTMAX] = {"dnnl_softmax_v2_forward_desc_init", "dnnl_softmax_forward_primitive_desc_create"},
    [VENDOR_NORM] = {"dnnl_reduction_desc_init", "dnnl_reduction_primitive_desc_create"},
};

struct version {
  int major, minor, patch;
};

static const struct version *version_of(void *library) {
  const struct version *(*version)(void) = (const struct version *(*)(void))dlsym(library, "dnnl_version");
  return version ? version() : NULL;
}

static bool find_functions(void *library, struct onednn *o) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    const char *name = o->major == 2 ? functions[i].second : functions[i].third;
    void *function = name ? dlsym(library, name) : NULL;
    if (name && !function) return false;
    memcpy((char *)o + functions[i].at, &function, sizeof function);
  }
  for (int i = 0; i < VENDOR_OPERATORS; i++)
    if (operators[i][0]) o->operators[i] = (void (*)(void))dlsym(library, operators[i][o->major - 2]);
  return true;
}

static void *start(void *library, int threads, ms_error *err) {
  void (*set_threads)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  const struct version *version = version_of(library);
  if (!version || version->major < 2 || version->major > 3)
    return ms_fail(err, MS_NOT_LAUNCHED, "it is of neither the second nor the third interface"), NULL;
  struct onednn *o = calloc(1, sizeof *o);
  if (!o) abort();
  o->major = version->major;
  if (set_threads) set_threads(threads);
  if (find_functions(library, o) && !o->create_engine(&o->engine, CPU, 0) &&
      !o->create_stream(&o->stream, o->engine, STREAM_FLAGS))
    return o;
  free(o);
  return ms_fail(err, MS_NOT_LAUNCHED, "it lacks functions of its interface, or does not start"), NULL;
}

void onednn_describe(void *library, char *text, size_t size) {
  const struct version *v = version_of(library);
  int (*isa)(void) = (int (*)(void))dlsym(library, "dnnl_get_effective_cpu_isa");
  snprintf(text, size, "oneDNN %d.%d.%d, instruction set %#x", v->major, v->minor, v->patch,
           (unsigned)(isa ? isa() : 0));
}

/* ---- Layouts ---- */

static const void *layout_at(const struct onednn *o, const struct layout *l) {
  return o->major == 2 ? l->at : *(const void *const *)l->at;
}

/* An element's type, of those that a call is asked for (vendor.h). */
static int type_of(tir_type t) {
  int bits = tir_type_bits(t);
  if (tir_type_is_float(t)) return bits == 32 ? F32 : tir_type_code(t) == TIR_BFLOAT ? BF16 : F16;
  return bits == 32 ? S32 : tir_type_code(t) == TIR_INT ? S8 : U8;
}

static bool lay_out(const struct onednn *o, const struct vendor_tensor *t, bool any, struct layout *out) {
  memset(out, 0, sizeof *out);
  return any ? !o->lay_by_tag(out, t->rank, t->extents, type_of(t->type), ANY_LAYOUT)
             : !o->lay_by_strides(out, t->rank, t->extents, type_of(t->type), t->strides);
}

static void drop_layouts(const struct onednn *o, struct layout layouts[VENDOR_TENSORS]) {
  for (int i = 0; i < VENDOR_TENSORS && o->major > 2; i++) o->destroy_layout(*(void **)layouts[i].at);
}

/* ---- Operators: the second interface fills a struct of the operation, the third makes its description ---- */

typedef char operation[16384];

static int describe_convolution(const struct onednn *o, const struct vendor_work *w, const void *const l[],
                                operation second, void **third) {
  int algorithm = w->op == VENDOR_TRANSPOSED ? TRANSPOSED_DIRECT : DIRECT;
  int64_t stride[VENDOR_MOST_RANK] = {0}, dilation[VENDOR_MOST_RANK] = {0}, before[VENDOR_MOST_RANK] = {0},
          after[VENDOR_MOST_RANK] = {0};
  for (int d = 0; d < VENDOR_MOST_SPATIAL; d++) {
    stride[d] = w->stride[d], dilation[d] = w->dilation[d] - 1;
    before[d] = w->before[d], after[d] = w->after[d];
  }
#define DIMENSIONS const int64_t *, const int64_t *, const int64_t *, const int64_t *
#define LAYOUTS    const void *, const void *, const void *, const void *
  if (o->major == 2)
    return ((int (*)(void *, int, int, LAYOUTS, DIMENSIONS))o->operators[w->op])(
        second, INFERENCE, algorithm, l[VENDOR_SOURCE], l[VENDOR_WEIGHTS], NULL, l[VENDOR_RESULT], stride, dilation,
        before, after);
  return ((int (*)(void **, void *, int, int, LAYOUTS, DIMENSIONS, const void *))o->operators[w->op])(
      third, o->engine, INFERENCE, algorithm, l[VENDOR_SOURCE], l[VENDOR_WEIGHTS], NULL, l[VENDOR_RESULT], stride,
      dilation, before, after, NULL);
}

static int describe_product(const struct onednn *o, const struct vendor_work *w, const void *const l[],
                            operation second, void **third) {
  if (o->major == 2)
    return ((int (*)(void *, LAYOUTS))o->operators[w->op])(second, l[VENDOR_SOURCE], l[VENDOR_WEIGHTS], NULL,
                                                           l[VENDOR_RESULT]);
  return ((int (*)(void **, void *, LAYOUTS, const void *))o->operators[w->op])(
      third, o->engine, l[VENDOR_SOURCE], l[VENDOR_WEIGHTS], NULL, l[VENDOR_RESULT], NULL);
}

static int describe_softmax(const struct onednn *o, const struct vendor_work *w, const void *const l[],
                            operation second, void **third) {
  int axis = w->tensors[VENDOR_SOURCE].rank - 1;
  if (o->major == 2)
    return ((int (*)(void *, int, int, const void *, const void *, int))o->operators[w->op])(
        second, INFERENCE, SOFTMAX_ACCURATE, l[VENDOR_SOURCE], l[VENDOR_RESULT], axis);
  return ((int (*)(void **, void *, int, int, const void *, const void *, int, const void *))o->operators[w->op])(
      third, o->engine, INFERENCE, SOFTMAX_ACCURATE, l[VENDOR_SOURCE], l[VENDOR_RESULT], axis, NULL);
}

static int describe_norm(const struct onednn *o, const struct vendor_work *w, const void *const l[], operation second,
                         void **third) {
  if (o->major == 2)
    return ((int (*)(void *, int, const void *, const void *, float, float))o->operators[w->op])(
        second, NORM_LP_SUM, l[VENDOR_SOURCE], l[VENDOR_RESULT], 2, 0);
  return ((int (*)(void **, void *, int, const void *, const void *, float, float, const void *))o->operators[w->op])(
      third, o->engine, NORM_LP_SUM, l[VENDOR_SOURCE], l[VENDOR_RESULT], 2, 0, NULL);
}

static int (*const describers[VENDOR_OPERATORS])(const struct onednn *o, const struct vendor_work *w,
                                                 const void *const layouts[], operation second, void **third) = {
    [VENDOR_PRODUCT] = describe_product,
    [VENDOR_CONVOLUTION] = describe_convolution,
    [VENDOR_TRANSPOSED] = describe_convolution,
    [VENDOR_SOFTMAX] = describe_softmax,
    [VENDOR_NORM] = describe_norm,
};

static void *describe_work(const struct onednn *o, const struct vendor_work *w, const struct layout *layouts) {
  const void *at[VENDOR_TENSORS];
  void *description = NULL;
  operation *second = calloc(1, sizeof *second);
  if (!second) abort();
  for (int i = 0; i < VENDOR_TENSORS; i++) at[i] = layout_at(o, &layouts[i]);
  bool ok = !describers[w->op](o, w, at, *second, &description) &&
            (o->major > 2 || !o->describe_operation(&description, second, NULL, o->engine, NULL));
  free(second);
  return ok ? description : NULL;
}

/* ---- Calls ---- */

struct operand {
  void *plain, *laid; /* memories: as the tensor has it, as the primitive takes it; the same where they agree */
  void *bytes;        /* of the second, where it is another */
};
struct call {
  const struct onednn *o;
  void *primitive;
  struct operand operands[VENDOR_TENSORS];
  struct argument arguments[VENDOR_TENSORS];
  int count;
  void *last; /* the reorder of the result; NULL: none */
};

static bool execute(const struct onednn *o, void *primitive, int count, const struct argument *arguments) {
  return !o->execute(primitive, o->stream, count, arguments) && !o->wait(o->stream);
}

static void run(void *data) {
  const struct call *c = data;
  bool done = execute(c->o, c->primitive, c->count, c->arguments);
  assert(done);
  (void)done;
}

static void copy(const struct onednn *o, void *reorder, void *from, void *to) {
  enum { FROM = 0x1, TO = 0x11 };
  const struct argument arguments[] = {{FROM, from}, {TO, to}};
  bool done = execute(o, reorder, 2, arguments);
  assert(done);
  (void)done;
}

static void finish(void *data) {
  const struct call *c = data;
  const struct operand *result = &c->operands[VENDOR_RESULT];
  if (c->last) copy(c->o, c->last, result->laid, result->plain);
}

static void release(void *data) {
  struct call *c = data;
  for (int i = 0; i < VENDOR_TENSORS; i++) {
    struct operand *p = &c->operands[i];
    if (p->laid && p->laid != p->plain) c->o->destroy_memory(p->laid);
    if (p->plain) c->o->destroy_memory(p->plain);
    free(p->bytes);
  }
  if (c->last) c->o->destroy_primitive(c->last);
  if (c->primitive) c->o->destroy_primitive(c->primitive);
  free(c);
}

static void *make_reorder(const struct onednn *o, const void *from, const void *to) {
  void *description = NULL, *primitive = NULL;
  if (o->describe_reorder(&description, from, o->engine, to, o->engine, NULL)) return NULL;
  if (o->create_primitive(&primitive, description)) primitive = NULL;
  o->destroy_description(description);
  return primitive;
}

/* The memory of one tensor; inputs are there at once, in the layout that is taken. */
static bool make_operand(struct call *c, int which, const struct vendor_tensor *t, const void *taken) {
  const struct onednn *o = c->o;
  struct operand *p = &c->operands[which];
  struct layout plain;
  if (!lay_out(o, t, false, &plain)) return false;
  const void *as_is = layout_at(o, &plain);
  bool ok = !o->create_memory(&p->plain, as_is, o->engine, t->data), same = o->same_layout(as_is, taken);
  if (ok && same) {
    p->laid = p->plain;
  } else if (ok) {
    size_t bytes = (o->layout_bytes(taken) + 63) / 64 * 64;
    p->bytes = aligned_alloc(64, bytes);
    void *reorder = which == VENDOR_RESULT ? make_reorder(o, taken, as_is) : make_reorder(o, as_is, taken);
    ok = p->bytes && reorder && !o->create_memory(&p->laid, taken, o->engine, memset(p->bytes, 0, bytes));
    if (which == VENDOR_RESULT)
      c->last = reorder;
    else if (ok)
      copy(o, reorder, p->plain, p->laid), o->destroy_primitive(reorder);
  }
  if (o->major > 2) o->destroy_layout(*(void **)plain.at);
  c->arguments[c->count++] = (struct argument){places[which].argument, p->laid};
  return ok;
}

static bool prepare(const struct onednn *o, const struct vendor_work *work, bool any, struct vendor_call *out) {
  struct layout layouts[VENDOR_TENSORS];
  memset(layouts, 0, sizeof layouts);
  struct call *c = calloc(1, sizeof *c);
  if (!c) abort();
  c->o = o;
  bool ok = o->operators[work->op] != NULL;
  for (int i = 0; ok && i < VENDOR_TENSORS; i++)
    ok = !work->tensors[i].rank || lay_out(o, &work->tensors[i], any, &layouts[i]);
  void *description = ok ? describe_work(o, work, layouts) : NULL;
  drop_layouts(o, layouts);
  ok = description && !o->create_primitive(&c->primitive, description);
  for (int i = 0; ok && i < VENDOR_TENSORS; i++)
    ok = !work->tensors[i].rank ||
         make_operand(c, i, &work->tensors[i], o->query_layout(description, places[i].query, 0));
  if (description) o->destroy_description(description);
  if (!ok) return release(c), false;
  *out = (struct vendor_call){run, finish, release, c};
  return true;
}

/* These read what they are given. */
static bool has_layouts(enum vendor_operator op) { return op != VENDOR_SOFTMAX && op != VENDOR_NORM; }

static bool prepare_any(void *started, const struct vendor_work *work, struct vendor_call *out) {
  return prepare(started, work, has_layouts(work->op), out);
}

static bool prepare_plain(void *started, const struct vendor_work *work, struct vendor_call *out) {
  return has_layouts(work->op) && prepare(started, work, false, out);
}

const struct vendor vendor_onednn = {"oneDNN",    "libdnnl.so.2",       start,        onednn_describe,
                                     prepare_any, .short_floats = true, .bytes = true};
const struct vendor vendor_onednn_plain = {"oneDNN plain", "libdnnl.so.2",       start,        onednn_describe,
                                           prepare_plain,  .short_floats = true, .bytes = true};
