/* The tables of instructions and queries in memory, and the grammar of their columns. */
#include "table.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

static const struct vm_kind_info kinds[VM_KIND_COUNT] = {
#define INST(kind, old, method, inputs, attrs, outputs, effect, safe, source, performs, doc)                           \
  {#kind, old, method, inputs, attrs, outputs, doc, VM_EFFECT_##effect, VM_IS_##safe, VM_IS_##source},
#define VM_IS_safe   true
#define VM_IS_unsafe false
#define VM_IS_own    true
#define VM_IS_tvm    false
#include "instructions.def"
#undef INST
};

const struct vm_kind_info *vm_kind_info(enum vm_kind kind) {
  assert(kind < VM_KIND_COUNT);
  return &kinds[kind];
}

static const struct vm_query_info queries[VM_QUERY_COUNT] = {
#define QUERY(name, args, answer, performs, doc) {#name, args, answer, doc},
#include "queries.def"
#undef QUERY
};

const struct vm_query_info *vm_query_info(enum vm_query query) {
  assert(query < VM_QUERY_COUNT);
  return &queries[query];
}

enum vm_query vm_find_query(const char *name, size_t length) {
  for (int q = 0; q < VM_QUERY_COUNT; q++)
    if (strlen(queries[q].name) == length && !memcmp(queries[q].name, name, length)) return (enum vm_query)q;
  return VM_QUERY_COUNT;
}

static size_t word_length(const char *text) { return strcspn(text, " "); }
static const char *next_word(const char *text) {
  text += word_length(text);
  return text + strspn(text, " ");
}

/* Kinds by each of their names: a hash table, filled once. Traces are read by it, instruction by instruction. */
enum { NAME_SLOTS = 1024 };
static struct named_kind {
  const char *name; /* NULL: the slot is free */
  uint8_t length;
  uint16_t kind;
} named_kinds[NAME_SLOTS];

/* The slot that has the name, or the free one where it would be. */
static struct named_kind *slot_of(const char *name, size_t length) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)name[i]) * 16777619u;
  for (uint32_t i = hash % NAME_SLOTS;; i = (i + 1) % NAME_SLOTS) {
    struct named_kind *slot = &named_kinds[i];
    if (!slot->name || (slot->length == length && !memcmp(slot->name, name, length))) return slot;
  }
}

/* Of two kinds with one name the first has it. */
static void name_kind(const char *name, size_t length, enum vm_kind kind) {
  assert(length <= UINT8_MAX);
  struct named_kind *slot = slot_of(name, length);
  if (length && !slot->name) *slot = (struct named_kind){name, (uint8_t)length, (uint16_t)kind};
}

static void name_kinds(void) {
  static_assert(VM_KIND_COUNT <= NAME_SLOTS / 8, "slots stay free, so that each search ends");
  for (int k = 0; k < VM_KIND_COUNT; k++) {
    const struct vm_kind_info *info = &kinds[k];
    name_kind(info->name, strlen(info->name), (enum vm_kind)k);
    name_kind(info->method, word_length(info->method), (enum vm_kind)k);
    for (const char *old = info->old_names; *old; old = next_word(old))
      name_kind(old, word_length(old), (enum vm_kind)k);
  }
}

enum vm_kind vm_find_kind(const char *name, size_t length) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, name_kinds);
  const struct named_kind *slot = slot_of(name, length);
  return slot->name ? (enum vm_kind)slot->kind : VM_KIND_COUNT;
}

static const struct {
  const char *name, *one, *many;
} types[] = {
    [VM_T_BLOCK] = {"block", "a block", "blocks"},
    [VM_T_LOOP] = {"loop", "a loop", "loops"},
    [VM_T_LOCATION] = {"location", "a loop", "loops"},
    [VM_T_NEST] = {"nest", "a loop or a list of blocks", "loops or lists of blocks"},
    [VM_T_PLACE] = {"place", "a block or a loop", "blocks or loops"},
    [VM_T_INT] = {"int", "an integer", "integers"},
    [VM_T_REAL] = {"real", "a number", "numbers"},
    [VM_T_BOOL] = {"bool", "a boolean", "booleans"},
    [VM_T_BIT] = {"bit", "a boolean", "booleans"},
    [VM_T_STRING] = {"string", "a string", "strings"},
    [VM_T_VALUE] = {"value", "an annotation value", "annotation values"},
    [VM_T_MAP] = {"map", "an index map", "index maps"},
    [VM_T_CONDITION] = {"condition", "a condition", "conditions"},
};

