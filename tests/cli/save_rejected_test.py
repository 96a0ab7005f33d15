"""`anemone check --save-rejected`: every rejected node as a model of its own."""

import json
import os
import re
import unittest

import jsonschema
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from support import ROOT, CliTest, anemone, model, relu, tensor

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "rejected.json").read_text())
REASON = ("layer", "rule", "message")


def node(op_type, inputs, outputs, name="", **attributes):
    return helper.make_node(op_type, inputs.split(), outputs.split(), name, **attributes)


def branches():
    return {f"{name}_branch": helper.make_graph(
        [node(kind, "a", name)], name, [], [tensor(name, [None, None], TensorProto.INT64)])
        for name, kind in (("then", "NonZero"), ("else", "NonZero"))}


# Graphs of which at least one node is rejected: nodes, inputs, outputs, constants.
GRAPHS = {
    "dynamic": ([node("NonZero", "x", "y")], [tensor("x", [2, 3])],
                [tensor("y", [2, None], TensorProto.INT64)], []),
    "free": ([node("Conv", "x w", "y")], [tensor("x", ["n", 3, 8, 8])], [tensor("y", ["n", 4, 6, 6])],
             [numpy_helper.from_array(numpy.ones((4, 3, 3, 3), numpy.float32), "w")]),
    "integers": ([node("MatMulInteger", "x w", "y")], [tensor("x", [2, 4], TensorProto.UINT8)],
                 [tensor("y", [2, 4], TensorProto.INT32)],
                 [numpy_helper.from_array(numpy.ones((4, 4), numpy.uint8), "w")]),
    "several": ([node("Relu", "x", "a"), node("Det", "a", "d", "the/det"), node("Exp", "a", "b"),
                 node("DynamicQuantizeLinear", "b", "q s z")],
                [tensor("x", [4, 4])],
                [tensor("d", []), tensor("q", [4, 4], TensorProto.UINT8), tensor("s", []),
                 tensor("z", [], TensorProto.UINT8)], []),
    "suppression": ([node("NonMaxSuppression", "boxes scores count iou", "y")],
                    [tensor("boxes", [1, 6, 4]), tensor("scores", [1, 1, 6])],
                    [tensor("y", [None, 3], TensorProto.INT64)],
                    [numpy_helper.from_array(numpy.array([3], numpy.int64), "count"),
                     numpy_helper.from_array(numpy.array([0.5], numpy.float32), "iou")]),
    "doubles": ([node("Add", "x w", "y")], [tensor("x", [2, 3], TensorProto.DOUBLE)],
                [tensor("y", [2, 3], TensorProto.DOUBLE)],
                [numpy_helper.from_array(numpy.ones(3), "w")]),
    "sequences": ([node("SequenceConstruct", "x x", "s"), node("SequenceLength", "s", "y")],
                  [tensor("x", [2, 3])], [tensor("y", [], TensorProto.INT64)], []),
}


