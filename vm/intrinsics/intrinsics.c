/* Tensor intrinsics by name: what each computes, and how the machine does it.
 *
 * A file holds sections, each a heading and one function in TVMScript; what stands before the first is a comment.
 *   ### NAME.desc
 *   ### NAME.impl
 * Functions of one shape are made of a shipped template, a section `### TEMPLATE.template`: its lines, with each <word>
 * replaced, come before the section's own. A heading without a suffix is that of both: of a template that describes,
 * and one that the section's own lines go on.
 *   ### NAME
 *   #@ TEMPLATE TEMPLATE word=text…
 * A section that stands for several has lines of choices below its heading: a letter, and what may stand for <LETTER>,
 * in the heading and, where that is something else, in the function.
 *   ### copy_<T>.desc
 *   #: T f16 = float16 | f32 = float32
 * What goes with the choice above, in the function, has a line of its own: as many, in the same order.
 *   #= Z T.float16(0) | T.float32(0) */
#include "vm/run.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct intrinsic {
  char *name;
  struct tir *parts[2]; /* description, implementation */
};
struct vm_intrinsics {
  struct intrinsic *at;
  uint32_t count, capacity;
};

void vm_intrinsics_free(struct vm_intrinsics *table) {
  if (!table) return;
  for (uint32_t i = 0; i < table->count; i++) {
    free(table->at[i].name);
    for (int part = 0; part < 2; part++)
      if (table->at[i].parts[part]) tir_free(table->at[i].parts[part]);
  }
  free(table->at);
  free(table);
}

static struct intrinsic *find(const struct vm_intrinsics *table, const char *name, size_t length) {
  for (uint32_t i = 0; i < table->count; i++)
    if (strlen(table->at[i].name) == length && !memcmp(table->at[i].name, name, length)) return &table->at[i];
  return NULL;
}

bool vm_find_intrinsic(const struct vm_intrinsics *table, const char *name, const struct tir **description,
                       const struct tir **implementation) {
  const struct intrinsic *found = table ? find(table, name, strlen(name)) : NULL;
  if (!found) return false;
  *description = found->parts[0];
  *implementation = found->parts[1];
  return true;
}

static struct intrinsic *add(struct vm_intrinsics *table, const char *name, size_t length) {
  if (table->count == table->capacity)
    table->at = tir_enlarge(table->at, &table->capacity, (uint64_t)table->count + 1, sizeof *table->at);
  char *copy = strndup(name, length);
  if (!copy) abort();
  table->at[table->count] = (struct intrinsic){.name = copy};
  return &table->at[table->count++];
}

struct vm_intrinsics *vm_intrinsics_new(void) {
  struct vm_intrinsics *table = calloc(1, sizeof *table);
  if (!table) abort();
  return table;
}

uint32_t vm_intrinsic_count(const struct vm_intrinsics *table) { return table->count; }

enum { NAME_SIZE = 128 }; /* of a heading */

/* A name stands in a heading, as it is. */
static bool is_name(const char *name) {
  size_t length = strlen(name);
  bool plain = length && length < NAME_SIZE - 8 && !strpbrk(name, "<>") && vm_is_text(name, length);
  for (const char *c = name; *c; c++) plain = plain && (unsigned char)*c > ' ';
  return plain;
}

static bool same(const struct intrinsic *i, struct tir *const parts[2]) {
  return tir_structural_equal(i->parts[0], 1, parts[0], 1, NULL, 0) &&
         tir_structural_equal(i->parts[1], 1, parts[1], 1, NULL, 0);
}

