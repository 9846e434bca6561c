/* Lines edited on a terminal, by libedit: history, completion, interrupts. */
#include "lua/cli/cli.h"
#include "repl.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEPT_LINES = 1000, MOST_PATH = 4096 };

struct repl_editor {
  EditLine *el;
  History *history;
  lua_State *L;
  int complete;
  const char *prompt;
  char file[MOST_PATH]; /* of the history; "": none */
  sigset_t waiting;     /* the mask while a key is waited for */
};

static struct repl_editor *editor_of(EditLine *el) {
  void *data;
  el_get(el, EL_CLIENTDATA, &data);
  return data;
}

static char *prompt_of(EditLine *el) { return (char *)editor_of(el)->prompt; }

/* One byte of a key. Signals are blocked but here, so that none comes between a look at the flag and the wait. */
static bool read_byte(struct repl_editor *e, char *out) {
  for (;;) {
    fd_set input;
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    int ready = pselect(STDIN_FILENO + 1, &input, NULL, NULL, NULL, &e->waiting);
    if (script_interrupted()) return false;
    if (ready < 0 && errno == EINTR) continue; /* the window's size, or a stop: libedit has seen to it */
    return ready > 0 && read(STDIN_FILENO, out, 1) == 1;
  }
}

static int read_character(EditLine *el, wchar_t *out) {
  struct repl_editor *e = editor_of(el);
  mbstate_t state;
  memset(&state, 0, sizeof state);
  for (char byte; read_byte(e, &byte);) {
    size_t got = mbrtowc(out, &byte, 1, &state);
    if (got != (size_t)-1 && got != (size_t)-2) return 1;
    if (got == (size_t)-1) memset(&state, 0, sizeof state); /* no text in this locale: left out */
  }
  return script_interrupted() ? -1 : 0;
}

/* Of text in UTF-8: bytes that go on with a character do not count. */
static int count_characters(const char *from, const char *to) {
  int count = 0;
  for (; from < to; from++) count += ((unsigned char)*from & 0xC0) != 0x80;
  return count;
}

/* ---- Completion ---- */

static size_t common_prefix(lua_State *L, int list, lua_Integer count, const char **first) {
  lua_rawgeti(L, list, 1);
  *first = lua_tostring(L, -1); /* the list keeps it */
  size_t length = strlen(*first);
  lua_pop(L, 1);
  for (lua_Integer i = 2; i <= count; i++) {
    lua_rawgeti(L, list, i);
    const char *word = lua_tostring(L, -1);
    size_t same = 0;
    while (same < length && word[same] == (*first)[same]) same++;
    length = same;
    lua_pop(L, 1);
  }
  return length;
}

static void list_words(lua_State *L, int list, lua_Integer count) {
  struct winsize window = {0};
  int widest = 0, columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col ? window.ws_col : 80;
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, list, i);
    int width = (int)lua_rawlen(L, -1);
    if (width > widest) widest = width;
    lua_pop(L, 1);
  }
  int across = columns / (widest + 2) > 0 ? columns / (widest + 2) : 1;
  for (lua_Integer i = 1; i <= count; i++) {
    lua_rawgeti(L, list, i);
    if ((i - 1) % across == 0) putchar('\n');
    printf("%-*s", (i % across) ? widest + 2 : 0, lua_tostring(L, -1));
    lua_pop(L, 1);
  }
  putchar('\n');
}

/* complete(text) gave the end that is replaced and the words: inserts what they have in common, or lists them. */
static unsigned char use_words(EditLine *el, lua_State *L) {
  lua_Integer count = lua_istable(L, -1) ? (lua_Integer)lua_rawlen(L, -1) : 0;
  size_t typed = lua_rawlen(L, -2);
  if (!count) return CC_REFRESH_BEEP;
  const char *first;
  size_t common = common_prefix(L, lua_absindex(L, -1), count, &first);
  if (common > typed) {
    char piece[256];
    snprintf(piece, sizeof piece, "%.*s", (int)(common - typed), first + typed);
    return el_insertstr(el, piece) == 0 ? CC_REFRESH : CC_ERROR;
  }
  if (count == 1) return CC_NORM;
  list_words(L, lua_absindex(L, -1), count);
  return CC_REDISPLAY;
}

static unsigned char on_tab(EditLine *el, int unused) {
  (void)unused;
  struct repl_editor *e = editor_of(el);
  const LineInfo *line = el_line(el);
  size_t length = (size_t)(line->cursor - line->buffer);
  if (strspn(line->buffer, " ") >= length) return el_insertstr(el, "  ") == 0 ? CC_REFRESH : CC_ERROR;
  int top = lua_gettop(e->L);
  ms_error err = {.instruction = -1};
  char *text = malloc(length + 1);
  if (!text || !lua_checkstack(e->L, 16)) return free(text), CC_ERROR;
  memcpy(text, line->buffer, length);
  text[length] = 0;
  lua_rawgeti(e->L, LUA_REGISTRYINDEX, e->complete);
  lua_pushlightuserdata(e->L, text);
  unsigned char what = script_try(e->L, 1, 2, &err) ? use_words(el, e->L) : CC_REFRESH_BEEP;
  lua_settop(e->L, top);
  free(text);
  return what;
}

int repl_with_text(lua_State *L) {
  const char *text = lua_touserdata(L, 1);
  lua_settop(L, 0);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushstring(L, text);
  lua_call(L, 1, LUA_MULTRET);
  return lua_gettop(L);
}

/* ---- Inputs of several lines ---- */

