#!/bin/sh
# The two commands of the README in a bare Debian 12: a root made by debootstrap, with git, a clone of this tree's HEAD,
# and nothing else.
# usage: bare_root.sh [FOLDER]   FOLDER is kept, and used again if it holds a root; without it a temporary one
#   is removed. BARE_TRIALS=N: tunes with N trials (64)
#   BARE_STAGES=…    the stages of `./msched test`, the longer of the two (all); `none` leaves it out
set -eu
source=$(CDPATH= cd -- "$(dirname -- "$0")/../../.." && pwd)
say() { printf 'bare_root: %s\n' "$*" >&2; }
. "$source/tests/long/install/root.sh"

bare=${1:-}
if [ -z "$bare" ]; then
  bare=$(mktemp -d)
  trap 'rm -rf "$bare"' EXIT
fi
make_root "$bare" git
rm -rf "$bare/root/msched"
git clone -q --no-hardlinks "$source" "$bare/root/msched"
inside() { run_inside "$bare" "cd /root/msched && $1"; }

say "MSCHED_NO_INSTALL=1 ./msched --version: what is missing is said, and nothing installed"
if inside 'command -v cmake' >/dev/null; then
  say "(the root was used before: its packages stay)"
else
  inside 'MSCHED_NO_INSTALL=1 ./msched --version' && { say "it went on"; exit 1; }
  inside 'command -v cmake' >/dev/null && { say "it installed something"; exit 1; }
fi
say "./msched tune lua/examples/gemm.lua"
inside "./msched tune lua/examples/gemm.lua --trials ${BARE_TRIALS:-64}"
say "again, with nothing to install or build"
inside './msched --version' 2>&1 | grep -E 'installing|configuring|building' && { say "it was set up twice"; exit 1; }
if [ "${BARE_STAGES:-}" != none ]; then
  say "./msched test ${BARE_STAGES:-}"
  inside "./msched test ${BARE_STAGES:-}"
fi
say "done"
