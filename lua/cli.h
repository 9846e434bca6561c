/* What the subcommands of msched share. Internal to lua. */
#ifndef MSCHED_LUA_CLI_H
#define MSCHED_LUA_CLI_H

#include "vm/vm.h"

#include <jansson.h>

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

struct cli_command {
  const char *name, *usage, *doc;
  int (*run)(const struct cli_command *self, int argc, char **argv);
};
extern const struct cli_command cli_commands[]; /* ends with one without a name */

int cli_apply(const struct cli_command *self, int argc, char **argv);
int cli_run(const struct cli_command *self, int argc, char **argv);
int cli_bench(const struct cli_command *self, int argc, char **argv);
int cli_help(const struct cli_command *self, int argc, char **argv);

int cli_lua(const struct cli_command *self, int argc, char **argv);
int cli_repl(void);
int cli_script(int argc, char **argv); /* argv[0]: the script; the rest are its arguments */

/* Prints what is known of a command, an instruction or a query, or a list: "commands", "instructions", "queries".
 * False: nothing is named so. */
bool help_explain(const char *name);

/* Options may stand anywhere before "--"; "-" alone is an argument. */
struct cli_option {
  const char *name;  /* "--seed" */
  bool *flag;        /* set when it is given; or */
  const char **text; /* its value; or */
  uint64_t *number;  /* its value, a decimal number */
};
/* Moves what is no option to the front of argv and stores its number. False: a message was printed, exit CLI_USAGE. */
bool cli_parse(const struct cli_command *self, int argc, char **argv, const struct cli_option *options, size_t count,
               int *arguments);
int cli_wrong_usage(const struct cli_command *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A whole file, or standard input for "-"; a 0 follows it. NULL: err is filled. The caller frees it. */
char *cli_read_file(const char *path, size_t *length, ms_error *err);
struct tir *cli_read_module(const char *path, ms_error *err);
struct vm_trace *cli_read_trace(const char *path, ms_error *err);
/* Prints a refusal: to stderr, or as a JSON object a line on stdout. trace may be NULL. Returns CLI_FAILED. */
int cli_report(const ms_error *err, const struct vm_trace *trace, bool as_json);
/* Prints and releases a JSON object. */
void cli_print_json(json_t *object);

#endif
