-- The user's files of rules, as sandboxes and pools take them. What a run leaves out of the target's space (its option
-- `without`) is a file more, which says so: states that read the files leave out the same.
return function(options)
  local list = {}
  for i, file in ipairs(options.files or {}) do
    list[i] = type(file) == "table" and file or msched.sources({file})[1] -- read already, or now
  end
  local lines = {}
  for i, name in ipairs(options.without or {}) do
    if type(name) ~= "string" then
      error(string.format("item %d of `without` is no name but a %s", i, type(name)), 0)
    end
    lines[i] = string.format("msched.without %q\n", name)
  end
  if #lines > 0 then list[#list + 1] = {path = "without", text = table.concat(lines)} end
  return list
end
