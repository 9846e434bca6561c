-- A network's library where kernels are a GPU's: their cubins, C that keeps everything on the device, and one CUDA
-- graph of all launches. Source: CUDA Driver API, "Graph Management", "Stream Management".
local ms = msched
local memory, text, files = ms.load "lua.net.memory", ms.load "lua.net.export.c_text", ms.load "lua.lib.files"
local fill, write, read, run, quoted = text.fill, files.write, files.read, files.run, files.quoted
local cuda = {EXPORTED = {"open", "close", "run", "start", "input", "output", "error", "inputs", "outputs"}}

local ALIGNMENT = 256 -- of what is in the device's memory, in bytes
local function padded(bytes) return (math.max(1, bytes) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT end

cuda.LINKED = {so = "opens CUDA's driver itself", a = "opens CUDA's driver itself",
               c = "is its source: cc -O2, linked with -ldl -lpthread"}

cuda.HEADER = text.header([[
#define @NAME@_WORKSPACE 0u
#define @NAME@_DEVICE_BYTES @DEVICEBYTES@u /* of the device's memory, for each that is open */

struct @NAME@; /* on a device: kernels, constants, inputs, outputs, and the graph that computes these */
]], [[
/* Loads it, with the file of constants that was written beside the library, in the context that is the calling thread's,
 * or, where it has none, in the primary context of the first device. It runs once. NULL: it cannot be used, and *why,
 * unless NULL, says why, until the thread's next failure: a driver's call that failed by its name, and the driver's name of
 * the error. The caller closes what it got; what is not open, NULL too, is not closed again. */
struct @NAME@ *@NAME@_open(const char *constants, const char **why);
void @NAME@_close(struct @NAME@ *net);

/* Runs it on the host's memory: inputs and outputs in the order above; waits until it is done. Threads take turns. workspace: NULL.
 * 0: done; 1: the driver refuses something, or a kernel failed, as @NAME@_error says; 3: an index or an element of four
 * bits of an input is out of its range, or a coordinate not finite; 5: the network is not open, or a pointer to values
 * or one of them is NULL. */
int @NAME@_run(const struct @NAME@ *net, const void *const *inputs, void *const *outputs, void *workspace);

/* The same for data that stays on the device: an input's or an output's address there (CUdeviceptr) by its number, 0 where
 * there is none, and what puts the graph into the queue of a stream (CUstream; not the default one) and does not wait. Indices
 * are not looked at: kernels hold them within their tensors. Whoever calls this from several threads sees to their turns. */
uint64_t @NAME@_input(const struct @NAME@ *net, int number);
uint64_t @NAME@_output(const struct @NAME@ *net, int number);
int @NAME@_start(const struct @NAME@ *net, void *stream);

/* What failed last, as "cuGraphLaunch: CUDA_ERROR_ILLEGAL_ADDRESS", or NULL. It is the network's, until something else fails. */
const char *@NAME@_error(const struct @NAME@ *net);
]])

local SOURCE_TEXT = [[
#define _GNU_SOURCE
#include "@HEADER@"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

@TENSORS@
/* ---- The driver, opened when a network is: a CUresult is an int, handles are pointers ---- */

static struct {
  int (*cuInit)(unsigned);
  int (*cuDeviceGet)(int *, int);
  int (*cuDevicePrimaryCtxRetain)(void **, int);
  int (*cuDevicePrimaryCtxRelease_v2)(int);
  int (*cuCtxGetCurrent)(void **);
  int (*cuCtxPushCurrent_v2)(void *);
  int (*cuCtxPopCurrent_v2)(void **);
  int (*cuModuleLoadData)(void **, const void *);
  int (*cuModuleUnload)(void *);
  int (*cuModuleGetFunction)(void **, void *, const char *);
  int (*cuFuncSetAttribute)(void *, int, int);
  int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
  int (*cuMemAlloc_v2)(uint64_t *, size_t);
  int (*cuMemFree_v2)(uint64_t);
  int (*cuMemsetD8Async)(uint64_t, unsigned char, size_t, void *);
  int (*cuMemcpyHtoDAsync_v2)(uint64_t, const void *, size_t, void *);
  int (*cuMemcpyDtoHAsync_v2)(void *, uint64_t, size_t, void *);
  int (*cuMemcpyDtoDAsync_v2)(uint64_t, uint64_t, size_t, void *);
  int (*cuStreamCreate)(void **, unsigned);
  int (*cuStreamDestroy_v2)(void *);
  int (*cuStreamSynchronize)(void *);
  int (*cuStreamBeginCapture_v2)(void *, int);
  int (*cuStreamEndCapture)(void *, void **);
  int (*cuGraphInstantiateWithFlags)(void **, void *, unsigned long long);
  int (*cuGraphDestroy)(void *);
  int (*cuGraphExecDestroy)(void *);
  int (*cuGraphLaunch)(void *, void *);
  int (*cuGetErrorName)(int, const char **);
  int (*cuTensorMapEncodeTiled)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *, const uint32_t *, int, int,
                                int, int);
  int (*cuTensorMapEncodeIm2col)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const int *, const int *, uint32_t,
                                 uint32_t, const uint32_t *, int, int, int, int);
} driver;
static const char *without_driver; /* why there is none */

#define GET(name) (*(void **)&driver.name = dlsym(library, #name))
static void open_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  without_driver = "CUDA's driver is missing: libcuda.so.1 cannot be opened";
  if (!library) return;
  without_driver = "CUDA's driver is older than what this network needs: CUDA 11.4";
  if (!GET(cuInit) || !GET(cuDeviceGet) || !GET(cuDevicePrimaryCtxRetain) || !GET(cuDevicePrimaryCtxRelease_v2) || !GET(cuCtxGetCurrent) ||
      !GET(cuCtxPushCurrent_v2) || !GET(cuCtxPopCurrent_v2) || !GET(cuModuleLoadData) || !GET(cuModuleUnload) || !GET(cuModuleGetFunction) ||
      !GET(cuFuncSetAttribute) || !GET(cuLaunchKernel) || !GET(cuMemAlloc_v2) || !GET(cuMemFree_v2) || !GET(cuMemsetD8Async) ||
      !GET(cuMemcpyHtoDAsync_v2) || !GET(cuMemcpyDtoHAsync_v2) || !GET(cuMemcpyDtoDAsync_v2) || !GET(cuStreamCreate) ||
      !GET(cuStreamDestroy_v2) || !GET(cuStreamSynchronize) || !GET(cuStreamBeginCapture_v2) || !GET(cuStreamEndCapture) ||
      !GET(cuGraphInstantiateWithFlags) || !GET(cuGraphDestroy) || !GET(cuGraphExecDestroy) || !GET(cuGraphLaunch) || !GET(cuGetErrorName))
    return;
  without_driver = "CUDA's driver has no cuTensorMapEncodeTiled, which this network needs: CUDA 12";
  if ((!GET(cuTensorMapEncodeTiled) || !GET(cuTensorMapEncodeIm2col)) && @MAPS@) return;
  without_driver = driver.cuInit(0) ? "CUDA's driver does not start, or finds no device" : NULL;
}

