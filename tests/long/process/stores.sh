#!/bin/sh
# Rounds of processes that write, read, prune, compact, repair and merge one store, a third of the rounds with processes
# killed; or processes that are killed in commits, batches, merges and upgrades: in memory, where there is such a
# folder, since what was written outlives a process anywhere. After each the store is sound, and nothing that was
# committed is lost.
# usage: stores.sh HAMMER_STORE|KILL_STORE ROUNDS [SEED]
set -eu
memory=
case $1 in *kill_store) memory=/dev/shm ;; esac
work=$(mktemp -d -p "$memory" 2>/dev/null || mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" "$work" "$2" "${3:-1}"
