/* msched without arguments: an interactive session. On a terminal lines are edited (repl_edit.c); from a pipe they are
 * read as they are, without prompts. What an input does is what a script may do: nothing in it ends the session but the
 * end of the input and os.exit. */
#include "repl.h"
#include "lua/bind/state/state.h"
#include "lua/cli/cli.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct session {
  lua_State *L;
  struct repl_editor *editor; /* NULL: lines come from standard input as they are */
  char *line;                 /* of standard input */
  size_t line_capacity;
  char *text; /* the input so far: lines that together are no chunk yet */
  size_t length;
  uint32_t capacity;
  int begin, show, hint, ask; /* in the registry */
  bool failed;
};

#define CHUNK "=input"

/* Whether lines are edited: libedit has a copy in memory of all that the terminal says it can show. */
static bool edits_lines(void) {
  enum { MOST_CELLS = 1 << 22 };
  struct winsize is;
  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) return false;
  if (ioctl(STDIN_FILENO, TIOCGWINSZ, &is) != 0 || (size_t)is.ws_row * is.ws_col <= MOST_CELLS) return true;
  fprintf(stderr,
          "msched: the terminal is said to have %u x %u cells, so lines are not edited: `stty rows 40 cols 100` "
          "says what it has\n",
          is.ws_row, is.ws_col);
  return false;
}

/* ---- What the part in Lua asks of C ---- */

/* Colour is wanted: standard output is a terminal that takes it, and NO_COLOR is not set. */
static bool repl_wants_colour(void) {
  const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
  return isatty(STDOUT_FILENO) && !(no && *no) && terminal && strcmp(terminal, "dumb") != 0;
}

static int kind(lua_State *L) { /* "schedule", "trace", …; nil for what is not of this module */
  if (lua_type(L, 1) != LUA_TUSERDATA && lua_type(L, 1) != LUA_TTABLE) return 0;
  const char *name = luaL_getmetafield(L, 1, "__name") == LUA_TSTRING ? lua_tostring(L, -1) : "";
  if (strncmp(name, "msched.", 7) != 0) return 0;
  lua_pushstring(L, name + 7);
  return 1;
}

/* methods(value, or a type's name): the table of its methods, or nil. Where __index is one of ours, it holds the table.
 */
static int methods(lua_State *L) {
  lua_settop(L, 1);
  if (lua_type(L, 1) == LUA_TSTRING) {
    if (luaL_getmetatable(L, lua_pushfstring(L, "msched.%s", lua_tostring(L, 1))) != LUA_TTABLE) return 0;
    lua_pushliteral(L, "__index");
    lua_rawget(L, -2);
  } else if (luaL_getmetafield(L, 1, "__index") == LUA_TNIL) {
    return 0;
  }
  if (lua_iscfunction(L, -1) && !lua_getupvalue(L, -1, 1)) return 0;
  return lua_istable(L, -1);
}

static int explain(lua_State *L) {
  lua_pushboolean(L, help_explain(luaL_checkstring(L, 1)));
  return 1;
}

/* patiently(f, arguments…): as pcall, but that an interrupt is not raised in it: f looks at it, and once f has ended it
 * is forgotten. Gives whether there was one, then what pcall does. */
static int patiently(lua_State *L) {
  struct script *s = script_of(L);
  bool patient = s->limits.patient;
  s->limits.patient = true;
  bool done = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0) == LUA_OK;
  s->limits.patient = patient;
  luaL_checkstack(L, 2, NULL);
  lua_pushboolean(L, script_interrupted());
  lua_insert(L, 1);
  lua_pushboolean(L, done);
  lua_insert(L, 2);
  script_resume();
  return lua_gettop(L);
}

/* Pushes the part of the session that is written in Lua (repl.lua). May raise. */
static void repl_push(lua_State *L) {
  static const luaL_Reg functions[] = {{"kind", kind},
                                       {"methods", methods},
                                       {"explain", explain},
                                       {"patiently", patiently},
                                       {"watch_changes", bind_watch_changes},
                                       {"go_to", bind_go_to},
                                       {NULL, NULL}};
  script_push_own(L, "lua.cli.repl.repl");
  luaL_newlib(L, functions);
  cli_add_terminal(L);
  lua_pushboolean(L, repl_wants_colour());
  lua_setfield(L, -2, "colour");
  lua_call(L, 1, 1);
}

