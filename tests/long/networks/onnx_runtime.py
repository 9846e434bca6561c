"""Operators that ONNX's own tests do not have, on random data against onnxruntime (PyPI's packages `onnx` and `onnxruntime`): those of
com.microsoft, and recurrent ones with what their tests leave out. Those that onnxruntime has for GPUs alone are computed by NumPy here. Writes models and data as onnx_nodes.py does, and has msched run them,
on the interpreter and compiled; prints what is right, refused and wrong.
usage: onnx_runtime.py MSCHED FOLDER [NAME…]"""
import math
import os
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MS, ML = "com.microsoft", "ai.onnx.ml"
random = np.random.default_rng(1)
onnxruntime.set_default_logger_severity(4)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1  # several quantize what a recurrent network remembers a part of the batch each


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


def weighted_zeros():
    """Convolutions of bytes by constant weights that have a zero point: of all channels, of groups, of one channel each."""
    cases = []
    for channels, filters, group in ((5, 6, 1), (6, 4, 2), (6, 6, 6), (4, 8, 4)):
        for image_zero, attributes in ((0, dict(pads=[1, 1, 1, 1])), (7, dict(pads=[0, 1, 1, 0], strides=[2, 1])), (7, dict(dilations=[2, 1]))):
            for some, kind in ((u8, np.uint8), (s8, np.int8)):
                image, zero = [u8(2, channels, 6, 7), scalar(image_zero, np.uint8)], known(scalar(103 if kind is np.uint8 else -5, kind))
                weights, attributes = known(some(filters, channels // group, 3, 2)), dict(group=group, **{k: v for k, v in attributes.items() if k != "group"})
                scales = [known(np.abs(f32(filters)) * 0.01), scalar(0.3), scalar(9, np.uint8), known(np.arange(filters, dtype=np.int32) * 90)]
                cases.append(("QLinearConv", "", attributes, [image[0], scalar(0.02), image[1], weights, scales[0], known(np.full(filters, zero, kind)), *scales[1:]], 1))
                if kind is np.uint8:
                    cases.append(("ConvInteger", "", attributes, [image[0], weights, image[1], zero], 1))
    return cases


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


def attended(heads, q, k, v):
    q, k, v = (x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]), (3,))
    return (scores @ v).transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1).astype(np.float32)


def attention_cases():
    q, k, v, wide = f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8), f32(24)
    past = [f32(2, 2, 2, 4), f32(2, 2, 2, 4)]
    mask, lengths = np.array([[1, 1, 0, 1, 1], [1, 0, 1, 1, 0]], np.int32), i32(4, 2)
    cos, sin = angles(16, 2)
    multi = [(q, k, v), (q, k, v, wide), (q, k, v, wide, mask), (q, k, v, None, lengths), (q, k, v, wide, None, f32(1, 2, 3, 5)),
             (q, f32(2, 3, 8), f32(2, 3, 8), wide, None, None, *past)]
    cases = [("MultiHeadAttention", MS, dict(num_heads=2), list(inputs), 3 if len(inputs) > 6 else 1) for inputs in multi]
    cases.append(("MultiHeadAttention", MS, dict(num_heads=2, unidirectional=1, scale=0.3), [q, f32(2, 3, 8), f32(2, 3, 8)], 1))
    packed = f32(2, 3, 2, 3, 4)
    apart = [packed[:, :, :, k].reshape(2, 3, 8).copy() for k in range(3)]
    cases.append(("MultiHeadAttention", MS, dict(num_heads=2), [packed], [attended(2, *apart)]))
    cases.append(("MultiHeadAttention", MS, dict(num_heads=2), [packed, None, None, wide], [attended(2, *(x + b for x, b in zip(apart, wide.reshape(3, 8))))]))
    cases.append(("MultiHeadAttention", MS, dict(num_heads=2), [apart[0], packed[:, :, :, 1:].copy()], [attended(2, *apart)]))
    places = random.integers(0, 16, (3, 2, 3)).astype(np.int64)
    wheel = angles(16, 4)
    for layout in (0, 1):
        for more in ({}, dict(interleaved=1)):
            cases.append(("MRotaryEmbedding", MS, dict(mrope_section=[2, 1, 1], mrope_layout=layout, **more), [f32(2, 2, 3, 8), places, *wheel], 1))
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


