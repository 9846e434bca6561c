-- The design space on small shapes: every sketch, drawn a few times, computes what the function computes.
local ms = require "msched"
local targets, space = ms.load "rules.targets", ms.load "rules.space"

local parts = space.parts(targets.context(ms.target "native"))

local root = arg[1]
local examples = {{"gemm", 48, 64, 80}, {"gemm", 37, 50, 29}, {"conv2d_bn_relu", 12, 8}, {"softmax", 8, 24}}
do -- TVMScript opens a space like Lua
  local file <close> = assert(io.open(root .. "/lua/examples/gemm.py"))
  assert(ms.from_script(file:read "a", "gemm.py"):hash()
         == assert(loadfile(root .. "/lua/examples/gemm.lua"))()[1]:hash())
end
local function example(e) return assert(loadfile(root .. "/lua/examples/" .. e[1] .. ".lua"))(table.unpack(e, 2))[1] end

-- Where a shipped rule says that it changes nothing, by `at` and `wanted`, it changes nothing.
for _, target in ipairs {"native", "llvm -mcpu=sapphirerapids -num-cores=4", "cuda -arch=sm_90a"} do
  local own = space.parts(targets.context(ms.target(target)))
  local everywhere, texts, left = {context = own.context, rules = {}, spaces = {}, users = {}}, {}, 0
  for i, rule in ipairs(own.rules) do
    left = left + ((rule.at or rule.wanted) and 1 or 0)
    everywhere.rules[i] = setmetatable({}, {__index = function(_, name)
      if name ~= "at" and name ~= "wanted" then return rule[name] end
    end})
  end
  assert(left > 10)
  for k, parts_ in ipairs {own, everywhere} do
    local list = {}
    for _, n in ipairs {1, 4} do
      for _, sketch in ipairs(space.generate(example(examples[n]), parts_)) do list[#list + 1] = sketch.trace:text() end
    end
    texts[k] = table.concat(list, "\n--\n")
  end
  assert(texts[1] == texts[2] and #texts[1] > 1000, target)
end

-- A user's rule is called at the root alone, at all other blocks, or at none, as it says.
do
  local gemm, called = example(examples[1]), {root = {}, blocks = {}, never = {}}
  local function counted(name, at, wanted)
    return {name = name, at = at, wanted = wanted, apply = function(sch, block)
      table.insert(called[name], sch:block_name(block))
      return {sch}
    end}
  end
  local rules = {counted("root", "root"), counted("blocks", "blocks", function(self, context, sch)
    return self.name == "blocks" and context.target.cores ~= nil and sch:has_block "C"
  end), counted("never", nil, function() return false end)}
  local made = space.generate(gemm, {context = parts.context, rules = rules, spaces = {}, users = {}})
  assert(#made == 1 and #made[1].trace == 0)
  assert(table.concat(called.root) == "root" and table.concat(called.blocks) == "C" and #called.never == 0)
  -- Where `wanted` is refused, the rule is, and no other; what it does to its schedule shows in no other.
  local report
  made, report = space.generate(gemm, {context = parts.context, spaces = {}, users = {}, rules = {
    counted("never", nil, function(_, _, sch) sch:annotate(sch:get_sblock "C", "mark", 1) end),
    counted("never", nil, function(_, _, sch) return sch:get_sblock "D" end),
    counted("root", "root", function(_, _, sch) return sch:annotation(sch:get_sblock "C", "mark") == nil end)}})
  assert(#made == 1 and #made[1].trace == 0 and #called.root == 2 and #called.never == 0)
  local by, refused = next(report.refused)
  assert(by:find "^never: " and refused.example:find("no block `D`", 1, true) and not next(report.refused, by))
  local ok, message = pcall(ms.rule, {name = "r", at = "leaves", apply = print})
  assert(not ok and message:find('ms.rule r: `at` is "root" or "blocks", all but the root', 1, true), message)
  ok, message = pcall(ms.rule, {name = "r", wanted = true, apply = print})
  assert(not ok and message:find("ms.rule r: `wanted` is a function", 1, true), message)
end

for _, e in ipairs(examples) do
  local func = example(e)
  local sketches = space.generate(func, parts)
  local checked, mutated = 0, 0
  for s, sketch in ipairs(sketches) do
    for c = 1, 2 do
      local ok, sch = pcall(ms.apply, func, sketch.trace, {seed = 7, candidate = 10 * s + c, resample = true})
      if ok then
        local trace = sch.trace
        if space.postprocess(sch, parts) then
          ms.build(sch:func(), {reference = func}):check {tolerance = 1e-3}
          checked = checked + 1
        end
        for m, mutator in ipairs(parts.mutators) do
          local other = mutator[1].apply(trace, ms.stream(1, s, c, m))
          if other then
            local good = pcall(ms.apply, func, other, {seed = 7, candidate = 10 * s + c, repair = true})
            mutated = mutated + (good and 1 or 0)
          end
        end
      end
    end
  end
  assert(checked >= #sketches,
         string.format("%s: %d of %d sketches drawn twice could be checked", e[1], checked, #sketches))
  assert(mutated > 0)
  print(string.format("%s: %d sketches, %d candidates equal to the interpreter, %d mutations", e[1], #sketches, checked,
                      mutated))
end
