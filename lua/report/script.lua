-- What a report's page does where scripts run; without them all of it is there to be read. Tables are sorted by their
-- heads and filtered by words; pictures show the values under the pointer, or those that the arrow keys reach; a page
-- that follows a search loads itself again. What a reader chose survives that: it is in the history's state, which no
-- other page sees. Nothing is fetched.
return [[
(() => {
"use strict"
const past = (() => { try { return (history.state || {}).report || {} } catch { return {} } })()
const state = {sort: {}, filter: {}, open: {}, view: "", ...past}
const keep = () => { try { history.replaceState({report: state}, "") } catch { } }
const make = (name, fields, ...inner) => { const e = Object.assign(document.createElement(name), fields); e.append(...inner); return e }
let section = "", nth = {}
const key = words => { const k = section + "/" + words; nth[k] = (nth[k] || 0) + 1; return k + "/" + nth[k] }

// ---- Tables: a head is a button that sorts; what has no value comes last
const value = (row, column) => {
  const cell = row.cells[column], data = cell && cell.querySelector("data")
  return data ? Number(data.value) : cell ? cell.textContent.trim().replace(/^(none|–|-)$/, "") : ""
}
const order = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : typeof a === "number" ? -1 : typeof b === "number" ? 1 : a.localeCompare(b, undefined, {numeric: true})
const sortable = (table, name) => {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells]
  if (rows.length < 2) return
  const sort = (column, turn) => {
    const sorted = rows.map((row, place) => ({row, place, value: value(row, column)}))
    sorted.sort((a, b) => (a.value === "") - (b.value === "") || turn * order(a.value, b.value) || a.place - b.place)
    body.append(...sorted.map(s => s.row))
    heads.forEach((head, i) => i === column ? head.setAttribute("aria-sort", turn > 0 ? "ascending" : "descending") : head.removeAttribute("aria-sort"))
  }
  heads.forEach((head, column) => {
    const button = make("button", {type: "button", className: "sort", title: "sorts by this"}, ...head.childNodes)
    button.addEventListener("click", () => {
      const turn = head.getAttribute("aria-sort") === "ascending" ? -1 : 1
      state.sort[name] = [head.textContent, turn]
      sort(column, turn)
      keep()
    })
    head.append(button)
  })
  const chosen = state.sort[name], column = chosen ? heads.findIndex(head => head.textContent === chosen[0]) : -1
  if (column >= 0) sort(column, chosen[1])
}
const filterable = (table, name) => {
  const rows = [...table.tBodies[0].rows], least = Number(table.dataset.filter || 9)
  if (rows.length < least) return
  const input = make("input", {type: "search", value: state.filter[name] || "", placeholder: "words"}), count = make("output", {className: "soft"})
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(word => word)
    let shown = 0
    for (const row of rows) {
      const text = row.textContent.toLowerCase()
      row.hidden = !words.every(word => text.includes(word))
      shown += row.hidden ? 0 : 1
    }
    count.textContent = words.length ? " " + shown + " of " + rows.length : ""
    state.filter[name] = input.value
  }
  input.addEventListener("input", () => { filter(); keep() })
  table.closest(".scroll").before(make("label", {className: "filter"}, "Filter ", input, count))
  if (input.value) filter()
}

// ---- Pictures: the point that is nearest, with its values
const digits = x => Number(x.toPrecision(4)).toString()
const seconds = x => x >= 1 ? digits(x) + " s" : x >= 1e-3 ? digits(x * 1e3) + " ms" : x >= 1e-6 ? digits(x * 1e6) + " us" : digits(x * 1e9) + " ns"
const shown = (x, axis) => axis === "s" ? seconds(x) : digits(x) + (axis ? " " + axis : "")
let showing = null // the picture that shows a value now
const hoverable = svg => {
  const space = "http://www.w3.org/2000/svg", points = [], [left, right, top, bottom] = svg.dataset.box.split(" ").map(Number)
  const place = (text, axis) => { // as chart.lua has it
    const [low, high, log] = svg.dataset[axis].split(" ").map(Number), x = Math.min(Number(text), high)
    return log ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low)
  }
  for (const path of svg.querySelectorAll("path[data-points]"))
    for (const pair of path.dataset.points.split(" ")) {
      const [x, y] = pair.split(",")
      points.push({h: left + place(x, "xAxis") * (right - left), v: bottom - place(y, "yAxis") * (bottom - top), x: Number(x), y: Number(y), name: path.dataset.name || ""})
    }
  if (!points.length) return
  points.sort((a, b) => a.h - b.h || a.v - b.v)
  const mark = document.createElementNS(space, "circle"), text = document.createElementNS(space, "text")
  mark.setAttribute("r", "5"), mark.setAttribute("class", "hover"), text.setAttribute("class", "hover")
  text.setAttribute("aria-live", "polite")
  const width = svg.viewBox.baseVal.width
  let now = -1
  const show = i => {
    now = i
    const p = points[i]
    mark.setAttribute("cx", p.h), mark.setAttribute("cy", p.v)
    text.setAttribute("x", p.h), text.setAttribute("y", Math.max(p.v - 10, 14)), text.setAttribute("text-anchor", p.h > width * .6 ? "end" : p.h < width * .4 ? "start" : "middle")
    text.textContent = (p.name ? p.name + ": " : "") + shown(p.y, svg.dataset.y) + ", " + (svg.dataset.x || "") + " " + digits(p.x)
    if (!mark.isConnected) svg.append(mark, text)
    showing = svg
  }
  const hide = () => { mark.remove(), text.remove(); now = -1; if (showing === svg) showing = null }
  const nearest = event => {
    const box = svg.getBoundingClientRect(), scale = width / box.width, h = (event.clientX - box.left) * scale, v = (event.clientY - box.top) * scale
    let best = 0, least = Infinity
    points.forEach((p, i) => { const far = (p.h - h) ** 2 + (p.v - v) ** 2 / 4; if (far < least) [best, least] = [i, far] })
    show(best)
  }
  svg.addEventListener("pointermove", nearest), svg.addEventListener("pointerdown", nearest)
  svg.addEventListener("pointerleave", hide), svg.addEventListener("blur", hide)
  svg.setAttribute("tabindex", "0")
  svg.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key]
    if (event.key === "Escape") hide()
    if (!step) return
    event.preventDefault()
    show(Math.min(Math.max(now < 0 ? step > 0 ? 0 : points.length - 1 : now + step, 0), points.length - 1))
  })
}

