/* What the subcommands share: files, messages. */
#include "cli.h"
#include "lua/bind/bind.h"
#include "lua/bind/state/format.h"
#include "lua/bind/state/visible.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *cli_read_file(const char *path, size_t *length, ms_error *err) {
  assert(path && length);
  return strcmp(path, "-") ? bind_read_file(path, BIND_MOST_TEXT, length, err)
                           : bind_read_input(BIND_MOST_TEXT, length, err);
}

struct tir *cli_read_module(const char *path, ms_error *err) {
  assert(path);
  size_t length;
  char *text = cli_read_file(path, &length, err);
  if (!text) return NULL;
  bool good = format_expect_text(path, text, length, format_functions, err);
  struct tir *ir = good ? tir_read(text, length, path, err) : NULL;
  free(text);
  if (ir && !tir_verify_scopes(ir, err)) {
    tir_free(ir);
    ir = NULL;
  }
  return ir;
}

static const char trace_forms[] = "a trace is JSON in TVM's layout, Lua text, or msched's binary form";

struct vm_trace *cli_read_trace(const char *path, ms_error *err) {
  assert(path);
  size_t length;
  char *text = cli_read_file(path, &length, err);
  if (!text) return NULL;
  ms_error why = {.instruction = -1};
  struct vm_trace *trace = vm_read_trace(text, length, &why);
  bool other = !trace && !format_expect_text(path, text, length, trace_forms, err);
  free(text);
  if (trace || other) return trace;
  if (why.instruction >= 0)
    ms_fail(err, why.code, "%s: instruction %d: %s", path, why.instruction, why.message);
  else
    ms_fail(err, why.code, "%s: %s", path, why.message);
  err->instruction = why.instruction;
  ms_explain(err);
  return NULL;
}

uint32_t cli_read_traces(const char *path, struct vm_trace **out, uint32_t most, ms_error *err) {
  assert(path && out);
  size_t length;
  uint32_t count = 0;
  char *text = cli_read_file(path, &length, err);
  if (!text) return 0;
  for (char *at = text, *end = text + length; at < end && count < most; count++) {
    char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    ms_error why = {.instruction = -1};
    out[count] = vm_read_trace(at, (size_t)(stop - at), &why);
    if (!out[count]) {
      ms_fail(err, why.code, "%s: line %u: %s", path, count + 1, why.message);
      while (count) vm_trace_free(out[--count]);
      break;
    }
    at = stop + 1;
  }
  free(text);
  if (!count && !length) ms_fail(err, MS_IO, "%s: there are no traces", path);
  return count;
}

void cli_print_json(json_t *object) {
  assert(object);
  char *text = json_dumps(object, JSON_COMPACT);
  if (text) {
    visible_put(text, VISIBLE_JSON);
    putchar('\n');
  }
  free(text);
  json_decref(object);
}

/* As it is, or where it is no UTF-8 as it is shown. */
static json_t *json_message(const char *text) {
  json_t *message = json_string(text);
  char *shown = message ? NULL : visible_text(text, strlen(text), VISIBLE_LINES);
  if (shown) message = json_string(shown);
  free(shown);
  return message;
}

int cli_report(const ms_error *err, const struct vm_trace *trace, bool as_json) {
  assert(err && err->code != MS_OK);
  ms_error hinted = *err;
  if (strstr(err->message, strerror(ENOENT))) cli_hint(&hinted);
  bool placed = err->instruction >= 0;
  const char *kind = NULL;
  if (placed && trace && (uint32_t)err->instruction < trace->steps->count)
    kind = vm_kind_info(trace->steps->instructions[err->instruction].kind)->name;
  if (as_json)
    cli_print_json(json_pack("{s:b, s:o, s:s?, s:s, s:o}", "ok", 0, "instruction",
                             placed ? json_integer(err->instruction) : json_null(), "kind", kind, "code",
                             ms_code_name(err->code), "message", json_message(hinted.message)));
  else
    visible_complain("msched: ", hinted.message);
  return CLI_FAILED;
}