/* What the thread's last call was that failed; its text is good until the next fails. */
static _Thread_local struct failure {
  const char *call;
  int status;
  char text[240];
} failure;
static int noted(int status, const char *call) {
  if (status) failure.call = call, failure.status = status;
  return status;
}
#define DRIVER(name, ...) noted(driver.name(__VA_ARGS__), #name)
/* Of a status, and one of what was called after it all the same: the first failure is the one that counts. */
static int first_of(int status, struct failure then, int later) {
  if (!status) return later;
  failure.call = then.call, failure.status = then.status;
  return status;
}

/* "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", and what else is said. */
static const char *failure_text(const char *more) {
  const char *name = NULL, *call = failure.call ? failure.call : "a call of the driver";
  const char *version = strstr(call, "_v2");
  int length = version ? (int)(version - call) : (int)strlen(call);
  if (driver.cuGetErrorName(failure.status, &name) || !name) name = "an error without a name";
  snprintf(failure.text, sizeof failure.text, "%.*s: %s%s", length, call, name, more);
  return failure.text;
}

#define MSCHED_CUDA_DRIVER
#define cuModuleLoadData(...) DRIVER(cuModuleLoadData, __VA_ARGS__)
#define cuModuleUnload(...) DRIVER(cuModuleUnload, __VA_ARGS__)
#define cuModuleGetFunction(...) DRIVER(cuModuleGetFunction, __VA_ARGS__)
#define cuFuncSetAttribute(...) DRIVER(cuFuncSetAttribute, __VA_ARGS__)
#define cuLaunchKernel(...) DRIVER(cuLaunchKernel, __VA_ARGS__)
#define cuTensorMapEncodeTiled(...) DRIVER(cuTensorMapEncodeTiled, __VA_ARGS__)
#define cuTensorMapEncodeIm2col(...) DRIVER(cuTensorMapEncodeIm2col, __VA_ARGS__)
enum { MAX_DYNAMIC_SHARED = 8 }; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
#define MSCHED_TENSOR_MAP
struct ms_tensor_map { /* CUtensorMap */
  _Alignas(64) unsigned char bytes[128];
};

