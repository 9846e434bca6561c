/* Protocol buffers, before they are unpacked: protobuf-c follows messages in messages as deep as they go, and allocates
 * what a file asks for. Both are bounded here. Source: protobuf.dev, "Encoding". */
#include "lua/net/model/model.h"

#include <stdlib.h>

enum { DEPTH = 100, VARINT = 10 }; /* DEPTH: what protobuf's own readers take; a graph in another is three */
enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct cursor {
  const uint8_t *at, *end;
};

static bool refuse(const char *what, ms_error *err) {
  return ms_fail(err, MS_SCRIPT, "it is no ONNX model, or a damaged one: %s", what);
}

static bool read_varint(struct cursor *c, uint64_t *out, ms_error *err) {
  *out = 0;
  for (int i = 0; i < VARINT && c->at < c->end; i++) {
    uint8_t byte = *c->at++;
    *out |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (!(byte & 0x80)) return true;
  }
  return refuse(c->at == c->end ? "it ends in the middle of a number" : "a number has more than ten bytes", err);
}

static bool skip(struct cursor *c, uint64_t size, ms_error *err) {
  assert(c->at <= c->end);
  if (size > (uint64_t)(c->end - c->at)) return refuse("a field is longer than what holds it: is the file cut?", err);
  c->at += size;
  return true;
}

static bool check_message(const ProtobufCMessageDescriptor *kind, struct cursor c, int depth, ms_error *err);

/* What follows a field's number. */
static bool check_field(const ProtobufCFieldDescriptor *field, unsigned wire, struct cursor *c, int depth,
                        ms_error *err) {
  uint64_t size;
  switch (wire) {
  case WIRE_VARINT: return read_varint(c, &size, err);
  case WIRE_64: return skip(c, 8, err);
  case WIRE_32: return skip(c, 4, err);
  case WIRE_BYTES: break;
  default: return refuse("a field has a kind of data that no model has", err);
  }
  if (!read_varint(c, &size, err)) return false;
  const uint8_t *from = c->at;
  if (!skip(c, size, err)) return false;
  if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE) return true;
  return check_message(field->descriptor, (struct cursor){from, c->at}, depth + 1, err);
}

static bool check_message(const ProtobufCMessageDescriptor *kind, struct cursor c, int depth, ms_error *err) {
  assert(kind && kind->magic == PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC);
  if (depth > DEPTH) return ms_fail(err, MS_SCRIPT, "its messages are in one another more than %d deep", DEPTH);
  while (c.at < c.end) {
    uint64_t tag;
    if (!read_varint(&c, &tag, err)) return false;
    if (tag >> 3 == 0 || tag >> 3 > 536870911) return refuse("a field has a number that none can have", err);
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(kind, (unsigned)(tag >> 3));
    if (!check_field(field, (unsigned)(tag & 7), &c, depth, err)) return false;
  }
  return true;
}

bool net_check_wire(const ProtobufCMessageDescriptor *kind, const uint8_t *bytes, size_t size, ms_error *err) {
  assert(bytes || !size);
  return check_message(kind, (struct cursor){bytes, bytes + size}, 0, err);
}

/* ---- Unpacking ---- */

/* A node of few bytes becomes a struct of hundreds: so many times its bytes a model may take, and at least so much. */
enum { MOST_TIMES = 24, LEAST_MEMORY = 16 << 20 };

struct budget {
  size_t left;
};

static void *take(void *data, size_t size) {
  struct budget *budget = data;
  if (size > budget->left) return NULL;
  budget->left -= size;
  return malloc(size ? size : 1);
}
static void give_back(void *data, void *memory) {
  (void)data;
  free(memory);
}

Onnx__ModelProto *net_unpack_model(const uint8_t *bytes, size_t size, ms_error *err) {
  if (!net_check_wire(&onnx__model_proto__descriptor, bytes, size, err)) return NULL;
  struct budget budget = {LEAST_MEMORY + (size > SIZE_MAX / MOST_TIMES / 2 ? SIZE_MAX / 2 : size * MOST_TIMES)};
  ProtobufCAllocator allocator = {take, give_back, &budget};
  Onnx__ModelProto *model = onnx__model_proto__unpack(&allocator, size, bytes);
  if (!model)
    ms_fail(err, MS_SCRIPT, "it is no ONNX model, or a damaged one: a field is not of the type that ONNX gives it");
  return model;
}

void net_free_model(Onnx__ModelProto *model) {
  static struct budget none;
  ProtobufCAllocator allocator = {take, give_back, &none};
  if (model) onnx__model_proto__free_unpacked(model, &allocator);
}
