"""Operators that ONNX's own tests do not have, on random data against onnxruntime (PyPI's packages `onnx` and `onnxruntime`): those of
com.microsoft, and recurrent ones with what their tests leave out. Writes models and data as onnx_nodes.py does, and has msched run them,
on the interpreter and compiled; prints what is right, refused and wrong.
usage: onnx_runtime.py MSCHED FOLDER [NAME…]"""
import os
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MS = "com.microsoft"
random = np.random.default_rng(1)
onnxruntime.set_default_logger_severity(4)


def f32(*shape):
    return random.standard_normal(shape).astype(np.float32)


def u8(*shape):
    return random.integers(0, 256, shape).astype(np.uint8)


def s8(*shape):
    return random.integers(-128, 128, shape).astype(np.int8)


def scalar(x, kind=np.float32):
    return np.array(x, kind)


def i32(*values):
    return np.array(values, np.int32)


class Known(np.ndarray):
    """An input that is a constant of the model."""


def known(array):
    return np.asarray(array).view(Known)


def angles(places, half):
    angle = random.uniform(0, 6, (places, half))
    return np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)


def quantized(x, y, kind):
    """x, its scale and zero point, y with its own, and those of the result."""
    zero = 128 if kind is np.uint8 else 3
    return [x, scalar(0.02), scalar(zero, kind), y, scalar(0.03), scalar(zero - 7, kind), scalar(0.05), scalar(zero - 1, kind)]


def recurrent(op, gates, **more):
    """Random recurrent networks: directions, lengths, states, activations."""
    cases = []
    for direction in ("forward", "reverse", "bidirectional"):
        count, hidden, steps, batch = (2 if direction == "bidirectional" else 1), 3, 4, 2
        base = [f32(steps, batch, 5), f32(count, gates * hidden, 5), f32(count, gates * hidden, hidden)]
        bias, state = f32(count, 2 * gates * hidden), f32(count, batch, hidden)
        outputs = 3 if op == "LSTM" else 2
        attributes = dict(hidden_size=hidden, direction=direction, **more)
        cases.append((op, "", attributes, base, outputs))
        full = base + [bias, i32(4, 2), state] + ([f32(count, batch, hidden), f32(count, 3 * hidden)] if op == "LSTM" else [])
        cases.append((op, "", attributes, full, outputs))
        cases.append((op, "", dict(clip=0.3, **attributes), full, outputs))
    return cases