bool vm_intrinsics_put(struct vm_intrinsics *table, const char *name, struct tir *const parts[2], ms_error *err) {
  const struct intrinsic *old = find(table, name, strlen(name));
  if (!is_name(name))
    return ms_fail(err, MS_BAD_INTRINSIC, "`%.100s` is no name: at most %d bytes, without spaces, < and >", name,
                   NAME_SIZE - 9);
  if (old && !same(old, parts))
    return ms_fail(err, MS_BAD_INTRINSIC, "there is an intrinsic `%.100s` already, which is another", name);
  if (old) {
    tir_free(parts[0]), tir_free(parts[1]);
    return true;
  }
  struct intrinsic *made = add(table, name, strlen(name));
  made->parts[0] = parts[0], made->parts[1] = parts[1];
  assert(find(table, name, strlen(name)) == made);
  return true;
}

bool vm_add_intrinsics(struct vm_intrinsics *table, const struct vm_intrinsics *from, ms_error *err) {
  for (uint32_t i = 0; from && i < from->count; i++) {
    struct tir *parts[2] = {tir_new(), tir_new()};
    for (int part = 0; part < 2; part++) tir_copy(parts[part], from->at[i].parts[part]);
    if (vm_intrinsics_put(table, from->at[i].name, parts, err)) continue;
    for (int part = 0; part < 2; part++) tir_free(parts[part]);
    return false;
  }
  return true;
}

char *vm_write_intrinsics(const struct vm_intrinsics *table, const char *name) {
  struct vm_text text = {0};
  if (name && !(table && find(table, name, strlen(name)))) return NULL;
  vm_put(&text, "", 0);
  for (uint32_t i = 0; table && i < table->count; i++) {
    const struct intrinsic *one = &table->at[i];
    for (int part = 0; part < 2 && (!name || !strcmp(name, one->name)); part++) {
      char *script = tir_print(one->parts[part], TIR_NONE, 0);
      if (!script) abort();
      vm_putf(&text, "### %s.%s\n", one->name, part ? "impl" : "desc");
      vm_put(&text, script, strlen(script));
      vm_put(&text, "\n", 1);
      free(script);
    }
  }
  return text.at;
}

const char *vm_next_intrinsic(const struct vm_trace *trace, uint32_t *at) {
  const struct vm_steps *s = trace->steps;
  while (*at < s->count) {
    const struct vm_instruction *i = &s->instructions[(*at)++];
    if (i->kind == VM_Tensorize) return s->text + s->values[i->values + i->inputs].first;
  }
  return NULL;
}

static const char *const halves[] = {".desc", ".impl"};
enum { SUFFIX = 5 }; /* the length of each */

/* Which half of an intrinsic a heading is of; -1: none. */
static int half_of(const char *heading) {
  size_t length = strlen(heading);
  for (int part = 0; part < 2; part++)
    if (length > SUFFIX && !strcmp(heading + length - SUFFIX, halves[part])) return part;
  return -1;
}

static bool read_half(struct vm_intrinsics *table, const char *heading, const char *body, size_t size, const char *file,
                      ms_error *err) {
  size_t length = strlen(heading);
  int part = half_of(heading);
  if (part < 0)
    return ms_fail(err, MS_BAD_INTRINSIC, "%s: heading `%.100s` ends neither in .desc nor in .impl", file, heading);
  struct intrinsic *i = find(table, heading, length - SUFFIX);
  if (!i) i = add(table, heading, length - SUFFIX);
  if (i->parts[part]) return ms_fail(err, MS_BAD_INTRINSIC, "%s: `%.100s` is there twice", file, heading);
  i->parts[part] = tir_read(body, size, file, err);
  return i->parts[part] != NULL;
}

/* ---- Sections ---- */

struct words {
  const char *at;
  size_t length;
};
enum { MOST_CHOICES = 8, MOST_OPTIONS = 8 };
struct choice {
  char letter;
  bool tied; /* to the choice before it */
  uint32_t count;
  struct words heading[MOST_OPTIONS], body[MOST_OPTIONS];
};
struct section {
  struct words heading, body;
  struct words templates[2]; /* their lines, or nothing */
  struct words with;         /* word=text… */
  uint32_t template_count;   /* 2: it is both halves */
  struct choice choices[MOST_CHOICES];
  uint32_t choice_count, combinations;
};

