-- Text of HTML: elements, escaped text, numbers that programs read too, tables; and the page around them.
local script = msched.load "lua.report.script"
local html = {}

-- What a reader of the page or a terminal would act on is escaped as on terminals.
function html.text(x)
  return (msched.visible(tostring(x), "lines"):gsub("[&<>\"']", {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;",
                                                    ['"'] = "&quot;", ["'"] = "&#39;"}))
end

local EMPTY = {input = true, meta = true}

-- An element: its name, its attributes by name (true: without a value), its content, which is HTML.
function html.element(name, attributes, ...)
  local parts = {"<", name}
  for _, key in ipairs(msched.sorted_keys(attributes)) do
    parts[#parts + 1] = attributes[key] == true and " " .. key
      or string.format(' %s="%s"', key, html.text(attributes[key]))
  end
  if EMPTY[name] then return table.concat(parts) .. ">" end
  return table.concat(parts) .. ">" .. table.concat({...}) .. "</" .. name .. ">"
end

function html.paragraph(text, class) return html.element("p", {class = class}, html.text(text)) end
-- A number as it is shown, with its value for programs.
function html.number(value, shown)
  return html.element("data", {value = string.format("%.9g", value)}, html.text(shown))
end

-- What is wider than its place scrolls by itself, with the keyboard too.
function html.scrolling(label, content)
  return html.element("div", {class = "scroll", tabindex = "0", role = "region", ["aria-label"] = label}, content)
end

-- A table: its caption, the names of its columns, rows of cells, which are HTML; the first of a row is its head. On
-- narrow screens a row's cells stand below its head, each behind the name of its column. least: rows from which on it
-- can be filtered, where scripts run; nil: as script.lua has it.
function html.table(caption, columns, rows, least)
  local heads, lines = {}, {}
  for i, c in ipairs(columns) do heads[i] = html.element("th", {scope = "col"}, html.text(c)) end
  for i, row in ipairs(rows) do
    local cells = {}
    for k, cell in ipairs(row) do
      cells[k] = html.element(k == 1 and "th" or "td",
                              {scope = k == 1 and "row" or nil, ["data-label"] = k > 1 and columns[k] or nil}, cell)
    end
    lines[i] = html.element("tr", {}, table.concat(cells)) .. "\n"
  end
  local head = html.element("thead", {}, html.element("tr", {}, table.concat(heads)))
  return html.scrolling(caption, html.element("table", {["data-filter"] = least},
                                              html.element("caption", {}, html.text(caption)), head, "\n",
                                              html.element("tbody", {}, table.concat(lines))))
end

-- What opens when it is asked for.
function html.details(summary, content)
  return html.element("details", {}, html.element("summary", {}, summary), content)
end

local STYLE = [[
:root { color-scheme: light dark; --back: #fff; --fore: #1b1f24; --soft: #5a6470; --line: #d4d9df; --panel: #f5f7f9; --c1: #0b62c4; --c2: #b4420a; --c3: #1a7f37; --c4: #8250df; --del: #ffe3e0; --ins: #dafbe1; --bar: #9cc3f5; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --fore: #e4e8ec; --soft: #a2adb9; --line: #3a424c; --panel: #1d2228; --c1: #6cb0ff; --c2: #ff9d62; --c3: #5fce7d; --c4: #c6a3ff; --del: #56211d; --ins: #16442a; --bar: #2a5c96; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1500px; padding: 1rem; background: var(--back); color: var(--fore); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.35rem; margin: 2.2rem 0 .4rem; border-top: 2px solid var(--line); padding-top: .8rem; } h3 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
a { color: var(--c1); } p { margin: .3rem 0; max-width: 75ch; } .soft { color: var(--soft); }
:focus-visible { outline: 3px solid var(--c4); outline-offset: 1px; }
.scroll { overflow-x: auto; max-width: 100%; overflow-wrap: normal; }
table { border-collapse: collapse; margin: .4rem 0; font-variant-numeric: tabular-nums; } caption { text-align: left; color: var(--soft); }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; font-weight: normal; } thead th { color: var(--soft); } tbody th { min-width: 8rem; } td { white-space: nowrap; } td:has(code) { white-space: normal; min-width: 16rem; }
pre { margin: .3rem 0; padding: .5rem .7rem; background: var(--panel); border-radius: 4px; font: 13px/1.45 ui-monospace, monospace; width: max-content; min-width: 100%; } code { font: .9em ui-monospace, monospace; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); gap: 1rem; align-items: start; } figure { margin: 0; min-width: 0; } figcaption { color: var(--soft); font-size: .9rem; }
svg { width: 100%; max-width: 720px; height: auto; display: block; } svg text { fill: var(--soft); font: 12px system-ui, sans-serif; } .axis, .grid { stroke: var(--line); fill: none; } .c1, .c2, .c3, .c4 { fill: none; stroke-width: 2; } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); stroke-dasharray: 7 3; } .c3 { stroke: var(--c3); stroke-dasharray: 2 3; } .c4 { stroke: var(--c4); stroke-dasharray: 9 3 2 3; } .dots, .mark { stroke-width: 4; stroke-linecap: round; opacity: .5; stroke-dasharray: none; } .mark { stroke-width: 11; opacity: 1; }
.key span { display: inline-block; margin-right: 1rem; } .key svg { display: inline-block; width: 36px; height: 10px; }
.graph svg { width: auto; max-width: none; } .graph .scroll { max-height: 80vh; overflow: auto; } .graph svg text { fill: var(--fore); font-size: 11px; } .heat { fill: var(--c2); stroke: var(--line); }
meter { width: 5rem; } details { margin: .2rem 0; } summary { cursor: pointer; } summary code { overflow-wrap: anywhere; }
ins, del, .same { text-decoration: none; display: block; white-space: pre; } ins { background: var(--ins); } del { background: var(--del); }
fieldset { min-width: 0; border: 1px solid var(--line); border-radius: 4px; margin: .5rem 0; } fieldset label { margin-right: 1rem; }
body:has(#show-changes:checked) .same.far, body:has(#show-before:checked) ins, body:has(#show-after:checked) del { display: none; }
.nest { border: 1px solid var(--line); border-left: 4px solid var(--soft); border-radius: 4px; padding: .2rem .2rem .2rem .5rem; margin: .2rem 0; min-width: 0; } .nest.parallel { border-left-color: var(--c2); } .nest.vectorized { border-left-color: var(--c1); } .nest.unrolled { border-left-color: var(--c3); } .nest.block { background: var(--panel); border-left-color: var(--c4); } .nest code { overflow-wrap: anywhere; }
.sort { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; text-align: left; } .sort:hover { text-decoration: underline; } [aria-sort=ascending] .sort::after { content: " ▲"; } [aria-sort=descending] .sort::after { content: " ▼"; }
.filter input { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: 4px; padding: .1rem .4rem; width: min(16rem, 60%); } tr[hidden] { display: none !important; }
circle.hover { fill: none; stroke: var(--fore); stroke-width: 2; pointer-events: none; } svg text.hover { fill: var(--fore); font-size: 13px; paint-order: stroke; stroke: var(--back); stroke-width: 4px; pointer-events: none; }
@media (max-width: 1300px) { th, td { padding-right: .5rem; } td, td:has(code) { white-space: normal; } }
@media (max-width: 640px) {
  body { padding: .6rem; } table, caption, tbody, thead { display: block; } thead tr, tbody tr { display: flex; flex-wrap: wrap; column-gap: .9rem; } tbody tr { border-bottom: 1px solid var(--line); padding: .2rem 0; }
  th, td { border: 0; padding: 0; min-width: 0; } tbody th { flex-basis: 100%; min-width: 0; overflow-wrap: anywhere; } td, td:has(code) { white-space: normal; overflow-wrap: anywhere; min-width: 0; }
  td::before { content: attr(data-label) " "; color: var(--soft); } td:empty { display: none; } thead:not(:has(.sort)) { display: none; }
}
]]

-- What the page may do: run its own script and style, and fetch nothing.
local POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"

-- The page: its title, and its body. follow: {every =, written =}, of one that is written again and again: it loads
-- itself again, at most once in so many seconds; when it was written, in seconds since 1970. nil: it is none.
function html.page(title, body, follow)
  local attributes = follow and {["data-follow"] = string.format("%g", follow.every),
                                 ["data-written"] = string.format("%d", follow.written)} or {}
  return table.concat {
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" \z
     content="width=device-width, initial-scale=1">\n',
    html.element("meta", {["http-equiv"] = "Content-Security-Policy", content = POLICY}), "\n",
    follow and '<noscript><meta http-equiv="refresh" content="5"></noscript>\n' or "",
    html.element("title", {}, html.text(title)), "\n<style>\n", STYLE, "</style>\n</head>\n",
    html.element("body", attributes, "\n", body, "\n<script>\n", script, "</script>\n"), "\n</html>\n",
  }
end

return html
