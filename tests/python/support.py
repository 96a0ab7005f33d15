"""Shared by the tests of the Python package. They run on Python 3.10 too, which has neither of these."""

import contextlib
import os
import pathlib
import tempfile
import unittest

os.environ.setdefault("ANEMONE_PROGRAM_CACHE", "")  # not the user's


@contextlib.contextmanager
def chdir(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class PythonTest(unittest.TestCase):
    def enterContext(self, manager):
        entered = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return entered


class PackageTest(PythonTest):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, made, name="net.onnx"):
        path = self.folder / name
        path.write_bytes(made.SerializeToString())
        return path
