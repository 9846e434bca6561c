"""What PyTorch takes for the operators of `msched bench ops --json`, on the same device: cuBLAS, cuDNN with its
autotuner in both layouts, scaled dot-product attention by its fastest backend, softmax and norms, each captured in a
CUDA graph. One JSON object a line, as it goes: task, seconds, and what was called.
usage: gpu_vendors.py ROWS SECONDS     ROWS: lines of `bench ops --json`; after SECONDS the rest is left out
"""
import json, sys, time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("gpu_vendors: skipped: there is no PyTorch", file=sys.stderr)
    sys.exit(77)

DEVICE, CALLS, REPLAYS = "cuda", 20, 7
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True


def seconds_of(call):
    """The median of replays of a graph of calls; of calls, where they cannot be captured."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(CALLS):
                call()
        run = graph.replay
    except RuntimeError:
        torch.cuda.synchronize()

        def run():
            for _ in range(CALLS):
                call()

    taken = []
    for _ in range(REPLAYS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        end.synchronize()
        taken.append(1e-3 * start.elapsed_time(end) / CALLS)
    return sorted(taken)[REPLAYS // 2]


def random(shape, dtype):
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


def convolutions(v, dtype, rank, transposed=False):
    """The call in each layout of which PyTorch knows."""
    if any(isinstance(v.get(name), list) for name in ("kernel", "stride", "pad", "dilation")):
        return
    space = [v[name] for name in ("d", "h", "w", "l") if name in v]
    groups = v["c"] if "c" in v else v.get("groups", 1)
    ci, co = v.get("ci", v.get("c")), v.get("co", v.get("c"))
    forward = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[rank]
    last = {2: torch.channels_last, 3: torch.channels_last_3d}.get(rank)
    for layout in ("first", "last") if last else ("first",):
        x = random([v["n"], ci] + space, dtype)
        w = random(([ci, co] if transposed else [co, ci // groups]) + [v["kernel"]] * rank, dtype)
        if layout == "last":
            x, w = x.to(memory_format=last), w.to(memory_format=last)
        if transposed:
            yield f"conv_transpose2d, channels {layout}", lambda: F.conv_transpose2d(x, w, None, v["stride"], v["pad"])
        else:
            place = (v["stride"], v["pad"], v["dilation"], groups)
            yield f"conv{rank}d, channels {layout}", lambda: forward(x, w, None, *place)


BACKENDS = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH")


def attention(v, dtype):
    """The call by each backend."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if v["kv_heads"] not in ("auto", v["heads"]):
        return
    q = random([v["b"], v["heads"], v["rows"], v["width"]], dtype)
    k, w = (random([v["b"], v["heads"], v["columns"], v["width"]], dtype) for _ in range(2))
    for name in BACKENDS:

        def call(backend=getattr(SDPBackend, name)):
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, w, is_causal=v["causal"])

        yield f"scaled_dot_product_attention, {name}", call


def products(v, dtype):
    x = random([v["b"], v["m"], v["k"]] if v.get("b", 1) > 1 else [v["m"], v["k"]], dtype)
    y = random([v["b"], v["k"], v["n"]] if v.get("b", 1) > 1 else [v["k"], v["n"]], dtype)
    if not (v["transpose_a"] or v["transpose_b"]):
        yield "matmul", lambda: torch.matmul(x, y)


def rows(operator, v, dtype):
    if operator not in ("softmax", "norm", "layer_norm", "gelu"):
        return
    x, width = random(v["shape"], dtype), v["shape"][-1:]
    if operator == "softmax":
        axis = v["axis"] - 1 if v["axis"] > 0 else v["axis"]
        yield "softmax", lambda: torch.softmax(x, axis)
    elif operator == "norm":
        yield "vector_norm", lambda: torch.linalg.vector_norm(x, dim=tuple(d - 1 if d > 0 else d for d in v["axes"]))
    elif operator == "layer_norm":
        g, b = random(width, dtype), random(width, dtype)
        yield "layer_norm", lambda: F.layer_norm(x, width, g, b)
    else:
        yield "gelu", lambda: F.gelu(x)


def alternatives(operator, v, dtype):
    """What computes the operator, by name; nothing: PyTorch is not asked for it."""
    if operator in ("batch_matmul", "matmul"):
        return products(v, dtype)
    if operator == "dense":
        x, w = random([v["m"], v["ci"]], dtype), random([v["co"], v["ci"]], dtype)
        return [("linear", lambda: F.linear(x, w))]
    if operator in ("conv1d", "conv2d", "conv3d"):
        return convolutions(v, dtype, int(operator[4]))
    if operator == "depthwise_conv2d":
        return convolutions(v, dtype, 2)
    if operator == "conv2d_transpose":
        return convolutions(v, dtype, 2, transposed=True)
    if operator == "attention":
        return attention(v, dtype)
    return rows(operator, v, dtype)


def best(row):
    """Seconds of the fastest, and what it is."""
    v = row["values"]
    dtype = getattr(torch, v["dtype"], None)
    if dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return None
    fastest = None
    for what, call in alternatives(row["operator"], v, dtype):
        try:
            seconds = seconds_of(call)
        except RuntimeError as why:  # a backend that has no such kernel
            print(f"gpu_vendors: {row['task']}: {what}: {str(why).splitlines()[0]}", file=sys.stderr)
            continue
        if not fastest or seconds < fastest[0]:
            fastest = seconds, what
    return fastest


def main():
    deadline, seen = time.time() + float(sys.argv[2]), set()
    for line in open(sys.argv[1]):
        row = json.loads(line) if line.startswith("{") else {}
        if row.get("bench") != "ops" or not row.get("operator") or row["task"] in seen:
            continue
        if time.time() > deadline:
            print("gpu_vendors: the time is over", file=sys.stderr)
            break
        seen.add(row["task"])
        found = best(row)
        if found:
            said = {"bench": "vendors", "task": row["task"], "seconds": found[0], "routine": found[1]}
            print(json.dumps(said, sort_keys=True), flush=True)


main()
