-- Gives refuses(pattern, f, …): that a call raises an error with these words.
return function(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "expected a refusal: " .. pattern)
  assert(tostring(message):find(pattern, 1, true), "another message: " .. tostring(message))
end
