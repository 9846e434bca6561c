/* A tensor's elements: raw, typed, or in another file. Source: ONNX IR, "Tensor definition", "External Tensor Data". */
#define _GNU_SOURCE
#include "lua/net/model/model.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* By ONNX's number: what a type is called, the array's, and the field of typed data that has its elements. Of 4 bits
 * there are two in a byte, the first in the lower bits; arrays have them as bytes. */
enum field { FIELD_NONE, FIELD_FLOAT, FIELD_INT32, FIELD_INT64, FIELD_DOUBLE, FIELD_UINT64 };
static const struct {
  const char *name, *own; /* own: NULL: arrays have no such type */
  enum field field;
} types[] = {
    {"undefined", NULL, FIELD_NONE},
    {"float32", "float32", FIELD_FLOAT},
    {"uint8", "uint8", FIELD_INT32},
    {"int8", "int8", FIELD_INT32},
    {"uint16", "uint16", FIELD_INT32},
    {"int16", "int16", FIELD_INT32},
    {"int32", "int32", FIELD_INT32},
    {"int64", "int64", FIELD_INT64},
    {"string", NULL, FIELD_NONE},
    {"bool", "bool", FIELD_INT32},
    {"float16", "float16", FIELD_INT32},
    {"float64", "float64", FIELD_DOUBLE},
    {"uint32", "uint32", FIELD_UINT64},
    {"uint64", "uint64", FIELD_UINT64},
    {"complex64", NULL, FIELD_NONE},
    {"complex128", NULL, FIELD_NONE},
    {"bfloat16", "bfloat16", FIELD_INT32},
    {"float8_e4m3fn", "float8_e4m3fn", FIELD_INT32},
    {"float8e4m3fnuz", NULL, FIELD_NONE},
    {"float8_e5m2", "float8_e5m2", FIELD_INT32},
    {"float8e5m2fnuz", NULL, FIELD_NONE},
    {"uint4", "uint8", FIELD_INT32},
    {"int4", "int8", FIELD_INT32},
    {"float4e2m1", NULL, FIELD_NONE},
    {"float8e8m0", NULL, FIELD_NONE},
    {"uint2", NULL, FIELD_NONE},
    {"int2", NULL, FIELD_NONE},
};
enum { TYPES = sizeof types / sizeof *types };

const char *net_type_name(int32_t type, char out[24]) {
  if (type >= 0 && type < TYPES) return types[type].name;
  snprintf(out, 24, "type %d", (int)type);
  return out;
}

bool net_is_packed(int32_t type) {
  enum { UINT4 = 21, INT4 = 22 }; /* Debian's onnx.proto is older */
  return type == UINT4 || type == INT4;
}

/* The same as a type of arrays; false: arrays have none. */
static bool net_type(int32_t type, tir_type *out) {
  return type >= 0 && type < TYPES && types[type].own && tir_type_parse(types[type].own, out);
}

static size_t element_bytes(tir_type type) { return ((size_t)tir_type_bits(type) + 7) / 8; }

static bool refuse(const struct net_tensor *t, const char *what, ms_error *err) {
  return ms_fail(err, MS_SCRIPT, "tensor %s: %s", t->name, what);
}

