"""Messages and remedies in Python name keywords, not the flags of the command; and all functions raise
the exceptions of docs/python.md.

    words_test.py REPOSITORY
"""

import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import small_models as models  # noqa: E402
import support  # noqa: E402
from onnxruntime_ep_ane._words import of_python  # noqa: E402

ROOT = pathlib.Path(sys.argv.pop(1))
COMMAND = re.compile(r"`[^`\n-][^`\n]*`")  # a command that a message quotes
FLAG = re.compile(r"(?<![\w-])--?[a-z]")


def flags_in(text):
    return FLAG.findall(COMMAND.sub("", text))


class Words(unittest.TestCase):
    def test_a_flag_with_its_value_is_a_keyword_with_its_value(self):
        for said, wanted in (
                ("give --dim 'n=1' --dim 'm=2', or --shape 'x=?x4'",
                 "give dims={'n': 1, 'm': 2}, or shapes={'x': [?, 4]}"),
                ("bind them: --dim batch=1\n      --dim seq=128", "bind them: dims={'batch': 1, 'seq': 128}"),
                ("--dim 'a b=1'", "dims={'a b': 1}"), ("--shape x=scalar", "shapes={'x': []}"),
                ("a larger one (--bucket n=...,5)", "a larger one (buckets={'n': [..., 5]})"),
                ("use --dim or --shape.", "use dims or shapes."),
                ("give --dim n=1, or", "give dims={'n': 1}, or"),
                ("drop --policy cpu", "drop policy='cpu'"), ("drop it from --policy", "drop it from policy"),
                ("(--policy refuse:UNIT)", "(policy='refuse:UNIT')"),
                ("--policy refuse:node:/m/q.1/Add runs it.", "policy='refuse:node:/m/q.1/Add' runs it."),
                ("use --route netplist, or", "use route='netplist', or"),
                ("--no-rewrites, --rewrites", "rewrites=False, rewrites=True"),
                ("(--heed-limits does so)", "(heed_limits=True does so)"),
                ("--numerics exact,mac-tile=none, or", "numerics='exact,mac-tile=none', or"),
                ("with --overridable w.1/x to keep it", "with overridable=['w.1/x'] to keep it"),
                ("--overridable w:0: there is none", "overridable=['w:0']: there is none"),
                ("--overridable 'my b' or --overridable all.", "overridable=['my b'] or overridable='all'."),
                ("--threads 4", "threads=4"), ("3 more, see -v", "3 more, see text(every_node=True)"),
                ("`anemone run --hazards` says", "`anemone run --hazards` says"),
                ("self_attn/q--dim and x-v", "self_attn/q--dim and x-v")):
            with self.subTest(said):
                self.assertEqual(wanted, of_python(said))

    def test_no_text_of_the_tables_names_a_flag(self):
        texts = []

        def collect(json_value):
            if isinstance(json_value, dict):
                for key, value in json_value.items():
                    if key in ("remedy", "words", "message") and isinstance(value, str):
                        texts.append(value)
                    collect(value)
            elif isinstance(json_value, list):
                for value in json_value:
                    collect(value)

        for path in sorted((ROOT / "engine" / "tables").rglob("*.json")):
            if "remedy" in path.read_text():
                collect(json.loads(path.read_text()))
        self.assertGreater(len([text for text in texts if flags_in(text)]), 5)
        self.assertEqual([], [text for text in texts if flags_in(of_python(text))])

    def test_no_report_names_a_flag(self):
        free = models.relu(("batch", 4, "H", None))
        reports = [ane.check(free, "all"), ane.check(models.network(), "m1,m4", policy="cpu"),
                   ane.check(models.network(), "h11", route="mil"),
                   ane.check(models.network(), policy="refuse:Conv", rewrites=False),
                   ane.check(models.relu(("n", 4)), buckets={"n": [2, 4]})]
        named = 0
        for report in reports:
            named += len(flags_in(report._checked.text(True, 80)))
            for target in report.models[0].targets:
                for item in (*target.nodes, *target.warnings):
                    self.assertEqual([], flags_in(f"{item.message} {item.remedy}"))
            for text in (str(report), report.text(every_node=True), report._repr_html_()):
                self.assertEqual([], re.findall(r"(?<![\w-])--[a-z]", text.replace("<!--", "")))
        self.assertGreater(named, 0)
        session = ane.Session(models.network(), policy="cpu")
        self.assertEqual([], flags_in(repr(session) + json.dumps(session.plan)))


