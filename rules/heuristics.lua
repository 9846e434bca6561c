-- What ms.auto_schedule decides by, as data: `ms.heuristics`, which users may change for all calls, or for one by its
-- option `heuristics`.
--   rules       in the order they are applied, each with the patterns it is for (patterns.lua), "root" for a whole
--               function; a list of names: alternatives, each for what those before it left as it was, of which the
--               cheapest are chosen together
--   kept        schedules that go on where rules leave a choice: those with the lowest estimates; they make up a
--               template
--   explored    candidates of a schedule that are estimated while rules are applied, shared by its blocks: each costs
--               as much
--   filled      and of a template's schedule, when its numbers are chosen, of all blocks together
--   replayed    proposals of a template that are replayed, and estimated as they are
--   each        of these, of one register tile
--   known       of a template that an earlier function filled, what is filled again: its `kept` cheapest schedules,
--               with so many `filled`, `replayed` and `each` as above; and what is one step away from `around` of the
--               cheapest, `downhill` times
--   parameters  of rules, by name, in place of the target's (targets.lua)
--   machine     numbers of the estimate, in place of the target's; search.h has the words
return {
  rules = {
    {"parallel_vectorize_unroll", {"root"}},
    {"unroll_window", {"simple_reduction", "complex_reduction"}},
    {"inline_constant_scalars", {"direct_compute"}},
    {"keep_stages", {"direct_compute", "location_tunable"}},
    {"auto_inline", {"direct_compute"}},
    {"fuse_online_softmax", {"complex_reduction"}},
    {"fuse_online_softmax_amx", {"complex_reduction"}},
    {"online_softmax", {"simple_reduction", "complex_reduction"}},
    {"group_sums", {"simple_reduction", "complex_reduction"}},
    {"add_rfactor", {"simple_reduction", "complex_reduction"}},
    {{"register_tile", "dot_tile", "amx_tile", "multi_level_tiling"}, {"complex_reduction"}},
    {"spatial_tiling", {"direct_compute"}},
    {"nontemporal_stores", {"direct_compute"}},
    {"random_compute_location", {"location_tunable", "direct_compute", "simple_reduction"}},
  },
  kept = 12, explored = 4000, filled = 20000, replayed = 200, each = 3,
  known = {kept = 6, filled = 2000, replayed = 24, each = 2, around = 2, downhill = 2},
  parameters = {register_tile = {few_columns = true}}, machine = {}, -- few_columns: a vector need not be full
}
