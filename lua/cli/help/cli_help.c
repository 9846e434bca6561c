/* msched help: what the tables say. */
#include "lua/bind/state/visible.h"
#include "lua/cli/cli.h"

#include <string.h>

static int width_of(const char *words) { return (int)strcspn(words, " "); }

static void list_commands(void) {
  printf("usage: msched COMMAND [ARGUMENT…]\n       msched FILE.lua [ARGUMENT…]   runs a script\n       msched         "
         "               reads a session's lines\n\ncommands:\n");
  for (const struct cli_command *c = cli_commands; c->name; c++) {
    printf("  %-8s ", c->name);
    cli_print_text(stdout, 11, c->doc);
  }
  printf("\noptions:\n  --help     this text\n  --version  the version\n\n"
         "`msched help NAME` explains a command, an instruction or a query; `msched help instructions` and\n"
         "`msched help queries` list them; `msched help targets` says what --target takes; `msched help terms`\n"
         "lists the terms that are printed; `msched help ms`, `te` and `ops` list the Lua module, `ms.tune` is a "
         "member.\n`ops:NAME` and `suite:NAME` stand for files: "
         "`msched help ops` lists them too, `msched help "
         "ops:conv2d` explains one.\nThe guide, from a tour in ten minutes on, is in share/doc/msched/guide, or "
         "lua/guide of a clone.\n");
}

static void list_instructions(void) {
  for (int k = 0; k < VM_KIND_COUNT; k++) {
    const struct vm_kind_info *info = vm_kind_info((enum vm_kind)k);
    printf("%-22s %.*s%*s %s\n", info->name, width_of(info->method), info->method, 26 - width_of(info->method), "",
           info->doc);
  }
}

static void explain_param(const struct vm_param *p, const char *what) {
  char text[80];
  printf("  %-22.*s %s: %s", p->name_length, p->name, what, vm_param_text(p, text, sizeof text));
  if (p->repeat) printf(", %s", p->repeat == '+' ? "one or more" : "any number");
  if (p->standard) printf(" (%.*s if left out)", p->standard_length, p->standard);
  printf("\n");
}

static void explain_instruction(enum vm_kind kind) {
  const struct vm_kind_info *info = vm_kind_info(kind);
  const struct vm_signature *sig = vm_signature_of(kind);
  printf("%s\n  ", info->name);
  cli_print_text(stdout, 2, info->doc);
  printf("\n  sch:%.*s(", sig->method_length, info->method);
  for (unsigned i = 0; i < (unsigned)sig->inputs + sig->attrs; i++) {
    const struct vm_param *p = &sig->at[sig->order[i]];
    printf("%s%s%.*s%s", i ? ", " : "", p->repeat ? "{" : "", p->name_length, p->name, p->repeat ? "…}" : "");
  }
  printf(")\n\n");
  for (unsigned i = 0; i < sig->inputs; i++) explain_param(&sig->at[i], "input");
  for (unsigned i = 0; i < sig->attrs; i++) explain_param(&sig->at[sig->inputs + i], "attribute");
  char text[80];
  if (sig->outputs)
    printf("  gives                  %s%s\n", vm_param_text(&sig->output, text, sizeof text),
           sig->output.repeat ? ", or several" : "");
  if (*info->old_names) printf("  older traces call it   %s\n", info->old_names);
  if (!info->safe) printf("  unsafe: may change what is computed\n");
}

static void list_queries(void) {
  for (int q = 0; q < VM_QUERY_COUNT; q++) {
    const struct vm_query_info *info = vm_query_info((enum vm_query)q);
    printf("%-20s %s\n", info->name, info->doc);
  }
}

static void explain_query(enum vm_query query) {
  const struct vm_query_info *info = vm_query_info(query);
  printf("%s\n  ", info->name);
  cli_print_text(stdout, 2, info->doc);
  printf("\n  asked of    %s\n  answers     ", *info->args ? info->args : "the schedule");
  cli_print_text(stdout, 14, info->answer);
  printf("  A query: it is not recorded.\n");
}

static bool explain_command(const char *name) {
  for (const struct cli_command *c = cli_commands; c->name; c++)
    if (!strcmp(c->name, name)) {
      cli_print_usage(stdout, c);
      printf("\n");
      cli_print_text(stdout, 0, c->doc);
      cli_explain_options(c);
      return true;
    }
  return false;
}

bool help_explain(const char *name) {
  assert(name);
  if (!strcmp(name, "commands")) return list_commands(), true;
  if (!strcmp(name, "instructions")) return list_instructions(), true;
  if (!strcmp(name, "queries")) return list_queries(), true;
  enum vm_query query = vm_find_query(name, strlen(name));
  if (query < VM_QUERY_COUNT) return explain_query(query), true;
  enum vm_kind kind = vm_find_kind(name, strlen(name));
  if (kind < VM_KIND_COUNT) return explain_instruction(kind), true;
  return explain_command(name);
}

enum { MOST_NAMES = 512 };

/* Names of commands, instructions and queries, instructions by their methods too; gives how many. */
static int names_of_all(const char *names[MOST_NAMES], char methods[VM_KIND_COUNT][40]) {
  int count = 0;
  for (const struct cli_command *c = cli_commands; c->name; c++) names[count++] = c->name;
  for (int k = 0; k < VM_KIND_COUNT; k++) {
    const struct vm_kind_info *info = vm_kind_info((enum vm_kind)k);
    snprintf(methods[k], sizeof methods[k], "%.*s", width_of(info->method), info->method);
    names[count++] = info->name, names[count++] = methods[k];
  }
  for (int q = 0; q < VM_QUERY_COUNT; q++) names[count++] = vm_query_info((enum vm_query)q)->name;
  assert(count <= MOST_NAMES);
  return count;
}

static int help_unknown(const char *name) {
  const char *names[MOST_NAMES];
  char methods[VM_KIND_COUNT][40], meant[CLI_MEANT];
  int count = names_of_all(names, methods);
  char text[2000];
  snprintf(text, sizeof text,
           "nothing is named \"%.1000s\"; see `msched help instructions`, `msched help queries` and `msched help ms`%s",
           name, cli_meant(name, names, count, meant));
  visible_complain("msched help: ", text);
  return CLI_FAILED;
}

int cli_help(const struct cli_command *self, int argc, char **argv) {
  int count;
  bool lua = false;
  const struct cli_place places[] = {{.key = "lua", .flag = &lua}};
  if (!self) return list_commands(), CLI_DONE;
  if (!cli_parse(self, argc, argv, places, 1, &count)) return CLI_USAGE;
  if (lua && count) return cli_wrong_usage(self, "--lua takes no name");
  if (lua) return cli_annotate();
  if (count > 1) return cli_wrong_usage(self, "give one name");
  if (!count) return list_commands(), CLI_DONE;
  if (help_explain(argv[0]) || cli_explain_member(argv[0])) return CLI_DONE;
  return help_unknown(argv[0]);
}
