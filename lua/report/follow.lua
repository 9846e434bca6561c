-- `msched report --follow`: a page that is written again while the store changes, and that loads itself again in the
-- reader's browser. The file always is a whole page: another takes its place. The store may be one that a tuner writes,
-- that is not there yet, that cannot be read for a while; a page that cannot be written is tried again. In the end the
-- page is as any other report.
local ms = msched
local cli, html = ms.load "lua.cli.cli", ms.load "lua.report.html"
local follow = {}

local POLL = 0.2   -- seconds between two looks at the store
local EVERY = 1    -- seconds between two pages, at least
local PATIENCE = 9 -- times the processor's seconds of a page, at least, until the next: a tuner has the machine
local SILENT = 3   -- seconds that something may be wrong until it is said: a store that is just being made, or replaced
local BEAT = 10    -- seconds after which a page that did not change is written again: it shows that it is followed
local SETTLES = 3  -- seconds after a change until a store gives it for certain: LMDB's readers get a commit of another
                   -- process when that has noted it in the lock file, behind the pages of roots
local RELOAD = 2   -- seconds between two looks of the page at its file
local META = 8192  -- bytes of a store's file that every commit changes: LMDB's two pages of roots

-- What changes when something was committed, or another file has taken the place; nil: there is none.
local function stamp_of(path)
  local file = io.open(path, "rb")
  local stamp = file and file:read(META)
  if file then file:close() end
  return stamp
end

local function message_of(problem) return type(problem) == "table" and problem.message or tostring(problem) end

-- options: of the command. make(again): the page's body, its tasks and the store's path; raises where the store cannot
-- be read; again: nothing of the pages before is taken.
local function new(options, make)
  local never = -math.huge
  return {options = options, make = make, body = "", tasks = {}, pages = 0, problems = {}, made_at = never,
          wrote_at = never, took = 0}
end

-- Says what has been wrong for a while, and that it is no more, once each.
local function say(f, what, problem)
  local last, now = f.problems[what], ms.clock()
  if not problem then
    if last and last.said then cli.warn("msched report: ", last.text, ": this is over") end
    f.problems[what] = nil
  elseif not last or last.text ~= problem then f.problems[what] = {text = problem, since = last and last.since or now}
  elseif not last.said and now - last.since >= SILENT then
    cli.warn("msched report: ", problem, "; it is tried again")
    last.said = true
  end
end

-- Makes the body again. false, and why: the store is as it was said. nil: an interrupt ended it.
local function remake(f, interruptible, again)
  f.stamp = f.path and stamp_of(f.path)
  local start = os.clock()
  local ok, body, tasks, path = interruptible(f.make, again)
  f.made_at, f.took = ms.clock(), os.clock() - start
  if not ok and ms.interrupted() and interruptible == ms.interruptible then return nil end
  if not ok then return false, message_of(body) end
  f.body, f.tasks, f.path, f.missing = body, tasks, path, nil
  f.stamp = f.stamp or stamp_of(path)
  return true
end

-- A store that is not there yet is waited for.
local function missing_path(message) return message:match "^(.-): there is no store" end

local function wait_for(f, path)
  f.path, f.missing, f.tasks = path, true, {}
  f.stamp = stamp_of(path)
  local text = "There is no store yet: " .. path .. ". This page shows it when there is one."
  f.body = html.element("h1", {}, "Report of msched") .. html.paragraph(text)
end

-- The time of the day; the computer's clock may be past what a calendar has.
local function time_text()
  local ok, text = pcall(os.date, "%H:%M:%S")
  return ok and text or "an unknown time"
end

local function text_of(f, ended)
  if ended then return html.page("msched report", f.body) end
  local note = string.format("Follows %s; written at %s.", f.path, time_text())
  local unreadable = f.problems.store
  if unreadable and unreadable.said then note = note .. " The store cannot be read now: " .. unreadable.text .. "." end
  local line = html.element("p", {id = "follow", class = "soft", ["data-text"] = note}, html.text(note))
  return html.page("msched report", line .. "\n" .. f.body, {every = RELOAD, written = os.time()})
end

local function count_records(tasks)
  local records = 0
  for _, task in ipairs(tasks) do records = records + task.total end
  return records
end

-- Writes the page; false, and why.
local function write(f, ended)
  local text = text_of(f, ended)
  local ok, message = ms.replace_file(f.options.output, text)
  f.wrote_at = ms.clock()
  if not ok then return false, message end
  f.pages, f.bytes, f.written = f.pages + 1, #text, f.body
  if f.options.json then
    local records = count_records(f.tasks)
    cli.put_json {file = f.options.output, tasks = #f.tasks, records = records, bytes = #text, ended = ended or false}
  end
  return true
end

-- The first page: what is wrong now is a mistake of the user's.
local function begin(f)
  local made, why
  for _ = 1, 2 do -- a store that a tuner makes at this moment is there in the next
    made, why = remake(f, pcall)
    if made or missing_path(why) then break end
    ms.sleep(EVERY)
  end
  if not made then
    local path = missing_path(why)
    if not path then cli.refuse("%s", why) end
    wait_for(f, path)
  end
  local written, problem = write(f)
  if not written then cli.refuse("%s", problem) end
  if not f.options.json then
    local where = f.path .. (f.missing and ", which is not there yet" or "")
    cli.print(string.format("%s: follows %s; Ctrl-C ends it", f.options.output, where))
    io.stdout:flush()
  end
end

-- Looks at the store, makes the page again where it has changed, and writes it.
local function turn(f)
  local now, stamp = ms.clock(), stamp_of(f.path)
  local is_due = now - f.made_at >= math.max(EVERY, PATIENCE * f.took)
  if stamp ~= f.seen then f.seen, f.changed_at = stamp, now end
  local settled = f.changed_at + SETTLES
  local is_late = f.made_at < settled and settled <= now
  if is_due and (stamp ~= f.stamp or f.problems.store or is_late) and (stamp or not f.missing) then
    local made, why = remake(f, ms.interruptible)
    if made == nil then return end
    say(f, "store", not made and not (f.missing and missing_path(why)) and why or nil)
  end
  local is_new = (f.body ~= f.written or f.problems.page) and now - f.wrote_at >= EVERY
  if is_new or now - f.wrote_at >= BEAT then
    local written, problem = write(f)
    say(f, "page", not written and problem or nil)
  end
end

-- The last page, of the store as it is now, which follows no more.
local function finish(f)
  collectgarbage() -- closes the store of a page that the interrupt ended, which is not opened twice
  remake(f, pcall, true) -- what could not be built then, on a full disk, may be now
  local written, problem = write(f, true)
  if not written then cli.refuse("%s", problem) end
  if not f.options.json then
    local tasks, records = cli.count_text(#f.tasks, "task"), cli.count_text(count_records(f.tasks), "record")
    local pages = cli.count_text(f.pages, "time")
    cli.print(string.format("%s: %s, %s, %.0f KiB; written %s", f.options.output, tasks, records, f.bytes / 1024,
                            pages))
  end
  return cli.DONE
end

-- Follows until an interrupt, or until the store has not changed for options["until-idle"] seconds.
function follow.run(options, make)
  local f, idle = new(options, make), cli.seconds(options, "until-idle") or math.huge
  ms.take_interrupts()
  begin(f)
  f.seen, f.changed_at = f.stamp, ms.clock()
  while not ms.interrupted() and ms.clock() - f.changed_at < idle do
    ms.sleep(POLL)
    turn(f)
  end
  return finish(f)
end

return follow
