"""ane.diff(): models, reports, targets, and wrong arguments."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import jsonschema  # noqa: E402
import onnx  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
from small_models import chain  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Diff(unittest.TestCase):
    def test_models_and_reports(self):
        old, new = chain("Relu", "Sigmoid"), chain("Relu", "Abs", "Sigmoid")
        diff = ane.diff(old, new)
        self.assertTrue(diff)
        self.assertEqual(["Abs_1"], [node.name for node in diff.added if node.op_type == "Abs"])
        self.assertEqual(dict(diff), dict(ane.diff(ane.check(old), ane.check(new))))
        schema = json.loads((ROOT / "docs" / "schemas" / "diff.json").read_text())
        jsonschema.validate(json.loads(json.dumps(diff)), schema)
        self.assertFalse(ane.diff(old, old))
        self.assertTrue(str(ane.diff(old, old)).startswith("equal: 2 nodes"))

    def test_targets(self):
        model = chain("Relu", "Sin")
        by_words = ane.diff(model, target="m1,m4")
        self.assertEqual(("h13", "h16"), (by_words.summary.a.target, by_words.summary.b.target))
        report = ane.check(model, target="m1,m4")
        self.assertEqual(dict(by_words), dict(ane.diff(report, report, target=["m1", "m4"])))
        self.assertEqual(dict(by_words), dict(ane.diff(report, target="m1,m4")))

    def test_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/net.onnx"
            onnx.save(chain("Relu"), path)
            self.assertEqual(path, ane.diff(path, path).summary.a.path)

    def test_programs(self):
        text = ("program(1.3)\n{\n    func main<ios18>(tensor<fp16, [1, 4]> x) {\n"
                "        tensor<fp16, [1, 4]> y = %s(x = x)[name = string(\"y\")];\n    } -> (y);\n}\n")
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, f"{op}.mil") for op in ("relu", "tanh")]
            for path in paths:
                path.write_text(text % path.stem)
            diff = ane.diff(*paths)
            self.assertTrue(diff)
            self.assertEqual([{"key": "type", "from": "relu", "to": "tanh"}], diff.changed[0].changes)
            self.assertIn("type: relu -> tanh", str(diff))
            self.assertFalse(ane.diff(paths[0], paths[0]))
            for error, arguments, keywords, words in [
                (ValueError, [paths[0]], {}, "two programs of one kind"),
                (ValueError, [paths[0], chain("Relu")], {}, "two programs of one kind"),
                (ValueError, [*paths], {"target": "m1"}, "do not apply to programs"),
                (ValueError, [paths[0], f"{folder}/none.onnx"], {}, "is not a program"),
            ]:
                with self.assertRaisesRegex(error, words):
                    ane.diff(*arguments, **keywords)

    def test_packages(self):
        with tempfile.TemporaryDirectory() as folder:
            packages = []
            for name, target, made in (("a", "m1", chain("Relu", "Tanh")), ("b", "m1", chain("Relu", "Tanh")),
                                       ("c", "m4", chain("Relu", "Sigmoid"))):
                pathlib.Path(folder, name).mkdir()
                ane.compile(made, f"{folder}/{name}/net.onnx", target)
                packages += pathlib.Path(folder, name).glob("*.anemone")
            self.assertEqual(3, len(packages))
            self.assertFalse(ane.diff(packages[0], packages[1]))
            diff = ane.diff(packages[0], packages[2])
            self.assertEqual(("h13", "h16"), (diff.summary.a.target, diff.summary.b.target))
            self.assertIn({"key": "target", "from": "h13", "to": "h16"}, diff.changed[0].changes)

    def test_wrong_arguments(self):
        model = chain("Relu")
        report = ane.check(model, target="m1,m4")
        for error, arguments, keywords, words in [
            (ValueError, [model], {}, "want a second model, or two targets"),
            (ValueError, [model], {"target": "m1,m2,m3"}, "one for each side; got 3"),
            (ValueError, [report, report], {}, "give target= one of h13, h16"),
            (ValueError, [report, report], {"target": "m2"}, "give target= one of h13, h16"),
            (ane.UnknownTargetError, [model, model], {"target": "x1"}, "x1"),
            (TypeError, [model, 3], {}, "want a path"),
        ]:
            with self.assertRaisesRegex(error, words):
                ane.diff(*arguments, **keywords)


if __name__ == "__main__":
    unittest.main()
