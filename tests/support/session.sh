# shellcheck shell=sh
# Shell functions of tests that stop processes: run a command in a session of its own, and see what is left of it.

# The processes of a session that still run, as numbers.
session_left() { # session
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    # pid (command) state parent group session …
    set -- "$1" ${line##*) }
    [ "$5" = "$1" ] && [ "$2" != Z ] && echo "${line%% *}"
  done
  return 0
}

# Waits until no process of a session is left, so many tries of 50 ms at most; prints those that are.
session_ended() { # session, tries
  tries=0
  while [ -n "$(session_left "$1")" ]; do
    tries=$((tries + 1))
    [ $tries -le "$2" ] || { session_left "$1"; return 1; }
    sleep 0.05
  done
}