def attention_cases():
    q, k, v, wide = f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8), f32(24)
    past = [f32(2, 2, 2, 4), f32(2, 2, 2, 4)]
    mask, lengths = np.array([[1, 1, 0, 1, 1], [1, 0, 1, 1, 0]], np.int32), i32(4, 2)
    cos, sin = angles(16, 2)
    multi = [(q, k, v), (q, k, v, wide), (q, k, v, wide, mask), (q, k, v, None, lengths), (q, k, v, wide, None, f32(1, 2, 3, 5)),
             (q, f32(2, 3, 8), f32(2, 3, 8), wide, None, None, *past)]
    cases = [("MultiHeadAttention", MS, dict(num_heads=2), list(inputs), 3 if len(inputs) > 6 else 1) for inputs in multi]
    cases.append(("MultiHeadAttention", MS, dict(num_heads=2, unidirectional=1, scale=0.3), [q, f32(2, 3, 8), f32(2, 3, 8)], 1))
    x, w, b = f32(2, 3, 6), f32(6, 24), f32(24)
    own = np.array([[1, 1, 0], [1, 0, 1]], np.int32)
    for attributes, inputs, outputs in (({}, [x, w, b], 1), ({}, [x, w, b, own], 1), ({}, [x, w, b, i32(3, 1)], 1), (dict(unidirectional=1), [x, w, b], 1),
                                        (dict(qkv_hidden_sizes=[8, 8, 8]), [x, w, b], 1), ({}, [x, w, b, None, f32(2, 2, 2, 2, 4)], 2),
                                        (dict(unidirectional=1), [x, w, b, None, f32(2, 2, 2, 2, 4)], 2), ({}, [x, w, b, None, None, f32(1, 2, 3, 3)], 1)):
        cases.append(("Attention", MS, dict(num_heads=2, **attributes), inputs, outputs))
    group = dict(num_heads=4, kv_num_heads=2)
    q, k, v, past = f32(2, 3, 64), f32(2, 3, 32), f32(2, 3, 32), [f32(2, 2, 5, 16), f32(2, 2, 5, 16)]
    empty = [np.zeros((2, 2, 0, 16), np.float32)] * 2
    one = [f32(2, 1, 64), f32(2, 1, 32), f32(2, 1, 32)]
    turns = angles(16, 8)
    for attributes, inputs in (({}, [q, k, v, *empty, i32(2, 2), known(i32(3)[0])]), ({}, [*one, *past, i32(5, 3), known(i32(6)[0])]),
                               (dict(local_window_size=2), [*one, *past, i32(5, 5), known(i32(6)[0])]),
                               (dict(softcap=0.7, scale=0.4), [*one, *past, i32(5, 4), known(i32(6)[0])]),
                               (dict(do_rotary=1), [*one, *past, i32(5, 3), known(i32(6)[0]), *turns]),
                               (dict(do_rotary=1, rotary_interleaved=1), [q, k, v, *empty, i32(2, 2), known(i32(3)[0]), *turns]),
                               ({}, [f32(2, 3, 128), None, None, *empty, i32(2, 2), known(i32(3)[0])])):
        cases.append(("GroupQueryAttention", MS, dict(**group, **attributes), inputs, 3))
    for attributes, inputs in (({}, [f32(2, 3, 8), i32(4), cos, sin]), (dict(interleaved=1), [f32(2, 3, 8), np.array([[0, 1, 2], [5, 6, 7]], np.int64), cos, sin]),
                               (dict(num_heads=2, rotary_embedding_dim=4), [f32(2, 3, 12), np.array([3], np.int64), cos, sin]),
                               ({}, [f32(2, 2, 3, 4), np.array([1], np.int64), cos, sin])):
        if inputs[1].dtype != np.int64:
            inputs[1] = inputs[1].astype(np.int64)
        cases.append(("RotaryEmbedding", MS, attributes, inputs, 1))
    return cases


def norm_cases():
    x, skip, gamma, beta, bias = f32(2, 3, 8), f32(2, 3, 8), f32(8), f32(8), f32(8)
    cases = [("SkipLayerNormalization", MS, dict(epsilon=1e-4), inputs, 1) for inputs in ([x, skip, gamma], [x, skip, gamma, beta], [x, f32(3, 8), gamma, beta, bias])]
    cases += [("SkipSimplifiedLayerNormalization", MS, {}, inputs, 1) for inputs in ([x, skip, gamma], [x, skip, gamma, bias])]
    cases += [("SimplifiedLayerNormalization", "", dict(axis=-1, stash_type=1), [x, gamma], 1)]
    ids, kinds, places = np.array([[1, 2, 9], [0, 4, 4]], np.int32), np.array([[0, 0, 1], [1, 0, 1]], np.int32), np.array([[2, 1, 0], [3, 3, 1]], np.int32)
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    words = [f32(10, 8), f32(4, 8)]
    cases += [("EmbedLayerNormalization", MS, dict(epsilon=1e-5), [ids, kinds, *words, f32(2, 8), gamma, beta, mask], 2),
              ("EmbedLayerNormalization", MS, dict(epsilon=1e-5), [ids, None, *words, None, gamma, beta, None, places], 2)]
    return cases


