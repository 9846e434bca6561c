/* A model of ONNX as bytes: unpacked within bounds, and its tensors' elements. Knows nothing of Lua. */
#ifndef MSCHED_NET_MODEL_H
#define MSCHED_NET_MODEL_H

#include "onnx.pb-c.h"
#include "tir/tir.h"

/* Whether bytes are a message of this kind, whole, and no deeper than is read: fields end where they say, and messages
 * in messages do too. False: err says where they are not. */
bool net_check_wire(const ProtobufCMessageDescriptor *kind, const uint8_t *bytes, size_t size, ms_error *err);

/* The model of bytes, of which nothing is kept. NULL: err says why. It is freed by net_free_model. */
Onnx__ModelProto *net_unpack_model(const uint8_t *bytes, size_t size, ms_error *err);
void net_free_model(Onnx__ModelProto *model);

/* ONNX's number of a type of elements, as it is called; "type 99" where there is none. `out` holds what has no name. */
const char *net_type_name(int32_t type, char out[24]);
/* Whether it is one of 4 bits, two of which are in a byte of a tensor's data. */
bool net_is_packed(int32_t type);

enum { NET_RANK = 32 }; /* dimensions of a tensor, at most */
/* What a tensor is, checked against the data that it has: so many bytes can be read. Tensors of types that arrays have
 * not, or whose data do not fit their extents, are refused by name. */
struct net_tensor {
  const Onnx__TensorProto *proto;
  const char *name; /* for messages */
  tir_type type;
  int rank;
  int64_t shape[NET_RANK];
  size_t count, bytes;
  size_t stored; /* bytes of its data */
  bool packed;   /* they have two elements a byte */
};
bool net_measure_tensor(const Onnx__TensorProto *proto, const char *folder, struct net_tensor *out, ms_error *err);
/* Reads its elements to `out`, of tensor->bytes bytes; those of another file from within `folder`, the model's. */
bool net_read_tensor(const struct net_tensor *tensor, const char *folder, void *out, ms_error *err);

#endif
