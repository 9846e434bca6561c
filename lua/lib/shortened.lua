-- A message that may be as long as what it repeats: its first bytes, and how many are left out.
local MOST = 20000 -- bytes

return function(message)
  if #message <= MOST then return message end
  return string.format("%s… (%d bytes more)", message:sub(1, MOST), #message - MOST)
end