static struct words trimmed(const char *at, const char *end) {
  while (at < end && *at == ' ') at++;
  while (at < end && end[-1] == ' ') end--;
  return (struct words){at, (size_t)(end - at)};
}

/* LETTER option | option…; an option is TEXT, or NAME = TEXT, or of a tied choice all of it TEXT. False: there are
 * none, too many, or other than as many as those that it is tied to. */
static bool read_choice(struct section *s, const char *at, const char *end, bool tied) {
  if (s->choice_count == MOST_CHOICES || end - at < 3 || (tied && !s->choice_count)) return false;
  struct choice *c = &s->choices[s->choice_count++];
  *c = (struct choice){.letter = *at++, .tied = tied};
  while (at <= end) {
    const char *bar = memchr(at, '|', (size_t)(end - at)), *stop = bar ? bar : end;
    const char *equal = tied ? NULL : memchr(at, '=', (size_t)(stop - at));
    if (c->count == MOST_OPTIONS) return false;
    c->heading[c->count] = trimmed(at, equal ? equal : stop);
    c->body[c->count++] = trimmed(equal ? equal + 1 : at, stop);
    at = stop + 1;
  }
  assert(c->count && s->choice_count <= MOST_CHOICES);
  if (tied) return c->count == c[-1].count;
  s->combinations *= c->count;
  return true;
}

static const char *first_section(const char *text) {
  if (!strncmp(text, "### ", 4)) return text;
  const char *found = strstr(text, "\n### ");
  return found ? found + 1 : NULL;
}

#include "shipped_intrinsics.h" /* shipped: the texts of the files in vm/intrinsics/, made by the build */
enum { FILES = sizeof shipped / sizeof *shipped };

/* The lines of the template of this name; NULL: there is none. */
static struct words find_template(struct words name) {
  char heading[NAME_SIZE + 16];
  int length = snprintf(heading, sizeof heading, "### %.*s.template\n", (int)name.length, name.at);
  for (int f = 0; f < FILES && name.length < NAME_SIZE; f++) {
    const char *found = strstr(shipped[f], heading);
    if (!found) continue;
    const char *at = found + length - 1, *end = strstr(at, "\n### ");
    return (struct words){at, end ? (size_t)(end - at) : strlen(at)};
  }
  return (struct words){NULL, 0};
}

static struct words next_word(const char *at, const char *end) {
  at += strspn(at, " ");
  size_t length = at < end ? strcspn(at, " \r\n") : 0;
  return (struct words){at, length};
}

/* TEMPLATE word=text…, or TEMPLATE TEMPLATE word=text…; false: there is none of that name, or a line before said
 * some. */
static bool read_templates(struct section *s, const char *at, const char *end) {
  if (s->template_count) return false;
  for (;;) {
    struct words name = next_word(at, end);
    if (!name.length || memchr(name.at, '=', name.length)) break;
    if (s->template_count == 2 || !(s->templates[s->template_count++] = find_template(name)).at) return false;
    at = name.at + name.length;
  }
  s->with = (struct words){at, (size_t)(end - at)};
  return s->template_count > 0;
}

/* Reads the section that begins at `at`, and gives where the next one does; NULL: it is the last. */
static const char *read_section(const char *at, struct section *s, bool *good) {
  const char *end = strstr(at + 4, "\n### "), *line = at + 4 + strcspn(at + 4, "\r\n"), *next;
  *s = (struct section){.heading = trimmed(at + 4, line), .combinations = 1};
  *good = true;
  while (next = line + strspn(line, "\r\n"), *next == '#' && next[1] && strchr(":=@", next[1]) && next[2] == ' ') {
    line = next + strcspn(next, "\r\n");
    *good =
        *good && (next[1] == '@' ? read_templates(s, next + 3, line) : read_choice(s, next + 3, line, next[1] == '='));
  }
  s->body = (struct words){line, end ? (size_t)(end - line) : strlen(line)};
  return end ? end + 1 : NULL;
}

