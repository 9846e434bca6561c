-- What calls a plan's kernels of the host in C: in order, and lanes side by side.
local ms = msched
local memory, text = ms.load "lua.net.memory", ms.load "lua.net.export.c_text"
local calls = {}

-- What runs lanes at the same time, each on a thread where there are as many; gives the status of the first that has
-- one. An archive and a library ask for threads as kernels do; source is compiled with OpenMP or without.
local LANES_TEXT = [[
typedef int lane(const char *c, const void *const *x, void *const *y, char *w);
enum { MOST_LANES = @LANES@ };

]]
local OF_SOURCE = [[
static int side_by_side(lane *const *lanes, int count, const char *c, const void *const *x, void *const *y, char *w) {
  int statuses[MOST_LANES] = {0};
#ifdef _OPENMP
#pragma omp parallel for num_threads(count) schedule(static, 1)
#endif
  for (int i = 0; i < count; i++) statuses[i] = lanes[i](c, x, y, w);
  for (int i = 0; i < count; i++)
    if (statuses[i]) return statuses[i];
  return 0;
}

]]
local OF_LIBRARY = [[
void GOMP_parallel(void (*start)(void *), void *closure, unsigned count, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);

struct side_by_side {
  lane *const *lanes;
  int count;
  const char *c;
  const void *const *x;
  void *const *y;
  char *w;
  int statuses[MOST_LANES];
};
static void run_lanes(void *closure) {
  struct side_by_side *s = closure;
  for (int i = omp_get_thread_num(); i < s->count; i += omp_get_num_threads()) s->statuses[i] = s->lanes[i](s->c, s->x, s->y, s->w);
}
static int side_by_side(lane *const *lanes, int count, const char *c, const void *const *x, void *const *y, char *w) {
  struct side_by_side s = {lanes, count, c, x, y, w, {0}};
  GOMP_parallel(run_lanes, &s, (unsigned)count, 0);
  for (int i = 0; i < count; i++)
    if (s.statuses[i]) return s.statuses[i];
  return 0;
}

]]
local LANE_TEXT = [[
static int @NAME@(const char *c, const void *const *x, void *const *y, char *w) {
  int status;
  (void)c, (void)x, (void)y;
@CALLS@  return 0;
}

]]

-- Where a value is, as C has it.
local function place_text(slot, offsets)
  if slot.kind == "input" then return string.format("(void *)x[%d]", slot.index - 1) end
  if slot.kind == "output" then return string.format("y[%d]", slot.index - 1) end
  if slot.kind == "constant" then return string.format("(void *)(c + %d)", offsets[slot.name]) end
  return string.format("w + %d", slot.offset)
end

local function at(self, argument)
  if type(argument) == "table" then return string.format("(void *)(c + %d)", self.offsets[argument]) end
  return place_text(self.placed.slots[argument], self.offsets)
end

local function look_at(self, ranges)
  for _, range in ipairs(ranges) do
    local value = self.values[range.input]
    if self.placed.slots[range.input] and not value.array then
      self.lines[#self.lines + 1] = text.check(range, value, at(self, range.input), self.checked)
    end
  end
end

-- workspace: the place of the kernel's own.
local function call_text(self, each, workspace)
  local g, args = each.group, {}
  for i, argument in ipairs(each.arguments) do args[i] = at(self, argument) end
  if g.alias then
    return string.format("  memcpy(%s, %s, %d);\n", args[2], args[1], memory.bytes(self.values[g.outputs[1]]))
  end
  return string.format("  if ((status = %s((void *[]){%s}, w + %d))) return status;\n", self.symbols[g.kernel],
                       table.concat(args, ", "), workspace)
end

local function add_in_order(self, lane)
  for _, each in ipairs(lane) do
    look_at(self, each.group.ranges)
    self.lines[#self.lines + 1] = call_text(self, each, self.placed.arena)
    self.most = math.max(self.most, self.bytes[each.group.kernel] or 0)
  end
end

-- Each lane works in bytes of its own.
local function add_side_by_side(self, number, step)
  local names, workspace = {}, self.placed.arena
  for k, lane in ipairs(step) do
    local parts, most = {}, 0
    for i, each in ipairs(lane) do
      parts[i] = call_text(self, each, workspace)
      most = math.max(most, self.bytes[each.group.kernel])
    end
    names[k] = string.format("step_%d_lane_%d", number, k)
    self.lanes[#self.lanes + 1] = text.fill(LANE_TEXT, {NAME = names[k], CALLS = table.concat(parts)})
    workspace = workspace + memory.padded(most)
  end
  self.most, self.most_lanes = math.max(self.most, workspace - self.placed.arena), math.max(self.most_lanes, #step)
  self.lanes[#self.lanes + 1] =
    string.format("static lane *const step_%d[] = {%s};\n\n", number, table.concat(names, ", "))
  self.lines[#self.lines + 1] =
    string.format("  if ((status = side_by_side(step_%d, %d, c, x, y, w))) return status;\n", number, #step)
end

local function add_copies(self)
  for _, copy in ipairs(self.placed.copies) do
    self.lines[#self.lines + 1] = string.format("  memcpy(y[%d], %s, %d);\n", copy.index - 1, at(self, copy.from),
                                                memory.bytes(self.values[copy.from]))
  end
end

-- calls.text(plan, {offsets = of constants, symbols = of functions, bytes = that each function works in, is_source =
-- bool}): {calls = what runs them in order, lanes = functions that it calls, checks = functions that look at indices,
-- bytes = that kernels work in, behind the arena}.
function calls.text(opened, words)
  local self = {placed = opened.placed, values = opened.prepared.state.values, offsets = words.offsets,
                symbols = words.symbols, bytes = words.bytes, lines = {}, lanes = {}, checked = {}, most = 64,
                most_lanes = 0}
  look_at(self, opened.net.narrow)
  for number, step in ipairs(opened.steps) do
    if #step > 1 then add_side_by_side(self, number, step) else add_in_order(self, step[1]) end
  end
  add_copies(self)
  local lanes = table.concat(self.lanes)
  if lanes ~= "" then
    lanes = text.fill(LANES_TEXT, {LANES = self.most_lanes}) .. (words.is_source and OF_SOURCE or OF_LIBRARY) .. lanes
  end
  return {calls = table.concat(self.lines), lanes = lanes, checks = text.checks(self.checked), bytes = self.most}
end

return calls
