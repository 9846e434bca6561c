# max and min leave NaN out, and no schedule changes that: usage: nan_maximum.sh PROGRAM
. "$(dirname -- "$0")/../expect.sh"
expect_status 0 "$program" "$here/nan_maximum.lua"
expect_output '^unscheduled	5\.0	rfactor	5\.0$'
