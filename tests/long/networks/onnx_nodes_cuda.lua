-- Functions of the tests that onnx_nodes.py has written, for a GPU, without one: each is scheduled by the analytical
-- model, its lowered form gives in the interpreter what the function gives, and NVRTC compiles its source for the
-- target. usage: msched onnx_nodes_cuda.lua LIST [TARGET]. Exit status 1 where one fails; networks that are refused are
-- left out.
local ms = msched
local plans, tune = ms.load "lua.net.plan", ms.load "search.tune"
local TARGET = arg[2] or "cuda -arch=sm_90"
local store = ms.store(os.tmpname())

-- The functions of a model's plan that no model before it had; none where it is refused.
local seen = {}
local function functions_of(model, data)
  local inputs = {}
  local ok, prepared = pcall(function()
    for name, array in pairs(data and ms.onnx(data).constants or {}) do
      if name:find "^in:" then inputs[name:sub(4)] = array end
    end
    return plans.prepare(ms.onnx(model), {given = inputs})
  end)
  local items = {}
  for _, entry in ipairs(ok and prepared.functions or {}) do
    if not seen[entry.hash] and not entry.func:has_empty() then items[#items + 1] = {entry.func} end
    seen[entry.hash] = true
  end
  return items
end

-- Raises why a task's best candidate is not right.
local function judge(task)
  if not task.fastest then error(task.error or "there is no schedule", 0) end
  local scheduled = ms.apply(task.func, task.fastest.trace):func()
  ms.check_lowered(task.func, scheduled, TARGET, 1)
  ms.build(scheduled, {target = TARGET, load = false}):resources(true)
end

local right, wrong = 0, 0
local function note(name, ok, why)
  if ok then right = right + 1 return end
  wrong = wrong + 1
  print(name .. ": " .. tostring(why))
end
for line in io.lines(arg[1]) do
  local words = {}
  for word in (line .. "\t"):gmatch "(.-)\t" do words[#words + 1] = word end
  local items = functions_of(words[5], words[6])
  if #items > 0 then
    local ok, tasks = pcall(tune.all, items, {target = TARGET, no_tune = true, store = store, listen = function() end})
    if not ok then note(words[1], false, tasks) end
    for _, task in ipairs(ok and tasks or {}) do note(words[1], pcall(judge, task)) end
  end
  io.stdout:flush()
end
print(string.format("%d functions right, %d wrong", right, wrong))
os.exit(wrong == 0 and 0 or 1)
