-- Refuses a candidate with a loop whose extent is not a constant: code for it would guard what the others do not.
return msched.postproc {
  name = "disallow_dynamic_loop",
  apply = function(sch)
    for _, name in ipairs(sch:block_names()) do
      if name ~= "root" then
        for _, extent in ipairs(sch:loop_extents(name)) do if extent < 0 then return false end end
      end
    end
    return true
  end,
}