def integer_lstms():
    cases = []
    for direction in ("forward", "reverse", "bidirectional"):
        count, hidden, steps, batch = (2 if direction == "bidirectional" else 1), 3, 4, 2
        for some, scales in ((u8, [count]), (s8, [count]), (s8, [count, 4 * hidden])):
            zero = known(np.full(scales, 120, np.uint8) if some is u8 else np.zeros(scales, np.int8))
            base = [f32(steps, batch, 5), known(some(count, 5, 4 * hidden)), known(some(count, hidden, 4 * hidden))]
            last = [known(np.abs(f32(*scales)) * 0.01), zero, known(np.abs(f32(*scales)) * 0.01), zero]
            attributes = dict(hidden_size=hidden, direction=direction)
            cases.append(("DynamicQuantizeLSTM", MS, attributes, base + [None] * 5 + last, 3))
            more = [f32(count, 8 * hidden), i32(4), f32(count, 1, hidden), f32(count, 1, hidden), f32(count, 3 * hidden)]
            one = [f32(steps, 1, 5)] + base[1:]  # what is past an end is rounded with the rest
            cases.append(("DynamicQuantizeLSTM", MS, dict(clip=0.7, **attributes), one + more + last, 3))
    return cases


def all_cases():
    cases = recurrent("LSTM", 4) + recurrent("LSTM", 4, input_forget=1) + recurrent("GRU", 3) + recurrent("GRU", 3, linear_before_reset=1) + recurrent("RNN", 1)
    for op, gates, names in (("LSTM", 4, ["HardSigmoid", "Softsign", "Relu"]), ("GRU", 3, ["Sigmoid", "LeakyRelu"]), ("RNN", 1, ["Relu"])):
        cases += [c for c in recurrent(op, gates, activations=names) if c[2]["direction"] != "bidirectional"]
    return cases + attention_cases() + norm_cases() + fused_cases() + quantized_cases() + resize_cases() + integer_lstms() + of_gpus() + more_cases() + ml_cases() + weighted_zeros()


def resize_cases():
    cases, x = [], f32(1, 2, 5, 7)
    for coordinates in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
        for mode in ("linear", "nearest", "cubic"):
            for scales in ([1, 1, 2, 3], [1, 1, 0.6, 0.5], [1, 1, 1.7, 1]):
                attributes = dict(mode=mode, coordinate_transformation_mode=coordinates)
                sizes = np.array([int(a * b) for a, b in zip(x.shape, scales)], np.int64)  # a length that is no integer is ONNX's own
                how = [None, known(sizes)] if coordinates == "align_corners" else [known(np.array(scales, np.float32))]
                cases.append(("Resize", "", attributes, [x, None, *how], 1))
    line = np.arange(230, dtype=np.float32).reshape(1, 1, 10, 23)
    for scale in (0.1, 0.35, 0.7, 0.9, 1.1, 1.2, 1.7, 2.3, 3.3):  # none is what float32 holds
        for rounded, coordinates in (("floor", "asymmetric"), ("ceil", "asymmetric"), ("round_prefer_floor", "half_pixel"), ("round_prefer_ceil", "half_pixel")):
            attributes = dict(mode="nearest", coordinate_transformation_mode=coordinates, nearest_mode=rounded)
            cases.append(("Resize", "", attributes, [line, None, known(np.array([1, 1, scale, scale], np.float32))], 1))
            sizes = known(np.array([1, 1, int(10 * scale), int(23 * scale)], np.int64))
            cases.append(("Resize", "", dict(attributes, coordinate_transformation_mode="align_corners"), [line, None, None, sizes], 1))
    return cases


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def softmax(x, axes):
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


def group_norm(x, gamma, beta, groups, epsilon, active):
    """Of channels that stand last."""
    parts = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    mean, variance = parts.mean((1, 3), keepdims=True), parts.var((1, 3), keepdims=True)
    y = ((parts - mean) / np.sqrt(variance + epsilon)).reshape(x.shape) * gamma + beta
    return y * sigmoid(y) if active else y


