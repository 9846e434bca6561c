/* What the files share that bind schedules, their methods and traces. */
#ifndef MSCHED_BIND_SCHEDULE_H
#define MSCHED_BIND_SCHEDULE_H

#include "bind.h"

/* ---- bind_schedule.c ---- */

/* Counts what the schedule at `at` holds; a borrowed one is its owner's. */
void bind_charge_schedule(lua_State *L, int at);
/* As bind_check_schedule, for what memo.h keeps, which anything else that reads a schedule ends. */
struct vm_schedule *bind_check_asked(lua_State *L, int at);
/* Pushes a handle of a variable of the schedule at stack index `schedule`. */
void bind_push_handle(lua_State *L, int schedule, uint32_t variable);
/* The variable of the handle at `at`, which must belong to the schedule at stack index 1. */
uint32_t bind_check_handle(lua_State *L, int at);

/* Before an instruction, or undo or redo, of the schedule at `at`: notes its trace where changes are watched. */
void bind_note_change(lua_State *L, int at);

/* ---- bind_methods.c ---- */

/* Adds a method for each instruction and each query to the table on top of the stack. */
void bind_table_methods(lua_State *L);
void bind_push_value(lua_State *L, const struct vm_steps *steps, const struct vm_value *v);

#endif
