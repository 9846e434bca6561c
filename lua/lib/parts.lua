-- The parts of a text between commas that stand in no brackets or strings, without the blanks around them.
--   opens, closes  patterns of brackets; those of Python, where they are left out
return function(text, opens, closes)
  local parts, depth, start, quoted = {}, 0, 1, false
  for i = 1, #text + 1 do
    local c = text:sub(i, i)
    if c == '"' then quoted = not quoted
    elseif not quoted and c:find(opens or "[%(%[{]") then depth = depth + 1
    elseif not quoted and c:find(closes or "[%)%]}]") then depth = depth - 1 end
    if (c == "," or c == "") and depth == 0 and not quoted then
      local part = text:sub(start, i - 1):match "^%s*(.-)%s*$"
      if part ~= "" then parts[#parts + 1] = part end
      start = i + 1
    end
  end
  return parts
end