/* ---- Kernels ---- */

@KERNELS@
/* ---- The network ---- */

static const uint64_t device_bytes = @DEVICEBYTES@u; /* the constants first */
static const uint64_t input_at[] = {@INPUTPLACES@}, output_at[] = {@OUTPUTPLACES@};

struct state {
  pthread_mutex_t turn;
  void *context, *stream, *graph;
  int retained, device;  /* the device whose primary context is kept */
  char failed[240];      /* what failed last */
  uint64_t memory;
@MODULES@};
struct @NAME@ {
  struct state *state;
  struct @NAME@ *next; /* of those that are open */
};

static pthread_mutex_t of_open = PTHREAD_MUTEX_INITIALIZER;
static struct @NAME@ *open_ones;

/* Whether it was opened and not closed since: what is none of those is not looked into. close: it is none from now on. */
static int is_open(const struct @NAME@ *net, int close) {
  pthread_mutex_lock(&of_open);
  struct @NAME@ **at = &open_ones;
  while (*at && *at != net) at = &(*at)->next;
  int found = *at != NULL;
  if (found && close) *at = (*at)->next;
  pthread_mutex_unlock(&of_open);
  return found;
}

@MAP@
@CHECKS@
/* Puts all kernels into the stream's queue. */
static int launch(struct state *s, void *stream) {
  const uint64_t d = s->memory;
  int status = 0;
@CALLS@  return status;
}

static int record_graph(struct state *s) {
  void *captured = NULL;
  int status = DRIVER(cuStreamBeginCapture_v2, s->stream, 2 /* CU_STREAM_CAPTURE_MODE_RELAXED */);
  if (status) return status;
  status = launch(s, s->stream);
  const struct failure before = failure;
  status = first_of(status, before, DRIVER(cuStreamEndCapture, s->stream, &captured));
  if (!status) status = DRIVER(cuGraphInstantiateWithFlags, &s->graph, captured, 0);
  if (captured) DRIVER(cuGraphDestroy, captured);
  return status;
}

static int load(struct state *s) {
  int status = 0;
@LOADS@  return status;
}

static const char *send_constants(struct state *s, const char *path, int *status) {
  void *mapped = NULL;
  const char *wrong = constant_bytes ? map_constants(path, &mapped) : NULL;
  if (wrong || !constant_bytes) return wrong;
  *status = DRIVER(cuMemcpyHtoDAsync_v2, s->memory, (const char *)mapped + HEADER_BYTES, constant_bytes, s->stream);
  if (!*status) *status = DRIVER(cuStreamSynchronize, s->stream);
  munmap(mapped, HEADER_BYTES + constant_bytes);
  return NULL;
}

/* In the state's context: gives why it cannot be, or NULL. It runs once before it is captured: kernels are loaded then. */
static const char *fill_state(struct state *s, const char *constants) {
  int status = load(s);
  if (!status) status = DRIVER(cuMemAlloc_v2, &s->memory, device_bytes);
  if (!status) status = DRIVER(cuStreamCreate, &s->stream, 1 /* CU_STREAM_NON_BLOCKING */);
  if (!status) status = DRIVER(cuMemsetD8Async, s->memory, 0, device_bytes, s->stream);
  const char *wrong = status ? NULL : send_constants(s, constants, &status);
  if (wrong) return wrong;
  if (!status) status = launch(s, s->stream);
  if (!status) status = DRIVER(cuStreamSynchronize, s->stream);
  if (!status) status = record_graph(s);
  if (!status) return NULL;
  enum { OUT_OF_MEMORY = 2 };
  return failure_text(status == OUT_OF_MEMORY ? "; the network takes @DEVICEBYTES@ bytes of the device's memory" : "");
}

