-- The pictures of README.md and the guide: those that are kept are well-formed SVG, hold no script and load nothing;
-- the command that makes them
-- makes such, which show what the run gave.  usage: msched pictures.lua SOURCE PROGRAM
local source, program = ...
local folder = source .. "/lua/guide/pictures"

local files = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/files.lua")
local read = files.read

-- Parses XML without processing instructions: raises what is wrong; gives the elements by name, and the text without
-- them.
local function parse(text)
  assert(utf8.len(text), "no UTF-8")
  local open, count, words, at = {}, {}, {}, 1
  while at <= #text do
    local content = text:match("^[^<]+", at)
    if content then
      assert(not content:gsub("&%a+;", ""):gsub("&#%d+;", ""):find "&", "a bare &: " .. content)
      assert(#open > 0 or not content:find "%S", "text outside of an element: " .. content)
      if open[#open] ~= "style" then
        words[#words + 1] = (content:gsub("&gt;", ">"):gsub("&lt;", "<"):gsub("&amp;", "&"))
      end
      at = at + #content
    else
      local tag = assert(text:match("^<[^<>]+>", at), "a tag that does not end: " .. text:sub(at, at + 30))
      local closing, name, rest = tag:match "^<(/?)([%a][%w:]*)(.-)/?>$"
      assert(name, "no tag: " .. tag)
      for key in rest:gsub('%s+[%a:-]+="[^"]*"', ""):gmatch "%S+" do error("no attribute: " .. key) end
      if closing == "/" then assert(table.remove(open) == name, "it closes another element: " .. tag)
      else
        assert(#open > 0 or not count.svg, "two roots")
        count[name] = (count[name] or 0) + 1
        for key in rest:gmatch '([%a:-]+)="' do
          assert(not key:find "^on" and key ~= "href" and key ~= "xlink:href", "it does or loads something: " .. tag)
        end
        if tag:sub(-2) ~= "/>" then open[#open + 1] = name end
      end
      at = at + #tag
    end
  end
  assert(#open == 0, "an element is left open: " .. tostring(open[#open]))
  return count, table.concat(words, "\n")
end

-- The parser sees what it is there to see.
for _, wrong in ipairs {"<svg><g></svg>", "<svg>a & b</svg>", "<svg x=1></svg>", "<svg></svg><svg></svg>", "<svg>",
                        "<svg onload=\"x\"></svg>", "<svg"} do
  assert(not pcall(parse, wrong), wrong)
end

local NAMES = {"tune", "best", "nest"}
local function check(path)
  local text = read(path)
  local count, words = parse(text)
  assert(count.svg == 1 and count.title == 1 and not count.script and not count.image and not text:find "url%("
         and not text:find "@import", path)
  assert(text:find 'xmlns="http://www.w3.org/2000/svg"' and text:find "viewBox=", path)
  assert(text:find "@media %(prefers%-color%-scheme: dark%)", path .. ": one for dark screens")
  return count, words
end

local list = read(folder .. "/README.md")
local shown =
  read(source .. "/README.md") .. read(source .. "/lua/guide/tour.md") .. read(source .. "/lua/guide/figures.md")
for _, name in ipairs(NAMES) do
  check(folder .. "/" .. name .. ".svg")
  assert(shown:find("pictures/" .. name .. ".svg)", 1, true), "neither README.md nor the guide shows " .. name)
  assert(list:find("`" .. name .. ".svg`", 1, true), name .. " is not listed")
end
assert(list:find("\n    msched lua/guide/pictures/make.lua lua/guide/pictures\n", 1, true), "how to make them again")

-- As it says there, of a short run.
local made = os.tmpname()
os.remove(made)
assert(os.execute(string.format("mkdir '%s'", made)))
assert(os.execute(string.format("'%s' '%s/make.lua' '%s' 4 >'%s/out'", program, folder, made, made)))
local _, tune = check(made .. "/tune.svg")
for _, words in ipairs {"$ msched tune lua/guide/pictures/kernels.lua --trials 4", "task ", "conv2d_1x28x28x128x128x…",
                        "matmul_512x512x512", "softmax_256x256", "best so far  ", "failed: "} do
  assert(tune:find(words, 1, true), "no `" .. words .. "` in:\n" .. tune)
end
local paths, best = check(made .. "/best.svg")
assert(paths.path >= 3 and best:find("Tuning conv2d_1x28x28x128x128x3_pad1: candidates", 1, true)
       and best:find("\ntrials\n", 1, true), best)
local _, nest = check(made .. "/nest.svg")
assert(nest:find("└ block C", 1, true) and nest:find("> sch:draw()\n", 1, true), nest)
assert(os.execute(string.format("rm -r '%s'", made)))
print "pictures: ok"
