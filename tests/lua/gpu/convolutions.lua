-- Convolutions on tensor cores by wgmma without a GPU: random ones of one to three dimensions, with strides, dilations,
-- paddings and groups, and transposed ones, channels last and first, and random draws of each. Each that asks for TMA
-- bulk tensor copies gets them for both operands, as the draw and the analytical model take it; the lowered function
-- computes the same in the interpreter, its source on the CPU (RUN_KERNELS), and NVRTC, where it is installed, compiles
-- it. An image with channels first whose lines no tile divides is the second operand of products, as it lies or copied
-- with channels last: results are stored by whole accesses, and TMA brings its pixels. An image of three channels is
-- copied with four.
-- usage: msched convolutions.lua RUN_KERNELS CONVOLUTIONS DRAWS SEED
local ms = require "msched"
local te = ms.te
local here = arg[0]:match "^.*/"
local tune, jobs_of = ms.load "search.tune", dofile(here .. "../jobs.lua")
local files = dofile(here .. "../../support/lua/files.lua")

local analytical = ms.load "search.cost.analytical"
local named = dofile(here .. "../../support/lua/workloads.lua").named
local TARGET = "cuda -arch=sm_90a"
local run_kernels, convolutions, draws, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3]),
  math.tointeger(arg[4])
local kernel_sources = dofile(here .. "../../support/lua/kernel_sources.lua")
local sources = kernel_sources(run_kernels, seed)
math.randomseed(seed)

