/* Traces as bytes. Integers are LEB128, signed ones zigzag first; a string is its length and its bytes.
 *
 *   "MSTR" version
 *   kinds         count, names: instructions refer to them by number, so the form outlives changes of the table
 *   instructions  count, each: kind, inputs, attributes (a count and values each), outputs, and of a draw its id
 *   next draw id
 *   decisions     count, each: number of the instruction, count, signed integers (none: one that does not fit)
 *   value         its tag, then: nothing, a byte, a signed integer, 8 bytes, a string, a variable, a count and values
 *                 (a map: keys and values in turn), the text of a lambda after a byte for its width */
#include "vm/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char MAGIC[4] = {'M', 'S', 'T', 'R'};
enum { VERSION = 1 };
/* Part of the form: never renumbered. */
enum tag { TAG_NONE, TAG_BOOL, TAG_INT, TAG_REAL, TAG_STRING, TAG_REF, TAG_LIST, TAG_MAP, TAG_INDEX_MAP };

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void put_byte(struct vm_text *out, unsigned byte) {
  char b = (char)byte;
  if (out->size + 1 < out->capacity)
    out->at[out->size++] = b;
  else
    vm_put(out, &b, 1);
}

static void put_number(struct vm_text *out, uint64_t n) {
  for (; n >= 128; n >>= 7) put_byte(out, (unsigned)(n & 127) | 128);
  put_byte(out, (unsigned)n);
}

static void put_signed(struct vm_text *out, int64_t n) { put_number(out, (uint64_t)n << 1 ^ (n < 0 ? UINT64_MAX : 0)); }

static void put_bytes(struct vm_text *out, const char *bytes, size_t length) {
  put_number(out, length);
  vm_put(out, bytes, length);
}

static void put_value(struct vm_text *out, const struct vm_steps *s, const struct vm_value *v) {
  assert(v->kind <= VM_APPLY);
  uint64_t bits;
  struct vm_text map = {0};
  switch (v->kind) {
  case VM_BOOL: put_byte(out, TAG_BOOL), put_byte(out, v->integer != 0); break;
  case VM_INT: put_byte(out, TAG_INT), put_signed(out, v->integer); break;
  case VM_REAL:
    put_byte(out, TAG_REAL);
    memcpy(&bits, &v->real, sizeof bits);
    for (int i = 0; i < 8; i++) put_byte(out, (unsigned)(bits >> 8 * i & 255));
    break;
  case VM_STRING: put_byte(out, TAG_STRING), put_bytes(out, s->text + v->first, v->count); break;
  case VM_REF: put_byte(out, TAG_REF), put_number(out, v->ref); break;
  case VM_LIST:
  case VM_MAP:
    put_byte(out, v->kind == VM_LIST ? TAG_LIST : TAG_MAP);
    put_number(out, v->count);
    for (uint32_t i = 0; i < v->count; i++) put_value(out, s, &s->values[v->first + i]);
    break;
  case VM_INDEX_MAP:
    put_byte(out, TAG_INDEX_MAP), put_byte(out, v->bare);
    vm_put_formula(&map, s, v);
    put_bytes(out, map.at, map.size);
    free(map.at);
    break;
  default: put_byte(out, TAG_NONE);
  }
}

static void put_instructions(struct vm_text *out, const struct vm_steps *s, const uint32_t *number_of_kind) {
  put_number(out, s->count);
  for (uint32_t n = 0; n < s->count; n++) {
    const struct vm_instruction *i = &s->instructions[n];
    put_number(out, number_of_kind[i->kind]);
    put_number(out, i->inputs);
    for (uint32_t v = 0; v < i->inputs; v++) put_value(out, s, &vm_inputs_of(s, i)[v]);
    put_number(out, i->attrs);
    for (uint32_t v = 0; v < i->attrs; v++) put_value(out, s, &vm_attrs_of(s, i)[v]);
    put_number(out, i->outputs);
    if (i->draw != VM_NO_DRAW) put_number(out, i->draw);
  }
}

