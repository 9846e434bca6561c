-- LSTM, GRU, RNN and linear attention: one product of all inputs with their weights, then a cell a step, which is the
-- same function each time: it takes the number of its step as a tensor. A step past the end of a sequence keeps what
-- there was. Weights of an LSTM may be integers: what they are multiplied by is then quantized as it comes.
local ms = msched
local te, common, element_types = ms.te, ms.load "lua.net.common", ms.load "lua.lib.element_types"
local operators = {}
local compute, reduce, wide = common.compute, common.reduce, common.wide

-- ---- Activations -------------------------------------------------------------------------------------------------

local function softplus(x) return te.maximum(x, 0.0) + te.log(te.exp(-1.0 * te.abs(x)) + 1.0) end
-- {f(x, alpha, beta), alpha, beta}: what they take where nothing is given.
local ACTIVATIONS = {
  relu = {function(x) return te.select(te.lt(x, 0.0), te.const(0.0, x.type), x) end}, tanh = {te.tanh},
  sigmoid = {te.sigmoid},
  softsign = {function(x) return x / (te.abs(x) + 1.0) end}, softplus = {softplus},
  affine = {function(x, a, b) return x * a + b end, 1.0, 0.0},
  scaledtanh = {function(x, a, b) return te.tanh(x * b) * a end, 1.0, 1.0},
  hardsigmoid = {function(x, a, b) return te.maximum(te.minimum(x * a + b, 1.0), 0.0) end, 0.2, 0.5},
  leakyrelu = {function(x, a) return te.select(te.lt(x, 0.0), x * a, x) end, 0.01},
  thresholdedrelu = {function(x, a) return te.select(te.gt(x, a), x, te.const(0.0, x.type)) end, 1.0},
  elu = {function(x, a) return te.select(te.lt(x, 0.0), (te.exp(x) - 1.0) * a, x) end, 1.0},
}

