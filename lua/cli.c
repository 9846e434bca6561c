/* What the subcommands share: options, files, messages. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int cli_wrong_usage(const struct cli_command *self, const char *format, ...) {
  va_list args;
  fprintf(stderr, "msched%s%s: ", self ? " " : "", self ? self->name : "");
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  if (self)
    fprintf(stderr, "\nusage: msched %s %s\n", self->name, self->usage);
  else
    fprintf(stderr, "\nsee: msched --help\n");
  return CLI_USAGE;
}

static const struct cli_option *find_option(const struct cli_option *options, size_t count, const char *name,
                                            size_t length) {
  for (size_t i = 0; i < count; i++)
    if (strlen(options[i].name) == length && !memcmp(options[i].name, name, length)) return &options[i];
  return NULL;
}

static bool parse_number(const char *text, uint64_t *out) {
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && !*end && !errno;
}

/* One option, at argv[*i]; its value may follow an = or be the next word. */
static bool take_option(const struct cli_command *self, int argc, char **argv, int *i, const struct cli_option *options,
                        size_t count) {
  const char *word = argv[*i], *equals = strchr(word, '=');
  size_t length = equals ? (size_t)(equals - word) : strlen(word);
  const struct cli_option *option = find_option(options, count, word, length);
  if (!option) return cli_wrong_usage(self, "unknown option %.*s", (int)length, word), false;
  if (option->flag) {
    if (equals) return cli_wrong_usage(self, "%s takes no value", option->name), false;
    return *option->flag = true;
  }
  if (!equals && *i + 1 == argc) return cli_wrong_usage(self, "%s takes a value", option->name), false;
  const char *value = equals ? equals + 1 : argv[++*i];
  if (option->text) return *option->text = value, true;
  if (parse_number(value, option->number)) return true;
  return cli_wrong_usage(self, "%s takes a number, not \"%s\"", option->name, value), false;
}

bool cli_parse(const struct cli_command *self, int argc, char **argv, const struct cli_option *options, size_t count,
               int *arguments) {
  bool literal = false;
  *arguments = 0;
  for (int i = 0; i < argc; i++) {
    bool option = !literal && argv[i][0] == '-' && argv[i][1];
    if (option && !strcmp(argv[i], "--"))
      literal = true;
    else if (!option)
      argv[(*arguments)++] = argv[i];
    else if (!take_option(self, argc, argv, &i, options, count))
      return false;
  }
  return true;
}

char *cli_read_file(const char *path, size_t *length, ms_error *err) {
  FILE *file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
  char *text = NULL;
  uint32_t capacity = 0;
  *length = 0;
  while (file) {
    text = tir_enlarge(text, &capacity, (uint64_t)*length + 65537, 1);
    size_t got = fread(text + *length, 1, capacity - *length - 1, file);
    *length += got;
    if (!got) break;
  }
  if (!file || ferror(file)) {
    ms_fail(err, MS_IO, "%s: %s", path, strerror(errno));
    free(text);
    text = NULL;
  } else {
    text[*length] = 0;
  }
  if (file && file != stdin) fclose(file);
  return text;
}

struct tir *cli_read_module(const char *path, ms_error *err) {
  size_t length;
  char *text = cli_read_file(path, &length, err);
  if (!text) return NULL;
  struct tir *ir = tir_read(text, length, path, err);
  free(text);
  if (ir && !tir_verify_scopes(ir, err)) {
    tir_free(ir);
    ir = NULL;
  }
  return ir;
}

struct vm_trace *cli_read_trace(const char *path, ms_error *err) {
  size_t length;
  char *text = cli_read_file(path, &length, err);
  if (!text) return NULL;
  ms_error why = {.instruction = -1};
  struct vm_trace *trace = vm_read_trace(text, length, &why);
  free(text);
  if (trace) return trace;
  if (why.instruction >= 0)
    ms_fail(err, why.code, "%s: instruction %d: %s", path, why.instruction, why.message);
  else
    ms_fail(err, why.code, "%s: %s", path, why.message);
  err->instruction = why.instruction;
  return NULL;
}

void cli_print_json(json_t *object) {
  char *text = json_dumps(object, JSON_COMPACT);
  if (text) puts(text);
  free(text);
  json_decref(object);
}

int cli_report(const ms_error *err, const struct vm_trace *trace, bool as_json) {
  bool placed = err->instruction >= 0;
  const char *kind = NULL;
  if (placed && trace && (uint32_t)err->instruction < trace->steps->count)
    kind = vm_kind_info(trace->steps->instructions[err->instruction].kind)->name;
  if (as_json)
    cli_print_json(json_pack("{s:b, s:o, s:s?, s:s, s:s}", "ok", 0, "instruction",
                             placed ? json_integer(err->instruction) : json_null(), "kind", kind, "code",
                             ms_code_name(err->code), "message", err->message));
  else
    fprintf(stderr, "msched: %s\n", err->message);
  return CLI_FAILED;
}