static bool is_external(const Onnx__TensorProto *proto) {
  return proto->has_data_location && proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static size_t typed_count(const Onnx__TensorProto *proto) {
  assert(proto->data_type >= 0 && proto->data_type < TYPES);
  switch (types[proto->data_type].field) {
  case FIELD_FLOAT: return proto->n_float_data;
  case FIELD_INT32: return proto->n_int32_data;
  case FIELD_INT64: return proto->n_int64_data;
  case FIELD_DOUBLE: return proto->n_double_data;
  case FIELD_UINT64: return proto->n_uint64_data;
  case FIELD_NONE: break;
  }
  return 0;
}

static bool read_external(const struct net_tensor *t, const char *folder, void *out, ms_error *err);

/* The data that are there are as many as the extents ask for. */
static bool check_data(const struct net_tensor *t, const char *folder, ms_error *err) {
  if (is_external(t->proto)) return read_external(t, folder, NULL, err);
  size_t have = t->proto->has_raw_data ? t->proto->raw_data.len : typed_count(t->proto) * element_bytes(t->type);
  if (have == t->stored) return true;
  return ms_fail(err, MS_SCRIPT, "tensor %s: its extents ask for %zu bytes, and its data have %zu", t->name, t->stored,
                 have);
}

static const char too_large[] = "its extents ask for more than memory holds";

bool net_measure_tensor(const Onnx__TensorProto *proto, const char *folder, struct net_tensor *out, ms_error *err) {
  assert(proto && out);
  char name[24];
  *out = (struct net_tensor){
      .proto = proto, .name = proto->name && *proto->name ? proto->name : "without a name", .count = 1};
  if (!net_type(proto->data_type, &out->type))
    return ms_fail(err, MS_SCRIPT, "tensor %s: its elements are of %s, which no array has", out->name,
                   net_type_name(proto->data_type, name));
  if (proto->segment) return refuse(out, "it is a segment of a larger one, which is not read", err);
  if (proto->n_dims > NET_RANK)
    return ms_fail(err, MS_SCRIPT, "tensor %s: it has %zu dimensions, more than %d", out->name, proto->n_dims,
                   NET_RANK);
  out->rank = (int)proto->n_dims;
  for (size_t d = 0; d < proto->n_dims; d++) {
    out->shape[d] = proto->dims[d];
    if (proto->dims[d] < 0)
      return ms_fail(err, MS_SCRIPT, "tensor %s: extent %zu is %lld, which no tensor has", out->name, d + 1,
                     (long long)proto->dims[d]);
    if (__builtin_mul_overflow(out->count, (size_t)proto->dims[d], &out->count)) return refuse(out, too_large, err);
  }
  if (__builtin_mul_overflow(out->count, element_bytes(out->type), &out->bytes) || out->bytes > (size_t)1 << 40)
    return refuse(out, too_large, err);
  out->packed = net_is_packed(proto->data_type);
  out->stored = out->packed ? (out->count + 1) / 2 : out->bytes;
  return check_data(out, folder, err);
}

/* ---- In a file of its own ---- */

struct place {
  const char *location;
  uint64_t offset, length; /* length 0: not said */
};

static bool read_number(const struct net_tensor *t, const char *key, const char *text, uint64_t *out, ms_error *err) {
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && !*end && !errno && *out <= INT64_MAX) return true;
  return ms_fail(err, MS_SCRIPT, "tensor %s: the %s of its external data is `%.40s`, which is no number of bytes",
                 t->name, key, text);
}

static bool find_place(const struct net_tensor *t, struct place *out, ms_error *err) {
  *out = (struct place){0};
  for (size_t i = 0; i < t->proto->n_external_data; i++) {
    const Onnx__StringStringEntryProto *entry = t->proto->external_data[i];
    const char *key = entry->key ? entry->key : "", *value = entry->value ? entry->value : "";
    if (!strcmp(key, "location")) out->location = value;
    if (!strcmp(key, "offset") && !read_number(t, key, value, &out->offset, err)) return false;
    if (!strcmp(key, "length") && !read_number(t, key, value, &out->length, err)) return false;
  }
  if (!out->location || !*out->location) return refuse(t, "its data are external, and no location says where", err);
  if (out->length && out->length != t->stored)
    return ms_fail(err, MS_SCRIPT, "tensor %s: its extents ask for %zu bytes, and its external data have %llu", t->name,
                   t->stored, (unsigned long long)out->length);
  return true;
}

/* Opens a file within the folder: links are followed, and must not lead out of it. -1: err. */
static int open_within(const struct net_tensor *t, const char *folder, const char *location, ms_error *err) {
  char path[PATH_MAX], real[PATH_MAX], root[PATH_MAX];
  if (location[0] == '/' || snprintf(path, sizeof path, "%s/%s", folder, location) >= (int)sizeof path)
    return ms_fail(err, MS_SCRIPT,
                   "tensor %s: its external data are in `%.200s`, which is no path within the model's folder", t->name,
                   location),
           -1;
  if (!realpath(folder, root) || !realpath(path, real))
    return ms_fail(err, MS_SCRIPT, "tensor %s: its external data, %.200s, cannot be opened: %s", t->name, location,
                   strerror(errno)),
           -1;
  size_t length = strcmp(root, "/") ? strlen(root) : 0;
  if (strncmp(real, root, length) != 0 || real[length] != '/')
    return ms_fail(err, MS_SCRIPT,
                   "tensor %s: its external data are in `%.200s`, which is outside of the model's folder", t->name,
                   location),
           -1;
  int file = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    ms_fail(err, MS_SCRIPT, "tensor %s: its external data, %.200s, cannot be opened: %s", t->name, location,
            strerror(errno));
  return file;
}

