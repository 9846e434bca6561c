-- Runs the tests that onnx_nodes.py has written, on the interpreter and as compiled plans, and counts: right, refused,
-- wrong. A refusal is a message of ours; what else is raised is wrong. Exit status 1 where one is wrong.
local ms = msched
local only_interpreted = arg[2] == "interpret"

local ROUNDED = {float16 = 2 ^ -9, bfloat16 = 2 ^ -6} -- two units in the last place: operations round one by one

local function close(got, want, rtol, atol)
  if got:type() ~= want:type() then return string.format("it is of %s, not %s", got:type(), want:type()) end
  if table.concat(got:shape(), "x") ~= table.concat(want:shape(), "x") then
    return string.format("it has extents %s, not %s", table.concat(got:shape(), "x"), table.concat(want:shape(), "x"))
  end
  rtol = math.max(rtol, ROUNDED[got:type()] or 0)
  local a, b = got:tolist(), want:tolist()
  for i, y in ipairs(b) do
    local x = a[i]
    local same = x == y or x ~= x and y ~= y or math.abs(x - y) <= atol + rtol * math.abs(y)
    if not same then return string.format("element %d is %s, not %s", i - 1, x, y) end
  end
end

-- "right", or what else and why.
local function judge(model, data, rtol, atol, interpret)
  local ok, net = pcall(ms.onnx, model)
  if not ok then return "refused", tostring(net) end
  for _, path in ipairs(data) do
    local read, holder = pcall(ms.onnx, path)
    if not read then return "refused", tostring(holder) end
    local inputs, wanted = {}, {}
    for name, array in pairs(holder.constants) do
      if name:find "^in:" then inputs[name:sub(4)] = array else wanted[name:sub(5)] = array end
    end
    local ran, outputs = pcall(function()
      if interpret then return (net:run(inputs, {interpret = true})) end
      return (net:plan {written = true, given = inputs}:run(inputs))
    end)
    if not ran then return tostring(outputs):find(model, 1, true) and "refused" or "wrong", tostring(outputs) end
    for _, output in ipairs(net.outputs) do
      local why = not outputs[output.name] and "it is not given"
        or close(outputs[output.name], wanted[output.name], rtol, atol)
      if why then return "wrong", (interpret and "interpreted, " or "compiled, ") .. output.name .. ": " .. why end
    end
  end
  return #data > 0 and "right" or "refused", "its data are no tensors"
end

local counts, total, reasons = {}, {right = 0, refused = 0, wrong = 0}, {}
for line in io.lines(arg[1]) do
  local words = {}
  for word in (line .. "\t"):gmatch "(.-)\t" do words[#words + 1] = word end
  local name, operator, rtol, atol, model = words[1], words[2], tonumber(words[3]), tonumber(words[4]), words[5]
  local data = table.move(words, 6, #words, 1, {})
  local verdict, why = judge(model, data, rtol, math.max(atol, 1e-7), true)
  if verdict == "right" and not only_interpreted then
    verdict, why = judge(model, data, rtol, math.max(atol, 1e-7), false)
  end
  counts[operator] = counts[operator] or {right = 0, refused = 0, wrong = 0}
  counts[operator][verdict], total[verdict] = counts[operator][verdict] + 1, total[verdict] + 1
  if verdict == "wrong" then print("wrong: " .. name .. ": " .. why) end
  if verdict == "refused" then
    local reason = why:gsub("^.-%.onnx: ", ""):gsub("\n.*", ""):gsub("that gives [^:]*", ""):sub(1, 110)
    reasons[reason] = (reasons[reason] or 0) + 1
  end
end
print(string.format("%-28s %6s %8s %6s", "operator", "right", "refused", "wrong"))
for _, operator in ipairs(ms.sorted_keys(counts)) do
  local c = counts[operator]
  print(string.format("%-28s %6d %8d %6d", operator, c.right, c.refused, c.wrong))
end
print(string.format("%-28s %6d %8d %6d", "all", total.right, total.refused, total.wrong))
print "refused because:"
local list = ms.sorted_keys(reasons)
table.sort(list, function(a, b) return reasons[a] > reasons[b] end)
for _, reason in ipairs(list) do print(string.format("%5d  %s", reasons[reason], reason)) end
os.exit(total.wrong == 0 and 0 or 1)
