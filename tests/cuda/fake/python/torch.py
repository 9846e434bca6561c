"""PyTorch without a GPU, as far as long/gpu_vendors.py uses it: shapes are checked, nothing is computed, and a call
takes FAKE_TORCH_TIME milliseconds of the events' clock, unless 10; convolutions with channels first half more, attention
by cuDNN half as much again, and by FLASH_ATTENTION it is refused."""
import contextlib, os, sys, types

float32, float16, bfloat16 = "float32", "float16", "bfloat16"
channels_last, channels_last_3d = "last", "last in three dimensions"
TIME = float(os.environ.get("FAKE_TORCH_TIME", "10"))


class Tensor:
    def __init__(self, shape, dtype, layout=None):
        self.shape, self.dtype, self.layout = list(shape), dtype, layout

    def to(self, memory_format):
        assert len(self.shape) == (5 if memory_format == channels_last_3d else 4)
        return Tensor(self.shape, self.dtype, memory_format)


def randn(*shape, device, dtype):
    assert device == "cuda" and all(isinstance(n, int) and n > 0 for n in shape)
    return Tensor(shape, dtype)


clock, captured = 0.0, None


def passes(times=1.0):
    global clock, captured
    if captured is None:
        clock += times * TIME
    else:
        captured += times * TIME


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = clock

    def synchronize(self):
        pass

    def elapsed_time(self, other):
        return other.at - self.at


class CUDAGraph:
    taken = 0.0

    def replay(self):
        global clock
        clock += self.taken


@contextlib.contextmanager
def graph(into):
    global captured
    captured = 0.0
    yield
    into.taken, captured = captured, None


def matmul(x, y):
    assert x.shape[-1] == y.shape[-2] and x.shape[:-2] == y.shape[:-2]
    passes()


def softmax(x, axis):
    assert -len(x.shape) <= axis < len(x.shape)
    passes()


def vector_norm(x, dim):
    assert dim and all(-len(x.shape) <= d < len(x.shape) for d in dim)
    passes()


def convolution(rank):
    def call(x, w, bias, stride, pad, dilation, groups):
        assert len(x.shape) == len(w.shape) == rank + 2 and bias is None
        assert x.shape[1] == groups * w.shape[1] and w.shape[0] % groups == 0 and stride > 0 and pad >= 0
        assert all(n + 2 * pad > dilation * (k - 1) for n, k in zip(x.shape[2:], w.shape[2:]))
        passes(1 if x.layout or rank == 1 else 1.5)

    return call


def conv_transpose2d(x, w, bias, stride, pad):
    assert x.shape[1] == w.shape[0] and bias is None and stride > 0 and pad >= 0
    passes(1 if x.layout else 1.5)


def linear(x, w):
    assert x.shape[-1] == w.shape[-1]
    passes()


def layer_norm(x, shape, g, b):
    assert list(shape) == x.shape[-1:] == g.shape == b.shape
    passes()


backend = None


@contextlib.contextmanager
def sdpa_kernel(one):
    global backend
    backend = one
    yield
    backend = None


def scaled_dot_product_attention(q, k, v, is_causal):
    assert k.shape == v.shape and q.shape[:2] == k.shape[:2] and q.shape[3] == k.shape[3] and is_causal in (True, False)
    if backend == "FLASH_ATTENTION":
        raise RuntimeError("no available kernel\nand more")
    passes(1.5 if backend == "CUDNN_ATTENTION" else 1 if backend == "EFFICIENT_ATTENTION" else 3)


def module(name, **what):
    made = types.ModuleType(name)
    made.__dict__.update(what)
    sys.modules[name] = made
    return made


BACKENDS = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH")
functional = module(
    "torch.nn.functional", conv1d=convolution(1), conv2d=convolution(2), conv3d=convolution(3), linear=linear,
    conv_transpose2d=conv_transpose2d, layer_norm=layer_norm, gelu=lambda x: passes(),
    scaled_dot_product_attention=scaled_dot_product_attention)
kinds = module("torch.nn.attention", SDPBackend=types.SimpleNamespace(**{b: b for b in BACKENDS}), sdpa_kernel=sdpa_kernel)
nn = module("torch.nn", functional=functional, attention=kinds)
linalg = types.SimpleNamespace(vector_norm=vector_norm)
cuda = types.SimpleNamespace(Event=Event, CUDAGraph=CUDAGraph, graph=graph, synchronize=lambda: None)
backends = types.SimpleNamespace(
    cuda=types.SimpleNamespace(matmul=types.SimpleNamespace(allow_tf32=True)),
    cudnn=types.SimpleNamespace(allow_tf32=True, benchmark=False))
