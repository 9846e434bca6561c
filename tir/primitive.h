/* The scheduling primitives: one a file in primitive/. Each checks (reads only), then edits (cannot fail), and appends
 * to the module's `forwards` what became of loops and blocks. false: err says which precondition failed, and the module
 * is as it was. Part of the door tir.h; included from there only. */
