#define _GNU_SOURCE
/* Options: how the words of a command are read by the table of options.def, and how the table is explained. */
#include "cli.h"
#include "jit/jit.h"
#include "lua/bind/state/visible.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option table[] = {
#define OPTION(commands, name, kind, value, doc) {commands, name, CLI_##kind, value, doc, ""},
#define TUNING(commands, name, kind, value, field, type, range, standard, doc)                                         \
  {commands, name, CLI_##kind, value, doc, standard},
#include "options.def"
#undef OPTION
#undef TUNING
#undef FIELD
};
enum { OPTIONS = sizeof table / sizeof *table };

/* form is NULL where it is not known: any will do. */
static bool is_for(const struct cli_option *o, const char *command, const char *form, size_t length) {
  size_t size;
  for (const char *word = o->commands; *word; word += size, word += *word == ' ') {
    size = strcspn(word, " ");
    size_t name = strcspn(word, ". ");
    if (name != strlen(command) || memcmp(word, command, name) != 0) continue;
    if (name == size || !form) return true;
    if (size - name - 1 == length && !memcmp(word + name + 1, form, length)) return true;
  }
  return false;
}

static bool is_named(const struct cli_option *o, const char *name, size_t length) {
  size_t size;
  for (const char *word = o->name; *word; word += size, word += *word == ' ') {
    size = strcspn(word, " ");
    if (size == length && !memcmp(word, name, length)) return true;
  }
  return false;
}

static bool is_of_form(const struct cli_option *o, const struct cli_words *w) {
  return is_for(o, w->command->name, w->form, w->form ? strlen(w->form) : 0);
}

static const struct cli_option *find_named(const struct cli_words *w, const char *name, size_t length) {
  for (int i = 0; i < OPTIONS; i++)
    if (is_of_form(&table[i], w) && is_named(&table[i], name, length)) return &table[i];
  return NULL;
}

/* Names that options once had go on working: {old, new}. */
static const char *const renamed[][2] = {{"--peer", "--tvm"}};

static const struct cli_option *find_option(const struct cli_words *w, const char *name, size_t length) {
  const struct cli_option *found = find_named(w, name, length);
  for (size_t i = 0; !found && i < sizeof renamed / sizeof *renamed; i++)
    if (strlen(renamed[i][0]) == length && !memcmp(renamed[i][0], name, length))
      found = find_named(w, renamed[i][1], strlen(renamed[i][1]));
  return found;
}

const char *cli_option_key(const struct cli_option *o) {
  assert(o && o->name);
  const char *last = strrchr(o->name, ' ');
  last = last ? last + 1 : o->name;
  return last + strspn(last, "-");
}

/* ---- Reading words ---- */

static bool looks_like_option(const char *word) { return word[0] == '-' && word[1]; }

/* The form of the command is its first argument; options before it are known by their names alone. */
struct cli_words cli_words_of(const struct cli_command *command, int argc, char **argv) {
  assert(command && argc >= 0 && (argv || !argc));
  struct cli_words w = {.command = command, .argc = argc, .argv = argv};
  const char *form = NULL;
  for (int i = 0; i < argc && !form && strcmp(argv[i], "--") != 0; i++) {
    const struct cli_option *o = NULL;
    if (looks_like_option(argv[i]))
      o = find_option(&w, argv[i], strlen(argv[i]));
    else
      form = argv[i];
    if (o && o->kind != CLI_FLAG) i++;
  }
  w.form = form;
  return w;
}

static bool parse_number(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  return ((*text >= '0' && *text <= '9') || *text == '.') && !*end && isfinite(*out);
}

static bool parse_whole(const char *text, uint64_t *out) {
  char *end;
  double real;
  errno = 0;
  *out = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && !*end) return !errno;
  if (!parse_number(text, &real) || real != floor(real) || real > 0x1p53) return false; /* 1e3 */
  *out = (uint64_t)real;
  return true;
}

/* NAME=N, as --dim takes it; names in networks are any words. */
static bool is_dim(const char *text) {
  size_t name = strcspn(text, "=");
  if (!name || text[name] != '=') return false;
  const char *number = text + name + 1, *digits = number + (*number == '-');
  char *end;
  errno = 0;
  strtoll(number, &end, 10);
  return *digits >= '0' && *digits <= '9' && !*end && !errno;
}

