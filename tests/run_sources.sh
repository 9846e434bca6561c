#!/bin/sh
# usage: run_sources.sh PROGRAM CASES: cases as C source, by gcc with OpenMP, and by clang where it is, on one thread.
set -e
"$1" "$2"/tuned "$2"/vector --every 13 "$2"
command -v clang >/dev/null || exit 0
"$1" --cc "clang -std=c11 -O2 -Wall -Wextra -Werror" "$2"/tuned "$2"/vector --every 40 "$2"
