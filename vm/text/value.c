/* Values as text. */
#include "vm/steps.h"

#include <stdlib.h>

static bool is_plain(unsigned char c) { return c >= 32 && c != 127 && c != '"' && c != '\\'; }

void vm_put_string(struct vm_text *text, const char *bytes, size_t length) {
  vm_put(text, "\"", 1);
  for (size_t i = 0, run; i < length; i++) {
    for (run = i; i < length && is_plain((unsigned char)bytes[i]);) i++;
    vm_put(text, bytes + run, i - run);
    if (i == length) break;
    unsigned char c = (unsigned char)bytes[i];
    vm_putf(text, c == '"' || c == '\\' ? "\\%c" : "\\%03u", c);
  }
  vm_put(text, "\"", 1);
}

static void put_value(struct vm_text *text, const struct vm_steps *s, const struct vm_value *v, int depth) {
  assert(depth <= VM_MOST_DEPTH + 1);
  char name[16];
  switch (v->kind) {
  case VM_NONE: vm_putf(text, "None"); break;
  case VM_BOOL: vm_putf(text, v->integer ? "true" : "false"); break;
  case VM_INT: vm_put_whole(text, v->integer); break;
  case VM_REAL: vm_put_real(text, v->real); break;
  case VM_STRING: vm_put_string(text, s->text + v->first, v->count); break;
  case VM_REF:
    if (v->ref < s->variables)
      vm_put(text, name, (size_t)vm_variable_name(s, v->ref, name));
    else
      vm_putf(text, "a variable that is not defined");
    break;
  case VM_LIST:
  case VM_MAP:
    vm_putf(text, v->kind == VM_LIST ? "[" : "{");
    for (uint32_t i = 0; i < v->count && depth < 4 && text->size < 512; i++) {
      if (i) vm_putf(text, v->kind == VM_LIST || i % 2 == 0 ? ", " : ": ");
      put_value(text, s, &s->values[v->first + i], depth + 1);
    }
    vm_putf(text, v->kind == VM_LIST ? "]" : "}");
    break;
  case VM_INDEX_MAP: vm_put_formula(text, s, v); break;
  default: vm_putf(text, "an expression"); break;
  }
}

size_t vm_print_value(const struct vm_steps *steps, const struct vm_value *value, char *out, size_t size) {
  assert(size > 0);
  struct vm_text text = {0};
  put_value(&text, steps, value, 0);
  size_t length = text.size;
  snprintf(out, size, "%s", text.at ? text.at : "");
  free(text.at);
  return length;
}