/* What combination `n` of a section puts in the place of a letter. */
static struct words chosen(const struct section *s, uint32_t n, char letter, bool heading) {
  uint32_t option = 0;
  assert(n < s->combinations);
  for (uint32_t i = 0; i < s->choice_count; i++) {
    const struct choice *c = &s->choices[i];
    if (!c->tied) option = n % c->count, n /= c->count;
    if (c->letter == letter) return heading ? c->heading[option] : c->body[option];
  }
  return (struct words){NULL, 0};
}

/* Writes text with letters replaced, cut at `size`; its length uncut. */
static size_t substitute(const struct section *s, uint32_t n, struct words text, bool heading, char *out, size_t size) {
  size_t length = 0;
  for (const char *at = text.at, *end = at + text.length; at < end; at++) {
    struct words put = {at, 1};
    if (*at == '<' && end - at > 2 && at[2] == '>') {
      struct words with = chosen(s, n, at[1], heading);
      if (with.at) put = with, at += 2;
    }
    for (size_t i = 0; i < put.length; i++, length++)
      if (length + 1 < size) out[length] = put.at[i];
  }
  if (size) out[length < size ? length : size - 1] = 0;
  return length;
}

static bool heading_of(const struct section *s, uint32_t n, char out[NAME_SIZE]) {
  return substitute(s, n, s->heading, true, out, NAME_SIZE) < NAME_SIZE;
}

/* Adds the lines of a template, its words replaced. One that the section does not name stays as it is. */
static void put_template(const struct section *s, struct words lines, struct vm_text *out) {
  for (const char *at = lines.at, *end = at + lines.length, *open; at < end; at = open) {
    const char *close = NULL;
    open = memchr(at, '<', (size_t)(end - at));
    if (open) close = memchr(open, '>', (size_t)(end - open));
    vm_put(out, at, (size_t)((close ? open : end) - at));
    if (!close) return;
    size_t length = (size_t)(close - open - 1);
    struct words w = {s->with.at, 0};
    while (w = next_word(w.at + w.length, s->with.at + s->with.length),
           w.length && !(w.length > length && w.at[length] == '=' && !memcmp(w.at, open + 1, length)))
      ;
    if (w.length)
      vm_put(out, w.at + length + 1, w.length - length - 1);
    else
      vm_put(out, open, length + 2);
    open = close + 1;
  }
}

/* Half of combination `n`: of its template, if it has one, then its own lines; a description is that of both alone. */
static bool read_combination_half(struct vm_intrinsics *table, const struct section *s, uint32_t n, int part,
                                  const char *heading, const char *file, ms_error *err) {
  struct vm_text lines = {0};
  if (s->template_count) put_template(s, s->templates[part], &lines);
  if (s->template_count < 2 || part) vm_put(&lines, s->body.at, s->body.length);
  struct words all = {lines.at, lines.size};
  size_t size = substitute(s, n, all, false, NULL, 0);
  char *body = malloc(size + 1);
  if (!body) abort();
  size_t written = substitute(s, n, all, false, body, size + 1);
  assert(written == size && !body[size]);
  (void)written;
  bool ok = read_half(table, heading, body, size, file, err);
  free(body);
  free(lines.at);
  return ok;
}

static bool read_combination(struct vm_intrinsics *table, const struct section *s, uint32_t n, const char *heading,
                             const char *file, ms_error *err) {
  char half[NAME_SIZE + SUFFIX];
  if (s->template_count < 2) return read_combination_half(table, s, n, 0, heading, file, err);
  for (int part = 0; part < 2; part++) {
    snprintf(half, sizeof half, "%s%s", heading, halves[part]);
    if (!read_combination_half(table, s, n, part, half, file, err)) return false;
  }
  return true;
}

