-- The passes over a network's graph, in order. A pass takes a network and what infer.static knows of it, and changes
-- its nodes and constants; what the network computes stays. Each stands in a file of its own in pass/: {name =, text =,
-- run = function(net, values)}; needs_values: it gets what infer.static knows of the values, else nil.
local ms = msched
local infer = ms.load "lua.net.infer"
local passes = {}

passes.NAMES = {"constants", "batch_norm", "layer_norm", "duplicates", "dead"}

function passes.find(name) return ms.load("lua.net.pass." .. name) end

-- passes.run(net, {given = arrays, after = f}): a copy of the network after all of them. after(name, net) is called
-- after each.
function passes.run(net, options)
  local work = net:copy()
  for _, name in ipairs(passes.NAMES) do
    local pass = passes.find(name)
    pass.run(work, pass.needs_values and infer.static(work, options.given).values)
    work:check()
    if options.after then options.after(name, work) end
  end
  return work
end

return passes
