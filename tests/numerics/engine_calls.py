"""Builds calls of the engine's units on fp16 numbers, for the program of golden_main.cc, and reads
their results as bits. The tests of exact mode use it.
"""

import json
import math
import random
import struct
import subprocess


def bits_of(value):
    try:
        return struct.unpack("<H", struct.pack("<e", value))[0]
    except OverflowError:
        return 0xfc00 if value < 0 else 0x7c00


def value_of(bits):
    return struct.unpack("<e", struct.pack("<H", bits))[0]


def f16(x):
    return value_of(bits_of(x))


def flat(values):
    if isinstance(values, (list, tuple, range)):
        return [x for value in values for x in flat(value)]
    return [float(values)]


def some(count, scale=1.0, seed=1):
    uniform = random.Random(seed).uniform
    return [f16(uniform(-scale, scale)) for _ in range(count)]


class Call:
    def __init__(self, op, **attrs):
        self.line = {"op": op, "attrs": attrs, "inputs": [], "values": []}

    def add(self, name, shape, values, role="input", dtype="fp16"):
        values = flat(values)
        assert len(values) == math.prod(shape), (name, shape, len(values))
        if dtype == "fp16":
            values = [bits_of(v) for v in values]
        elif dtype == "uint8":
            values = [int(v) for v in values]
        return self.append(name, shape, values, role, dtype)

    def append(self, name, shape, values, role="input", dtype="fp16"):
        self.line["inputs"].append({"name": name, "shape": list(shape), "dtype": dtype,
                                    "role": role})
        self.line["values"].append(values)
        return self

    def const(self, name, shape, values):
        return self.add(name, shape, values, "const")

    def after(self, call, shape):
        """An input that is the output of an earlier call."""
        return self.append(f"%{call}", shape, [])


def row(values):
    return [1, 1, 1, len(flat(values))]


def unary(op, x, **attrs):
    return [Call(op, **attrs).add("x", row(x), x)]


def binary(op, x, y, constant=False):
    return [Call(op).add("x", row(x), x).add("y", row(y), y, "const" if constant else "input")]


def reduction(op, x):
    return [Call(op, axes=[-1], keep_dims=True).add("x", row(x), x)]


def matmul(a, b):
    a, b = flat(a), flat(b)
    return [Call("matmul", transpose_x=False, transpose_y=False).add("x", [1, 1, 1, len(a)], a)
            .add("y", [1, 1, len(b), 1], b)]


def linear(inputs):
    call = Call("linear").add("x", [1, len(flat(inputs["a"]))], inputs["a"])
    call.const("weight", [1, len(flat(inputs["b"]))], inputs["b"])
    if "bias" in inputs:
        call.const("bias", [1], inputs["bias"])
    return [call]


