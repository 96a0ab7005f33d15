"""`anemone convert`: both formats, segments that cannot be written, and damaged files."""

import json
import os
import re
import shutil
import signal
import sys
import unittest

import jsonschema
import numpy
import onnx
from onnx import helper

from support import ROOT, SANITIZED, CliTest, anemone, model, tensor

sys.path.insert(0, str(ROOT / "models"))
import manifest  # noqa: E402

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "convert.json").read_text())
FORMATS = ("netplist", "mil")
FILES = {"netplist": ("net.plist", "weights.0", "weights.1"),
         "mil": ("model.mil", "weights/weight.bin")}


def product(shape=(4, 4)):
    weight = helper.make_tensor("w", 1, shape, numpy.ones(shape, numpy.float32).ravel())
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, shape[0]])],
                 [tensor("y", [1, shape[1]])], [weight])


class Convert(CliTest):
    def convert(self, path, form, *words, code=0):
        """The manifest, which must be the same printed and written."""
        out = self.folder / f"{form}-{len(os.listdir(self.folder))}"
        done = anemone("convert", path, "--to", form, "-o", out, *words, "--json", timeout=250)
        self.assertEqual(code, done.returncode, done.stderr)
        made = json.loads(done.stdout)
        jsonschema.validate(made, SCHEMA)
        self.assertEqual(made, json.loads((out / "manifest.json").read_text()))
        self.assertEqual(form, made["to"])
        for segment in made["segments"]:
            names = ()
            if segment["written"]:
                names = ((segment["model"],) if segment["placement"] == "cpu" else
                         [f"{segment['folder']}/{name}" for name in FILES[form]])
            for name in names:
                self.assertTrue((out / name).exists(), name)
            self.assertEqual(segment["written"], not segment.get("missing"))
        self.assertEqual(code == 0, all(segment["written"] for segment in made["segments"]))
        return out, made

    def test_a_product_as_mil(self):
        out, made = self.convert(self.write(product()), "mil", "--target", "m1")
        segment = made["segments"][0]
        self.assertEqual({"inputs": [{"port": "x", "value": "x"}],
                          "outputs": [{"port": "y", "value": "y"}]}, segment["ports"])
        text = (out / segment["folder"] / "model.mil").read_text()
        self.assertTrue(text.startswith("program(1.3)\n"), text)
        self.assertIn("@model_path/weights/weight.bin", text)
        blob = (out / segment["folder"] / "weights" / "weight.bin").read_bytes()
        self.assertEqual(b"\xef\xbe\xad\xde", blob[64:68])
        self.assertEqual([1] * 16, numpy.frombuffer(blob[128:160], numpy.float16).tolist())

    def test_ports_of_mil_are_in_the_order_they_bind(self):
        nodes = [helper.make_node("Sub", ["z", "a"], ["d"]), helper.make_node("Relu", ["d"], ["c"])]
        path = self.write(model(nodes, [tensor("z", [1, 4]), tensor("a", [1, 4])],
                                [tensor("d", [1, 4]), tensor("c", [1, 4])]))
        ports = self.convert(path, "mil")[1]["segments"][0]["ports"]
        self.assertEqual(["a", "z"], [port["value"] for port in ports["inputs"]])
        self.assertEqual(["c", "d"], [port["value"] for port in ports["outputs"]])
        ports = self.convert(path, "netplist")[1]["segments"][0]["ports"]
        self.assertEqual(["z", "a"], [port["value"] for port in ports["inputs"]])

    def test_what_mil_has_not_is_named(self):
        pool = model([helper.make_node("Relu", ["x"], ["r"]),
                      helper.make_node("GroupNormalization", ["r", "s", "b"], ["y"], num_groups=2)],
                     [tensor("x", [1, 4, 4, 4])], [tensor("y", [1, 4, 4, 4])],
                     [helper.make_tensor(name, 1, [4], [1.0] * 4) for name in "sb"])
        made = self.convert(self.write(pool), "mil", code=1)[1]
        missing = made["segments"][0]["missing"]
        self.assertEqual(["LayerNormalization"], [line["type"] for line in missing])
        self.assertIn("over groups", missing[0]["why"])
        done = anemone("convert", self.folder / "model.onnx", "--to", "mil", "-o",
                       self.folder / "text")
        self.assertIn("no normalization over groups", done.stdout)
        self.expect_error(done, "1 engine segment has units that cannot be written in format mil")

    def test_what_stays_on_the_cpu_says_why(self):
        """A dimension without a size; and an If, whose bodies cannot be written in any format."""
        branches = {f"{name}_branch": helper.make_graph(
            [helper.make_node(kind, ["x"], [name])], name, [], [tensor(name, [1, 64])])
            for name, kind in (("then", "Relu"), ("else", "Neg"))}
        bodies = model([helper.make_node("If", ["c"], ["y"], **branches)],
                       [tensor("x", [1, 64]), tensor("c", [], onnx.TensorProto.BOOL)],
                       [tensor("y", [1, 64])])
        for made, op_type, words, remedy in (
                (product().graph, "MatMul", "Some ops are not supported", "bind"),
                (bodies.graph, "If", "", "convert its bodies")):
            made.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
            path = self.write(helper.make_model(made, ir_version=10, opset_imports=[
                helper.make_opsetid("", 21)]))
            reason = self.convert(path, "netplist")[1]["segments"][0]["reasons"][0]
            self.assertEqual(op_type, reason["op_type"])
            self.assertIn(words, reason["message"])
            self.assertIn(remedy, reason["remedy"] or "")
            text = " ".join(anemone("convert", path, "-q", "-o",
                                    self.folder / f"{op_type}-text").stdout.split())
            why = reason["message"]
            if "condition" in reason:  # our sentence comes first, then Apple's as a quote
                why = f"{reason['condition']} (\"{why}\")"
            self.assertIn(f"{op_type}: {why} [{reason['rule']}]", text)

    def test_check_warns_once_for_each_kind(self):
        shape, ones = [1, 4, 4, 4], [helper.make_tensor(name, 1, [4], [1.0] * 4) for name in "sb"]
        nodes = [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Exp", ["a"], ["b1"]),
                 helper.make_node("GroupNormalization", ["b1", "s", "b"], ["c"], num_groups=2),
                 helper.make_node("GroupNormalization", ["c", "s", "b"], ["d"], num_groups=2),
                 helper.make_node("Div", ["d", "c"], ["y"]),
                 helper.make_node("GreaterOrEqual", ["y", "c"], ["g"]),
                 helper.make_node("Cast", ["g"], ["z"], to=1)]
        path = self.write(model(nodes, [tensor("x", shape)], [tensor("y", shape), tensor("z", shape)],
                                ones))
        text = " ".join(anemone("check", "-v", path).stdout.split())
        kinds = ((1, "unverified-netplist-form", "Type Div of ElementWise"),
                 (2, "no-netplist-form", "LayerNormalization"),
                 (2, "unverified-netplist-form", "Type Exp of Neuron"))
        for count, rule, piece in kinds:
            told = re.findall(r"(\d+) nodes? \[" + rule + r"\], [^\[]*?" + re.escape(piece), text)
            self.assertEqual([str(count)], told, text)
        # convert lists the units of which check warns.
        made = self.convert(path, "netplist", code=1)[1]["segments"][0]
        for rule, named in (("no-netplist-form", "missing"),
                            ("unverified-netplist-form", "unverified")):
            self.assertEqual(len(made[named]), sum(count for count, of, _ in kinds if of == rule))

    def test_options_of_netplists(self):
        path = self.write(product())
        for option in ("--verified-only", "--binary"):
            self.expect_error(anemone("convert", path, "--to", "mil", option, "-o", self.folder / "o"),
                              "apply to netplists only", code=2)
        self.expect_error(anemone("convert", path, "--to", "plist", "-o", self.folder / "o"),
                          "netplist", "mil", code=2)

    def test_nothing_is_left_where_nothing_can_be_written(self):
        path = self.write(product())
        (self.folder / "file").write_text("in the way")
        for form in FORMATS:
            self.expect_error(anemone("convert", path, "--to", form, "-o", self.folder / "file"),
                              "file': is not a folder; choose another name")
            self.expect_error(anemone("convert", path, "--to", form, "-o", self.folder / "file" / "o"),
                              "cannot be written")
            if os.path.exists("/dev/full"):  # a folder cannot be created there
                self.expect_error(anemone("convert", path, "--to", form, "-o", "/dev/full/o"),
                                  "cannot be written")
                self.expect_error(anemone("convert", path, "--to", form, "-o", "/dev/full"),
                                  "'/dev/full': is not a folder; choose another name")
        self.assertEqual({"file", "model.onnx"}, set(os.listdir(self.folder)))

    def test_a_full_disk_leaves_nothing(self):
        path = self.write(product((512, 512)))
        for form in FORMATS:
            out = self.folder / "out"
            done = anemone("convert", path, "--to", form, "-o", out, file_limit=1 << 14)
            self.expect_error(done, "cannot be written; choose a folder")
            self.assertEqual(["model.onnx"], os.listdir(self.folder))

    def test_a_required_share(self):
        """Nothing is written if it is not met, and if it is not known."""
        nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]),
                 helper.make_node("Cast", ["a"], ["b"], to=onnx.TensorProto.DOUBLE),
                 helper.make_node("MatMul", ["b", "v"], ["y"])]
        half = model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4], onnx.TensorProto.DOUBLE)],
                     [helper.make_tensor("w", 1, [4, 4], numpy.ones(16, numpy.float32)),
                      helper.make_tensor("v", 11, [4, 4], numpy.ones(16, numpy.float64))])
        free = product()
        free.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
        free.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "n"
        out = self.folder / "out"
        for made, share, why in ((half, 0.9, "50 % of MACs on the engine; 90 % required"),
                                 (free, 0.5, "--dim n=1")):
            done = anemone("convert", self.write(made), "-o", out, "-q", "--require-engine-share",
                           share)
            self.expect_error(done, why, "nothing is written", code=3)
            self.assertEqual(["model.onnx"], os.listdir(self.folder))
        done = anemone("convert", self.write(half), "-o", out, "--require-engine-share", 0.5)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertTrue((out / "manifest.json").exists())

    def test_the_model_is_never_replaced(self):
        path = self.write(product())
        link = self.folder / "link"
        link.symlink_to(path)
        before = path.read_bytes()
        for out in (path, link):
            self.expect_error(anemone("convert", path, "-o", out), "read; choose another name")
        self.assertEqual(before, path.read_bytes())

    @unittest.skipIf(SANITIZED, "a sanitizer's command is too slow for it")
    def test_a_signal_leaves_nothing(self):
        path = self.write(product((4096, 4096)))
        out = self.folder / "out"
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGXCPU, signal.SIGPIPE,
                       signal.SIGUSR1, signal.SIGALRM):
            self.signal_while_writing(number, "convert", path, "--to", "mil", "-o", out,
                                      again=lambda: shutil.rmtree(out, ignore_errors=True))
            self.assertEqual(["model.onnx"], os.listdir(self.folder))

    def test_leftovers_are_removed_after_an_hour(self):
        old, young = (self.folder / f"o.anemone-{i}123456789abcdef.tmp" for i in "ab")
        for path in (old, young):
            path.mkdir()
            (path / "net.plist").write_text("half")
        os.utime(old, (0, 0))
        self.convert(self.write(product()), "mil")
        self.assertEqual((False, True), (old.exists(), young.exists()))

    def test_damaged_models(self):
        whole = product().SerializeToString()
        path = self.write(whole[:len(whole) // 2], "cut.onnx")
        for form in FORMATS:
            self.expect_error(anemone("convert", path, "--to", form, "-o", self.folder / "o"),
                              "cut.onnx")
        self.assertEqual(["cut.onnx"], os.listdir(self.folder))

    def test_a_real_model(self):
        entry = next(e for e in manifest.entries() if e["name"] == "light_squeezenet")
        path = manifest.path_of(entry)
        if not path.exists():
            self.skipTest(f"{path} is not on this machine")
        for form in FORMATS:
            made = self.convert(path, form, "--target", "h16")[1]
            self.assertTrue(made["segments"])


if __name__ == "__main__":
    unittest.main()