static int leave(int status) {
  void *context;
  const struct failure before = failure;
  return first_of(status, before, DRIVER(cuCtxPopCurrent_v2, &context));
}

static const char *find_context(struct state *s) {
  if (DRIVER(cuCtxGetCurrent, &s->context)) return failure_text("");
  if (s->context) return NULL;
  if (DRIVER(cuDeviceGet, &s->device, 0)) return failure_text("; there is no CUDA device");
  if (DRIVER(cuDevicePrimaryCtxRetain, &s->context, s->device)) return failure_text("");
  s->retained = 1;
  return NULL;
}

static void release(struct state *s) {
  if (s->context && !DRIVER(cuCtxPushCurrent_v2, s->context)) {
    if (s->graph) DRIVER(cuGraphExecDestroy, s->graph);
    if (s->stream) DRIVER(cuStreamDestroy_v2, s->stream);
    if (s->memory) DRIVER(cuMemFree_v2, s->memory);
@UNLOADS@    leave(0);
  }
  if (s->retained) DRIVER(cuDevicePrimaryCtxRelease_v2, s->device);
  pthread_mutex_destroy(&s->turn);
  free(s);
}

static const char *make(struct @NAME@ *net, const char *constants) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_driver);
  if (without_driver) return without_driver;
  struct state *s = calloc(1, sizeof *s);
  if (!s) return "no memory";
  pthread_mutex_init(&s->turn, NULL);
  const char *wrong = find_context(s);
  if (!wrong && DRIVER(cuCtxPushCurrent_v2, s->context)) wrong = failure_text("");
  if (!wrong) {
    wrong = fill_state(s, constants);
    leave(0);
  }
  if (wrong)
    release(s);
  else
    net->state = s;
  return wrong;
}

struct @NAME@ *@NAME@_open(const char *constants, const char **why) {
  struct @NAME@ *net = calloc(1, sizeof *net);
  const char *wrong = net ? make(net, constants) : "no memory";
  if (why) *why = wrong;
  if (wrong) {
    free(net);
    return NULL;
  }
  pthread_mutex_lock(&of_open);
  net->next = open_ones;
  open_ones = net;
  pthread_mutex_unlock(&of_open);
  return net;
}

void @NAME@_close(struct @NAME@ *net) {
  if (!is_open(net, 1)) return;
  release(net->state);
  free(net);
}

uint64_t @NAME@_input(const struct @NAME@ *net, int number) {
  return is_open(net, 0) && number >= 0 && number < @INPUTCOUNT@ ? net->state->memory + input_at[number] : 0;
}
uint64_t @NAME@_output(const struct @NAME@ *net, int number) {
  return is_open(net, 0) && number >= 0 && number < @OUTPUTCOUNT@ ? net->state->memory + output_at[number] : 0;
}

/* What a status is to the caller. */
static int result_of(struct state *s, int status) {
  if (status) snprintf(s->failed, sizeof s->failed, "%s", failure_text(""));
  return status != 0;
}

const char *@NAME@_error(const struct @NAME@ *net) {
  return is_open(net, 0) && *net->state->failed ? net->state->failed : NULL;
}

int @NAME@_start(const struct @NAME@ *net, void *stream) {
  if (!is_open(net, 0)) return 5;
  struct state *s = net->state;
  int status = DRIVER(cuCtxPushCurrent_v2, s->context);
  if (!status) status = leave(DRIVER(cuGraphLaunch, s->graph, stream));
  return result_of(s, status);
}

static int run(struct state *s, const void *const *x, void *const *y) {
  int status = 0;
  for (int i = 0; !status && @NAME@_inputs[i].name; i++)
    if (@NAME@_inputs[i].bytes) status = DRIVER(cuMemcpyHtoDAsync_v2, s->memory + input_at[i], x[i], @NAME@_inputs[i].bytes, s->stream);
  if (!status) status = DRIVER(cuGraphLaunch, s->graph, s->stream);
  for (int i = 0; !status && @NAME@_outputs[i].name; i++)
    if (@NAME@_outputs[i].bytes) status = DRIVER(cuMemcpyDtoHAsync_v2, y[i], s->memory + output_at[i], @NAME@_outputs[i].bytes, s->stream);
  const struct failure before = failure;
  return first_of(status, before, DRIVER(cuStreamSynchronize, s->stream));
}

