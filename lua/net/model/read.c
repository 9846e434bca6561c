/* A model of ONNX as tables of Lua: what stands in the file, with nothing known of operators. */
#include "lua/net/model/read.h"

#include "lua/bind/bind.h"
#include "lua/net/model/model.h"
#include "shipped_team.h" /* the text of jit/team.h and jit/team.c, made by the build */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Owned by a userdata while Lua may raise. */
struct source {
  Onnx__ModelProto *model;
  uint8_t *bytes;
  FILE *file;
};

static int collect(lua_State *L) {
  struct source *s = lua_touserdata(L, 1);
  net_free_model(s->model);
  free(s->bytes);
  if (s->file) fclose(s->file);
  *s = (struct source){0};
  return 0;
}

static void set_text(lua_State *L, const char *key, const char *text) {
  lua_pushstring(L, text ? text : "");
  lua_setfield(L, -2, key);
}

static void push_strings(lua_State *L, char **list, size_t count) {
  lua_createtable(L, count > INT_MAX ? 0 : (int)count, 0);
  for (size_t i = 0; i < count; i++) {
    lua_pushstring(L, list[i] ? list[i] : "");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* ---- Tensors and values ---- */

static void push_tensor(lua_State *L, const Onnx__TensorProto *proto, const char *folder, bool may_be_packed) {
  struct net_tensor tensor;
  ms_error err = {.instruction = -1};
  char name[24];
  if (!net_measure_tensor(proto, folder, &tensor, &err)) bind_refuse(L, "%s", err.message);
  if (tensor.packed && !may_be_packed)
    bind_refuse(L, "tensor %s: its elements are of %s, which only constants of the outermost graph may be", tensor.name,
                net_type_name(proto->data_type, name));
  struct bound_array *array = bind_new_array(L, tensor.shape, tensor.rank, tensor.type);
  assert(array->bytes == tensor.bytes);
  if (!net_read_tensor(&tensor, folder, array->data, &err)) bind_refuse(L, "%s", err.message);
}

static void push_shape(lua_State *L, const Onnx__TensorShapeProto *shape) {
  lua_createtable(L, 4, 0);
  for (size_t d = 0; d < shape->n_dim; d++) {
    const Onnx__TensorShapeProto__Dimension *dim = shape->dim[d];
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
      lua_pushinteger(L, dim->dim_value);
    else if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
      lua_pushstring(L, dim->dim_param ? dim->dim_param : "");
    else
      lua_pushliteral(L, "");
    lua_rawseti(L, -2, (lua_Integer)d + 1);
  }
}

/* {name, type [, shape]}: a type that is none of tensors is named as ONNX calls it. */
static void push_value(lua_State *L, const Onnx__ValueInfoProto *value) {
  static const char *const others[] = {[ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE] = "a sequence",
                                       [ONNX__TYPE_PROTO__VALUE_MAP_TYPE] = "a map",
                                       [ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE] = "an optional value",
                                       [ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE] = "a sparse tensor"};
  char name[24];
  const Onnx__TypeProto *type = value->type;
  lua_createtable(L, 0, 3);
  set_text(L, "name", value->name);
  if (!type || type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET) return;
  if (type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
    bool known = (size_t)type->value_case < sizeof others / sizeof *others && others[type->value_case];
    set_text(L, "other", known ? others[type->value_case] : "of an unknown type");
    return;
  }
  if (!type->tensor_type) return;
  set_text(L, "type", net_type_name(type->tensor_type->elem_type, name));
  if (!type->tensor_type->shape) return;
  push_shape(L, type->tensor_type->shape);
  lua_setfield(L, -2, "shape");
}

static void push_values(lua_State *L, Onnx__ValueInfoProto **list, size_t count) {
  lua_createtable(L, count > INT_MAX ? 0 : (int)count, 0);
  for (size_t i = 0; i < count; i++) {
    push_value(L, list[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* ---- Nodes ---- */

static void push_graph(lua_State *L, const Onnx__GraphProto *graph, const char *folder, bool is_outermost);

static void push_floats(lua_State *L, const Onnx__AttributeProto *a) {
  lua_newtable(L);
  for (size_t i = 0; i < a->n_floats; i++) lua_pushnumber(L, a->floats[i]), lua_rawseti(L, -2, (lua_Integer)i + 1);
}
static void push_ints(lua_State *L, const Onnx__AttributeProto *a) {
  lua_newtable(L);
  for (size_t i = 0; i < a->n_ints; i++) lua_pushinteger(L, a->ints[i]), lua_rawseti(L, -2, (lua_Integer)i + 1);
}
static void push_texts(lua_State *L, const Onnx__AttributeProto *a) {
  lua_newtable(L);
  for (size_t i = 0; i < a->n_strings; i++) {
    lua_pushlstring(L, (const char *)a->strings[i].data, a->strings[i].len);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}
static void push_tensors(lua_State *L, const Onnx__AttributeProto *a, const char *folder) {
  lua_newtable(L);
  for (size_t i = 0; i < a->n_tensors; i++)
    push_tensor(L, a->tensors[i], folder, false), lua_rawseti(L, -2, (lua_Integer)i + 1);
}
static void push_graphs(lua_State *L, const Onnx__AttributeProto *a, const char *folder) {
  lua_newtable(L);
  for (size_t i = 0; i < a->n_graphs; i++)
    push_graph(L, a->graphs[i], folder, false), lua_rawseti(L, -2, (lua_Integer)i + 1);
}

/* The type of an attribute, by what it has where it does not say. */
static int type_of(const Onnx__AttributeProto *a) {
  if (a->has_type && a->type) return a->type;
  if (a->has_f) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
  if (a->has_i) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  if (a->has_s) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
  if (a->t) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
  if (a->g) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
  if (a->n_floats) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
  if (a->n_strings) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
  return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
}

/* A number, a text, an array, a graph, or a list of these; of the kinds that nothing reads, a table that names the
 * kind; and {reference = name} for what a function's node takes from the node in whose place the function stands. */
static void push_attribute(lua_State *L, const Onnx__AttributeProto *a, const char *folder) {
  if (a->ref_attr_name && *a->ref_attr_name) {
    lua_createtable(L, 0, 1);
    set_text(L, "reference", a->ref_attr_name);
    return;
  }
  switch (type_of(a)) {
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT: lua_pushnumber(L, a->f); return;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT: lua_pushinteger(L, a->i); return;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING: lua_pushlstring(L, (const char *)a->s.data, a->s.len); return;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS: push_floats(L, a); return;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS: push_ints(L, a); return;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS: push_texts(L, a); return;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSORS: push_tensors(L, a, folder); return;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS: push_graphs(L, a, folder); return;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
    if (a->t) return push_tensor(L, a->t, folder, false);
    break;
  case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH:
    if (a->g) return push_graph(L, a->g, folder, false);
    break;
  default: break;
  }
  lua_createtable(L, 0, 1);
  lua_pushinteger(L, type_of(a));
  lua_setfield(L, -2, "unread");
}

static void push_node(lua_State *L, const Onnx__NodeProto *node, const char *folder) {
  lua_createtable(L, 0, 6);
  set_text(L, "op", node->op_type);
  set_text(L, "domain", node->domain && strcmp(node->domain, "ai.onnx") != 0 ? node->domain : "");
  set_text(L, "name", node->name);
  push_strings(L, node->input, node->n_input);
  lua_setfield(L, -2, "inputs");
  push_strings(L, node->output, node->n_output);
  lua_setfield(L, -2, "outputs");
  lua_newtable(L);
  for (size_t i = 0; i < node->n_attribute; i++) {
    lua_pushstring(L, node->attribute[i]->name ? node->attribute[i]->name : "");
    push_attribute(L, node->attribute[i], folder);
    lua_rawset(L, -3);
  }
  lua_setfield(L, -2, "attributes");
}

static void push_nodes(lua_State *L, Onnx__NodeProto **nodes, size_t count, const char *folder) {
  lua_createtable(L, count > INT_MAX ? 0 : (int)count, 0);
  for (size_t i = 0; i < count; i++) push_node(L, nodes[i], folder), lua_rawseti(L, -2, (lua_Integer)i + 1);
}

/* {name, array [, packed]}; packed: the type of 4 bits that its bytes are of. */
static void push_initializers(lua_State *L, const Onnx__GraphProto *graph, const char *folder, bool is_outermost) {
  char name[24];
  lua_newtable(L);
  for (size_t i = 0; i < graph->n_initializer; i++) {
    const Onnx__TensorProto *proto = graph->initializer[i];
    lua_createtable(L, 0, 3);
    set_text(L, "name", proto->name);
    if (net_is_packed(proto->data_type)) set_text(L, "packed", net_type_name(proto->data_type, name));
    push_tensor(L, proto, folder, is_outermost);
    lua_setfield(L, -2, "array");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

static void push_graph(lua_State *L, const Onnx__GraphProto *graph, const char *folder, bool is_outermost) {
  luaL_checkstack(L, 20, "graphs in graphs");
  if (graph->n_sparse_initializer)
    bind_refuse(L, "graph %s: it has sparse initializers, which are not read", graph->name ? graph->name : "");
  lua_createtable(L, 0, 6);
  set_text(L, "name", graph->name);
  push_values(L, graph->input, graph->n_input);
  lua_setfield(L, -2, "inputs");
  push_values(L, graph->output, graph->n_output);
  lua_setfield(L, -2, "outputs");
  push_values(L, graph->value_info, graph->n_value_info);
  lua_setfield(L, -2, "known");
  push_initializers(L, graph, folder, is_outermost);
  lua_setfield(L, -2, "initializers");
  push_nodes(L, graph->node, graph->n_node, folder);
  lua_setfield(L, -2, "nodes");
}

/* ---- The model ---- */

static void push_opsets(lua_State *L, Onnx__OperatorSetIdProto **list, size_t count) {
  lua_newtable(L);
  for (size_t i = 0; i < count; i++) {
    const char *domain = list[i]->domain ? list[i]->domain : "";
    lua_pushinteger(L, list[i]->version);
    lua_setfield(L, -2, strcmp(domain, "ai.onnx") ? domain : "");
  }
}

/* ---- Functions of the model's own ---- */

/* FunctionProto.attribute_proto: what attributes are where a node does not give them. Older descriptions of the format
 * do not have it, and keep its bytes as they are. */
enum { FUNCTION_DEFAULTS = 11 };

static int free_attribute(lua_State *L) {
  Onnx__AttributeProto **held = lua_touserdata(L, 1);
  if (*held) onnx__attribute_proto__free_unpacked(*held, NULL);
  *held = NULL;
  return 0;
}

/* Sets an attribute by its name in the table on the top. */
static void set_attribute(lua_State *L, const Onnx__AttributeProto *a, const char *folder) {
  lua_pushstring(L, a->name ? a->name : "");
  push_attribute(L, a, folder);
  lua_rawset(L, -3);
}

/* The same from bytes that begin with how many there are. */
static void set_packed_attribute(lua_State *L, const ProtobufCMessageUnknownField *field, const char *folder) {
  ms_error err = {.instruction = -1};
  size_t at = 0;
  while (at < field->len && field->data[at] & 0x80) at++;
  if (++at > field->len) return;
  const uint8_t *bytes = field->data + at;
  if (!net_check_wire(&onnx__attribute_proto__descriptor, bytes, field->len - at, &err))
    bind_refuse(L, "%s", err.message);
  Onnx__AttributeProto **held = bind_hold(L, sizeof *held, "msched.onnx.attribute", free_attribute);
  *held = onnx__attribute_proto__unpack(NULL, field->len - at, bytes);
  if (!*held) {
    bind_refuse(L, "an attribute of a function is damaged");
    return; /* it does not come back */
  }
  lua_insert(L, -2);
  set_attribute(L, *held, folder);
  lua_insert(L, -2);
  lua_pop(L, 1);
}

static void push_defaults(lua_State *L, const Onnx__FunctionProto *function, const char *folder) {
  lua_newtable(L);
  const ProtobufCFieldDescriptor *known =
      protobuf_c_message_descriptor_get_field(&onnx__function_proto__descriptor, FUNCTION_DEFAULTS);
  if (known) {
    const char *start = (const char *)function;
    size_t count = *(const size_t *)(const void *)(start + known->quantifier_offset);
    Onnx__AttributeProto **list = *(Onnx__AttributeProto * *const *)(const void *)(start + known->offset);
    for (size_t i = 0; i < count; i++) set_attribute(L, list[i], folder);
  }
  for (unsigned i = 0; i < function->base.n_unknown_fields; i++) {
    const ProtobufCMessageUnknownField *field = &function->base.unknown_fields[i];
    if (field->tag == FUNCTION_DEFAULTS && field->wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
      set_packed_attribute(L, field, folder);
  }
}

/* {name, domain, inputs, outputs, attributes, defaults, opsets, nodes} */
static void push_function(lua_State *L, const Onnx__FunctionProto *function, const char *folder) {
  lua_createtable(L, 0, 8);
  set_text(L, "name", function->name);
  set_text(L, "domain", function->domain && strcmp(function->domain, "ai.onnx") != 0 ? function->domain : "");
  push_strings(L, function->input, function->n_input);
  lua_setfield(L, -2, "inputs");
  push_strings(L, function->output, function->n_output);
  lua_setfield(L, -2, "outputs");
  push_strings(L, function->attribute, function->n_attribute);
  lua_setfield(L, -2, "attributes");
  push_defaults(L, function, folder);
  lua_setfield(L, -2, "defaults");
  push_opsets(L, function->opset_import, function->n_opset_import);
  lua_setfield(L, -2, "opsets");
  push_nodes(L, function->node, function->n_node, folder);
  lua_setfield(L, -2, "nodes");
}

static void push_functions(lua_State *L, const Onnx__ModelProto *model, const char *folder) {
  lua_newtable(L);
  for (size_t i = 0; i < model->n_functions; i++) {
    push_function(L, model->functions[i], folder);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

void net_push_model(lua_State *L, const uint8_t *bytes, size_t size, const char *folder) {
  ms_error err = {.instruction = -1};
  struct source *s = bind_hold(L, sizeof *s, "msched.onnx", collect);
  s->model = net_unpack_model(bytes, size, &err);
  if (!s->model) {
    bind_refuse(L, "%s", err.message);
    return;
  }
  if (!s->model->graph) bind_refuse(L, "it is no ONNX model: it has no graph");
  lua_createtable(L, 0, 5);
  lua_pushinteger(L, s->model->ir_version);
  lua_setfield(L, -2, "ir_version");
  set_text(L, "producer", s->model->producer_name);
  push_opsets(L, s->model->opset_import, s->model->n_opset_import);
  lua_setfield(L, -2, "opsets");
  push_functions(L, s->model, folder);
  lua_setfield(L, -2, "functions");
  push_graph(L, s->model->graph, folder, true);
  lua_setfield(L, -2, "graph");
  net_free_model(s->model);
  s->model = NULL;
  lua_remove(L, -2);
}

/* What a file of protocol buffers may have, whoever wrote it. */
static const long MOST_BYTES = INT32_MAX;

static void read_bytes(lua_State *L, struct source *s, const char *path, size_t *size) {
  const char *fault;
  s->file = bind_open_or_say(path, &fault);
  if (!s->file) bind_refuse(L, "%s", fault);
  if (fseek(s->file, 0, SEEK_END) != 0) bind_refuse(L, "it cannot be read: %s", strerror(errno));
  long length = ftell(s->file);
  if (length < 0 || length == LONG_MAX) bind_refuse(L, "it is no file");
  if (length > MOST_BYTES)
    bind_refuse(
        L, "it has %I bytes; a model has at most %I, and its larger tensors in files of their own, as external data",
        (LUAI_UACINT)length, (LUAI_UACINT)MOST_BYTES);
  rewind(s->file);
  s->bytes = malloc((size_t)length + 1);
  if (!s->bytes) bind_refuse(L, "no memory for its %I bytes", (LUAI_UACINT)length);
  *size = fread(s->bytes, 1, (size_t)length, s->file);
  if (ferror(s->file)) bind_refuse(L, "it cannot be read: %s", strerror(errno));
}

/* read_onnx(path): external data are looked for in its folder. */
static int read_onnx(lua_State *L) {
  const char *path = bind_check_text(L, 1), *end = strrchr(path, '/');
  lua_pushlstring(L, end ? path : ".", end ? (size_t)(end - path + (end == path)) : 1);
  const char *folder = lua_tostring(L, -1);
  size_t size = 0;
  struct source *s = bind_hold(L, sizeof *s, "msched.onnx", collect);
  read_bytes(L, s, path, &size);
  net_push_model(L, s->bytes, size, folder);
  lua_pushcfunction(L, collect);
  lua_pushvalue(L, -3);
  lua_call(L, 1, 0);
  return 1;
}

/* team_source(): the threads of parallel loops as C, for libraries of networks */
static int team_source(lua_State *L) {
  lua_pushstring(L, shipped_team);
  return 1;
}

void net_bind(lua_State *L) {
  assert(lua_istable(L, -1));
  lua_pushcfunction(L, team_source);
  lua_setfield(L, -2, "team_source");
  lua_pushcfunction(L, read_onnx);
  lua_setfield(L, -2, "read_onnx");
}
