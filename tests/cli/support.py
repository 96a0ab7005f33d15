"""Shared by the tests of the command: runs it, and makes small models with the onnx package."""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

import numpy
from onnx import TensorProto, helper, numpy_helper

ANEMONE = pathlib.Path(sys.argv.pop(1))
ROOT = pathlib.Path(sys.argv.pop(1))
TIMES = "times on this CPU (software engine); they say nothing of the M1's speed"  # of run and bench
# Such a command is some ten times slower: tests with many runs take a sample.
SANITIZED = "ANEMONE_SANITIZED" in os.environ


def environment(**variables):
    """That of this process, with these variables added, or removed if they are None. The user's cache of
    programs is not used."""
    made = {"ANEMONE_PROGRAM_CACHE": "", **os.environ, **variables}
    return {name: value for name, value in made.items() if value is not None}


def anemone(*words, timeout=60, file_limit=None, env=None):
    """Runs the command and returns the finished process, with text streams. No file that it writes may be
    larger than `file_limit` bytes. `env`: environment variables added to those of this process."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

    return subprocess.run([str(ANEMONE), *map(str, words)], capture_output=True, text=True,
                          timeout=timeout, errors="replace", env=environment(**(env or {})),
                          preexec_fn=None if file_limit is None else limit)


def tensor(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, initializers=(), opset=21, functions=(), domains=()):
    graph = helper.make_graph(list(nodes), "test", inputs, outputs, list(initializers))
    made = helper.make_model(graph, functions=list(functions),
                             opset_imports=[helper.make_opsetid("", opset),
                                            *(helper.make_opsetid(d, 1) for d in domains)])
    made.ir_version = 10
    return made


def relu(shape=(1, 4), name="x"):
    return model([helper.make_node("Relu", [name], ["y"])], [tensor(name, shape)],
                 [tensor("y", shape)])


def array(name, values):
    return numpy_helper.from_array(numpy.asarray(values, numpy.float32), name)


def product(size):
    weight = numpy.random.default_rng(1).standard_normal((size, size)) / size
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, size])],
                 [tensor("y", [1, size])], [array("w", weight)])


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, what, name="model.onnx"):
        path = self.folder / name
        path.write_bytes(what if isinstance(what, bytes) else what.SerializeToString())
        return path

    def temporaries(self):
        """The files and folders that a command has not finished."""
        return [name for name in os.listdir(self.folder) if name.endswith(".tmp")]

    def signal_while_writing(self, number, *words, again=lambda: None):
        """Runs the command until the signal `number` ends it while it has a temporary file, and checks that
        the file is removed. Calls `again` before each further try."""
        for _ in range(100):
            process = subprocess.Popen([str(ANEMONE), *map(str, words)], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
            while process.poll() is None:
                if self.temporaries():
                    process.send_signal(number)
                    break
            said = process.communicate()[1]
            if process.returncode == -number:
                break
            again()
        self.assertEqual([], self.temporaries())
        if process.returncode != -number:
            self.skipTest("no signal met the write")
        self.assertNotIn("error", said)

    def expect_error(self, done, *pieces, code=1):
        """Checks the exit code, and that stderr is one line of the promised form with these texts."""
        self.assertEqual(code, done.returncode, done.stderr + done.stdout)
        lines = [line for line in done.stderr.splitlines()
                 if not line.startswith("anemone: warn") and "WARNING: AddressSanitizer" not in line
                 and not line.endswith(" ...")]  # progress, if it took more than a second
        self.assertEqual(1, len(lines), done.stderr)
        self.assertTrue(lines[0].startswith("anemone: error: "), lines[0])
        for piece in pieces:
            self.assertIn(piece, lines[0])