void vm_put_binary_decisions(struct vm_text *out, const struct vm_trace *trace) {
  assert(trace->capacity >= trace->steps->decisions);
  const struct vm_steps *s = trace->steps;
  uint32_t count = 0;
  for (uint32_t pass = 0; pass < 2; pass++) {
    if (pass) put_number(out, count);
    for (uint32_t n = 0; n < s->count; n++) {
      const struct vm_instruction *i = &s->instructions[n];
      if (i->draw == VM_NO_DRAW || trace->decided[i->decision] == VM_OPEN) continue;
      count += !pass;
      if (!pass) continue;
      put_number(out, n);
      uint32_t length = trace->decided[i->decision] == VM_DECIDED ? i->outputs : 0;
      put_number(out, length);
      for (uint32_t d = 0; d < length; d++) put_signed(out, trace->decisions[i->decision + d]);
    }
  }
}

void vm_put_binary_steps(struct vm_text *out, const struct vm_steps *s) {
  uint32_t numbers[VM_KIND_COUNT], kinds = 0;
  enum vm_kind used[VM_KIND_COUNT];
  memset(numbers, 255, sizeof numbers);
  for (uint32_t n = 0; n < s->count; n++) {
    enum vm_kind kind = s->instructions[n].kind;
    if (numbers[kind] != UINT32_MAX) continue;
    used[kinds] = kind;
    numbers[kind] = kinds++;
  }
  vm_put(out, MAGIC, sizeof MAGIC);
  put_number(out, VERSION);
  put_number(out, kinds);
  for (uint32_t k = 0; k < kinds; k++) put_bytes(out, vm_kind_info(used[k])->name, strlen(vm_kind_info(used[k])->name));
  put_instructions(out, s, numbers);
  put_number(out, s->next_draw);
}

