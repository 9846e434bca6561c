#!/bin/sh
# A report in a real browser, at four widths, light and dark: nothing is wider than the page, no cell of a table is
# beyond it, the console is silent; tables sort and filter, pictures show values, and a page that follows a run goes on.
# Skipped without chromium and python3.  usage: page.sh MSCHED ROOT
set -eu
msched=$1 root=$2
command -v chromium >/dev/null && command -v python3 >/dev/null || { echo "page: skipped, there is no chromium or no python3"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "page.sh: $*" >&2; exit 1; }
"$msched" tune "$root/lua/examples/gemm.lua" --trials 24 --db "$work/g.db" --json -- 64 64 64 >"$work/log" || fail "nothing is tuned"
"$msched" tune 'ops:relu(64x64)' 'ops:softmax(32x32)' 'ops:matmul(16,16,16)' --no-tune --db "$work/g.db" >/dev/null
"$msched" tune 'ops:relu(64x64)' 'ops:softmax(32x32)' --trials 2 --db "$work/g.db" >/dev/null
"$msched" report --db "$work/g.db" --log "$work/log" -o "$work/page.html" >/dev/null
"$msched" db merge "$work/g.db" --db "$work/other.db" >/dev/null
"$msched" report --compare "$work/g.db" "$work/other.db" -o "$work/both.html" >/dev/null

# The page in a frame of a width, and a script behind its own that measures, and uses it as a reader does.
cat >"$work/frame.py" <<'P'
import html, sys
page, width = open(sys.argv[1]).read(), int(sys.argv[2])
measure = """<script>addEventListener("load", () => {
  for (const d of document.querySelectorAll("details")) d.open = true
  const wide = document.documentElement.clientWidth, out = []
  for (const e of document.querySelectorAll("body *"))
    if (!e.closest(".scroll") && !e.closest("svg") && e.getBoundingClientRect().right > wide + 1) out.push(e.tagName + ": " + e.textContent.slice(0, 40))
  for (const e of document.querySelectorAll("table:first-of-type th, table:first-of-type td"))
    if (e.closest("table") === document.querySelector("table") && e.getBoundingClientRect().right > wide + 1) out.push("cell " + e.textContent)
  const table = document.querySelector("table"), rows = () => [...table.tBodies[0].rows].filter(r => !r.hidden), said = []
  const column = [...table.tHead.rows[0].cells].findIndex(c => c.textContent === "best"), numbers = () => rows().map(r => r.cells[column].querySelector("data")).map(d => d ? Number(d.value) : NaN)
  const rising = list => list.every((x, i) => !i || Number.isNaN(x) || x >= list[i - 1]), names = () => rows().map(r => r.cells[0].textContent).join()
  const click = () => table.tHead.rows[0].cells[column].querySelector("button").click()
  if (column >= 0) {
    click(); said.push(rising(numbers()) && table.tHead.rows[0].cells[column].getAttribute("aria-sort"))
    const up = numbers(); click()
    said.push(JSON.stringify(numbers().filter(x => x === x)) === JSON.stringify(up.filter(x => x === x).reverse()) && table.tHead.rows[0].cells[column].getAttribute("aria-sort"))
    const input = document.querySelector("input[type=search]")
    input.value = "SOFT max"; input.dispatchEvent(new Event("input")); said.push(names())
    input.value = "no such"; input.dispatchEvent(new Event("input")); said.push(rows().length)
    input.value = ""; input.dispatchEvent(new Event("input")); said.push(rows().length)
    const svg = document.querySelector("svg[data-box]"), box = svg.getBoundingClientRect()
    svg.dispatchEvent(new PointerEvent("pointermove", {clientX: box.right, clientY: box.bottom}))
    said.push(/^(a candidate|the best): [0-9.]+ [mun]?s, trial [0-9]+$/.test(svg.querySelector("text.hover").textContent))
    svg.dispatchEvent(new PointerEvent("pointerleave")); said.push(!svg.querySelector(".hover"))
    svg.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"})); said.push(svg.querySelector("text.hover").textContent.endsWith(", trial 1"))
    said.push(history.state.report.sort[Object.keys(history.state.report.sort)[0]].join())
  }
  parent.postMessage("width " + document.documentElement.scrollWidth + " of " + wide + "; beyond: " + out.slice(0, 4).join(", ") + "; " + said.join(" "), "*")
})</script>"""
frame = html.escape(page.replace("</body>", measure + "</body>"), quote=True)
print(f'<!DOCTYPE html><title>frame</title><body style="margin:0"><iframe style="border:0;width:{width}px;height:900px" srcdoc="{frame}"></iframe><pre id="said"></pre>'
      '<script>addEventListener("message", e => { document.getElementById("said").textContent = e.data })</script>')