def trees(prefix, count, features, classes, modes, missing=False):
    """Attributes of random trees of up to 4 levels."""
    lists = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree, level):
        own = len([t for t in lists["treeids"] if t == tree])
        at = len(lists["treeids"])
        leaf = level == 4 or level > 1 and random.random() < 0.3
        for key, value in (("treeids", tree), ("nodeids", own), ("featureids", 0 if leaf else int(random.integers(features))), ("values", 0.0 if leaf else float(np.float32(random.standard_normal()))),
                           ("modes", "LEAF" if leaf else str(random.choice(modes))), ("truenodeids", 0), ("falsenodeids", 0), ("missing_value_tracks_true", int(missing and random.random() < 0.5))):
            lists[key].append(value)
        if leaf:
            for c in ([int(random.integers(classes))] if prefix == "class" and classes > 1 else range(classes)):
                for key, value in (("treeids", tree), ("nodeids", own), ("ids", c), ("weights", float(np.float32(random.standard_normal())))):
                    leaves[key].append(value)
            return own
        lists["truenodeids"][at], lists["falsenodeids"][at] = grow(tree, level + 1), grow(tree, level + 1)
        return own

    for tree in range(count):
        grow(tree, 0)
    made = {"nodes_" + key: value for key, value in lists.items()}
    made.update({"%s_%s" % (prefix, key): value for key, value in leaves.items()})
    return made


def trees_of_lists(count, features, targets, modes):
    """Attributes of random trees of up to 4 levels, with leaves in a list of their own."""
    nodes, leaves, members = [], [], []

    def child(level):
        if level > 3 or random.random() < 0.3:
            leaves.append((float(random.standard_normal()), int(random.integers(targets))))
            return 1, len(leaves) - 1
        return 0, grow(level)

    def grow(level):
        at, mode = len(nodes), int(random.choice(modes))
        nodes.append(None)
        split = random.standard_normal() if mode < 4 else random.integers(-2, 3)
        yes, no = child(level + 1), child(level + 1)
        nodes[at] = (mode, float(split) if mode < 6 else 0.0, int(random.integers(features)), *yes, *no, int(random.integers(2)))
        return at

    roots = [grow(0) for _ in range(count)]
    for node in nodes:
        if node[0] == 6:
            members += [float(v) for v in random.permutation([1, 2, 3, -1, -2])[: random.integers(1, 4)]] + [math.nan]
    mode, split, feature, yes_ends, yes, no_ends, no, missing = zip(*nodes)
    made = dict(nodes_modes=np.array(mode, np.uint8), nodes_splits=np.array(split, np.float32), leaf_weights=np.array([w for w, _ in leaves], np.float32))
    if members:
        made["membership_values"] = np.array(members, np.float32)
    made = {key: numpy_helper.from_array(array, key) for key, array in made.items()}
    return dict(made, nodes_featureids=feature, nodes_trueleafs=yes_ends, nodes_truenodeids=yes, nodes_falseleafs=no_ends, nodes_falsenodeids=no,
                nodes_missing_value_tracks_true=missing, leaf_targetids=[t for _, t in leaves], tree_roots=roots, n_targets=targets)


