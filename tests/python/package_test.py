"""The Python package as users see it: the plugin's functions, check(), compile(), the pages' examples."""

import contextlib
import copy
import io
import json
import os
import pathlib
import pickle
import re
import runpy
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import jsonschema  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import small_models as models  # noqa: E402
import support  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from onnxruntime_ep_ane._words import of_python  # noqa: E402
from support import PackageTest  # noqa: E402

ANEMONE = pathlib.Path(sys.argv.pop(1))
ROOT = pathlib.Path(sys.argv.pop(1))


class Imports(unittest.TestCase):
    def test_the_command_needs_neither_numpy_nor_the_library(self):
        done = subprocess.run(
            [sys.executable, "-c", "import sys, onnxruntime_ep_ane._command\n"
             "print([name for name in ('numpy', 'onnxruntime_ep_ane._anemone') if name in sys.modules])"],
            capture_output=True, text=True, timeout=60)
        self.assertEqual("[]\n", done.stdout, done.stderr)

    def test_every_name_is_there(self):
        for name in ane.__all__:
            self.assertIsNotNone(getattr(ane, name))
        self.assertLessEqual(set(ane.__all__), set(dir(ane)))
        with self.assertRaisesRegex(AttributeError, "has no attribute 'session'"):
            ane.session
        self.assertEqual(set(ane.__all__), set(ane._MODULES))


