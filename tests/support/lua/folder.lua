-- A folder of a test's own: {path; run(format, ...), a command that has to pass; put(name, bytes) and get(name), a file
-- in it}. Who asks for it removes it.
local folder = {path = os.tmpname()}

function folder.run(format, ...)
  local command = string.format(format, ...)
  assert(os.execute(command), command)
end

function folder.put(name, bytes)
  local file <close> = assert(io.open(folder.path .. "/" .. name, "wb"))
  file:write(bytes)
end

function folder.get(name)
  local file <close> = assert(io.open(folder.path .. "/" .. name, "rb"))
  return file:read "a"
end

os.remove(folder.path)
folder.run("mkdir %s", folder.path)
return folder
