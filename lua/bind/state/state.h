/* A Lua state's limits: what its allocator and its hook know. Internal to state.c and limited.c. */
#ifndef MSCHED_LUA_STATE_H
#define MSCHED_LUA_STATE_H

#include "cells.h"
#include "lua/bind/bind.h"
#include "memo.h"

#include <string.h>
#include <time.h>

/* The clock of a call, on the stack of what starts it. One of the steady clock counts all; one of the call's own counts
 * what the call takes: not while its process is stopped, nor while what it does waits for a processor. */
struct script_clock {
  struct script_clock *outer; /* of the call around it; NULL: none */
  double seconds;             /* that the call has */
  bool own, of_policy;        /* of_policy: another option sets it */
  double began, next;         /* by script_now; it is not over before `next` */
  double processor;           /* own: seconds of this thread, when it began */
  double waits_until;         /* own: by script_now, and as long once more; INFINITY: nothing can wait */
  bool waited;                /* the first of these is over */
  bool follows;               /* own: another thread adds up what the call takes, where there is one for it: */
  bool followed;              /* there is */
  double taken;               /* seconds, by that thread */
  volatile bool over;
};

struct script { /* found through the allocator's data */
  struct script_limits limits;
  size_t used;                /* by Lua, and by what C holds for it */
  size_t grown;               /* of what C holds: since the last collection that it was the reason for */
  struct script_clock *clock; /* of the innermost call that has one; NULL: none runs */
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
void *script_allocate(void *script, void *at, size_t old_size, size_t size); /* of a state of ours */
struct script *script_of(lua_State *L);
void sandbox_tell_left_out(const struct script *s); /* of what was printed; sandbox.c */
int sandbox_print_aside(lua_State *L);              /* print: to standard error, so much at most */
/* Starts a clock inside of that which runs; 0 seconds: none. What a sandbox runs cannot wait. (clock.c) */
void script_start_clock(struct script *s, struct script_clock *c, double seconds, bool own);
void script_stop_clock(struct script *s, struct script_clock *c);
/* The own clocks around that of a call that has begun stand still; and did so since, where `outer` was there. */
void script_pause_outer(struct script *s, struct script_clock *c);
void script_resume_outer(struct script *s, struct script_clock *c, struct script_clock *outer);
struct script_clock *script_late_clock(const struct script *s); /* the innermost that is over; NULL: none is */
bool script_is_late(const struct script *s);
bool script_must_stop(const struct script *s); /* late, or interrupted */
void script_stop_here(lua_State *L);           /* raises, where it must */
double script_clock_seconds(clockid_t clock);  /* of this thread or process, say */
double script_now(void);                       /* seconds of a steady clock */
int64_t script_now_ns(void);                   /* its nanoseconds; async-signal-safe */
/* While a call has a clock, loops in C look at a flag of the state's own, which interrupts set too, and the end of the
 * clock. armed: false where they do already, or too many states do. */
bool script_arm(struct script *s);
void script_disarm(struct script *s);
void script_follow_clock(struct script *s); /* the state's clock is another */
/* Sets a flag at a time by script_now, or when an own clock (NULL: none) is over, what its call takes being added up
 * here; and wakes this thread where it waits in the system then. NULL: there is no thread for it, and the hook alone
 * sees that it is late. (watch.c) */
struct script_alarm *script_alarm_new(double at, struct script_clock *own, volatile int *flag);
/* Whether it has set the flag or not. What it followed before is not looked at any more. */
void script_alarm_move(struct script_alarm *alarm, double at, struct script_clock *own);
void script_alarm_free(struct script_alarm *alarm);
/* confine.c: puts a function in the place of one of a library, which becomes its upvalue 1. */
void script_replace(lua_State *L, const char *table, const char *name, lua_CFunction with);
/* Calls that upvalue, in C and without upvalues, in the same frame: its errors name it, and where it was called. */
int script_pass_on(lua_State *L);
void ends_open(lua_State *L);         /* replaces os.exit and debug.sethook; ends.c */
void commands_open(lua_State *L);     /* replaces os.execute and io.popen; commands.c */
void confine_open(lua_State *L);      /* replaces what could break C: load, debug, os.setlocale; confine.c */
void script_open_pcall(lua_State *L); /* replaces pcall and xpcall; limited.c */
/* Pushes the place in the user's file that the call comes from, as "file:line: ", or "" if there is none. */
int script_where(lua_State *L);
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
