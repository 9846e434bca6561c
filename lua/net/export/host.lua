-- A network's library where kernels are the host's own code.
local ms = msched
local text, calls, files = ms.load "lua.net.export.c_text", ms.load "lua.net.export.calls", ms.load "lua.lib.files"
local fill, write, read, run, quoted = text.fill, files.write, files.read, files.run, files.quoted
local host = {EXPORTED = {"open", "close", "run", "inputs", "outputs"}}

-- ---- Kernels -----------------------------------------------------------------------------------------------------

-- Writes the object of each function, or its source, by the suffix; gives declarations, symbols by function, the bytes
-- that each works in, and for source {symbol, text} each.
local function write_kernels(opened, name, folder, suffix)
  local declared, symbols, bytes, kernels = {}, {}, {}, {}
  for i, entry in ipairs(opened.prepared.functions) do
    local symbol = string.format("%s_kernel_%d", name, i)
    local kernel, base = opened.kernels[entry], folder .. "/" .. symbol
    kernel:export(base .. suffix, symbol)
    kernel:export(base .. ".h", symbol)
    bytes[entry] = tonumber(read(base .. ".h"):match "_WORKSPACE (%d+)u")
    declared[i] = string.format("int32_t %s(void **args, void *workspace); /* %s */\n", symbol, entry.name)
    symbols[entry] = symbol
    kernels[i] = suffix == ".c" and {symbol = symbol, text = read(base .. ".c")} or nil
  end
  return table.concat(declared), symbols, bytes, kernels
end

-- ---- C -----------------------------------------------------------------------------------------------------------

host.HEADER = text.header([[
#define @NAME@_WORKSPACE @WORKSPACE@u
#define @NAME@_THREADS @THREADS@ /* that a parallel loop runs on, at most */

struct @NAME@; /* its constants, which any number of threads may share */
]], [[
/* Looks whether this machine has what the code may use, and maps the file of constants that was written beside the library. NULL: it
 * cannot be used, and *why, unless NULL, says why: which feature of the CPU is missing, or what is wrong with the file. On other CPUs than
 * x86-64 it does not look. The caller closes what it got. */
struct @NAME@ *@NAME@_open(const char *constants, const char **why);
void @NAME@_close(struct @NAME@ *net);

/* Runs it: inputs and outputs in the order above. workspace: @NAME@_WORKSPACE bytes aligned to 64, of this call alone; NULL: it is
 * allocated for the call. 0: done; 1: an assertion failed; 3: an index or an element of four bits is out of its range, or
 * a coordinate not finite; 4: no memory; 5: the network, a pointer to values or one of them is NULL, or the workspace is
 * not aligned. */
int @NAME@_run(const struct @NAME@ *net, const void *const *inputs, void *const *outputs, void *workspace);
]])

local SOURCE_TEXT = [[
#define _GNU_SOURCE
#include "@HEADER@"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

@TEAM@
@DECLARED@
@TENSORS@
struct @NAME@ {
  void *mapped; /* NULL: there are no constants */
  const char *constants;
};

@MAP@
@CPU@
static const char *map(struct @NAME@ *net, const char *path) {
  const char *wrong = map_constants(path, &net->mapped);
  if (!wrong) net->constants = (const char *)net->mapped + HEADER_BYTES;
  return wrong;
}

BASELINE struct @NAME@ *@NAME@_open(const char *constants, const char **why) {
  const char *wrong = wrong_machine();
  struct @NAME@ *net = wrong ? NULL : calloc(1, sizeof *net);
  if (!wrong && !net) wrong = "no memory";
  if (net && constant_bytes) wrong = map(net, constants);
  if (why) *why = wrong;
  if (wrong) free(net), net = NULL;
  return net;
}

void @NAME@_close(struct @NAME@ *net) {
  if (net && net->mapped) munmap(net->mapped, HEADER_BYTES + constant_bytes);
  free(net);
}

@CHECKS@@LANES@static int run(const char *c, const void *const *x, void *const *y, char *w) {
  int status;
@CALLS@  return 0;
}

int @NAME@_run(const struct @NAME@ *net, const void *const *inputs, void *const *outputs, void *workspace) {
  if (!net || !all_given(inputs, @NAME@_inputs) || !all_given((const void *const *)outputs, @NAME@_outputs) || (uintptr_t)workspace % 64) return 5;
  char *own = workspace ? NULL : aligned_alloc(64, @NAME@_WORKSPACE);
  if (!workspace && !own) return 4;
  int status = run(net->constants, inputs, outputs, workspace ? workspace : own);
  free(own);
  return status;
}
]]