int repl_colour_print(lua_State *L) {
  if (!repl_wants_colour()) return 0;
  repl_push(L);
  lua_getfield(L, -1, "print");
  lua_setglobal(L, "print");
  return 0;
}

/* ---- The input as a chunk ---- */

enum compiled { RUNNABLE, INCOMPLETE, WRONG };

static bool load_input(struct session *s, const char *before, size_t skipped) {
  lua_State *L = s->L;
  size_t extra = strlen(before), size = extra + s->length - skipped;
  char *chunk = malloc(size + 1); /* held across no call that raises: loading is protected */
  if (!chunk) return lua_pushliteral(L, "not enough memory"), false;
  memcpy(chunk, before, extra);
  memcpy(chunk + extra, s->text + skipped, s->length - skipped);
  bool loaded = luaL_loadbufferx(L, chunk, size, CHUNK, "t") == LUA_OK;
  free(chunk);
  return loaded;
}

/* The length of a leading `local` that can be left out, so that the names stay when the input has run. */
static size_t leading_local(const struct session *s) {
  size_t start = strspn(s->text, " \t\n"), word = start + 5;
  if (strncmp(s->text + start, "local", 5) != 0 || !strchr(" \t\n", s->text[word]) || !s->text[word]) return 0;
  return word;
}

/* What `?name` asks, with the text of the input. */
static int ask(lua_State *L) {
  const struct session *s = lua_touserdata(L, lua_upvalueindex(1));
  lua_rawgeti(L, LUA_REGISTRYINDEX, s->ask);
  lua_pushlstring(L, s->text, s->length);
  lua_call(L, 1, 0);
  return 0;
}

/* Leaves a function or, for WRONG, a message on the stack. */
static enum compiled compile(struct session *s) {
  lua_State *L = s->L;
  if (*s->text == '?') {
    lua_pushlightuserdata(L, s);
    lua_pushcclosure(L, ask, 1);
    return RUNNABLE;
  }
  if (load_input(s, "return ", 0)) return RUNNABLE;
  lua_pop(L, 1);
  size_t skipped = leading_local(s);
  if (skipped) {
    if (load_input(s, "", skipped)) return RUNNABLE;
    lua_pop(L, 1);
  }
  if (load_input(s, "", 0)) return RUNNABLE;
  size_t length;
  const char *message = lua_tolstring(L, -1, &length);
  if (message && length >= 5 && !strcmp(message + length - 5, "<eof>")) return lua_pop(L, 1), INCOMPLETE;
  return WRONG;
}

/* ---- Running it ---- */

static int as_message(lua_State *L) {
  if (lua_istable(L, 1) && lua_getfield(L, 1, "message") == LUA_TSTRING) return 1;
  luaL_tolstring(L, 1, NULL);
  return 1;
}

/* The message on the stack, popped. Lines of the input are numbered where there are several. */
static void report(struct session *s) {
  int raised = lua_gettop(s->L);
  lua_rawgeti(s->L, LUA_REGISTRYINDEX, s->hint);
  lua_pushvalue(s->L, raised);
  if (lua_pcall(s->L, 1, 1, 0) != LUA_OK) lua_settop(s->L, raised); /* an interrupt ends the hint too: it is none */
  const char *message = lua_tostring(s->L, -1);
  if (!message) message = "an error without a message";
  bool one = !memchr(s->text, '\n', s->length ? s->length - 1 : 0);
  if (one && !strncmp(message, "input:1: ", 9)) message += 9;
  fflush(stdout);
  fprintf(stderr, "msched: %s\n", message);
  lua_settop(s->L, raised - 1);
  s->failed = true;
}

static bool call(lua_State *L, int arguments) {
  assert(arguments >= 0 && lua_gettop(L) > arguments);
  int function = lua_gettop(L) - arguments;
  lua_pushcfunction(L, as_message);
  lua_insert(L, function);
  bool done = lua_pcall(L, arguments, LUA_MULTRET, function) == LUA_OK;
  lua_remove(L, function);
  return done;
}

