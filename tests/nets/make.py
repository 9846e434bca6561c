"""Networks as exporters write them, with weights by seed that keep values of order 1: what benchmarks and tests of networks read.
Needs PyPI's package `onnx` alone.  usage: make.py [--cut] FOLDER [NAME…]   (all of NETWORKS below; the files are FOLDER/NAME.onnx;
--cut: of small images, few layers and places, which an interpreter gets through: CUTS below)"""
import math
import os
import sys

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

OPSET, FUSED_OPSET, MICROSOFT = 17, 23, "com.microsoft"  # FUSED_OPSET: ONNX has Attention since then


class Net:
    """A graph that grows: each method adds nodes and gives the name of what they make."""
    opset = OPSET

    def __init__(self, name):
        self.name, self.nodes, self.constants, self.inputs, self.outputs = name, [], [], [], []
        self.known, self.renamed = {}, {}
        self.random = np.random.default_rng(sum(name.encode()))

    def node(self, op, *inputs, outputs=1, **attributes):
        name = "%s_%d" % (op, len(self.nodes))
        made = ["%s_output_%d" % (name, i) for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), made, name, **attributes))
        return made[0] if outputs == 1 else made

    def constant(self, array, kind=None):
        """Equal small ones are one."""
        array = np.asarray(array, kind)
        key = (str(array.dtype), array.shape, array.tobytes()) if array.size <= 16 else len(self.constants)
        if key not in self.known:
            self.known[key] = "constant_%d" % len(self.constants)
            self.constants.append(numpy_helper.from_array(array, self.known[key]))
        return self.known[key]

    def number(self, x):
        return self.constant(x, np.float32)

    def integers(self, *x):
        return self.constant(x, np.int64)

    def weights(self, *shape, scale=1.0, mean=0.0):
        return self.constant((mean + scale * self.random.standard_normal(shape)).astype(np.float32))

    def input(self, name, shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name, value, shape):
        self.renamed[value] = name
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def save(self, folder):
        for node in self.nodes:
            for names in (node.input, node.output):
                names[:] = [self.renamed.get(n, n) for n in names]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid(d, 1 if d else self.opset) for d in sorted({"", *(n.domain for n in self.nodes)})]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8 if self.opset == OPSET else 10, producer_name="msched")
        checker.check_model(model)
        save(model, os.path.join(folder, self.name + ".onnx"))

    # ---- Layers ----

    def dense(self, x, n, m, gain=1.0):
        """As exporters write it where x has more than two dimensions."""
        return self.node("Add", self.node("MatMul", x, self.weights(n, m, scale=math.sqrt(gain / n))), self.weights(m, scale=0.02))

    def gemm(self, x, n, m, gain=2.0):
        return self.node("Gemm", x, self.weights(m, n, scale=math.sqrt(gain / n)), self.weights(m, scale=0.1), transB=1)

    def conv(self, x, n, m, kernel, stride=1, pad=0, group=1, bias=False, rank=2):
        kernel, stride, pad = [[v] * rank if isinstance(v, int) else v for v in (kernel, stride, pad)]
        w = self.weights(m, n // group, *kernel, scale=math.sqrt(2 / (n // group * math.prod(kernel))))
        more = [self.weights(m, scale=0.1)] if bias else []
        return self.node("Conv", x, w, *more, kernel_shape=kernel, strides=stride, pads=pad + pad, group=group, dilations=[1] * rank)

    def norm(self, x, m, gain=1.0):
        """Batch normalization; gain: of the last of a residual branch less than 1, so that sums of many stay of order 1."""
        scale = (gain * self.random.uniform(0.8, 1.2, m)).astype(np.float32)
        variance = self.random.uniform(0.8, 1.2, m).astype(np.float32)
        return self.node("BatchNormalization", x, self.constant(scale), self.weights(m, scale=0.1), self.weights(m, scale=0.1),
                         self.constant(variance), epsilon=1e-5, momentum=0.9)

    def relu(self, x):
        return self.node("Relu", x)

    def relu6(self, x):
        return self.node("Clip", x, self.number(0), self.number(6))

    def layer_norm(self, x, m, parts=False):
        scale, bias = self.weights(m, mean=1, scale=0.1), self.weights(m, scale=0.1)
        if not parts:
            return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)
        d = self.node("Sub", x, self.node("ReduceMean", x, axes=[-1]))
        variance = self.node("ReduceMean", self.node("Pow", d, self.number(2)), axes=[-1])
        unit = self.node("Div", d, self.node("Sqrt", self.node("Add", variance, self.number(1e-12))))
        return self.node("Add", self.node("Mul", unit, scale), bias)

    def gelu(self, x):
        erf = self.node("Erf", self.node("Div", x, self.number(math.sqrt(2))))
        return self.node("Mul", self.node("Mul", x, self.node("Add", erf, self.number(1))), self.number(0.5))

    def gelu_tanh(self, x):
        cube = self.node("Mul", self.node("Pow", x, self.number(3)), self.number(0.044715))
        tanh = self.node("Tanh", self.node("Mul", self.node("Add", x, cube), self.number(math.sqrt(2 / math.pi))))
        return self.node("Mul", self.node("Mul", x, self.number(0.5)), self.node("Add", tanh, self.number(1)))

    def heads(self, x, count, size, order):
        return self.node("Transpose", self.node("Reshape", x, self.integers(1, -1, count, size)), perm=order)

    def attention(self, q, k, v, size, mask):
        """Of heads, k transposed; mask: from scores to scores. Gives [1, places, heads * size]."""
        scores = mask(self.node("Div", self.node("MatMul", q, k), self.number(math.sqrt(size))))
        y = self.node("Transpose", self.node("MatMul", self.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.node("Reshape", y, self.integers(1, -1, self.width))


class Quantized(Net):
    """The same with 8-bit integers as quantizers write them: QuantizeLinear and DequantizeLinear around what is as it was."""

    def quantized(self, x, most, kind=np.uint8):
        """Values within most, of either sign where the type has one."""
        scale = self.number(most / (255 if kind == np.uint8 else 127))
        zero = self.constant(0, kind)
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, scale, zero), scale, zero)

    def quantized_weights(self, w, axis):
        """w in int8, a scale a channel of this axis."""
        most = np.abs(w).max(axis=tuple(i for i in range(w.ndim) if i != axis), keepdims=True) / 127
        scale, zero = self.constant(most.ravel().astype(np.float32)), self.constant(np.zeros(w.shape[axis], np.int8))
        return self.node("DequantizeLinear", self.constant(np.round(w / most).astype(np.int8)), scale, zero, axis=axis)

    def conv(self, x, n, m, kernel, stride=1, pad=0):
        """Batch normalization is in the weights, as quantizers leave it."""
        scale = math.sqrt(2 / (n * kernel * kernel))
        w = self.quantized_weights(self.random.standard_normal((m, n, kernel, kernel)) * scale, 0)
        return self.node("Conv", x, w, self.weights(m, scale=0.1), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def dense(self, x, n, m, gain=1.0):
        w = self.quantized_weights(self.random.standard_normal((n, m)) * math.sqrt(gain / n), 1)
        return self.node("Add", self.node("MatMul", self.quantized(x, 5, np.int8), w), self.weights(m, scale=0.02))


# ---- Networks of images ----------------------------------------------------------------------------------------------

def lenet(name):
    net = Net(name)
    x = net.relu(net.conv(net.input("x", [1, 1, 28, 28]), 1, 6, 5, pad=2, bias=True))
    x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.node("MaxPool", net.relu(net.conv(x, 6, 16, 5, bias=True)), kernel_shape=[2, 2], strides=[2, 2])
    x = net.node("Flatten", x)
    x = net.relu(net.gemm(x, 400, 120))
    x = net.gemm(net.relu(net.gemm(x, 120, 84)), 84, 10)
    net.output("probabilities", net.node("Softmax", x, axis=-1), [1, 10])
    return net


BOTTLENECKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # of ResNet-50: width, blocks, stride of the first


def head(net, x, n, rank=2):
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    net.output("logits", net.gemm(x, n, 1000 if rank == 2 else 400, gain=1), [1, 1000 if rank == 2 else 400])
    return net


def resnet50(name, image=224, bottlenecks=BOTTLENECKS):
    net, n = Net(name), 64
    x = net.relu(net.norm(net.conv(net.input("x", [1, 3, image, image]), 3, 64, 7, 2, 3), 64))
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for m, blocks, first in bottlenecks:
        for i in range(blocks):
            stride = first if i == 0 else 1
            y = net.relu(net.norm(net.conv(x, n, m, 1), m))
            y = net.relu(net.norm(net.conv(y, m, m, 3, stride, 1), m))
            y = net.norm(net.conv(y, m, 4 * m, 1), 4 * m, gain=0.3)
            if i == 0:
                x = net.norm(net.conv(x, n, 4 * m, 1, stride), 4 * m, gain=0.7)
            x, n = net.relu(net.node("Add", y, x)), 4 * m
    return head(net, x, n)


def resnet50_int8(name, image=224, bottlenecks=BOTTLENECKS):
    net, n = Quantized(name), 64
    x = net.quantized(net.input("x", [1, 3, image, image]), 4, np.int8)
    x = net.quantized(net.relu(net.conv(x, 3, 64, 7, 2, 3)), 6)
    x = net.quantized(net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 6)
    for m, blocks, first in bottlenecks:
        for i in range(blocks):
            stride = first if i == 0 else 1
            y = net.quantized(net.relu(net.conv(x, n, m, 1)), 6)
            y = net.quantized(net.relu(net.conv(y, m, m, 3, stride, 1)), 6)
            y = net.quantized(net.conv(y, m, 4 * m, 1), 8, np.int8)
            x = net.quantized(net.conv(x, n, 4 * m, 1, stride), 8, np.int8) if i == 0 else x
            half = net.node("Mul", net.node("Add", y, x), net.number(0.7))
            x, n = net.quantized(net.relu(half), 8), 4 * m
    return head(net, x, n)


INVERTED = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))  # of MobileNet V2


