-- Files and commands of tests: read(path) and capture(command) give all bytes, write(path, bytes) replaces a file.
local files = {}

function files.read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

function files.capture(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read "a"
end

function files.write(path, bytes)
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(bytes))
end

return files