/* Runs the function on the stack and shows what it gives. */
static void run(struct session *s) {
  lua_State *L = s->L;
  script_resume();
  lua_rawgeti(L, LUA_REGISTRYINDEX, s->begin);
  lua_pushlightuserdata(L, s->text);
  bool done = call(L, 1) && call(L, 0);
  int results = lua_gettop(L);
  if (done) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, s->show);
    lua_insert(L, 1);
    done = lua_checkstack(L, 8) && call(L, results);
  }
  if (!done) {
    report(s);
    script_resume();
    lua_settop(L, 0);
    lua_gc(L, LUA_GCCOLLECT); /* processes and files of what failed go now */
  }
  lua_settop(L, 0);
  fflush(stdout);
}

/* ---- The loop ---- */

static enum repl_input read_line(struct session *s, const char **line, size_t *length) {
  if (s->editor) return repl_edit(s->editor, s->length ? ">> " : "> ", line, length);
  ssize_t got = getline(&s->line, &s->line_capacity, stdin);
  if (got < 0) return REPL_END;
  if (got && s->line[got - 1] == '\n') got--;
  *line = s->line, *length = (size_t)got;
  return REPL_LINE;
}

static void append(struct session *s, const char *line, size_t length) {
  assert(line || !length);
  if (!s->length && length && *line == '=') line++, length--; /* as in older Lua */
  s->text = tir_enlarge(s->text, &s->capacity, (uint64_t)s->length + length + 2, 1);
  memcpy(s->text + s->length, line, length);
  s->length += length;
  s->text[s->length++] = '\n';
  s->text[s->length] = 0;
}

/* The input so far, in all its lines, is what comes back to be edited. */
static void remember(struct session *s) {
  if (!s->editor || !s->length) return;
  assert(s->text[s->length - 1] == '\n');
  s->text[s->length - 1] = 0;
  repl_remember(s->editor, s->text);
  s->text[s->length - 1] = '\n';
}

static void take_line(struct session *s, const char *line, size_t length) {
  append(s, line, length);
  enum compiled what = compile(s);
  if (what == INCOMPLETE) return;
  remember(s);
  if (what == WRONG)
    report(s);
  else
    run(s);
  s->length = 0;
}

static void loop(struct session *s) {
  const char *line;
  size_t length;
  for (enum repl_input got; (got = read_line(s, &line, &length)) != REPL_END;) {
    if (got == REPL_LINE) {
      take_line(s, line, length);
    } else {
      remember(s);
      s->length = 0;
    }
  }
  if (s->length) { /* cut short */
    load_input(s, "", 0);
    report(s);
  }
}

static int open_session(lua_State *L) {
  struct session *s = lua_touserdata(L, 1);
  repl_push(L);
  lua_getglobal(L, "msched");
  lua_getfield(L, -1, "te");
  lua_setglobal(L, "te");
  lua_getfield(L, -2, "watched");
  lua_setfield(L, -2, "watched");
  lua_setglobal(L, "ms");
  lua_getfield(L, -1, "help");
  lua_setglobal(L, "help");
  lua_getfield(L, -1, "print");
  lua_setglobal(L, "print");
  lua_getfield(L, -1, "undo");
  lua_setglobal(L, "undo");
  lua_getfield(L, -1, "redo");
  lua_setglobal(L, "redo");
  lua_getfield(L, -1, "begin");
  lua_pushcclosure(L, repl_with_text, 1);
  s->begin = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_getfield(L, -1, "show");
  s->show = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_getfield(L, -1, "hint");
  s->hint = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_getfield(L, -1, "ask");
  s->ask = luaL_ref(L, LUA_REGISTRYINDEX);
  if (edits_lines()) {
    lua_getfield(L, -1, "complete");
    s->editor = repl_editor_new(L, luaL_ref(L, LUA_REGISTRYINDEX));
  }
  return 0;
}

int cli_repl(void) {
  ms_error err = {.instruction = -1};
  script_catch(SIGINT, false);
  const struct script_limits limits = {.is_program = true};
  struct session s = {.L = script_new(&limits, &err)};
  if (!s.L) return cli_report(&err, NULL, false);
  lua_pushcfunction(s.L, open_session);
  lua_pushlightuserdata(s.L, &s);
  bool done = script_call(s.L, 1, 0, &err);
  bool terminal = s.editor != NULL;
  if (terminal) printf("msched " MSCHED_VERSION "; help() explains, Ctrl-D leaves\n");
  if (done) loop(&s);
  repl_editor_free(s.editor);
  script_close(s.L);
  free(s.line);
  free(s.text);
  if (!done) return cli_report(&err, NULL, false);
  return s.failed && !terminal ? CLI_FAILED : CLI_DONE;
}
