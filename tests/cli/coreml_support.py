"""Shared by the tests of Core ML packages: converts a model, opens the package with coremltools, runs it by the
interpreter, and compares with ONNX Runtime."""

import json
import os
import sys

import jsonschema
import numpy
import onnxruntime
from onnx import helper

from support import ROOT, CliTest, anemone

sys.path.insert(0, str(ROOT / "tests" / "provider" / "coreml"))
from mil_interpreter import Package  # noqa: E402

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "convert.json").read_text())


def constant(name, values, kind=1):
    values = numpy.asarray(values)
    return helper.make_tensor(name, kind, values.shape, values.ravel())


def random(*shape, seed=0):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def cosine(a, b):
    a, b = a.astype(float).ravel(), b.astype(float).ravel()
    both = numpy.linalg.norm(a) * numpy.linalg.norm(b)
    return 1.0 if both == 0 and (a == b).all() else float(a @ b / both)


class CoreMLTest(CliTest):
    def convert(self, path, *words):
        out = self.folder / f"{len(os.listdir(self.folder))}.mlpackage"
        done = anemone("convert", path, "--to", "mlpackage", "-o", out, *words, "--json", timeout=250)
        self.assertEqual(0, done.returncode, done.stderr)
        report = json.loads(done.stdout)
        jsonschema.validate(report, SCHEMA)
        return out, report

    def compare(self, made, *words, feeds=None, least=0.999):
        """Converts, opens, checks and runs a model; the report and the package."""
        path = self.write(made)
        out, report = self.convert(path, *words)
        package = Package(out)
        for name, value in package.constants():
            self.assertIsNotNone(value, name)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        if feeds is None:
            feeds = {i.name: random(*i.shape, seed=k) for k, i in enumerate(session.get_inputs())}
        wanted = session.run(None, feeds)
        got = list(package.run(feeds).values())
        self.assertEqual([o.name for o in session.get_outputs()],
                         [o.name for o in package.spec.description.output])
        for output, a, b in zip(session.get_outputs(), got, wanted):
            self.assertEqual(b.shape or (1,), a.shape)
            if a.dtype.kind == "f":
                self.assertGreater(cosine(a, b), least, output.name)
            else:
                numpy.testing.assert_array_equal(a.reshape(b.shape), b, output.name)
        return report, package
