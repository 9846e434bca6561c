-- Before a record's kernel leaves the store it is judged as a candidate is, in a process of its own: built, run, and
-- compared everywhere with what the unscheduled function computes. A record that is found wrong is marked so.
local ms = msched
local cli = ms.load "lua.cli.cli"
local recheck = {}

-- What becomes of the trace as a candidate that is patiently waited for.
local function measure(func, trace, target)
  local measurer = ms.measurer {target = target, patient = true}
  measurer:submit(measurer:add(func), 1, trace)
  local result
  repeat result = measurer:next(0.2) until result or ms.interrupted()
  measurer:close()
  return result or cli.refuse("interrupted")
end

-- Says in the store that a record failed; a file is open once in a process, and it was opened for reading.
local function mark(store, r, reason)
  local path = store:path()
  store:close()
  local ok, writable = pcall(ms.store, path)
  if not ok then return false end
  ok = pcall(writable.fail, writable, r.id, reason)
  writable:close()
  return ok
end

-- Refuses what is not as the unscheduled function.
function recheck.run(store, r, target)
  store:take_intrinsics(r.id)
  local func, trace, short = store:get_workload(r.workload), ms.read_trace(r.trace), r.id:sub(1, 12)
  if ms.apply(func, trace):hash() ~= r.hash then
    cli.refuse("record %s: its trace does not give its module %s", short, r.hash)
  end
  local result = measure(func, trace, target)
  if result.measured then return end
  if not result.outcome:find "^wrong result" then
    cli.refuse("record %s cannot be checked here: %s%s", short, result.outcome,
               result.reason ~= "" and ": " .. result.reason or "")
  end
  local reason = "wrong result, found on re-check: " .. result.reason
  local marked = mark(store, r, reason) and "it is marked failed" or "the store cannot be written, and does not say so"
  cli.refuse("record %s: %s; %s", short, reason, marked)
end

-- What may be exported: no record that failed, and none that is found wrong. What was measured on another machine,
-- which this one cannot be asked to run, leaves unchecked; target: its own, or another that it is built for.
function recheck.export(store, r, target)
  if r.status == "failed" then
    cli.refuse("record %s failed: %s; --force exports it all the same", r.id:sub(1, 12), r.reason)
  end
  if pcall(ms.target, r.target) then target = r.target end
  local runs, why = pcall(ms.target, target, {runs = true})
  if runs then recheck.run(store, r, target) else cli.warn("msched export: not checked: ", tostring(why)) end
end

return recheck
