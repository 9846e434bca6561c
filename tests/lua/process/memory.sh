#!/bin/sh
# Tuning with little memory: it is done, or says what it lacks; it never ends by a signal.  usage: memory.sh MSCHED ROOT
msched=$1 gemm=$2/lua/examples/gemm.lua
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ulimit -c 0
said=0
for kilobytes in $(seq 180000 5000 900000); do
  rm -f "$work"/*
  (ulimit -v "$kilobytes" && exec "$msched" tune "$gemm" --trials 2 --db "$work/records.db" -- 48 32 32) >"$work/out" 2>&1
  rc=$?
  [ $rc = 0 ] && break
  if [ $rc -ge 124 ] && [ $rc != 127 ]; then # 127: of the loader of shared libraries
    echo "FAIL: with $kilobytes KiB it ends with $rc:"
    tail -5 "$work/out"
    exit 1
  fi
  if grep -q "no memory is left; allow the process more" "$work/out"; then said=$((said + 1)); fi
  [ -s "$work/out" ] || { echo "FAIL: with $kilobytes KiB it says nothing"; exit 1; }
done
[ $rc = 0 ] || { echo "FAIL: it is never done:"; tail -5 "$work/out"; exit 1; }
[ $said -gt 0 ] || { echo "FAIL: it never said that no memory is left"; exit 1; }
# Where the loader just has what it needs, constructors of libraries have nothing: that is said too.
started() { # kilobytes
  (ulimit -v "$1" && exec "$msched" --version) >"$work/out" 2>&1
  rc=$?
}
least=0 most=$kilobytes
while [ $((most - least)) -gt 200 ]; do
  middle=$(((least + most) / 2))
  started $middle
  if [ $rc = 127 ]; then least=$middle; else most=$middle; fi
done
for kilobytes in $(seq "$least" 200 $((least + 4000))); do
  started "$kilobytes"
  [ $rc -lt 128 ] && [ -s "$work/out" ] || { echo "FAIL: with $kilobytes KiB it starts and ends with $rc:"; cat "$work/out"; exit 1; }
done
# A small stack is refused, or is enough.
for kilobytes in 64 200 511 512; do
  (ulimit -s "$kilobytes" && exec "$msched" tune "$gemm" --trials 1 --db "$work/stack.db" -- 48 32 32) >"$work/out" 2>&1
  rc=$?
  if [ "$kilobytes" -lt 512 ]; then
    [ $rc = 1 ] && grep -q "ulimit -s" "$work/out" || { echo "FAIL: with $kilobytes KiB of stack: $rc"; cat "$work/out"; exit 1; }
  else
    [ $rc = 0 ] || { echo "FAIL: with $kilobytes KiB of stack: $rc"; tail -3 "$work/out"; exit 1; }
  fi
done
echo "memory: ok; no memory $said times"
