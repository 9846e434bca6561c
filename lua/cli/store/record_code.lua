-- What the code of a record is: what kernels of a GPU take, and notes on loops that it does not run as its schedule
-- says.
local ms = msched
local record_code = {}

-- It is built, and not only lowered: that tells whether the record still has code, and what is wrong where it has none.
-- kernel: what was built; notes; kernels: of a GPU, as ptxas reports, or where that is missing, by their source and the
-- estimate; reason: why there is less; failure: why there is no kernel, whole.
function record_code.of(func, sch, target)
  local built, kernel = pcall(ms.build, sch:func(), {target = target, reference = func})
  if not built then return {reason = "no code: " .. tostring(kernel):match "[^\n]*", failure = kernel} end
  if not ms.target(target).arch then return {kernel = kernel, notes = kernel:notes()} end
  local assembled, list = pcall(kernel.resources, kernel, true)
  return {kernel = kernel, notes = kernel:notes(), kernels = assembled and list or kernel:resources(),
          reason = not assembled and "not assembled: " .. tostring(list):match "[^\n]*" or nil}
end

-- What a kernel takes, in words.
function record_code.kernel_text(k)
  local own = k.registers
    and string.format("%d registers, %d bytes spilled, %d of stack, ", k.registers, k.spill_stores, k.stack_bytes) or
              k.estimated_spills and "more in a thread than registers hold, "
                or string.format("about %d registers, ", k.estimated_registers)
  return string.format("kernel %s: %d threads a block, %s%d bytes of shared memory%s", k.name, k.threads, own,
                       k.shared_bytes, k.serialized and "; products of its tensor units wait for one another" or "")
end

-- A kernel's code as text: of a CPU assembly, of a GPU CUDA's source; nil, and what is wrong.
function record_code.text(kernel)
  return ms.with_folder(function(folder)
    local path = folder .. "/code" .. (ms.target(kernel:target()).arch and ".cu" or ".s")
    local ok, message = pcall(kernel.export, kernel, path)
    local file <close> = ok and io.open(path) or nil
    return file and file:read "a", message
  end)
end

-- The same of a function, which is built for it.
function record_code.text_of(func, target)
  local built, kernel = pcall(ms.build, func, {target = target})
  if not built then return nil, kernel end
  return record_code.text(kernel)
end

return record_code
