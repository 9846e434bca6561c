/* msched convert: a trace in another text form. */
#include "cli.h"
#include "lua/bind/bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct form {
  const char *name;
  char *(*write)(const struct vm_trace *trace); /* NULL: binary */
};
static const struct form forms[] = {{"json", vm_write_json}, {"lua", vm_write_lua}, {"binary", NULL}};
enum { FORMS = sizeof forms / sizeof *forms };

/* By its name, or as the suffix of a file. NULL: there is none. */
static const struct form *find_form(const char *name) {
  for (int i = 0; i < FORMS; i++)
    if (!strcmp(forms[i].name, name)) return &forms[i];
  return NULL;
}

/* Texts end with a newline. The caller frees it. */
static char *write_trace(const struct vm_trace *trace, const struct form *form, size_t *length) {
  if (!form->write) return vm_write_binary(trace, length);
  char *text = form->write(trace);
  *length = strlen(text);
  if (*length && text[*length - 1] == '\n') return text;
  text = realloc(text, *length + 2);
  if (!text) abort();
  strcpy(text + (*length)++, "\n");
  return text;
}

static bool put_bytes(const char *path, const char *bytes, size_t length, ms_error *err) {
  struct bind_output out;
  if (!bind_open_output(&out, path ? path : "-", err)) return false;
  bool ok = fwrite(bytes, 1, length, out.file) == length;
  if (!ok) ms_fail(err, MS_IO, "%s: cannot be written: %s", path ? path : "standard output", strerror(errno));
  return bind_close_output(&out, ok, err);
}

static int convert(const char *from, const char *to, const struct form *form) {
  ms_error err = {.instruction = -1};
  size_t length;
  struct vm_trace *trace = cli_read_trace(from, &err);
  char *bytes = trace ? write_trace(trace, form, &length) : NULL;
  bool done = bytes && put_bytes(to, bytes, length, &err);
  free(bytes);
  vm_trace_free(trace);
  return done ? CLI_DONE : cli_report(&err, NULL, false);
}

int cli_convert(const struct cli_command *self, int argc, char **argv) {
  const char *to = NULL, *output = NULL;
  const struct cli_place places[] = {{.key = "to", .text = &to}, {.key = "output", .text = &output}};
  int count;
  if (!cli_parse(self, argc, argv, places, sizeof places / sizeof *places, &count)) return CLI_USAGE;
  if (count != 1) return cli_wrong_usage(self, "give one trace; - is standard input");
  if (output && !strcmp(output, "-")) output = NULL;
  const char *suffix = output ? strrchr(output, '.') : NULL;
  const struct form *form = to ? find_form(to) : suffix ? find_form(suffix + 1) : &forms[0];
  if (!form && to) return cli_wrong_usage(self, "--to %s: there are json, lua and binary", to);
  if (!form)
    return cli_wrong_usage(self, "%s: its suffix is neither .json, .lua nor .binary; say which with --to", output);
  if (!form->write && !output && isatty(STDOUT_FILENO))
    return cli_wrong_usage(self, "the binary form is not for a terminal; name a file with -o");
  return convert(argv[0], output, form);
}
