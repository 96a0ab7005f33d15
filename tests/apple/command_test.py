"""--device apple and auto as users meet them: on a machine without the engine, on the stand-in, and with
faults. In the command, in the Python package and in the plugin.

    command_test.py ANEMONE DRIVER STANDIN INCOMPLETE [PLUGIN]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1])]
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import small_models  # noqa: E402
import standin  # noqa: E402

ANEMONE, DRIVER, STANDIN, INCOMPLETE = sys.argv[1:5]
PLUGIN = sys.argv[5] if len(sys.argv) > 5 else None
ENGINE = standin.Standin(DRIVER, STANDIN)

PYTHON = """
import sys, numpy as np, onnxruntime_ep_ane as ane
session = ane.Session(sys.argv[1], device=sys.argv[2], **({"numerics": "exact"} if sys.argv[2] == "software" else {}))
np.save(sys.argv[3], session.run({"x": np.load(sys.argv[4])})["y"])
"""
PLUGIN_PYTHON = """
import sys, numpy as np, onnxruntime as ort
ort.register_execution_provider_library("ane", sys.argv[5])
options = ort.SessionOptions()
devices = [d for d in ort.get_ep_devices() if d.ep_name == "ANEExecutionProvider"]
options.add_provider_for_devices(devices, {"device": sys.argv[2], "numerics": "exact"})
session = ort.InferenceSession(sys.argv[1], options, enable_fallback=0)
np.save(sys.argv[3], session.run(None, {"x": np.load(sys.argv[4])})[0])
"""


class DeviceTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.model = self.folder / "net.onnx"
        onnx.save(small_models.network(), self.model)  # two engine segments, with a CPU segment between

    def run_model(self, *words, env=None, out="out"):
        return standin.run(ANEMONE, "run", self.model, *words, "--output-dir", self.folder / out, env=env)

    def exact(self):
        done = self.run_model("--device", "software", "--numerics", "exact", out="exact")
        self.assertEqual(0, done.returncode, done.stderr)
        return standin.arrays(self.folder / "exact")


class WithoutTheEngine(DeviceTest):
    def test_one_error_and_the_remedy(self):
        for command in (["run"], ["bench"]):
            with self.subTest(command):
                done = standin.run(ANEMONE, *command, self.model, "--device", "apple")
                self.assertEqual(1, done.returncode)
                lines = [line for line in done.stderr.splitlines() if "error" in line]
                self.assertEqual(1, len(lines), done.stderr)
                self.assertRegex(lines[0], "device 'apple': no Apple Neural Engine: this system is not macOS; "
                                           "run on a Mac with Apple silicon, or .*--device software")

    def test_auto_is_the_software_engine(self):
        done = self.run_model("--device", "auto", "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual([], json.loads(done.stdout)["warnings"])

    def test_what_is_missing_is_named(self):
        cases = [({"ANEMONE_ANE_DRIVER": str(self.folder / "none.so")}, "ANEMONE_ANE_DRIVER: .*none.so"),
                 ({"ANEMONE_ANE_FRAMEWORK": str(self.folder / "none.so")}, "the framework cannot be loaded: .*none"),
                 ({"ANEMONE_ANE_FRAMEWORK": INCOMPLETE}, "the class _ANEInMemoryModel is missing"),
                 ({"ANEMONE_STANDIN_FAULT": "message:modelAttributes"},
                  "the message _ANEInMemoryModel modelAttributes is missing"),
                 ({"ANEMONE_STANDIN_FAULT": "message:objectWithIOSurface:"},
                  "the message _ANEIOSurfaceObject objectWithIOSurface: is missing"),
                 ({"ANEMONE_ANE_FRAMEWORK": DRIVER}, "the class _ANEInMemoryModelDescriptor is missing"),
                 ({"ANEMONE_ANE_DRIVER": STANDIN}, "is not a driver")]
        for changed, told in cases:
            with self.subTest(told):
                done = self.run_model("--device", "apple", env=ENGINE.environment(**changed))
                self.assertEqual(1, done.returncode)
                self.assertRegex(done.stderr, f"device 'apple': no Apple Neural Engine: .*{told}")

    def test_what_only_the_software_engine_finds(self):
        for flag in ("--hazards", "--device-limits"):
            done = self.run_model("--device", "apple", flag, env=ENGINE.environment())
            self.assertEqual(1, done.returncode)
            self.assertIn("--device software", done.stderr)


class OnTheStandin(DeviceTest):
    def test_same_bits_on_both_routes(self):
        for route in ("netplist", "mil"):
            done = self.run_model("--device", "apple", "--route", route, env=ENGINE.environment(), out=route)
            self.assertEqual(0, done.returncode, done.stderr)
            exact = self.run_model("--numerics", "exact", "--device", "software", "--route", route, out="exact")
            self.assertEqual(0, exact.returncode, exact.stderr)
            self.assertEqual(standin.arrays(self.folder / "exact"), standin.arrays(self.folder / route))

    def test_no_model_is_left(self):
        """A model that is not unloaded stays on the device, and its folder on the disk."""
        commands = [("run", self.model), ("bench", self.model), ("run", self.model, "--route", "mil"),
                    ("confirm", "softmax", "--input", "1x8x16x16")]
        for i, command in enumerate(commands * 3):
            with self.subTest(command):
                temporary = self.folder / f"temporary{i}"
                temporary.mkdir()
                done = standin.run(ANEMONE, *command, "--device", "apple",
                                   env=ENGINE.environment(TMPDIR=str(temporary)))
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertEqual([], [path for path in temporary.rglob("*") if path.is_file()])

    def test_processes_that_run_the_same_model(self):
        words = [str(word) for word in (ANEMONE, "run", self.model, "--device", "apple")]
        processes = [subprocess.Popen(words, env=ENGINE.environment(TMPDIR=str(self.folder)), text=True,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(6)]
        told = [process.communicate()[1] for process in processes]
        self.assertEqual([0] * 6, [process.returncode for process in processes], told)
        self.assertEqual([], [path for path in (self.folder / "anemone-standin").rglob("*") if path.is_file()])

    def test_settings_of_the_environment(self):
        for variables, told in (({"ANEMONE_ANE_TIMEOUT": "soon"}, "ANEMONE_ANE_TIMEOUT: 'soon' is not .*give 1 to"),
                                ({"ANEMONE_ANE_TIMEOUT": "0"}, "ANEMONE_ANE_TIMEOUT: '0' is not"),
                                ({"ANEMONE_ANE_TIMEOUT": "99999999999999999999"}, "ANEMONE_ANE_TIMEOUT: "),
                                ({"TMPDIR": "/none"}, "the folder for temporary files: .*; set TMPDIR to a folder")):
            with self.subTest(told):
                done = self.run_model("--device", "apple", env=ENGINE.environment(**variables))
                self.assertEqual(1, done.returncode)
                self.assertRegex(done.stderr, told)
        done = self.run_model("--device", "apple", env=ENGINE.environment(ANEMONE_ANE_TIMEOUT="86400"))
        self.assertEqual(0, done.returncode, done.stderr)

    def test_the_older_form_of_requests(self):
        fault = "message:requestWithInputs:inputIndices:outputs:outputIndices:procedureIndex:"
        done = self.run_model("--device", "apple", env=ENGINE.environment(fault))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(self.exact(), standin.arrays(self.folder / "out"))

    def test_another_chip(self):
        done = self.run_model("--device", "apple", env=ENGINE.environment(ANEMONE_STANDIN_CHIP="Apple M4"))
        self.assertEqual(1, done.returncode)
        self.assertIn("give --target h16", done.stderr)
        done = self.run_model("--device", "apple", "--target", "m4",
                              env=ENGINE.environment(ANEMONE_STANDIN_CHIP="Apple M4"))
        self.assertEqual(0, done.returncode, done.stderr)

    def test_bench(self):
        done = standin.run(ANEMONE, "bench", self.model, "--device", "apple", "--json", env=ENGINE.environment())
        self.assertEqual(0, done.returncode, done.stderr)

    def test_python(self):
        np.save(self.folder / "x.npy", small_models.image())
        for device in ("software", "apple"):
            done = standin.run(sys.executable, "-c", PYTHON, self.model, device, self.folder / f"{device}.npy",
                               self.folder / "x.npy", env=ENGINE.environment())
            self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual((self.folder / "software.npy").read_bytes(), (self.folder / "apple.npy").read_bytes())

    @unittest.skipIf(PLUGIN is None, "no plugin given")
    def test_plugin(self):
        np.save(self.folder / "x.npy", small_models.image())
        for device in ("software", "apple"):
            done = standin.run(sys.executable, "-c", PLUGIN_PYTHON, self.model, device,
                               self.folder / f"{device}.npy", self.folder / "x.npy", PLUGIN,
                               env=ENGINE.environment())
            self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual((self.folder / "software.npy").read_bytes(), (self.folder / "apple.npy").read_bytes())
        done = standin.run(sys.executable, "-c", PLUGIN_PYTHON, self.model, "apple", self.folder / "none.npy",
                           self.folder / "x.npy", PLUGIN)
        self.assertNotEqual(0, done.returncode)
        self.assertIn("no Apple Neural Engine: this system is not macOS", done.stderr)


class Judging(DeviceTest):
    """confirm --device apple, and doctor --self-test."""

    def confirm(self, *words, fault=""):
        done = standin.run(ANEMONE, "confirm", *words, "--device", "apple", "--json",
                           env=ENGINE.environment(fault))
        self.assertEqual(0, done.returncode, done.stderr)
        return [result["on_device"] for result in json.loads(done.stdout)["results"]]

    def test_confirm(self):
        for answer in self.confirm("softmax", "--input", "1x8x16x16", "--attr", "axis=1"):  # on both routes
            self.assertEqual({"device": "apple, Apple M1", "answer": "runs", "message": None, "differs": False},
                             answer)

    def test_confirm_says_where_the_device_differs(self):
        answer, = self.confirm("Softmax", "--input", "1x8x16x16", "--attr", "Dimension=Channel", fault="compile")
        self.assertEqual(("refuses", True), (answer["answer"], answer["differs"]))
        self.assertIn("ANECCompile() FAILED", answer["message"])
        answer, = self.confirm("Softmax", "--input", "1x8x16x16", "--attr", "Dimension=Channel", fault="evaluate")
        self.assertEqual(("fails", None), (answer["answer"], answer["differs"]))
        done = standin.run(ANEMONE, "confirm", "Softmax", "--input", "1x8x16x16", "--attr", "Dimension=Channel",
                           "--device", "apple", env=ENGINE.environment("compile"))
        self.assertIn("DIFFERS: the device refuses it: ", done.stdout)

    def test_confirm_asks_about_what_is_refused(self):
        answer, = self.confirm("Neuron", "--input", "1x1x1x16385", "--attr", "Type=ReLU")
        self.assertEqual(("refuses", False), (answer["answer"], answer["differs"]))
        answer, = self.confirm("Softmax", "--input", "1x8x16x16", "--attr", "Dimension=Channel",
                               "--target", "h16")
        self.assertEqual("not-asked", answer["answer"])

    def test_confirm_without_the_engine(self):
        done = standin.run(ANEMONE, "confirm", "softmax", "--input", "1x8x16x16", "--device", "apple")
        self.assertEqual(1, done.returncode)
        self.assertIn("this system is not macOS", done.stderr)

    def test_self_test(self):
        tensor = {"name": "x", "dtype": "fp16", "role": "input"}
        relu = {"route": "netplist", "op": "Neuron", "attrs": {"Type": "ReLU"}}
        cases = [{**relu, "id": "good", "inputs": [{**tensor, "shape": [1, 8, 4, 4]}]},
                 {**relu, "id": "wrong", "route": "none"},
                 {**relu, "id": "wide", "inputs": [{**tensor, "shape": [1, 1, 1, 16385]}]}]
        (self.folder / "cases.json").write_text(json.dumps({"compile": cases}))
        words = ["doctor", "--self-test", self.folder / "cases.json", "-o", self.folder / "results.json"]
        done = standin.run(ANEMONE, *words, env=ENGINE.environment())
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("3 cases: 2 agree, 0 differ, 1 unknown; all are in ", done.stdout)
        document = json.loads((self.folder / "results.json").read_text())
        self.assertEqual(("apple, Apple M1", "h13"), (document["device"], document["target"]))
        results = {result["id"]: result for result in document["results"]}
        self.assertEqual("runs", results["good"]["on_device"]["answer"])
        self.assertEqual("refuses", results["wide"]["on_device"]["answer"])
        self.assertIn("want netplist or mil", results["wrong"]["error"])
        done = standin.run(ANEMONE, *words, env=ENGINE.environment("load"))
        self.assertIn("3 cases: 1 agree, 0 differ, 2 unknown", done.stdout)
        # More than one process can compile, and calls that do not end: the cases after them go on.
        (self.folder / "cases.json").write_text(json.dumps([cases[0]] * 125))
        done = standin.run(ANEMONE, *words, env=ENGINE.environment())
        self.assertIn("125 cases: 125 agree, 0 differ, 0 unknown", done.stdout, done.stderr)
        (self.folder / "cases.json").write_text(json.dumps([cases[0]] * 5))
        # Each compile and each run may hang, so the fourth time is the second case's run.
        done = standin.run(ANEMONE, *words, env=ENGINE.environment("hang#4", ANEMONE_ANE_TIMEOUT="1"))
        self.assertIn("5 cases: 3 agree, 0 differ, 2 unknown", done.stdout, done.stderr)
        results = json.loads((self.folder / "results.json").read_text())["results"]
        self.assertEqual(["runs", "fails", "runs", "fails", "runs"],
                         [result["on_device"]["answer"] for result in results])
        self.assertIn("an evaluation has not ended", results[1]["on_device"]["message"])
        done = standin.run(ANEMONE, *words)
        self.assertEqual(1, done.returncode)
        self.assertIn("this system is not macOS", done.stderr)


class WithFaults(DeviceTest):
    FAULTS = ("unwritable", "compile", "compile-silent", "compile#2", "load", "map", "surface", "0x1d", "evaluate",
              "evaluate#2", "other-port", "stale", "exception", "lock")

    def test_apple_ends_in_one_error(self):
        for fault in self.FAULTS:
            with self.subTest(fault):
                done = self.run_model("--device", "apple", env=ENGINE.environment(fault))
                self.assertEqual(1, done.returncode, done.stderr)
                lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
                self.assertEqual(1, len(lines), done.stderr)
                self.assertIn("; ", lines[0])

    def test_a_call_that_does_not_end(self):
        engine = ENGINE.environment("hang#4", ANEMONE_ANE_TIMEOUT="1")  # the second run, after two compiles
        done = self.run_model("--device", "apple", env=engine)
        self.assertEqual(1, done.returncode)
        self.assertIn("an evaluation has not ended after 1s", done.stderr)
        done = self.run_model("--device", "auto", "--json", env=engine)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(2, len(json.loads(done.stdout)["warnings"]))  # the other segment cannot use the device either

    def test_auto_falls_back_and_says_so(self):
        plain = self.run_model("--device", "software", out="plain")
        self.assertEqual(0, plain.returncode, plain.stderr)
        # After a failed compile the next one waits 15 s, so only the last compile of a run fails here.
        for fault in sorted(set(self.FAULTS) - {"compile", "compile-silent", "exception"}):
            with self.subTest(fault):
                done = self.run_model("--device", "auto", "--json", env=ENGINE.environment(fault), out=fault)
                self.assertEqual(0, done.returncode, done.stderr)
                warnings = json.loads(done.stdout)["warnings"]
                self.assertIn(len(warnings), (1, 2))
                for warning in warnings:
                    self.assertRegex(warning, "on the device apple, Apple M1, so it runs on the device software: ")
                    self.assertIn(f"warning: {warning}", done.stderr)
                if not fault.endswith("#2") and fault != "lock":
                    self.assertEqual(standin.arrays(self.folder / "plain"), standin.arrays(self.folder / fault))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