/* type = "[" name "]" | name, then "?" | "+" | "*" in any order, then "=" default */
static void parse_type(const char *text, struct vm_param *out) {
  out->list = *text == '[';
  text += out->list;
  size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz");
  unsigned type = 0;
  while (strlen(types[type].name) != length || memcmp(types[type].name, text, length)) {
    type++;
    assert(type < sizeof types / sizeof types[0]);
  }
  out->type = (uint8_t)type;
  text += length;
  if (out->list) assert(*text == ']'), text++;
  for (; *text && *text != ' ' && *text != '='; text++) {
    if (*text == '?')
      out->optional = true;
    else
      out->repeat = *text;
  }
  if (*text != '=') return;
  out->standard = text + 1;
  out->standard_length = (uint8_t)word_length(text + 1);
}

/* Parses a column of name:type; returns how many there are, at most `room`. */
static uint8_t parse_params(const char *text, struct vm_param *out, unsigned room) {
  uint8_t count = 0;
  for (; *text; text = next_word(text), count++) {
    assert(count < room);
    out[count] = (struct vm_param){.name = text, .name_length = (uint8_t)strcspn(text, ":")};
    parse_type(text + out[count].name_length + 1, &out[count]);
  }
  return count;
}

static unsigned find_param(const struct vm_signature *s, const char *name, size_t length) {
  for (unsigned i = 0; i < (unsigned)s->inputs + s->attrs; i++)
    if (s->at[i].name_length == length && !memcmp(s->at[i].name, name, length)) return i;
  assert(!"a method's argument is neither input nor attribute");
  return 0;
}

static void parse_signature(enum vm_kind kind, struct vm_signature *out) {
  const struct vm_kind_info *info = vm_kind_info(kind);
  out->inputs = parse_params(info->inputs, out->at, VM_MOST_PARAMS);
  out->attrs = parse_params(info->attrs, out->at + out->inputs, VM_MOST_PARAMS - out->inputs);
  if (*info->outputs) {
    out->outputs = 1;
    parse_type(info->outputs, &out->output);
  }
  out->method_length = (uint8_t)word_length(info->method);
  unsigned n = 0;
  for (const char *word = next_word(info->method); *word; word = next_word(word))
    out->order[n++] = (uint8_t)find_param(out, word, word_length(word));
  assert(n == (unsigned)out->inputs + out->attrs);
}

/* ---- What the columns say, parsed once: constant from then on, so all threads share it ---- */

static struct vm_signature signatures[VM_KIND_COUNT];
static struct vm_query_params query_params[VM_QUERY_COUNT];
static pthread_once_t parsed = PTHREAD_ONCE_INIT;

static void parse_tables(void) {
  for (int k = 0; k < VM_KIND_COUNT; k++) parse_signature((enum vm_kind)k, &signatures[k]);
  for (int q = 0; q < VM_QUERY_COUNT; q++)
    query_params[q].count = parse_params(queries[q].args, query_params[q].at, VM_MOST_ARGUMENTS);
}

const struct vm_signature *vm_signature_of(enum vm_kind kind) {
  assert(kind < VM_KIND_COUNT);
  pthread_once(&parsed, parse_tables);
  return &signatures[kind];
}

const struct vm_query_params *vm_query_params(enum vm_query query) {
  assert(query < VM_QUERY_COUNT);
  pthread_once(&parsed, parse_tables);
  return &query_params[query];
}

const char *vm_param_text(const struct vm_param *param, char *out, size_t size) {
  assert(size > 0);
  snprintf(out, size, "%s%s%s", param->list ? "a list of " : "",
           param->list ? types[param->type].many : types[param->type].one, param->optional ? " or None" : "");
  return out;
}
