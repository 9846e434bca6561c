/* Reading ONNX into tables of Lua. */
#ifndef MSCHED_NET_READ_H
#define MSCHED_NET_READ_H

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

/* Pushes the table of a model's bytes; raises what is wrong. folder: of external data; NULL: there is none.
 * {ir_version, producer, opsets = {domain = version}, graph = {name, inputs, outputs, known, initializers, nodes},
 * functions}; a value is {name, type, shape}, an initializer {name, array}, a node {op, domain, name, inputs, outputs,
 * attributes}, a function {name, domain, inputs, outputs, attributes, defaults, opsets, nodes}. */
void net_push_model(lua_State *L, const uint8_t *bytes, size_t size, const char *folder);

/* Adds read_onnx and team_source to the module on the top of the stack. */
void net_bind(lua_State *L);

#endif
