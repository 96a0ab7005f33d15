"""`anemone zoo --executor ray` on a cluster of several workers: a worker that is killed, a model that kills its
workers, external data, Ctrl-C, and what is missing.

    zoo_ray_test.py ANEMONE REPOSITORY

Uses the Python in ANEMONE_PYTHON if it has Ray. If not, makes an environment in build/ray, with the network.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import unittest

import numpy
import onnx
from onnx import helper, numpy_helper

from support import ANEMONE, ROOT, CliTest, environment, model, relu, tensor

PACKAGE = ANEMONE.parent / "python"


def has_ray(python):
    return shutil.which(python) is not None and subprocess.run([str(python), "-c", "import ray"], capture_output=True, check=False).returncode == 0


def python_with_ray():
    for python in (os.environ.get("ANEMONE_PYTHON"), sys.executable):
        if python and has_ray(python):
            return python
    folder = ANEMONE.parents[1] / "ray"
    python = folder / "bin" / "python"
    if not has_ray(python):
        start = time.time()
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "ray>=2.9"],
                       check=True)
        [site] = folder.glob("lib/python*/site-packages")
        (site / "this.pth").write_text(sysconfig.get_path("purelib") + "\n")
        print(f"Ray was installed in {time.time() - start:.0f} s", flush=True)
    return python


def chain(*operators):
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"]) for i, op in enumerate(operators)]
    return model(nodes, [tensor("v0", [1, 8])], [tensor(f"v{len(operators)}", [1, 8])])


def without_times(path):
    lines = {}
    for line in map(json.loads, path.read_text().splitlines()):
        for target in line["targets"]:
            target["compile_ms"] = target["compile_ms"] is not None
        lines[line["path"]] = {**line, "seconds": 0}
    return lines


def workers():
    """The processes of Ray's workers that work on a model."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(b"ray::work_on"):
                found.append(int(folder.name))
        except OSError:
            pass  # it has ended
    return found


class Ray(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.environment = environment(ANEMONE_PYTHON=str(python_with_ray()), PYTHONPATH=str(PACKAGE))

    def setUp(self):
        super().setUp()
        self.models = self.folder / "models"
        self.models.mkdir()

    def fill(self, count):
        for i in range(count):
            (self.models / f"net {i}.onnx").write_bytes(chain(*["Relu", "Erf"] * (1 + i)).SerializeToString())

    def words(self, out, *more):
        return [str(ANEMONE), "zoo", str(self.models), "-o", str(self.folder / out), "--target", "h11,m1", *more]

    def run_zoo(self, out, *more, code=0, env=None):
        done = subprocess.run(self.words(out, *more), capture_output=True, text=True, check=False,
                              env=env or self.environment)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        return done

    def test_results_are_those_of_a_local_run_though_a_worker_is_killed(self):
        self.fill(8)
        (self.models / "damaged.onnx").write_bytes(relu().SerializeToString()[:40])
        (self.models / "empty.onnx").write_bytes(b"")
        shutil.copy(self.models / "net 3.onnx", self.models / "same as 3.onnx")
        weights = numpy_helper.from_array(numpy.random.default_rng(1).random((8, 8), numpy.float32), "w")
        large = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, 8])],
                      [tensor("y", [1, 8])], [weights])
        (self.models / "deep").mkdir()
        onnx.save(large, str(self.models / "deep" / "large.onnx"), save_as_external_data=True, size_threshold=0,
                  location="large.data")
        more = ("--run", "--compile", "--convert", "mil")
        self.run_zoo("local", *more, code=1)
        process = subprocess.Popen(self.words("ray", *more, "--executor", "ray", "--jobs", "3"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.environment)
        results = self.folder / "ray" / "results.jsonl"
        killed = None
        while process.poll() is None and killed is None:
            time.sleep(0.02)
            if results.exists() and results.read_text().count("\n") > 3 and workers():
                killed = workers()[0]
                os.kill(killed, signal.SIGKILL)
        said = process.communicate()[1]
        self.assertEqual(1, process.returncode, said)  # two models are refused
        self.assertIsNotNone(killed, "no worker was killed")
        self.assertNotIn("error", said)
        local, ray = (without_times(self.folder / out / "results.jsonl") for out in ("local", "ray"))
        self.assertEqual(12, len(local))
        self.assertEqual(local, ray)
        pages, of_ray = ({path.relative_to(self.folder / out) for path in (self.folder / out).rglob("*")}
                         for out in ("local", "ray"))
        self.assertEqual(pages, of_ray)
        self.run_zoo("ray", *more, "--executor", "ray", code=1,  # starts no cluster
                     env={**self.environment, "ANEMONE_PYTHON": "/no/python"})
        self.assertEqual(local, without_times(results))

    def test_a_model_that_ends_its_workers_has_crashed(self):
        self.fill(1)
        process = subprocess.Popen(self.words("out", "--executor", "ray", "--jobs", "1"), env=self.environment)
        killed = set()
        while process.poll() is None:
            for worker in workers():
                killed.add(worker)
                os.kill(worker, signal.SIGKILL)
            time.sleep(0.005)
        [line] = map(json.loads, (self.folder / "out" / "results.jsonl").read_text().splitlines())
        self.assertEqual((1, "crashed", "its worker ended, 2 times"),
                         (process.returncode, line["status"], line["error"]))
        self.assertGreaterEqual(len(killed), 2)

    def test_it_ends_cleanly_when_it_is_interrupted(self):
        self.fill(12)
        script = " ".join(f"'{word}'" for word in self.words("out", "--executor", "ray", "--jobs", "2"))
        shell = subprocess.Popen(["bash", "-c", f"{script}; exit $?"], env=self.environment, start_new_session=True,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        results = self.folder / "out" / "results.jsonl"
        while not results.exists() and shell.poll() is None:
            time.sleep(0.05)
        [command] = pathlib.Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()
        children = pathlib.Path(f"/proc/{command}/task/{command}/children").read_text().split()
        os.kill(int(command), signal.SIGINT)
        self.assertEqual(128 + signal.SIGINT, shell.wait(60))
        deadline = time.time() + 60
        while time.time() < deadline and any(pathlib.Path("/proc", child).exists() for child in children):
            time.sleep(0.1)
        self.assertEqual([], [child for child in children if pathlib.Path("/proc", child).exists()])
        self.assertEqual([], workers())
        self.run_zoo("out", "--executor", "ray", "--jobs", "2")
        self.assertEqual(12, len(without_times(results)))

    def test_what_is_missing_is_named(self):
        self.fill(1)
        for name, variables, said in [
                ("no Python", {"ANEMONE_PYTHON": "/no/python"}, "/no/python: cannot be started; install the package"),
                ("no package", {"PYTHONPATH": ""}, "No module named 'onnxruntime_ep_ane"),
                ("no Ray", {"ANEMONE_PYTHON": "/usr/bin/python3", "PYTHONPATH":
                            f"{PACKAGE}:{sysconfig.get_path('purelib')}"}, "Ray is not installed")]:
            with self.subTest(name):
                done = self.run_zoo("out", "--executor", "ray", code=1, env={**self.environment, **variables})
                self.expect_error(done, said)
        done = self.run_zoo("out", "--executor", "ray:127.0.0.1:1", code=1)
        self.assertIn("no cluster at '127.0.0.1:1'", done.stderr)
        self.assertEqual(2, subprocess.run(self.words("out", "--executor", "ray:"), capture_output=True,
                                           check=False).returncode)


if __name__ == "__main__":
    print("long: Ray takes 240 MB, and each test starts a cluster", flush=True)
    unittest.main()
