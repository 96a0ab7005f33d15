"""Compares units that no golden vector runs with their formulas, in exact mode; and tests options
of rules that have no probe.

Usage: units_test.py [EMULATOR...] GOLDEN_PROGRAM.
"""

import math
import sys

import engine_calls
from engine_calls import Call, bits_of, f16, row, some, value_of

INF = math.inf


def grid(values, *shape):
    """A flat list as nested lists."""
    if len(shape) == 1:
        return list(values)
    size = math.prod(shape[1:])
    return [grid(values[i * size:(i + 1) * size], *shape[1:]) for i in range(shape[0])]


def local_response(x, size, alpha, beta, k):
    """Only the first `size` of the five channels are normalized."""
    x = grid(x, 5, 6)
    window = [range(max(0, c - (size - 1) // 2), min(5, c + size // 2 + 1)) for c in range(5)]
    return [x[c][i] / (k + alpha / size * sum(x[j][i] ** 2 for j in window[c])) ** beta
            if c < size else x[c][i] for c in range(5) for i in range(6)]


def local_response_call(size):
    keys = {"KernelChannel": size, "Alpha": bits_of(ALPHA), "Beta": 0.75, "K": 1.0}
    return Call("LocalResponseNormalization", **keys).add("x", [1, 5, 2, 3], X)


def correlation(x, template):
    x, template = grid(x, 6, 7), grid(template, 2, 3)
    return [sum(x[i + a][j + b] * template[a][b] for a in range(2) for b in range(3))
            for i in range(5) for j in range(5)]


def cost_volume(aux, ref):
    aux, ref = grid(aux, 3, 5), grid(ref, 3, 7)
    return [abs(aux[h][w] - ref[h][w + d]) for d in range(3) for h in range(3) for w in range(5)]


def cross(x, z):
    return [x[(i + 1) % 3] * z[(i + 2) % 3] - x[(i + 2) % 3] * z[(i + 1) % 3] for i in range(3)]


def upsampled(x, size):
    """A row upsampled by 2, linear with half-pixel coordinates."""
    at = [min(max((i + 0.5) / 2 - 0.5, 0), size - 1) for i in range(2 * size)]
    def lerp(p):
        first = int(p)
        return x[first] + (p - first) * (x[min(first + 1, size - 1)] - x[first])
    return [lerp(p) for p in at]


def onnx(text, values):
    return {"onnx": text, "values": [[bits_of(v) for v in values]]}


def conv_then_goc():
    """(2048 + 1) * 2 - 4096: 2 if the sum is not rounded, else 0."""
    conv = Call("conv", strides=[1, 1], pad_type="valid", groups=1)
    conv.add("x", [1, 2, 1, 1], [2048.0, 1.0]).const("weight", [1, 2, 1, 1], [1.0, 1.0])
    return [conv, Call("GOC", ScaleScalar=bits_of(2.0), BiasScalar=bits_of(-4096.0))
            .after(0, [1, 1, 1, 1])]


def conv_then_gain(x, weight, gain):
    conv = Call("conv", strides=[1, 1], pad_type="valid", groups=1)
    conv.add("x", [1, 1, 1, 1], [x]).const("weight", [1, 1, 1, 1], [weight])
    return [conv, Call("GOC", ScaleScalar=bits_of(gain), BiasScalar=0).after(0, [1, 1, 1, 1])]


def gathered(values):
    return onnx(f"(float[1,1,1,{len(values)}] x) => (float[1,1,1,3] y) "
                "<int64[3] i = {0, 3, 1}> { y = Gather<axis = 3>(x, i) }", values)


def broadcast(axis, value):
    return [Call("Broadcast", BroadcastInfo=[{"Dimension": axis, "Size": 2}])
            .add("x", [1, 1, 1, 1], [value])]


def image(value):
    """A scale and an addend of a uint8 value, with one rounding or two."""
    return [Call("GOC", ScaleScalar=bits_of(1 / 255), BiasScalar=bits_of(1 / 3))
            .add("x", [1, 1, 1, 1], [value], dtype="uint8")]


X, Y, Z = some(30, 4.0), some(42, 2.0, seed=2), some(6, 1.0, seed=3)
AUX, REF = some(15, 3.0), some(21, 3.0, seed=4)
ALPHA = f16(0.02)
SIX = some(6, 5.0, seed=5)
SPAN = [(v - min(SIX)) / (max(SIX) - min(SIX)) for v in SIX]
PIXEL = 77
# An input, a weight and a gain whose result depends on which product is rounded first.
FOLDED = next((x, w, g) for x, w, g in zip(some(99), some(99, seed=6), some(99, seed=7))
              if f16(f16(x * w) * g) != f16(x * f16(w * g)))
SCALE, BIAS = f16(1 / 255), f16(1 / 3)

# name, target, options, calls, expected values, tolerance relative to the largest value
CASES = [
    ("local response", "H13", {}, [local_response_call(3)],
     local_response(X, 3, ALPHA, 0.75, 1.0), 1e-3),
    ("local response of all channels", "H13", {}, [local_response_call(6)],
     local_response(X, 6, ALPHA, 0.75, 1.0), 1e-3),
    ("local response by tables", "H13", {"nrm-lrn": "pow-table"}, [local_response_call(3)],
     local_response(X, 3, ALPHA, 0.75, 1.0), 2e-3),
    ("min-max", "H13", {}, [Call("MinMaxNormalization", Dimension="Width", Epsilon=0)
                            .add("x", row(SIX), SIX)], SPAN, 2e-3),
    ("cross-correlation", "H13", {},
     [Call("CrossCorrelation", TemplateWidth=3, TemplateHeight=2)
      .add("x", [1, 1, 6, 7], Y).add("t", [1, 1, 1, 6], Z)], correlation(Y, Z), 2e-3),
    ("cost volume", "H13", {}, [Call("CostVolume", DisparityDirection=0, DisparityRange=2)
                                .add("a", [1, 1, 3, 5], AUX).add("r", [1, 1, 3, 7], REF)],
     cost_volume(AUX, REF), 1e-3),
    ("cross product", "H13", {}, [Call("CrossProduct").add("x", [1, 3, 1, 1], X[:3])
                                  .add("z", [1, 3, 1, 1], Y[:3])], cross(X[:3], Y[:3]), 1e-3),
    # 101 * 99 = 9999, which fp16 cannot represent, minus 100 * 100.
    ("cross product, wide", "H13", {"ew-hidden": "wide"},
     [Call("CrossProduct").add("x", [1, 3, 1, 1], [101.0, 100.0, 0.0])
      .add("z", [1, 3, 1, 1], [100.0, 99.0, 0.0])], [0.0, 0.0, -1.0], 0),
    ("cross product, steps", "H13", {"ew-hidden": "steps"},
     [Call("CrossProduct").add("x", [1, 3, 1, 1], [101.0, 100.0, 0.0])
      .add("z", [1, 3, 1, 1], [100.0, 99.0, 0.0])], [0.0, 0.0, 0.0], 0),
    *[(f"resize, {option}", "H14", {"ew-texture": option},
       onnx("(float[1,1,1,30] x) => (float[1,1,1,60] y) <float[4] s = {1, 1, 1, 2}> "
            '{ y = Resize<mode = "linear">(x, , s) }', X), upsampled(X, 30), 1e-3)
      for option in ("fp16-weights", "wide")],
    ("gather inside the width", "H13", {}, gathered([5000.0, 2.0, 0.0, 5000.0]),
     [5000.0, INF, 2.0], 0),
    ("gather on a later family", "H15", {}, gathered([5000.0, 2.0, 0.0, 5000.0]),
     [5000.0, 5000.0, 2.0], 0),
    ("broadcast along channels", "H11", {}, broadcast("Channel", 40000.0), [INF, INF], 0),
    ("broadcast along the width", "H11", {}, broadcast("Width", 40000.0), [40000.0, 40000.0], 0),
    ("broadcast of a later family", "H13", {}, broadcast("Channel", 40000.0), [40000.0, 40000.0], 0),
    ("squares, rounded", "H13", {}, engine_calls.reduction("reduce_l2_norm", [300.0, 400.0]),
     [INF], 0),
    ("squares, unrounded", "H13", {"red-l2": "mac-squares"},
     engine_calls.reduction("reduce_sum_square", [300.0, -256.0, 150.0, -1.0]), [INF], 0),
    ("squares that fp16 cannot represent", "H13", {"red-l2": "mac-squares"},
     engine_calls.reduction("reduce_sum_square", [45.03125, 0.0]), [f16(45.03125 ** 2)], 0),
    ("epilogue, separate", "H13", {}, conv_then_goc(), [0.0], 0),
    ("epilogue, fused", "H13", {"mac-epilogue": "fused"}, conv_then_goc(), [2.0], 0),
    ("batch norm after the convolution", "H13", {}, conv_then_gain(*FOLDED),
     [f16(f16(FOLDED[0] * FOLDED[1]) * FOLDED[2])], 0),
    ("batch norm in the weights", "H13", {"nrm-batch": "fold-weights"}, conv_then_gain(*FOLDED),
     [f16(FOLDED[0] * f16(FOLDED[1] * FOLDED[2]))], 0),
    ("bias, rounded first", "H13", {},
     engine_calls.conv({"cin": 2}, {"x": [2048.0, 1.0], "w": [1.0, 1.0], "bias": [1.0]}),
     [2048.0], 0),
    ("bias, wide", "H13", {"mac-bias-type": "wide-add"},
     engine_calls.conv({"cin": 2}, {"x": [2048.0, 1.0], "w": [1.0, 1.0], "bias": [1.0]}),
     [2050.0], 0),
    ("chunks", "H13", {"mac-chunk": "chunk128"},
     engine_calls.matmul([2048.0] + [0.0] * 127 + [1.0] + [0.0] * 127 + [1.0], [1.0] * 257),
     [2048.0], 0),
    ("no chunks", "H13", {},
     engine_calls.matmul([2048.0] + [0.0] * 127 + [1.0] + [0.0] * 127 + [1.0], [1.0] * 257),
     [2050.0], 0),
    ("image, two roundings", "H13", {"st-image-u8": "two-rounding"}, image(PIXEL),
     [f16(f16(SCALE * PIXEL) + BIAS)], 0),
    ("image, one rounding", "H13", {"st-image-u8": "one-rounding"}, image(PIXEL),
     [f16(SCALE * PIXEL + BIAS)], 0),
    *[(f"softmax, {option}", "H13", {"sm-order": option},
       engine_calls.unary("softmax", SIX, axis=-1),
       [math.exp(v) / sum(math.exp(w) for w in SIX) for v in SIX], 2e-3)
      for option in ("fp16-steps", "wide-steps", "recip")],
    *[(f"a NaN at its port, {option}", "H13", {"st-nan-lnvar": option},
       engine_calls.layer_norm({}, [math.nan, 0.0, 0.0, 0.0]), None, 0)
      for option in ("max", "raw")],
]


def agree(want, got, tolerance):
    largest = max((abs(v) for v in want if math.isfinite(v)), default=0.0)
    return len(want) == len(got) and all(
        w == g or abs(w - g) <= tolerance * largest for w, g in zip(want, got))


def main():
    program = engine_calls.Program(sys.argv[1:])
    failed = 0
    for name, target, options, calls, want, tolerance in CASES:
        try:
            got = [value_of(b) for b in program.run(calls, target, options)]
            right = not any(map(math.isnan, got)) if want is None else agree(want, got, tolerance)
        except AssertionError as error:
            right, got = False, error
        if not right:
            failed += 1
            print("FAILED:", name, target, options, "want", want, "got", got)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