P
for page in page both; do
  for width in 400 700 1000 1800; do
    for colours in 0 1; do # dark, light
      python3 "$work/frame.py" "$work/$page.html" "$width" >"$work/frame.html"
      HOME=$work timeout 120 chromium --headless --hide-scrollbars --no-sandbox --disable-gpu --enable-logging=stderr --blink-settings=preferredColorScheme=$colours --virtual-time-budget=4000 \
        --dump-dom "file://$work/frame.html" >"$work/dom" 2>"$work/err" || fail "the browser fails: $(tail -n 3 "$work/err")"
      used=''
      [ "$page" = both ] || used='ascending descending softmax_32x32 0 4 true true true best,-1'
      grep -q "<pre id=\"said\">width $width of $width; beyond: ; $used</pre>" "$work/dom" || fail "$page at $width: $(grep -o '<pre id="said">.*</pre>' "$work/dom")"
      ! grep -q CONSOLE "$work/err" || fail "$page at $width: $(grep CONSOLE "$work/err")"
    done
  done
done

# A page that follows loads itself again: how it is sorted and filtered, what is open, and where it was read, is as it
# was.
"$msched" report --follow --db "$work/g.db" -o "$work/live.html" >/dev/null &
follower=$!
tries=0
until [ -s "$work/live.html" ]; do tries=$((tries + 1)); [ $tries -lt 600 ] || fail "no page that follows"; sleep 0.1; done
kill -9 $follower
wait $follower 2>/dev/null || true
cat >"$work/reload.py" <<'P'
import re, sys, time
page = re.sub('data-written="[0-9]*"', f'data-written="{int(time.time()) + 600}"', open(sys.argv[1]).read()) # however long it takes to come here
read = """<script>addEventListener("load", () => setTimeout(() => {
  const table = document.querySelector("table"), input = document.querySelector("input[type=search]"), head = table.tHead.rows[0].cells[0], open = [...document.querySelectorAll("details")].map(d => d.open)
  if (performance.getEntriesByType("navigation")[0].type !== "reload") {
    head.querySelector("button").click(); head.querySelector("button").click()
    document.querySelectorAll("details")[1].open = true
    document.querySelector("#show-after").click()
    input.value = "a"; input.dispatchEvent(new Event("input"))
    document.querySelectorAll("h2")[1].scrollIntoView()
  } else {
    const places = [head.getAttribute("aria-sort"), input.value, open.filter(o => o).length, open[1], document.querySelector("#show-after").checked, Math.abs(document.querySelectorAll("h2")[1].getBoundingClientRect().top) < 2]
    getSelection().selectAllChildren(document.querySelector("h1")) // who selects is not disturbed: it stays
    document.body.append(Object.assign(document.createElement("pre"), {id: "said", textContent: places.join(" ")}))
  }
}, 300))</script>"""
print(page.replace("</body>", read + "</body>"))
P
python3 "$work/reload.py" "$work/live.html" >"$work/again.html"
HOME=$work timeout 120 chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr --window-size=400,700 --virtual-time-budget=8000 --dump-dom "file://$work/again.html" >"$work/dom" 2>"$work/err" ||
  fail "the browser fails: $(tail -n 3 "$work/err")"
grep -q '<pre id="said">descending a 1 true true true</pre>' "$work/dom" || fail "a page that follows: $(grep -o '<pre id="said">.*</pre>' "$work/dom")"
! grep -q CONSOLE "$work/err" || fail "a page that follows: $(grep CONSOLE "$work/err")"
echo "page: ok"
