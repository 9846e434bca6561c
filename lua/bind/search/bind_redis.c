/* Redis in Lua: what a fleet's workers and tuners meet at. Commands go out, replies come back, each within its time and
 * within bounds: what answers may be anything. hiredis writes commands and reads replies; waiting is ours. */
#define _GNU_SOURCE
#include "bind_search.h"
#include "lua/bind/bind.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BOUND_REDIS "msched.redis"

enum {
  MOST_COMMANDS = 4096,    /* of a call */
  MOST_WORDS = 4096,       /* of a command */
  MOST_SENT = 64 << 20,    /* bytes of a call */
  MOST_REPLY = 16 << 20,   /* bytes of a reply: what is longer stays unread */
  MOST_ELEMENTS = 1 << 16, /* of a list in one */
  SLICE_MS = 50,           /* how often an interrupt is looked for */
  LONGEST_ERROR = 400      /* bytes of an error's text that are shown */
};

#if HIREDIS_MAJOR < 1
typedef int list_count;
#else
typedef size_t list_count;
#endif

struct connection {
  int fd; /* -1: closed */
  redisReader *reader;
  redisReplyObjectFunctions functions; /* hiredis's own, but that lists have bounds; and what makes a list: */
  void *(*list)(const redisReadTask *task, list_count elements);
  size_t fed; /* bytes read of the reply that is not whole yet */
  redisReply *reply;
  char *out; /* what is sent, being put together */
  size_t out_bytes, out_room;
  bool too_many; /* a list had more elements than may be */
};

static struct connection *check_redis(lua_State *L) { return luaL_checkudata(L, 1, BOUND_REDIS); }

static void forget_reply(struct connection *c) {
  if (c->reply) freeReplyObject(c->reply);
  c->reply = NULL;
}

static void shut(struct connection *c) {
  forget_reply(c);
  if (c->reader) redisReaderFree(c->reader);
  if (c->fd >= 0) close(c->fd);
  free(c->out);
  *c = (struct connection){.fd = -1};
}

static int collect(lua_State *L) {
  shut(check_redis(L));
  return 0;
}

/* ---- Opening ---- */

/* Waits for the descriptor in slices. 1: it is ready, 0: time is up, -1: the user interrupts, where that counts. */
static int wait_for(int fd, short events, double until, bool patient) {
  for (;;) {
    double left = until - vm_seconds();
    struct pollfd p = {.fd = fd, .events = events};
    if (!patient && script_interrupted()) return -1;
    if (left <= 0) return 0;
    int slice = left < 1e-3 * SLICE_MS ? (int)(1e3 * left) + 1 : SLICE_MS;
    if (poll(&p, 1, slice) > 0) return 1;
  }
}

/* 0: connected; else the number of an error. */
static int reach(int fd, const struct addrinfo *a, double until, bool patient) {
  int error = 0;
  socklen_t size = sizeof error;
  if (!connect(fd, a->ai_addr, a->ai_addrlen)) return 0;
  if (errno != EINPROGRESS) return errno;
  int ready = wait_for(fd, POLLOUT, until, patient);
  if (ready <= 0) return ready ? EINTR : ETIMEDOUT;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? errno : error;
}

static int open_socket(const char *host, const char *port, double until, bool patient, int *out, const char **why) {
  const struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  struct addrinfo *found = NULL;
  int error = getaddrinfo(host, port, &wanted, &found), on = 1;
  if (error) return *why = gai_strerror(error), -1;
  error = ECONNREFUSED;
  for (const struct addrinfo *a = found; a; a = a->ai_next) {
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
    error = fd < 0 ? errno : reach(fd, a, until, patient);
    if (!error) {
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
      *out = fd;
      break;
    }
    if (fd >= 0) close(fd);
  }
  freeaddrinfo(found);
  return error ? (*why = strerror(error), -1) : 0;
}

static void *bounded_list(const redisReadTask *task, list_count elements) {
  struct connection *c = task->privdata;
  if (elements <= MOST_ELEMENTS) return c->list(task, elements);
  c->too_many = true;
  return NULL;
}