def ml_cases():
    x, cases = f32(7, 5), []
    gaps = x.copy()
    gaps[1, 2] = gaps[3, 0] = np.nan
    for modes in (["BRANCH_LEQ"], ["BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]):
        for missing in (False, True):
            cases += [("TreeEnsembleRegressor", ML, dict(n_targets=2, base_values=[0.5, 0.25], **trees("target", 6, 5, 2, modes, missing)), [gaps], 1)]
    cases += [("TreeEnsembleRegressor", ML, dict(n_targets=1, aggregate_function="AVERAGE", **trees("target", 3, 5, 1, ["BRANCH_LEQ"])), [x], 1)]
    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        cases += [("TreeEnsembleClassifier", ML, dict(classlabels_int64s=[3, 5, 9], post_transform=transform, **trees("class", 5, 5, 3, ["BRANCH_LEQ"])), [x], 2)]
    for transform in ("NONE", "LOGISTIC"):
        for base in ({}, dict(base_values=[0.3])):
            one = trees("class", 5, 5, 1, ["BRANCH_LEQ"])
            cases += [("TreeEnsembleClassifier", ML, dict(classlabels_int64s=[3, 5], post_transform=transform, **base, **one), [x], 2)]
            positive = dict(one, class_weights=[abs(w) / 5 for w in one["class_weights"]])
            cases += [("TreeEnsembleClassifier", ML, dict(classlabels_int64s=[3, 5], post_transform=transform, **base, **positive), [x], 2)]
    for how in ("MIN", "MAX"):
        cases += [("TreeEnsembleRegressor", ML, dict(n_targets=2, aggregate_function=how, **trees("target", 4, 5, 2, ["BRANCH_LEQ"])), [x], 1)]
    whole = np.round(2 * x)  # members are whole numbers there
    for modes, data in (([0], gaps), ([0, 1, 2, 3], gaps), ([4, 5], whole), ([0, 6], whole), ([6], whole)):
        for how in range(4):
            cases += [("TreeEnsemble", ML, dict(aggregate_function=how, **trees_of_lists(3, 5, 2, modes)), [data], 1)]
    row = lambda n: [float(v) for v in f32(n)]  # noqa: E731
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        params = dict(kernel_type=kernel, kernel_params=[0.3, 0.4, float(random.integers(2, 5))])
        cases += [("SVMRegressor", ML, dict(n_supports=4, coefficients=row(4), rho=row(1), support_vectors=row(20), one_class=one, **params), [x], 1) for one in (0, 1)]
        for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
            for classes, own in ((2, [3, 2]), (3, [2, 1, 3]), (4, [1, 2, 2, 1])):
                machine = dict(coefficients=row((classes - 1) * sum(own)), rho=row(classes * (classes - 1) // 2), support_vectors=row(5 * sum(own)),
                               vectors_per_class=own, classlabels_ints=[9, 5, 7, 2][:classes], post_transform=transform, **params)
                likely = dict(prob_a=[-abs(v) for v in row(len(machine["rho"]))], prob_b=row(len(machine["rho"])))
                cases += [("SVMClassifier", ML, machine, [x], 2), ("SVMClassifier", ML, dict(machine, **likely), [x], 2)]
    cases += [("SVMRegressor", ML, dict(kernel_params=[0.0, 0.0, 0.0], coefficients=row(5), rho=row(1)), [x], 1)]
    cases += [("SVMClassifier", ML, dict(kernel_params=[0.0, 0.0, 0.0], coefficients=row(5 * k), rho=row(1), classlabels_ints=[9, 5, 7][:k]), [x], 2) for k in (1, 2, 3)]
    cases += [("LinearRegressor", ML, dict(coefficients=row(10), intercepts=row(2), targets=2), [x], 1), ("LinearRegressor", ML, dict(coefficients=row(5)), [x], 1)]
    for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
        cases += [("LinearClassifier", ML, dict(coefficients=row(15), intercepts=row(3), classlabels_ints=[3, 5, 9], post_transform=transform), [x], 2)]
    for transform in ("NONE", "LOGISTIC"):
        cases += [("LinearClassifier", ML, dict(coefficients=row(5), intercepts=row(1), classlabels_ints=[3, 5], post_transform=transform), [x], 2)]
        cases += [("LinearClassifier", ML, dict(coefficients=row(10), intercepts=row(2), classlabels_ints=[3, 5], post_transform=transform), [x], 2)]
    cases += [("Normalizer", ML, dict(norm=norm), [x], 1) for norm in ("MAX", "L1", "L2")]
    cases += [("Scaler", ML, dict(offset=row(5), scale=row(5)), [x], 1), ("Scaler", ML, dict(offset=[0.5], scale=[2.0]), [x], 1)]
    cases += [("Imputer", ML, dict(imputed_value_floats=row(5), replaced_value_float=float("nan")), [gaps], 1),
              ("Imputer", ML, dict(imputed_value_int64s=[7], replaced_value_int64=2), [np.array([[1, 2, 3]], np.int64)], 1)]
    cases += [("OneHotEncoder", ML, dict(cats_int64s=[2, 4, 7]), [np.array([[2, 7, 5]], np.int64)], 1), ("Binarizer", ML, dict(threshold=0.3), [x], 1),
              ("ArrayFeatureExtractor", ML, {}, [x, np.array([[0, 3]], np.int64)], 1), ("FeatureVectorizer", ML, dict(inputdimensions=[5, 2]), [x, f32(7, 2)], 1),
              ("LabelEncoder", ML, dict(keys_int64s=[3, 5], values_int64s=[30, 50], default_int64=-7), [np.array([5, 3, 4], np.int64)], 1),
              ("LabelEncoder", ML, dict(keys_int64s=[3, 5], values_floats=[0.5, 1.5]), [np.array([5, 3, 4], np.int64)], 1),
              ("LabelEncoder", ML, dict(keys_floats=[3.0, 4.5], values_int64s=[30, 50]), [np.array([4.5, 3, 4], np.float32)], 1)]
    return cases


OLD = ("Affine", "Scale", "ScaledTanh", "ParametricSoftplus", "ImageScaler", "DynamicSlice")


def of_gpus():
    """Cases whose results are computed here: outputs is a list of arrays."""
    x, b, r = f32(2, 3, 8), f32(8), f32(2, 3, 8)
    cases = [("BiasAdd", MS, {}, [x, b, r], [x + b + r]), ("BiasSplitGelu", MS, {}, [x, b], [(x + b)[..., :4] * gelu((x + b)[..., 4:])]),
             ("BiasDropout", MS, {}, [x, b, r], [x + b + r, np.ones(x.shape, bool)])]
    scores, mask, inner = f32(2, 2, 3, 4), f32(1, 1, 3, 4), f32(2, 1, 1, 4)
    cases += [("BiasSoftmax", MS, dict(axis=3, is_inner_broadcast=0), [scores, mask], [softmax(scores + mask, (3,))]),
              ("BiasSoftmax", MS, dict(axis=2, is_inner_broadcast=1), [scores, inner], [softmax(scores + inner, (2, 3))])]
    image, gamma, beta, skip, row = f32(2, 3, 5, 8), f32(8), f32(8), f32(2, 3, 5, 8), f32(2, 8)
    for active in (0, 1):
        norm = dict(groups=4, epsilon=1e-4, activation=active)
        cases += [("GroupNorm", MS, norm, [image, gamma, beta], [group_norm(image, gamma, beta, 4, 1e-4, active)]),
                  ("GroupNorm", MS, dict(channels_last=0, **norm), [image.transpose(0, 3, 1, 2).copy(), gamma, beta],
                   [group_norm(image, gamma, beta, 4, 1e-4, active).transpose(0, 3, 1, 2).copy()]),
                  ("SkipGroupNorm", MS, norm, [image, gamma, beta, skip, b], [group_norm(image + skip + b, gamma, beta, 4, 1e-4, active), image + skip + b]),
                  ("SkipGroupNorm", MS, norm, [image, gamma, beta, row], [group_norm(image + row[:, None, None], gamma, beta, 4, 1e-4, active)])]
    weights = f32(6, 3, 3, 8)
    session = onnxruntime.InferenceSession(helper.make_model(helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], strides=[1, 2], pads=[1, 1, 1, 1])], "g", [helper.make_tensor_value_info("x", 1, None), helper.make_tensor_value_info("w", 1, None)],
        [helper.make_tensor_value_info("y", 1, None)]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
    made = session.run(None, {"x": image.transpose(0, 3, 1, 2).copy(), "w": weights.transpose(0, 3, 1, 2).copy()})[0]
    cases += [("NhwcConv", MS, dict(strides=[1, 2], pads=[1, 1, 1, 1]), [image, weights], [made.transpose(0, 2, 3, 1).copy()])]
    a, c = f32(2, 3, 4), f32(4, 5)
    cases += [("FusedMatMulActivation", MS, dict(activation="Relu", alpha=0.5), [a, c], [np.maximum(a @ c * np.float32(0.5), 0)]),
              ("FusedMatMulActivation", MS, dict(activation="LeakyRelu", activation_alpha=0.3), [a, c], [np.where(a @ c < 0, a @ c * np.float32(0.3), a @ c)])]
    p, q = f32(2, 3, 2), f32(3, 2)
    pc, qc = p[..., 0] + 1j * p[..., 1], q[..., 0] + 1j * q[..., 1]
    pair = lambda z: np.stack([z.real, z.imag], -1).astype(np.float32)  # noqa: E731
    cases += [("ComplexMul", MS, {}, [p, q], [pair(pc * qc)]), ("ComplexMulConj", MS, {}, [p, q], [pair(pc * qc.conj())])]
    spectrum = np.fft.rfft(x)
    cases += [("Rfft", MS, dict(onesided=1, normalized=0, signal_ndim=1), [x], [pair(spectrum)]),
              ("Irfft", MS, dict(onesided=1, normalized=0, signal_ndim=1), [pair(spectrum)], [x])]
    bad = x.copy()
    bad[1, 2, 3] = np.nan
    worse = bad.copy()
    worse[0, 0, 0] = np.inf
    cases += [("IsAllFinite", MS, attributes, list(inputs), [np.array(wanted)]) for attributes, inputs, wanted in (
        ({}, (x, r), True), ({}, (x, bad), False), (dict(isinf_only=1), (bad, x), True), (dict(isnan_only=1), (worse,), False), (dict(isinf_only=1), (worse,), False))]
    gate, line = f32(2, 3, 4), f32(2, 3, 4)
    clamped = np.minimum(gate, 0.5)
    cases += [("SwiGLU", MS, {}, [gate, line], [gate * sigmoid(gate) * line]), ("SwiGLU", MS, {}, [x], [x[..., :4] * sigmoid(x[..., :4]) * x[..., 4:]]),
              ("SwiGLU", MS, dict(limit=0.5, activation_alpha=1.7, activation_beta=1.0), [gate, line], [clamped * sigmoid(np.float32(1.7) * clamped) * (np.clip(line, -0.5, 0.5) + 1)])]
    for axes, keep in ((([1], 1)), ([1, 2], 0)):
        data, scale, back = u8(2, 3, 4), scalar(0.02), scalar(0.015)
        mean = ((data.astype(np.float32) - 9) * scale).mean(tuple(axes), keepdims=bool(keep), dtype=np.float32)
        cases += [("QLinearReduceMean", MS, dict(axes=axes, keepdims=keep), [data, scale, scalar(9, np.uint8), back, scalar(4, np.uint8)],
                   [np.clip(np.rint(mean / back) + 4, 0, 255).astype(np.uint8)])]
    return cases


def more_cases():
    """Names that others have too, norms, gates, quantized weights, and old operators."""
    x, w = f32(2, 3, 8), f32(8)
    cases = [("GatherND", MS, {}, [f32(3, 4), np.array([[0, 1], [2, 3]], np.int64)], 1), ("Trilu", MS, dict(upper=0), [f32(3, 4)], 1),
             ("Pad", MS, dict(mode="constant"), [f32(2, 3), known(np.array([0, 1, 1, 0], np.int64)), f32(1)], 1),
             ("Range", MS, {}, [known(scalar(1)), known(scalar(6)), known(scalar(2))], 1), ("Range", MS, {}, [known(scalar(1)), known(scalar(6))], 1),
             ("GridSample", MS, dict(mode="bilinear"), [f32(1, 2, 4, 5), np.clip(f32(1, 3, 3, 2), -1.2, 1.2)], 1),
             ("GridSample", MS, dict(mode="nearest", align_corners=1, padding_mode="border"), [f32(1, 2, 4, 5), np.clip(f32(1, 3, 3, 2), -1.2, 1.2)], 1),
             ("Unique", MS, {}, [known(np.array([2, 1, 1, 3, 4, 3], np.float32))], 3), ("ExpandDims", MS, {}, [x, known(i32(-2)[0])], 1),
             ("UnfoldTensor", MS, dict(dim=1, size=3, step=2), [f32(2, 8, 2)], 1), ("CDist", MS, dict(metric="euclidean"), [f32(3, 4), f32(5, 4)], 1),
             ("CDist", MS, dict(metric="sqeuclidean"), [f32(3, 4), f32(5, 4)], 1), ("DynamicSlice", "", {}, [f32(3, 4), known(np.array([1], np.int64)), known(np.array([3], np.int64))], 1)]
    cases += [("Inverse", MS, {}, [m], 1) for m in (f32(4, 4), f32(2, 3, 3, 3), np.array([[0, 1], [2, 0]], np.float32))]
    for some in (u8, s8):
        cases += [("NhwcMaxPool", MS, dict(kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 0, 1]), [some(1, 5, 6, 3)], 1)]
    cases += [("ConvTransposeWithDynamicPads", MS, dict(kernel_shape=[3, 3], strides=[2, 2]), [f32(1, 2, 4, 4), f32(2, 3, 3, 3), known(np.array([1, 1, 1, 1], np.int64)), f32(3)], 1)]
    boxes, size = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 1.3], [0.9, 0.8, 0.1, 0.2]], np.float32), known(i32(3, 4))
    for mode in ("bilinear", "nearest"):
        cases += [("CropAndResize", MS, dict(mode=mode, extrapolation_value=0.5), [f32(2, 3, 6, 7), boxes, i32(0, 1, 0), size], 1),
                  ("CropAndResize", MS, dict(mode=mode), [f32(1, 1, 5, 5), boxes[:1], i32(0), known(i32(1, 1))], 1)]
    cases += [("MaxRoiPool", "", dict(pooled_shape=[2, 3], spatial_scale=0.5), [f32(2, 3, 7, 8), np.array([[0, 0, 0, 15, 13], [1, 3, 2, 9, 11], [0, 14, 12, 30, 30]], np.float32)], 1)]
    cases += [("TransposeMatMul", MS, dict(transA=1), [f32(2, 4, 3), f32(2, 4, 5)], 1), ("FusedMatMul", MS, dict(transBatchA=1), [f32(3, 2, 4), f32(2, 4, 5)], 1),
              ("FusedMatMul", MS, dict(transBatchB=1, transB=1), [f32(2, 3, 4), f32(5, 2, 4)], 1)]
    cases += [("GatedRMSNorm", MS, attributes, [x, f32(4), f32(2, 3, 8)], 1) for attributes in ({}, dict(activation="sigmoid", epsilon=1e-3))]
    cases += [("BranchwiseRMSNorm", MS, attributes, inputs, 1) for attributes, inputs in (({}, [x]), ({}, [x, f32(3, 8)]), ({}, [x, w]), (dict(num_branches=2), [x, f32(8)]), (dict(num_branches=2), [x, f32(4)]))]
    cases += [("GatedAdd", MS, {}, [x, f32(2, 3, 8), f32(2, 3, 1)], 1), ("ScaledSiLU", MS, dict(alpha=1.7), [x], 1), ("ScaledSiLU", MS, {}, [x, scalar(0.7)], 1),
              ("LinearAttentionGate", MS, {}, [x, w, f32(8), f32(2, 3, 8)], 2),
              ("LinearAttention", MS, dict(q_num_heads=2, kv_num_heads=1, update_rule="linear"), [f32(1, 3, 8), f32(1, 3, 4), f32(1, 3, 4)], 2),
              ("CausalConvWithState", MS, dict(activation="silu"), [f32(2, 3, 5), f32(3, 1, 4), f32(3), f32(2, 3, 3)], 2)]
    for kind in (0, 1):
        cases += [("MatMulBnb4", MS, dict(K=32, N=5, block_size=16, quant_type=kind), [f32(2, 3, 32), known(u8(80)), known(np.abs(f32(10)))], 1),
                  ("MatMulBnb4", MS, dict(K=9, N=3, block_size=16, quant_type=kind), [f32(2, 9), known(u8(14)), known(np.abs(f32(2)))], 1)]
    cases += [("MatMulInteger16", MS, {}, [s8(2, 3).astype(np.int16) * 3, s8(3, 4).astype(np.int16) * 5], 1)]
    where = np.array([[1, -1], [0, 4]], np.int64)
    for bits in (4, 8):
        table, scales = known(u8(5, 32 * bits // 8)), known(np.abs(f32(5, 2)))
        cases += [("GatherBlockQuantized", MS, dict(bits=bits, block_size=16, quantize_axis=1), [table, where, scales], 1),
                  ("GatherBlockQuantized", MS, dict(bits=bits, block_size=16, quantize_axis=1), [table, where, scales, known(u8(5, 2 * bits // 8))], 1)]
    for kind, some in ((np.uint8, u8), (np.int8, s8)):
        one = [some(2, 3, 4), scalar(0.03), scalar(5, kind)]
        cases += [("QLinearWhere", MS, {}, [np.array([[True], [False], [True]]), *one, some(4), scalar(0.05), scalar(7, kind), scalar(0.06), scalar(9, kind)], 1)]
        cases += [("QLinearSoftmax", MS, dict(axis=axis, opset=opset), [*one, scalar(1 / 256), scalar(0 if kind is np.uint8 else -128, kind)], 1) for axis, opset in ((-1, 13), (1, 13), (1, 12))]
        image = [some(1, 5, 6, 3), scalar(0.02), scalar(5, kind)]
        tail = [known(s8(4, 3, 3, 3)), known(np.abs(f32(4)) * 0.01), known(np.zeros(4, np.int8)), scalar(0.3), scalar(7, kind), known(np.arange(4, dtype=np.int32) * 100)]
        cases += [("QLinearConv", MS, dict(channels_last=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), image + tail, 1)]
    ids, kinds, mask = np.array([[1, 2, 9], [0, 4, 4]], np.int32), np.array([[0, 0, 1], [1, 0, 1]], np.int32), np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    words = [known(u8(10, 8)), known(u8(4, 8))]
    scales = lambda *ks: [known(scalar(0.01 * k)) for k in ks]  # noqa: E731
    zeros = lambda *ks: [known(scalar(k, np.uint8)) for k in ks]  # noqa: E731
    cases += [("QEmbedLayerNormalization", MS, dict(epsilon=1e-5), [ids, kinds, *words, known(u8(2, 8)), known(u8(8)), known(u8(8)), mask, *scales(1, 2, 3, 4, 5), *zeros(120, 110, 130, 3, 100)], 2),
              ("QEmbedLayerNormalization", MS, dict(epsilon=1e-5), [ids, None, *words, None, known(u8(8)), known(u8(8)), None, *scales(1, 2), None, *scales(4, 5), *zeros(120, 110), None, *zeros(3, 100)], 2)]
    cases += [("Affine", "", dict(alpha=2.0, beta=0.5), [x], 1), ("Scale", "", dict(scale=0.3), [x], 1), ("ScaledTanh", "", dict(alpha=2.0, beta=0.5), [x], 1),
              ("ParametricSoftplus", "", dict(alpha=2.0, beta=0.5), [x], 1), ("ImageScaler", "", dict(scale=0.5, bias=[1.0, 2.0]), [f32(1, 2, 3, 3)], 1),
              ("GlobalLpPool", "", {}, [f32(2, 3, 4, 5)], 1), ("GlobalLpPool", "", dict(p=1), [f32(2, 3, 4, 5)], 1), ("GlobalLpPool", "", dict(p=3), [f32(2, 3, 4)], 1)]
    for column in (0, 1):
        pool = dict(kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 1, 1], storage_order=column)
        cases += [("MaxPool", "", pool, [f32(2, 3, 5, 6)], 2), ("MaxPool", "", dict(dilations=[2, 1], **pool), [np.round(f32(1, 1, 6, 6))], 2)]
    return cases


def write(case, at, folder):
    op, domain, attributes, arrays, outputs = case
    wanted = outputs if isinstance(outputs, list) else None
    outputs = len(wanted) if wanted else outputs
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
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9 if op in OLD else 17), helper.make_opsetid(ML, 5 if op == "TreeEnsemble" else 3), helper.make_opsetid(MS, 1)], ir_version=8)
    for value in model.graph.output:
        value.ClearField("type")
    bytes_of = model.SerializeToString()
    try:
        session = None if wanted else onnxruntime.InferenceSession(bytes_of, options, providers=["CPUExecutionProvider"])
        made = wanted or session.run(None, given)
    except Exception as error:  # noqa: BLE001
        print("onnxruntime refuses %s: %s" % (name, str(error).splitlines()[0][:160]))
        return None
    path = os.path.join(folder, name)
    with open(path + ".onnx", "wb") as file:
        file.write(bytes_of)
    made = [a.astype(np.float32) if a.dtype == np.float64 else a for a in made]
    tensors = [numpy_helper.from_array(a, "in:" + n) for n, a in given.items()] + [numpy_helper.from_array(a, "out:" + n) for n, a in zip(results, made)]
    holder = helper.make_model(helper.make_graph([helper.make_node("Identity", ["none"], ["y"])], "data", [helper.make_tensor_value_info("none", 1, [1])],
                                                 [helper.make_tensor_value_info("y", 1, [1])], tensors), opset_imports=[helper.make_opsetid("", 17)])
    with open(path + ".data.onnx", "wb") as file:
        file.write(holder.SerializeToString())
    step = "1" if op == "QLinearSoftmax" else "2e-5"  # onnxruntime takes it from a table of rounded exponentials
    if op == "MatMulNBits":  # sums of large terms that cancel: onnxruntime's own are 3e-7 of the largest from float64's
        step = str(max(2e-5, 5e-7 * float(np.abs(made[0].astype(np.float64)).max())))
    return "\t".join([name, op, "1e-4", step, path + ".onnx", path + ".data.onnx"])


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
