-- msched bench nets: a small network beside a Python that stands in for onnxruntime, and beside onnxruntime where
-- MSCHED_ONNXRUNTIME names a Python that has it; what it prints follows from what it measured; outputs that differ are
-- a failure; words that are wrong, and a Python that does not answer, are refused.
-- usage: msched bench_nets.lua DATA
local ms = require "msched"
local cli = ms.load "lua.cli.cli"
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
local onnx = dofile(here .. "/support/lua/onnx.lua")
dofile(here .. "/support/lua/few_proposals.lua")
local data = arg[1]
ms.is_terminal = function() return false end -- as commands have it

local base = os.tmpname()
local model, python = base .. ".onnx", base .. ".sh"
local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end
write(model,
      onnx.model {opset = 17, nodes = {{"Relu", {"x"}, {"y"}}, {"MatMul", {"y", "w"}, {"z"}}}, inputs = {{"x",
                  "float32", {"n", 2}}}, outputs = {{"z"}}, constants = {w = {"float32", {2, 3}, {1, 2, 3, 4, 5, 6}}}})

-- What a benchmark prints: objects, or the lines of its text; and what it refuses.
local function run(options, words)
  local lines, put, show = {}, cli.put_json, print
  cli.put_json, print = function(line) lines[#lines + 1] = line end, function(text) lines[#lines + 1] = text end
  options.data, options["no-tune"], options.seconds, options.target = data, not options.trials,
    options.seconds or 0.001, "native -num-cores=1"
  local ok, message = pcall(ms.load "lua.bench.nets", options, words)
  cli.put_json, print = put, show
  return lines, not ok and (type(message) == "table" and message.message or tostring(message)) or nil
end
local word = model .. ":x=2x2"

-- Alone.
local lines, refused = run({json = true}, {word})
assert(not refused, refused)
assert(#lines == 1 and lines[1].model == model and lines[1].seconds >= lines[1].least_seconds
       and lines[1].least_seconds > 0)
assert(lines[1].functions == 2 and lines[1].calls == 2 and lines[1].peak_bytes > 0 and not lines[1].trials
       and not lines[1].ratio)
lines, refused = run({json = true, profile = true, trials = 1}, {word})
assert(not refused, refused)
assert(lines[1].trials == 1 and #lines[1].by_function == 2 and lines[1].by_function[1].seconds > 0
       and lines[1].by_function[1].weight == 1)
for _, f in ipairs(lines[1].by_function) do assert(f.limit_seconds > 0 and #f.limit > 0, f.name) end

-- Names with colons.
write(base .. ".colon.onnx", onnx.model {opset = 17, nodes = {{"Add", {"a:0", "b:0"}, {"y"}}}, inputs = {{"a:0",
                                         "float32", {"n", 2}}, {"b:0", "float32", {"n", 2}}}, outputs = {{"y"}}})
lines, refused = run({json = true}, {base .. ".colon.onnx:a:0=3x2:b:0=3x2"})
assert(not refused and lines[1].calls == 1, refused)
lines, refused = run({json = true}, {base .. ".colon.onnx:a:0"})
assert(refused and refused:find("`:a:0` is no NAME=SHAPE", 1, true), refused)
os.remove(base .. ".colon.onnx")

-- Inputs that are given; of a shape that decides the network's; that there are not; of another type.
ms.array({2, 2}, "float32", {1, 2, 3, 4}):save(base .. ".npy")
lines, refused = run({json = true, input = {"x=" .. base .. ".npy"}}, {model})
assert(not refused and lines[1].calls == 2, refused)
lines, refused = run({json = true, input = {"z=" .. base .. ".npy"}}, {word})
assert(refused and refused:find("the network has no input z", 1, true), refused)
ms.array({2, 2}, "int32"):save(base .. ".npy")
lines, refused = run({json = true, input = {"x=" .. base .. ".npy"}}, {word})
assert(refused and refused:find("input x is of float32, and an array of int32 is given", 1, true), refused)

-- Beside one that stands in: it answers with these outputs, and these seconds.
local function stand_in(values)
  local theirs = ms.array({2, 3}, "float32", values)
  theirs:save(base .. ".npy")
  write(python, string.format([[#!/bin/sh
[ -f "$1" ] && [ -f "$2" ] && [ "$(cat "$3/inputs")" = x ] && [ "$4" = 1 ] || exit 1
cp '%s.npy' "$3/OUTPUT.0.npy"
cp "$3/INPUT.0.npy" '%s.input.npy'
echo '{"version": "0.1", "peak_bytes": 123456}'
while read -r seconds; do echo '{"seconds": 0.5, "runs": 3}'; done
]], base, base))
  assert(os.execute("chmod +x " .. python))
end
stand_in {0, 0, 0, 0, 0, 0}
lines, refused = run({json = true, onnxruntime = python}, {word})
assert(refused and refused:find("differ from onnxruntime's: " .. model, 1, true), refused)
assert(lines[1].wrong and lines[1].difference > 1 and lines[1].mean_difference > 1)
local x, right = ms.load_array(base .. ".input.npy"):tolist(), {}
for i = 0, 1 do
  for j = 1, 3 do
    local function relu(k) return math.max(x[1 + 2 * i + k], 0) end
    right[#right + 1] = relu(0) * j + relu(1) * (j + 3)
  end
end
stand_in(right)
lines, refused = run({json = true, onnxruntime = python}, {word, word})
assert(not refused, refused)
local row, total = lines[1], lines[3]
assert(#lines == 3 and not row.wrong and row.difference < 1e-6 and row.mean_difference < 1e-6
       and row.onnxruntime == "0.1" and row.onnxruntime_peak_bytes == 123456)
assert(row.onnxruntime_seconds == 0.5 and row.ratio == 0.5 / row.seconds and row.least_ratio == 0.5 / row.least_seconds)
assert(total.networks == 2 and math.abs(total.ratio - math.sqrt(row.ratio * lines[2].ratio)) < 1e-9 * total.ratio)
assert(total.least == math.min(row.ratio, lines[2].ratio) and not total.openvino_ratio)
lines, refused = run({json = true, onnxruntime = python, openvino = python}, {word})
assert(not refused, refused)
row, total = lines[1], lines[2]
assert(row.openvino == "0.1" and row.openvino_seconds == 0.5 and row.openvino_ratio == 0.5 / row.seconds
       and row.openvino_least_ratio and row.openvino_difference < 1e-6)
assert(row.openvino_peak_bytes == 123456 and row.ratio == row.openvino_ratio and total.openvino_ratio == total.ratio
       and total.openvino_least == total.least)
lines, refused = run({openvino = python}, {word})
assert(not refused and lines[1]:find "OpenVINO 500.000 ms, msched is [%d.]+ times as fast"
       and not lines[1]:find "onnxruntime" and lines[2]:find "times as fast as OpenVINO", lines[1])
lines = run({onnxruntime = python, profile = true}, {word})
local text = table.concat(lines, "\n")
assert(text:find "onnxruntime 500.000 ms, msched is [%d.]+ times as fast" and text:find "1 x  matmul.-, %d+ %% of "
       and text:find "at their limits all functions take %d+ %% of the time; of the rest [%d.]+ %% in "
       and text:find "geometric mean", text)

-- A quantized network is judged by the root mean square: one element may be more than a tenth off.
write(base .. ".steps.onnx",
      onnx.model {opset = 17, nodes = {{"QuantizeLinear", {"x", "s", "zero"}, {"q"}},
                                       {"DequantizeLinear", {"q", "s", "zero"}, {"y"}}},
                  inputs = {{"x", "float32", {2, 3}}}, outputs = {{"y"}},
                  constants = {s = {"float32", {}, {1}}, zero = {"int8", {}, {0}}}})
ms.array({2, 3}, "float32", {1, 2, 3, 4, 5, 6}):save(base .. ".x.npy")
for _, case in ipairs {{6.7}, {9, wrong = true}} do
  stand_in {1, 2, 3, 4, 5, case[1]}
  lines, refused = run({json = true, onnxruntime = python, input = {"x=" .. base .. ".x.npy"}}, {base .. ".steps.onnx"})
  assert(lines[1].difference > 0.1 and lines[1].wrong == case.wrong and not refused == not case.wrong, refused)
end
-- Shares that are all small are judged as shares of 1; numbers of 16 bits less strictly.
for _, case in ipairs {{"Sigmoid", -20, 1e-7}, {"Sigmoid", -20, 1e-5, wrong = true},
                       {"Mul", 1, 5e-3, "float16"}, {"Mul", 1, 5e-3, "float32", wrong = true}} do
  local t = case[4] or "float32"
  write(base .. ".shares.onnx",
        onnx.model {opset = 17, nodes = {{"Cast", {"x"}, {"z"}, {to = t == "float16" and 10 or 1}},
                                         {"Mul", {"z", "one"}, {"w"}}, {"Cast", {"w"}, {"v"}, {to = 1}},
                                         {case[1], {"v", case[1] == "Mul" and "v" or nil}, {"y"}}},
                    inputs = {{"x", "float32", {2, 3}}}, outputs = {{"y"}},
                    constants = {one = {t, {}, {t == "float16" and 0x3c00 or 1}}}})
  ms.array({2, 3}, "float32", function() return case[2] end):save(base .. ".x.npy")
  local own = case[1] == "Sigmoid" and 1 / (1 + math.exp(20)) or 1
  stand_in {own, own, own, own, own, own + case[3]}
  lines, refused = run({json = true, onnxruntime = python, input = {"x=" .. base .. ".x.npy"}},
                       {base .. ".shares.onnx"})
  assert(lines[1].wrong == case.wrong and not refused == not case.wrong, refused)
end
stand_in(right)

-- One that ends at once, or before it has measured, says why.
write(python, "#!/bin/sh\necho no module named so >&2\nexit 1\n")
lines, refused = run({onnxruntime = python}, {word})
assert(refused and refused:find("does not answer", 1, true) and refused:find("no module named so", 1, true), refused)
write(python, string.format([[#!/bin/sh
cp '%s.npy' "$3/OUTPUT.0.npy"; echo '{"version": "0.1", "peak_bytes": 0}'; read -r seconds; echo lost its memory >&2
]], base))
lines, refused = run({onnxruntime = python}, {word})
assert(refused and refused:find("lost its memory", 1, true), refused)
lines, refused = run({onnxruntime = base .. ".none"}, {word})
assert(refused and refused:find("does not answer", 1, true), refused)

for _, case in ipairs {{{}, {}, "name a network"}, {{}, {"net.py"}, "net.py: a network is expected"},
                       {{}, {model .. "x"}, "a network is expected"}, {{}, {model .. ":x"}, "NAME=SHAPE"},
                       {{}, {model .. ":v=2x2"}, "v"}, {{trials = 0}, {word}, "--trials"},
                       {{seconds = 0}, {word}, "--seconds"}, {{}, {base .. ".none.onnx"}, "No such file"}} do
  lines, refused = run(case[1], case[2])
  assert(refused and refused:find(case[3], 1, true), refused)
end

-- onnxruntime itself.
local real = os.getenv "MSCHED_ONNXRUNTIME"
if real then
  lines, refused = run({json = true, onnxruntime = real}, {word})
  assert(not refused, refused)
  assert(lines[1].difference < 1e-6 and lines[1].ratio > 0 and lines[1].onnxruntime, "onnxruntime differs")
else print "onnxruntime: skipped, MSCHED_ONNXRUNTIME names no Python" end
real = os.getenv "MSCHED_OPENVINO"
if real then
  lines, refused = run({json = true, openvino = real}, {word})
  assert(not refused, refused)
  assert(lines[1].openvino_difference < 1e-6 and lines[1].openvino_ratio > 0 and lines[1].openvino, "OpenVINO differs")
else print "OpenVINO: skipped, MSCHED_OPENVINO names no Python" end
for _, suffix in ipairs {"", ".onnx", ".sh", ".npy", ".input.npy"} do os.remove(base .. suffix) end