void *vm_write_binary(const struct vm_trace *trace, size_t *length) {
  assert(trace->steps && length);
  struct vm_text out = {0};
  vm_put_binary_steps(&out, trace->steps);
  vm_put_binary_decisions(&out, trace);
  *length = out.size;
  return out.at;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

struct reader {
  struct vm_trace *trace; /* NULL: decisions are looked at, and not kept */
  const uint8_t *draws;   /* where there is no trace: of its steps, as vm_check_binary_decisions has it */
  uint32_t step_count;
  const uint8_t *at, *end;
  enum vm_kind *kinds;
  uint64_t kind_count;
  ms_error *err;
};

static bool fail(struct reader *r, const char *what) {
  assert(what);
  ms_fail(r->err, MS_BAD_TRACE, "%s", what);
  if (r->err) r->err->instruction = (int)r->trace->steps->count;
  return false;
}

static bool get_number(struct reader *r, uint64_t *out) {
  *out = 0;
  for (int shift = 0; shift < 64 && r->at < r->end; shift += 7) {
    uint8_t byte = *r->at++;
    *out |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return fail(r, "a number is cut short");
}

/* A count of things that take a byte at least each. */
static bool get_count(struct reader *r, uint64_t *out) {
  assert(r->at <= r->end);
  return get_number(r, out) && (*out <= (uint64_t)(r->end - r->at) || fail(r, "a count is larger than what follows"));
}

static bool get_signed(struct reader *r, int64_t *out) {
  uint64_t n;
  if (!get_number(r, &n)) return false;
  *out = (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
  return true;
}

static bool get_bytes(struct reader *r, const char **out, uint64_t *length) {
  if (!get_count(r, length)) return false;
  *out = (const char *)r->at;
  r->at += *length;
  return vm_is_text(*out, *length) || fail(r, "a string is no UTF-8 text");
}

static bool get_value(struct reader *r, int depth, struct vm_value *out);

static bool get_list(struct reader *r, int depth, enum vm_value_kind kind, struct vm_value *out) {
  assert(depth <= VM_MOST_DEPTH && (kind == VM_LIST || kind == VM_MAP));
  uint64_t count;
  if (!get_count(r, &count)) return false;
  struct vm_value *items = malloc((count + 1) * sizeof *items);
  if (!items) abort();
  bool done = kind == VM_LIST || count % 2 == 0;
  for (uint64_t i = 0; i < count && done; i++) {
    done = get_value(r, depth + 1, &items[i]);
    if (done && kind == VM_MAP && i % 2 == 0) done = items[i].kind == VM_STRING;
  }
  if (done) *out = vm_list(r->trace, kind, items, (uint32_t)count);
  free(items);
  return done || fail(r, "a list is ill formed");
}

static bool get_map(struct reader *r, struct vm_value *out) {
  const char *text;
  uint64_t length;
  if (r->at == r->end) return fail(r, "an index map is cut short");
  uint8_t width = *r->at++;
  enum vm_type type = width == VM_CONDITION ? VM_T_CONDITION : VM_T_MAP;
  if (!get_bytes(r, &text, &length) || !vm_read_formula(r->trace, NULL, type, text, length, out, r->err)) return false;
  if (width == 64 && out->op && out->count > out->op) out->bare = 64; /* older texts do not say */
  return true;
}

static bool get_value(struct reader *r, int depth, struct vm_value *out) {
  if (depth > VM_MOST_DEPTH || r->at == r->end) return fail(r, "a value is nested too deep, or cut short");
  uint8_t tag = *r->at++;
  uint64_t n = 0;
  int64_t i;
  const char *text;
  switch (tag) {
  case TAG_NONE: return *out = vm_none(), true;
  case TAG_BOOL: return r->at < r->end ? (*out = vm_bool(*r->at++ != 0), true) : fail(r, "a value is cut short");
  case TAG_INT: return get_signed(r, &i) && (*out = vm_int(i), true);
  case TAG_REAL:
    if (r->end - r->at < 8) return fail(r, "a number is cut short");
    for (int b = 0; b < 8; b++) n |= (uint64_t)*r->at++ << 8 * b;
    *out = vm_real(0);
    memcpy(&out->real, &n, sizeof n);
    if (isnan(out->real)) out->real = NAN; /* there is one */
    return true;
  case TAG_STRING: return get_bytes(r, &text, &n) && (*out = vm_string(r->trace, text, n), true);
  case TAG_REF:
    return get_number(r, &n) && (n < r->trace->steps->variables || fail(r, "a variable that nothing has given")) &&
           (*out = vm_ref((uint32_t)n), true);
  case TAG_LIST: return get_list(r, depth, VM_LIST, out);
  case TAG_MAP: return get_list(r, depth, VM_MAP, out);
  case TAG_INDEX_MAP: return get_map(r, out);
  default: return fail(r, "a value of an unknown kind");
  }
}

static bool get_values(struct reader *r, struct vm_value **out, uint64_t *count) {
  if (!get_count(r, count)) return false;
  *out = malloc((*count + 1) * sizeof **out);
  if (!*out) abort();
  for (uint64_t i = 0; i < *count; i++)
    if (!get_value(r, 0, &(*out)[i])) return false;
  return true;
}

static bool get_instruction(struct reader *r) {
  struct vm_value *inputs = NULL, *attrs = NULL;
  uint64_t kind, input_count = 0, attr_count = 0, outputs, draw = VM_NO_DRAW;
  if (!get_number(r, &kind)) return false;
  if (kind >= r->kind_count) return fail(r, "an instruction of an unknown kind");
  bool done = get_values(r, &inputs, &input_count) && get_values(r, &attrs, &attr_count) && get_number(r, &outputs);
  if (done && vm_kind_info(r->kinds[kind])->effect == VM_EFFECT_draw)
    done = get_number(r, &draw) && (draw < VM_NO_DRAW || fail(r, "a draw id is too large"));
  if (done && outputs > VM_MOST_OUTPUTS) done = fail(r, "an instruction with too many outputs");
  done = done && vm_append(r->trace, r->kinds[kind], inputs, (uint32_t)input_count, attrs, (uint32_t)attr_count,
                           (uint32_t)outputs, (uint32_t)draw, r->err);
  free(inputs);
  free(attrs);
  return done;
}

static bool get_kinds(struct reader *r) {
  if (!get_count(r, &r->kind_count)) return false;
  r->kinds = malloc((r->kind_count + 1) * sizeof *r->kinds);
  if (!r->kinds) abort();
  for (uint64_t k = 0; k < r->kind_count; k++) {
    const char *name;
    uint64_t length;
    if (!get_bytes(r, &name, &length)) return false;
    r->kinds[k] = vm_find_kind(name, length);
    if (r->kinds[k] == VM_KIND_COUNT)
      return ms_fail(r->err, MS_UNKNOWN_INSTRUCTION, "there is no instruction \"%.*s\"",
                     (int)(length < 100 ? length : 100), name);
  }
  return true;
}

static bool draws(const struct reader *r, uint64_t n) {
  return r->trace ? r->trace->steps->instructions[n].draw != VM_NO_DRAW : r->draws[n / 8] >> n % 8 & 1;
}

static bool get_decision(struct reader *r) {
  uint64_t n, count;
  if (!get_number(r, &n) || !get_count(r, &count)) return false;
  if (n >= (r->trace ? r->trace->steps->count : r->step_count)) return fail(r, "a decision for no instruction");
  int64_t few[16], *values = count <= 16 ? few : malloc(count * sizeof *values);
  if (!values) abort();
  bool done = draws(r, n);
  for (uint64_t i = 0; i < count && done; i++) done = get_signed(r, &values[i]);
  if (done && r->trace) vm_decide(r->trace, (uint32_t)n, values, count ? (uint32_t)count : VM_WRONG_COUNT);
  if (values != few) free(values);
  return done || fail(r, "a decision is ill formed");
}

static bool get_decisions(struct reader *r) {
  uint64_t count;
  if (!get_count(r, &count)) return false;
  for (uint64_t i = 0; i < count; i++)
    if (!get_decision(r)) return false;
  return r->at == r->end || fail(r, "bytes follow the trace");
}

static bool get_steps(struct reader *r) {
  uint64_t version, count, next_draw;
  r->at += sizeof MAGIC;
  if (!get_number(r, &version)) return false;
  if (version != VERSION)
    return ms_fail(r->err, MS_BAD_TRACE, "the binary form is of version %llu, and this msched reads version %d",
                   (unsigned long long)version, VERSION);
  if (!get_kinds(r) || !get_count(r, &count)) return false;
  for (uint64_t i = 0; i < count; i++)
    if (!get_instruction(r)) return false;
  if (!get_number(r, &next_draw)) return false;
  if (next_draw < r->trace->steps->next_draw || next_draw > VM_MOST_DRAWS) return fail(r, "the next draw id is none");
  r->trace->steps->next_draw = (uint32_t)next_draw;
  return true;
}

struct vm_trace *vm_read_binary(const void *bytes, size_t length, ms_error *err) {
  size_t steps;
  return vm_read_binary_parts(bytes, length, &steps, err);
}

bool vm_read_binary_decisions(struct vm_trace *trace, const void *bytes, size_t length, ms_error *err) {
  assert(trace && (bytes || !length));
  struct reader r = {.trace = trace, .at = bytes, .end = (const uint8_t *)bytes + length, .err = err};
  return get_decisions(&r);
}

bool vm_check_binary_decisions(const uint8_t *draws, uint32_t count, const void *bytes, size_t length) {
  assert(draws && (bytes || !length));
  struct reader r = {.draws = draws, .step_count = count, .at = bytes, .end = (const uint8_t *)bytes + length};
  return get_decisions(&r);
}

struct vm_trace *vm_read_binary_parts(const void *bytes, size_t length, size_t *steps, ms_error *err) {
  if (length < sizeof MAGIC || memcmp(bytes, MAGIC, sizeof MAGIC) != 0) {
    ms_fail(err, MS_BAD_TRACE, "these bytes are no trace");
    return NULL;
  }
  struct reader r = {.trace = vm_trace_new(), .at = bytes, .end = (const uint8_t *)bytes + length, .err = err};
  bool done = get_steps(&r);
  *steps = (size_t)(r.at - (const uint8_t *)bytes);
  done = done && get_decisions(&r);
  free(r.kinds);
  if (done) return r.trace;
  vm_trace_free(r.trace);
  return NULL;
}

struct vm_trace *vm_read_trace(const void *bytes, size_t length, ms_error *err) {
  const char *c = bytes, *end = c + length;
  if (length >= sizeof MAGIC && !memcmp(bytes, MAGIC, sizeof MAGIC)) return vm_read_binary(bytes, length, err);
  while (c < end && strchr(" \t\r\n", *c)) c++;
  if (c < end && *c == '[') return vm_read_json(bytes, length, err);
  if (c < end && (*c == 'r' || *c == '-')) return vm_read_lua(bytes, length, err);
  ms_fail(err, MS_BAD_TRACE, c == end ? "there is nothing in it" : "it begins as none of a trace's forms does");
  return NULL;
}