def mobilenet_v2(name, image=224, inverted=INVERTED):
    net, n = Net(name), 32
    x = net.relu6(net.norm(net.conv(net.input("x", [1, 3, image, image]), 3, 32, 3, 2, 1), 32))
    for expand, m, blocks, first in inverted:
        for i in range(blocks):
            y, wide = x, n * expand
            if expand > 1:
                y = net.relu6(net.norm(net.conv(y, n, wide, 1), wide))
            y = net.relu6(net.norm(net.conv(y, wide, wide, 3, first if i == 0 else 1, 1, group=wide), wide))
            y = net.norm(net.conv(y, wide, m, 1), m, gain=0.7)
            x, n = (net.node("Add", x, y) if i > 0 else y), m
    return head(net, net.relu6(net.norm(net.conv(x, n, 4 * n, 1), 4 * n)), 4 * n)


def resnet3d18(name, frames=16, image=112, stages=((64, 1), (128, 2), (256, 2), (512, 2))):
    """3D-ResNet-18 on 16 frames of 112 x 112."""
    net, n = Net(name), 64
    x = net.conv(net.input("x", [1, 3, frames, image, image]), 3, 64, [3, 7, 7], [1, 2, 2], [1, 3, 3], rank=3)
    x = net.relu(net.norm(x, 64))
    for m, first in stages:
        for stride in (first, 1):
            y = net.relu(net.norm(net.conv(x, n, m, 3, stride, 1, rank=3), m))
            y = net.norm(net.conv(y, m, m, 3, 1, 1, rank=3), m, gain=0.5)
            if n != m:
                x = net.norm(net.conv(x, n, m, 1, stride, rank=3), m, gain=0.7)
            x, n = net.relu(net.node("Add", y, x)), m
    return head(net, x, n, rank=3)