/* redis(host, port, seconds[, patient]): a connection; nil and why there is none. patient: as ask has it */
static int new_redis(lua_State *L) {
  const char *host = bind_check_text(L, 1), *port = bind_check_text(L, 2), *why = "no memory";
  double until = vm_seconds() + luaL_checknumber(L, 3);
  struct connection *c = lua_newuserdatauv(L, sizeof *c, 0);
  *c = (struct connection){.fd = -1};
  luaL_setmetatable(L, BOUND_REDIS);
  c->reader = redisReaderCreate();
  if (c->reader && !open_socket(host, port, until, lua_toboolean(L, 4), &c->fd, &why)) {
    c->functions = *c->reader->fn;
    c->list = c->functions.createArray;
    c->functions.createArray = bounded_list;
    c->reader->fn = &c->functions;
    c->reader->privdata = c; /* as redisReaderSetPrivdata, which casts it to an int */
    return 1;
  }
  shut(c);
  lua_pushnil(L);
  lua_pushstring(L, why);
  return 2;
}

/* ---- Commands ---- */

static int fails(lua_State *L, struct connection *c, const char *kind, const char *why) {
  shut(c);
  lua_pushnil(L);
  lua_pushstring(L, kind);
  lua_pushstring(L, why);
  return 3;
}

/* Adds the command of the list on the top of the stack to what is sent; words are strings and integers. */
static void add_command(lua_State *L, struct connection *c) {
  luaL_checktype(L, -1, LUA_TTABLE);
  size_t count = lua_rawlen(L, -1), lengths[64], *sizes = lengths;
  const char *few[64], **words = few;
  int list = lua_gettop(L);
  if (count < 1 || count > MOST_WORDS) luaL_error(L, "a command of %d words", (int)count);
  luaL_checkstack(L, (int)count + 4, "a command of too many words");
  if (count > 64) {
    words = lua_newuserdatauv(L, count * sizeof *words, 0);
    sizes = lua_newuserdatauv(L, count * sizeof *sizes, 0);
  }
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, list, (lua_Integer)i + 1);
    if (lua_type(L, -1) != LUA_TSTRING && !lua_isinteger(L, -1))
      luaL_error(L, "word %d of a command is a %s", (int)i + 1, luaL_typename(L, -1));
    words[i] = lua_tolstring(L, -1, &sizes[i]);
  }
  char *text = NULL;
  int length = redisFormatCommandArgv(&text, (int)count, words, sizes);
  bool fits = length >= 0 && c->out_bytes + (size_t)length <= MOST_SENT;
  if (fits && c->out_bytes + (size_t)length > c->out_room) {
    size_t room = 2 * (c->out_bytes + (size_t)length);
    char *more = realloc(c->out, room);
    if (more) c->out = more, c->out_room = room;
    fits = more != NULL;
  }
  assert(!fits || c->out_bytes + (size_t)length <= c->out_room);
  if (fits) memcpy(c->out + c->out_bytes, text, (size_t)length), c->out_bytes += (size_t)length;
  if (length >= 0) redisFreeCommand(text);
  lua_settop(L, list);
  if (!fits) luaL_error(L, "commands of more than %d MiB are not sent", MOST_SENT >> 20);
}

