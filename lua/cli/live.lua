-- The live table of tuning on a terminal: a row a task; of the task that goes on, by its name, the best so far as a
-- curve, failures by reason, builds and runs a second, what is left. What is narrower than a column needs leaves it
-- out; nothing wraps. Lines that stay (a task's end, warnings) go above it.
local cli = msched.load "lua.cli.cli"
local Task = msched.load "search.task"
local progress, rates = msched.load "lua.cli.progress", msched.load "lua.cli.rates"

local live = {}

local AGAIN = 0.1 -- seconds between two drawings, but for a new best
local MOST_NAME = 24
local BELOW = 6 -- lines that are not rows: titles, curve, failures, rates, and what is above

-- ---- Rows --------------------------------------------------------------------------------------------------------

local function share_text(s) return s.best_seconds and string.format("%.0f %%", 100 * progress.share(s)) or "-" end

local function vendor_text(s)
  local share = progress.of_vendor(s)
  return share and string.format("%.0f %% %s", 100 * share, s.start.vendor) or "-"
end
local function time_share_text(s)
  local share = progress.share_of_time(s)
  return share and string.format("%.0f %%", 100 * share) or "-"
end
local function have_groups(states)
  for _, s in ipairs(states) do if s.start.part_of or s.functions then return true end end
  return false
end
local function have_vendors(states)
  for _, s in ipairs(states) do if s.start.vendor then return true end end
  return false
end

local function move_bytes(states)
  for _, s in ipairs(states) do if s.work.bytes then return true end end
  return false
end

-- What the best does in a second, by one of lua/cli/rates.lua's.
local function rate_text(s, text)
  local rate = s.best_seconds and text(s.work, s.best_seconds) or ""
  return rate ~= "" and rate or "-"
end

-- title; least: of the terminal's columns; left: where it is aligned; text(state); shown(states): whether it is, where
-- not always.
local COLUMNS = {
  {title = "task", least = 0, left = true, text = function(s) return cli.cut(s.name, MOST_NAME) end},
  {title = "shape", least = 72, left = true, text = function(s) return s.start.shape or "-" end},
  {title = "weight", least = 90, text = function(s) return string.format("%.3g", s.start.weight) end},
  {title = "trials", least = 0, text = function(s)
    return s.start.shared and string.format("%d", s.done) or string.format("%d/%d", s.done, s.start.trials)
  end},
  {title = "best", least = 24, text = function(s) return s.best_seconds and cli.time_text(s.best_seconds) or "-" end},
  {title = "of time", least = 80, text = time_share_text, shown = have_groups},
  {title = "rate", least = 40, text = function(s) return rate_text(s, rates.operations_text) end},
  {title = "moves", least = 88, text = function(s) return rate_text(s, rates.bytes_text) end, shown = move_bytes},
  {title = "of roof", least = 56, text = share_text},
  {title = "of vendor", least = 64, text = vendor_text, shown = have_vendors},
  {title = "record", least = 100, left = true, text = function(s) return s.best or "-" end},
}

local function padded(text, width, left)
  local space = (" "):rep(width - utf8.len(text))
  return left and text .. space or space .. text
end

-- Titles and a row each, as wide as they need to be.
local function table_lines(states, width)
  local lines, rows = {}, {{}}
  for _, c in ipairs(COLUMNS) do
    if width >= c.least and (not c.shown or c.shown(states)) then
      local cells, widest = {c.title}, #c.title
      for i, s in ipairs(states) do cells[i + 1] = c.text(s) end
      for _, text in ipairs(cells) do widest = math.max(widest, utf8.len(text)) end
      for i, text in ipairs(cells) do
        rows[i] = rows[i] or {}
        table.insert(rows[i], padded(text, widest, c.left))
      end
    end
  end
  for i, row in ipairs(rows) do lines[i] = table.concat(row, "  ") end
  return lines
end

-- ---- The curve ---------------------------------------------------------------------------------------------------

local BARS, PLAIN = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, {".", ":", "-", "=", "+", "*", "#", "@"}

-- The best so far over the trials, in so many columns: the higher the faster, by the logarithm; a blank where there is
-- none.
function live.curve(curve, columns, bars)
  local first, last = nil, curve[#curve]
  for _, seconds in ipairs(curve) do first = first or seconds end
  local parts, count = {}, math.min(#curve, columns)
  for i = 1, count do
    local seconds = curve[(i * #curve + count - 1) // count]
    local height = seconds and (last < first and math.log(first / seconds) / math.log(first / last) or 1)
    parts[i] = height and bars[1 + math.floor(height * (#bars - 1) + 0.5)] or " "
  end
  return table.concat(parts), first, last
end

local function curve_line(s, width, bars)
  local label, first = "best so far  ", live.first(s.curve)
  if not s.best_seconds then return label .. progress.no_best_text(s) end
  if not first then return label .. cli.time_text(s.best_seconds) .. ", which the store had" end
  local ends = string.format("  %s to %s", cli.time_text(first), cli.time_text(s.best_seconds))
  local columns = math.max(width - #label - #ends, 1)
  return label .. live.curve(s.curve, columns, bars) .. ends
end

function live.first(curve)
  for _, seconds in ipairs(curve) do if seconds then return seconds end end
end

-- ---- What is drawn -----------------------------------------------------------------------------------------------

-- The lines of all tasks: of these the one that goes on now, whose name the lines below the table begin with where
-- there are, or were, several; seconds since the run began; width: columns that there are.
function live.lines(states, now, elapsed, width, height, bars)
  local shown = table.move(states, 1, math.min(#states, math.max(height - BELOW, 1)), 1, {})
  local lines = table_lines(shown, width)
  if #shown < #states then lines[#lines + 1] = string.format("and %d more", #states - #shown) end
  local name = (states.several or #states > 1) and cli.cut(now.name, MOST_NAME) .. ": " or ""
  lines[#lines + 1] = name .. curve_line(now, width - utf8.len(name), bars)
  lines[#lines + 1] = name .. "failed: " .. Task.reasons_text(now.failures)
  local since = math.max(elapsed - now.start.elapsed, 1e-9)
  lines[#lines + 1] = name
    .. string.format("%s, %.1f builds and %.1f runs a second%s%s", progress.time_text(now, elapsed), now.built / since,
                     now.ran / since, now.repeated > 0 and string.format(", repeated: %d", now.repeated) or "",
                     now.busy > 0 and string.format(", other programs ran during %d", now.busy) or "")
  for i, line in ipairs(lines) do lines[i] = cli.cut(msched.visible(line), width) end
  return lines
end

local Screen = {}
Screen.__index = Screen

-- options: width(), height(): of the terminal; write(text), bars: in place of its own.
function live.new(options)
  local locale = (os.getenv "LC_ALL" or "") .. (os.getenv "LC_CTYPE" or "") .. (os.getenv "LANG" or "")
  local plain = not locale:lower():find "utf%-?8"
  return setmetatable({states = {}, drawn = 0, at = -math.huge, width = options.width, height = options.height,
                       bars = options.bars or plain and PLAIN or BARS,
                       write = options.write or function(text) io.stdout:write(text) end}, Screen)
end

function Screen:add(state)
  self.states[#self.states + 1] = state
  self.states.several = #self.states > 1 or self.states.several
end

-- Takes away what was drawn.
function Screen:clear()
  if self.drawn > 0 then self.write(string.format("\r\27[%dA\27[J", self.drawn)) end
  self.drawn = 0
end

-- A line that stays.
function Screen:print(text)
  self:clear()
  self.write(msched.visible(text) .. "\n")
  self.at = -math.huge
end

function Screen:remove(state)
  self:clear()
  for i, s in ipairs(self.states) do
    if s == state then return table.remove(self.states, i) end
  end
end

-- Draws, but not too often.
function Screen:show(now, elapsed)
  local best = now.best_seconds
  if elapsed - self.at < AGAIN and best == self.best then return end
  self.at, self.best = elapsed, best
  local lines = live.lines(self.states, now, elapsed, math.max(self.width() - 1, 1), self.height(), self.bars)
  self:clear()
  self.write(table.concat(lines, "\n") .. "\n")
  self.drawn = #lines
end

return live
