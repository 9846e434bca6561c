-- Kernels as one file of C: each is exported with helpers of its own, which stand there once; other names that are not
-- the kernel's are told apart by it.
local sources = {}

-- The parts of a file that begin in its first column, and what stands between them.
local function chunks_of(text)
  local list, current = {}, {}
  local function finish()
    if #current > 0 then list[#list + 1] = table.concat(current, "\n") .. "\n" end
    current = {}
  end
  for line in text:gmatch "([^\n]*)\n" do
    if line:find "^[%w_#/]" then finish() end -- a declaration, a directive, a comment
    current[#current + 1] = line
  end
  finish()
  return list
end

-- The name that a definition gives.
local function name_of(chunk)
  local first = chunk:match "^[^\n]*"
  return first:gsub("__attribute__%s*%(%(.-%)%)", ""):match "([%w_]+)%s*[%(%[=]"
end

-- sources.join(kernels): the text of {symbol, text} each. A helper whose text is another's of its name is renamed.
function sources.join(kernels)
  local parts, helpers = {}, {}
  for _, kernel in ipairs(kernels) do
    local own, renamed = {}, {}
    for _, chunk in ipairs(chunks_of(kernel.text)) do
      local is_helper, is_static = chunk:find "^MS_HELPER" ~= nil, chunk:find "^static" ~= nil
      local name = (is_helper or is_static) and name_of(chunk)
      if is_static or is_helper and helpers[name] and helpers[name] ~= chunk then
        renamed[name] = kernel.symbol .. "_" .. name
      end
      if not (is_helper and helpers[name] == chunk) then own[#own + 1] = chunk end
      if is_helper then helpers[name] = helpers[name] or chunk end
    end
    parts[#parts + 1] = (table.concat(own):gsub("[%a_][%w_]*", renamed))
  end
  return table.concat(parts, "\n")
end

return sources