class SaveRejected(CliTest):
    def save(self, path, *words, folder="rejected"):
        done = anemone("check", path, "--save-rejected", self.folder / folder, "-q", *words)
        self.assertEqual(0, done.returncode, done.stderr)
        index = json.loads((self.folder / folder / "rejected.json").read_text())
        jsonschema.validate(index, SCHEMA)
        named = {entry["file"] for entry in index["nodes"] if entry["file"]} | {"rejected.json"}
        self.assertEqual(named, set(os.listdir(self.folder / folder)))
        self.assertFalse([f for f in os.listdir(self.folder) if f.endswith(".tmp")])
        return index["nodes"], self.folder / folder

    def check(self, path, *words):
        done = anemone("check", path, "--json", *words)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)["models"][0]["targets"]

    def assert_same_alone(self, entry, folder, *words):
        self.assertIs(True, entry["same_verdict"], entry)
        path = folder / entry["file"]
        onnx.checker.check_model(str(path))
        found = [tuple(n[key] for key in REASON) for t in self.check(path, *words)
                 for n in t["nodes"] if n["verdict"] == "rejected"]
        self.assertIn(tuple(entry[key] for key in REASON), found)

    def test_every_node_is_valid_and_has_the_same_verdict(self):
        for name, graph in GRAPHS.items():
            for target in ("h13", "h16"):
                with self.subTest(name, target=target):
                    path = self.write(model(*graph))
                    words = ("--target", target)
                    entries, folder = self.save(path, *words, folder=f"{name}-{target}")
                    rejected = [n for t in self.check(path, *words) for n in t["nodes"]
                                if n["verdict"] == "rejected"]
                    self.assertTrue(rejected)
                    self.assertEqual([n["id"] for n in rejected], [e["node"] for e in entries])
                    for entry in entries:
                        self.assertIsNotNone(entry["file"], entry["reason"])
                        self.assert_same_alone(entry, folder, *words)

    def test_several_targets_share_a_file(self):
        entries, folder = self.save(self.write(model(*GRAPHS["dynamic"])), "--target", "m1,m4")
        self.assertEqual(["h13", "h16"], [e["target"] for e in entries])
        self.assertEqual(1, len({e["file"] for e in entries}))

    def test_small_constants_are_kept(self):
        _, folder = self.save(self.write(model(*GRAPHS["free"])))
        made = onnx.load(folder / "Conv_0.onnx")
        self.assertEqual([4, 3, 3, 3], list(made.graph.initializer[0].dims))
        self.assertEqual("n", made.graph.input[0].type.tensor_type.shape.dim[0].dim_param)

    def test_large_constants_are_not_written(self):
        rows = 3 << 20  # 24 MiB
        big = numpy_helper.from_array(numpy.arange(rows, dtype=numpy.float64), "w")
        entries, _ = self.save(self.write(model(
            [node("Add", "x w", "y")], [tensor("x", [rows], TensorProto.DOUBLE)],
            [tensor("y", [rows], TensorProto.DOUBLE)], [big])))
        self.assertEqual((None, None), (entries[0]["file"], entries[0]["same_verdict"]))
        self.assertRegex(entries[0]["reason"], r"its constants take \d+ bytes, at most 16777216")

    def test_an_operator_of_another_domain(self):
        path = self.write(model(
            [helper.make_node("Fancy", ["x"], ["a"], name="one", domain="com.acme", power=2),
             node("Relu", "a", "y")],
            [tensor("x", [1, 4])], [tensor("y", [1, 4])], domains=["com.acme"]))
        entries, folder = self.save(path)
        by_type = {e["op_type"]: e for e in entries}
        self.assertEqual("com.acme", by_type["Fancy"]["domain"])
        self.assert_same_alone(by_type["Fancy"], folder)
        made = onnx.load(folder / "one.onnx")
        self.assertEqual(("com.acme", 2), (made.graph.node[0].domain, made.graph.node[0].attribute[0].i))
        self.assertIn("com.acme", [o.domain for o in made.opset_import])
        self.assertIsNone(by_type["Relu"]["file"])
        self.assertRegex(by_type["Relu"]["reason"], "the (type|rank) of its input 'a' is not known")

    def test_names_of_files_are_safe(self):
        names = ["../../etc/passwd", "a b:c*?\"<>|", "a/b", "A_b", "x" * 300, ".hidden", "...", "", "é",
                 "a\nb"]
        nodes = [node("NonZero", "x", f"d{i}", name) for i, name in enumerate(names)]
        path = self.write(model(nodes, [tensor("x", [3, 3])],
                                [tensor(f"d{i}", [2, None], TensorProto.INT64)
                                 for i in range(len(names))]))
        entries, folder = self.save(path)
        files = [e["file"] for e in entries]
        self.assertEqual(sorted(names), sorted(e["name"] for e in entries))
        self.assertEqual(len(names), len({f.lower() for f in files}), files)
        for file in files:
            self.assertRegex(file, r"^[A-Za-z0-9][A-Za-z0-9._-]{0,90}\.onnx$")

    def test_bodies(self):
        path = self.write(model(
            [node("Relu", "x", "a"), helper.make_node("If", ["c"], ["y"], **branches())],
            [tensor("x", [2, 64]), tensor("c", [], TensorProto.BOOL)],
            [tensor("y", [None, None], TensorProto.INT64)]))
        entries, folder = self.save(path)
        self.assertTrue(entries)
        for entry in entries:
            if entry["file"] is not None:
                onnx.checker.check_model(str(folder / entry["file"]))

    def test_nothing_rejected(self):
        entries, _ = self.save(self.write(relu()))
        self.assertEqual([], entries)

    def test_a_policy_is_no_rejection(self):
        entries, _ = self.save(self.write(relu()), "--policy", "cpu")
        self.assertEqual([], entries)

    def test_the_folder_must_be_new_or_empty(self):
        path = self.write(relu())
        folder = self.folder / "full"
        folder.mkdir()
        self.save(path, folder="full")
        for words in ((path,), (path, path)):
            done = anemone("check", *words, "--save-rejected", folder, "-q")
            self.expect_error(done, "already exists and is not empty")

    def test_several_models(self):
        other = self.folder / "other"
        other.mkdir()
        paths = [self.write(model(*GRAPHS["dynamic"])), self.write(relu(), "other/model.onnx")]
        done = anemone("check", *paths, "--save-rejected", self.folder / "all")
        self.assertEqual(0, done.returncode, done.stderr)
        for name, count in (("model", 1), ("model-2", 0)):
            index = json.loads((self.folder / "all" / name / "rejected.json").read_text())
            self.assertEqual(count, len(index["nodes"]))
        self.assertTrue(re.search(r"1 rejected node written to .*/all/model\n", done.stderr), done.stderr)


if __name__ == "__main__":
    unittest.main()
