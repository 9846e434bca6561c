#!/bin/sh
# CUDA source of infinite and NaN constants, of each float type, by elements and by vectors, compiles with NVRTC.
. "$(dirname -- "$0")/../expect.sh"
"$program" doctor 2>&1 | grep -q '^NVRTC  *[0-9]' || {
  echo "skipped: there is no NVRTC"
  exit 77
}

write() { # type value
  cat <<END
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(X: T.Buffer((64, 4), "$1"), Y: T.Buffer((64, 4), "$1")):
    for i, j in T.grid(64, 4):
        with T.sblock("Y"):
            v, w = T.axis.remap("SS", [i, j])
            Y[v, w] = T.if_then_else(X[v, w] < T.$1(0), T.$1("$2"), X[v, w])
END
}
cat >vectors.lua <<'END'
local ms = require "msched"
local sch = ms.schedule(ms.from_script(io.read "a"))
local i, j = sch:get_loops(sch:get_sblock "Y")
sch:bind(i, "threadIdx.x")
sch:vectorize(j)
print(#sch:build {target = "cuda -arch=sm_80"}:resources(true))
END
for type in float16 bfloat16 float32 float64; do
  for value in inf -inf nan; do
    write $type $value >"$type$value.py"
    expect_status 0 "$program" tune --no-tune --target "cuda -arch=sm_80" --db "$type$value.db" "$type$value.py"
    "$program" vectors.lua <"$type$value.py" >output 2>&1 || fail "$type $value, vectorized: $(cat output)"
  done
done
