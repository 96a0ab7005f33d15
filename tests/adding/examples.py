"""examples.py NAME REPOSITORY BUILD: builds what an example of docs/adding.md needs in a patched copy of
the repository, and checks what the example promises. adding_test.py calls it."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

NAME = sys.argv.pop(1)
ROOT = pathlib.Path(sys.argv.pop(1))
BUILD = pathlib.Path(sys.argv.pop(1))
ANEMONE = BUILD / "anemone"
TARGETS = {
    "data_table": ["anemone"],
    "operator": ["anemone", "importer_operators_test", "kernels_test"],
    "option": ["anemone", "python_package", "plugin_test"],
    "target": ["anemone", "engine_test"],
    "unit": ["anemone", "kernels_test"],
}


def build(targets):
    """With ccache's folder and the number of jobs of the set-up scripts."""
    script = 'source tools/setup/common.sh; exec cmake --build "$0" --target "$@"'
    subprocess.run(["bash", "-c", script, BUILD, *targets], cwd=ROOT, check=True)


def anemone(*words):
    done = subprocess.run([ANEMONE, *words], capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise AssertionError(f"anemone {' '.join(map(str, words))}: {done.stderr}{done.stdout}")
    return done.stdout


def answer(*words):
    return json.loads(anemone(*words, "--json"))


class Example(unittest.TestCase):
    def setUp(self):
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "net.onnx"

    def save(self, text, domains=()):
        """Writes the model of this graph, in the text form of onnx/defs/parser.h."""
        import onnx
        opsets = ['"" : 21', *(f'"{domain}" : 1' for domain in domains)]
        onnx.save(onnx.parser.parse_model(
            f"<ir_version: 10, opset_import: [{', '.join(opsets)}]> g {text}"), self.path)
        return self.path

    def units(self, *words):
        """The units of the plan, by its nodes, all of which are on the engine."""
        nodes = answer("check", self.path, *words)["models"][0]["targets"][0]["nodes"]
        self.assertEqual({"engine"}, {node["placement"] for node in nodes})
        return [unit for node in nodes for unit in node["units"]]

    def agrees_with_onnx_runtime(self, *words):
        ran = answer("run", self.path, "--compare", *words)
        self.assertEqual((1, 0), (ran["plan"]["engine_segments"], ran["plan"]["cpu_segments"]))
        for output in ran["outputs"]:
            self.assertGreater(output["cosine"], 0.9999)
            self.assertLess(output["max_rel_error"], 0.01)

    def run_test(self, program, only):
        found = list((BUILD / "tests").rglob(program))
        done = subprocess.run([found[0], f"--gtest_filter={only}"], capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertIn("[  PASSED  ]", done.stdout)

    def test_what_the_repository_tests(self):
        self.run_script("tests/cli/command_test.py", ANEMONE, ROOT)
        self.run_script("tests/layout/citations_test.py", ROOT, ANEMONE)
        self.run_script("tests/layout/includes_test.py", ROOT)

    def run_script(self, *words):
        environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True,
                              env=environment)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)


# A channel shuffle as models write it: three nodes, which a pattern takes as one.
SHUFFLE = ("(float[2,12,4,5] x) => (float[2,12,4,5] y) "
           "<int64[5] split = {2,3,4,4,5}, int64[4] joined = {2,12,4,5}> "
           "{ s = Reshape(x, split) t = Transpose<perm = [0,2,1,3,4]>(s) y = Reshape(t, joined) }")


class Unit(Example):
    def test_three_nodes_are_the_unit(self):
        self.save(SHUFFLE)
        self.assertEqual(["ChannelShuffle"], self.units("--target", "m1"))
        self.agrees_with_onnx_runtime("--target", "m1")

    def test_it_is_listed_with_its_rule(self):
        listed = answer("units")
        self.assertIn("ChannelShuffle", [unit["type"] for unit in listed["units"]])
        rule, = [rule for rule in listed["rules"] if rule["id"] == "channel-shuffle-groups"]
        self.assertEqual(("predicted", "docs/adding.md"), (rule["status"], rule["source"]))

    def test_the_tests_that_tell_of_a_forgotten_place(self):
        self.run_script("tests/rules/refusals_test.py", ANEMONE)
        self.run_script("tests/layout/mil_forms_test.py", ROOT, ANEMONE)
        self.run_test("kernels_test", "*channel_shuffle*")