static const char *expected(enum cli_kind kind) {
  return kind == CLI_WHOLE ? "a whole number" : kind == CLI_DIM ? "NAME=N, as n=64" : "a number of at least 0";
}

/* Says which option of the command's form was meant, if one was. */
static bool refuse_option(const struct cli_words *w, const char *word, size_t length) {
  const char *names[OPTIONS];
  char name[64], meant[CLI_MEANT] = "";
  int count = 0;
  for (int i = 0; i < OPTIONS; i++)
    if (is_of_form(&table[i], w)) names[count++] = cli_option_key(&table[i]);
  snprintf(name, sizeof name, "%.*s", (int)length, word);
  const char *key = name + strspn(name, "-");
  if (strlen(key) > 1 && key - name == 2) cli_meant(key, names, count, meant);
  char *quoted = strchr(meant, '`'); /* with its dashes */
  if (quoted)
    cli_wrong_usage(w->command, "unknown option %s%.*s`--%s", name, (int)(quoted - meant), meant, quoted + 1);
  else
    cli_wrong_usage(w->command, "unknown option %.*s", (int)length, word);
  return false;
}

/* An option at w->at, whose value may follow an = or be the next word. */
static bool take_option(struct cli_words *w, struct cli_word *out) {
  const char *word = w->argv[w->at++], *equals = strchr(word, '=');
  size_t length = equals ? (size_t)(equals - word) : strlen(word);
  const struct cli_option *o = out->option = find_option(w, word, length);
  if (!o) return refuse_option(w, word, length);
  if (o->kind == CLI_FLAG) {
    if (equals) return cli_wrong_usage(w->command, "%.*s takes no value", (int)length, word), false;
    return true;
  }
  if (!equals && w->at == w->argc) return cli_wrong_usage(w->command, "%.*s takes a value", (int)length, word), false;
  out->text = equals ? equals + 1 : w->argv[w->at++];
  if (o->kind == CLI_WHOLE ? parse_whole(out->text, &out->whole)
      : o->kind == CLI_DIM ? is_dim(out->text)
                           : o->kind != CLI_NUMBER || parse_number(out->text, &out->number))
    return true;
  cli_wrong_usage(w->command, "%.*s takes %s, not \"%s\"", (int)length, word, expected(o->kind), out->text);
  return false;
}

enum cli_read cli_next(struct cli_words *w, struct cli_word *out) {
  assert(w->at <= w->argc && out);
  *out = (struct cli_word){.rest = w->rest};
  if (w->at < w->argc && !w->literal && !strcmp(w->argv[w->at], "--")) {
    w->literal = true;
    out->rest = w->rest = find_option(w, "--", 2) != NULL;
    w->at++;
  }
  if (w->at == w->argc) return CLI_END;
  if (!w->literal && looks_like_option(w->argv[w->at])) return take_option(w, out) ? CLI_WORD : CLI_WRONG;
  out->text = w->argv[w->at++];
  return CLI_WORD;
}

static void append(struct cli_list *list, const char *text) {
  assert(list && text && (list->at || !list->count));
  list->at = realloc(list->at, (list->count + 1) * sizeof *list->at);
  if (!list->at) abort();
  list->at[list->count++] = text;
}

static void store(const struct cli_place *places, size_t count, const struct cli_word *word) {
  const char *key = word->rest ? "" : cli_option_key(word->option);
  size_t i = 0;
  while (i < count && strcmp(places[i].key, key) != 0) i++;
  assert(i < count); /* the command has a place for each of its options */
  enum cli_kind kind = word->rest ? CLI_REST : word->option->kind;
  bool listed = kind == CLI_LIST || kind == CLI_DIM || kind == CLI_REST;
  assert(kind == CLI_FLAG    ? places[i].flag != NULL
         : kind == CLI_WHOLE ? places[i].whole != NULL
         : listed            ? places[i].list != NULL
                             : places[i].text != NULL);
  if (kind == CLI_FLAG)
    *places[i].flag = true;
  else if (listed)
    append(places[i].list, word->text);
  else if (kind == CLI_WHOLE)
    *places[i].whole = word->whole;
  else
    *places[i].text = word->text;
}

