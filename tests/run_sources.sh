#!/bin/sh
# usage: run_sources.sh PROGRAM CASES: cases as C source, by gcc with OpenMP, as C++, and by clang where it is, on one
# thread.
set -e
"$1" "$2"/tuned "$2"/vector "$2"/split/of_handles.case "$2"/online_softmax/lanes.case --every 29 "$2"
if command -v g++ >/dev/null; then
  "$1" --cc "g++ -x c++ -std=c++17 -O1 -Wall -Wextra -Werror -Wno-psabi" "$2"/vector "$2"/split/of_handles.case "$2"/online_softmax/lanes.case
fi
command -v clang >/dev/null || exit 0
"$1" --cc "clang -std=c11 -O2 -Wall -Wextra -Werror" "$2"/tuned "$2"/vector "$2"/split/of_handles.case "$2"/online_softmax/lanes.case --every 83 "$2"
# Loops become vectors, whatever they cost.
"$1" --cc "clang -std=c11 -O2 -mllvm -force-vector-width=4" "$2"/vector/stores_come_back.case
