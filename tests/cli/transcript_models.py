"""Writes the models (and an array) of transcript_test.py: small ones of the kinds that users bring.

    transcript_models.py FOLDER
"""

import pathlib
import sys

import numpy
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


class Graph:
    """A graph under construction. Values are names; constants have the values of a fixed seed."""

    def __init__(self):
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.random = numpy.random.default_rng(0)

    def input(self, name, *shape, kind=FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name, *shape, kind=FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def const(self, name, values):
        self.constants.append(numpy_helper.from_array(numpy.asarray(values), name))
        return name

    def weight(self, name, *shape):
        values = self.random.standard_normal(shape) / numpy.sqrt(numpy.prod(shape[1:]))
        return self.const(name, values.astype(numpy.float32))

    def op(self, kind, inputs, outputs, name, **attributes):
        outputs = outputs if isinstance(outputs, list) else [outputs]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name, **attributes))
        return outputs[0]

    def model(self, *domains):
        graph = helper.make_graph(self.nodes, "transcript", self.inputs, self.outputs, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), *(
            helper.make_opsetid(domain, 1) for domain in domains)])
        made.ir_version = 10
        return made


def network():
    """A small classifier with a Cast to int64 and back, which the engine does not run."""
    g = Graph()
    g.op("Conv", [g.input("image", 1, 3, 32, 32), g.weight("stem.w", 16, 3, 3, 3)], "a", "stem/conv",
         pads=[1, 1, 1, 1], strides=[2, 2])
    g.op("Relu", ["a"], "b", "stem/relu")
    g.op("Cast", ["b"], "c", "round", to=TensorProto.INT64)
    g.op("Cast", ["c"], "d", "round/back", to=FLOAT)
    g.op("Conv", ["d", g.weight("body.w", 32, 16, 3, 3)], "e", "body/conv", pads=[1, 1, 1, 1])
    g.op("HardSwish", ["e"], "f", "body/act")
    g.op("GlobalAveragePool", ["f"], "g", "pool")
    g.op("Flatten", ["g"], "h", "flatten")
    g.op("Gemm", ["h", g.weight("head.w", 10, 32)], "scores", "head", transB=1)
    g.output("scores", 1, 10)
    return g.model()


def tiny():
    g = Graph()
    g.op("Relu", [g.input("x", 1, 4)], "y", "relu")
    g.output("y", 1, 4)
    return g.model()


def dynamic():
    """Free batch, height and width."""
    g = Graph()
    g.op("Conv", [g.input("x", "batch", 3, "height", "width"), g.weight("w", 8, 3, 3, 3)], "a", "conv",
         pads=[1, 1, 1, 1])
    g.op("Relu", ["a"], "b", "relu")
    g.op("GlobalAveragePool", ["b"], "y", "pool")
    g.output("y", "batch", 8, 1, 1)
    return g.model()


def decoder(layers=2, hidden=32, heads=2):
    """A decode step with a cache, and free batch, seq and past."""
    g = Graph()
    size = hidden // heads
    x = g.input("hidden", "batch", "seq", hidden)
    g.const("heads", numpy.array([0, 0, heads, size], numpy.int64))
    g.const("joined", numpy.array([0, 0, hidden], numpy.int64))
    g.const("scale", numpy.float32(1 / numpy.sqrt(size)))
    for i in range(layers):
        at = f"layers.{i}"
        split = {}
        for part in ("q", "k", "v"):
            made = g.op("MatMul", [x, g.weight(f"{at}.{part}.w", hidden, hidden)], f"{at}.{part}",
                        f"/{at}/{part}_proj/MatMul")
            made = g.op("Reshape", [made, "heads"], f"{at}.{part}.r", f"/{at}/{part}_proj/Reshape")
            split[part] = g.op("Transpose", [made], f"{at}.{part}.t", f"/{at}/{part}_proj/Transpose",
                               perm=[0, 2, 1, 3])
        for part in ("k", "v"):
            past = g.input(f"past.{i}.{part}", "batch", heads, "past", size)
            split[part] = g.op("Concat", [past, split[part]], f"present.{i}.{part}",
                               f"/{at}/{part}_cache/Concat", axis=2)
            g.output(split[part], "batch", heads, "total", size)
        keys = g.op("Transpose", [split["k"]], f"{at}.kt", f"/{at}/attn/Transpose", perm=[0, 1, 3, 2])
        made = g.op("MatMul", [split["q"], keys], f"{at}.qk", f"/{at}/attn/MatMul")
        made = g.op("Mul", [made, "scale"], f"{at}.scaled", f"/{at}/attn/Mul")
        made = g.op("Softmax", [made], f"{at}.p", f"/{at}/attn/Softmax", axis=-1)
        made = g.op("MatMul", [made, split["v"]], f"{at}.pv", f"/{at}/attn/MatMul_1")
        made = g.op("Transpose", [made], f"{at}.o", f"/{at}/attn/Transpose_1", perm=[0, 2, 1, 3])
        made = g.op("Reshape", [made, "joined"], f"{at}.or", f"/{at}/attn/Reshape")
        made = g.op("MatMul", [made, g.weight(f"{at}.o.w", hidden, hidden)], f"{at}.out",
                    f"/{at}/o_proj/MatMul")
        x = g.op("Add", [x, made], f"{at}.y", f"/{at}/Add")
    g.op("Identity", [x], "y", "/y")
    g.output("y", "batch", "seq", hidden)
    return g.model()


