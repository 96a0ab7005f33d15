"""`anemone run` with --device-limits and --hazards."""

import json
import pathlib
import sys
import unittest

import jsonschema
import numpy
import onnx
import onnxruntime
from onnx import helper

from support import ROOT, CliTest, anemone, model, relu, tensor

sys.path.insert(0, str(ROOT / "models"))
import manifest  # noqa: E402

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "run.json").read_text())
WIDE = [1, 768, 1, 32]  # 48 KiB


def difference():
    """y = x - a, with inputs that are not in alphabetical order."""
    return model([helper.make_node("Sub", ["x", "a"], ["y"])],
                 [tensor("x", WIDE), tensor("a", WIDE)], [tensor("y", WIDE)])


def of_text(graph):
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {graph}')


def chain(count, first, last):
    """Nodes from `first` to `last` that become `count` engine segments if Pooling is refused."""
    names = [first, *(f"{last}{i}" for i in range(1, count)), last]
    nodes = [f"{names[1]} = Sigmoid({first})"]
    for x, y in zip(names[1:], names[2:]):
        nodes.append(f"{y}m = MaxPool<kernel_shape = [3,3], pads = [1,1,1,1]>({x}) "
                     f"{y} = Sigmoid({y}m)")
    return " ".join(nodes)


def pieces(count):
    return of_text(f"(float[1,1,4,4] x) => (float[1,1,4,4] y) {{ {chain(count, 'x', 'y')} }}")


def with_bodies(count, in_each):
    """`count` engine segments in the main graph, and `in_each` in each of four bodies."""
    shape = "float[1,1,4,4]"

    def body(name, first, last, inputs="", outputs="", nodes=""):
        return (f"{name} ({inputs}) => ({outputs}{shape} {last}) "
                f"{{ {nodes} {chain(in_each, first, last)} }}")

    then, other = body("then", "a", "t"), body("other", "a", "e")
    loop = body("loop", "s", "l", f"int64 i, bool k, {shape} s", "bool o, ", "o = Identity(k)")
    scan = body("scan", "d", "u", f"{shape} p, {shape} q", f"{shape} n, ",
                "d = Add(p, q) n = Identity(p)")
    return of_text(
        f"({shape} x, bool c, int64 m, float[300,1,1,4,4] r) => ({shape} y, float[300,1,1,4,4] z) "
        f"{{ {chain(count, 'x', 'a')} b = If(c) <then_branch = {then}, else_branch = {other}> "
        f"y = Loop(m, , b) <body = {loop}> "
        f"f, z = Scan<num_scan_inputs = 1, body = {scan}>(y, r) }}")


class DeviceLimits(CliTest):
    def test_a_small_surface_fails_with_0x1d(self):
        path = self.write(relu())
        self.assertEqual(0, anemone("run", path).returncode)
        self.expect_error(anemone("run", path, "--device-limits"), "status=0x1d",
                          "below 49152 bytes", "--heed-limits")
        done = anemone("run", path, "--device-limits", "--heed-limits", "--compare")
        self.assertEqual(0, done.returncode, done.stderr)

    def test_surfaces_of_two_sizes_fail_with_0x1d(self):
        path = self.write(model([helper.make_node("Concat", ["a", "x"], ["y"], axis=1)],
                                [tensor("a", WIDE), tensor("x", [1, 1536, 1, 32])],
                                [tensor("y", [1, 2304, 1, 32])]))
        self.assertEqual(0, anemone("run", path).returncode)
        self.expect_error(anemone("run", path, "--device-limits"), "status=0x1d",
                          "input 'a' of 49152 bytes and input 'x' of 98304 bytes")
        done = anemone("run", path, "--device-limits", "--heed-limits", "--compare")
        self.assertEqual(0, done.returncode, done.stderr)

    def test_mil_ports_out_of_order_give_wrong_data(self):
        mil = ["run", self.write(difference()), "--route", "mil", "--compare"]
        self.assertEqual(0, anemone(*mil).returncode)
        done = anemone(*mil, "--device-limits", "-v")
        self.assertEqual(3, done.returncode, done.stderr)  # not an error, but the data is wrong
        self.assertIn("orion-port-order", done.stdout)
        self.assertEqual(0, anemone(*mil, "--device-limits", "--heed-limits").returncode)

    def test_too_many_segments_do_not_compile(self):
        words = ["--policy", "refuse:Pooling", "--heed-limits"]
        path = self.write(pieces(120))
        self.assertEqual(0, anemone("run", path, *words).returncode)
        self.expect_error(anemone("run", path, *words, "--device-limits"), "compile 120",
                          "fewer segments")
        self.assertEqual(0, anemone("run", self.write(pieces(119)), *words,
                                    "--device-limits").returncode)

    def test_segments_of_bodies_are_compiled_once_each(self):
        numpy.save(self.folder / "m.npy", numpy.int64(3))
        words = ["--policy", "refuse:Pooling", "--device-limits", "--heed-limits", "--compare",
                 "--input", f"m={self.folder / 'm.npy'}"]
        for chosen in (False, True):
            numpy.save(self.folder / "c.npy", numpy.bool_(chosen))
            given = [*words, "--input", f"c={self.folder / 'c.npy'}"]
            with self.subTest(chosen):
                done = anemone("run", self.write(with_bodies(23, 24)), *given)
                self.assertEqual(0, done.returncode, done.stdout + done.stderr)
                self.expect_error(anemone("run", self.write(with_bodies(24, 24)), *given),
                                  "compile 120", "fewer segments")

    def test_small_surfaces_of_a_body_are_padded_too(self):
        path = self.write(of_text(
            "(bool c, float[1,4] x) => (float[1,4] y) { y = If(c) <then_branch = t () => "
            "(float[1,4] a) { a = Relu(x) }, else_branch = e () => (float[1,4] b) "
            "{ b = Sigmoid(x) }> }"))
        self.expect_error(anemone("run", path, "--device-limits"), "status=0x1d",
                          "below 49152 bytes")
        done = anemone("run", path, "--device-limits", "--heed-limits", "--compare")
        self.assertEqual(0, done.returncode, done.stderr)


