-- Refuses a candidate that keeps more than a limit at a time in a memory of the target's own, such as Hexagon's VTCM.
-- Parameters: bytes, by scope.
return msched.postproc {
  name = "verify_scope_limit",
  apply = function(sch, _, self)
    for _, scope in ipairs(msched.sorted_keys(self.parameters)) do
      local bytes = sch:scope_bytes(scope)
      if not bytes or bytes > self.parameters[scope] then return false end
    end
    return true
  end,
}
