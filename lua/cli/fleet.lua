-- `msched worker` and `msched fleet`: a device that serves a fleet; its queues, workers and tuners.
local ms = msched
local cli = ms.load "lua.cli.cli"
local fleet = {}

-- For tests: MSCHED_FLEET_SIMULATE, seconds that a job takes of a worker that measures nothing; MSCHED_FLEET_FACTOR, of
-- the times that it says.
local function number_of(name)
  local text = os.getenv(name)
  return text and (tonumber(text) or cli.misuse("%s=%s: a number is expected", name, text)) or nil
end

local function one_url(words, what)
  if #words ~= 1 then cli.misuse("give one address, redis://HOST[:PORT][/N]: %s", what) end
  return words[1]
end

function fleet.worker(options, words)
  local url = one_url(words, "the server that jobs come from")
  local builders = options.builders
  if builders and (builders < 1 or builders > 64) then
    cli.misuse("--builders must be from 1 to 64, not %d", builders)
  end
  ms.take_interrupts()
  local function say(text)
    io.stderr:write("msched worker: ", ms.visible(text), "\n")
    io.stderr:flush()
  end
  local Worker = ms.load "search.fleet.worker"
  local worker =
    Worker.open {url = url, name = options.name, number = options.device, builders = builders,
                 simulate = number_of "MSCHED_FLEET_SIMULATE", factor = number_of "MSCHED_FLEET_FACTOR", say = say}
  cli.print(string.format("worker %s serves %s at %s", worker.name, worker.device, worker.link.address.name))
  io.stdout:flush()
  local ok, message = pcall(worker.run, worker)
  local released = worker:close()
  if not ok and not ms.interrupted() then error(message, 0) end
  local left = released and string.format("%s given back", cli.count_text(released, "job"))
    or "the server does not answer, and takes back what is held when the lease is over"
  cli.print(string.format("worker %s: %s, %d of them failed; %s", worker.name, cli.count_text(worker.done, "job"),
                          worker.failed, left))
  return cli.DONE
end

local function json_of(q)
  local function people(list)
    local out = cli.list {}
    for i, w in ipairs(list) do
      out[i] = {name = w.name, host = w.host, alive = w.alive, aside = w.slow ~= "" and w.slow or w.liar or "",
                capacity = w.capacity, done = w.done, failed = w.failed, rate = w.rate, seen = w.seen}
    end
    return out
  end
  local poison = cli.list {}
  for i, p in ipairs(q.poison) do poison[i] = p end
  return {queue = q.id, device = q.device, versions = q.versions, is_own = q.is_own, waiting = q.jobs, held = q.held,
          workers = people(q.workers), tuners = people(q.tuners), poisoned = q.poisoned, poison = poison}
end

-- What was forgotten, a line a queue, or an object.
local function forget(status, url, as_json)
  for _, q in ipairs(status.forget(url)) do
    if as_json then
      cli.put_json {queue = q.id, device = q.device, versions = q.versions, forgotten = q.is_whole, workers = q.workers,
                    tuners = q.tuners, poisoned = q.poisoned, waiting = q.jobs}
    else
      local what = {cli.count_text(q.workers, "worker"), cli.count_text(q.tuners, "tuner"),
                    cli.count_text(q.poisoned, "poisoned job")}
      if q.is_whole then what[4] = cli.count_text(q.jobs, "job") .. ", and the queue, in which nobody lives" end
      cli.print(string.format("%s, of %s: forgot %s", q.device, q.versions, table.concat(what, ", ")))
    end
  end
  return cli.DONE
end

function fleet.fleet(options, words)
  local status = ms.load "search.fleet.status"
  local url = one_url(words, "the server of the fleet")
  if options.forget then return forget(status, url, options.json) end
  local list = status.of(url)
  if options.json then
    for _, q in ipairs(list) do cli.put_json(json_of(q)) end
  else
    for _, line in ipairs(status.lines(list)) do cli.print(line) end
  end
  return cli.DONE
end

return fleet
