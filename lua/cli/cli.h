/* What the subcommands of msched share. Internal to lua. */
#ifndef MSCHED_LUA_CLI_H
#define MSCHED_LUA_CLI_H

#include "vm/vm.h"

#include <jansson.h>
#include <lua.h>
#include <stdio.h>

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* usage: the command's arguments, a line a form; what options it takes is in options.def. */
struct cli_command {
  const char *name, *usage, *doc;
  int (*run)(const struct cli_command *self, int argc, char **argv);
};
extern const struct cli_command cli_commands[]; /* ends with one without a name */

int cli_apply(const struct cli_command *self, int argc, char **argv);
int cli_convert(const struct cli_command *self, int argc, char **argv);
int cli_run(const struct cli_command *self, int argc, char **argv);
int cli_bench(const struct cli_command *self, int argc, char **argv);
int cli_bench_kinds(const struct cli_command *self, int argc, char **argv);
int cli_lower(const struct cli_command *self, int argc, char **argv);
int cli_help(const struct cli_command *self, int argc, char **argv);

int cli_lua(const struct cli_command *self, int argc, char **argv);
int cli_repl(void);
int cli_annotate(void); /* prints annotations for editors */
/* What docs.lua says of a module, a type or a member of one: "te", "ms.rule". False: nothing is named so. */
bool cli_explain_member(const char *name);
/* What is added to a message that there is no such name: "; did you mean `…`?" of `count` names, or nothing. */
enum { CLI_MEANT = 96 };
const char *cli_meant(const char *name, const char *const *names, int count, char out[CLI_MEANT]);
/* Adds the same to a message that a file is not there, of the names in its folder. */
void cli_hint(ms_error *err);
int cli_script(int argc, char **argv); /* argv[0]: the script; the rest are its arguments */

/* Explains a command, an instruction or a query, or a list: "commands", "instructions", "queries".
 * False: nothing is named so. */
bool help_explain(const char *name);

/* ---- Options (cli_options.c): options.def says which there are ---- */

enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_LIST, CLI_DIM, CLI_WHOLE, CLI_NUMBER, CLI_REST };
struct cli_option {
  const char *commands, *name;
  enum cli_kind kind;
  const char *value, *doc;
  const char *standard; /* what holds without it, where the doc does not say that */
};
/* The last of its names, without dashes. */
const char *cli_option_key(const struct cli_option *option);

/* The words of a command, read one after another. Options may stand anywhere before "--"; "-" alone is an argument. */
struct cli_words {
  const struct cli_command *command;
  int argc, at;
  char **argv;
  const char *form;   /* the first argument, or NULL */
  bool literal, rest; /* "--" was read; and it starts the rest */
};
struct cli_word {
  const struct cli_option *option; /* NULL: an argument, or of the rest */
  bool rest;
  const char *text; /* the argument, or the option's value; and that, by the option's kind: */
  uint64_t whole;
  double number;
};
enum cli_read { CLI_WORD, CLI_END, CLI_WRONG };
struct cli_words cli_words_of(const struct cli_command *command, int argc, char **argv);
/* CLI_WRONG: a message was printed, exit CLI_USAGE. */
enum cli_read cli_next(struct cli_words *words, struct cli_word *out);

/* The values of an option that may be given again. */
struct cli_list {
  const char **at; /* NULL while there are none */
  size_t count;
};
/* Where the value of an option goes. What its kind asks for must be there. What follows "--" has the key "", and a
 * list. */
struct cli_place {
  const char *key;
  bool *flag;            /* set when it is given; or */
  const char **text;     /* its value; or */
  struct cli_list *list; /* which its value is appended to; or */
  uint64_t *whole;       /* its value */
};
/* Reads all words: each option's value goes to its place, arguments to the front of argv, their number to *arguments.
 * The command has a place for each of its options. False: a message was printed, exit CLI_USAGE. */
bool cli_parse(const struct cli_command *self, int argc, char **argv, const struct cli_place *places, size_t count,
               int *arguments);
int cli_wrong_usage(const struct cli_command *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

void cli_print_usage(FILE *to, const struct cli_command *command);
/* Words that stand at this column of a line, and that go on there where they fill it; ends the line. */
void cli_print_text(FILE *to, int indent, const char *text);
/* The options, one after the other, after an empty line; nothing where there is none. */
void cli_explain_options(const struct cli_command *command);

/* ---- Files, messages (cli.c) ---- */

/* A whole file, or standard input for "-"; a 0 follows it. NULL: err is filled. The caller frees it. */
char *cli_read_file(const char *path, size_t *length, ms_error *err);
struct tir *cli_read_module(const char *path, ms_error *err);
bool cli_is_made_by_lua(const char *path); /* a Lua file, ops:NAME or suite:NAME: Lua makes its functions */
/* One function of a file, alone in a module: task is its number from 1 or its name; NULL: the only one, or `main`. The
 * file may be Lua, or ops:NAME or suite:NAME; rest are its arguments. dims: NAME=N each, numbers for variables of its
 * shapes. */
struct tir *cli_read_function(const char *path, const char *task, const struct cli_list *rest,
                              const struct cli_list *dims, const struct cli_list *weights, ms_error *err);
/* The function that a trace is one of: without loops that never run, as it is tuned. Takes ir, which may be NULL. */
struct tir *cli_for_trace(struct tir *ir);
struct vm_trace *cli_read_trace(const char *path, ms_error *err);
/* The traces of a file, one a line, at most so many; the caller's to free. Their number; 0: err says why. */
uint32_t cli_read_traces(const char *path, struct vm_trace **out, uint32_t most, ms_error *err);
/* The tensor intrinsics that files define: sections, or a script's, FILE.lua; the caller's to free, the list is freed.
 * NULL: err says which file cannot be read, defines none, or defines another of a name. */
struct vm_intrinsics *cli_read_intrinsics(struct cli_list *files, ms_error *err);
void cli_add_terminal(lua_State *L);   /* to the table on top: is_terminal, terminal_width, terminal_height */
int cli_take_intrinsics(lua_State *L); /* a function of Lua's: the same of a list of files, for that state */
/* Prints a refusal: to stderr, or as a JSON object a line on stdout. trace may be NULL. Returns CLI_FAILED. */
int cli_report(const ms_error *err, const struct vm_trace *trace, bool as_json);
/* Prints and releases a JSON object. */
void cli_print_json(json_t *object);

#endif
