-- Files that are written, and commands that are run, for users. What fails raises a message.
local ms = msched
local files = {}

-- Where a file cannot be written, what was there stays. Devices and pipes are written to.
function files.write(path, text)
  local ok, message, special = ms.replace_file(path, text)
  if special then
    local file, why = io.open(path, "wb")
    if file then
      ok, why = file:write(text)
      local closed, reason = file:close()
      ok, why = ok and closed, why or reason
    end
    message = why and (why:find(path, 1, true) and why or path .. ": " .. why)
  end
  if not ok then error(message, 0) end
end

function files.read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- Words as a shell reads them back.
function files.quoted(...)
  local words = {...}
  for i, word in ipairs(words) do words[i] = "'" .. tostring(word):gsub("'", "'\\''") .. "'" end
  return table.concat(words, " ")
end

-- Runs a command, of which each %s is a word. A compiler is ${CC:-cc} there: CC may have options of its own.
function files.run(format, ...)
  local words = {}
  for i, word in ipairs {...} do words[i] = files.quoted(word) end
  local command = string.format(format, table.unpack(words))
  if not os.execute(command) then error("a command failed: " .. command, 0) end
end

-- A name that C can have.
function files.identifier(text) return (text:gsub("[^%w_]", "_"):gsub("^%f[%d]", "_")) end

return files