class Plugin(PackageTest):
    def test_names(self):
        self.assertEqual("ANEExecutionProvider", ane.get_ep_name())
        self.assertTrue(pathlib.Path(ane.get_library_path()).is_file())

    def test_register_is_idempotent(self):
        first = ane.register()
        self.assertTrue(first)
        again = ane.register("another")
        self.assertEqual(len(first), len(again))
        self.assertEqual(len(first), sum(d.ep_name == ane.get_ep_name() for d in ort.get_ep_devices()))

    def test_compile_writes_a_model_that_needs_no_planning(self):
        for embed in (False, True):
            for made in (models.network(), models.network().SerializeToString(),
                         self.write(models.network())):
                with self.subTest(f"{embed} {type(made).__name__}"):
                    out = self.folder / f"{embed}-{type(made).__name__}.onnx"
                    self.assertEqual(out, ane.compile(made, out, "m4", embed=embed))
                    kinds = [node.op_type for node in onnx.load(out).graph.node]
                    self.assertIn("EPContext", kinds)
                    self.assertNotIn("Conv", kinds)
                    options = ort.SessionOptions()
                    options.add_provider_for_devices(ane.register(), {})
                    session = ort.InferenceSession(str(out), options, enable_fallback=0)
                    x = models.image()
                    direct = ane.Session(models.network(), "m4").run({"x": x})["y"]
                    np.testing.assert_allclose(session.run(None, {"x": x})[0], direct, atol=1e-2)

    def test_compile_takes_none_for_an_options_default(self):
        self.enterContext(support.chdir(self.folder))
        ane.compile(models.relu(), "out.onnx", embed=True, cache_dir=None, report_path=None)
        self.assertEqual(["out.onnx"], [path.name for path in self.folder.iterdir()])

    def test_compile_writes_all_or_nothing(self):
        """Here files may have 4 KiB, so that ONNX Runtime cannot write the model."""
        large = self.folder / "large.onnx"
        weights = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
        product = helper.make_node("MatMul", ["x", "w"], ["y"])
        onnx.save(models.model([product], [("x", TensorProto.FLOAT, [1, 64])],
                               [("y", TensorProto.FLOAT, [1, 64])], [("w", weights)]), large)
        out = self.folder / "out"
        out.mkdir()
        for embed in (False, True):
            script = ("import resource, sys, onnxruntime_ep_ane as ane\nane.register()\n"
                      "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
                      f"try: ane.compile({str(large)!r}, {str(out / 'made.onnx')!r}, embed={embed})\n"
                      "except Exception as error: print(type(error).__name__, error)")
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
            self.assertRegex(done.stdout, r"^OSError .*(File too large; choose|may be full: free space)", done.stderr)
            self.assertEqual(embed, str(out) not in done.stdout)
            self.assertEqual([], list(out.iterdir()))

    def test_compile_takes_any_new_name_and_replaces_nothing(self):
        (self.folder / "old.onnx").write_text("precious")
        (self.folder / "dangling.onnx").symlink_to("gone.onnx")
        (self.folder / "folder.onnx").mkdir()
        before = sorted(self.folder.iterdir())
        for embed in (False, True):
            for name, error, told in (("old.onnx", FileExistsError, "exists already; remove it"),
                                      ("dangling.onnx", FileExistsError, "exists already; remove it"),
                                      ("folder.onnx", IsADirectoryError, "name a file")):
                with self.assertRaisesRegex(error, told):
                    ane.compile(models.relu(), self.folder / name, embed=embed)
            with self.assertRaisesRegex(IsADirectoryError, "name a file"):
                ane.compile(models.relu(), "", embed=embed)
        with self.assertRaisesRegex(ValueError, "extension; name it plain.onnx"):
            ane.compile(models.relu(), self.folder / "plain")
        self.assertEqual(before, sorted(self.folder.iterdir()))
        self.assertEqual("precious", (self.folder / "old.onnx").read_text())
        plain = ane.compile(models.relu(), self.folder / "plain", embed=True)
        self.assertIn("EPContext", [node.op_type for node in onnx.load(plain).graph.node])

    def test_limits_that_are_reached_while_planning(self):
        """ONNX Runtime must not run the nodes instead, and only log the error."""
        out = self.folder / "out.onnx"
        triangle = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> '
                                           "g (float[2048, 2048] x) => (float[2048, 2048] y) { y = Trilu(x) }")
        for options, error, text in (({"time_limit": 1e-6}, TimeoutError, "time limit of 1e-06 s reached"),
                                     ({"memory_limit": "8M"}, MemoryError, "Trilu.*: planning needs .*8.0 MiB"),
                                     ({"limits": "tensor-bytes=8M,nodes=9"}, MemoryError, "more than 8.0 MiB")):
            with self.assertRaisesRegex(error, text):
                ane.compile(triangle, out, **options)
            self.assertFalse(out.exists())
            session = ort.SessionOptions()
            session.add_provider_for_devices(ane.register(), {key: str(value) for key, value in options.items()})
            with self.assertRaisesRegex(Exception, text):
                ort.InferenceSession(triangle.SerializeToString(), session, enable_fallback=0)

    def test_limits_of_what_a_model_may_ask_for(self):
        model = models.network()
        for limits in ({"nodes": 2}, {"tensor-bytes": "1K", "nodes": 1000}):
            name = next(iter(limits))
            text = rf"raise the limit \(limits={{'{name}': N}}\)"
            for function in (ane.check, ane.Session):
                with self.assertRaisesRegex(MemoryError, text):
                    function(model, limits=limits)
            with self.assertRaisesRegex(MemoryError, text):
                ane.compile(model, self.folder / "out.onnx", limits=limits)
        self.assertIsNotNone(ane.Session(model, limits={"nodes": 5, "tensor-bytes": "1G"}))
        for limits, error in (({"nodes": 0}, ValueError), ({"knots": 1}, ValueError), ("nodes=1", TypeError)):
            for function in (ane.check, ane.Session):
                with self.assertRaises(error):
                    function(model, limits=limits)

    def test_compile_says_what_is_wrong(self):
        out = self.folder / "out.onnx"
        with self.assertRaisesRegex(ValueError, "accepts no node.*check"):
            ane.compile(models.identity(TensorProto.INT64), out)
        with self.assertRaises(ane.UnknownTargetError):
            ane.compile(models.relu(), out, "m0")
        with self.assertRaisesRegex(Exception, "valid: target, route"):
            ane.compile(models.relu(), out, colour="red")
        with self.assertRaisesRegex(ValueError, "accepts no node.*with the same policy"):
            ane.compile(models.relu(), out, policy="cpu")
        path = self.write(models.relu())
        with self.assertRaisesRegex(ValueError, "is the model itself"):
            ane.compile(path, self.folder / "." / path.name)
        with self.assertRaisesRegex(Exception, "report_path.*is not JSON"):
            ane.compile(path, out, report_path=path)
        self.assertEqual(models.relu().SerializeToString(), path.read_bytes())
        with self.assertRaisesRegex(ValueError, r"\\udcff.*is not UTF-8"):
            ane.compile(path, os.fsdecode(bytes(self.folder) + b"/\xff.onnx"))