class Operator(Example):
    def test_a_model_with_it_is_on_the_engine(self):
        self.save("(float[1,4,8,8] x) => (float[1,4,8,8] y) "
                  "{ r = Relu(x) b = ai.onnx.ml.Binarizer<threshold = 0.25>(r) y = Mul(b, x) }",
                  domains=["ai.onnx.ml"])
        self.assertIn("ElementWise", self.units("--target", "m1"))
        self.agrees_with_onnx_runtime("--target", "m1")

    def test_the_tests(self):
        self.run_test("importer_operators_test", "Operators.*")
        self.run_test("kernels_test", "*binarizer*")


# Gelu, which a pattern takes as one activation.
GELU = ("(float[1,4,8,8] x) => (float[1,4,8,8] y) "
        "<float r = {1.4142135}, float one = {1.0}, float half = {0.5}> "
        "{ d = Div(x, r) e = Erf(d) p = Add(e, one) m = Mul(x, p) y = Mul(m, half) }")


class Option(Example):
    def setUp(self):
        super().setUp()
        self.save(GELU)

    def test_the_command(self):
        self.assertEqual(["Neuron"], self.units())
        self.assertGreater(len(self.units("--no-patterns")), 1)
        self.agrees_with_onnx_runtime("--no-patterns")

    def test_the_pages(self):
        for page in ("options", "markdown", "man", "python"):
            with self.subTest(page):
                self.assertIn("patterns", anemone("docs", page))

    def test_python(self):
        import numpy as np
        import onnxruntime_ep_ane as ane
        for patterns in (True, False):
            checked = ane.check(self.path, patterns=patterns).models[0].targets[0]
            self.assertEqual(self.units(*([] if patterns else ["--no-patterns"])),
                             [unit for node in checked.nodes for unit in node.units])
        ane.Session(self.path, patterns=False).run({"x": np.ones((1, 4, 8, 8), np.float32)})

    def test_the_tests(self):
        self.run_test("plugin_test", "PluginOptions.*")
        self.run_script("tests/provider/ort/plugin_session_test.py",
                        BUILD / "libonnxruntime_ane_ep.so")
        self.run_script("tests/python/package_test.py", ANEMONE, ROOT)

    def test_the_plugin_and_the_key_of_its_cache(self):
        import onnxruntime as ort
        import onnxruntime_ep_ane as ane
        folder = self.path.parent / "cache"
        folder.mkdir()
        counts = []
        for patterns in ("true", "false", "false"):
            options = ort.SessionOptions()
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.add_provider_for_devices(
                ane.register(), {"patterns": patterns, "cache_dir": str(folder)})
            ort.InferenceSession(self.path, options, enable_fallback=0)
            counts.append(len(list(folder.rglob("*"))))
        self.assertGreater(counts[1], counts[0])  # a program for each value,
        self.assertEqual(counts[1], counts[2])  # which the next session finds


class Target(Example):
    def test_it_is_found_by_name_and_product(self):
        self.save("(float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Relu(x) }")
        for name in ("h90", "M90"):
            target = answer("check", self.path, "--target", name)["models"][0]["targets"][0]
            self.assertEqual("h90", target["target"])
        self.agrees_with_onnx_runtime("--target", "m90")

    def test_what_is_not_published_is_unknown(self):
        h90, = [t for t in answer("targets")["targets"] if t["target"] == "h90"]
        self.assertEqual({"value": 65536, "status": "predicted"}, h90["limits"]["max_tensor_w"])
        self.assertIsNone(h90["limits"]["max_kernel_h_large"]["value"])
        self.save("(float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Relu(x) }")
        target = answer("check", self.path, "--target", "m90")["models"][0]["targets"][0]
        self.assertEqual("unknown", target["status"])

    def test_the_count(self):
        self.run_test("engine_test", "Target.*")


class DataTable(Example):
    def test_the_rows_are_printed(self):
        import jsonschema
        listed = answer("targets")
        schema = json.loads((ROOT / "docs" / "schemas" / "targets.json").read_text())
        jsonschema.validate(listed, schema)
        by_target = {target["target"]: target["clock"] for target in listed["targets"]}
        self.assertEqual(1430, by_target["h13"]["most_mhz"])
        self.assertIsNone(by_target["h12"])


EXAMPLES = {"data_table": DataTable, "operator": Operator, "option": Option, "target": Target,
            "unit": Unit}


def main():
    build(TARGETS[NAME])
    sys.path.insert(0, str(BUILD / "python"))  # before an installed wheel
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(EXAMPLES[NAME])
    return 0 if unittest.TextTestRunner(verbosity=2).run(tests).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
