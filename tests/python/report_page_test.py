"""ane.report(): the page as text and as a file."""

import os
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
        with self.assertRaisesRegex(ValueError, "zero byte"):
            ane.report(chain("Relu"), "a\0b")

    def test_no_link_is_followed_or_replaced_by_chance(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            kept = folder / "kept"
            kept.write_text("kept")
            page = folder / "net.html"
            (folder / f"net.html.{os.getpid()}.tmp").symlink_to(kept)
            ane.report(chain("Relu"), page)
            self.assertEqual("kept", kept.read_text())
            self.assertFalse(page.is_symlink())
            page.unlink()
            page.symlink_to(kept)  # the user's own
            html = ane.report(chain("Relu"), page)
            self.assertTrue(page.is_symlink())
            self.assertEqual(html, kept.read_text())

    def test_a_pipe_is_not_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = pathlib.Path(folder, "pipe")
            os.mkfifo(pipe)
            with self.assertRaisesRegex(OSError, "is a pipe that nobody reads"):
                ane.report(chain("Relu"), pipe)
            self.assertTrue(pipe.is_fifo())


if __name__ == "__main__":
    unittest.main()
