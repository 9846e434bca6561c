-- fails(pattern, f, …): f(…) raises a message that matches the pattern.
return function(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find(pattern), string.format("%s, not %s", message, pattern))
end
