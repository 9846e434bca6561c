-- Where kernels stand below a roofline: operations a second over operations a byte that must be moved.
local ms = msched
local cli, chart, schedulers, html = ms.load "lua.cli.cli", ms.load "lua.report.chart", ms.load "search.scheduler",
  ms.load "lua.report.html"
local rates = ms.load "lua.cli.rates"
local roofline = {}

-- The roof from one intensity to another, as points.
local function roof_line(most, bytes, low, high)
  local points = {}
  for i = 0, 40 do
    local x = low * (high / low) ^ (i / 40)
    points[#points + 1] = {x, math.min(most, x * bytes) / 1e9}
  end
  return points
end

-- The share that a task's best has of its limit: of what was measured (task.limit), or of what no kernel passes. nil:
-- nothing was measured of the task, or the limit is not known.
function roofline.share(task)
  if not task.best or not task.machine or not task.func or task.best.seconds <= 0 then return nil end
  return rates.share(task.limit, task.best.seconds) or schedulers.bound(task.func, task.machine) / task.best.seconds
end

-- What kernels of the task reach there, beside what was measured: {limit, operations, bytes, name}, or why not.
local function measured_text(task, measured, why)
  if measured then
    local share = rates.share(measured.limit, task.best.seconds)
    return html.element("p", {}, html.number(share, string.format("%.1f %%", 100 * share)),
                        html.text(string.format(" of what %s was measured to reach: %s.", measured.name,
                                                rates.limit_text(task.work, measured.limit))))
  end
  if why then return html.paragraph("What it reaches was not measured: " .. why .. ".") end
  local share = rates.share(task.limit, task.best.seconds)
  return share and html.element("p", {}, html.number(share, string.format("%.1f %%", 100 * share)),
                                html.text(string.format(" of what was measured when the best was: the limit is %s.",
                                                        task.limit.name))) or ""
end

-- The message about a unit that the best leaves idle, as tuning gives it; nil: it uses it, or there is none.
local function unused_text(task, trace)
  local limit = task.limit
  if not limit then return nil end
  if not limit.unit then -- as a record has it
    local unit = ms.load "lua.bench.limits".unit_named(limit.name, task.machine)
    limit = {name = limit.name, seconds = limit.seconds,
             unit = unit and {name = unit.name, unit = unit.unit, seconds = limit.seconds}}
  end
  return rates.unused_text(task.work, limit, task.best.seconds,
                           function() return rates.uses(limit.unit, task.func, trace, task.machine) end)
end

-- The picture of a task's best, made by the trace; measured: {limit, operations, bytes} a second of what runs it, and
-- its name, or nil; and why it is not.
function roofline.page(task, trace, measured, why)
  local roof = schedulers.roof(task.func, task.machine)
  if roof.operations == 0 then
    return html.element("p", {}, "The function does no arithmetic: it moves ", html.number(task.work.bytes
                        / task.best.seconds, rates.bytes_text(task.work, task.best.seconds)), ".") ..
      measured_text(task, measured, why)
  end
  local x, y = roof.operations / roof.bytes, roof.operations / task.best.seconds
  local ridge = roof.operations_a_second / roof.bytes_a_second
  local low, high = math.min(x, ridge) / 8, math.max(x, ridge) * 8
  local layers = {{kind = "line", class = "c2", name = "no kernel passes it",
                   points = roof_line(roof.operations_a_second, roof.bytes_a_second, low, high)}}
  if measured then
    layers[2] = {kind = "line", class = "c3", name = measured.name .. ", measured",
                 points = roof_line(measured.operations, measured.bytes, low, high)}
  end
  layers[#layers + 1] = {kind = "mark", class = "c1", name = "the best", point = "the best", points = {{x, y / 1e9}}}
  local bound = math.min(roof.operations_a_second, x * roof.bytes_a_second)
  local share = html.element("p", {}, "The best reaches ", html.number(y, cli.rate_text(task.work, task.best.seconds)),
                             ", ", html.number(y / bound, string.format("%.1f %%", 100 * y / bound)),
                             html.text(string.format(" of what no kernel passes at %.3g operations a byte.", x)))
  local picture = chart.draw {
    title = "Roofline", description = string.format("the best does %.4g %s at %.3g operations a byte", y / 1e9,
                                                    task.work.unit, x), layers = layers,
    x = {label = "operations a byte that must be moved", unit = "operations a byte", log = true,
         show = function(n) return string.format("%.4g", n) end},
    y = {label = task.work.unit, unit = task.work.unit, log = true,
         show = function(n) return string.format("%.4g", n) end},
  }
  local unused = unused_text(task, trace)
  return share .. measured_text(task, measured, why) .. (unused and html.paragraph(unused .. ".") or "") .. picture
end

return roofline