-- The threads of a shared library, in the place of OpenMP's, which kernels ask for by its names. An archive takes
-- OpenMP's.
local TEAM_TEXT = [[
void GOMP_parallel(void (*start)(void *), void *closure, unsigned count, unsigned flags);
void GOMP_parallel(void (*start)(void *), void *closure, unsigned count, unsigned flags) {
  (void)flags;
  team_parallel(start, closure, count ? count : 1);
}
int omp_get_thread_num(void);
int omp_get_thread_num(void) { return team_part(); }
int omp_get_num_threads(void);
int omp_get_num_threads(void) { return team_parts(); }
]]
local function team_text() return (ms.team_source():gsub('#include "team.h"\n', "")) .. TEAM_TEXT end

-- ---- Library and source -----------------------------------------------------------------------------------------

-- The kernels behind the calls, as one file of C.
function host.source(words)
  return fill(SOURCE_TEXT, words) .. "\n" .. ms.load "lua.net.export.sources".join(words.kernels)
end

host.MAKEFILE = [[
# Makes @NAME@.so, which @NAME@_network.py calls, for this machine.
CC ?= cc
CFLAGS ?= -O3 -march=native

@NAME@.so: @NAME@.c @NAME@.h
	$(CC) $(CFLAGS) -std=gnu11 -fopenmp -fPIC -shared -o $@ @NAME@.c -lm
]]

-- As write.lua's maker_of has it.
function host.parts(opened, name, folder, form, constants)
  local declared, symbols, bytes, kernels = write_kernels(opened, name, folder, form == "c" and ".c" or ".o")
  local made = calls.text(opened, {offsets = constants.of, symbols = symbols, bytes = bytes, is_source = form == "c"})
  local first = opened.kernels[opened.prepared.functions[1]]
  local target = first and first:target()
  return {WORKSPACE = opened.placed.arena + made.bytes, DECLARED = declared, LANES = made.lanes, CALLS = made.calls,
          CHECKS = made.checks, TEAM = form == "so" and team_text() or "", kernels = kernels,
          CPU = ms.load "lua.net.export.cpu".text(target, form == "c"),
          THREADS = target and ms.target(target).cores or 1}
end

-- The C compiler makes code for the machine that the kernels are for.
local function check_compiler(target, folder, path)
  local wanted = target:match "%-mtriple=([^-%s]+)"
  if not wanted then return end -- this machine
  run("${CC:-cc} -dumpmachine >%s", folder .. "/machine")
  local made = read(folder .. "/machine"):match "[^-%s]*"
  if made ~= wanted then
    error(string.format("%s: the kernels are for %s, and the compiler makes code for %s: set CC to one for %s, or \z
                         export .tar", path, wanted, made, wanted), 0)
  end
end

-- Makes the library of the objects in a folder and the C that calls them.
function host.build(folder, form, name, words, path)
  check_compiler(words.TARGET, folder, path)
  write(folder .. "/" .. name .. ".c", fill(SOURCE_TEXT, words))
  run("${CC:-cc} -std=c11 -fPIC -O1 -c -o %s %s", folder .. "/" .. name .. ".o", folder .. "/" .. name .. ".c")
  if form == "a" then return run("rm -f %s && ar rcs %s " .. quoted(folder) .. "/*.o", path, path) end
  text.write_symbols(folder .. "/symbols", name, host.EXPORTED)
  run("${CC:-cc} -shared -Wl,-z,nodelete -Wl,--version-script=%s -o %s " .. quoted(folder) .. "/*.o -lm -lpthread",
      folder .. "/symbols", path)
end

host.LINKED = {so = "has threads of its own", a = "is linked with -lgomp -lm",
                c = "is its source: cc -O3 -march=native -fopenmp, linked with -lm"}

return host
