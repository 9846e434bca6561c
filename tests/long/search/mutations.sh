#!/bin/sh
# Each rule, postprocessor, mutator and policy in turn does nothing, in a copy of our files of Lua: a test fails, in a
# line of its own.  usage: mutations.sh MSCHED ROOT [NAME…]: files to try alone, such as rules/rule/auto_bind
set -eu
msched=$1 root=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
[ $# -gt 0 ] || set -- $(grep -lE '^return msched\.(rule|postproc|mutator|policy) \{' rules/*/*.lua search/policy/*.lua | sed 's/\.lua$//')

survived=0 tried=0
for name in "$@"; do
  rm -rf "$work/tree"
  mkdir "$work/tree"
  find lua rules search -name '*.lua' | tar cf - -T - | (cd "$work/tree" && tar xf -)
  kind=$(sed -n 's/^return msched\.\([a-z]*\) {.*/\1/p' "$name.lua")
  case $kind in
  rule) nothing='part.apply = function(sch) return {sch} end' tests='parts tile_parts amx_tiles' ;;
  postproc) nothing='part.apply = function() end' tests='postproc_parts parts' ;;
  mutator) nothing='part.apply = function() end' tests='postproc_parts' ;;
  policy) nothing='part.run = function() end' tests='policies tasks' ;;
  *) echo "mutations.sh: $name.lua gives no rule, postprocessor, mutator or policy" >&2; exit 2 ;;
  esac
  sed "s/^return msched\.$kind {/local part = msched.$kind {/" "$name.lua" >"$work/tree/$name.lua"
  printf '%s\nreturn part\n' "$nothing" >>"$work/tree/$name.lua"
  failed=
  for test in $tests; do
    [ -z "$failed" ] || continue
    MSCHED_LUA_PATH=$work/tree timeout 600 "$msched" "$root"/tests/lua/*/"$test.lua" "$root" >"$work/out" 2>&1 ||
      { [ $? -lt 124 ] && grep -q "tests/lua/[a-z]*/$test.lua:[0-9]" "$work/out" && failed=$test; } || true
  done
  tried=$((tried + 1))
  if [ -n "$failed" ]; then
    echo "$name: lua.$failed fails, line $(sed -n "s|.*tests/lua/[a-z]*/$failed.lua:\([0-9]*\).*|\1|p" "$work/out" | head -1)"
  else
    echo "$name: NOTHING fails that is run for it: $tests"
    survived=$((survived + 1))
  fi
done
echo "mutations: of $tried parts that did nothing, $((tried - survived)) made a test fail"
[ $survived = 0 ]
