-- Puts records together, so many a batch; imports a file: how long it takes, and the memory of the process, without the
-- pages of the store's file that it maps.
-- msched many_records.lua put STORE SOURCE RECORDS BATCH    SOURCE: a store with a record
-- msched many_records.lua import STORE FILE
local ms = require "msched"
local what, path, from = arg[1], arg[2], arg[3]
local store, began, most = ms.store(path), ms.clock(), 0

local function note_memory()
  for line in io.lines "/proc/self/status" do most = math.max(most, tonumber(line:match "^RssAnon:%s*(%d+)") or 0) end
end

local function put_batch(record, trace, workload, first, count)
  store:batch(function()
    for n = first, first + count - 1 do
      local r = {}
      for name, value in pairs(record) do r[name] = value end
      r.key, r.id, r.trace, r.workload = nil, nil, trace, workload
      r.hash, r.seconds = string.format("%016x", n * 2654435761 % (1 << 62)), 1e-6 + n * 1e-9
      r.low, r.high, r.candidate = r.seconds, r.seconds, n
      store:put(r)
      if n % 1000 == 0 then note_memory() end
    end
  end)
end

local function put_all(count, per)
  local source = ms.store(from, {read_only = true})
  local record = source:records {most = 1}[1]
  local workload = store:put_workload(source:get_workload(record.workload))
  local trace = ms.read_trace(record.trace)
  for first = 1, count, per do put_batch(record, trace, workload, first, math.min(per, count - first + 1)) end
  return count
end

local added = what == "put" and put_all(tonumber(arg[4]), tonumber(arg[5])) or store:import(from)
local seconds = ms.clock() - began
note_memory()
store:close()
local file = assert(io.open(path, "rb"))
print(string.format("%s: %d records in %.1f s, %.0f a second, %.0f bytes each, %.0f MiB of memory", what, added,
                    seconds, added / seconds, file:seek "end" / added, most / 1024))