def dcgan(name, width=512):
    """The generator: from 100 numbers to an image of 64 x 64."""
    net, n = Net(name), 100
    x = net.input("z", [1, n, 1, 1])
    for m, stride, pad in ((width, 1, 0), (width // 2, 2, 1), (width // 4, 2, 1), (width // 8, 2, 1), (3, 2, 1)):
        w = net.weights(n, m, 4, 4, scale=math.sqrt((1 if m == width else 2) / (n * (1 if m == width else 4))))
        x = net.node("ConvTranspose", x, w, kernel_shape=[4, 4], strides=[stride] * 2, pads=[pad] * 4, dilations=[1, 1], group=1)
        x = net.relu(net.norm(x, m)) if m != 3 else net.node("Tanh", x)
        n = m
    net.output("image", x, [1, 3, 64, 64])
    return net


# ---- Networks of text ------------------------------------------------------------------------------------------------

VOCABULARY = 1024  # short, since a lookup costs the same in a long one


def bert(name, layers=12, width=768, count=12, places=128, parts=False, kind=Net):
    """An encoder; parts: layer normalization in simple operators, as exporters wrote it before there was one for it."""
    net, size = kind(name), width // count
    net.width = width
    ids, kinds, mask = [net.input(s, [1, places], TensorProto.INT64) for s in ("input_ids", "token_type_ids", "attention_mask")]
    words, types = net.node("Gather", net.weights(VOCABULARY, width), ids), net.node("Gather", net.weights(2, width, scale=0.1), kinds)
    x = net.node("Add", net.node("Add", words, types), net.weights(1, places, width, scale=0.1))
    x = net.layer_norm(x, width, parts)
    seen = net.node("Cast", net.node("Unsqueeze", mask, net.integers(1, 2)), to=TensorProto.FLOAT)
    hidden = net.node("Mul", net.node("Sub", net.number(1), seen), net.number(-10000))
    for _ in range(layers):
        q, k, v = [net.heads(net.dense(x, width, width), count, size, order) for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])]
        y = net.attention(q, k, v, size, lambda scores: net.node("Add", scores, hidden))
        x = net.layer_norm(net.node("Add", net.dense(y, width, width), x), width, parts)
        y = net.dense(net.gelu(net.dense(x, width, 4 * width)), 4 * width, width, gain=2)
        x = net.layer_norm(net.node("Add", y, x), width, parts)
    net.output("last_hidden_state", x, [1, places, width])
    first = net.node("Gather", x, net.constant(0, np.int64), axis=1)
    net.output("pooled", net.node("Tanh", net.gemm(first, width, width, gain=1)), [1, width])
    return net