/* Moves the cursor to the column of another line of the input that it has now; false: there is none there. */
static bool move_up(EditLine *el) {
  const LineInfo *line = el_line(el);
  const char *start = line->cursor, *other;
  while (start > line->buffer && start[-1] != '\n') start--;
  if (start == line->buffer) return false;
  for (other = start - 1; other > line->buffer && other[-1] != '\n';) other--;
  ptrdiff_t column = line->cursor - start, most = start - 1 - other;
  const char *to = other + (column < most ? column : most);
  return el_cursor(el, -count_characters(to, line->cursor)) >= 0;
}
static bool move_down(EditLine *el) {
  const LineInfo *line = el_line(el);
  const char *start = line->cursor, *next = memchr(line->cursor, '\n', (size_t)(line->lastchar - line->cursor));
  if (!next) return false;
  while (start > line->buffer && start[-1] != '\n') start--;
  const char *end = memchr(next + 1, '\n', (size_t)(line->lastchar - next - 1));
  ptrdiff_t column = line->cursor - start, most = (end ? end : line->lastchar) - next - 1;
  const char *to = next + 1 + (column < most ? column : most);
  return el_cursor(el, count_characters(line->cursor, to)) >= 0;
}

/* Another line of the input, or where there is none, another input. */
static unsigned char on_up(EditLine *el, int unused) {
  (void)unused;
  if (!move_up(el)) el_push(el, "\020"); /* Ctrl-P */
  return CC_REFRESH;
}
static unsigned char on_down(EditLine *el, int unused) {
  (void)unused;
  if (!move_down(el)) el_push(el, "\016"); /* Ctrl-N */
  return CC_REFRESH;
}

/* ---- History ---- */

/* $XDG_STATE_HOME/msched/history, else under ~/.local/state; folders are made. Without a home there is no history. */
static void find_history(char *out, size_t size) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  int length = state && *state == '/' ? snprintf(out, size, "%s/msched/history", state)
               : home && *home == '/' ? snprintf(out, size, "%s/.local/state/msched/history", home)
                                      : 0;
  if (length <= 0 || (size_t)length >= size) {
    *out = 0;
    return;
  }
  for (char *slash = strchr(out + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(out, 0700); /* what cannot be made shows when the history is saved */
    *slash = '/';
  }
}

void repl_remember(struct repl_editor *e, const char *input) {
  assert(e && input);
  HistEvent event;
  if (!input[strspn(input, " \t\n")]) return;
  history(e->history, &event, H_ENTER, input);
  if (*e->file) history(e->history, &event, H_SAVE, e->file); /* at once: a session may be killed */
}

/* ---- The editor ---- */

struct repl_editor *repl_editor_new(lua_State *L, int complete) {
  assert(L);
  struct repl_editor *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  setlocale(LC_CTYPE, "");
  if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
  e->el = el_init("msched", stdin, stdout, stderr);
  e->history = history_init();
  if (!e->el || !e->history) {
    repl_editor_free(e);
    return NULL;
  }
  e->L = L;
  lua_rawgeti(L, LUA_REGISTRYINDEX, complete);
  lua_pushcclosure(L, repl_with_text, 1);
  e->complete = luaL_ref(L, LUA_REGISTRYINDEX);
  e->prompt = "> ";
  HistEvent event;
  history(e->history, &event, H_SETSIZE, KEPT_LINES);
  history(e->history, &event, H_SETUNIQUE, 1);
  find_history(e->file, sizeof e->file);
  if (*e->file) history(e->history, &event, H_LOAD, e->file);
  el_set(e->el, EL_CLIENTDATA, e);
  el_set(e->el, EL_PROMPT, prompt_of);
  el_set(e->el, EL_EDITOR, "emacs");
  el_set(e->el, EL_SIGNAL, 1);
  el_set(e->el, EL_HIST, history, e->history);
  el_set(e->el, EL_GETCFN, read_character);
  el_set(e->el, EL_ADDFN, "msched-complete", "Completes a name", on_tab);
  el_set(e->el, EL_BIND, "^I", "msched-complete", NULL);
  el_set(e->el, EL_ADDFN, "msched-up", "The line above, or the input before", on_up);
  el_set(e->el, EL_ADDFN, "msched-down", "The line below, or the next input", on_down);
  static const char *const ups[] = {"\033[A", "\033OA"}, *const downs[] = {"\033[B", "\033OB"};
  for (int i = 0; i < 2; i++) {
    el_set(e->el, EL_BIND, ups[i], "msched-up", NULL);
    el_set(e->el, EL_BIND, downs[i], "msched-down", NULL);
  }
  el_set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
  el_source(e->el, NULL); /* the user's ~/.editrc */
  return e;
}

void repl_editor_free(struct repl_editor *e) {
  if (!e) return;
  if (e->el) el_end(e->el);
  if (e->history) history_end(e->history);
  free(e);
}

enum repl_input repl_edit(struct repl_editor *e, const char *prompt, const char **line, size_t *length) {
  assert(e && prompt && line && length);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  script_resume();
  fflush(stdout);
  e->prompt = prompt;
  sigprocmask(SIG_BLOCK, &blocked, &e->waiting);
  el_set(e->el, EL_PREP_TERM, 1); /* before the prompt shows: what is typed then is for the editor */
  int count = 0;
  const char *got = el_gets(e->el, &count);
  sigprocmask(SIG_SETMASK, &e->waiting, NULL);
  if (script_interrupted()) return putchar('\n'), REPL_INTERRUPTED;
  if (!got || count <= 0) return putchar('\n'), REPL_END;
  if (got[count - 1] == '\n') count--;
  *line = got, *length = (size_t)count;
  return REPL_LINE;
}