local function one_of(list) return list[math.random(#list)] end

-- Images and their outputs, whose pixels fill tiles of 64 rows.
local OUTPUTS = {
  {{1, 64}, {2, 32}, {3, 64}, {8, 24}, {4, 128}},
  {{1, 8, 8}, {2, 8, 8}, {4, 6, 8}, {1, 16, 12}, {16, 2, 2}, {64, 1, 1}, {1, 2, 64}},
  {{1, 4, 4, 4}, {2, 2, 8, 4}, {3, 4, 4, 8}, {8, 2, 2, 2}},
}
local LAYOUTS = {{"NLC", "NCL"}, {"NHWC", "NCHW"}, {"NDHWC", "NCDHW"}}

local function list(t) return table.concat(t, "x") end

-- A transposed one, each phase of whose result fills tiles.
local function transposed()
  local output, type, last = one_of(OUTPUTS[2]), one_of {"float16", "bfloat16"}, math.random(4) > 1
  local ci, co = 16 * math.random(4), last and one_of {3, 32, 64, 128} or 64 * math.random(2)
  local o, image, filter = {stride = {}, pad = {}, accumulate = "float32"}, {output[1]}, {}
  for d = 1, 2 do
    o.stride[d] = math.random(d == 1 and 2 or 1, 2)
    filter[d] = o.stride[d] * math.random(2)
    o.pad[d] = math.random(0, (filter[d] - o.stride[d]) // 2)
    -- So that the result, (image - 1) * stride - 2 * pad + kernel, is of whole strides: `output` of them.
    if (filter[d] - 2 * o.pad[d]) % o.stride[d] ~= 0 then o.pad[d] = 0 end
    image[d + 1] = output[d + 1] + 1 - (filter[d] - 2 * o.pad[d]) // o.stride[d]
    if image[d + 1] < 1 or output[d + 1] == 1 then return transposed() end
  end
  o.layout = LAYOUTS[2][last and 1 or 2]
  table.insert(image, last and 4 or 2, ci)
  filter = last and {filter[1], filter[2], ci, co} or {co, ci, filter[1], filter[2]}
  local X, W = te.placeholder(image, type, "X"), te.placeholder(filter, type, "W")
  return te.func("convolution", {X, W, ms.ops.conv2d_transpose(X, W, o)}),
    string.format("transposed, %s, %s by %s, strides %s, paddings %s, %s", o.layout, list(image), list(filter),
                  list(o.stride), list(o.pad), type), last
end

-- A convolution by chance: the function, and what to call it.
local function convolution()
  if math.random(5) == 1 then return transposed() end
  local rank = math.random(3)
  local output, type, last = one_of(OUTPUTS[rank]), one_of {"float16", "bfloat16"}, math.random(4) > 1
  local groups = math.random(3) == 1 and math.random(2, 3) or 1
  local ci, co = 16 * math.random(groups > 1 and 3 or 6), 64 * (groups > 1 and groups or math.random(2))
  local image, filter = {output[1]}, {}
  local o = {stride = {}, dilation = {}, pad = {}, groups = groups, accumulate = "float32"}
  for d = 1, rank do
    local kernel = one_of(rank == 3 and {1, 2, 3} or {1, 2, 3, 3, 5})
    o.stride[d], o.dilation[d] = math.random(2), math.random(2)
    local reach = o.dilation[d] * (kernel - 1)
    o.pad[d] = math.random(0, reach // 2)
    image[#image + 1] = (output[d + 1] - 1) * o.stride[d] + reach + 1 - 2 * o.pad[d]
    filter[d] = kernel
    if image[#image] < 1 then return convolution() end
  end
  o.layout = LAYOUTS[rank][last and 1 or 2]
  table.insert(image, last and rank + 2 or 2, ci * groups)
  if last then table.move({ci, co}, 1, 2, #filter + 1, filter)
  else table.move(filter, 1, rank, 3); filter[1], filter[2] = co, ci end
  local X, W = te.placeholder(image, type, "X"), te.placeholder(filter, type, "W")
  local constant = math.random(2) == 1 and {weights = {"W"}} or nil
  return te.func("convolution", {X, W, ms.ops["conv" .. rank .. "d"](X, W, o)}, constant),
    string.format("%s, %s by %s, strides %s, dilations %s, paddings %s, %d groups, %s%s", o.layout, list(image),
                  list(filter), list(o.stride), list(o.dilation), list(o.pad), groups, type,
                  constant and ", constant" or ""), last
end

-- So many random draws of the sketches whose products are of warp groups, by three streams in turn; persistent blocks
-- are fewer than tiles.
local function drawn(func, number, count)
  local rules = sources:path "rules.lua"
  files.write(rules, [[
local ms, targets = require "msched", (require "msched").load "rules.targets"
local own = targets.tensor_core
ms.space(targets.changed(own, {
  multi_level_tiling_tensor_core = function(target)
    local p = own.multi_level_tiling_tensor_core(target)
    for _, g in ipairs(p.groups) do g.blocks = g.blocks and {2, 1, 0} end
    return p
  end,
}))]])
  local opened, sketches = tune.open(func, ms.target(TARGET), {files = {rules}}), {}
  for _, s in ipairs(opened.sketches) do
    if s.trace:json():find("wgmma_64", 1, true) then sketches[#sketches + 1] = s end
  end
  assert(#sketches > 0, "no sketch multiplies by warp groups")
  local pool = ms.pool(func, {jobs = 1, target = TARGET, files = {rules}})
  local made, _, script_error = pool:replay(jobs_of({sketches = sketches}, count, seed + number % 3), false)
  pool:close()
  assert(not script_error, script_error)
  return made
end

local written, asked, pixels, persistent, refused, packed = 0, 0, 0, 0, 0, 0

-- The source of a kernel whose constant is packed ahead computes what the kernel's own function does.
local function check_packed(kernel, built)
  local alone = kernel_sources(run_kernels, seed)
  alone:begin(kernel)
  built:export(alone:path "1.cu")
  local agree, said = alone:agree()
  assert(agree == 1, said)
  alone:finish()
end

-- One kernel, its notes, its source.
local function check(func, scheduled, number, what)
  local script, cut = scheduled:script(), scheduled:packing()
  local ok, kernel = pcall(ms.build, cut and cut.kernel or scheduled, {target = TARGET})
  if not ok then
    assert(tostring(kernel):find("blocks write the same elements", 1, true), kernel)
    refused = refused + 1
    return false
  end
  ms.check_lowered(func, scheduled, TARGET, 1)
  local path = sources:path(number .. (cut and ".packed.cu" or ".cu"))
  kernel:export(path)
  local text, notes = files.read(path), table.concat(kernel:notes(), "\n")
  if script:find('"software_pipeline_tensor_copies": 1', 1, true) then
    asked = asked + 1
    assert(not notes:find("TMA bulk tensor copy", 1, true), what .. ": " .. notes)
    assert(not text:find("ms_copy_", 1, true), what .. ": threads copy an operand")
    if text:find("ms_im2col_copy_", 1, true) then pixels = pixels + 1 end
    if script:match '"software_pipeline_blocks": [12]' and not notes:find("one tile after the other", 1, true) then
      persistent = persistent + 1
    end
  end
  sources:compile(kernel)
  if cut then
    check_packed(cut.kernel, kernel)
    os.remove(path)
    packed = packed + 1
  end
  return not cut
end

local machine = analytical.machine(ms.target(TARGET))

local OFF = {software_pipeline_tensor_copies = 1, software_pipeline_producer = 1, software_pipeline_blocks = 1}

-- The estimate, where all threads copy.
local function by_threads(func, trace)
  for _, d in ipairs(trace:draws()) do
    local off = OFF[d.annotates]
    if off then trace = trace:with_decision(d.index, {off}) end
  end
  return (ms.estimate(func, trace, machine))
end

-- Draws that are not held to what TMA brings: the estimate takes those for TMA copies that lowering makes so.
local function check_estimates()
  local X, W = te.placeholder({16, 14, 14, 256}, "float16", "X"), te.placeholder({3, 3, 256, 256}, "float16", "W")
  local func = te.func("convolution", {X, W, ms.ops.conv2d(X, W, {pad = 1, accumulate = "float32"})})
  local sketches, brought, not_brought = {}, 0, 0
  for _, s in ipairs(tune.open(func, ms.target(TARGET), {}).sketches) do
    local held = s.trace:undecided():json()
    local free, count = held:gsub('%["Assert",%[%],%["%d+ %% %b() == 0"%],%[%]%],', "")
    if count > 0 then sketches[#sketches + 1] = {trace = ms.read_trace(free)} end
  end
  local pool = ms.pool(func, {jobs = 1, target = TARGET})
  for _, c in ipairs((pool:replay(jobs_of({sketches = sketches}, 40, seed), false))) do
    local scheduled = c and ms.apply(func, c.trace):func()
    if c and scheduled:script():find('"software_pipeline_tensor_copies": 1', 1, true) then
      local notes = table.concat(ms.build(scheduled, {target = TARGET}):notes(), "\n")
      local falls_back = notes:find("is a TMA bulk tensor copy", 1, true) ~= nil
      if falls_back then not_brought = not_brought + 1 else brought = brought + 1 end
      assert((ms.estimate(func, c.sketch_trace, machine) == by_threads(func, c.sketch_trace)) == falls_back, notes)
    end
  end
  pool:close()
  assert(brought > 9 and not_brought > 1)
end

-- Whether a copy of the trace has one element at once, and no other choice.
local function fetches_one(trace)
  for _, d in ipairs(trace:draws()) do
    if d.annotates == "meta_schedule.cooperative_fetch" and table.concat(d.attrs[1], " ") == "1" then return true end
  end
end

-- A draw of each kind that stores whole vectors: of the image as it lies, and of its copy, which TMA brings, in the
-- estimate, too. Vectors are drawn where there are some; neighbours along pixels multicast the filter.
local function check_channels_first()
  local func = named("conv2d", "4 8 8 16 64 3 1 1 layout=NCHW dtype=float16")
  sources:begin(func)
  local found, clusters = {}, false
  for number, c in ipairs(drawn(func, 0, 160)) do
    local scheduled, path = c and ms.apply(func, c.trace):func(), sources:path(number .. ".cu")
    clusters = clusters or c and scheduled:script():find('"software_pipeline_multicast": 2', 1, true) ~= nil
    local kernel = c and not (found[1] and found[3]) and ms.build(scheduled, {target = TARGET})
    if kernel then
      kernel:export(path)
      local text, kernels, notes = files.read(path), #kernel:resources(), table.concat(kernel:notes(), "; ")
      local by_tma, own = text:find("ms_im2col_copy_", 1, true) ~= nil, c.sketch_trace
      assert(not notes:find("is not vectorized", 1, true), notes)
      assert(kernels == 3 or fetches_one(own), "vectors are drawn that the image has not")
      assert(not by_tma or ms.estimate(func, own, machine) ~= by_threads(func, own), "the estimate has threads copy")
      if text:find("*(uint4 *)(conv2d + ", 1, true) and not found[kernels] and by_tma == (kernels == 3) then
        found[kernels] = true
        ms.check_lowered(func, scheduled, TARGET, 1)
        sources:compile(kernel)
      else
        os.remove(path)
      end
    end
    if found[1] and found[3] and clusters then break end
  end
  assert(found[1] and found[3], "no draw is of the image as it lies, or of its copy by TMA")
  assert(clusters, "no draw has clusters")
  local agree, said = sources:agree()
  assert(agree == 2, said)
  sources:finish()
end

-- One draw of the only sketch whose trace has all of these computes the same; gives its source, and the kernel.
local function check_only_sketch(func, target, ...)
  local sketches = {}
  for _, s in ipairs(tune.open(func, ms.target(target), {}).sketches) do
    local has = true
    for _, what in ipairs {...} do has = has and s.trace:json():find(what, 1, true) end
    if has then sketches[#sketches + 1] = s end
  end
  assert(#sketches == 1, "one sketch has " .. table.concat({...}, " and "))
  local pool = ms.pool(func, {jobs = 1, target = target})
  local c = pool:replay(jobs_of({sketches = sketches}, 1, seed), false)[1]
  pool:close()
  sources:begin(func)
  local scheduled, path = ms.apply(func, c.trace):func(), sources:path "1.cu"
  local kernel = ms.build(scheduled, {target = target})
  kernel:export(path)
  local text = files.read(path)
  ms.check_lowered(func, scheduled, target, 0)
  local agree, said = sources:agree()
  assert(agree == 1, said)
  sources:finish()
  return text, kernel
end

-- The same on sm_80, by mma.sync: pixels of the copy are columns.
local function check_pixels_by_columns()
  check_only_sketch(named("conv2d", "1 4 8 16 16 3 1 1 layout=NCHW dtype=float16"), "cuda -arch=sm_80",
                    "warp_mma_sync_16x16x16_f16f16f32_trans")
end

-- An image of three channels: kernels of their own copy it and the filter with a channel more, and threads the pixels
-- of that, two elements or four at once.
local function check_few_channels()
  local text, kernel = check_only_sketch(named("conv2d", "1 8 8 3 16 3 1 1 dtype=float16"), TARGET,
    "wgmma_store_64x16_f32", "[1,1,1,1,1,1,4]")
  assert(#kernel:resources() == 3 and text:find "[*]%(uint[%w_]+ [*]%)%(pad_pad_reindex",
         "an image of few channels is copied element by element")
end

-- Groups whose channels fill no rows of a product on sm_80: their draws are accepted, and store as they should.
local function check_padded_groups()
  local target, o = "cuda -arch=sm_80", {layout = "NCHW", groups = 2, accumulate = "float32"}
  local X, W = te.placeholder({1, 16, 8, 8}, "float16", "X"), te.placeholder({48, 8, 1, 2}, "float16", "W")
  local func, sketches = te.func("convolution", {X, W, ms.ops.conv2d(X, W, o)}), {}
  for _, s in ipairs(tune.open(func, ms.target(target), {}).sketches) do
    if s.trace:json():find("warp_mma_sync", 1, true) then sketches[#sketches + 1] = s end
  end
  local pool, accepted = ms.pool(func, {jobs = 1, target = target}), nil
  for _, c in ipairs((pool:replay(jobs_of({sketches = sketches}, 40, seed), false))) do accepted = accepted or c end
  pool:close()
  assert(accepted, "no draw for tensor cores is accepted")
  ms.check_lowered(func, ms.apply(func, accepted.trace):func(), target, 0)
end

check_estimates()
check_channels_first()
check_pixels_by_columns()
check_few_channels()
check_padded_groups()
for number = 1, convolutions do
  local func, what, last = convolution()
  sources:begin(func)
  local here_written, here_asked, here_packed, seen = 0, asked, packed, {}
  for i, c in ipairs(drawn(func, number, draws)) do
    if c and not seen[c.hash] then
      seen[c.hash] = true
      if check(func, ms.apply(func, c.trace):func(), i, what) then here_written = here_written + 1 end
    end
  end
  assert(here_written > 0 or packed > here_packed, what)
  if here_written > 0 then
    local agree, said = sources:agree()
    assert(agree == here_written, what .. "\n" .. said)
  end
  assert(not last or draws < 6 or asked > here_asked, what .. ": no draw asks for TMA")
  written = written + here_written
  sources:finish()
end
assert(convolutions < 4 or pixels > 0, "no kernel copies pixels")
assert(convolutions < 20 or persistent > 0, "no kernel has persistent blocks")
assert(refused * 20 <= written, "many draws are refused")
print(string.format("%d convolutions, %d kernels agree, %d of them with packed filters", convolutions, written + packed,
                    packed))
print(string.format("%d by TMA, %d of pixels, %d persistent; %d refused", asked, pixels, persistent, refused))
print(sources.missing and "convolutions: NVRTC skipped: " .. sources.missing or "convolutions: ok")
