"""Models written by ONNX Runtime's quantizer (QDQ and QOperator, every type of activation, by tensor and
by channel, and dynamic). All multiplications must be on the engine, and the result must agree with ONNX
Runtime's on the same quantized model, within the error that quantization causes in the float model.
Prints a line for each.

    quantized_models_test.py ANEMONE
"""

import json
import logging
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

# Everything is on the engine except the quantizers of the model's input and output
# (--require-engine-share counts multiplications).
SHARE = 0.99
# Cosine similarity to ONNX Runtime's result for the same model. In a grid of 255 steps, a few elements in
# a hundred are rounded to the other side by fp16, which is an error of a whole step. There is no rounding
# to a grid of 65535 steps. A grid found at run time is removed, which is an error of half a step.
LIKENESS = {8: 0.999, 16: 0.9999, 0: 0.9995}
MAX_REL = {8: 0.05, 16: 0.02, 0: 0.05}  # the largest error over the range


class Weights:
    def __init__(self):
        self.random = np.random.default_rng(3)
        self.initializers, self.nodes = [], []

    def add(self, *shape, scale):
        name = f"w{len(self.initializers)}"
        values = self.random.standard_normal(shape).astype(np.float32) * np.float32(scale)
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, values):
        name = f"w{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(values), name))
        return name

    def node(self, op, *inputs, **attributes):
        name = f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def model(self, shape, last):
        self.nodes[-1].output[0] = "y"
        graph = helper.make_graph(
            self.nodes,
            last,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            self.initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        return onnx.shape_inference.infer_shapes(model, strict_mode=True)


def small_resnet():
    w = Weights()

    def conv(x, channels, to, size, stride=1, group=1):
        weight = w.add(to, channels // group, size, size, scale=(2 * group / channels) ** 0.5 / size)
        bias = w.add(to, scale=0.05)
        return w.node("Conv", x, weight, bias, strides=[stride] * 2, pads=[size // 2] * 4, group=group)

    def block(x, channels, to, stride):
        y = w.node("Relu", conv(x, channels, to, 3, stride))
        y = conv(y, to, to, 3)
        skip = x if channels == to and stride == 1 else conv(x, channels, to, 1, stride)
        return w.node("Relu", w.node("Add", y, skip))

    x = w.node("Relu", conv("x", 3, 16, 7, 2))
    x = w.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x = block(block(x, 16, 16, 1), 16, 32, 2)
    x = w.node("Relu", conv(x, 32, 32, 3, group=32))
    x = w.node("Flatten", w.node("GlobalAveragePool", x))
    w.node("Gemm", x, w.add(32, 20, scale=0.2), w.add(20, scale=0.1))
    return w.model([1, 3, 64, 64], "resnet")


def small_encoder(width=32, heads=4, length=12):
    w = Weights()

    def linear(x, rows, columns):
        y = w.node("MatMul", x, w.add(rows, columns, scale=rows**-0.5))
        return w.node("Add", y, w.add(columns, scale=0.05))

    def by_head(x, order):
        shape = w.constant(np.array([1, length, heads, width // heads]))
        return w.node("Transpose", w.node("Reshape", x, shape), perm=order)

    def normal(x):
        gain, bias = w.constant(np.ones(width, np.float32)), w.add(width, scale=0.1)
        return w.node("LayerNormalization", x, gain, bias)

    x = "x"
    for _ in range(2):
        q, v = (by_head(linear(x, width, width), [0, 2, 1, 3]) for _ in range(2))
        k = by_head(linear(x, width, width), [0, 2, 3, 1])
        scores = w.node("Mul", w.node("MatMul", q, k), w.constant(np.float32((width / heads) ** -0.5)))
        y = w.node("MatMul", w.node("Softmax", scores), v)
        y = w.node("Transpose", y, perm=[0, 2, 1, 3])
        y = w.node("Reshape", y, w.constant(np.array([1, length, width])))
        x = normal(w.node("Add", x, linear(y, width, width)))
        y = w.node("Relu", linear(x, width, 4 * width))
        x = normal(w.node("Add", x, linear(y, 4 * width, width)))
    return w.model([1, length, width], "encoder")


def small_lstm(length=6, inputs=24, hidden=16):
    w = Weights()
    weights = (w.add(2, 4 * hidden, n, scale=n**-0.5) for n in (inputs, hidden))
    w.node("LSTM", "x", *weights, w.add(2, 8 * hidden, scale=0.1), direction="bidirectional",
           hidden_size=hidden)
    return w.model([length, 1, inputs], "lstm")


class Samples(CalibrationDataReader):
    def __init__(self, model):
        dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        random = np.random.default_rng(0)
        self.left = [{"x": random.random(dims, np.float32)} for _ in range(4)]

    def get_next(self):
        return self.left.pop() if self.left else None


INT8, UINT8, INT16, UINT16 = QuantType.QInt8, QuantType.QUInt8, QuantType.QInt16, QuantType.QUInt16
QDQ, QOPERATOR = QuantFormat.QDQ, QuantFormat.QOperator
# Format, activations, weights, by channel, symmetric.
STATIC = [
    (QDQ, UINT8, INT8, False, False),
    (QDQ, UINT8, UINT8, True, False),
    (QDQ, INT8, INT8, True, False),
    (QDQ, INT8, INT8, True, True),
    (QDQ, UINT16, INT8, False, False),
    (QDQ, INT16, INT8, True, True),
    (QOPERATOR, UINT8, INT8, False, False),
    (QOPERATOR, INT8, INT8, True, False),
]


# Of dynamic quantization: weights, by channel.
DYNAMIC = [(INT8, False), (UINT8, True)]


def quantized(model, folder, static=True):
    """Tuples of a name, the bits of the activations (0: found at run time), and a file.

    int8 weights have 7 bits, because ONNX Runtime's sums overflow on x86 processors without VNNI."""
    original = folder / "model.onnx"
    onnx.save(model, original)
    for form, activations, weights, by_channel, symmetric in STATIC if static else []:
        name = f"{form.name}-{activations.name}-{weights.name}"
        name += ("-by-channel" if by_channel else "") + ("-symmetric" if symmetric else "")
        path = folder / f"{name}.onnx"
        quantize_static(
            original,
            path,
            Samples(model),
            quant_format=form,
            activation_type=activations,
            weight_type=weights,
            per_channel=by_channel,
            reduce_range=weights == INT8,
            extra_options={"ActivationSymmetric": symmetric},
        )
        yield name, 16 if activations in (INT16, UINT16) else 8, path
    for weights, by_channel in DYNAMIC:
        name = f"dynamic-{weights.name}" + ("-by-channel" if by_channel else "")
        path = folder / f"{name}.onnx"
        quantize_dynamic(original, path, weight_type=weights, per_channel=by_channel,
                         reduce_range=weights == INT8)
        yield name, 0, path


def weight_forms(folder):
    """A product with a weight in each form of DequantizeLinear."""
    random = np.random.default_rng(5)
    by_column, by_block = {"axis": 1}, {"axis": 0, "block_size": 16}
    for name, kind, low, high, scales, zeros, attributes in (
        ("int8", "INT8", -127, 128, [], None, {}),
        ("int8-by-column", "INT8", -127, 128, [64], None, by_column),
        ("uint8-by-block", "UINT8", 0, 256, [4, 64], [4, 64], by_block),
        ("int4-by-block", "INT4", -8, 8, [4, 64], None, by_block),
        ("uint4-by-column", "UINT4", 0, 16, [64], [64], by_column),
        ("int16-by-column", "INT16", -3000, 3000, [64], None, by_column),
        ("float8-e4m3", "FLOAT8E4M3FN", -200, 200, [], None, {}),
        ("float8-e5m2-by-column", "FLOAT8E5M2", -200, 200, [64], None, by_column),
    ):
        codes = random.integers(low, high, 64 * 64).tolist()
        steps = (random.random(int(np.prod(scales))) / (64 * high) + 1e-3 / high).tolist()
        kind = getattr(TensorProto, kind)
        tensors = [
            helper.make_tensor("w", kind, [64, 64], codes),
            helper.make_tensor("s", TensorProto.FLOAT, scales, steps),
        ]
        if zeros:
            points = random.integers(low, high, int(np.prod(zeros))).tolist()
            tensors.append(helper.make_tensor("z", kind, zeros, points))
        graph = helper.make_graph(
            [
                helper.make_node("DequantizeLinear", [t.name for t in tensors], ["f"], **attributes),
                helper.make_node("MatMul", ["x", "f"], ["y"]),
            ],
            name,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 64])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 64])],
            tensors,
        )
        path = folder / f"{name}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
        yield name, 16, path


def failures(program, label, bits, path):
    words = [program, "run", "--json", "--compare", "--tolerance", f"cosine={LIKENESS[bits]}", "--tolerance",
             f"max_rel={MAX_REL[bits]}", str(path)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        return [f"exit code {done.returncode}: {done.stderr.strip()}"]
    result = json.loads(done.stdout)
    share, cosine = result["plan"]["engine_macs_share"], result["outputs"][0]["cosine"]
    segments = result["plan"]["engine_segments"], result["plan"]["cpu_segments"]
    print(f"{label}: {share:.3f} of MACs in {segments[0]}+{segments[1]} segments, cosine {cosine:.6f}, "
          f"error {result['outputs'][0]['max_rel_error']:.4f} of the range")
    wrong = []
    if share is None or share < SHARE:
        wrong.append(f"{share} of the multiplications are on the engine, want {SHARE}")
    if done.returncode == 3:
        error = result["outputs"][0]["max_rel_error"]
        wrong.append(f"cosine {cosine} and an error of {error} of the range, want {LIKENESS[bits]} "
                     f"and {MAX_REL[bits]}")
    return wrong


def main():
    program = sys.argv[1]
    logging.disable(logging.WARNING)  # hides the quantizer's advice
    failed = 0
    for name, model in (("resnet", small_resnet()), ("encoder", small_encoder()),
                        ("lstm", small_lstm())):
        with tempfile.TemporaryDirectory() as folder:
            for form, bits, path in quantized(model, pathlib.Path(folder), static=name != "lstm"):
                for why in failures(program, f"{name} {form}", bits, path):
                    failed += 1
                    print(f"FAILED {name} {form}: {why}")
    with tempfile.TemporaryDirectory() as folder:
        for name, bits, path in weight_forms(pathlib.Path(folder)):
            for why in failures(program, f"weight {name}", bits, path):
                failed += 1
                print(f"FAILED weight {name}: {why}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
