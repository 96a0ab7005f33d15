"""The operators of ai.anemone in an unmodified ONNX Runtime, from libonnxruntime_ane_ep; and in models
whose nodes a target refuses."""

import json
import sys
import unittest

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from support import CliTest, anemone, model, tensor

LIBRARY = sys.argv.pop(1)
DOMAIN = "ai.anemone"


def bits(number):
    """The integer value of a key with fp16 bits."""
    return int(np.float16(number).view(np.uint16))


def random(shape, seed=1, most=2.0):
    return np.random.default_rng(seed).uniform(-most, most, shape).astype(np.float16).astype(
        np.float32)


def one_node(op, inputs, attributes, constants=(), kind=TensorProto.FLOAT):
    """A model of one node. The inputs whose numbers are in `constants` are initializers."""
    names = [f"x{i}" for i in range(len(inputs))]
    dtype = np.float16 if kind == TensorProto.FLOAT16 else np.float32
    fed = [tensor(n, x.shape, kind) for i, (n, x) in enumerate(zip(names, inputs))
           if i not in constants]
    held = [numpy_helper.from_array(inputs[i].astype(dtype), names[i]) for i in constants]
    node = helper.make_node(op, names, ["y"], name="it", domain=DOMAIN, **attributes)
    return model([node], fed, [helper.make_tensor_value_info("y", kind, None)], held,
                 domains=[DOMAIN])


def session(made):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.register_custom_ops_library(LIBRARY)
    return ort.InferenceSession(made.SerializeToString(), options,
                                providers=["CPUExecutionProvider"])


