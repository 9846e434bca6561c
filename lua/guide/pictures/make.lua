-- The pictures of README.md, as SVG, of a run on this machine: the live table of tuning, the best so far by trial, the
-- loops
-- of the best schedule.  usage: msched lua/guide/pictures/make.lua FOLDER [TRIALS]
local ms = require "msched"
local folder, trials = ..., tonumber((select(2, ...)) or 48)
assert(folder and math.type(trials) == "integer" and trials >= 4,
       "usage: msched make.lua FOLDER [TRIALS], of at least 4")

local html, part = ms.load "lua.report.html", ms.load "lua.report.task"
local live, progress, tune = ms.load "lua.cli.live", ms.load "lua.cli.progress", ms.load "search.tune"
ms.load "lua.lib.draw"

local COLUMNS, LINES = 92, 24 -- of the terminal that is drawn

-- ---- SVG ---------------------------------------------------------------------------------------------------------

-- Colours by what the reader's screen prefers: a picture in a page is asked itself.
local STYLE = [[
.back { fill: #ffffff; stroke: #d4d9df; } text { fill: #1b1f24; } .soft { fill: #5a6470; }
.mono { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; } .plain { font: 12px system-ui, sans-serif; }
.axis, .grid { stroke: #d4d9df; fill: none; } .c1 { fill: none; stroke: #0b62c4; stroke-width: 2; } .dots { stroke-width: 4; stroke-linecap: round; opacity: .5; }
@media (prefers-color-scheme: dark) {
  .back { fill: #14171b; stroke: #3a424c; } text { fill: #e4e8ec; } .soft { fill: #a2adb9; } .axis, .grid { stroke: #3a424c; } .c1 { stroke: #6cb0ff; }
}]]

local function svg(width, height, title, ...)
  return html.element("svg", {xmlns = "http://www.w3.org/2000/svg", width = width, height = height,
                              viewBox = string.format("0 0 %d %d", width, height), role = "img",
                              ["aria-label"] = title},
                      "\n", html.element("title", {}, html.text(title)), "\n", html.element("style", {}, STYLE), "\n",
                      html.element("rect", {class = "back", x = "0.5", y = "0.5", width = width - 1,
                                            height = height - 1, rx = "6"}, ""), "\n", ...) .. "\n"
end

local EM, LINE, EDGE = 7.85, 18, 14 -- of a character, a line, the edge

-- Text as a terminal shows it; the first line is what was typed.
local function terminal(title, lines)
  local parts, widest = {}, 0
  for i, text in ipairs(lines) do
    widest = math.max(widest, utf8.len(text))
    parts[i] = html.element("text", {class = i == 1 and "mono soft" or "mono", x = EDGE, y = EDGE + i * LINE - 5,
                                     ["xml:space"] = "preserve"}, html.text(text)) .. "\n"
  end
  return svg(math.ceil(2 * EDGE + widest * EM), 2 * EDGE + #lines * LINE, title, table.concat(parts))
end

-- The curve of a report, with its axes named.
local function curve(title, points)
  local figure = part.curve({{name = "the best so far", points = points}}, "trial", title, "trials")
  local width, height, inner = figure:match '<svg[^>]-viewBox="0 0 (%d+) (%d+)">(.-)</svg>'
  local text =
    html.element("text", {class = "plain", x = EDGE, y = 20}, html.text(title .. ": candidates, and the best so far"))
  return svg(width + 2 * EDGE, height + 36, title, text, "\n", html.element("g", {class = "plain",
             transform = string.format("translate(%d 28)", EDGE)}, (inner:gsub("<text ", '<text class="soft" '))))
end

-- ---- The run -----------------------------------------------------------------------------------------------------

local here = arg[0]:match "^(.*)/" or "."
local functions = assert(loadfile(here .. "/kernels.lua"))()
local store_path = os.tmpname()
os.remove(store_path)
local store = ms.store(store_path)
local states, taken, done = {}, nil, 0
local screen = live.new {width = function() return COLUMNS end, height = function() return LINES end,
                         write = function() end, bars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}}
local listen = progress.lines(screen, states)
local tasks = tune.all(functions, {trials = trials, store = store,
  limit = ms.load "lua.bench.limits".for_tuning().limit, listen = function(e)
  listen(e)
  if e.event ~= "trial" then return end
  done = done + 1
  if done <= 0.9 * trials * #functions and #screen.states == #functions then -- while none has ended
    taken = live.lines(screen.states, states[e.task], e.elapsed, COLUMNS - 1, LINES, screen.bars)
  end
end})
assert(taken, "no moment of the run shows all tasks")

local function write(name, text)
  local path = folder .. "/" .. name
  local file = assert(io.open(path, "w"))
  assert(file:write(text))
  file:close()
  print(path)
end

table.insert(taken, 1, "$ msched tune lua/guide/pictures/kernels.lua --trials " .. trials)
write("tune.svg", terminal("The live table of msched tune: a row a task, the curve of the best so far, failures, \z
                            builds and runs a second", taken))
local facts = ms.load "lua.report.facts".of(store, {tasks[1].name})[1]
write("best.svg", curve("Tuning " .. tasks[1].name, facts.runs[1].curve))
local sch = ms.apply(tasks[2].func, tasks[2].fastest.trace)
local lines = {"> sch:draw()"}
for line in (sch:draw() .. "\n"):gmatch "([^\n]*)\n" do lines[#lines + 1] = line end
write("nest.svg", terminal("The loops of the best schedule found, with the bytes that one run of each touches", lines))
store:close()
for _, suffix in ipairs {"", "-lock"} do os.remove(store_path .. suffix) end
