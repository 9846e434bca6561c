/* msched help --lua: annotations for the Lua language server. The instruction and query tables give the methods of
 * schedules as lines of the form of docs.lua, which makes annotations of them and of its own. */
#include "lua/bind/bind.h"
#include "lua/cli/cli.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* As LuaLS writes them. Drawn numbers, which are handles, stand where an input is an integer. */
static const char *type_of(const struct vm_param *p, bool input) {
  switch ((enum vm_type)p->type) {
  case VM_T_BLOCK:
  case VM_T_LOOP:
  case VM_T_LOCATION:
  case VM_T_PLACE: return "msched.handle";
  case VM_T_NEST: return "msched.handle|msched.handle[]";
  case VM_T_INT: return input ? "integer|msched.handle" : "integer";
  case VM_T_REAL: return "number";
  case VM_T_BOOL:
  case VM_T_BIT: return "boolean";
  case VM_T_STRING: return "string";
  case VM_T_VALUE: return "any";
  case VM_T_MAP: return "string";
  case VM_T_CONDITION: return "string|function";
  }
  assert(!"a type without a name in Lua");
  return "any";
}

static bool may_lack(const struct vm_param *p) { return !p->repeat && (p->standard || p->optional); }

static void add_param(luaL_Buffer *b, const struct vm_param *p, bool input) {
  luaL_addlstring(b, p->name, p->name_length);
  luaL_addstring(b, may_lack(p) ? "?: " : ": ");
  bool list = p->list || p->repeat;
  luaL_addstring(b, list ? "(" : "");
  luaL_addstring(b, type_of(p, input));
  luaL_addstring(b, p->repeat && p->optional ? "|lightuserdata" : ""); /* ms.rest */
  luaL_addstring(b, list ? ")[]" : "");
}

/* Options are arguments in their order, or, with `named`, fields of a last table; those of a draw have its decision. */
static void add_instruction(luaL_Buffer *b, enum vm_kind kind, bool named) {
  const struct vm_kind_info *info = vm_kind_info(kind);
  const struct vm_signature *sig = vm_signature_of(kind);
  luaL_addstring(b, "schedule:");
  luaL_addlstring(b, info->method, sig->method_length);
  luaL_addchar(b, '(');
  const char *before = "";
  for (int pass = 0; pass < 1 + named; pass++) {
    if (pass) luaL_addstring(b, before), luaL_addstring(b, "options: {"), before = "";
    for (int i = 0; i < sig->inputs + sig->attrs; i++) {
      const struct vm_param *p = &sig->at[sig->order[i]];
      if (named && may_lack(p) != (pass == 1)) continue;
      luaL_addstring(b, before), before = ", ";
      add_param(b, p, sig->order[i] < sig->inputs);
    }
    if (pass && info->effect == VM_EFFECT_draw)
      luaL_addstring(b, before), luaL_addstring(b, "decision?: integer|integer[]");
    if (pass) luaL_addchar(b, '}');
  }
  luaL_addchar(b, ')');
  if (sig->outputs) luaL_addstring(b, sig->output.repeat ? ": msched.handle ..." : ": msched.handle");
  luaL_addstring(b, " | "), luaL_addstring(b, info->doc), luaL_addchar(b, '\n');
}

static bool has_options(enum vm_kind kind) {
  const struct vm_signature *sig = vm_signature_of(kind);
  for (int i = 0; i < sig->inputs + sig->attrs; i++)
    if (may_lack(&sig->at[i])) return true;
  return vm_kind_info(kind)->effect == VM_EFFECT_draw;
}

/* The table's answers are words: what they begin with is a type. */
static const char *answer_type(const char *answer) {
  static const struct {
    const char *words, *type;
  } known[] = {{"a list of strings", "string[]"},
               {"a list of integers", "integer[]"},
               {"a list of {", "table[]"},
               {"a list of \"", "string[]"},
               {"a list, ", "integer[][]"},
               {"a string", "string"},
               {"a boolean", "boolean"},
               {"an integer", "integer"},
               {"a value", "any"},
               {"a table", "table"},
               {"\"", "string"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strncmp(answer, known[i].words, strlen(known[i].words))) return known[i].type;
  assert(!"an answer without a type in Lua");
  return "any";
}

/* Arguments are name:type, and no more. */
static void add_query(luaL_Buffer *b, const struct vm_query_info *info) {
  luaL_addstring(b, "schedule:"), luaL_addstring(b, info->name), luaL_addchar(b, '(');
  size_t length;
  for (const char *arg = info->args; *arg; arg += length, arg += *arg == ' ') {
    length = strcspn(arg, " ");
    size_t name = strcspn(arg, ":");
    const char *type = arg + name + 1;
    luaL_addstring(b, arg == info->args ? "" : ", ");
    luaL_addlstring(b, arg, name);
    bool text = !strncmp(type, "string", 6), number = !strncmp(type, "int", 3);
    luaL_addstring(b, text ? ": string" : number ? ": integer" : ": msched.handle");
  }
  luaL_addstring(b, "): "), luaL_addstring(b, answer_type(info->answer));
  luaL_addstring(b, " | "), luaL_addstring(b, info->doc), luaL_addchar(b, '\n');
}

static int print_annotations(lua_State *L) {
  script_push_own(L, "lua.cli.help.docs");
  lua_getfield(L, -1, "annotations");
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  for (int k = 0; k < VM_KIND_COUNT; k++) {
    add_instruction(&b, (enum vm_kind)k, false);
    if (has_options((enum vm_kind)k)) add_instruction(&b, (enum vm_kind)k, true);
  }
  for (int q = 0; q < VM_QUERY_COUNT; q++) add_query(&b, vm_query_info((enum vm_query)q));
  luaL_pushresult(&b);
  lua_call(L, 1, 1);
  fputs(lua_tostring(L, -1), stdout);
  return 0;
}

static int print_member(lua_State *L) { /* (name): whether it is known */
  script_push_own(L, "lua.cli.help.docs");
  lua_getfield(L, -1, "explain");
  lua_pushvalue(L, 1);
  lua_getglobal(L, "print");
  lua_call(L, 2, 1);
  return 1;
}

bool cli_explain_member(const char *name) {
  assert(name);
  ms_error err = {.instruction = -1};
  lua_State *L = script_new(NULL, &err);
  if (!L) return false;
  lua_pushcfunction(L, print_member);
  lua_pushstring(L, name);
  bool known = script_call(L, 1, 1, &err) && lua_toboolean(L, -1);
  script_close(L);
  return known;
}

int cli_annotate(void) {
  ms_error err = {.instruction = -1};
  lua_State *L = script_new(NULL, &err);
  if (!L) return cli_report(&err, NULL, false);
  lua_pushcfunction(L, print_annotations);
  bool done = script_call(L, 0, 0, &err);
  script_close(L);
  return done ? CLI_DONE : cli_report(&err, NULL, false);
}