def gpt(name, past=0, places=64, layers=6, width=384, count=6):
    """A decoder of text; past: of so many earlier places keys and values are inputs, and those of all are outputs."""
    net, size = Net(name), width // count
    net.width = width
    table, all_places = net.weights(VOCABULARY, width, scale=0.5), past + places
    x = net.node("Gather", table, net.input("input_ids", [1, places], TensorProto.INT64))
    x = net.node("Add", x, net.weights(1, places, width, scale=0.1))
    seen = net.constant(np.tril(np.ones((all_places, all_places), bool))[past:].reshape(1, 1, places, all_places))
    for i in range(layers):
        y = net.dense(net.layer_norm(x, width), width, 3 * width)
        q, k, v = net.node("Split", y, net.integers(width, width, width), outputs=3, axis=-1)
        q, k, v = [net.heads(t, count, size, [0, 2, 1, 3]) for t in (q, k, v)]
        if past:
            k, v = [net.node("Concat", net.input("past_%s_%d" % (s, i), [1, count, past, size]), t, axis=2) for s, t in (("key", k), ("value", v))]
            for s, t in (("key", k), ("value", v)):
                net.output("present_%s_%d" % (s, i), t, [1, count, all_places, size])
        y = net.attention(q, net.node("Transpose", k, perm=[0, 1, 3, 2]), v, size,
                          lambda scores: net.node("Where", seen, scores, net.number(-3.4028235e38)))
        x = net.node("Add", x, net.dense(y, width, width, gain=0.2))
        y = net.gelu_tanh(net.dense(net.layer_norm(x, width), width, 4 * width))
        x = net.node("Add", x, net.dense(y, 4 * width, width, gain=0.2))
    x = net.layer_norm(x, width)
    net.output("logits", net.node("MatMul", x, net.weights(width, VOCABULARY, scale=1 / math.sqrt(width))), [1, places, VOCABULARY])
    return net


# ---- Attention alone -------------------------------------------------------------------------------------------------

ATTENTIONS = ((1, 8, 1024, 64, 0), (1, 12, 128, 64, 0), (1, 8, 512, 128, 1), (4, 8, 256, 32, 0), (1, 4, 2048, 64, 0))


