/* A Lua state's limits: what its allocator and its hook know. Internal to state.c and limited.c. */
#ifndef MSCHED_LUA_STATE_H
#define MSCHED_LUA_STATE_H

#include "cells.h"
#include "lua/bind/bind.h"
#include "memo.h"

#include <string.h>

struct script { /* found through the allocator's data */
  struct script_limits limits;
  size_t used;                /* by Lua, and by what C holds for it */
  size_t grown;               /* of what C holds: since the last collection that it was the reason for */
  double deadline;            /* of the call that runs; 0: none */
  double allowed;             /* seconds, which that deadline is the end of */
  size_t printed;             /* bytes, by sandbox_print_aside */
  uint32_t looks;             /* of script_look */
  double unseen;              /* steps of library functions since they looked whether they are to stop */
  uint32_t calls;             /* that run: of parts, policies and models */
  bool closing;               /* finalizers run, and nothing else */
  bool armed;                 /* what runs has a clock: loops look at `stop`, else at what an interrupt sets */
  struct script_alarm *alarm; /* sets `stop`; NULL: nothing does but an interrupt */
  volatile int stop;          /* no longer 0: an interrupt, or the clock has run out */
  struct cells cells;
  struct memo *memo; /* of a state that postprocesses; NULL: none */
};
struct script *script_of(lua_State *L);
void sandbox_tell_left_out(const struct script *s); /* of what was printed; sandbox.c */
int sandbox_print_aside(lua_State *L);              /* print: to standard error, so much at most */
bool script_is_late(const struct script *s);
bool script_must_stop(const struct script *s); /* late, or interrupted */
void script_stop_here(lua_State *L);           /* raises, where it must */
double script_now(void);                       /* seconds of a steady clock */
/* While a call has a clock, loops in C look at a flag of the state's own, which interrupts set too, and the end of the
 * clock. armed: false where they do already, or too many states do. */
bool script_arm(struct script *s);
void script_disarm(struct script *s);
void script_follow_clock(struct script *s); /* the state's deadline is another */
/* Sets a flag at a time by script_now, and wakes this thread where it waits in the system then. NULL: there is no
 * thread for it, and the hook alone sees that it is late. (watch.c) */
struct script_alarm *script_alarm_new(double at, volatile int *flag);
void script_alarm_move(struct script_alarm *alarm, double at); /* whether it has set the flag or not */
void script_alarm_free(struct script_alarm *alarm);
/* confine.c: puts a function in the place of one of a library, which becomes its upvalue 1. */
void script_replace(lua_State *L, const char *table, const char *name, lua_CFunction with);
/* Calls that upvalue, in C and without upvalues, in the same frame: its errors name it, and where it was called. */
int script_pass_on(lua_State *L);
void ends_open(lua_State *L);         /* replaces os.exit and debug.sethook; ends.c */
void commands_open(lua_State *L);     /* replaces os.execute and io.popen; commands.c */
void confine_open(lua_State *L);      /* replaces what could break C: load, debug, os.setlocale; confine.c */
void script_open_pcall(lua_State *L); /* replaces pcall and xpcall; limited.c */
/* The hook, called each SCRIPT_HOOK_PERIOD instructions. */
enum { SCRIPT_HOOK_PERIOD = 2000 };
void script_watch(lua_State *L, lua_Debug *unused);
extern const char script_no_memory[];
/* Names of chunks of our own files begin so. */
#define SCRIPT_OWN "=msched/"
static inline bool script_is_own(const lua_Debug *at) {
  return !strncmp(at->source, SCRIPT_OWN, sizeof SCRIPT_OWN - 1);
}

#endif