class Hazards(CliTest):
    def hazards(self, made, *words):
        path = made if isinstance(made, pathlib.Path) else self.write(made)
        done = anemone("run", path, "--hazards", "--json", *words, timeout=300)
        self.assertEqual(0, done.returncode, done.stderr)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        return document["hazards"]

    def square(self):
        return model([helper.make_node("Mul", ["x", "x"], ["y"], name="square")],
                     [tensor("x", [1, 4])], [tensor("y", [1, 4])])

    def test_an_overflow_is_told_with_node_and_magnitude(self):
        numpy.save(self.folder / "x.npy", numpy.array([[1, 2, -300, 255]], numpy.float32))
        given = ["--input", f"x={self.folder / 'x.npy'}"]
        told, = self.hazards(self.square(), *given)
        self.assertEqual(("overflow", True, "/#0", "square", "Mul", "ElementWise", 1, 4),
                         tuple(told[key] for key in ("kind", "first", "node", "name", "op_type",
                                                     "unit", "count", "elements")))
        self.assertEqual((300, 65504), (told["operands"], told["limit"]))
        self.assertAlmostEqual(90000, told["magnitude"], delta=90000 / 2048)
        self.assertEqual("st-overflow", told["rule"])
        text = anemone("run", self.write(self.square()), "--hazards", *given).stdout
        self.assertRegex(text, r"overflow +/#0 'square' +Mul +0 +1 of 4 +89984 +300")
        self.assertIn("remedy: scale the values down", text)

    def test_a_clean_model_has_none(self):
        self.assertEqual([], self.hazards(self.square()))
        text = anemone("run", self.write(self.square()), "--hazards").stdout
        self.assertIn("hazards: none found", text)
        text = anemone("run", self.write(self.square()), "--hazards", "--policy", "cpu").stdout
        self.assertIn("hazards: none, nothing runs on the engine", text)

    def test_they_are_not_looked_for_unless_asked(self):
        done = anemone("run", self.write(self.square()), "--json")
        self.assertNotIn("hazards", json.loads(done.stdout))

    def real(self, name):
        """The path of a model of the manifest, and the options that bind it."""
        entry, = (e for e in manifest.entries() if e["name"] == name)
        path = manifest.path_of(entry)
        if not path.exists():
            self.skipTest(f"{name} is not on this machine (tools/models fetch {name})")
        return path, manifest.options(entry)

    def test_a_real_model_that_saturates(self):
        """SqueezeNet with random weights: ONNX Runtime has the same values at that node."""
        path, options = self.real("light_squeezenet")
        proto = onnx.load(path)
        weights = {w.name for w in proto.graph.initializer}
        port, = (p for p in proto.graph.input if p.name not in weights)
        shape = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
        x = numpy.random.default_rng(0).random(shape, numpy.float32)
        numpy.save(self.folder / "x.npy", x)
        told, *later = self.hazards(path, *options, "--input", f"{port.name}={self.folder / 'x.npy'}")
        self.assertEqual(("port-saturation", "Conv", True),
                         (told["kind"], told["op_type"], told["first"]))
        self.assertNotIn(True, [hazard["first"] for hazard in later
                                if hazard["kind"] == "port-saturation"])
        node, = (n for n in proto.graph.node if n.name == told["name"])
        made = proto.graph.output.add()
        made.name = node.output[0]
        session = onnxruntime.InferenceSession(proto.SerializeToString(),
                                               providers=["CPUExecutionProvider"])
        value, = session.run([made.name], {port.name: x})
        self.assertEqual(value.size, told["elements"])
        self.assertEqual(int((abs(value) >= 32768).sum()), told["count"])
        self.assertAlmostEqual(float(abs(value).max()), told["magnitude"],
                               delta=1e-2 * told["magnitude"])

    def test_a_real_model_that_is_clean(self):
        path, options = self.real("ppocr_cls")
        self.assertEqual([], self.hazards(path, *options))


if __name__ == "__main__":
    unittest.main()
