-- What a user's file raised, as text: an error may be any value, and a metamethod of its is not called.
return function(value, path)
  if type(value) == "string" then return value end
  return string.format("%sraised a %s", path and path .. ": " or "", type(value))
end
