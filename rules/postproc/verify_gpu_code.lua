-- Refuses a candidate that the GPU would not launch, or that would keep what belongs in registers in memory. Checked
-- are the extents of axes, threads and shared memory of a block, virtual threads, local memory of a thread, bytes of an
-- access, and that an axis has one extent in a kernel. One question has one of two answers, which are memoized; what
-- kernels take differs from candidate to candidate.
return msched.postproc {
  name = "verify_gpu_code",
  apply = function(sch, context, self)
    local t = context.target
    return sch:kernels_fit(t.max_threads, t.max_vthread, t.shared_bytes, self.parameters.local_bytes, t.vector_bytes)
  end,
}