for (const e of document.querySelectorAll("h2, table, details, svg[data-box]")) {
  if (e.tagName === "H2") section = e.id
  else if (e.tagName === "TABLE") { const name = key(e.caption.textContent); sortable(e, name); filterable(e, name) }
  else if (e.tagName === "DETAILS") {
    const name = key(e.querySelector("summary").textContent)
    e.open = e.open || state.open[name] === true
    e.addEventListener("toggle", () => { if (e.open) state.open[name] = true; else delete state.open[name]; keep() })
  } else hoverable(e)
}
for (const radio of document.querySelectorAll("input[name=view]")) {
  if (radio.id === state.view) radio.checked = true
  radio.addEventListener("change", () => { state.view = radio.id; keep() })
}

// ---- A page that follows a search loads itself again, and stays where it was read
const follow = Number(document.body.dataset.follow || 0), written = Number(document.body.dataset.written || 0) * 1000
if (past.place) {
  const head = document.getElementById(past.place[0])
  scrollTo(0, (head ? head.getBoundingClientRect().top + scrollY : 0) + past.place[1])
}
delete state.place
if (follow) {
  const note = document.getElementById("follow"), LATE = 30000, loaded = Date.now()
  let typed = 0
  document.addEventListener("input", () => { typed = Date.now() })
  setInterval(() => {
    const age = Date.now() - written, late = age > LATE
    note.textContent = late ? "Nothing was written for " + Math.round(age / 1000) + " s: `msched report --follow` has ended, or this page was copied." : note.dataset.text
    const wait = (late ? 5 : 1) * follow * 1000, busy = document.hidden || showing || Date.now() - typed < 2000 || String(getSelection())
    if (busy || Date.now() - loaded < wait) return
    let head = null
    for (const h of document.querySelectorAll("h2[id]")) if (h.getBoundingClientRect().top <= 0) head = h
    state.place = [head ? head.id : "", head ? -head.getBoundingClientRect().top : scrollY]
    keep()
    location.reload()
  }, 500)
}
})()
]]
