-- Text that came from elsewhere, as it is shown: what a terminal acts on and what is no UTF-8 is escaped, all else
-- stays.
-- usage: msched visible.lua
local ms = require "msched"

local function shows(text, how, expected)
  local shown = ms.visible(text, how)
  assert(shown == expected, string.format("%q as %s is %q, not %q", text, how, shown, expected))
end

-- Text stays as it is, in every way.
for _, how in ipairs {"line", "lines", "script", "lua"} do
  for _, text in ipairs {"", "abc \\ \"x\"", "größer als ≤ 3", "日本語", "😀", "\u{d7ff}\u{e000}\u{fffd}\u{10ffff}"} do
    shows(text, how, text)
  end
end

shows("a\27[31mb\7\0c\127", "line", "a\\x1b[31mb\\x07\\x00c\\x7f")
shows("a\nb\tc\rd", "line", "a\\nb\\tc\\rd")
shows("a\nb\tc\rd", "lines", "a\nb\tc\\rd")
shows("\u{80}\u{9b}31m\u{9f}\u{a0}", "line", "\\u0080\\u009b31m\\u009f\u{a0}")
shows("\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}", "lines",
      "\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a\\u202e\\u2066\\u2069\\ufeff")
shows("\u{200d}\u{2027}\u{202f}\u{2065}\u{206a}", "line", "\u{200d}\u{2027}\u{202f}\u{2065}\u{206a}")
shows("\u{e0041}", "line", "\\U000e0041")

-- Bytes that are no UTF-8: alone, cut short, longer than they must be, halves of pairs, beyond the last character.
for bytes,
    expected in pairs {["\xff"] = "\\xff", ["\x80"] = "\\x80", ["a\xc3"] = "a\\xc3", ["\xc3("] = "\\xc3(",
                       ["\xe2\x80"] = "\\xe2\\x80", ["\xc0\xaf"] = "\\xc0\\xaf", ["\xe0\x80\xaf"] = "\\xe0\\x80\\xaf",
                       ["\xed\xa0\x80"] = "\\xed\\xa0\\x80", ["\xf4\x90\x80\x80"] = "\\xf4\\x90\\x80\\x80",
                       ["\xf8\x88\x80\x80\x80"] = "\\xf8\\x88\\x80\\x80\\x80", ["\x9b31m"] = "\\x9b31m"} do
  shows(bytes, "line", expected)
end

-- Of a script, colours stay, and nothing else of what begins as they do; a trace's bytes are as Lua reads them.
shows("\27[1;31mT\27[0m\27[2J\27]0;t\7\27[31", "script", "\27[1;31mT\27[0m\\x1b[2J\\x1b]0;t\\x07\\x1b[31")
shows("\27[31m", "lines", "\\x1b[31m")
local trace = 'x = "\27\u{9b}\u{202e}\xff"\n'
assert(load("local " .. ms.visible(trace, "lua") .. " return x")() == "\27\u{9b}\u{202e}\xff")

-- JSON is read by anyone: text comes back whole, and what is no UTF-8 as the character for that.
local cli = ms.load and ms.load "lua.cli.cli"
if cli then
  assert(cli.json_text "a\27\u{9b}\u{202e}\127\"\\\n" == '"a\\u001b\\u009b\\u202e\\u007f\\"\\\\\\u000a"')
  assert(cli.json_text "a\xffb\xe2\x80" == '"a\u{fffd}b\u{fffd}\u{fffd}"')
end