def unknown():
    g = Graph()
    g.op("MyOp", [g.input("x", 1, 8, 16, 16)], "a", "mine", domain="com.acme")
    g.op("Relu", ["a"], "b", "relu")
    g.op("Neg", ["b"], "y", "neg")
    g.output("y", 1, 8, 16, 16)
    return g.model("com.acme")


def big():
    """Finite in float, beyond fp16."""
    g = Graph()
    g.op("Mul", [g.input("x", 1, 64), g.const("s", numpy.float32(400))], "a", "scale")
    g.op("Mul", ["a", "a"], "b", "square")
    g.op("ReduceSum", ["b", g.const("axes", numpy.array([1], numpy.int64))], "y", "sum")
    g.output("y", 1, 1)
    return g.model()


def quantized():
    """Int8 weights and activations in QuantizeLinear and DequantizeLinear pairs. Weights are below 64: ONNX
    Runtime saturates sums of larger ones on processors without VNNI."""
    g = Graph()
    weights = g.random.integers(-63, 64, (16, 8, 3, 3)).astype(numpy.int8)
    for name, scale in (("x", 1 / 128), ("w", 1 / 1024), ("y", 1 / 32)):
        g.const(f"{name}.scale", numpy.float32(scale))
        g.const(f"{name}.zero", numpy.int8(0))
    g.const("w.q", weights)
    g.op("QuantizeLinear", [g.input("x", 1, 8, 16, 16), "x.scale", "x.zero"], "xq", "x/quantize")
    g.op("DequantizeLinear", ["xq", "x.scale", "x.zero"], "xd", "x/dequantize")
    g.op("DequantizeLinear", ["w.q", "w.scale", "w.zero"], "wd", "w/dequantize")
    g.op("Conv", ["xd", "wd"], "c", "conv")
    g.op("QuantizeLinear", ["c", "y.scale", "y.zero"], "yq", "y/quantize")
    g.op("DequantizeLinear", ["yq", "y.scale", "y.zero"], "y", "y/dequantize")
    g.output("y", 1, 16, 14, 14)
    return g.model()


def lstm(steps=8, size=16):
    g = Graph()
    g.op("LSTM", [g.input("x", steps, 1, size), g.weight("w", 1, 4 * size, size),
                  g.weight("r", 1, 4 * size, size)], ["a", "h"], "lstm", hidden_size=size)
    g.op("Squeeze", ["a", g.const("axes", numpy.array([1], numpy.int64))], "y", "squeeze")
    g.output("y", steps, 1, size)
    g.output("h", 1, 1, size)
    return g.model()


def sequence():
    """Rows that do not mix: sizes of seq can be padded."""
    g = Graph()
    g.op("MatMul", [g.input("x", 1, "seq", 32), g.weight("w", 32, 32)], "a", "fc")
    g.op("Relu", ["a"], "y", "act")
    g.output("y", 1, "seq", 32)
    return g.model()


def pairs():
    """Two rows become one, so there are no odd numbers of rows."""
    g = Graph()
    g.op("Relu", [g.input("x", "rows", 8)], "a", "act")
    g.op("Reshape", ["a", g.const("shape", numpy.array([-1, 16], numpy.int64))], "b", "join")
    g.op("MatMul", ["b", g.weight("w", 16, 16)], "y", "fc")
    g.output("y", None, 16)
    return g.model()


def wide():
    """Weights that are worth compressing."""
    g = Graph()
    g.op("MatMul", [g.input("x", 1, 128), g.weight("up.w", 128, 256)], "a", "up")
    g.op("Relu", ["a"], "b", "act")
    g.op("MatMul", ["b", g.weight("down.w", 256, 128)], "y", "down")
    g.output("y", 1, 128)
    return g.model()


def listed():
    """The weights are inputs too, as PyTorch's keep_initializers_as_inputs writes them."""
    g = Graph()
    g.op("Conv", [g.input("x", 1, 3, 16, 16), g.weight("stem.w", 8, 3, 3, 3)], "a", "stem", pads=[1, 1, 1, 1])
    g.op("Relu", ["a"], "b", "act")
    g.op("Conv", ["b", g.weight("head.w", 8, 8, 1, 1), g.weight("head.b", 8)], "y", "head")
    for name, shape in (("stem.w", (8, 3, 3, 3)), ("head.w", (8, 8, 1, 1)), ("head.b", (8,))):
        g.input(name, *shape)
    g.output("y", 1, 8, 16, 16)
    return g.model()


MODELS = {"net": network, "tiny": tiny, "dyn": dynamic, "kv": decoder, "unk": unknown, "big": big,
          "quantized": quantized, "lstm": lstm, "seq": sequence, "pairs": pairs,
          "wide": wide, "listed": listed}


def write(folder):
    for name, make in MODELS.items():
        (folder / f"{name}.onnx").write_bytes(make().SerializeToString())
    numpy.save(folder / "twenty.npy", numpy.ones((1, 20, 32), numpy.float32))  # for seq.onnx


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
