-- A schedule of a whole function, composed of one of each of its groups (groups.lua). A group's trace refers to blocks
-- by their names, and to what its instructions give. Each instruction is done to the group's function and to the whole,
-- side by side, and what it gives there is kept beside what it gives here. So look-ups that see all of a function (the
-- children of the root, consumers) find in the whole the blocks that they find in the group, and a copy of a buffer is
-- for the group's readers alone. Postprocessors, which walk all of a function, are not run on the whole: a trace has
-- the instructions that they did, and these are of the group's blocks.
local compose = {}

local FINDS =
  {get_sblock = true, get_child_blocks = true, get_producers = true, get_consumers = true, get_output_blocks = true}

local Pair = {} -- of handles: {group, whole}

local function is_pair(x) return getmetatable(x) == Pair end
local function pair(group, whole) return setmetatable({group = group, whole = whole}, Pair) end

-- Arguments as one side has them, however deep in lists. The number of a draw is of the trace it came from.
local function side(value, which)
  if is_pair(value) then return value[which] end
  if type(value) ~= "table" then return value end
  local list = {}
  for k, v in pairs(value) do if k ~= "draw" then list[k] = side(v, which) end end
  return list
end

local function arguments(given, which)
  local list = {n = given.n}
  for i = 1, given.n do list[i] = side(given[i], which) end
  return list
end

-- ---- A group and the whole ---------------------------------------------------------------------------------------

