-- Refuses a candidate that the GPU would not launch, or that would keep what belongs in registers in memory. Checked
-- are the extents of axes, threads and shared memory of a block, virtual threads, local memory of a thread, bytes of an
-- access, and that an axis has one extent in a kernel.
local function fits(value, most) return value ~= nil and value <= most end

return msched.postproc {
  name = "verify_gpu_code",
  apply = function(sch, context, self)
    local t = context.target
    for _, k in ipairs(sch:kernels()) do
      if not k.uniform or not k.launchable
        or not fits(k.threads, math.min(t.max_threads, k.most_threads or t.max_threads)) or k.threads < k.least_threads
        or
         not fits(k.vthreads, t.max_vthread) or not fits(k.shared_bytes, t.shared_bytes)
           or not fits(k.local_bytes, self.parameters.local_bytes) or
         not fits(k.vector_bytes, t.vector_bytes) then
        return false
      end
    end
    return true
  end,
}