static bool read_sections(struct vm_intrinsics *table, const char *text, const char *file, ms_error *err) {
  struct section s;
  bool good;
  char heading[NAME_SIZE];
  for (const char *at = first_section(text); at;) {
    at = read_section(at, &s, &good);
    if (!good || !heading_of(&s, 0, heading))
      return ms_fail(err, MS_BAD_INTRINSIC, "%s: the choices, the template or the name of `%.*s` cannot be read", file,
                     (int)(s.heading.length < 100 ? s.heading.length : 100), s.heading.at);
    for (uint32_t n = 0; n < s.combinations; n++)
      if (!heading_of(&s, n, heading) || !read_combination(table, &s, n, heading, file, err)) return false;
  }
  for (uint32_t i = 0; i < table->count; i++) {
    const struct intrinsic *one = &table->at[i];
    if (!one->parts[0] || !one->parts[1])
      return ms_fail(err, MS_BAD_INTRINSIC, "%s: `%.100s` lacks its description or its implementation", file,
                     one->name);
    if (!vm_check_intrinsic(one->name, one->parts, err)) return false;
  }
  return true;
}

struct vm_intrinsics *vm_read_intrinsics(const char *text, const char *file, ms_error *err) {
  struct vm_intrinsics *table = vm_intrinsics_new();
  if (read_sections(table, text, file, err)) return table;
  vm_intrinsics_free(table);
  return NULL;
}

/* ---- Shipped ---- */

/* Whether combination `n` of a section is the intrinsic of this name, or half of it. */
static bool is_intrinsic(const struct section *s, uint32_t n, const char *name, char heading[NAME_SIZE]) {
  size_t length = strlen(name);
  if (!heading_of(s, n, heading) || strncmp(heading, name, length) != 0) return false;
  return s->template_count == 2 ? !heading[length] : strlen(heading) == length + SUFFIX && half_of(heading) >= 0;
}

void vm_add_shipped_intrinsic(struct vm_intrinsics **table, const char *name) {
  struct section s;
  bool good;
  char heading[NAME_SIZE];
  if (*table && find(*table, name, strlen(name))) return;
  for (int f = 0; f < FILES; f++)
    for (const char *at = first_section(shipped[f]); at;) {
      at = read_section(at, &s, &good);
      for (uint32_t n = 0; n < s.combinations; n++) {
        ms_error err = {0};
        if (!is_intrinsic(&s, n, name, heading)) continue;
        if (!*table) *table = vm_intrinsics_new();
        bool read = read_combination(*table, &s, n, heading, "shipped", &err);
        assert(good && read && "a shipped intrinsic cannot be read");
        (void)read;
      }
    }
}

/* Those that were asked for belong to the program, as its code does: each is read once, and kept until the program
 * ends. Their modules do not change; the table does, under the lock. */
static struct vm_intrinsics *kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

bool vm_find_known_intrinsic(const struct vm_intrinsics *table, const char *name, const struct tir **description,
                             const struct tir **implementation) {
  assert(name);
  if (vm_find_intrinsic(table, name, description, implementation)) return true;
  pthread_mutex_lock(&kept_lock);
  vm_add_shipped_intrinsic(&kept, name);
  bool found = vm_find_intrinsic(kept, name, description, implementation);
  pthread_mutex_unlock(&kept_lock);
  return found;
}

bool vm_shipped_intrinsic(uint32_t i, char *name, size_t size) {
  struct section s;
  bool good;
  char heading[NAME_SIZE];
  for (int f = 0; f < FILES; f++)
    for (const char *at = first_section(shipped[f]); at;) {
      at = read_section(at, &s, &good);
      heading_of(&s, 0, heading);
      bool both = s.template_count == 2;
      if (!both && half_of(heading) != 0) continue;
      if (i >= s.combinations) {
        i -= s.combinations;
        continue;
      }
      heading_of(&s, i, heading);
      snprintf(name, size, "%.*s", (int)(strlen(heading) - (both ? 0 : SUFFIX)), heading);
      return true;
    }
  return false;
}
