-- Stores of records whose times are made up.  usage: stores.lua A B: two; stores.lua A again: a record of A again,
-- slower; stores.lua A many: thousands in A; stores.lua A found: what is found in A; stores.lua A batch: what batches
-- keep stores.lua A odd: two records, of which merging takes one; stores.lua A merge: what store:merge refuses
local ms = require "msched"
local te = ms.te
local a, what = ...

-- The outer loop of the product split by factors; without any, the function as it is.
local function schedule(func, factors)
  local sch = ms.schedule(func)
  if factors then sch:split((sch:get_loops(sch:get_sblock "C")), factors) end
  return sch
end

local matmul = ms.ops.func("matmul", {8, 8, 4})
local relu = ms.ops.func("relu", {"16"})
local V3, V4 = "llvm -mcpu=x86-64-v3 -num-cores=1", "llvm -mcpu=x86-64-v4 -num-cores=1"
local DAY = {}
for day = 1, 9 do DAY[day] = os.time {year = 2024, month = 5, day = day, hour = 12} end

-- A line of `db export`, its time another.
local function import(store, lines)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(table.concat(lines, "\n"), "\n")
  file:close()
  local _, refused, why = store:import(path)
  os.remove(path)
  assert(refused == 0, why)
end

-- Records {func, factors, target, milliseconds, day, status}, put into a store as lines of an export whose days are
-- changed.
local function fill(path, records)
  local made, text, lines = os.tmpname(), os.tmpname(), {}
  os.remove(made)
  local store = ms.store(made .. ".db")
  local days = {}
  store:batch(function()
    for _, r in ipairs(records) do
      local sch = schedule(r[1], r[2])
      local id = store:put {workload = store:put_workload(r[1]), target = r[3], trace = sch.trace, hash = r.hash
                            or sch:hash(), status = r[6] or "measured", seconds = r[4] / 1e3, low = r[4] / 1e3,
                            high = r[4] / 1e3, runs = 3, reason = r[6] == "failed" and "wrong result" or ""}
      days[id] = DAY[r[5]]
    end
  end)
  store:export(text)
  store:close()
  for line in io.lines(text) do
    local id = line:match '"record":"(%x+)"'
    lines[#lines + 1] = id and line:gsub('"when":%d+', '"when":' .. days[id]) or line
  end
  for _, name in ipairs {text, made .. ".db", made .. ".db-lock"} do os.remove(name) end
  store = ms.store(path)
  import(store, lines)
  store:close()
end

if what == "odd" then
  local store = ms.store(a)
  for hash = 1, 2 do
    store:put {workload = store:put_workload(relu), target = V3, trace = schedule(relu).trace,
               hash = string.format("%016x", hash), status = "measured", seconds = 1, low = hash, high = 1, runs = 3,
               reason = ""}
  end
  store:close()
  os.exit()
end

if what == "merge" then
  local store, other = ms.store(a), ms.store(os.tmpname() .. ".db")
  for _, given in ipairs {store, 1, false} do
    assert(not pcall(store.merge, store, given), "merged what is no other store")
  end
  local added, known, refused, why = other:merge(store)
  assert(added == 1 and known == 0 and refused == 1, why)
  assert(why:match "^record %x+: `low`, 2, must not be above `high`, 1\n$", why)
  added, known = other:merge(store)
  assert(added == 0 and known == 1)
  local path = other:path()
  other:close()
  assert(not pcall(store.merge, store, other), "merged a closed store")
  for _, name in ipairs {path, path .. "-lock", (path:gsub("%.db$", ""))} do os.remove(name) end
  os.exit()
end

if what == "again" then -- a record that is pinned is measured again
  local store = ms.store(a)
  local sch = schedule(matmul, {4, 2})
  store:put {workload = store:put_workload(matmul), target = V3, trace = sch.trace, hash = sch:hash(),
             status = "measured", seconds = 2.5e-3, low = 2e-3, high = 3e-3, runs = 3}
  store:close()
elseif what == "batch" then -- batches: larger than the file, with an error, within each other
  local store = ms.store(a)
  local workload, sch = store:put_workload(matmul), schedule(matmul)
  local function put(n, bytes)
    store:put {workload = workload, target = V3, trace = sch.trace, hash = string.format("%016x", n), status = "failed",
               reason = string.rep("x", bytes)}
  end
  local function count() return #store:records {workload = workload} end
  store:batch(function()
    for n = 1, 400 do
      put(n, 1 << 16)
      assert(n % 100 > 0 or count() == n, "a batch does not see what it has put")
    end
  end)
  assert(count() == 400)
  local ok, why = pcall(store.batch, store, function()
    put(1000, 1)
    error("oh", 0)
  end)
  assert(not ok and why == "oh" and count() == 401, "what was put before an error is lost")
  for _, f in ipairs {function() store:batch(print) end, function() store:import "/dev/null" end,
                      function() store:compact() end} do
    ok, why = pcall(store.batch, store, f)
    assert(not ok and why:find "a batch is open", tostring(why))
  end
  ok, why = pcall(store.batch, store, function() store:close() end)
  assert(not ok and why:find "the store was closed in its batch", tostring(why))
  store = ms.store(a)
  assert(store:check() == 0 and count() == 401)
  store:close()
elseif what == "found" then -- records by words, their schedules, and what their fields are called
  local store = ms.store(a, {read_only = true})
  local r = store:find "matmul_8x8x4"
  assert(r.status == "measured" and r.seconds == 1e-3 and store:find(r.id).id == r.id
         and store:find(r.id:sub(1, 8)).id == r.id)
  assert(store:schedule "matmul_8x8x4":hash() == r.hash and store:schedule(r.id):hash() == r.hash)
  assert(#store:records() == 5 and #store:records {workload = r.workload} == 4 and not store:find "00000000")
  -- What lists show: of functions without reading them, of records without their traces.
  local outlines, shown = store:outlines(), {}
  for _, w in ipairs(store:workloads()) do
    local o, work = outlines[w.id], store:get_workload(w.id):work()
    for _, key in ipairs {"floats", "integers", "read_bytes", "written_bytes"} do assert(o[key] == work[key], key) end
    shown[#shown + 1] = table.concat(o.arguments, "; ")
  end
  table.sort(shown)
  assert(table.concat(shown, "\n") == "float32[16]; float32[16]\nfloat32[8, 4]; float32[4, 8]; float32[8, 8]")
  local briefs = store:records {workload = r.workload, note = "Split", most = 2}
  for i, full in ipairs(store:records {workload = r.workload, most = 2}) do
    local brief = briefs[i]
    for _, key in ipairs {"id", "key", "status", "seconds", "when", "target", "reason", "versions"} do
      assert(brief[key] == full[key], key)
    end
    assert(brief.short_id == store:short_id(full.key) and not brief.trace)
    assert((brief.noted or false) == (full.trace:find("Split", 1, true) ~= nil))
    assert((brief.unsafe or false) == full.unsafe)
  end
  assert(#briefs == 2 and briefs[1].noted)
  -- Lines of the fastest: nil where records that are no part of them come next, as one that failed.
  local bests = store:bests(2)
  assert(bests:lines(r.workload, V3, 2, 1e6, "GFLOP/s", 0)
    == string.format("    1  %s  1.000 ms  1.0 GFLOP/s  %s\n    2  %s  2.000 ms  0.5 GFLOP/s  %s\n",
                     briefs[1].short_id, V3, briefs[2].short_id, V3))
  assert(bests:lines(r.workload, "no target", 2, 0, "", 0) == "" and not bests:lines(r.workload, V3, 3, 0, "", 0))
  assert(not store:bests(9):lines(r.workload, nil, 9, 0, "", 0) and not pcall(store.bests, store, 0))
  assert(not store:records {workload = r.workload, note = "no trace has this", most = 1}[1].noted)
  local function refuses(words, f, ...)
    local ok, why = pcall(f, ...)
    assert(not ok and why:find("^[^:]*stores.lua:%d+: [^:]*" .. words), why)
  end
  refuses("`best` may be 2 records", store.find, store, "best")
  refuses("`fly` is no record's id", store.find, store, "fly")
  refuses("store:find takes a record's ID, a task's name", store.find, store, 4)
  refuses("no record `00000000` in ", store.schedule, store, "00000000")
  refuses("there is no option `task`; known are workload", store.records, store, {task = "matmul_8x8x4"})
  -- Help knows the fields that there are, and no others.
  local function explained(owner, t)
    local known, text = {}, ms.load "lua.cli.help.docs".fields[owner]
    for name, mark in text:gmatch "([%w_]+)(%??): %S+ | %S" do
      known[name] = true
      assert(t[name] ~= nil or mark == "?", owner .. "." .. name .. " is explained, and not there")
    end
    for name in pairs(t) do assert(known[name], owner .. "." .. name .. " is not explained") end
  end
  explained("record", r)
  local sch = ms.schedule(matmul)
  sch:sample_perfect_tile((sch:get_loops(sch:get_sblock "C")), 2)
  explained("draw", sch.trace:draws()[1])
elseif what == "many" then
  local records = {}
  for i = 1, 3000 do
    records[i] = {matmul, i % 2 == 0 and {2, 4} or {4, 2}, V3, i, 1 + i % 9, hash = string.format("%016x", i)}
  end
  fill(a, records)
else
  fill(a, {{matmul, {2, 4}, V3, 1, 1}, {matmul, {4, 2}, V3, 2, 2}, {matmul, {8, 1}, V3, 3, 3},
           {matmul, nil, V4, 0, 4, "failed"}, {relu, nil, V3, 1, 1}})
  fill(what, {{matmul, {2, 4}, V3, 0.5, 5}})
end