bool cli_parse(const struct cli_command *self, int argc, char **argv, const struct cli_place *places, size_t count,
               int *arguments) {
  struct cli_words words = cli_words_of(self, argc, argv);
  struct cli_word word;
  enum cli_read read;
  *arguments = 0;
  while ((read = cli_next(&words, &word)) == CLI_WORD) {
    if (word.option || word.rest)
      store(places, count, &word);
    else
      argv[(*arguments)++] = (char *)word.text; /* one that was read already */
  }
  for (size_t i = 0; i < count && read != CLI_END; i++) {
    if (!places[i].list) continue;
    free(places[i].list->at);
    *places[i].list = (struct cli_list){0};
  }
  return read == CLI_END;
}

/* ---- Explaining ---- */

enum { WIDEST = 110, FIRST = 24 }; /* columns of the usage, and of an option's name and value */

/* Columns that a UTF-8 text takes. */
static int width(const char *text) {
  int columns = 0;
  for (; *text; text++) columns += (*text & 0xc0) != 0x80;
  return columns;
}

/* A text behind what is on the line, or at `indent` on the next one. */
static void put_wrapped(FILE *to, int *column, int indent, const char *text) {
  bool fits = *column + 1 + width(text) <= WIDEST;
  if (!fits) fprintf(to, "\n%*s", indent, "");
  fprintf(to, "%s%s", fits ? " " : "", text);
  *column = (fits ? *column + 1 : indent) + width(text);
}

void cli_print_text(FILE *to, int indent, const char *text) {
  assert(to && text && indent >= 0);
  char word[128];
  int column = indent;
  for (const char *next = text; *next; next += strspn(next, " ")) {
    size_t length = strcspn(next, " ");
    assert(length < sizeof word);
    snprintf(word, sizeof word, "%.*s", (int)length, next);
    if (next == text)
      fputs(word, to), column += width(word);
    else
      put_wrapped(to, &column, indent, word);
    next += length;
  }
  fputc('\n', to);
}

/* One form of the command: its words, then what it takes. */
static void print_form(FILE *to, const struct cli_command *c, const char *words, int length) {
  char text[128];
  int column = fprintf(to, "msched %s", c->name) + (int)strlen("usage: "), indent = column + 1;
  snprintf(text, sizeof text, "%.*s", length, words);
  if (length) put_wrapped(to, &column, indent, text);
  for (int i = 0; i < OPTIONS; i++) {
    const struct cli_option *o = &table[i];
    if (strchr(o->name, ' ') || !is_for(o, c->name, words, strcspn(words, " \n"))) continue; /* -o is in the words */
    snprintf(text, sizeof text, "[%s%s%s]", o->name, *o->value ? " " : "", o->value);
    put_wrapped(to, &column, indent, text);
  }
  fputc('\n', to);
}

void cli_print_usage(FILE *to, const struct cli_command *c) {
  assert(to && c);
  const char *form = c->usage;
  for (bool first = true; first || *form; first = false) {
    size_t length = strcspn(form, "\n");
    fputs(first ? "usage: " : "       ", to);
    print_form(to, c, form, (int)length);
    form += length + (form[length] == '\n');
  }
}

void cli_explain_options(const struct cli_command *c) {
  assert(c);
  char text[128];
  for (int i = 0, shown = 0; i < OPTIONS; i++) {
    const struct cli_option *o = &table[i];
    if (!is_for(o, c->name, NULL, 0)) continue;
    const char *space = strchr(o->name, ' ');
    snprintf(text, sizeof text, "%.*s%s%s %s", space ? (int)(space - o->name) : (int)strlen(o->name), o->name,
             space ? ", " : "", space ? space + 1 : "", o->value);
    bool wide = width(text) > FIRST, says = !*o->standard;
    printf("%s  %s%s%*s ", shown++ ? "" : "\n", text, wide ? "\n  " : "", wide ? FIRST : FIRST - width(text), "");
    char *doc;
    if (asprintf(&doc, "%s%s%s%s", o->doc, says ? "" : " (", o->standard, says ? "" : ")") < 0) abort();
    cli_print_text(stdout, FIRST + 3, doc);
    free(doc);
  }
}

int cli_wrong_usage(const struct cli_command *self, const char *format, ...) {
  assert(format);
  va_list args;
  char *message = NULL, before[80];
  snprintf(before, sizeof before, "msched%s%s: ", self ? " " : "", self ? self->name : "");
  va_start(args, format);
  if (vasprintf(&message, format, args) < 0) abort();
  va_end(args);
  visible_complain(before, message);
  free(message);
  if (self)
    cli_print_usage(stderr, self);
  else
    fprintf(stderr, "see: msched --help\n");
  return CLI_USAGE;
}