class Check(PackageTest):
    def command(self, *words):
        return subprocess.run([ANEMONE, "check", *words], capture_output=True, text=True).stdout

    def test_the_report_is_what_the_command_prints(self):
        path = self.write(models.network())
        report = ane.check(path, target="m1,M4")
        schema = json.loads((ROOT / "docs" / "schemas" / "check.json").read_text())
        jsonschema.validate(report, schema)
        self.assertEqual(json.loads(self.command(path, "--target", "m1,m4", "--json")), report)
        printed = self.command(path, "--target", "m1,m4")
        self.assertEqual(of_python(printed).rstrip("\n"), str(report))
        self.assertEqual(str(report), repr(report))
        self.assertEqual(of_python(self.command(path, "--target", "m1,m4", "-v")), report.text(every_node=True))

    def test_a_report_can_be_pickled_and_copied(self):
        report = ane.check(models.network(), target="m1,m4")
        for again in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
            self.assertIsInstance(again, ane.Report)
            self.assertEqual(report, again)
            self.assertEqual("h16", again.models[0].targets[1].target)
            self.assertEqual(str(report), str(again))
            self.assertEqual(report.text(every_node=True), again.text(every_node=True))
            self.assertEqual(report._repr_html_(), again._repr_html_())

    def test_lines_that_a_terminal_has_no_room_for_are_wrapped(self):
        class Terminal(io.StringIO):
            def isatty(self):
                return True

        report, session = ane.check(models.network()), ane.Session(models.network())
        whole = str(report)
        self.assertGreater(max(map(len, whole.splitlines())), 60)
        self.enterContext(unittest.mock.patch.dict(os.environ, COLUMNS="60"))
        self.enterContext(contextlib.redirect_stdout(Terminal()))
        for shown in (str(report), repr(session)):
            self.assertLessEqual(max(map(len, shown.splitlines())), 60)
            self.assertEqual(whole.split(), shown.split())

    def test_a_name_that_is_no_utf8_is_shown(self):
        path = os.fsdecode(bytes(self.folder) + b"/\xff.onnx")
        pathlib.Path(path).write_bytes(models.relu().SerializeToString())
        report = ane.check(path)
        self.assertIn("\N{REPLACEMENT CHARACTER}.onnx", report.models[0].path)
        self.assertEqual(str(report), repr(ane.Session(path)))

    def test_ports_whose_names_are_not_utf8(self):
        """Their bytes are surrogates, as in Python's paths, so they can be given back."""
        bad = b"\xff\x9b\x00\xc3"
        made = models.relu()
        made.graph.input[0].name = made.graph.node[0].input[0] = "xQQQQ"
        made.graph.output[0].name = made.graph.node[0].output[0] = "yQQQQ"
        session = ane.Session(made.SerializeToString().replace(b"QQQQ", bad))
        (given,), (result,) = session.inputs, session.outputs
        self.assertEqual((b"x" + bad, b"y" + bad), (os.fsencode(given.name), os.fsencode(result.name)))
        x = np.full((1, 4, 8, 8), -1, np.float32)
        self.assertEqual([result.name], list(session.run({given.name: x})))
        with self.assertRaisesRegex(ValueError, r"no such input|has no input|missing"):
            session.run({"x": x})

    def test_an_error_about_a_name_that_is_not_utf8_is_told(self):
        bad = b"\xff\x9b\xc3("
        made = models.relu()
        made.graph.node[0].op_type = "QQQQ"
        with self.assertRaisesRegex(ValueError, r"\\377\\233\\303\(.*ONNX has no such operator"):
            ane.Session(made.SerializeToString().replace(b"QQQQ", bad))

    def test_objects(self):
        target = ane.check(models.network(), target=["h13"]).models[0].targets[0]
        self.assertEqual("h13", target.target)
        self.assertEqual({"conv": "engine", "relu": "engine", "cast": "cpu", "back": "cpu",
                          "sigmoid": "engine"},
                         {node.name: node.placement for node in target.nodes})
        self.assertEqual(target.summary.macs, target.summary.engine_macs)
        with self.assertRaisesRegex(AttributeError, "targett: there are target, "):
            target.targett

    def test_a_path_bytes_and_a_proto_are_one_model(self):
        made = models.network()
        path = self.write(made)
        plans = [ane.check(model).models[0].targets
                 for model in (made, made.SerializeToString(), path, str(path))]
        self.assertTrue(all(plan == plans[0] for plan in plans))

    def test_all_targets_and_bindings(self):
        free = models.relu(("N", 4, "H", 8))
        report = ane.check(free, target="all", dims={"N": 1}, shapes={"x": [1, 4, 8, 8]})
        answers = {target.target: target for target in report.models[0].targets}
        self.assertLessEqual({"h11", "h13", "h16", "h18"}, answers.keys())
        self.assertEqual(1, answers["h13"].summary.nodes)
        refused = ane.check(models.relu(), policy="cpu").models[0].targets[0]
        self.assertEqual("policy", refused.nodes[0].layer)

    def test_html_is_escaped_and_has_no_scripts(self):
        made = models.network()
        made.graph.node[1].op_type = "<script>alert(1)</script>"
        made.graph.node[1].domain = "x"
        made.opset_import.append(helper.make_opsetid("x", 1))
        html = ane.check(made, target="h12,h13")._repr_html_()
        self.assertNotIn("<script", html)
        self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt;", html)
        for piece in ("h12", "h13", "cannot tell the share", "<details>"):
            self.assertIn(piece, html)

    def test_errors(self):
        with self.assertRaisesRegex(ane.UnknownTargetError, "^target 'h133'.*h13") as caught:
            ane.check(models.relu(), target="h133")
        self.assertIsInstance(caught.exception, KeyError)
        with self.assertRaisesRegex(ane.UnknownTargetError, "^a target name is empty; .*m1,m4"):
            ane.check(models.relu(), target="m1,")
        with self.assertRaisesRegex(TypeError, "target: want a name or a list of names, got int"):
            ane.check(models.relu(), target=5)
        with self.assertRaisesRegex(FileNotFoundError, "none.onnx"):
            ane.check(self.folder / "none.onnx")
        with self.assertRaisesRegex(ValueError, "route 'x'"):
            ane.check(models.relu(), route="x")
        for words, told in (({"dims": {"M": 1}}, r"dims=\{'M': 1\}: .*'N'"),
                            ({"shapes": {"z": [1]}}, "shapes z: "),
                            ({"buckets": {"M": [1, 2]}}, r"buckets=\{'M': \[1, 2\]\}"),
                            ({"buckets": {"N": [1]}, "dims": {"N": 1}}, "dims binds 'N' too")):
            with self.subTest(str(words)), self.assertRaisesRegex(ValueError, told):
                ane.check(models.relu(("N", 4)), **words)
        with self.assertRaises(ValueError):
            ane.check(models.network().SerializeToString()[:100])


class Pages(PackageTest):
    def test_the_examples_run(self):
        self.enterContext(support.chdir(self.folder))
        self.write(models.network())
        for page in ("README.md", "docs/python.md"):
            blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
            self.assertTrue(blocks, page)
            for block in blocks:
                script = self.folder / "example.py"
                script.write_text(block)
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    runpy.run_path(str(script), {"x": models.image()})
                self.assertIn("of MACs on the engine", printed.getvalue(), page)


if __name__ == "__main__":
    unittest.main()
