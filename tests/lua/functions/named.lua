-- Operators and suites by name: every one makes its function, arguments are read in their order and by name, and what
-- cannot be is refused by one message that names the argument.
local ms = require "msched"
local refuses = dofile(arg[0]:match "^.*/" .. "../refuses.lua")
local named, suites = ms.load "lua.lib.ops.named", ms.load "lua.lib.ops.suites"
local func = ms.ops.func

local function shapes(f)
  local texts = {}
  for i, p in ipairs(f:params()) do texts[i] = table.concat(p.shape, "x") .. " " .. p.type end
  return table.concat(texts, ", ")
end
local function expect(want, f) assert(shapes(f) == want, shapes(f)) end

-- Without arguments each operator is one that can be; each operator of the module is named, but for those of functions.
for _, op in ipairs(named.list) do
  local f = func(op.name)
  assert(f:name():sub(1, #op.name) == op.name and f:hash() == func(op.name, {}):hash(), op.name)
  for _, argument in ipairs(op.arguments) do -- what is said is as what is not
    assert(func(op.name, {argument.name .. "=" .. argument.default}):hash() == f:hash(), argument.name)
  end
end
for _, name in ipairs(ms.sorted_keys(ms.ops)) do
  assert(named.list[name] or name == "map" or name == "func" or name == "suite", "ops." .. name .. " is not named")
end

-- Arguments as words, as values, in their order, by name.
local conv = func("conv2d", {"1", "56", "56", "64", "128", "3", "stride=2", "pad=1"})
expect("1x56x56x64 float32, 3x3x64x128 float32, 1x28x28x128 float32", conv)
assert(conv:name() == "conv2d_1x56x56x64x128x3_stride2_pad1", conv:name())

-- A type and a constancy of the second operand.
local mixed = func("matmul", {4, 8, 16, dtype = "uint8", weight_dtype = "int8"})
expect("4x16 uint8, 16x8 int8, 4x8 int32", mixed)
assert(mixed:name() == "matmul_4x8x16_uint8_int8" and not mixed:script():find "layout_free_buffers")
for _, op in ipairs(named.list) do
  if op.arguments.constant and op.arguments.weight_dtype and not op.name:find "^quantized" then
    local f = func(op.name, {dtype = "int8", constant = true})
    assert(f:script():find('"layout_free_buffers": [1]', 1, true) and f:name():find "_int8_constanttrue$", f:name())
    assert(f:params()[2].type == "int8"
           and func(op.name, {dtype = "bfloat16", weight_dtype = "float16"}):params()[2].type == "float16")
  end
end
assert(conv:hash() == func("conv2d", {1, 56, 56, 64, 128, 3, 2, 1}):hash())
-- they share records
assert(conv:hash() == named.func("conv2d", {1, 56, 56, 64, 128, 3, 2, 1}, "of_another_name"):hash())
assert(conv:hash() == func("conv2d", {co = 128, stride = 2, pad = 1}):hash())
assert(conv:hash() == func("conv2d", {"co=128", "pad=1", stride = {2, 2}}):hash())
expect("2x4x9x7 float16, 6x2x3x1 float16, 2x6x7x7 float32",
       func("conv2d", {2, 9, 7, 4, 6, "3x1", groups = 2, layout = "NCHW", dtype = "float16"}))
expect("1x8x4 int8, 3x4x6 int8, 1x6x6 int32", func("conv1d", {1, 8, 4, 6, dtype = "int8"}))
expect("1x8x4 int8, 3x4x6 int8, 1x6x6 float32", func("conv1d", {1, 8, 4, 6, dtype = "int8", accumulate = "float32"}))
expect("1x4x4x4x4x2 float32, 3x3x4x4x2x3 float32, 1x2x2x4x4x3 float32", func("conv2d_capsule", {1, 4, 4, 2, 3}))
expect("2x5x3 float32, 2x7x5 float32, 2x3x7 float32",
       func("batch_matmul", {2, 3, 7, 5, transpose_a = true, transpose_b = true}))
expect("4x6x8 float32, 4 float32", func("sum", {"4x6x8", "2,-1"}))
expect("4x6x8 float32,  float32", func("sum", {"4x6x8", "all"}))
expect("4x6x8 float32, 4x1x8 int32, 4x1x8 float32", func("argmax", {{4, 6, 8}, 2, true}))
expect("4x6x8 float32, 8x6x4 float32", func("transpose", {"4x6x8", "3,2,1"}))
expect("4x6x8 float32, 24x8 float32", func("reshape", {"4x6x8", "-1x8"}))
expect("1x8x8x3 float32, 1x4x4x3 float32", func("avg_pool", {1, 8, 8, 3, include_pad = "true"}))
assert(func("softmax", {"4x6", "axis=-2"}):name() == "softmax_4x6_axisminus2")

refuses("there is no operator `conv9d`; `msched help ops` lists them", func, "conv9d")
for _, case in ipairs {
  {"conv2d: h is 0; expected: an integer of at least 1", "conv2d", {1, 0}},
  {"conv2d: h is x; expected: an integer of at least 1", "conv2d", {"1", "x"}},
  {"conv2d: n is -1;", "conv2d", {"n=-1"}},
  {"conv2d: n is 1.5;", "conv2d", {1.5}},
  {"conv2d: n is given twice", "conv2d", {1, "n=2"}},
  {"conv2d: n is given twice", "conv2d", {1, n = 2}},
  {"conv2d: there is no argument `strid`; there are n, h, w, ci, co, kernel, stride, pad", "conv2d", {"strid=2"}},
  {"conv2d: it takes 15 arguments; `16` is one more", "conv2d",
   {1, 9, 9, 4, 4, 3, 1, 0, 1, 1, "NHWC", "float32", "auto", "auto", false, 16}},
  {"matmul: weight_dtype is int9; expected: auto, or a type of elements", "matmul", {4, 4, 4, weight_dtype = "int9"}},
  {"matmul: constant is W; expected: true or false", "matmul", {4, 4, 4, constant = "W"}},
  {"conv2d: kernel 9 reaches over 9 elements, with dilation 1, but h is 5, padded 7", "conv2d",
   {1, 5, 56, 4, 4, 9, pad = 1}},
  {"conv2d: kernel 3 reaches over 9 elements, with dilation 4, but w is 8, padded 8", "conv2d",
   {1, 56, 8, dilation = 4}},
  {"conv2d: groups is 3, which does not divide the 64 channels of X", "conv2d", {groups = 3}},
  {"conv2d: groups is 128, which does not divide the 64 channels of X", "conv2d", {groups = 128}},
  {"conv2d: stride is 0; expected: an integer of at least 1, or one for each dimension", "conv2d", {stride = 0}},
  {"conv2d: stride has 3 numbers for 2 dimensions", "conv2d", {stride = "1x1x1"}},
  {"conv2d: kernel has 3 numbers for 2 dimensions", "conv2d", {kernel = "1x1x1"}},
  {"conv2d: layout `HWNC`: there are NHWC and NCHW", "conv2d", {layout = "HWNC"}},
  {"conv2d: dtype is float8; expected: a type of elements", "conv2d", {dtype = "float8"}},
  {"X: 2147483647 x 2147483647 x 56 x 64 of float32 are", "conv2d", {2147483647, 2147483647}},
  {"conv2d_transpose: pad 9 leaves nothing of h", "conv2d_transpose", {pad = 9}},
  {"max_pool: pad is 2; it is less than the kernel", "max_pool", {pad = 2}},
  {"sum: shape is 4x0; expected: extents of at least 1", "sum", {"4x0"}},
  {"sum: axis 3: there are dimensions 1 to 2", "sum", {"4x4", 3}},
  {"softmax: axis 1024: there are dimensions 1 to 1, or -1 to -1 (a shape is one word: 512x1024)", "softmax",
   {"512", "1024"}},
  {"sum: axes is 1;2; expected: integers", "sum", {"4x4", "1;2"}},
  {"sum: keepdims is yes; expected: true or false", "sum", {"4x4", 1, "yes"}},
  {"gelu: X is of int32; floats are expected", "gelu", {"4x4", "int32"}},
  {"reshape: 4x6 has 24 elements, which 5x-1 cannot hold", "reshape", {"4x6", "5x-1"}},
  {"layer_norm: last is 3, but shape has 2 dimensions", "layer_norm", {"4x6", 3}},
  {"rms_norm: last is 3, but shape has 2 dimensions", "rms_norm", {"4x6", 3}},
  {"rotary: turned is 5; an even number", "rotary", {"4x6", 5}},
  {"rotary: shape has 1 dimensions", "rotary", {"4"}},
  {"matmul: the arguments are a list", "matmul", 3},
  {"conv2d: `3` is no argument: number 2 of the list is missing", "conv2d", {1, nil, 5}},
  {"conv2d: kernel is 3xnilx3; expected", "conv2d", {kernel = {3, nil, 3}}},
  {"conv2d: n is a table; expected: an integer", "conv2d", {{{}}}},
} do refuses(case[1], func, case[2], case[3]) end

-- ---- Suites ----------------------------------------------------------------------------------------------------

local function names(list)
  local all = {}
  for i, f in ipairs(list) do all[i] = f:name() end
  return table.concat(all, " ")
end
assert(#suites.members "ops" == 11 * 4 * 2 and #suites.members "subgraphs" == 3 * 4 * 2
       and #suites.members "products" == 3 * 4 * 2 and #suites.members "ops_int8" == 14 * 2
       and #suites.members "bert" == 8 * 2 and #suites.members "attention" == 5 * 2
       and #suites.members "llm_decode" == 18 * 2)
expect("16x56x56x64 uint8, 1x1x64x64 int8, 16x56x56x64 int32", ms.ops.suite("ops_int8", {"C2D_1_b16"})[1])
expect("192x128x64 bfloat16, 192x64x128 bfloat16, 192x128x128 float32", ms.ops.suite("ops_bf16", {"GMM_3_b16"})[1])
expect("1x11008 float32, 4096x344x16 uint8, 4096x344 float32, 1x4096 float32",
       ms.ops.suite("llm_decode", {"I4_3_b1"})[1])
expect("16x4096 float32, 11008x128x32 uint8, 11008x128 float32, 16x11008 float32",
       ms.ops.suite("llm_decode", {"I8_2_b16"})[1])
expect("2048x3072 float32, 768x3072 float32, 2048x768 float32", ms.ops.suite("bert", {"DNS_4_b16"})[1])
local seen = {}
for _, suite in ipairs(suites.names) do
  for i, f in ipairs(ms.ops.suite(suite)) do
    local m = suites.members(suite)[i]
    assert(f:name() == m.name and f:params()[1].shape[1] % m.batch == 0 and next(f:work().operations), m.name)
    assert(not seen[f:hash()], m.name .. " is also " .. tostring(seen[f:hash()]))
    seen[f:hash()] = m.name
  end
end
assert(names(ms.ops.suite("ops", {"C2D", "batch=16"})) == "C2D_1_b16 C2D_2_b16 C2D_3_b16 C2D_4_b16")
assert(names(ms.ops.suite("ops", {"SFM_2_b1", "NRM", "batch=1"})) == "NRM_1_b1 NRM_2_b1 NRM_3_b1 NRM_4_b1 SFM_2_b1")
expect("16x56x56x64 float32, 1x1x16x64 float32, 16x56x56x64 float32", ms.ops.suite("ops", {"GRP_2_b16"})[1])
expect("16x56x56x64 float32, 3x3x64x128 float32, 128 float32, 128 float32, 128 float32, 16x28x28x128 float32",
       ms.ops.suite("subgraphs", {"CBR_2_b16"})[1])
expect("8192x512 float32, 8192x512 float32", ms.ops.suite("ops", {"SFM_2_b16"})[1])
assert(names(ms.ops.suite("ops", {"dtype=float16", "C2D_3_b1", "DEP_1_b1"})) == "C2D_3_b1_float16 DEP_1_b1_float16")
expect("1x14x14x256 float16, 3x3x256x256 float16, 1x14x14x256 float32",
       ms.ops.suite("ops", {"C2D_3_b1", "dtype=float16"})[1])
refuses("suite:products: F16_1_b1 has a type of its own, so that dtype=int8 cannot be chosen", ms.ops.suite, "products",
        {"F16", "dtype=int8"})
refuses("dtype is float17; expected: a type of elements", ms.ops.suite, "ops", {"C2D_3_b1", "dtype=float17"})
refuses("there is no suite `all`; there are ops, subgraphs, products, ops_int8, ops_bf16, bert, attention, llm_decode",
        ms.ops.suite, "all")
refuses("suite:ops: `batch=2` is none of its codes or names", ms.ops.suite, "ops", {"batch=2"})
refuses("suite:ops: `CBR` is none of its codes or names", ms.ops.suite, "ops", {"CBR"})
refuses("suite:ops: a table is no word", ms.ops.suite, "ops", {{}})
refuses("suite:ops: the words are a list, not a string", ms.ops.suite, "ops", "C2D")

-- ---- As words of a command line, with arguments of their own --------------------------------------------------------

local words = ms.load "lua.lib.ops.words"
local function functions(word, rest) return words.functions(words.read(word), rest or {}) end
assert(not words.read "conv.lua" and not words.read "opt:conv2d(1)" and not words.read "/tmp/ops:conv2d"
       and not words.read "C:relu")
for word, same in pairs {
  ["ops:conv2d(1,56,56,64,128,3,stride=2,pad=1)"] = conv, [" ops:relu"] = false,
  ["ops:conv2d( 1, 56 ,56,64,128,3 , stride = 2,pad=1x1 ) "] = conv,
  ["ops:conv2d(co=128,stride=[2,2],pad=(1,1))"] = conv,
  ["ops:transpose(4x6x8,order=[3,2,1])"] = func("transpose", {"4x6x8", "3,2,1"}),
  ["ops:transpose((4,6,8),[3, 2,1])"] = func("transpose", {"4x6x8", "3,2,1"}),
  ["ops:sum([4,6,8],all)"] = func("sum", {"4x6x8", "all"}),
  ["ops:softmax(4x6,axis=-2)"] = func("softmax", {"4x6", "axis=-2"}), ["ops:relu()"] = func "relu",
  ["ops:relu( )"] = func "relu", ["ops:relu"] = func "relu",
} do
  if same then assert(functions(word)[1]:hash() == same:hash(), word) else assert(not words.read(word), word) end
end
assert(functions("ops:relu(8)", {"16"})[1]:name() == "relu_8" and functions("ops:relu", {"16"})[1]:name() == "relu_16")
assert(names(functions "suite:ops(C2D, batch=16)") == "C2D_1_b16 C2D_2_b16 C2D_3_b16 C2D_4_b16"
       and #functions "suite:ops()" == 88)
assert(names(functions("suite:ops", {"C2D_1_b1"})) == "C2D_1_b1")
for word, message in pairs {
  ["ops:conv2d(1,56"] = "`ops:conv2d(1,56`, column 11: `(` is not closed; a shell takes it as one word in quotes: \z
                         'ops:conv2d(",
  ["ops:sum([1,2)"] = "column 13: `)` closes no bracket: `[` at column 9 is open",
  ["ops:sum([1,2"] = "column 9: `[` is not closed",
  ["ops:relu(8]"] = "column 11: `]` closes no bracket: `(` at column 9 is open",
  ["ops:relu)"] = "column 9: `)` has no `(` before it",
  ["ops:relu 8,8"] = "column 11: `,` has no `(` before it",
  ["ops:relu(8))"] = "column 12: nothing is expected after `)`",
  ["ops:relu(8)(9)"] = "column 12: nothing is expected after `)`",
  ["ops:conv2d(1,,3)"] = "column 14: an argument is missing here",
  ["ops:conv2d(,1)"] = "column 12: an argument is missing here",
  ["ops:conv2d(1,2,)"] = "column 16: an argument is missing here",
  ["ops:conv2d(1 56 56)"] = "column 12: `1 56 56` holds a blank: arguments are apart by commas",
  ["ops:conv2d(1,56, x)"] = "`ops:conv2d(1,56, x)`, column 18: w is x; expected: an integer of at least 1",
  ["ops:conv2d(1,56,5.5)"] = "column 17: w is 5.5; expected: an integer",
  ["ops:conv2d([])"] = "column 12: n is an empty list; expected: an integer",
  ["ops:conv2d([1,2])"] = "column 12: n is 1x2; expected: an integer",
  ["ops:conv2d(1,99999999999999999999)"] = "column 14: h is 99999999999999999999;",
  ["ops:conv2d(n=1,h=2,n=3)"] = "column 20: n is given twice", ["ops:conv2d(1,n=2)"] = "column 14: n is given twice",
  ["ops:conv2d(h=)"] = "column 12: h is ; expected",
  ["ops:conv2d(strid=2)"] = "column 12: there is no argument `strid`; there are n, h, w, ci, co, kernel, stride, pad, \z
                             dilation, groups, layout, dtype, accumulate, weight_dtype, constant; did you mean \z
                             `stride`?",
  ["ops:matmul(1,2,3,true,true,float32,auto,auto,false,9)"] = "column 52: it takes 9 arguments; `9` is one more",
  ["ops:conv3(1)"] = "`ops:conv3(1)`: there is no operator `conv3`; `msched help ops` lists them; did you mean \z
                      `conv3d`?",
  ["ops:(1)"] = "there is no operator ``", ["ops:conv2d(groups=3)"] = "`ops:conv2d(groups=3)`: ops.conv2d: groups is \z
    3, which does not divide the 64 channels of X",
  ["suite:ops(XYZ)"] = "`suite:ops(XYZ)`: suite:ops: `XYZ` is none of its codes",
  ["suite:op(C2D)"] = "there is no suite `op`",
  ["suite:ops(C2D,dtype=[1])"] = "column 15: a list is for arguments of operators",
} do refuses(message, functions, word) end
-- Any text is read or refused by a message, in time; what is refused names the word.
local random = 1
for _ = 1, 3000 do
  local parts = {"ops:"}
  for i = 2, 12 do
    random = random * 1103515245 + 12345 & 0x7fffffff
    parts[i] = ({"relu", "(", ")", "[", "]", ",", "8", "=", " ", "x", "shape", "\0"})[random // 65536 % 12 + 1]
  end
  local word = table.concat(parts)
  local ok, why = pcall(functions, word)
  assert(ok or type(why) == "string" and not why:find "lua/ops", word .. ": " .. tostring(why))
end

-- Every operator with something else in the place of each argument and option: what it refuses it refuses in its own
-- words, with the line that asked, and what it takes becomes a function.
do
  local te, ops, common, options = ms.te, ms.ops, ms.load "lua.lib.ops.common", nil
  local read = common.options
  function common.options(what, given, defaults)
    for name in pairs(defaults) do options[name] = true end
    return read(what, given, defaults)
  end
  local function of(type) return function(shape) return te.placeholder(shape, type) end end
  local F, B, I = of "float32", of "uint8", of "int32"
  local image, bytes, matrix, two = F {1, 8, 8, 4}, B {1, 8, 8, 4}, F {4, 4}, F {4}
  local heads = F {1, 2, 8, 4}
  -- The arguments that an operator needs, then how many more there may be.
  local calls = {
    cast = {matrix, "float16", 1}, map = {matrix, function(x) return x end, 1}, transpose = {matrix, {2, 1}, 1},
    reshape = {matrix, {16}, 1}, broadcast_to = {two, {4, 4}, 1}, concat = {{matrix, matrix}, 1, 1},
    pad = {matrix, {1, 1}, 1, 1}, gather = {matrix, I {3}, 2}, bias_add = {matrix, two, 2},
    scale_shift = {matrix, two, two, 2}, batch_norm = {matrix, two, two, two, two, 1}, softmax = {matrix, 2},
    layer_norm = {matrix, two, two, 1}, rms_norm = {matrix, two, 1},
    rotary = {matrix, F {4, 2}, F {4, 2}, 1}, attention = {heads, heads, heads, 1}, argmax = {matrix, 2},
    argmin = {matrix, 2}, conv1d = {F {1, 8, 4}, F {3, 4, 4}, 1}, conv2d = {image, F {3, 3, 4, 4}, 1},
    conv3d = {F {1, 4, 4, 4, 2}, F {3, 3, 3, 2, 2}, 1}, depthwise_conv2d = {image, F {3, 3, 4}, 1},
    conv2d_transpose = {image, F {3, 3, 4, 4}, 1}, conv2d_capsule = {F {1, 8, 8, 2, 2, 4}, F {3, 3, 2, 2, 4, 4}, 1},
    max_pool = {image, 1}, avg_pool = {image, 1}, matmul = {matrix, matrix, 1}, dense = {matrix, matrix, 1},
    batch_matmul = {F {2, 4, 4}, F {2, 4, 4}, 1}, quantize = {matrix, 0.25, 1}, dequantize = {B {4, 4}, 0.25, 1},
    requantize = {I {4, 4}, 0.25, 1}, quantized_add = {B {4, 4}, B {4, 4}, 1},
    dense_nbits = {F {4, 64}, B {4, 2, 16}, F {4, 2}, 1},
    quantized_dense = {B {4, 8}, B {4, 8}, 0.5, 1}, quantized_conv2d = {bytes, B {3, 3, 4, 4}, 0.5, 1},
    quantized_batch_matmul = {B {2, 4, 8}, B {2, 8, 4}, 0.5, 1}, quantized_avg_pool = {bytes, 1},
    quantized_depthwise_conv2d = {bytes, B {3, 3, 4}, 0.5, 1}, leaky_relu = {matrix, 2},
  }
  for name in ("sum prod max min mean norm"):gmatch "%a+" do calls[name] = {matrix, 2} end
  for name in ("add subtract multiply divide maximum minimum power"):gmatch "%a+" do calls[name] = {matrix, two, 1} end
  for name in ("exp log sqrt rsqrt erf tanh sigmoid floor ceil round abs negative relu silu gelu"):gmatch "%a+" do
    calls[name] = {matrix, 1}
  end
  local cyclic = {}
  cyclic[1] = cyclic
  local odd = {"float16x4", "", 0 / 0, -1, 0, 1.5, math.maxinteger, math.mininteger, {}, {{}}, {0 / 0}, {"a"}, cyclic,
               {x = 1}, true, function() end, {shape = {4}, type = "float32"}, F {1}, F {}, F {0, 4}, {nil, 4},
               {matrix, nil, matrix}, F {1, 0, 8, 4}, function() return {} end,
               te.placeholder({4, 4}, "bool")}
  local refused, taken = 0, 0
  local function call(name, arguments, count)
    local inputs, listed = {}, {}
    local function add(x)
      if te.is_tensor(x) and not listed[x] then inputs[#inputs + 1], listed[x] = x, true end
      if type(x) == "table" and not te.is_tensor(x) then
        for _, key in ipairs(ms.sorted_keys(x)) do if x[key] ~= x then add(x[key]) end end
      end
    end
    for i = 1, count do add(arguments[i]) end
    local ok, message = pcall(function()
      local Y = ops[name](table.unpack(arguments, 1, count))
      add(Y)
      te.func("f", inputs)
    end)
    if ok then taken = taken + 1 return end
    refused = refused + 1
    message = tostring(message)
    local own = message:match "^[^\n]*named%.lua:%d+: (%a+)[.:]"
    assert(own == "ops" or own == "te", name .. ": " .. message)
  end
  for _, name in ipairs(ms.sorted_keys(ops)) do
    if name ~= "func" and name ~= "suite" then
      local given, needed = assert(calls[name], name), #calls[name] - 1
      local count = needed + given[#given]
      options = {}
      call(name, given, needed)
      for at = 1, count do
        for _, x in ipairs(odd) do
          local arguments = {table.unpack(given, 1, needed)}
          arguments[at] = x
          call(name, arguments, count)
        end
      end
      for _, option in ipairs(ms.sorted_keys(options)) do
        for _, x in ipairs(odd) do
          local arguments = {table.unpack(given, 1, needed)}
          arguments[count] = {[option] = x}
          call(name, arguments, count)
        end
      end
    end
  end
  common.options = read
  assert(refused > 7000 and taken > 400)
  refuses("ops.attention: dtype is float16x4; a type of floats is expected", ops.attention, heads, heads, heads,
          {dtype = "float16x4"})
  refuses("ops.matmul: accumulate is bool; a type of numbers", ops.matmul, matrix, matrix, {accumulate = "bool"})
  refuses("ops.matmul: transpose_a is yes; true or false is expected", ops.matmul, matrix, matrix,
          {transpose_a = "yes"})
  refuses("ops.matmul: group is 2, but there is no batch", ops.matmul, matrix, matrix, {group = 2})
  refuses("te.cast: `float16x4` is no type of elements", te.cast, 1, "float16x4")
  refuses("te.const: 1.5 is no int32", te.const, 1.5, "int32")
  local empty = ops.add(F {0, 4}, two) -- an extent of 1 is broadcast to one of 0 too
  assert(empty.shape[1] == 0 and empty.shape[2] == 4)
end

print "named: ok"
