-- Refuses a candidate with a loop whose extent is not a constant: code for it would guard what the others do not.
return msched.postproc {
  name = "disallow_dynamic_loop",
  apply = function(sch) return not sch:has_dynamic_loop() end,
}