-- The functions of each direction, in order, of what is held within `clip`; but the last of an LSTM, of its
-- whole state, as onnxruntime has it. Those that take numbers take the next of the lists.
local function activations_of(n, defaults, directions)
  local all = {}
  for _ = 1, directions do table.move(defaults, 1, #defaults, #all + 1, all) end
  local names, alphas, betas = n:texts("activations", all), n:floats("activation_alpha", {}),
    n:floats("activation_beta", {})
  if #names ~= #all then n:fail("%d activations, not %d", #names, #all) end
  local clip, list, a, b = n:float("clip", 0.0), {}, 0, 0
  for k, name in ipairs(names) do
    local entry = ACTIVATIONS[name:lower()] or n:fail("activation `%s` is not known", name)
    local f, alpha, beta = entry[1], entry[2], entry[3]
    if alpha then a, alpha = a + 1, alphas[a + 1] or alpha end
    if beta then b, beta = b + 1, betas[b + 1] or beta end
    list[k] = {name = name, alpha = alpha, beta = beta, f = function(x, whole)
      if clip > 0 and not whole then x = te.maximum(te.minimum(x, clip), -clip) end
      return f(x, alpha, beta)
    end}
  end
  if #alphas > a or #betas > b then
    n:fail("its activations take %d and %d numbers, and are given %d and %d", a, b, #alphas, #betas)
  end
  return list
end

-- Those of one direction as attributes of its cells.
local function set_activations(attributes, list, first, count)
  local names, alphas, betas = {}, {}, {}
  for k = first, first + count - 1 do
    names[#names + 1], alphas[#alphas + 1], betas[#betas + 1] = list[k].name, list[k].alpha, list[k].beta
  end
  attributes.activations, attributes.activation_alpha, attributes.activation_beta = names, alphas, betas
end

-- ---- The parts ---------------------------------------------------------------------------------------------------

-- {steps, batch, gates * hidden}: inputs by their weights, and biases. Inputs: X, W, B. both: how many gates have the
-- second bias here too; the others' is the cell's.
operators["msched.RecurrentInput"] = function(n)
  local X, W, B, d = n:x(1), n:x(2), n:has(3) and n:x(3) or nil, te.const(n:int "direction", "int32")
  local by_batch, own = n:flag "by_batch", n:int "both"
  local rows, steps, batch = W.shape[2], X.shape[by_batch and 2 or 1], X.shape[by_batch and 1 or 2]
  local sum = reduce({steps, batch, rows}, {X.shape[3]}, te.sum, function(i, r)
    local at = by_batch and {i[2], i[1], r[1]} or {i[1], i[2], r[1]}
    return wide(X[at]) * wide(W[{d, i[3], r[1]}])
  end)
  if not B then return sum end
  return compute(sum.shape, sum.type, function(i)
    local y, second = sum[i] + wide(B[{d, i[3]}]), wide(B[{d, i[3] + rows}])
    return own == rows and y + second or y + te.select(te.lt(i[3], own), second, te.const(0.0, y.type))
  end)
end

-- What all cells take: gates of the input at the step, the products of what is remembered with its weights.
--   inputs: projected, step, R, H (of {batch, hidden}), lengths, and what a cell has of its own. In the place of R may
--   stand the products themselves.
local function cell(n)
  local G, S, R, H, L = n:x(1), n:x(2), n:x(3), n:x(4), n:has(5) and n:x(5) or nil
  local c = {d = te.const(n:int "direction", "int32"), hidden = H.shape[2], t = G.type, H = H, shape = H.shape}
  local step = te.maximum(te.minimum(S[{}], G.shape[1] - 1), 0)
  if L then n:check_range(5, 0, G.shape[1]) end
  local goes_on = L and H.shape[1] == 1 and te.lt(S[{}], te.cast(L[{te.const(0, "int32")}], "int32"))
  function c.input(gate, i) return G[{step, i[1], i[2] + gate * c.hidden}] end
  -- Of gates from `first` on, `count` of them: {batch, count * hidden}, of H or of what stands for it.
  function c.recurrent(first, count, K)
    if #R.shape == 2 then return R end
    return reduce({H.shape[1], count * c.hidden}, {c.hidden}, te.sum, function(i, r)
      local x = wide((K or H)[{i[1], r[1]}])
      if goes_on then x = te.if_then_else(goes_on, x, te.const(0.0, x.type)) end
      return x * wide(R[{c.d, i[2] + first * c.hidden, r[1]}])
    end)
  end
  -- New where the sequence goes on, else the old; and what is given for the step.
  function c.kept(i, new, old) return L and te.select(te.lt(S[{}], te.cast(L[{i[1]}], "int32")), new, old) or new end
  function c.given(new)
    return compute(H.shape, H.type, function(i) return c.kept(i, new[i], te.const(0.0, new.type)) end)
  end
  return c
end

operators["msched.RNNCell"] = function(n)
  local c, f = cell(n), activations_of(n, {"Tanh"}, 1)
  local R = c.recurrent(0, 1)
  local new = compute(c.shape, c.t, function(i) return f[1].f(c.input(0, i) + R[i]) end)
  return compute(c.shape, c.H.type, function(i) return c.kept(i, new[i], wide(c.H[i])) end), c.given(new)
end

-- More inputs: B. Gates: z, r, h.
operators["msched.GRUCell"] = function(n)
  local c, f, B = cell(n), activations_of(n, {"Sigmoid", "Tanh"}, 1), n:has(6) and n:x(6) or nil
  local late, h = n:flag "linear_before_reset", c.hidden
  local R = c.recurrent(0, late and 3 or 2)
  local gate = compute({c.shape[1], 2 * h}, c.t, function(i) return f[1].f(c.input(0, i) + R[i]) end)
  local function bias(i, y) return B and y + wide(B[{c.d, i[2] + 5 * h}]) or y end
  local inner
  if late then
    inner = compute(c.shape, c.t, function(i) return gate[{i[1], i[2] + h}] * bias(i, R[{i[1], i[2] + 2 * h}]) end)
  else
    local reset = compute(c.shape, c.t, function(i) return gate[{i[1], i[2] + h}] * wide(c.H[i]) end)
    local product = c.recurrent(2, 1, reset)
    inner = compute(c.shape, c.t, function(i) return bias(i, product[i]) end)
  end
  local new = compute(c.shape, c.t, function(i)
    local z = gate[i]
    return (1.0 - z) * f[2].f(c.input(2, i) + inner[i]) + z * wide(c.H[i])
  end)
  return compute(c.shape, c.H.type, function(i) return c.kept(i, new[i], wide(c.H[i])) end), c.given(new)
end

-- More inputs: C, P. Gates: i, o, f, c; outputs: H, what is given, C.
operators["msched.LSTMCell"] = function(n)
  local c, f, C, P = cell(n), activations_of(n, {"Sigmoid", "Tanh", "Tanh"}, 1), n:x(6), n:has(7) and n:x(7) or nil
  local R, h, coupled = c.recurrent(0, 4), c.hidden, n:flag "input_forget"
  local function gate(k, i) return c.input(k, i) + R[{i[1], i[2] + k * h}] end
  local function peep(k, i, y, state) return P and y + wide(P[{c.d, i[2] + k * h}]) * state or y end
  local state = compute(c.shape, c.t, function(i)
    local old = wide(C[i])
    local input = f[1].f(peep(0, i, gate(0, i), old))
    local forget = coupled and 1.0 - input or f[1].f(peep(2, i, gate(2, i), old))
    return forget * old + input * f[2].f(gate(3, i))
  end)
  local new =
    compute(c.shape, c.t, function(i) return f[1].f(peep(1, i, gate(1, i), state[i])) * f[3].f(state[i], true) end)
  return compute(c.shape, c.H.type, function(i) return c.kept(i, new[i], wide(c.H[i])) end), c.given(new),
         compute(c.shape, c.H.type, function(i) return c.kept(i, state[i], wide(C[i])) end)
end

-- What the steps gave, of all directions one after the other, as one tensor.
operators["msched.RecurrentOutput"] = function(n)
  local directions, by_batch, tensors = n:int "directions", n:flag "by_batch", {}
  for k = 1, n:count() do tensors[k] = n:x(k) end
  local steps, own = #tensors // directions, n:shape(1)
  local shape = by_batch and {own[1], steps, directions, own[2]} or {steps, directions, own[1], own[2]}
  return compute(shape, n:type(1), function(i)
    local step, d, b = i[by_batch and 2 or 1], i[by_batch and 3 or 2], i[by_batch and 1 or 3]
    return common.choose(tensors, 1, #tensors, directions == 1 and step or d * steps + step,
                         function(X) return X[{b, i[4]}] end)
  end)
end

-- A direction of what there was at the start, of {batch, hidden}; nothing is 0.
operators["msched.RecurrentStart"] = function(n)
  local X, d, by_batch = n:x(1), te.const(n:int "direction", "int32"), n:flag "by_batch"
  local s = X.shape
  return compute({s[by_batch and 1 or 2], s[3]}, X.type,
                 function(i) return X[by_batch and {i[1], d, i[2]} or {d, i[1], i[2]}] end)
end

-- ---- The whole ---------------------------------------------------------------------------------------------------

local function check(n, k, shape, what)
  if n:has(k) and common.text(n:shape(k)) ~= common.text(shape) then
    n:fail("%s has extents %s, not %s", what, common.text(n:shape(k)), common.text(shape))
  end
end

-- The shape of it all: {steps, batch, hidden, directions, reverse = {bool}, by_batch}, checked. Integer weights have
-- what they are multiplied by first.
local function plan_of(n, gates, integers)
  local X, W, R, by_batch = n:shape(1), n:shape(2), n:shape(3), n:int("layout", 0) == 1
  local direction = n:choice("direction", "forward", "forward", "reverse", "bidirectional")
  if #X ~= 3 or #W ~= 3 or #R ~= 3 then
    n:fail("its input and weights have %d, %d and %d dimensions, not 3", #X, #W, #R)
  end
  local p = {steps = X[by_batch and 2 or 1], batch = X[by_batch and 1 or 2],
             hidden = n:int("hidden_size", R[integers and 2 or 3]),
             by_batch = by_batch, directions = direction == "bidirectional" and 2 or 1,
             reverse = {[0] = direction == "reverse", true}}
  local rows = gates * p.hidden
  check(n, 2, integers and {p.directions, X[3], rows} or {p.directions, rows, X[3]}, "W")
  check(n, 3, integers and {p.directions, p.hidden, rows} or {p.directions, rows, p.hidden}, "R")
  for k = 9, integers and 12 or 0 do
    if common.text(n:shape(k)) ~= common.text {p.directions} then check(n, k, {p.directions, rows}, "input " .. k) end
  end
  check(n, 4, {p.directions, 2 * rows}, "B")
  check(n, 5, {p.batch}, "sequence_lens")
  p.start = by_batch and {p.batch, p.directions, p.hidden} or {p.directions, p.batch, p.hidden}
  check(n, 6, p.start, "initial_h")
  if gates == 4 then
    check(n, 7, p.start, "initial_c")
    check(n, 8, {p.directions, 3 * p.hidden}, "P")
  end
  if not common.is_float(n:type(1)) then n:fail("its input is of %s; floats are expected", n:type(1)) end
  if p.steps == 0 then n:fail "its sequence has no steps" end
  return p
end

local function name_of(n, k) return n:has(k) and n.node.inputs[k] or "" end
local function start_of(n, p, k, d)
  if not n:has(k) then return n:constant(ms.array({p.batch, p.hidden}, n:type(1))) end
  return n:add("RecurrentStart", {n.node.inputs[k]}, {direction = d, by_batch = p.by_batch and 1 or 0}, 1, "msched")
end

-- own: the input that cells take beside R, of all directions.
local RNN = {cell = "RNNCell", gates = 1, both = 1, states = 2, activations = {"Tanh"}}
local GRU = {cell = "GRUCell", gates = 3, both = 2, states = 2, own = 4, activations = {"Sigmoid", "Tanh"}}
local LSTM = {cell = "LSTMCell", gates = 4, both = 4, states = 3, own = 8, activations = {"Sigmoid", "Tanh", "Tanh"}}
local INTEGERS = {cell = "LSTMCell", gates = 4, both = 4, states = 3, own = 8,
                  activations = {"Sigmoid", "Tanh", "Tanh"}, integers = true}

-- Two inputs of all directions, or "", as a direction finds itself in them: their names, and its number there.
-- Constants are cut, so that all directions are calls of one function, which may pack them ahead.
local function parts_of(n, p, d, first, second)
  local names, cut = {}, p.directions > 1
  for i, k in ipairs {first, second} do
    names[i] = k == "" and "" or name_of(n, k)
    cut = cut and (names[i] == "" or n:value(k).constant)
  end
  for i, name in ipairs(cut and names or {}) do
    if name ~= "" then names[i] = n:add("Gather", {name, n:constant(ms.array({1}, "int64", {d}))}, {axis = 0}) end
  end
  return names[1], names[2] or "", cut and 0 or d
end

-- Where weights are integers: those of a direction of {directions, in, rows}, with their scales and zero points. first:
-- the number of the weights' input; scales: of that of their scales.
local function of_direction(n, d, first, scales)
  local at = n:constant(ms.array({}, "int64", {d}))
  local function part(k) return n:add("Gather", {n.node.inputs[k], at}, {axis = 0}) end
  return {weights = part(first), weights_scale = part(scales), weights_zero = part(scales + 1)}
end
-- What is quantized as it comes, {bytes, scale, zero point}; and by the weights of a direction: floats.
local function quantized(n, X) return {n:add("DynamicQuantizeLinear", {X}, {}, 3)} end
local function by_integers(n, q, own)
  return n:add("MatMulIntegerToFloat", {q[1], own.weights, q[2], own.weights_scale, q[3], own.weights_zero}, {}, 1,
               "com.microsoft")
end

-- The inputs of a direction by their weights, and biases: {steps, batch, rows}. q: the inputs as integers.
local function projected_of(n, kind, p, d, q)
  local by_batch = p.by_batch and 1 or 0
  if not kind.integers then
    local W, B, at = parts_of(n, p, d, 2, 4)
    return n:add("RecurrentInput", {n.node.inputs[1], W, B},
                 {direction = at, by_batch = by_batch, both = kind.both * p.hidden}, 1, "msched")
  end
  local Y = by_integers(n, q, of_direction(n, d, 2, 9))
  if p.by_batch then Y = n:add("Transpose", {Y}, {perm = {1, 0, 2}}) end
  if not n:has(4) then return Y end
  local rows, bias = kind.gates * p.hidden, n:add("Gather", {n.node.inputs[4], n:constant(ms.array({}, "int64", {d}))},
                                                  {axis = 0})
  local function list(x) return n:constant(ms.array({1}, "int64", {x})) end
  for k = 0, 1 do
    Y = n:add("Add", {Y, n:add("Slice", {bias, list(k * rows), list((k + 1) * rows)})})
  end
  return Y
end

-- The name of what all steps gave, of all directions one after the other.
local function given_by_all(n, given, directions, by_batch)
  if not n.many(given) then
    return n:add("RecurrentOutput", given, {directions = directions, by_batch = by_batch}, 1, "msched")
  end
  local each, parts = #given // directions, {}
  for d = 1, directions do parts[d] = n:stack(table.move(given, (d - 1) * each + 1, d * each, 1, {}), by_batch) end
  return n:stack(parts, by_batch + 1)
end

-- Both directions, step by step.
local function recurrent(n, kind, attributes)
  local p, by_batch, many = plan_of(n, kind.gates, kind.integers), n:int("layout", 0), #kind.activations
  local list, given, last, memory = activations_of(n, kind.activations, p.directions), {}, {}, {}
  local q = kind.integers and quantized(n, n.node.inputs[1]) or nil
  attributes.clip = n:float("clip", 0.0)
  for d = 0, p.directions - 1 do
    local mine = {}
    for key, value in pairs(attributes) do mine[key] = value end
    set_activations(mine, list, d * many + 1, many)
    local projected, own = projected_of(n, kind, p, d, q), q and of_direction(n, d, 3, 11)
    local weights, more, number = parts_of(n, p, d, own and "" or 3, kind.own)
    mine.direction = number
    local H, C = start_of(n, p, 6, d), kind.states == 3 and start_of(n, p, 7, d) or nil
    for k = 1, p.steps do
      local step = p.reverse[d] and p.steps - k or k - 1
      local at = n:constant(ms.array({}, "int32", {step}), true)
      local inputs = {projected, at, own and by_integers(n, quantized(n, H), own) or weights, H, name_of(n, 5)}
      if C then inputs[#inputs + 1] = C end
      inputs[#inputs + 1] = more
      H, given[d * p.steps + step + 1], C = n:add(kind.cell, inputs, mine, kind.states, "msched")
    end
    last[d + 1], memory[d + 1] = H, C
  end
  local axis = {axis = by_batch}
  return n:gives {n:wants(1) and given_by_all(n, given, p.directions, by_batch) or "",
                  n:wants(2) and n:add("Stack", last, axis, 1, "msched") or "",
                  n:wants(3) and n:add("Stack", memory, axis, 1, "msched") or ""}
end

operators.RNN = function(n) return recurrent(n, RNN, {}) end
operators.GRU = function(n) return recurrent(n, GRU, {linear_before_reset = n:int("linear_before_reset", 0)}) end
operators.LSTM = function(n) return recurrent(n, LSTM, {input_forget = n:int("input_forget", 0)}) end
operators["com.microsoft.DynamicQuantizeLSTM"] = function(n)
  if n:type(1) ~= "float32" then n:fail("its input is of %s, not float32", n:type(1)) end
  return recurrent(n, INTEGERS, {input_forget = n:int("input_forget", 0)})
end

-- ---- Linear attention --------------------------------------------------------------------------------------------

-- A step: what is remembered of {batch, heads of keys, elements of a key, of a value}, in float32, and what is read of
-- it.
--   inputs: query, key, value, step, state, decay, beta
operators["msched.LinearAttentionCell"] = function(n)
  local Q, K, V, S, M, D, B = n:x(1), n:x(2), n:x(3), n:x(4), n:x(5), n:has(6) and n:x(6) or nil,
    n:has(7) and n:x(7) or nil
  local s, heads, scale = M.shape, n:int "q_num_heads", n:float "scale"
  local groups, dk, dv = s[2], s[3], s[4]
  local each, step = heads // groups, te.maximum(te.minimum(S[{}], Q.shape[2] - 1), 0)
  local function at(X, b, h, size, e) return te.cast(wide(X[{b, step, size and h * size + e or h}]), "float32") end
  local old = M
  if D then
    local by_head = D.shape[3] == groups
    old = compute(s, "float32",
                  function(i) return M[i] * te.exp(at(D, i[1], i[2], not by_head and dk or nil, i[3])) end)
  end
  local written
  if B then
    local read = reduce({s[1], groups, dv}, {dk}, te.sum,
                        function(i, r) return old[{i[1], i[2], r[1], i[3]}] * at(K, i[1], i[2], dk, r[1]) end)
    written = compute({s[1], groups, dv}, "float32", function(i)
      local beta = at(B, i[1], B.shape[3] == 1 and te.const(0, "int32") or i[2])
      return beta * (at(V, i[1], i[2], dv, i[3]) - read[i])
    end)
  end
  local new = compute(s, "float32", function(i)
    return old[i]
      + at(K, i[1], i[2], dk, i[3]) * (written and written[{i[1], i[2], i[4]}] or at(V, i[1], i[2], dv, i[4]))
  end)
  local y = reduce({s[1], heads * dv}, {dk}, te.sum, function(i, r)
    local head, e = te.floordiv(i[2], dv), te.floormod(i[2], dv)
    return at(Q, i[1], head, dk, r[1]) * new[{i[1], each == 1 and head or te.floordiv(head, each), r[1], e}]
  end)
  return new, compute(y.shape, Q.type, function(i) return y[i] * scale end)
end

operators.LinearAttention = function(n)
  local heads, groups, q, k, v = n:int "q_num_heads", n:int "kv_num_heads", n:shape(1), n:shape(2), n:shape(3)
  local rule = n:choice("update_rule", "gated_delta", "linear", "gated", "delta", "gated_delta")
  if heads < 1 or groups < 1 or heads % groups ~= 0 then
    n:fail("%d heads of queries do not share %d of keys", heads, groups)
  end
  if #q ~= 3 or q[3] % heads ~= 0 or #v ~= 3 or v[3] % groups ~= 0 then
    n:fail("%s and %s have no %d and %d heads", common.text(q), common.text(v), heads, groups)
  end
  local dk, dv = q[3] // heads, v[3] // groups
  if not common.is_float(n:type(1)) or q[2] == 0 then n:fail("its input is of %d steps of %s", q[2], n:type(1)) end
  check(n, 2, {q[1], q[2], groups * dk}, "key")
  check(n, 3, {q[1], q[2], groups * dv}, "value")
  check(n, 4, {q[1], groups, dk, dv}, "past_state")
  for k, part in ipairs {"gated", "delta"} do
    local i = k + 4
    if n:has(i) ~= (rule:find(part) ~= nil) then
      n:fail("update_rule is %s, and input %d is %s", rule, i, n:has(i) and "given" or "missing")
    end
  end
  check(n, 5, {q[1], q[2], n:has(5) and n:shape(5)[3] == groups and groups or groups * dk}, "decay")
  check(n, 6, {q[1], q[2], n:has(6) and n:shape(6)[3] == 1 and 1 or groups}, "beta")
  local state = n:has(4) and n:add("Cast", {n.node.inputs[4]}, {to = element_types.of.float32.onnx})
    or n:constant(ms.array({q[1], groups, dk, dv}, "float32"))
  local scale, given = n:float("scale", 0.0), {}
  if scale == 0 then scale = 1 / math.sqrt(dk) end
  for step = 1, q[2] do
    state, given[step] = n:add("LinearAttentionCell",
                               {n.node.inputs[1], n.node.inputs[2], n.node.inputs[3], n:constant(ms.array({}, "int32",
                                {step - 1}), true), state, name_of(n, 5), name_of(n, 6)},
                               {q_num_heads = heads, scale = scale}, 2, "msched")
  end
  local kept = element_types.of[n:type(n:has(4) and 4 or 1)]
  return n:gives {n:wants(1) and n:stack(given, 1) or "", n:wants(2) and n:add("Cast", {state}, {to = kept.onnx}) or ""}
end

return operators