/* Indices of inputs are looked at before a kernel uses them. */
static int check(const void *const *x) {
  (void)x;
@INDICES@  return 0;
}

int @NAME@_run(const struct @NAME@ *net, const void *const *inputs, void *const *outputs, void *workspace) {
  (void)workspace;
  if (!is_open(net, 0) || !all_given(inputs, @NAME@_inputs) || !all_given((const void *const *)outputs, @NAME@_outputs)) return 5;
  struct state *s = net->state;
  int wrong = check(inputs);
  if (wrong) return wrong;
  pthread_mutex_lock(&s->turn);
  int status = DRIVER(cuCtxPushCurrent_v2, s->context);
  if (!status) status = leave(run(s, inputs, outputs));
  int result = result_of(s, status);
  pthread_mutex_unlock(&s->turn);
  return result;
}
]]

-- ---- Kernels -----------------------------------------------------------------------------------------------------

-- Bytes as elements of an array of C.
local function bytes_text(bytes)
  local lines = {}
  for at = 1, #bytes, 32 do
    lines[#lines + 1] = "  " .. table.concat({bytes:byte(at, math.min(at + 31, #bytes))}, ",") .. ",\n"
  end
  return table.concat(lines)
end

-- A kernel's cubin, and what launches it, without what stands once for all of them.
local function kernel_text(kernel, symbol, base)
  kernel:export(base .. ".cubin", symbol)
  kernel:export(base .. ".h", symbol)
  kernel:export(base .. ".c", symbol)
  local header, launcher = read(base .. ".h"), read(base .. ".c")
  launcher = launcher:gsub('#include "[^\n]*\n', function() return "" end, 1)
  return string.format("static const unsigned char %s_image[] __attribute__((aligned(64))) = {\n%s  0};\n%s%s\n",
                       symbol, bytes_text(read(base .. ".cubin")), header, launcher),
         tonumber(header:match "_WORKSPACE (%d+)u"), launcher:find("cuTensorMapEncodeTiled", 1, true) ~= nil
end

-- The text of all kernels, symbols by function, the most bytes that one works in, and whether one has tensor maps.
local function kernels_of(opened, name, folder)
  local parts, symbols, most, maps = {}, {}, 0, false
  for i, entry in ipairs(opened.prepared.functions) do
    local symbol = string.format("%s_kernel_%d", name, i)
    local kernel, workspace, mapped = kernel_text(opened.kernels[entry], symbol, folder .. "/" .. symbol)
    parts[i], symbols[entry], most, maps = kernel, symbol, math.max(most, workspace), maps or mapped
  end
  return table.concat(parts), symbols, most, maps
end

-- ---- Memory ------------------------------------------------------------------------------------------------------

-- Offsets in the device's memory: {arena, inputs = list, outputs = list, workspace, bytes}.
local function layout_of(opened, constants, workspace)
  local values, net = opened.prepared.state.values, opened.prepared.net
  local at = {arena = padded(constants.total), inputs = {}, outputs = {}}
  at.workspace = at.arena + padded(opened.placed.arena)
  local next_at = at.workspace + padded(workspace)
  for _, pair in ipairs {{net.inputs, at.inputs}, {net.outputs, at.outputs}} do
    for i, each in ipairs(pair[1]) do
      pair[2][i], next_at = next_at, next_at + padded(memory.bytes(values[each.name]))
    end
  end
  at.bytes = next_at
  return at
end

-- Where an argument of a call is.
local function place_of(opened, argument, at, constants)
  if type(argument) == "table" then return constants.of[argument] end
  local slot = opened.placed.slots[argument]
  if slot.kind == "input" then return at.inputs[slot.index] end
  if slot.kind == "output" then return at.outputs[slot.index] end
  if slot.kind == "constant" then return constants.of[slot.name] end
  return at.arena + slot.offset
end

local function copy_text(to, from, bytes)
  return bytes == 0 and "" or string.format("  if (!status) status = DRIVER(cuMemcpyDtoDAsync_v2, d + %d, d + %d, %d, \z
                                             stream);\n", to, from, bytes)
end

local function calls_text(opened, at, constants, symbols)
  local lines, values = {}, opened.prepared.state.values
  for _, each in ipairs(opened.calls) do
    local g, args = each.group, {}
    for i, argument in ipairs(each.arguments) do args[i] = place_of(opened, argument, at, constants) end
    if g.alias then lines[#lines + 1] = copy_text(args[2], args[1], memory.bytes(values[g.outputs[1]]))
    else
      for i, place in ipairs(args) do args[i] = string.format("d + %d", place) end
      local symbol = symbols[g.kernel]
      lines[#lines + 1] = string.format("  if (!status) status = %s_launch(&s->%s, %s, d + %d, stream);\n", symbol,
                                        symbol, table.concat(args, ", "), at.workspace)
    end
  end
  for _, copy in ipairs(opened.placed.copies) do
    lines[#lines + 1] = copy_text(at.outputs[copy.index], place_of(opened, copy.from, at, constants),
                                  memory.bytes(values[copy.from]))
  end
  return table.concat(lines)
end

-- Lines that look at indices in inputs, and the functions that they call.
local function indices_text(opened)
  local lines, types, values = {}, {}, opened.prepared.state.values
  local function look_at(ranges)
    for _, range in ipairs(ranges) do
      local slot, value = opened.placed.slots[range.input], values[range.input]
      if slot and slot.kind == "input" then
        lines[#lines + 1] = text.check(range, value, string.format("x[%d]", slot.index - 1), types)
      end
    end
  end
  look_at(opened.net.narrow)
  for _, each in ipairs(opened.calls) do look_at(each.group.ranges) end
  return table.concat(lines), text.checks(types)
end

-- ---- Library and source ------------------------------------------------------------------------------------------

-- A line for each function, of its symbol.
local function lines_of(opened, symbols, form)
  local lines = {}
  for i, entry in ipairs(opened.prepared.functions) do lines[i] = (form:gsub("@", symbols[entry])) end
  return table.concat(lines)
end

-- As write.lua's maker_of has it.
function cuda.parts(opened, name, folder, _, constants)
  local kernels, symbols, most, maps = kernels_of(opened, name, folder)
  local at = layout_of(opened, constants, most)
  local indices, checks = indices_text(opened)
  local function list(places) return #places > 0 and table.concat(places, ", ") or "0" end
  return {INPUTCOUNT = #at.inputs, OUTPUTCOUNT = #at.outputs, KERNELS = kernels, DEVICEBYTES = at.bytes,
          INPUTPLACES = list(at.inputs), OUTPUTPLACES = list(at.outputs),
          MODULES = lines_of(opened, symbols, "  struct @_module @;\n"), MAPS = maps and 1 or 0,
          CALLS = calls_text(opened, at, constants, symbols),
          LOADS = lines_of(opened, symbols, "  if (!status) status = @_load(&s->@, @_image);\n"),
          UNLOADS = lines_of(opened, symbols, "    if (s->@.module) @_unload(&s->@);\n"), INDICES = indices,
          CHECKS = checks}
end

function cuda.source(words) return fill(SOURCE_TEXT, words) end

cuda.MAKEFILE = [[
# Makes @NAME@.so, which @NAME@_network.py calls.
CC ?= cc
CFLAGS ?= -O2

@NAME@.so: @NAME@.c @NAME@.h
	$(CC) $(CFLAGS) -std=gnu11 -fPIC -shared -o $@ @NAME@.c -ldl -lpthread
]]

function cuda.build(folder, form, name, words, path)
  write(folder .. "/" .. name .. ".c", cuda.source(words))
  run("${CC:-cc} -std=gnu11 -fPIC -O2 -c -o %s %s", folder .. "/" .. name .. ".o", folder .. "/" .. name .. ".c")
  if form == "a" then return run("rm -f %s && ar rcs %s %s", path, path, folder .. "/" .. name .. ".o") end
  text.write_symbols(folder .. "/symbols", name, cuda.EXPORTED)
  run("${CC:-cc} -shared -Wl,--version-script=%s -o %s %s -ldl -lpthread", folder .. "/symbols", path,
      folder .. "/" .. name .. ".o")
end

return cuda
