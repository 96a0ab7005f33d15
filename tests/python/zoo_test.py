"""ane.zoo(): results as objects, the parameters of the command, and wrong arguments."""

import json
import pathlib
import unittest
import unittest.mock

import jsonschema
import onnxruntime_ep_ane as ane
from onnx import TensorProto, helper
from support import PackageTest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def relu(*shape):
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", ports[:1], ports[1:])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


class Zoo(PackageTest):
    def test_results_are_objects(self):
        path, out = self.write(relu(1, 8)), self.folder / "out"
        zoo = ane.zoo(path, out, target=["m1", "m4"], run=True, compile=True, jobs=2, timeout=60)
        jsonschema.validate(zoo, json.loads((ROOT / "docs" / "schemas" / "zoo.json").read_text()))
        [model] = zoo.models
        self.assertEqual(("ok", str(path)), (model.status, model.path))
        self.assertEqual(["h13", "h16"], [target.target for target in model.targets])
        for target in model.targets:
            plan = ane.check(path, target=target.target).models[0].targets[0]
            self.assertEqual(plan.summary, target.summary)
            self.assertGreater(target.cosine, 0.999)
            self.assertGreater(target.compile_ms, 0)
        self.assertEqual(f"1 model, 1 ok: {out}/index.html", str(zoo))
        self.assertTrue((out / "index.html").is_file())
        self.assertEqual(zoo, ane.zoo(path, out, "m1,m4", run=True, compile=True))  # nothing is repeated

    def test_settings_are_those_of_check(self):
        path = self.write(relu("batch", 8))
        for keywords in ({"dims": {"batch": 2}}, {"shapes": {"x": [2, 8]}}):
            zoo = ane.zoo([path], self.folder / "out", policy="cpu", rewrites=False, route=None, **keywords)
            summary = zoo.models[0].targets[0].summary
            self.assertEqual(([], 1), (summary.free_dimensions, summary.cpu_nodes))

    def test_a_bad_model_is_a_result(self):
        path = self.folder / "-bad.onnx"
        path.write_bytes(b"bad")
        [model] = ane.zoo(str(path), self.folder / "out").models
        self.assertEqual("refused", model.status)

    def test_wrong_arguments(self):
        path, out = self.write(relu(1, 8)), self.folder / "out"
        for keywords, kind, said in [({"target": "x9"}, ane.UnknownTargetError, "x9"),
                                     ({"policy": "x"}, ValueError, "policy"),
                                     ({"convert": "zip"}, ValueError, "zip"),
                                     ({"executor": "far"}, ValueError, "ray:ADDRESS"),
                                     ({"jobs": 0}, ValueError, "jobs"),
                                     ({"threads": 2}, ValueError, "threads"),
                                     ({"color": 2}, TypeError, "color")]:
            with self.assertRaisesRegex(kind, said):
                ane.zoo(path, out, **keywords)
        with self.assertRaisesRegex(FileNotFoundError, "none"):
            ane.zoo([path, self.folder / "none"], out)
        out.mkdir()
        (out / "results.jsonl").write_text("hello\n")
        with self.assertRaisesRegex(RuntimeError, "line 1 is not valid JSON"):
            ane.zoo(path, out)


    def test_what_the_command_says_is_told(self):
        """Also with `quiet`, if it ends without a document."""
        path = self.folder / "anemone"
        path.write_text("#!/bin/sh\necho 'anemone: cannot load libx.so' >&2\nexit 127\n")
        path.chmod(0o755)
        with unittest.mock.patch("onnxruntime_ep_ane._zoo.command_path", lambda: str(path)):
            with self.assertRaisesRegex(RuntimeError, "code 127: anemone: cannot load libx.so"):
                ane.zoo(self.write(relu(1, 8)), self.folder / "out")


if __name__ == "__main__":
    unittest.main()
