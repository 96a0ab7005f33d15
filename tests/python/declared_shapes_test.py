"""A shape that the model declares, and that a run contradicts: an error, never a result of the declared shape."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from small_models import model  # noqa: E402

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
SIXTEEN = np.arange(16, dtype=np.float32)

# Node, its attributes, the shape of x, the input that says the shape, the shape that is declared.
CASES = [
    ("Reshape", {}, [16], [8, 2], [4, 4]),
    ("Reshape", {"allowzero": 1}, [16], [-1, 8], [4, 4]),
    ("Expand", {}, [1, 16], [3, 1], [8, 16]),
    ("Tile", {}, [1, 16], [3, 1], [8, 16]),
    ("Squeeze", {}, [1, 16, 1], [2], [16, 1]),
    ("Unsqueeze", {}, [16, 1], [2], [1, 16, 1]),
    ("CenterCropPad", {}, [4, 4], [2, 3], [4, 2]),
    ("ConstantOfShape", {}, None, [3, 2], [2, 3]),
    ("OneHot", {}, [16], [5], [16, 9]),
]


def case(op, attributes, x, asked, declared):
    """The node, and an Add behind it that the engine takes."""
    kind = FLOAT if op == "OneHot" else INT64  # ONNX Runtime's kernel of float indices wants a float depth
    ports, constants, inputs = [("s", kind, [len(asked)])], [], ["s"]
    feeds = {"s": np.array(asked, helper.tensor_dtype_to_np_dtype(kind))}
    if x is not None:
        ports.append(("x", FLOAT, x))
        feeds["x"] = SIXTEEN.reshape(x)
        inputs = ["x", "s"]
    if op == "OneHot":
        constants.append(("values", np.float32([0, 1])))
        inputs.append("values")
    nodes = [helper.make_node(op, inputs, ["k"], "sized", **attributes),
             helper.make_node("Add", ["k", "k"], ["y"], "add")]
    made = model(nodes, ports, [("y", FLOAT, declared)], constants)
    made.graph.value_info.append(helper.make_tensor_value_info("k", FLOAT, declared))
    return made, feeds


class DeclaredShapes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.devices = ane.register()

    def direct(self, made, feeds):
        return ane.Session(made.SerializeToString(), cache=False).run(feeds)["y"]

    def plugin(self, made, feeds):
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.add_provider_for_devices(self.devices, {})
        return ort.InferenceSession(made.SerializeToString(), options, enable_fallback=0).run(None, feeds)[0]

    def test_a_wrong_one_is_an_error(self):
        for row in CASES:
            made, feeds = case(*row)
            for way in (self.direct, self.plugin):
                with self.subTest(row, way=way.__name__):
                    with self.assertRaisesRegex(Exception, "'k'.*the model declares a wrong type or shape; remove"):
                        way(made, feeds)

    def test_the_error_names_the_node(self):
        made, feeds = case(*CASES[0])
        with self.assertRaisesRegex(Exception, r"'sized' \(Reshape\): value 'k': made as float32 8x2, planned as "
                                               "float32 4x4"):
            self.direct(made, feeds)

    def test_a_right_one_runs_and_the_plan_says_where(self):
        for op, attributes, x, asked, _ in CASES:
            made, feeds = case(op, attributes, x, asked, None)
            options = ort.SessionOptions()
            options.log_severity_level = 4
            theirs = ort.InferenceSession(made.SerializeToString(), options,
                                          providers=["CPUExecutionProvider"]).run(None, feeds)[0]
            made, feeds = case(op, attributes, x, asked, theirs.shape)
            for way in (self.direct, self.plugin):
                with self.subTest(op, way=way.__name__):
                    np.testing.assert_array_equal(theirs, way(made, feeds))
            if op == "ConstantOfShape":
                continue  # there is no lowering for it
            nodes = ane.check(made.SerializeToString()).models[0].targets[0].nodes
            with self.subTest(op):
                self.assertEqual(["sized-in-run", None], [node.rule for node in nodes])


if __name__ == "__main__":
    unittest.main()
