"""Models whose input is a uint8 image: the engine's port is uint8, and the conversion is in the segment.

Run: uint8_images_test.py ANEMONE. Each model is run in direct mode (both kinds of arithmetic), in the
plugin, and by ONNX Runtime alone. Its files are written as netplist and MIL.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime as ort
import onnxruntime_ep_ane as ane
from onnx import ModelProto, TensorProto, helper, numpy_helper

import support

ANEMONE = pathlib.Path(sys.argv.pop(1))
SIZE, CHANNELS = 24, 3


def model(shape, *heads):
    """`heads` are nodes from `x`, a uint8 image, to `h`, floats in NCHW; a convolution follows."""
    random = np.random.default_rng(5)
    constants = {
        "k": random.standard_normal((8, CHANNELS, 3, 3)).astype(np.float32) * 0.2,
        "b": random.standard_normal(8).astype(np.float32) * 0.1,
        "n": np.float32(255),
        "mean": np.array([123.675, 116.28, 103.53], np.float32).reshape(1, 3, 1, 1),
        "std": np.array([58.395, 57.12, 57.375], np.float32).reshape(1, 3, 1, 1),
        "s": np.float32(1 / 64),
        "z": np.uint8(128),
        "s3": np.array([1 / 64, 1 / 128, 1 / 32], np.float32),
        "z3": np.array([128, 0, 255], np.uint8),
    }
    nodes = [*heads, helper.make_node("Conv", ["h", "k", "b"], ["c"], pads=[1] * 4),
             helper.make_node("Relu", ["c"], ["y"])]
    read = {name for node in nodes for name in node.input}
    graph = helper.make_graph(
        nodes, "image",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items() if n in read])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def cast(x, y):
    return helper.make_node("Cast", [x], [y], to=TensorProto.FLOAT)


def to_nchw(x, y):
    return helper.make_node("Transpose", [x], [y], perm=[0, 3, 1, 2])


NCHW, NHWC = [1, CHANNELS, SIZE, SIZE], [1, SIZE, SIZE, CHANNELS]
MODELS = {
    "cast and division": model(NCHW, cast("x", "f"), helper.make_node("Div", ["f", "n"], ["h"])),
    "normalization": model(
        NCHW, cast("x", "f"), helper.make_node("Sub", ["f", "mean"], ["g"]),
        helper.make_node("Div", ["g", "std"], ["h"])),
    "dequantized": model(NCHW, helper.make_node("DequantizeLinear", ["x", "s", "z"], ["h"])),
    "dequantized by channel": model(
        NCHW, helper.make_node("DequantizeLinear", ["x", "s3", "z3"], ["h"], axis=1)),
    "NHWC": model(NHWC, to_nchw("x", "t"), cast("t", "f"), helper.make_node("Div", ["f", "n"], ["h"])),
    "NHWC as floats": model(
        NHWC, cast("x", "f"), to_nchw("f", "t"), helper.make_node("Div", ["t", "n"], ["h"])),
    "NHWC, dequantized": model(
        NHWC, to_nchw("x", "t"), helper.make_node("DequantizeLinear", ["t", "s", "z"], ["h"])),
    "two readers": model(
        NCHW, cast("x", "f"), helper.make_node("Div", ["f", "n"], ["a"]),
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["d"]),
        helper.make_node("Add", ["a", "d"], ["h"])),
}


def image_of(made):
    shape = [d.dim_value for d in made.graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(1).integers(0, 256, shape, np.uint8)


def of_floats(made):
    """The same model of a float image; None if it has DequantizeLinear, which takes none."""
    if any(node.op_type == "DequantizeLinear" for node in made.graph.node):
        return None
    twin = ModelProto()
    twin.CopyFrom(made)
    twin.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT
    return twin


def reference(made, x):
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


# By the options of a session: the largest error, relative to the largest result. The M1's own sums are
# less precise (numerics.json, mac-tile).
OPTIONS = [({}, 2e-3), ({"route": "mil"}, 2e-3), ({"numerics": "exact"}, 2e-2)]


class Uint8Images(support.PythonTest):
    def assert_close(self, got, want, most=2e-3):
        self.assertLessEqual(np.abs(got - want).max(), most * np.abs(want).max())

    def test_plans_say_it(self):
        for name, made in MODELS.items():
            for target in ane.check(made, target="m1,m4").models[0].targets:
                with self.subTest(f"{name} {target.target}"):
                    self.assertEqual(["engine"], [s.placement for s in target.segments])
                    self.assertEqual(["x"], target.segments[0].uint8_inputs)

    def test_the_segment_converts_the_image(self):
        for name, made in MODELS.items():
            x, twin = image_of(made), of_floats(made)
            for options, most in OPTIONS:
                with self.subTest(f"{name} {options}"):
                    got = ane.Session(made, target="m1", **options).run({"x": x})["y"]
                    self.assert_close(got, reference(made, x), most)
                    if twin is not None:  # numerics.json st-image-u8: as converted on the host
                        given = {"x": x.astype(np.float32)}
                        again = ane.Session(twin, target="m1", **options).run(given)["y"]
                        np.testing.assert_array_equal(got, again)

    def test_the_plugin_gives_it_the_bytes(self):
        for name, made in MODELS.items():
            with self.subTest(name):
                x = image_of(made)
                options = ort.SessionOptions()
                options.add_provider_for_devices(ane.register(), {"target": "m1"})
                options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
                session = ort.InferenceSession(made.SerializeToString(), options, enable_fallback=0)
                self.assert_close(session.run(None, {"x": x})[0], reference(made, x))

    def test_files_have_a_uint8_port(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for i, (name, made) in enumerate(MODELS.items()):
            path = folder / f"{i}.onnx"
            path.write_bytes(made.SerializeToString())
            for to, file, words in (("netplist", "net.plist", "UInt8"),
                                    ("mil", "model.mil", "tensor<uint8, [1,")):
                with self.subTest(f"{name} {to}"):
                    out = folder / f"{i}.{to}"
                    subprocess.run([ANEMONE, "convert", path, "--to", to, "-o", out, "--target", "m1"],
                                   check=True, capture_output=True)
                    manifest = json.loads((out / "manifest.json").read_text())
                    self.assertEqual([True], [segment["written"] for segment in manifest["segments"]])
                    self.assertIn(words, (out / "segment-0" / file).read_text())


if __name__ == "__main__":
    unittest.main()
