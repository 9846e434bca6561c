#!/bin/sh
# The Python module beside an exported network: what is no array of its own, and what is none of its arrays.
# usage: python_network.sh MSCHED ROOT; MSCHED_NUMPY: a Python with NumPy, where python3 has none
set -eu
msched=$1 digits=$2/lua/examples/digits.onnx
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
# The store has a choice among few proposals of each function before.
cat >few.lua <<'E2'
local model, root, target = table.unpack(arg)
dofile(root .. "/tests/support/lua/few_proposals.lua")
msched.onnx(model, {dims = {batch = 2}}):plan {no_tune = true, db = "d.db", target = target}
E2
"$msched" few.lua "$digits" "$2"
"$msched" export "$digits" --dim batch=2 -o digits.so --db d.db >/dev/null

# One library is open once: no copy of the object closes it a second time. This asks nothing of NumPy.
mkdir empty
: >empty/numpy.py
cat >once.py <<'E2'
import copy, pickle
import digits_network
net = digits_network.Network()
for attempt in copy.copy, copy.deepcopy, pickle.dumps:
    try:
        attempt(net)
    except TypeError as e:
        assert "open it again" in str(e), e
    else:
        raise SystemExit("a network is copied")
net.__del__()
net.__del__()
assert net._library.digits_run(None, None, None, None) == 5
E2
PYTHONPATH=empty python3 once.py

# A CPU that lacks what the library's code may use.
if [ "$(uname -m)" = x86_64 ]; then
  "$msched" few.lua "$digits" "$2" "llvm -mcpu=x86-64-v3 -mattr=+xop,+avx512fp16"
  "$msched" export "$digits" --dim batch=2 --target "llvm -mcpu=x86-64-v3 -mattr=+xop,+avx512fp16" -o more.so --db d.db >/dev/null
  PYTHONPATH=empty python3 -c "import more_network; more_network.Network()" 2>said && { echo "a CPU without XOP opens it"; exit 1; }
  grep -q "^OSError: .*more.so with .*more.weights: this machine has no .*, which code for llvm " said
fi

python=${MSCHED_NUMPY:-python3}
"$python" -c "import numpy" 2>/dev/null || { echo "python_network: ok, without NumPy"; exit 0; }
cat >arrays.py <<'E2'
import numpy as np
import digits_network
net = digits_network.Network()
x = np.random.default_rng(1).random((2, 1, 14, 14), dtype=np.float32)
first = net(x)[0]
wide = np.zeros((4, 1, 28, 28), np.float32)
wide[::2, :, ::2, ::2] = x
odd = np.zeros(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)
odd[...] = x
held = x.copy()
held.flags.writeable = False
for name, same in {"strides": wide[::2, :, ::2, ::2], "negative strides": x[::-1, :, ::-1, ::-1].copy()[::-1, :, ::-1, ::-1],
                   "columns first": np.asfortranarray(x), "the other order of bytes": x.astype(x.dtype.newbyteorder()),
                   "unaligned": odd, "read-only": held, "float64": x.astype(np.float64), "a list": x.tolist()}.items():
    assert np.array_equal(net(same)[0], first), name
def refused(error, *inputs):
    try:
        net(*inputs)
    except error:
        return
    raise SystemExit("%s is not refused" % (inputs,))
for wrong in x.astype(complex), x.astype(str), x.astype(object), np.zeros(x.shape, "M8[s]"):
    refused(TypeError, wrong)
refused(ValueError, x[0])
refused(ValueError, None)
refused(TypeError)
refused(TypeError, x, x)
# Of integers and truths: values that they do not have are not wrapped.
ok = digits_network._array
assert ok([1, 2], "n", "int8", (2,)).dtype == np.int8 and ok([0, 1], "n", "bool", (2,)).dtype == np.bool_
assert ok(7, "n", "int64", ()) == 7 and ok([1, 2], "n", "float32", (2,)).dtype == np.float32
assert ok([0x3f80], "n", "uint16", (1,))[0] == 0x3f80
for values, type in (([300], "int8"), ([-1], "uint8"), ([2], "bool"), ([1 << 40], "int32"), ([70000], "uint16")):
    try:
        ok(values, "n", type, (1,))
    except ValueError:
        continue
    raise SystemExit("%s of %s" % (values, type))
for type in "uint16", "int32", "bool":
    try:
        ok([1.5], "n", type, (1,))
    except TypeError:
        continue
    raise SystemExit("a float of %s" % type)
E2
"$python" arrays.py
echo "python_network: ok"
