-- A page that follows a store whose last commit is seen in its file before readers get it: it is made once more when
-- the store has settled.
-- usage: follow_settles.lua
local ms = require "msched"
local follow = ms.load "lua.report.follow"
function ms.take_interrupts() end -- commands have it
local store, page = os.tmpname(), os.tmpname()
local file = io.open(store, "w")
file:write "the roots of a commit"
file:close()

local made, last = 0, nil -- pages made while it is followed, which find nothing until the second
local function make(again)
  if not again then made = made + 1 end
  last = made > 1 and "<p>the last record</p>" or "<p>nothing</p>"
  return last, {{total = made}}, store
end
assert(follow.run({output = page, ["until-idle"] = 5}, make) == ms.load "lua.cli.cli".DONE)
assert(made == 2, made .. " pages of a store that stays as it is")
file = io.open(page)
assert(file:read "a":find("the last record", 1, true))
file:close()
os.remove(store)
os.remove(page)
