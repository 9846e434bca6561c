-- The terms of `msched help TERM`: each is explained, by each of its forms; headings of what tables print, and each
-- status and
-- mark of a record, are among them.  usage: msched terms.lua SOURCE PROGRAM
local ms = require "msched"
local source, program = ...
local terms = ms.load "lua.cli.help.terms"

local files = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/files.lua")
local read, capture = files.read, files.capture

-- By help, in the program: the term, and its other forms with other letters; commands have help of their own.
local COMMANDS = {space = true, run = true}
local seen = {}
for _, term in ipairs(terms.list) do
  assert(#term.text > 20 and term.text:find "%.$", term.names[1])
  for _, name in ipairs(term.names) do
    assert(not seen[name:lower()], name .. " is there twice")
    seen[name:lower()] = true
    assert(terms.find(name) == term and terms.find(name:upper():gsub(" ", "-")) == term, name)
  end
  assert(not COMMANDS[term.names[1]], term.names[1])
end
for _, name in ipairs {"sketch", "trial", "candidate", "workload", "sblock", "roofline", "censored", "trace",
                       "decision", "Cost-Model", "tensor_core"} do
  assert(capture(string.format("'%s' help '%s'", program, name)):find(terms.find(name).text, 1, true), name)
end
assert(terms.find "nonsense" == nil)
local list = capture(string.format("'%s' help terms", program))
for _, term in ipairs(terms.list) do
  assert(list:find("\n  " .. term.names[1], 1, true), term.names[1] .. " is not listed")
end
local help = capture(string.format("'%s' help record", program)) -- a term, and a type
assert(help:find(terms.find "record".text, 1, true) and help:find(".status", 1, true))

-- Headings: those of the live table, and those of a report's tables, which stand in their files. Everyday words need no
-- help.
local EVERYDAY = {}
for _, words in ipairs {
  "best", "of time", "share of the time", "share of the search's own", "seconds", "second", "what", "value", "which is",
  "the best has", "reason",
  "an example", "loop", "loads", "stores", "other arithmetic", "best of A", "best of B", "records of A", "records of B",
  "A's time / B's",
  "values by mean rank: fastest (timed to the end, of all)",
} do EVERYDAY[words] = true end
local headings = 0
local function check(heading, where)
  headings = headings + 1
  assert(EVERYDAY[heading] or terms.find(heading),
         string.format("%s: the heading `%s` is no term of lua/cli/help/terms.lua", where, heading))
end
for title in read(source .. "/lua/cli/live.lua"):gmatch '{title = "([^"]+)"' do check(title, "live.lua") end
assert(headings >= 11, "the live table's columns were not found")
for _, name in ipairs {"report", "task"} do
  for columns in read(source .. "/lua/report/" .. name .. ".lua"):gmatch 'html%.table%(.-{("[^{}]*)}' do
    for title in columns:gmatch '"([^"]+)"' do check(title, name .. ".lua") end
  end
end
for title in read(source .. "/lua/report/task.lua"):match "COUNTS = (%b{})":gmatch ', "([^"]+)"}' do
  check(title, "task.lua")
end
assert(headings >= 40, headings .. " headings")

-- What a record may be.
local statuses = ms.load "lua.cli.help.docs".fields.record:match "status: string | ([^\n]*)"
for _, status in ipairs {"censored", "failed", "unmeasured"} do
  assert(statuses:find("%f[%a]" .. status .. "%f[%A]") and terms.find(status), status)
end
for _, mark in ipairs {"pinned", "unsafe", "busy machine", "not measured", "over"} do assert(terms.find(mark), mark) end

-- What doctor prints in front of its lines, and why candidates fail.
for _, name in ipairs {"cpu", "missing", "beyond", "cores", "CUDA", "GPUs", "clocks", "tensor"} do
  EVERYDAY[name] = true
end
local labels, commands = 0, read(source .. "/lua/cli/commands.lua")
local doctor = commands:match "\nlocal function machine_lines(.-)\nfunction commands"
for label in doctor:gmatch '{"(%a[%a ]*)",' do
  labels = labels + 1
  local name = label:gsub("^GPU ", "")
  assert(EVERYDAY[name] or terms.find(name), "doctor: the label `" .. label .. "` is no term")
end
assert(labels >= 17, labels .. " labels")
local outcomes = 0
for _, text in read(source .. "/jit/outcomes.def"):gmatch 'JIT_OUTCOME%((%u[%u_]*), "([^"]+)"%)' do
  outcomes = outcomes + 1
  assert(text == "measured" or terms.find(text), "the outcome `" .. text .. "` is no term")
end
assert(outcomes >= 18, outcomes .. " outcomes")
