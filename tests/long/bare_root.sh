#!/bin/sh
# The two commands of the README in a bare Debian 12: a root made by debootstrap, with git, a clone of this tree's HEAD, and
# nothing else. Needs root, debootstrap and the network; takes the mirror from this machine's apt sources.
# usage: bare_root.sh [FOLDER]   FOLDER is kept, and used again if it holds a root; without it a temporary one is removed.
#   BARE_TRIALS=N    tunes with N trials (64)
#   BARE_STAGES=…    the stages of `./msched test`, the longer of the two (all); `none` leaves it out
set -eu
source=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
suite=bookworm
say() { printf 'bare_root: %s\n' "$*" >&2; }
[ "$(id -u)" = 0 ] || { say "this is for root"; exit 1; }
command -v debootstrap >/dev/null || { say "debootstrap is not installed"; exit 1; }

# Both forms of apt's sources: `deb [options] URI suite …`, and paragraphs of `URIs:` and `Suites:`.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
  sed -n -e "s/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\) $suite .*/\2/p" -e 's/^URIs: *\([^ ]*debian\/*\) *$/\1/p' | head -n 1)
[ -n "$mirror" ] || { say "no source of $suite among this machine's apt sources"; exit 1; }

bare=${1:-}
if [ -z "$bare" ]; then
  bare=$(mktemp -d)
  trap 'rm -rf "$bare"' EXIT
fi
if [ ! -f "$bare/etc/debian_version" ]; then
  say "making a root of $suite in $bare"
  debootstrap --variant=minbase --include=git "$suite" "$bare" "$mirror" >"$bare.log" 2>&1 || { cat "$bare.log" >&2; exit 1; }
  rm -f "$bare.log"
fi

# How this machine reaches the mirror: security updates, proxies, certificates.
for file in /etc/apt/sources.list.d/debian.sources /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt; do
  [ -f "$file" ] || continue
  mkdir -p "$bare${file%/*}"
  cat "$file" >"$bare$file"
done
[ ! -f "$bare/etc/apt/sources.list.d/debian.sources" ] || rm -f "$bare/etc/apt/sources.list"
apt-config dump | grep -i '^Acquire::.*proxy' >"$bare/etc/apt/apt.conf.d/90proxy" || true

rm -rf "$bare/root/msched"
git clone -q --no-hardlinks "$source" "$bare/root/msched"

inside() { # command: in the root, with its own processes and mounts, which end with it
  unshare --mount --pid --fork sh -c '
    mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/dev/shm" && mount -t tmpfs tmpfs "$1/tmp" &&
      shift && exec "$@"' sh "$bare" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="${TERM:-dumb}" \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} \
    chroot "$bare" sh -c "cd /root/msched && $1"
}

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
