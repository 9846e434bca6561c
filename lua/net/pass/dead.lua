-- Nodes of which nothing is read go, and constants that nothing reads.
local common = msched.load "lua.net.common"
local pass = {name = "dead", text = "removes what no output depends on"}

function pass.run(net)
  local read, kept = net:fixed_names(), {}
  for at = #net.nodes, 1, -1 do -- they are in an order that can be run
    local node, needed = net.nodes[at], false
    for _, name in ipairs(node.outputs) do needed = needed or read[name] end
    if needed then
      kept[#kept + 1] = node
      for _, name in ipairs(node.inputs) do read[name] = true end
    end
  end
  net.nodes = common.reversed(kept)
  local constants = {}
  for name, array in pairs(net.constants) do constants[name] = read[name] and array or nil end
  net.constants = constants
end

return pass