def fused_cases():
    x, w, b = f32(1, 4, 5, 5), f32(6, 4, 3, 3), f32(6)
    cases = [("FusedConv", MS, dict(activation="Relu", kernel_shape=[3, 3]), [x, w, b], 1),
             ("FusedConv", MS, dict(activation="LeakyRelu", activation_params=[0.3], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), [x, w, b, f32(1, 6, 5, 5)], 1),
             ("FusedConv", MS, dict(activation="Clip", activation_params=[-0.5, 0.5], kernel_shape=[3, 3]), [x, w], 1),
             ("FusedConv", MS, dict(activation="HardSigmoid", activation_params=[0.1, 0.4], kernel_shape=[3, 3]), [x, w, b], 1)]
    cases += [("FusedMatMul", MS, attributes, inputs, 1) for attributes, inputs in (
        (dict(alpha=0.5), [f32(2, 3, 4), f32(4, 5)]), (dict(transA=1), [f32(2, 4, 3), f32(2, 4, 5)]), (dict(transB=1, alpha=2.0), [f32(3, 4), f32(5, 4)]))]
    cases += [("FusedGemm", MS, dict(activation="Relu", transB=1, alpha=0.5), [f32(3, 4), f32(5, 4), f32(5)], 1),
              ("FusedGemm", MS, dict(activation="LeakyRelu", activation_alpha=0.2), [f32(3, 4), f32(4, 5), f32(5)], 1)]
    cases += [("BiasGelu", MS, {}, [f32(2, 8), f32(8)], 1), ("FastGelu", MS, {}, [f32(2, 8), f32(8)], 1), ("FastGelu", MS, {}, [f32(2, 8)], 1),
              ("QuickGelu", MS, dict(alpha=1.3), [f32(2, 8)], 1), ("Gelu", MS, {}, [f32(2, 8)], 1)]
    for bits in (4, 8):
        n, k, block = 5, 48, 16
        blocks, size = k // block, block * bits // 8
        packed = u8(n, blocks, size)
        zeros = u8(n * ((blocks * bits + 7) // 8))
        for extra in ([], [zeros], [zeros, None, f32(n)]):
            inputs = [f32(2, 3, k), known(packed), known(np.abs(f32(n * blocks)))] + [known(z) if z is not None and i == 0 else z for i, z in enumerate(extra)]
            for level in (0, 4):
                cases.append(("MatMulNBits", MS, dict(K=k, N=n, bits=bits, block_size=block, accuracy_level=level), inputs, 1))
    return cases


def quantized_cases():
    cases = []
    for kind, some in ((np.uint8, u8), (np.int8, s8)):
        cases += [("QLinearAdd", MS, {}, quantized(some(2, 3, 4), some(3, 1), kind), 1), ("QLinearMul", MS, {}, quantized(some(2, 3), some(2, 3), kind), 1)]
        x = [some(1, 3, 6, 6), scalar(0.0213), scalar(5, kind), scalar(0.0317), scalar(9, kind)]
        cases += [("QLinearLeakyRelu", MS, dict(alpha=0.2), x, 1), ("QLinearSigmoid", MS, {}, x[:3] + [scalar(1 / 256), scalar(0, kind)], 1)]
        cases += [("QLinearAveragePool", MS, dict(kernel_shape=[2, 2], strides=[2, 2], **more), x, 1) for more in ({}, dict(pads=[1, 1, 1, 1]), dict(channels_last=1))]
        cases += [("QLinearGlobalAveragePool", MS, dict(channels_last=last), x, 1) for last in (0, 1)]
        cases += [("QLinearConcat", MS, dict(axis=1), [scalar(0.05), scalar(4, kind), some(2, 3), scalar(0.02), scalar(5, kind), some(2, 1), scalar(0.07), scalar(1, kind)], 1)]
        cases += [("MatMulIntegerToFloat", MS, {}, [u8(3, 4), some(4, 5), scalar(0.1), np.abs(f32(5)), scalar(100, np.uint8), some(5), f32(5)], 1),
                  ("MatMulIntegerToFloat", MS, {}, [u8(2, 3, 4), some(4, 5), scalar(0.1), scalar(0.2)], 1),
                  ("DynamicQuantizeMatMul", MS, {}, [f32(3, 4), known(some(4, 5)), known(np.abs(f32(5))), known(some(5)), f32(5)], 1)]
    for some in (u8, s8):
        heads, inputs, size = 2, 8, 16
        weights, bias = some(inputs, 3 * size), f32(3 * size)
        scales, zeros = [scalar(0.02), scalar(0.004)], [scalar(120, np.uint8), scalar(3, some(1).dtype)]
        places = np.array([3, 5], np.int32)
        cases += [("QAttention", MS, dict(num_heads=heads), [u8(2, 5, inputs), known(weights), bias, *scales, None, *zeros], 1),
                  ("QAttention", MS, dict(num_heads=heads), [u8(2, 5, inputs), known(weights), bias, *scales, places, *zeros], 1),
                  ("QAttention", MS, dict(num_heads=heads, unidirectional=1), [u8(2, 5, inputs), known(weights), bias, *scales, None, *zeros, f32(2, 2, heads, 4, size // heads)], 2)]
        a, b = [scalar(0.1), scalar(100, np.uint8)], [scalar(0.2), scalar(7, some(1).dtype)]
        cases += [("QGemm", MS, dict(alpha=0.5), [u8(3, 4), *a, known(some(4, 5)), *b, np.arange(5, dtype=np.int32)], 1),
                  ("QGemm", MS, dict(transB=1), [u8(3, 4), *a, known(some(5, 4)), *b], 1),
                  ("QGemm", MS, dict(transA=1), [u8(4, 3), *a, known(some(4, 5)), *b, None, scalar(30), scalar(90, np.uint8)], 1)]
    return cases


def all_cases():
    cases = recurrent("LSTM", 4) + recurrent("LSTM", 4, input_forget=1) + recurrent("GRU", 3) + recurrent("GRU", 3, linear_before_reset=1) + recurrent("RNN", 1)
    for op, gates, names in (("LSTM", 4, ["HardSigmoid", "Softsign", "Relu"]), ("GRU", 3, ["Sigmoid", "LeakyRelu"]), ("RNN", 1, ["Relu"])):
        cases += [c for c in recurrent(op, gates, activations=names) if c[2]["direction"] != "bidirectional"]
    return cases + attention_cases() + norm_cases() + fused_cases() + quantized_cases() + resize_cases()


def resize_cases():
    cases, x = [], f32(1, 2, 5, 7)
    for coordinates in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
        for mode in ("linear", "nearest", "cubic"):
            for scales in ([1, 1, 2, 3], [1, 1, 0.6, 0.5], [1, 1, 1.7, 1]):
                attributes = dict(mode=mode, coordinate_transformation_mode=coordinates)
                sizes = np.array([int(a * b) for a, b in zip(x.shape, scales)], np.int64)  # a length that is no integer is ONNX's own
                how = [None, known(sizes)] if coordinates == "align_corners" else [known(np.array(scales, np.float32))]
                cases.append(("Resize", "", attributes, [x, None, *how], 1))
    return cases


def write(case, at, folder):
    op, domain, attributes, arrays, outputs = case
    name = "%s%d" % (op, at)
    inputs, constants, names, given = [], [], [], {}
    for i, array in enumerate(arrays):
        names.append("x%d" % i if array is not None else "")
        if array is None:
            continue
        if isinstance(array, Known):
            constants.append(numpy_helper.from_array(np.asarray(array), names[-1]))
            continue
        given[names[-1]] = array
        inputs.append(helper.make_tensor_value_info(names[-1], helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
    results = ["y%d" % i for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    graph = helper.make_graph([node], name, inputs, [helper.make_tensor_value_info(y, TensorProto.UNDEFINED, None) for y in results], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)], ir_version=8)
    for value in model.graph.output:
        value.ClearField("type")
    bytes_of = model.SerializeToString()
    try:
        session = onnxruntime.InferenceSession(bytes_of, providers=["CPUExecutionProvider"])
        made = session.run(None, given)
    except Exception as error:  # noqa: BLE001
        print("onnxruntime refuses %s: %s" % (name, str(error).splitlines()[0][:160]))
        return None
    path = os.path.join(folder, name)
    with open(path + ".onnx", "wb") as file:
        file.write(bytes_of)
    tensors = [numpy_helper.from_array(a, "in:" + n) for n, a in given.items()] + [numpy_helper.from_array(a, "out:" + n) for n, a in zip(results, made)]
    holder = helper.make_model(helper.make_graph([helper.make_node("Identity", ["none"], ["y"])], "data", [helper.make_tensor_value_info("none", 1, [1])],
                                                 [helper.make_tensor_value_info("y", 1, [1])], tensors), opset_imports=[helper.make_opsetid("", 17)])
    with open(path + ".data.onnx", "wb") as file:
        file.write(holder.SerializeToString())
    return "\t".join([name, op, "1e-4", "2e-5", path + ".onnx", path + ".data.onnx"])


def main():
    msched, folder, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(folder, exist_ok=True)
    lines = []
    for at, case in enumerate(all_cases()):
        if not names or case[0] in names:
            lines.append(write(case, at, folder))
    with open(os.path.join(folder, "list"), "w") as file:
        file.write("\n".join(line for line in lines if line) + "\n")
    here = os.path.dirname(os.path.abspath(__file__))
    sys.exit(subprocess.call([msched, os.path.join(here, "onnx_nodes.lua"), os.path.join(folder, "list")]))


main()
