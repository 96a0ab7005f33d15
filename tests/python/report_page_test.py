"""ane.report(): the page as text and as a file."""

import pathlib
import pickle
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import onnxruntime_ep_ane as ane  # noqa: E402
from small_models import chain  # noqa: E402


class ReportPage(unittest.TestCase):
    def test_text_and_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "net.html")
            html = ane.report(chain("Relu", "Erf"), path, target="m1,m4")
            self.assertEqual(html, path.read_text())
            self.assertEqual([path], list(path.parent.iterdir()))
        self.assertTrue(html.startswith("<!doctype html>"))
        for word in ("Relu_0", '"h13"', '"h16"', 'id="advice"'):
            self.assertIn(word, html)
        self.assertEqual(html, ane.report(chain("Relu", "Erf"), target=["m1", "m4"]))

    def test_the_page_of_a_report(self):
        report = ane.check(chain("Relu"), target="m4")
        self.assertEqual(ane.report(chain("Relu"), target="m4"), report.page())
        self.assertEqual(report.page(), pickle.loads(pickle.dumps(report)).page())

    def test_the_model_is_not_overwritten(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "net.onnx")
            path.write_bytes(chain("Relu").SerializeToString())
            before = path.read_bytes()
            with self.assertRaisesRegex(ValueError, "is the model that is read"):
                ane.report(path, path)
            self.assertEqual(before, path.read_bytes())

    def test_a_file_that_cannot_be_written(self):
        with self.assertRaisesRegex(FileNotFoundError, "'/nothing/here'"):
            ane.report(chain("Relu"), "/nothing/here/net.html")
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(IsADirectoryError, f"'{folder}'"):
            ane.report(chain("Relu"), folder)
        with self.assertRaises(ane.UnknownTargetError):
            ane.report(chain("Relu"), target="x1")


if __name__ == "__main__":
    unittest.main()