def shuffled(x, fy, fx, channel_major):
    n, c, h, w = x.shape
    out = c // (fy * fx)
    if channel_major:
        blocks = x.reshape(n, out, fy, fx, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        blocks = x.reshape(n, fy, fx, out, h, w).transpose(0, 3, 4, 1, 5, 2)
    return blocks.reshape(n, out, h * fy, w * fx)


def unshuffled(x, fy, fx, channel_major):
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // fy, fy, w // fx, fx)
    order = (0, 1, 3, 5, 2, 4) if channel_major else (0, 3, 5, 1, 2, 4)
    return blocks.transpose(order).reshape(n, c * fy * fx, h // fy, w // fx)


def to_batch(x, fy, fx):
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // fy, fy, w // fx, fx).transpose(0, 3, 5, 1, 2, 4)
    return blocks.reshape(n * fy * fx, c, h // fy, w // fx)


def attention(q, k, v, scale, mask):
    scores = np.einsum("nqhd,nkhd->nhqk", q, k) * scale[0] + mask[:, :, 0][:, None]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("nhqk,nkhd->nqhd", weights / weights.sum(-1, keepdims=True), v)


def furthest(points, count):
    points = points[0, :, 0].T
    chosen, nearest = [0], np.full(len(points), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, ((points - points[chosen[-1]]) ** 2).sum(1))
        chosen.append(int(nearest.argmax()))
    return points[chosen].T[None, :, None]


def within(centroids, points, radius):
    gap = points[0, :, 0].T[:, None] - centroids[0, :, 0].T[None]
    return np.where(np.sqrt((gap ** 2).sum(-1)) <= radius, 2.0 ** -24, 0)[None, None]


def lrn(x, alpha, beta, k, size):
    sums = np.stack([(x[:, max(0, c - (size - 1) // 2):c + size // 2 + 1] ** 2).sum(1)
                     for c in range(x.shape[1])], 1)
    normalized = x * (k + alpha / size * sums) ** -beta
    return np.concatenate([normalized[:, :size], x[:, size:]], 1)  # only the first `size` channels


def unfolded(x, kh, kw):
    n, c, h, w = x.shape
    views = [x[:, :, i:i + h - kh + 1, j:j + w - kw + 1] for i in range(kh) for j in range(kw)]
    return np.stack(views, 2).reshape(n, c * kh * kw, h - kh + 1, w - kw + 1)


def span(x, epsilon):
    least, most = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    return (x - least) / (most - least + epsilon)


LANES = {"SortDimension": "Width", "VectorDimension": "Channel", "SortIndices": [1]}
FACTORS = {"FactorX": 4, "FactorY": 2, "FactorZ": 1}
SLICE = {"DynamicSliceAxisOrder": "Width",
         "DynamicSliceInfo": '[{"Coordinate": "Width", "SliceSize": 3}]',
         "PaddingInfo": '[{"Coordinate": "Width", "PaddingMode": "Background"}]',
         "BackgroundValue": -7.0}
IMAGE, WIDE, ROWS = random((2, 3, 4, 8)), random((2, 24, 2, 3), 2), random((1, 3, 1, 9), 3)
QUERY, KEY, VALUE = (random((1, s, 3, 8), i) for i, s in enumerate((10, 12, 12)))
MASK, SCALE = random((1, 10, 1, 12), 7), np.float32([0.375])

# operator: (inputs, attributes, expected result by NumPy, constant inputs)
CASES = {
    "SDPA": ([QUERY, KEY, VALUE, SCALE, MASK], {"SubtractMax": 1}, attention, [3]),
    "Sort": ([ROWS], {"Direction": "Ascending", **LANES},
             lambda x: x[..., np.argsort(x[0, 1, 0], kind="stable")], []),
    "TopK": ([ROWS], {"Type": "Max", "K": 2, "Indices": 1, **LANES},
             lambda x: np.argsort(-x[:, 1:2], -1, kind="stable")[..., :2], []),
    "ArgMinMax": ([IMAGE], {"Mode": "ChannelArgMin"}, lambda x: x.argmin(1, keepdims=True), []),
    "GlobalArgMinMax": ([IMAGE], {"Type": "Max", "Dimension": "Height"},
                        lambda x: x.argmax(2, keepdims=True), []),
    "PixelShuffle": ([WIDE], FACTORS, lambda x: shuffled(x, 2, 4, True), []),
    "PixelUnshuffle": ([IMAGE], FACTORS, lambda x: unshuffled(x, 2, 4, True), []),
    "ChannelToSpace": ([WIDE], FACTORS, lambda x: shuffled(x, 2, 4, False), []),
    "SpaceToChannel": ([IMAGE], FACTORS, lambda x: unshuffled(x, 2, 4, False), []),
    "SpaceToBatch": ([IMAGE], FACTORS, lambda x: to_batch(x, 2, 4), []),
    "BatchToSpace": ([to_batch(IMAGE, 2, 4)], FACTORS, lambda x: IMAGE, []),
    "MinMaxNormalization": ([IMAGE], {"Dimension": "Width", "Epsilon": bits(0.01)},
                            lambda x: span(x, 0.01), []),
    "LocalResponseNormalization": (
        [WIDE], {"KernelChannel": 5, "Alpha": bits(0.5), "Beta": 0.75, "K": 2.0},
        lambda x: lrn(x, 0.5, 0.75, 2, 5), []),
    "ScaledElementWise": ([IMAGE, IMAGE[::-1]], {"Type": "Add", "Scale": bits(-2)},
                          lambda x, z: -2 * (x + z), []),
    "CrossCorrelation": (
        [random((1, 1, 6, 7)), random((1, 1, 1, 6), 4)], {"TemplateWidth": 3, "TemplateHeight": 2},
        lambda x, t: (unfolded(x, 2, 3) * t.reshape(1, 6, 1, 1)).sum(1, keepdims=True), []),
    "CrossProduct": ([random((4, 3, 1, 1)), random((4, 3, 1, 1), 4)], {},
                     lambda x, z: np.cross(x, z, axis=1), []),
    "FurthestPointSampling": ([random((1, 3, 1, 40))], {"CentroidCount": 9, "DistanceMetric": "L2"},
                              lambda x: furthest(x, 9), []),
    "RadiusSearch": ([random((1, 3, 1, 5)), random((1, 3, 1, 40), 4)], {"Radius": 1.5},
                     lambda c, p: within(c, p, 1.5), []),
    "CostVolume": (
        [random((1, 1, 3, 5)), random((1, 1, 3, 9), 4)],
        {"DisparityDirection": 0, "DisparityRange": 4},
        lambda a, r: np.concatenate([abs(a - r[..., d:d + 5]) for d in range(5)], 1), []),
    "InputView": ([IMAGE], {"Dimension": "Width", "Offset": 1, "Size": 3, "Step": 2},
                  lambda x: x[..., 1:7:2], []),
    "DynamicSlice": ([IMAGE, np.float32([6])], SLICE, lambda x, i: np.concatenate(
        [x[..., 6:], np.full((2, 3, 4, 1), -7)], -1), []),
    "Flatten": ([IMAGE], {"FlattenType": "NCHW", "Mode": "NCHW"},
                lambda x: x.reshape(2, 1, 1, -1), []),
    "Dropout": ([IMAGE], {}, lambda x: x, []),
    "Broadcast": ([random((2, 3, 1, 4))], {"BroadcastInfo": '[{"Dimension": "Height", "Size": 5}]'},
                  lambda x: x.repeat(5, 2), []),
    "GOC": ([IMAGE, np.float32([1, -2, 0.5]), np.float32([0, 3, 0.25])], {},
            lambda x, s, b: x * s.reshape(3, 1, 1) + b.reshape(3, 1, 1), [1, 2]),
    "DynamicGOC": ([IMAGE, random((1, 3, 1, 1), 4), random((1, 3, 1, 1), 5)], {},
                   lambda x, s, b: x * s + b, []),
    "KernelRasterizer": ([IMAGE], {"KernelWidth": 3, "KernelHeight": 2, "NumGroups": 3,
                                   "RasterizerMode": "UnfoldedChannels"},
                         lambda x: unfolded(x, 2, 3), []),
}


class CustomOpsTest(CliTest):
    def run_on_cpu(self, op, kind=TensorProto.FLOAT):
        inputs, attributes, _, constants = CASES[op]
        dtype = np.float16 if kind == TensorProto.FLOAT16 else np.float32
        fed = {f"x{i}": np.ascontiguousarray(x, dtype) for i, x in enumerate(inputs)
               if i not in constants}
        return session(one_node(op, inputs, attributes, constants, kind)).run(None, fed)[0]

    def test_every_operator_is_numpys_formula(self):
        for op, (inputs, _, formula, _) in CASES.items():
            with self.subTest(op):
                want = formula(*(x.astype(np.float64) for x in inputs))
                got = self.run_on_cpu(op)
                self.assertEqual((got.dtype, got.shape), (np.float32, want.shape))
                largest = max(1e-3, abs(want).max())
                self.assertLessEqual(abs(got - want).max(), 2.0 ** -9 * largest)

    def test_float16_has_the_same_numbers(self):
        for op in CASES:
            with self.subTest(op):
                got = self.run_on_cpu(op, TensorProto.FLOAT16)
                self.assertEqual(got.dtype, np.float16)
                np.testing.assert_array_equal(got.astype(np.float32), self.run_on_cpu(op))

    def test_every_operator_but_one_has_a_case(self):
        done = anemone("units", "--json")
        named = {name.removeprefix(DOMAIN + ".") for unit in json.loads(done.stdout)["units"]
                 for name in unit["onnx_operators"] if name.startswith(DOMAIN + ".")}
        self.assertEqual(named - {"MatrixDecomposition"}, set(CASES))

    def test_inputs_are_rounded_to_fp16(self):
        x = np.float32([[2049, 1e6, np.nan, 1 + 2.0 ** -12]])
        got = session(one_node("Dropout", [x], {})).run(None, {"x0": x})[0]
        np.testing.assert_array_equal(got, np.float32([[2048, np.inf, np.inf, 1]]))

    def test_what_has_no_arithmetic_is_refused_by_name(self):
        made = one_node("MatrixDecomposition", [random((1, 6, 1, 1))],
                        {"Type": "CrossProductOrthoNormalization"})
        with self.assertRaisesRegex(Exception, r"node 'it' \(ai.anemone.MatrixDecomposition\): can be "
                                               "checked but not run"):
            session(made)

    def test_a_refused_node_runs_on_the_cpu_between_engine_nodes(self):
        nodes = [helper.make_node("Relu", ["x"], ["a"]),
                 helper.make_node("PixelShuffle", ["a"], ["b"], domain=DOMAIN, **FACTORS),
                 helper.make_node("Relu", ["b"], ["c"]),
                 helper.make_node("TopK", ["c"], ["y"], domain=DOMAIN, Type="Max", K=2,
                                  SortDimension="Width", VectorDimension="Channel",
                                  SortIndices=[0])]
        made = model(nodes, [tensor("x", (2, 24, 2, 3))], [tensor("y", (2, 3, 4, 2))],
                     domains=[DOMAIN])
        path = self.write(made)
        for target, placements in [("h11", ["engine", "cpu", "engine", "cpu"]), ("h16", ["engine"] * 4)]:
            with self.subTest(target):
                plan = json.loads(anemone("check", path, "--target", target, "--json").stdout)
                entries = plan["models"][0]["targets"][0]["nodes"]
                self.assertEqual(placements, [entry["placement"] for entry in entries])
                for entry in entries:
                    if entry["placement"] == "cpu":
                        self.assertNotEqual("coverage", entry["layer"], entry)
                done = anemone("run", path, "--target", target, "--compare", "--json")
                self.assertEqual(0, done.returncode, done.stderr)
                outputs = json.loads(done.stdout)["outputs"]
                self.assertLess(outputs[0]["max_abs_error"], 1e-3)

    def test_a_malformed_node_is_an_error_that_names_the_key(self):
        made = one_node("TopK", [ROWS], {"Type": "Max", "K": "many", **LANES})
        self.expect_error(anemone("check", self.write(made)), "'K': want INT, got STRING")
        with self.assertRaisesRegex(Exception, "'K': want INT"):
            session(made)

    def test_dims_that_do_not_fit_are_an_error_of_the_run(self):
        made = one_node("CrossProduct", [random((4, 3, 1, 1)), random((5, 3, 1, 1))], {})
        with self.assertRaisesRegex(Exception, "want two vectors of one shape"):
            session(made).run(None, {"x0": random((4, 3, 1, 1)), "x1": random((5, 3, 1, 1))})


if __name__ == "__main__":
    unittest.main()
