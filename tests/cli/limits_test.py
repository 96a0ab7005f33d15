"""`anemone run` with --device-limits and --hazards, as a user meets them."""

import json
import subprocess
import unittest

import jsonschema
import numpy
from onnx import helper

from support import ROOT, CliTest, anemone, model, relu, tensor

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "run.json").read_text())
WIDE = [1, 768, 1, 32]  # 48 KiB


def difference():
    """y = x - a; the inputs are not in alphabetical order."""
    return model([helper.make_node("Sub", ["x", "a"], ["y"])],
                 [tensor("x", WIDE), tensor("a", WIDE)], [tensor("y", WIDE)])


def pieces(count):
    """So many engine segments if Pooling is refused."""
    nodes, last = [], "x"
    for i in range(count):
        if i > 0:
            nodes.append(helper.make_node("MaxPool", [last], [f"m{i}"], kernel_shape=[3, 3],
                                          pads=[1, 1, 1, 1]))
            last = f"m{i}"
        nodes.append(helper.make_node("Sigmoid", [last], [f"v{i}"]))
        last = f"v{i}"
    return model(nodes, [tensor("x", [1, 1, 4, 4])], [tensor(last, [1, 1, 4, 4])])


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
        done = anemone(*mil, "--device-limits")
        self.assertEqual(3, done.returncode, done.stderr)  # no error: the data is wrong
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


class Hazards(CliTest):
    def hazards(self, made, *words):
        done = anemone("run", self.write(made), "--hazards", "--json", *words)
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
        self.assertEqual((90000, 300, 65504), (told["magnitude"], told["operands"], told["limit"]))
        self.assertEqual("st-overflow", told["rule"])
        text = anemone("run", self.write(self.square()), "--hazards", *given).stdout
        self.assertRegex(text, r"overflow +/#0 'square' +Mul +0 +1 of 4 +90000 +300")
        self.assertIn("remedy: scale the values down", text)

    def test_a_clean_model_has_none(self):
        self.assertEqual([], self.hazards(self.square()))
        text = anemone("run", self.write(self.square()), "--hazards").stdout
        self.assertIn("hazards: none", text)

    def test_they_are_not_looked_for_unless_asked(self):
        done = anemone("run", self.write(self.square()), "--json")
        self.assertNotIn("hazards", json.loads(done.stdout))

    def test_a_real_model(self):
        """One that is there, or can be had, is looked at with random inputs and with large ones."""
        found = subprocess.run([str(ROOT / "tools" / "models"), "path", "magika"],
                               capture_output=True, text=True)
        if found.returncode != 0:
            self.skipTest(f"the model is not there: {found.stderr.strip()}")
        self.fail("to be chosen")


if __name__ == "__main__":
    unittest.main()
