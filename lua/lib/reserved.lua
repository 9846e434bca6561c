-- Words that TVMScript has of its own, modules and words of Python, as a set: nothing in a function's text has such a
-- name.
local reserved = {}
for word in ("T I R ms tir range True False None and or not if else elif for while with as def in is return lambda \z
              assert class import from pass break continue global nonlocal del try except finally raise yield async \z
              await"):gmatch "%S+" do
  reserved[word] = true
end

return reserved
