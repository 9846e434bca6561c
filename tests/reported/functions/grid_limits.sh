#!/bin/sh
# blockIdx.y and blockIdx.z take 65,535 blocks, threadIdx.z 64 threads: Bind refuses more, and no draw has more.
. "$(dirname -- "$0")/../expect.sh"
expect_status 0 "$program" "$here/grid_limits.lua"
expect_output 'accepted draws with more than 65,535 blocks on blockIdx.y:[[:space:]]*0 of'
