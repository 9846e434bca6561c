/* Tensor intrinsics by name: what each computes, and how the machine is told to.
 *
 * A file holds sections, each a heading and one function in TVMScript; what stands before the first is a comment.
 *   ### NAME.desc
 *   ### NAME.impl */
#include "run.h"

#include <assert.h>
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

/* One section: heading is NAME.desc or NAME.impl. */
static bool read_section(struct vm_intrinsics *table, const char *heading, size_t length, const char *body, size_t size,
                         const char *file, ms_error *err) {
  int part = length > 5 && !memcmp(heading + length - 5, ".desc", 5)   ? 0
             : length > 5 && !memcmp(heading + length - 5, ".impl", 5) ? 1
                                                                       : -1;
  int shown = length < 100 ? (int)length : 100;
  if (part < 0)
    return ms_fail(err, MS_BAD_INTRINSIC, "%s: heading `%.*s` ends neither in .desc nor in .impl", file, shown,
                   heading);
  struct intrinsic *i = find(table, heading, length - 5);
  if (!i) i = add(table, heading, length - 5);
  if (i->parts[part]) return ms_fail(err, MS_BAD_INTRINSIC, "%s: `%.*s` is there twice", file, shown, heading);
  i->parts[part] = tir_read(body, size, file, err);
  return i->parts[part] != NULL;
}

static bool read_sections(struct vm_intrinsics *table, const char *text, const char *file, ms_error *err) {
  const char *at = strncmp(text, "### ", 4) ? strstr(text, "\n### ") : text;
  while (at) {
    at += *at == '\n';
    const char *heading = at + 4, *body = heading + strcspn(heading, "\r\n");
    size_t length = (size_t)(body - heading);
    at = strstr(body, "\n### ");
    if (!read_section(table, heading, length, body, at ? (size_t)(at - body) : strlen(body), file, err)) return false;
  }
  for (uint32_t i = 0; i < table->count; i++)
    if (!table->at[i].parts[0] || !table->at[i].parts[1])
      return ms_fail(err, MS_BAD_INTRINSIC, "%s: `%.100s` lacks its description or its implementation", file,
                     table->at[i].name);
  return true;
}

struct vm_intrinsics *vm_read_intrinsics(const char *text, const char *file, ms_error *err) {
  struct vm_intrinsics *table = calloc(1, sizeof *table);
  if (!table) abort();
  if (read_sections(table, text, file, err)) return table;
  vm_intrinsics_free(table);
  return NULL;
}

/* ---- Shipped ---- */

#include "shipped_intrinsics.h" /* shipped: the texts of the files in vm/intrinsics/, made by the build */
enum { FILES = sizeof shipped / sizeof *shipped };

/* The next section of a file, or NULL. */
static const char *next_section(const char *at) {
  if (!strncmp(at, "### ", 4)) at += 4;
  const char *found = strstr(at, "\n### ");
  return found ? found + 1 : NULL;
}

static bool is_section(const char *at, const char *name, const char *part) {
  size_t length = strlen(name);
  return !strncmp(at + 4, name, length) && !strncmp(at + 4 + length, part, strlen(part)) &&
         strchr("\r\n", at[4 + length + strlen(part)]);
}

static void add_section(struct vm_intrinsics *table, const char *at) {
  ms_error err = {0};
  const char *heading = at + 4, *body = heading + strcspn(heading, "\r\n"), *end = next_section(at);
  size_t size = end ? (size_t)(end - body) : strlen(body);
  bool read = read_section(table, heading, (size_t)(body - heading), body, size, "shipped", &err);
  assert(read && "a shipped intrinsic cannot be read");
  (void)read;
}

void vm_add_shipped_intrinsic(struct vm_intrinsics **table, const char *name) {
  if (*table && find(*table, name, strlen(name))) return;
  for (int f = 0; f < FILES; f++)
    for (const char *at = next_section(shipped[f]); at; at = next_section(at)) {
      if (!is_section(at, name, ".desc") && !is_section(at, name, ".impl")) continue;
      if (!*table) *table = calloc(1, sizeof **table);
      if (!*table) abort();
      add_section(*table, at);
    }
}

bool vm_shipped_intrinsic(uint32_t i, char *name, size_t size) {
  for (int f = 0; f < FILES; f++)
    for (const char *at = next_section(shipped[f]); at; at = next_section(at)) {
      size_t length = strcspn(at + 4, "\r\n");
      if (length <= 5 || memcmp(at + 4 + length - 5, ".desc", 5) != 0 || i-- > 0) continue;
      snprintf(name, size, "%.*s", (int)(length - 5), at + 4);
      return true;
    }
  return false;
}