-- {group, whole: schedules; names: of the group's blocks in the whole; blocks: pairs of them that instructions gave}
local Both = {}
Both.__index = Both

-- The block of the whole that is this block of the group: what an instruction gave, or what the function has.
function Both:whole_block(block)
  local name = self.group:block_name(block)
  if name == self.group:root_block() then return self.whole:get_sblock(self.whole:root_block()) end
  for _, p in ipairs(self.blocks) do
    local alive, known = pcall(self.group.block_name, self.group, p.group)
    if alive and known == name then return p.whole end
  end
  local found = self.whole:get_sblock(self.names[name] or name)
  table.insert(self.blocks, pair(block, found))
  return found
end

function Both:is_root(handle)
  local ok, name = pcall(self.group.block_name, self.group, handle)
  return ok and name == self.group:root_block()
end

-- The group's blocks that read the buffer which a block has as its region of this number, as blocks of the whole.
function Both:readers(block, number)
  local buffer, list = self.group:reads(block)[number + 1].buffer, {}
  for _, name in ipairs(self.group:block_names()) do
    local reader = name ~= self.group:root_block() and self.group:get_sblock(name)
    for _, r in ipairs(reader and self.group:reads(reader) or {}) do
      if r.buffer == buffer then
        list[#list + 1] = self:whole_block(reader)
        break
      end
    end
  end
  return list
end

-- What others use too cannot be laid out for the group alone.
function Both:check_own(block, number, is_write)
  local buffer = self.group[is_write and "writes" or "reads"](self.group, block)[number + 1].buffer
  for _, p in ipairs(self.group:workload():params()) do
    if p.name == buffer then error(string.format("transform_layout changes `%s`, which others use too", buffer), 0) end
  end
end

-- The buffers that a block reads which others than the group's write, where it reads the group's too: its producers
-- there are some of those in the whole.
function Both:given(block, whole_block)
  local is_param, names = {}, {}
  for _, p in ipairs(self.group:workload():params()) do is_param[p.name] = true end
  local reads, whole_reads = self.group:reads(block), self.whole:reads(whole_block)
  if #self.whole:producers(whole_block) == #self.group:producers(block) then return names end
  for i, r in ipairs(reads) do if is_param[r.buffer] then names[#names + 1] = whole_reads[i].buffer end end
  return names
end

-- A consumer moves to its producers of the group; what others give it is there by then.
function Both:move_to_producers(method, block, whole_block, list)
  local names = self:given(block, whole_block)
  if #names > 0 then self.whole:annotate(whole_block, "msched.given", names) end
  self.whole[method](self.whole, table.unpack(list, 1, list.n))
  if #names > 0 and method == "reverse_compute_at" then self.whole:unannotate(whole_block, "msched.given") end
  return {n = 0}
end

-- What an instruction does to the whole; what it notes on the root is the whole function's, and is looked at in the
-- end.
function Both:do_to_whole(method, given)
  local list = arguments(given, "whole")
  if method == "enter_postproc" then return {n = 0} end
  if (method == "annotate" or method == "unannotate") and self:is_root(given[1].group) then return {n = 0} end
  if method == "cache_read" and (not given[4] or #given[4] == 0) then
    list[4], list.n = self:readers(given[1].group, given[2]), 4
  elseif method == "transform_layout" then
    self:check_own(given[1].group, given[3], given[4] == 1)
  elseif method == "reverse_compute_at" or method == "reverse_compute_inline" then
    return self:move_to_producers(method, given[1].group, list[1], list)
  end
  return table.pack(self.whole[method](self.whole, table.unpack(list, 1, list.n)))
end

local BRANCHES = {if_ = true, else_ = true, for_ = true, end_ = true}

function Both:call(method, given)
  if method == "assert" then return end -- of decisions, which are taken as they were made
  if BRANCHES[method] then error(string.format("its trace has %s, which is not composed with others", method), 0) end
  local before = not FINDS[method] and self:do_to_whole(method, given)
  local list = arguments(given, "group")
  local made = table.pack(self.group[method](self.group, table.unpack(list, 1, list.n)))
  for i = 1, made.n do
    local handle = made[i]
    made[i] = pair(handle, before and before[i] or self:whole_block(handle))
    if before and pcall(self.group.block_name, self.group, handle) then table.insert(self.blocks, made[i]) end
  end
  return table.unpack(made, 1, made.n)
end

-- What a group's trace leaves on the root holds for the whole function; where two leave different things it holds for
-- neither.
function Both:keep_notes()
  local notes, root = self.group:annotations(self.group:get_sblock(self.group:root_block())), nil
  for _, key in ipairs(msched.sorted_keys(notes)) do
    root = root or self.whole:get_sblock(self.whole:root_block())
    local other = self.whole:annotation(root, key)
    if other ~= nil and other ~= notes[key] then
      error(string.format("the root is annotated `%s` in two ways", key), 0)
    end
    if other == nil then self.whole:annotate(root, key, notes[key]) end
  end
end

-- ---- The whole ---------------------------------------------------------------------------------------------------

-- Does to the schedule `whole` what the trace does to the group's function. names: of its blocks, in the whole.
local function add(whole, func, trace, names)
  local both = setmetatable({group = msched.schedule(func), whole = whole, names = names, blocks = {}}, Both)
  local script = setmetatable({}, {__index = function(_, method)
    return function(_, ...) return both:call(method, table.pack(...)) end
  end})
  local chunk = assert(load(trace:text(), "=trace", "t", {}))
  chunk()(msched, script, {})
  both:keep_notes()
end

-- The instances of all groups in order of text: {group, names}.
local function instances_of(cut)
  local list = {}
  for _, group in ipairs(cut) do
    for _, instance in ipairs(group.instances) do
      local names = {}
      for i, name in ipairs(group.blocks) do names[name] = instance.blocks[i] end
      list[#list + 1] = {group = group, names = names, first = instance.first}
    end
  end
  table.sort(list, function(a, b) return a.first < b.first end)
  return list
end

-- The schedule of the function that has of each group the trace that choose(group) gives. nil, why and the group, where
-- one cannot be done to the whole.
function compose.schedule(func, cut, choose)
  local whole = msched.schedule(func)
  for _, instance in ipairs(instances_of(cut)) do
    local ok, message = pcall(add, whole, instance.group.func, choose(instance.group), instance.names)
    if not ok then return nil, string.format("group %s: %s", instance.group.name, tostring(message)), instance.group end
  end
  return whole
end

return compose