static bool read_at(int file, uint64_t offset, char *out, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t got = pread(file, out + done, bytes - done, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

/* Reads to `out`; NULL: looks only whether it can be read. */
static bool read_external(const struct net_tensor *t, const char *folder, void *out, ms_error *err) {
  struct place place;
  if (!folder) return refuse(t, "its data are external, and there is no folder to look for them", err);
  if (!find_place(t, &place, err)) return false;
  int file = open_within(t, folder, place.location, err);
  if (file < 0) return false;
  struct stat stat;
  bool done = fstat(file, &stat) == 0 && S_ISREG(stat.st_mode);
  if (!done)
    ms_fail(err, MS_SCRIPT, "tensor %s: its external data are in `%.200s`, which is no file", t->name, place.location);
  else if (place.offset > (uint64_t)stat.st_size || t->stored > (uint64_t)stat.st_size - place.offset)
    done = ms_fail(err, MS_SCRIPT, "tensor %s: %.200s has %lld bytes; %zu from %llu on are asked for", t->name,
                   place.location, (long long)stat.st_size, t->stored, (unsigned long long)place.offset);
  else if (out && !read_at(file, place.offset, out, t->stored))
    done = ms_fail(err, MS_SCRIPT, "tensor %s: %.200s cannot be read", t->name, place.location);
  close(file);
  return done;
}

/* ---- Typed ---- */

static void narrow(void *out, const int32_t *from, size_t count, size_t bytes) {
  assert(bytes == 1 || bytes == 2 || bytes == 4);
  for (size_t i = 0; i < count; i++) {
    uint32_t x = (uint32_t)from[i];
    uint16_t half = (uint16_t)x;
    uint8_t byte = (uint8_t)x;
    memcpy((char *)out + i * bytes, bytes == 4 ? (void *)&x : bytes == 2 ? (void *)&half : (void *)&byte, bytes);
  }
}

static void read_typed(const struct net_tensor *t, void *out) {
  const Onnx__TensorProto *p = t->proto;
  size_t bytes = element_bytes(t->type);
  switch (types[p->data_type].field) {
  case FIELD_FLOAT: memcpy(out, p->float_data, t->bytes); break;
  case FIELD_INT32: narrow(out, p->int32_data, t->packed ? t->stored : t->count, bytes); break;
  case FIELD_INT64: memcpy(out, p->int64_data, t->bytes); break;
  case FIELD_DOUBLE: memcpy(out, p->double_data, t->bytes); break;
  case FIELD_UINT64:
    for (size_t i = 0; i < t->count; i++) {
      uint32_t word = (uint32_t)p->uint64_data[i];
      memcpy((char *)out + i * bytes, bytes == 4 ? (const void *)&word : (const void *)&p->uint64_data[i], bytes);
    }
    break;
  case FIELD_NONE: break;
  }
}

/* Integers of 4 bits, from the last, as none lies behind its byte. */
static void unpack(const struct net_tensor *t, uint8_t *out) {
  assert(t->stored == (t->count + 1) / 2 && t->bytes == t->count);
  bool is_signed = tir_type_code(t->type) == TIR_INT;
  for (size_t i = t->count; i-- > 0;) {
    uint8_t half = i % 2 ? out[i / 2] >> 4 : out[i / 2] & 15;
    out[i] = is_signed && half > 7 ? half | 0xf0 : half;
  }
}

bool net_read_tensor(const struct net_tensor *t, const char *folder, void *out, ms_error *err) {
  assert(t->proto && (out || !t->bytes));
  bool done = true;
  if (is_external(t->proto))
    done = read_external(t, folder, out, err);
  else if (t->bytes && t->proto->has_raw_data)
    memcpy(out, t->proto->raw_data.data, t->stored);
  else if (t->bytes)
    read_typed(t, out);
  if (done && t->packed) unpack(t, out);
  if (tir_type_code(t->type) == TIR_BOOL)
    for (size_t i = 0; i < t->count && done; i++) ((uint8_t *)out)[i] = ((uint8_t *)out)[i] != 0;
  return done;
}