def attention(name, batch, heads, places, width, causal, joined):
    """One fused operator: joined: MultiHeadAttention of onnxruntime's, heads side by side; else ONNX's, a head's rows together."""
    net = Net(name)
    shape = [batch, places, heads * width] if joined else [batch, heads, places, width]
    inputs = [net.input(s, shape) for s in ("query", "key", "value")]
    if joined:
        y = net.node("MultiHeadAttention", *inputs, domain=MICROSOFT, num_heads=heads, unidirectional=causal)
    else:
        net.opset = FUSED_OPSET
        y = net.node("Attention", *inputs, is_causal=causal)
    net.output("sums", y, shape)
    return net


NETWORKS = {
    "lenet": lenet, "resnet50": resnet50, "mobilenet_v2": mobilenet_v2, "resnet3d18": resnet3d18, "dcgan": dcgan,
    "bert": bert, "bert_parts": lambda name: bert(name, parts=True),
    "bert_tiny": lambda name: bert(name, layers=2, width=128, count=2),
    "bert_tiny_parts": lambda name: bert(name, layers=2, width=128, count=2, parts=True),
    "gpt": gpt, "gpt_cached": lambda name: gpt(name, past=63, places=1),
    "resnet50_int8": resnet50_int8, "bert_int8": lambda name: bert(name, kind=Quantized),
    "bert_tiny_int8": lambda name: bert(name, layers=2, width=128, count=2, kind=Quantized),
}
for b, h, p, w, causal in ATTENTIONS:
    for joined in (0, 1):
        name = "attention_%dx%dx%dx%d%s%s" % (b, h, p, w, "_causal" * causal, "_joined" * joined)
        NETWORKS[name] = lambda name, of=(b, h, p, w, causal, joined): attention(name, *of)


# The same kernels on little: what an interpreter gets through in seconds a function.
SMALL_TEXT = dict(layers=1, width=128, count=2)
SMALL_BOTTLENECKS = ((32, 2, 1), (64, 1, 2))
CUTS = {
    "resnet50": lambda name: resnet50(name, 32, SMALL_BOTTLENECKS), "mobilenet_v2": lambda name: mobilenet_v2(name, 32, INVERTED[:4]),
    "resnet3d18": lambda name: resnet3d18(name, 4, 16, ((64, 1), (128, 2))), "dcgan": lambda name: dcgan(name, 64),
    "bert": lambda name: bert(name, places=32, **SMALL_TEXT), "bert_parts": lambda name: bert(name, places=32, parts=True, **SMALL_TEXT),
    "bert_tiny": lambda name: bert(name, places=32, **SMALL_TEXT),
    "bert_tiny_parts": lambda name: bert(name, places=32, parts=True, **SMALL_TEXT),
    "gpt": lambda name: gpt(name, places=32, **SMALL_TEXT), "gpt_cached": lambda name: gpt(name, past=31, places=1, **SMALL_TEXT),
    "resnet50_int8": lambda name: resnet50_int8(name, 32, SMALL_BOTTLENECKS),
    "bert_int8": lambda name: bert(name, places=32, kind=Quantized, **SMALL_TEXT),
    "bert_tiny_int8": lambda name: bert(name, places=32, kind=Quantized, **SMALL_TEXT),
}
for b, h, p, w, causal in ATTENTIONS:
    for joined in (0, 1):
        name = "attention_%dx%dx%dx%d%s%s" % (b, h, p, w, "_causal" * causal, "_joined" * joined)
        CUTS[name] = lambda name, of=(1, 2, min(p, 128), w, causal, joined): attention(name, *of)


def main(folder, names, cut=False):
    unknown = [n for n in names if n not in NETWORKS]
    if unknown:
        sys.exit("make.py: no network is called %s: there are %s" % (", ".join(unknown), ", ".join(NETWORKS)))
    os.makedirs(folder, exist_ok=True)
    for name in names or NETWORKS:
        (CUTS.get(name, NETWORKS[name]) if cut else NETWORKS[name])(name).save(folder)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    own = [word for word in sys.argv[1:] if word != "--cut"]
    main(own[0], own[1:], len(own) < len(sys.argv) - 1)
