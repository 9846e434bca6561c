# Makes bare roots of Debian 12 and runs commands in them; sourced by scripts that have `say`. Needs root, debootstrap
# and the network; takes the mirror from this machine's apt sources.
suite=bookworm
[ "$(id -u)" = 0 ] || { say "this is for root"; exit 1; }
command -v debootstrap >/dev/null || { say "debootstrap is not installed"; exit 1; }

# Both forms of apt's sources: `deb [options] URI suite …`, and paragraphs of `URIs:` and `Suites:`.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
  sed -n -e "s/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\) $suite .*/\2/p" -e 's/^URIs: *\([^ ]*debian\/*\) *$/\1/p' | head -n 1)
[ -n "$mirror" ] || { say "no source of $suite among this machine's apt sources"; exit 1; }

# Makes a root in a folder, or uses the one that is there, which reaches the mirror as this machine does: security
# updates, proxies, certificates.
make_root() { # folder, packages of Debian that it has besides the least, with commas between them
  if [ ! -f "$1/etc/debian_version" ]; then
    say "making a root of $suite in $1"
    debootstrap --variant=minbase ${2:+--include="$2"} "$suite" "$1" "$mirror" >"$1.log" 2>&1 || { cat "$1.log" >&2; exit 1; }
    rm -f "$1.log"
  fi
  for file in /etc/apt/sources.list.d/debian.sources /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt; do
    [ -f "$file" ] || continue
    mkdir -p "$1${file%/*}"
    cat "$file" >"$1$file"
  done
  [ ! -f "$1/etc/apt/sources.list.d/debian.sources" ] || rm -f "$1/etc/apt/sources.list"
  apt-config dump | grep -i '^Acquire::.*proxy' >"$1/etc/apt/apt.conf.d/90proxy" || true
}

# Runs a command in a root, with its own processes and mounts, which end with it.
run_inside() { # folder, command
  unshare --mount --pid --fork sh -c '
    mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/dev/shm" && mount -t tmpfs tmpfs "$1/tmp" &&
      shift && exec "$@"' sh "$1" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM="${TERM:-dumb}" DEBIAN_FRONTEND=noninteractive \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} ${no_proxy:+no_proxy="$no_proxy"} \
    chroot "$1" sh -c "$2"
}