class Errors(support.PythonTest):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_all_functions_raise_the_same(self):
        damaged = models.network().SerializeToString()[:100]
        free = models.relu(("N", 4))
        missing = self.folder / "none.onnx"

        def compile_(model, *arguments, **options):
            return ane.compile(model, self.folder / "out.onnx", *arguments, **options)

        every = (ane.check, ane.Session, compile_)
        direct = (ane.check, ane.Session)
        for functions, wanted, model, arguments, options in (
                (every, ane.UnknownTargetError, models.relu(), ("m0",), {}),
                (every, ValueError, models.relu(), ("m0",), {}),
                (every, KeyError, models.relu(), ("",), {}),
                (every, TypeError, models.relu(), (7,), {}),
                (every, TypeError, 7, (), {}),
                (every, TypeError, None, (), {}),
                (every, FileNotFoundError, missing, (), {}),
                (every, FileNotFoundError, str(missing), (), {}),
                (every, ValueError, damaged, (), {}),
                (every, ValueError, b"", (), {}),
                (every, TypeError, models.relu(), (), {"colour": "red"}),
                (every, ValueError, models.relu(), (), {"route": "x"}),
                (every, ValueError, models.relu(), (), {"policy": "most"}),
                (every, ValueError, models.relu(), (), {"rewrites": "maybe"}),
                ((ane.Session, compile_), ValueError, models.relu(), (), {"threads": -1}),
                ((ane.Session, compile_), ValueError, models.relu(), (), {"threads": 2.5}),
                ((ane.Session, compile_), ValueError, models.relu(), (), {"numerics": "x"}),
                ((ane.Session, compile_), NotImplementedError, models.relu(), (), {"device": "apple"}),
                (direct, ValueError, free, (), {"dims": {"M": 1}}),
                (direct, ValueError, free, (), {"dims": {"N": "x"}}),
                (direct, TypeError, free, (), {"dims": 1}),
                (direct, TypeError, free, (), {"dims": "N=1"}),
                (direct, TypeError, free, (), {"shapes": [1, 4]}),
                (direct, ValueError, free, (), {"shapes": {"z": [1]}}),
                (direct, ValueError, free, (), {"shapes": {"x": [1]}}),
                (direct, ValueError, free, (), {"shapes": {"x": [1, 5]}}),
                (direct, ValueError, free, (), {"buckets": {"M": [1, 2]}}),
                (direct, ValueError, free, (), {"buckets": {"N": [1]}, "dims": {"N": 1}}),
                ((ane.Session,), ValueError, free, (), {"max_plans": 0}),
                ((compile_,), ValueError, models.relu(), (), {"min_segment_nodes": 0}),
                ((compile_,), ValueError, models.relu(), (), {"report_path": "/none/file"})):
            for function in functions:
                with self.subTest(f"{function.__name__} {arguments} {options} {str(model)[:40]!r}"):
                    with self.assertRaises(wanted) as caught:
                        function(model, *arguments, **options)
                    self.assertEqual([], flags_in(str(caught.exception)))
                    self.assertGreater(len(str(caught.exception)), 10)

    def test_a_folder_that_does_not_exist(self):
        with self.assertRaisesRegex(FileNotFoundError, "none/out.onnx: the folder does not exist"):
            ane.compile(models.relu(), self.folder / "none" / "out.onnx")

    def test_arrays(self):
        session = ane.Session(models.relu())
        for inputs, wanted in (({}, ValueError), ({"x": np.ones(3)}, ValueError), (None, TypeError),
                               ({"x": np.ones((1, 4, 8, 9), np.float32)}, ValueError)):
            with self.subTest(str(inputs)), self.assertRaises(wanted) as caught:
                session.run(inputs)
            self.assertEqual([], flags_in(str(caught.exception)))

    def test_the_page_lists_them(self):
        page = (ROOT / "docs" / "python.md").read_text()
        for kind in ("ValueError", "UnknownTargetError", "TypeError", "FileNotFoundError",
                     "NotImplementedError", "RuntimeError"):
            self.assertRegex(page, rf"\n\|[^|]*`{kind}`")

    def test_no_threads_means_all_cores(self):
        x = models.image()
        wanted = ane.Session(models.network(), threads=1).run({"x": x})["y"]
        for threads in (0, None):
            made = ane.Session(models.network(), threads=threads).run({"x": x})["y"]
            np.testing.assert_array_equal(wanted, made)


if __name__ == "__main__":
    os.environ.setdefault("COLUMNS", "80")
    unittest.main()