def conv(attrs, inputs, weights=None):
    cin, cout = attrs.get("cin", 1), attrs.get("cout", 1)
    x = flat(inputs["x"])
    call = Call("conv", strides=[1, 1], pad_type="valid", groups=1)
    call.add("x", [1, cin, 1, len(x) // cin], x)
    call.const("weight", [cout, cin, *attrs.get("kernel", [1, 1])],
               flat(inputs["w"]) if weights is None else weights)
    if "bias" in inputs:
        call.const("bias", [cout], inputs["bias"])
    return [call]


def conv_then_relu(attrs, inputs):
    calls = conv(attrs, inputs)
    return calls + [Call("relu").after(0, row(inputs["x"]))]


def conv_transpose(attrs, inputs):
    x = flat(inputs["x"])
    return [Call("conv_transpose", strides=attrs["stride"], pad_type="valid", groups=1)
            .add("x", [1, 1, 1, len(x)], x).const("weight", [1, 1, *attrs["kernel"]], inputs["w"])]


def int8_conv(attrs, inputs, option):
    """Scales and rounds the weights (premul), or scales the sum of the integers (postscale)."""
    scale, zero = flat(inputs["s"])[0], flat(inputs["z"])[0]
    integers = [q - zero for q in flat(inputs["q"])]
    if option == "premul":
        return conv(attrs, inputs, [f16(scale * q) for q in integers])
    return conv(attrs, inputs, integers) + [
        Call("mul").after(0, [1, 1, 1, 1]).const("y", [1, 1, 1, 1], [scale])]


def slice_call(attrs, inputs):
    x = flat(inputs["x"])
    axis = "NCHW".index(attrs["axis"])
    shape, begin, size = [1] * 4, [0] * 4, [1] * 4
    shape[axis], begin[axis] = len(x), attrs["begin"]
    return [Call("slice_by_size", begin=begin, size=size).add("x", shape, x)]


def layer_norm(inputs, x):
    n = len(x)
    return [Call("layer_norm", axes=[-1], epsilon=float(inputs.get("eps", 0)))
            .add("x", [1, 1, 1, n], x).const("gamma", [n], inputs.get("gamma", [1.0] * n))
            .const("beta", [n], inputs.get("beta", [0.0] * n))]


def rms_norm(inputs, x):
    """As its lowering writes it, with sums for means (kernels/rewrites/rms_normalization.cc)."""
    n = len(x)
    return [Call("L2Normalization", Dimension=["Width"],
                 Epsilon=bits_of(n * float(inputs.get("eps", 0)))).add("x", row(x), x),
            Call("GOC", ScaleScalar=bits_of(math.sqrt(n)), BiasScalar=0).after(0, row(x))]


def pool(op, attrs, x):
    """One window in a corner of a larger input: one over the whole would be a Reduction."""
    height, width = attrs["kernel"]
    rows = [flat(x)[i * width:(i + 1) * width] + [0.0] for i in range(height)]
    more = {"exclude_padding_from_average": True} if op == "avg_pool" else {}
    return [Call(op, kernel_sizes=[height, width], strides=[2, 2], pad_type="valid", **more)
            .add("x", [1, 1, height + 1, width + 1], rows + [[0.0] * (width + 1)])]


def batch_norm(inputs, x):
    call = Call("batch_norm", epsilon=float(inputs["eps"])).add("x", row(x), x)
    for name, key in (("mean", "mean"), ("variance", "var"), ("gamma", "gamma"), ("beta", "beta")):
        call.const(name, [1], [inputs[key]])
    return [call]


def scaled_elementwise(attrs, inputs):
    x, z = flat(inputs["x"]), flat(inputs["z"])
    return [Call("ScaledElementWise", Type=attrs["Type"], Scale=bits_of(float(inputs["scale"])))
            .add("x", row(x), x).add("z", row(z), z)]


def position(index):
    """The argmax of 2050 elements, the largest of which is at `index`."""
    x = [0.0] * 2050
    x[int(index)] = 1.0
    return [Call("GlobalArgMinMax", Type="Max", Dimension="Width").add("x", row(x), x)]


def plain_log_sum_exp(x):
    return unary("exp", x) + [
        Call("reduce_sum", axes=[-1], keep_dims=True).after(0, row(x)),
        Call("log", epsilon=0.0).after(1, [1, 1, 1, 1])]


def through_port(x):
    """Passes fp32 numbers of the host through a port and a copy."""
    return [Call("transpose", perm=[0, 1, 3, 2]).add("x", row(x), x, dtype="fp32")]


class Program:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, calls, target, options, key="bits"):
        """The bits of the output. AssertionError, with both routes' answers, if there are none."""
        work = calls if isinstance(calls, dict) else {"calls": [call.line for call in calls]}
        told = []
        for route in ("mil", "netplist"):
            line = {"target": target.lower(), "route": route, "options": options, **work}
            self.process.stdin.write(json.dumps(line) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
            if key in answer:
                return answer[key]
            told.append(f"{route}: {answer}")
        raise AssertionError("; ".join(told))

    def run(self, calls, target, options=None):
        """Like ask(), but a row that is longer than an axis may be is run in pieces."""
        widest = 16384
        if isinstance(calls, dict) or len(calls) != 1 or len(calls[0].line["inputs"]) != 1 or \
                calls[0].line["inputs"][0]["shape"][-1] <= widest:
            return self.ask(calls, target, options or {})
        line, bits = calls[0].line, []
        for first in range(0, len(line["values"][0]), widest):
            part = line["values"][0][first:first + widest]
            call = Call(line["op"], **line["attrs"]).append("x", [1, 1, 1, len(part)], part)
            bits += self.ask([call], target, options or {})
        return bits
