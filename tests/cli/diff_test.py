"""`anemone diff`: two models, one model on two targets, saved documents; and documents that are none."""

import json
import unittest

import jsonschema
from onnx import helper

from support import ROOT, CliTest, anemone, model, tensor

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "diff.json").read_text())
SHAPE = [1, 8, 6, 6]


def chain(*operators, names=None):
    """A model of operators with one input, in a chain."""
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"], name=names[i] if names else f"{op}_{i}")
             for i, op in enumerate(operators)]
    return model(nodes, [tensor("v0", SHAPE)], [tensor(f"v{len(operators)}", SHAPE)])


class Diff(CliTest):
    def diff(self, *words, code):
        done = anemone("diff", *words, "--json")
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        return document

    def saved(self, path, name, *words):
        done = anemone("check", path, "--json", *words)
        return self.write(done.stdout.encode(), name)

    def test_what_differs_is_shown(self):
        exported = ROOT / "models" / "exported"
        gelus = [exported / f"gelu_{form}_dynamo.onnx" for form in ("erf", "tanh")]  # one unit each
        self.assertFalse(self.diff(*gelus, code=3)["equal"])
        self.assertRegex(anemone("diff", *gelus).stdout, r"\n  nodes +5 +8\n")

    def test_a_model_equals_itself(self):
        path = self.write(chain("Relu", "Sigmoid"))
        document = self.diff(path, path, code=0)
        self.assertTrue(document["equal"])
        self.assertEqual([], document["moved"] + document["added"] + document["removed"])
        done = anemone("diff", path, path)
        self.assertEqual((0, "equal: 2 nodes"), (done.returncode, done.stdout.splitlines()[0]))

    def test_two_targets_of_one_model(self):
        path = self.write(chain("Relu", "Erf", "Sigmoid", "Sin"))
        document = self.diff(path, "--target", "h11,h18", code=3)
        moved = {node["name"]: node for node in document["moved"]}
        for node in moved.values():
            self.assertEqual(("cpu", "engine"), (node["from"], node["to"]))
            self.assertRegex(node["reason"], r"^\[.+\]")
            self.assertIsNone(node["from_us"])
        self.assertTrue(moved)
        plans = [json.loads(anemone("check", path, "--json", "--target", t).stdout)["models"][0]["targets"][0]
                 for t in ("h11", "h18")]
        placed = [{n["name"]: n["placement"] for n in plan["nodes"]} for plan in plans]
        self.assertEqual({name for name in placed[0] if placed[0][name] != placed[1][name]}, set(moved))
        self.assertEqual("h11", document["summary"]["a"]["target"])
        self.assertEqual(plans[1]["summary"]["estimate_us"], document["summary"]["b"]["estimate_us"])

    def test_saved_documents_give_the_same_answer(self):
        path = self.write(chain("Relu", "Erf", "Sigmoid"))
        old = self.saved(path, "old.json", "--target", "h11")
        new = self.saved(path, "new.json", "--target", "h18")
        of_models = self.diff(path, "--target", "h11,h18", code=3)
        of_documents = self.diff(old, new, code=3)
        self.assertEqual(of_models["moved"], of_documents["moved"])
        self.assertEqual(of_models["moved"], self.diff(old, path, "--target", "h11,h18", code=3)["moved"])

    def test_a_document_of_several_targets_needs_one(self):
        path = self.write(chain("Relu"))
        several = self.saved(path, "several.json", "--target", "h13,h14")
        done = anemone("diff", several, path)
        self.assertEqual(2, done.returncode)
        self.assertIn("has several plans; give --target with one of h13, h14", done.stderr)
        self.diff(several, several, "--target", "h13", code=0)
        done = anemone("diff", several, several, "--target", "h15")
        self.assertEqual(2, done.returncode)
        self.assertIn("has no plan for h15", done.stderr)

    def test_nodes_of_two_models_are_matched(self):
        old = self.write(chain("Relu", "Sigmoid", "Tanh", "Erf"), "old.onnx")
        inserted = chain("Relu", "Abs", "Sigmoid", "Tanh", "Erf",
                         names=["Relu_0", "new", "Sigmoid_1", "Tanh_2", "Erf_3"])
        document = self.diff(old, self.write(inserted, "new.onnx"), code=3)
        self.assertEqual((["new"], []), ([n["name"] for n in document["added"]], document["removed"]))
        back = self.diff(self.folder / "new.onnx", old, code=3)
        self.assertEqual(["new"], [n["name"] for n in back["removed"]])

    def test_renamed_and_nameless_nodes_are_matched_by_operator(self):
        old = self.write(chain("Relu", "Sigmoid", "Tanh"), "old.onnx")
        for names in (["a", "b", "c"], ["", "", ""]):
            document = self.diff(old, self.write(chain("Relu", "Sigmoid", "Tanh", names=names), "new.onnx"),
                                 code=0)
            self.assertEqual([], document["added"] + document["removed"])

    def test_nodes_in_another_order_are_matched_by_name(self):
        old = self.write(chain("Relu", "Sigmoid", "Tanh", names=["a", "b", "c"]), "old.onnx")
        new = self.write(chain("Tanh", "Relu", "Sigmoid", names=["c", "a", "b"]), "new.onnx")
        document = self.diff(old, new, code=0)
        self.assertEqual([], document["added"] + document["removed"])

    def test_models_with_nothing_in_common(self):
        """Nodes of unrelated models are not paired because their ids or automatic names are equal."""
        weight = helper.make_tensor("w", 1, [8, 8, 3, 3], [0.1] * 576)
        conv = model([helper.make_node("Conv", ["x", "w"], ["a"], name="Conv_0", pads=[1] * 4),
                      helper.make_node("Relu", ["a"], ["b"], name="Relu_1"),
                      helper.make_node("Conv", ["b", "w"], ["y"], name="Conv_2", pads=[1] * 4)],
                     [tensor("x", SHAPE)], [tensor("y", SHAPE)], [weight])
        old = self.write(conv, "old.onnx")
        new = self.write(chain("Sin", "Relu", "Cos", "Neg"), "new.onnx")
        document = self.diff(old, new, code=3)
        self.assertFalse(document["related"])
        self.assertEqual((3, 4), tuple(sum(node["nodes"] for node in document[side]) for side in ("removed", "added")))
        text = anemone("diff", old, new).stdout
        self.assertTrue(text.startswith("different: the models have nothing in common (3 nodes and 4)\n"), text)
        related = self.write(chain("Sin", "Cos", "Neg"), "third.onnx")
        self.assertTrue(self.diff(new, related, code=3)["related"])

    def test_nodes_are_those_of_the_file(self):
        """Several nodes may be one entry of a plan; each is counted."""
        swish = model([helper.make_node("Sigmoid", ["x"], ["s"], name="s"),
                       helper.make_node("Mul", ["x", "s"], ["m"], name="m"),
                       helper.make_node("Relu", ["m"], ["y"], name="r")],
                      [tensor("x", SHAPE)], [tensor("y", SHAPE)])
        path, relu = self.write(swish, "swish.onnx"), self.write(chain("Relu", names=["r"]), "relu.onnx")
        counted = anemone("check", path, "--json").stdout
        self.assertEqual(3, json.loads(counted)["models"][0]["targets"][0]["summary"]["nodes"])
        document = self.diff(path, relu, code=3)
        self.assertEqual(2, sum(node["nodes"] for node in document["removed"]))
        self.assertIn("0 nodes moved, 0 added, 2 removed", anemone("diff", path, relu).stdout)

    def test_a_large_model_is_compared_in_time(self):
        old = self.write(chain(*["Relu", "Sigmoid"] * 2000), "old.onnx")
        new = self.write(chain(*["Tanh", "Relu", "Sigmoid"] * 1000), "new.onnx")
        self.diff(old, new, code=3)

    def test_the_text_fits_the_terminal(self):
        path = self.write(chain("Relu", *["Erf"] * 30), "a_long_name_" + 40 * "n" + ".onnx")
        for words in ([], ["-v"]):
            done = anemone("diff", path, "--target", "h11,h18", *words)
            self.assertEqual(3, done.returncode)
            for line in done.stdout.splitlines():
                self.assertLessEqual(len(line), 80, line)
            self.assertEqual(not words, "e.g. Erf_1" in done.stdout, done.stdout)
        self.assertRegex(anemone("diff", path, "--target", "h11,h18", "-q").stdout,
                         r"^different: \d+ nodes moved, 0 added, 0 removed\n$")

    def test_one_model_on_one_target_is_no_question(self):
        path = self.write(chain("Relu"))
        for words in ([], ["--target", "m1"], ["--target", "m1,m2,m3"]):
            done = anemone("diff", path, *words)
            self.assertEqual(2, done.returncode, done.stdout)

    def test_a_document_that_is_none_is_refused(self):
        path = self.write(chain("Relu"))
        good = json.loads(anemone("check", path, "--json").stdout)
        plan = good["models"][0]["targets"][0]
        bad = [b"{", b"{}", b'{"models": 3}', b'{"models": []}', b'{"models": [{"targets": 7}]}',
               b'{"models": [{"targets": [7]}]}', b'{"models": [{"targets": [{}]}]}',
               b'{"a":' * 100000, b"{" + b'"models":[' * 50000]
        for nodes in (3, [3], [{}], [{"id": 3}], [{"id": "/#0"}]):
            bad.append(json.dumps({"models": [{"targets": [{**plan, "nodes": nodes}]}]}).encode())
        for text in bad:
            done = anemone("diff", self.write(text, "bad.json"), path)
            self.assertIn(done.returncode, (1, 2), text[:60])
            self.assertIn("bad.json", done.stderr)
            self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)
        for key in ("summary", "target"):
            for value in (3, None, [], "x", {"macs": []}):
                text = json.dumps({"models": [{"targets": [{**plan, key: value}]}]}).encode()
                self.assertIn(anemone("diff", self.write(text, "odd.json"), path).returncode, (0, 1, 2, 3))

    def test_a_missing_file_is_named(self):
        path = self.write(chain("Relu"))
        done = anemone("diff", path, self.folder / "none.onnx")
        self.assertEqual(1, done.returncode)
        self.assertIn("none.onnx", done.stderr)


if __name__ == "__main__":
    unittest.main()
