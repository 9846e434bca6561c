-- The trace of a record, step by step: what each instruction did to the function, as a difference that holds the
-- function before and after it.
local ms = msched
local html, explain = ms.load "lua.report.html", ms.load "lua.lib.explain"
local steps = {}

local AROUND = 3 -- lines that did not change which are shown around those that did
local CHANGES = {["-"] = "del", ["+"] = "ins"}

-- For each change whether it is near one that is no mere line of both.
local function near_changes(changes)
  local near = {}
  for i, c in ipairs(changes) do
    if c[1] ~= " " then for k = i - AROUND, i + AROUND do near[k] = true end end
  end
  return near
end

-- The lines, those of one kind together. whole: also those far from what changed.
local function difference(changes, whole)
  local near, parts, run, kind = near_changes(changes), {}, {}, nil
  local function close()
    if not kind then return end
    local text = html.text(table.concat(run, "\n"))
    parts[#parts + 1] = CHANGES[kind] and html.element(CHANGES[kind], {}, text)
      or html.element("span", {class = kind}, text)
    run = {}
  end
  for i, c in ipairs(changes) do
    local now = CHANGES[c[1]] and c[1] or near[i] and "same" or "same far"
    if now ~= kind then close() end
    kind = now
    if whole or kind ~= "same far" then run[#run + 1] = c[1] .. " " .. c[2] end
  end
  close()
  return html.element("pre", {}, table.concat(parts))
end

local function count(changes, mark)
  local n = 0
  for _, c in ipairs(changes) do n = n + (c[1] == mark and 1 or 0) end
  return n
end

-- Which of the four is shown, for all tasks of the page; without it the first.
function steps.choice()
  local parts = {}
  for _, o in ipairs {{"changes", "what changed"}, {"difference", "the whole function, with what changed"},
                      {"before", "the function before"}, {"after", "the function after"}} do
    local button =
      html.element("input", {type = "radio", name = "view", id = "show-" .. o[1], checked = o[1] == "changes" or nil})
    parts[#parts + 1] = html.element("label", {["for"] = "show-" .. o[1]}, button .. " " .. html.text(o[2]))
  end
  return html.element("fieldset", {}, html.element("legend", {}, "Steps of traces show"), table.concat(parts, "\n"))
end

local MOST_LINES = 50000 -- of all steps together, with the lines that did not change
-- Each is made from the trace up to it: what came by an import has any number of instructions.
local MOST_STEPS = 1000

-- The steps of a trace on a function; whole: with all lines of the function, before and after, where these are not too
-- many for a page: a trace of hundreds of steps on a function of hundreds of blocks shows what changed. most: steps.
function steps.page(func, trace, whole, most)
  most = most or MOST_STEPS
  local parts, list, total = {}, explain.steps(func, trace, nil, most), 0
  for _, s in ipairs(list) do total = total + #s.changes end
  whole = whole and total <= MOST_LINES
  for _, s in ipairs(list) do
    local removed, added = count(s.changes, "-"), count(s.changes, "+")
    local lines = {}
    for i, text in ipairs(s.texts) do lines[i] = string.format("%d  %s", s.first + i - 1, text) end
    local summary = html.element("code", {}, html.text(lines[1]))
    if removed + added == 0 then parts[#parts + 1] = html.element("p", {}, summary)
    else
      local more = #lines > 1 and html.element("pre", {}, html.text(table.concat(lines, "\n"))) or ""
      parts[#parts + 1] = html.details(summary .. string.format(' <span class="soft">−%d +%d</span>', removed, added),
                                       more .. html.scrolling("step " .. s.first, difference(s.changes, whole)))
    end
  end
  local left = #list > 0 and #trace - 1 - list[#list].last or 0
  if left > 0 then
    parts[#parts + 1] = html.element("p", {},
                                     html.text(string.format("%d further instructions are not shown: a page has the \z
                                               first %d steps; `msched show ID` prints the trace", left, most)))
  end
  return table.concat(parts, "\n")
end

return steps