/* Sends what goes, reads what is there. NULL: went on; else why it cannot, and *kind. */
static const char *go_on(struct connection *c, size_t *sent, double until, bool patient, const char **kind) {
  static char buffer[1 << 16]; /* of one thread: states that open connections are the program's own */
  assert(c->fd >= 0 && *sent <= c->out_bytes);
  short events = (short)(POLLIN | (*sent < c->out_bytes ? POLLOUT : 0));
  int ready = wait_for(c->fd, events, until, patient);
  *kind = ready < 0 ? "interrupted" : "lost";
  if (ready <= 0) return ready < 0 ? "interrupted" : "it does not answer in time";
  if (*sent < c->out_bytes) {
    ssize_t n = send(c->fd, c->out + *sent, c->out_bytes - *sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return strerror(errno);
    if (n > 0) *sent += (size_t)n;
  }
  ssize_t n = recv(c->fd, buffer, sizeof buffer, 0);
  if (n == 0) return "the connection was closed";
  if (n < 0) return errno == EAGAIN || errno == EINTR ? NULL : strerror(errno);
  c->fed += (size_t)n;
  *kind = "nonsense";
  return redisReaderFeed(c->reader, buffer, (size_t)n) == REDIS_OK ? NULL : c->reader->errstr;
}

/* Pushes a reply: a string, an integer, a list, false for nothing, {error =} for a refusal. */
static void push_reply(lua_State *L, const redisReply *r) {
  luaL_checkstack(L, 8, "a reply that is nested too deep");
  if (r->type == REDIS_REPLY_INTEGER) {
    lua_pushinteger(L, r->integer);
  } else if (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS) {
    lua_pushlstring(L, r->str, (size_t)r->len);
  } else if (r->type == REDIS_REPLY_ERROR) {
    lua_createtable(L, 0, 1);
    lua_pushlstring(L, r->str, (size_t)r->len < LONGEST_ERROR ? (size_t)r->len : LONGEST_ERROR);
    lua_setfield(L, -2, "error");
  } else if (r->type == REDIS_REPLY_ARRAY) {
    lua_createtable(L, (int)r->elements, 0);
    for (size_t i = 0; i < r->elements; i++) {
      push_reply(L, r->element[i]);
      lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
  } else {
    lua_pushboolean(L, false);
  }
}

/* The next reply that is whole. 1: it is in c->reply, 0: not yet, -1: *why says what is wrong. */
static int take_reply(struct connection *c, const char **why) {
  void *reply = NULL;
  forget_reply(c);
  if (redisReaderGetReply(c->reader, &reply) != REDIS_OK) {
    *why = c->too_many ? "a list of too many elements" : c->reader->errstr;
    return -1;
  }
  c->reply = reply;
  if (reply) return c->fed = c->reader->len - c->reader->pos, 1;
  *why = "a reply of more than 16 MiB";
  return c->fed > MOST_REPLY ? -1 : 0;
}

/* redis:ask(seconds, {command…}[, patient]): a list of their replies, as push_reply has them. nil, kind and why:
 * `lost`, nothing can be known of what came of them, `nonsense`, `large`, or `interrupted`; the connection is closed.
 * patient: an interrupt is none. */
static int ask(lua_State *L) {
  struct connection *c = check_redis(L);
  double until = vm_seconds() + luaL_checknumber(L, 2);
  bool patient = lua_toboolean(L, 4);
  luaL_checktype(L, 3, LUA_TTABLE);
  size_t count = lua_rawlen(L, 3), got = 0, sent = 0;
  const char *why = NULL, *kind = "nonsense";
  luaL_argcheck(L, count >= 1 && count <= MOST_COMMANDS, 3, "too many commands");
  if (c->fd < 0) return fails(L, c, "lost", "the connection is closed");
  c->out_bytes = 0;
  for (size_t i = 0; i < count; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, 3, (lua_Integer)i + 1);
    add_command(L, c);
  }
  lua_createtable(L, (int)count, 0);
  while (got < count) {
    int taken = take_reply(c, &why);
    if (taken < 0)
      return fails(L, c, c->fed > MOST_REPLY ? "large" : "nonsense",
                   lua_pushstring(L, why)); /* it is the reader's, which is freed */
    if (taken > 0) {
      push_reply(L, c->reply);
      lua_rawseti(L, -2, (lua_Integer)++got);
    } else if ((why = go_on(c, &sent, until, patient, &kind))) {
      return fails(L, c, kind, lua_pushstring(L, why));
    }
  }
  forget_reply(c);
  return 1;
}

/* redis:is_open(): whether nothing has ended it yet */
static int is_open(lua_State *L) {
  lua_pushboolean(L, check_redis(L)->fd >= 0);
  return 1;
}

void bind_redis(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"ask", ask}, {"is_open", is_open}, {"close", collect}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", collect}, {NULL, NULL}};
  bind_type(L, BOUND_REDIS, methods, meta);
  lua_pushcfunction(L, new_redis);
  lua_setfield(L, -2, "redis");
}
