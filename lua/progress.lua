-- What tuning shows: one line that is rewritten on a terminal, lines elsewhere, or objects.
local ms, cli = msched, msched.load "lua.cli"
local tune, refusals = msched.load "search.tune", msched.load "rules.refusals"

local progress = {}

-- What ends the run first: its trials, or its seconds.
local function seconds_left(env, elapsed)
  local left = env.done > 0 and elapsed / env.done * (env.trials - env.done) or math.huge
  return math.min(left, env.deadline and env.deadline - env.started - elapsed or math.huge)
end

local function status(env, name, work)
  local parts, best = {string.format("%s: trial %d of %d", name, env.done, env.trials)}, env.fastest
  local function add(format, ...) parts[#parts + 1] = string.format(format, ...) end
  if best then add("best %s %s (%s)", cli.time_text(best.seconds), cli.rate_text(work, best.seconds), best.id or "-") else add("no best yet") end
  local elapsed = env.seconds or ms.clock() - env.started
  local left = seconds_left(env, elapsed)
  if not env.seconds and left < math.huge then add("%.0f s, about %.0f s left", elapsed, math.max(left, 0)) else add("%.0f s", elapsed) end
  add("failed: %s", tune.reasons_text(env.failures))
  if env.repeated > 0 then add("repeated: %d", env.repeated) end
  if env.busy > 0 then add("machine busy at %d", env.busy) end
  return table.concat(parts, ", ")
end

local function start_text(env, name)
  local more = {}
  if env.thinned then more[#more + 1] = "of more, drawn by the seed" end
  if env.resumed > 0 then more[#more + 1] = env.resumed .. " records known" end
  return string.format("%s on %s: %d sketches%s", name, env.target.text, #env.sketches, #more > 0 and ", " .. table.concat(more, ", ") or "")
end

-- A line after so many results without a new best, or so many seconds without a line.
local QUIET, SILENT = 16, 60

-- width: the terminal's columns; nil: it is none.
function progress.lines(func, width)
  local name, work = func:name(), cli.work_of(func)
  local best, results, said = nil, 0, ms.clock()
  return function(e)
    local env = e.env
    results = results + (e.event == "trial" and 1 or 0)
    if e.event == "start" then
      print(start_text(env, name))
      if env.model_refused then print(string.format("%s: the search goes on without the model: %s", name, env.model_refused)) end
    elseif e.event == "end" then
      if width then io.stdout:write "\r\27[K" end
      print(status(env, name, work))
      if env.retimed > 0 then print(string.format("%s: the best %d were timed again, in turn", name, env.retimed)) end
      if env.ended then print(string.format("%s: ended with %d of %d trials: %s", name, env.done, env.trials, env.ended.text)) end
    elseif width then
      io.stdout:write("\r\27[K", cli.cut(status(env, name, work), width - 1))
    elseif results >= QUIET or ms.clock() - said > SILENT or e.event == "trial" and env.fastest and env.fastest.seconds ~= best then
      best, results, said = env.fastest and env.fastest.seconds, 0, ms.clock()
      print(status(env, name, work))
    end
    io.stdout:flush()
  end
end

function progress.json(func)
  local name = func:name()
  return function(e)
    local env = e.env
    if e.event == "trial" then
      cli.put_json {event = "trial", task = name, id = e.id, short_id = e.short_id, status = e.status, outcome = e.outcome, seconds = e.seconds,
                    hash = e.hash, candidate = e.candidate, reason = e.reason, busy = e.busy}
    elseif e.event == "start" then
      cli.put_json {event = "start", task = name, target = env.target.text, trials = env.trials, sketches = #env.sketches, known = env.resumed}
    elseif e.event == "end" then
      cli.put_json {event = "end", task = name, trials = env.done, seconds = env.seconds, best = env.fastest and env.fastest.full_id,
                    best_seconds = env.fastest and env.fastest.seconds, failures = env.failures, refused = refusals.counts(env.refused),
                    repeated = env.repeated, busy = env.busy, retimed = env.retimed, ended = env.ended and env.ended.why or env:stopped() and "interrupted" or "trials"}
    end
  end
end

return progress
