"""Models with free dimensions for bucket_test.py, in the form of exporters: shapes are computed from the
inputs. Made with onnx.parser."""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS, VOCABULARY, LONGEST = 16, 4, 50, 128
LOWEST = float(numpy.finfo(numpy.float32).min)


class Builder:
    """A graph under construction. Values are names."""

    def __init__(self, name):
        self.name, self.nodes, self.constants, self.random = name, [], [], numpy.random.default_rng(7)
        self.inputs, self.outputs = [], []

    def const(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(array), name))
        return name

    def ints(self, *numbers):
        return self.const(numpy.array(numbers, numpy.int64))

    def scalar(self, number):
        return self.const(numpy.float32(number))

    def weight(self, *shape):
        scale = 1 / numpy.sqrt(shape[0]) if len(shape) > 1 else 0.1
        return self.const((self.random.standard_normal(shape) * scale).astype(numpy.float32))

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind.lower()}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, f"/{kind}_{len(self.nodes)}",
                                           **attributes))
        return names[0] if outputs == 1 else names

    def input(self, name, shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, value, shape, kind=TensorProto.FLOAT, name=None):
        name = name or f"y{len(self.outputs)}"
        self.nodes.append(helper.make_node("Identity", [value], [name], "/" + name))
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def size(self, value, axis):
        """A dimension, as a vector with one element."""
        return self.op("Unsqueeze", self.op("Gather", self.op("Shape", value), self.const(
            numpy.int64(axis))), self.ints(0))

    def reshape(self, value, *sizes):
        """Sizes are numbers, or vectors with one element."""
        parts = [self.ints(size) if isinstance(size, int) else size for size in sizes]
        return self.op("Reshape", value, self.op("Concat", *parts, axis=0))

    def norm(self, x, written_out):
        if not written_out:
            return self.op("LayerNormalization", x, self.weight(HIDDEN), self.weight(HIDDEN))
        centred = self.op("Sub", x, self.op("ReduceMean", x, self.ints(-1)))
        square = self.op("Pow", centred, self.scalar(2))
        variance = self.op("Add", self.op("ReduceMean", square, self.ints(-1)), self.scalar(1e-5))
        return self.op("Mul", self.op("Div", centred, self.op("Sqrt", variance)),
                       self.weight(HIDDEN))

    def linear(self, x, n_in, n_out):
        return self.op("Add", self.op("MatMul", x, self.weight(n_in, n_out)), self.weight(n_out))

    def heads(self, x, batch, seq):
        split = self.reshape(self.linear(x, HIDDEN, HIDDEN), batch, seq, HEADS, HIDDEN // HEADS)
        return split

    def attention(self, x, batch, seq, mask):
        """`mask` is a function from scores to masked scores."""
        q, k, v = (self.heads(x, batch, seq) for _ in range(3))
        scores = self.op("MatMul", self.op("Transpose", q, perm=[0, 2, 1, 3]),
                         self.op("Transpose", k, perm=[0, 2, 3, 1]))
        scores = self.op("Div", scores, self.scalar((HIDDEN / HEADS) ** 0.5))
        shares = self.op("Softmax", mask(scores), axis=-1)
        mixed = self.op("MatMul", shares, self.op("Transpose", v, perm=[0, 2, 1, 3]))
        back = self.reshape(self.op("Transpose", mixed, perm=[0, 2, 1, 3]), batch, seq, HIDDEN)
        return self.linear(back, HIDDEN, HIDDEN)

    def block(self, x, batch, seq, mask, written_out):
        x = self.norm(self.op("Add", x, self.attention(x, batch, seq, mask)), written_out)
        wide = self.linear(x, HIDDEN, 2 * HIDDEN)
        half = self.op("Mul", wide, self.scalar(0.5))
        erf = self.op("Erf", self.op("Div", wide, self.scalar(2 ** 0.5)))
        gelu = self.op("Mul", half, self.op("Add", erf, self.scalar(1)))
        return self.norm(self.op("Add", x, self.linear(gelu, 2 * HIDDEN, HIDDEN)), written_out)

    def embed(self, ids, seq):
        positions = self.op("Slice", self.const(numpy.arange(LONGEST)[None]), self.ints(0), seq,
                            self.ints(1))
        words = self.op("Gather", self.weight(VOCABULARY, HIDDEN), ids)
        return self.op("Add", words, self.op("Gather", self.weight(LONGEST, HIDDEN), positions))

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        onnx.checker.check_model(made, full_check=True)
        return made


def encoder(lowest=-10000.0, written_out=True, masked=True, pool=None):
    """BERT: a mask of 0 and 1, converted and added to the scores."""
    b = Builder("encoder")
    ids = b.input("input_ids", ["batch", "seq"], TensorProto.INT64)
    batch, seq = b.size(ids, 0), b.size(ids, 1)
    mask = None
    if masked:
        mask = b.input("attention_mask", ["batch", "seq"], TensorProto.INT64)
        keep = b.op("Cast", b.op("Unsqueeze", mask, b.ints(1, 2)), to=TensorProto.FLOAT)
        summand = b.op("Mul", b.op("Sub", b.scalar(1), keep), b.scalar(lowest))
    x = b.norm(b.embed(ids, seq), written_out)
    for _ in range(2):
        x = b.block(x, batch, seq, lambda s: b.op("Add", s, summand) if masked else s, written_out)
    b.output(x, ["batch", "seq", HIDDEN])
    if pool == "first":
        first = b.op("Gather", x, b.const(numpy.int64(0)), axis=1)
        b.output(b.op("Tanh", b.linear(first, HIDDEN, HIDDEN)), ["batch", HIDDEN])
    if pool == "last":
        b.output(b.op("Gather", x, b.const(numpy.int64(-1)), axis=1), ["batch", HIDDEN])
    if pool == "mean":
        b.output(b.op("ReduceMean", x, b.ints(1), keepdims=0), ["batch", HIDDEN])
    if pool == "masked mean":
        kept = b.op("Cast", b.op("Unsqueeze", mask, b.ints(2)), to=TensorProto.FLOAT)
        total = b.op("ReduceSum", b.op("Mul", x, kept), b.ints(1), keepdims=0)
        count = b.op("Clip", b.op("ReduceSum", kept, b.ints(1), keepdims=0), b.scalar(1e-9))
        b.output(b.op("Div", total, count), ["batch", HIDDEN])
    return b.model()


def encoder_by_where():
    """A bool mask, expanded to the scores, that selects minus infinity."""
    b = Builder("encoder_by_where")
    ids = b.input("input_ids", ["batch", "seq"], TensorProto.INT64)
    mask = b.input("attention_mask", ["batch", "seq"], TensorProto.INT64)
    batch, seq = b.size(ids, 0), b.size(ids, 1)
    shape = b.op("Concat", batch, b.ints(1), seq, seq, axis=0)
    keep = b.op("Cast", b.op("Expand", b.op("Unsqueeze", mask, b.ints(1, 2)), shape),
                to=TensorProto.BOOL)

    def choose(scores):
        return b.op("Where", keep, scores, b.scalar(-numpy.inf))

    x = b.block(b.norm(b.embed(ids, seq), False), batch, seq, choose, False)
    b.output(x, ["batch", "seq", HIDDEN])
    return b.model()


def decoder(with_mask=False):
    """GPT: a causal mask from a comparison of two ranges."""
    b = Builder("decoder")
    ids = b.input("input_ids", ["batch", "seq"], TensorProto.INT64)
    batch, seq = b.size(ids, 0), b.size(ids, 1)
    count = b.op("Squeeze", seq)
    line = b.op("Range", b.const(numpy.int64(0)), count, b.const(numpy.int64(1)))
    sees = b.op("LessOrEqual", b.op("Unsqueeze", line, b.ints(0)), b.op("Unsqueeze", line, b.ints(1)))
    summand = b.op("Where", sees, b.scalar(0), b.scalar(LOWEST))
    if with_mask:
        mask = b.input("attention_mask", ["batch", "seq"], TensorProto.INT64)
        keep = b.op("Cast", b.op("Unsqueeze", mask, b.ints(1, 2)), to=TensorProto.BOOL)
        summand = b.op("Where", keep, summand, b.scalar(LOWEST))
    x = b.embed(ids, seq)
    for _ in range(2):
        x = b.block(x, batch, seq, lambda s: b.op("Add", s, summand), True)
    b.output(b.linear(x, HIDDEN, VOCABULARY), ["batch", "seq", VOCABULARY])
    return b.model()


def flattened():
    """The rows of all sequences in one matrix, for Gemm."""
    b = Builder("flattened")
    x = b.input("x", ["batch", "seq", HIDDEN])
    rows = b.op("Reshape", x, b.ints(-1, HIDDEN))
    y = b.op("Relu", b.op("Gemm", rows, b.weight(HIDDEN, 8), b.weight(8)))
    b.output(y, ["rows", 8])
    b.output(b.reshape(y, b.size(x, 0), b.size(x, 1), 8), ["batch", "seq", 8])
    return b.model()


def convolution():
    b = Builder("convolution")
    x = b.input("x", ["batch", 3, 16, "width"])
    y = b.op("Relu", b.op("Conv", x, b.weight(4, 3, 3, 3), pads=[1, 1, 1, 1]))
    b.output(y, ["batch", 4, 16, "width"])
    b.output(b.op("GlobalAveragePool", y), ["batch", 4, 1, 1])
    return b.model()


def divided():
    """A sum divided by the size: correct only at the exact size."""
    b = Builder("divided")
    x = b.input("x", ["batch", "seq", HIDDEN])
    total = b.op("ReduceSum", x, b.ints(1))
    b.output(b.op("Div", total, b.op("Cast", b.size(x, 1), to=TensorProto.FLOAT)),
             ["batch", 1, HIDDEN])
    return b.model()


def normalized():
    """x divided by its length, then a product over all positions: 0/0 in the padding."""
    b = Builder("normalized")
    x = b.input("x", ["batch", "seq", HIDDEN])
    y = b.op("Div", x, b.op("ReduceL2", x, b.ints(-1)))
    b.output(b.op("MatMul", b.op("Transpose", y, perm=[0, 2, 1]), y), ["batch", HIDDEN, HIDDEN])
    return b.model()


# Model, buckets, tested sizes, and for each "padded" or the reason why it is not padded.
CASES = [
    (encoder, {}, {"seq": [8, 16]}, "padded"),
    (encoder, {"lowest": LOWEST, "written_out": False, "pool": "first"}, {"seq": [8, 16]}, "padded"),
    (encoder, {"pool": "masked mean"}, {"batch": [1, 4], "seq": [8, 16]}, "padded"),
    (encoder, {"pool": "mean"}, {"seq": [8, 16]}, "ReduceMean"),
    (encoder, {"pool": "last"}, {"seq": [8, 16]}, "counted from the end of the padded axis"),
    (encoder, {"masked": False}, {"seq": [8, 16]}, "no mask excludes the padding"),
    (encoder, {"masked": False}, {"batch": [2, 4]}, "padded"),
    (encoder_by_where, {}, {"seq": [8, 16]}, "padded"),
    (decoder, {}, {"seq": [8, 16]}, "padded"),
    (decoder, {"with_mask": True}, {"seq": [8, 16]}, "padded"),
    (flattened, {}, {"batch": [2, 4], "seq": [8, 16]}, "padded"),
    (convolution, {}, {"batch": [2, 4]}, "padded"),
    (convolution, {}, {"width": [16, 32]}, "Conv"),
    (divided, {}, {"seq": [8, 16]}, "has different elements at another size"),
    (normalized, {}, {"seq": [8, 16]}, "may contain NaN or infinity"),
]
