#!/bin/sh
# cross_thread_reduction shares out among threads what a known reducer computes, and nothing else.
. "$(dirname -- "$0")/../expect.sh"
expect_status 0 "$program" "$here/cross_thread_draws.lua"
expect_output '^0 of 12 accepted candidates cannot be built'
