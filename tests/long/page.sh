#!/bin/sh
# A report in a real browser, at three widths, light and dark: nothing is wider than the page, and the console is silent.
# Skipped without chromium and python3.  usage: page.sh MSCHED ROOT
set -eu
msched=$1 root=$2
command -v chromium >/dev/null && command -v python3 >/dev/null || { echo "page: skipped, there is no chromium or no python3"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "page.sh: $*" >&2; exit 1; }
"$msched" tune "$root/lua/examples/gemm.lua" --trials 24 --db "$work/g.db" --json -- 64 64 64 >"$work/log" || fail "nothing is tuned"
"$msched" report --db "$work/g.db" --log "$work/log" -o "$work/page.html" >/dev/null
"$msched" db merge "$work/g.db" --db "$work/other.db" >/dev/null
"$msched" report --compare "$work/g.db" "$work/other.db" -o "$work/both.html" >/dev/null

# The page in a frame of a width, and a script beside it that measures: the page itself has none.
cat >"$work/frame.py" <<'P'
import html, sys
page, width = open(sys.argv[1]).read(), int(sys.argv[2])
measure = """<script>addEventListener("load", () => {
  for (const d of document.querySelectorAll("details")) d.open = true
  const wide = document.documentElement.clientWidth, out = []
  for (const e of document.querySelectorAll("body *"))
    if (!e.closest(".scroll") && !e.closest("svg") && e.getBoundingClientRect().right > wide + 1) out.push(e.tagName + ": " + e.textContent.slice(0, 40))
  parent.postMessage("width " + document.documentElement.scrollWidth + " of " + wide + "; beyond: " + out.slice(0, 4).join(", "), "*")
})</script>"""
frame = html.escape(page.replace("</body>", measure + "</body>"), quote=True)
print(f'<!DOCTYPE html><title>frame</title><body style="margin:0"><iframe style="border:0;width:{width}px;height:900px" srcdoc="{frame}"></iframe><pre id="said"></pre>'
      '<script>addEventListener("message", e => { document.getElementById("said").textContent = e.data })</script>')
P
for page in page both; do
  for width in 400 1000 1800; do
    for colours in 0 1; do # dark, light
      python3 "$work/frame.py" "$work/$page.html" "$width" >"$work/frame.html"
      HOME=$work timeout 120 chromium --headless --hide-scrollbars --no-sandbox --disable-gpu --enable-logging=stderr --blink-settings=preferredColorScheme=$colours --virtual-time-budget=4000 \
        --dump-dom "file://$work/frame.html" >"$work/dom" 2>"$work/err" || fail "the browser fails: $(tail -n 3 "$work/err")"
      grep -q "<pre id=\"said\">width $width of $width; beyond: </pre>" "$work/dom" || fail "$page at $width: $(grep -o '<pre id="said">.*</pre>' "$work/dom")"
      ! grep -q CONSOLE "$work/err" || fail "$page at $width: $(grep CONSOLE "$work/err")"
    done
  done
done
echo "page: ok"
