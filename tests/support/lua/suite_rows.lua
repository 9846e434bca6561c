-- The members of suites as rows of `bench ops --json` have them, named SUITE:NAME, not measured.
-- usage: msched suite_rows.lua SUITE…
local ms = require "msched"
local cli, named, suites = ms.load "lua.cli.cli", ms.load "lua.lib.ops.named", ms.load "lua.lib.ops.suites"
for _, suite in ipairs(arg) do
  for _, m in ipairs(suites.members(suite)) do
    cli.put_json {bench = "ops", task = suite .. ":" .. m.name, operator = m.operator,
                  values = named.values(m.operator, m.words)}
  end
end
