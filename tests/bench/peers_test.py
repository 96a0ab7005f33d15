"""peers_bench on a small model: every number is there and makes sense; so the bench cannot rot.

    peers_test.py PEERS_BENCH [--without-openvino]

Without OpenVINO in the cache its part is left out, with peers_bench's own words why.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy
from onnx import TensorProto, helper, numpy_helper, save

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from bench import peers, scaling  # noqa: E402

PEERS_BENCH = sys.argv.pop(1)
NOWHERE = ["--openvino", "/nowhere"]
WITHOUT_OPENVINO = NOWHERE if "--without-openvino" in sys.argv else []
del sys.argv[1:]


def small_model(path, batch="batch"):
    """A 3x3 and a depthwise convolution and a classifier, with a free batch dimension."""
    random = numpy.random.default_rng(0)

    def weight(name, *shape):
        return numpy_helper.from_array(random.standard_normal(shape).astype(numpy.float32) * 0.2, name)

    nodes = [helper.make_node("Conv", ["x", "w1"], ["a"], name="dense", pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Conv", ["b", "w2"], ["c"], name="deep", group=8, pads=[1, 1, 1, 1]),
             helper.make_node("GlobalAveragePool", ["c"], ["d"]),
             helper.make_node("Conv", ["d", "w3"], ["y"], name="classes")]
    graph = helper.make_graph(
        nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 10, 1, 1])],
        [weight("w1", 8, 3, 3, 3), weight("w2", 8, 1, 3, 3), weight("w3", 10, 8, 1, 1)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    save(model, path)


def bench(*words):
    return subprocess.run([PEERS_BENCH, *words], capture_output=True, text=True, timeout=120)


class PeersBenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = str(pathlib.Path(folder.name) / "small.onnx")
        small_model(self.model)

    def measure(self, *words):
        done = bench(self.model, "--dim", "batch=2", "--repeat", "1", "--json", *words)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout), done.stderr

    def test_measures_every_peer(self):
        result, notes = self.measure("--exact", "1", "--errors", "2", *WITHOUT_OPENVINO)
        print(notes, end="")
        peers = ["onnxruntime", "openvino"][:1 if notes else 2]
        for kind in ("speed_median", "speed_fastest", "speed_cpu"):
            speed = result[kind]
            self.assertEqual([*peers, "better"], list(speed))
            self.assertEqual(min(speed[peer] for peer in peers), speed["better"])
            self.assertGreater(speed["better"], 0)
        self.assertEqual({"anemone", *peers}, set(result["peak_memory_bytes"]))
        self.assertGreater(min(result["peak_memory_bytes"].values()), 1 << 20)
        self.assertGreater(result["exact_by_fast"], 0)
        self.assertGreater(result["cpu"], 0)
        macs = {"dense": 8 * 27, "depthwise": 8 * 9, "classes": 80 / 256}  # for each of 16x16
        self.assertAlmostEqual(macs["dense"] / sum(macs.values()), result["macs_in_3x3"])
        errors = result["errors"]
        self.assertEqual({"fast against exact", "fast against onnxruntime",
                          "exact against onnxruntime",
                          *(f"{peer} against onnxruntime" for peer in peers[1:])}, set(errors))
        for pair, error in errors.items():
            self.assertGreater(error["cosine"], 0.9999, pair)
            self.assertLess(error["max_rel_error"], 0.02, pair)
            self.assertIsNotNone(error["top1_agreement"], pair)

    def test_goes_on_without_openvino(self):
        result, notes = self.measure("--no-memory", *NOWHERE)
        self.assertIn("bench/peers.py --fetch", notes)
        self.assertEqual(["onnxruntime", "better"], list(result["speed_median"]))
        self.assertNotIn("peak_memory_bytes", result)

    def test_profile_names_what_takes_the_time(self):
        done = bench(self.model, "--dim", "batch=2", "--repeat", "1", "--profile")
        self.assertEqual(0, done.returncode, done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^1 threads: multiply-add peak \d+\.\d GFLOP/s")
        for kind in ("Conv 3x3 ", "Conv 3x3 depthwise", "Conv 1x1", "between units"):
            self.assertTrue(any(kind in line for line in lines), done.stdout)

    def test_profile_as_json(self):
        done = bench(self.model, "--dim", "batch=2", "--repeat", "1", "--profile", "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        profile = json.loads(done.stdout)
        kinds = {kind["kind"]: kind for kind in profile["kinds"]}
        self.assertGreater(kinds["Conv 3x3"]["least_time"], 0)
        self.assertGreaterEqual(profile["seconds"], sum(kind["seconds"] for kind in kinds.values()))

    def test_scaling_compares_threads_with_processes(self):
        peers.PEERS_BENCH = PEERS_BENCH
        arguments = argparse.Namespace(threads=[1, 2], seconds=0.05, rounds=2, least_ms=0.0)
        row = scaling.measure(self.model, ["--dim", "batch=2"], arguments)
        self.assertEqual({1, 2}, set(row["threads"]))
        self.assertEqual({1: 1.0, 2: row["alone"][2]}, row["alone"])
        self.assertGreater(row["threads"][2], 0)
        arguments.least_ms = 1e6
        self.assertIsNone(scaling.measure(self.model, ["--dim", "batch=2"], arguments))
        with self.assertRaises(RuntimeError):
            scaling.measure(self.model, ["--dim", "none"], arguments)

    def test_dimensions_without_a_size_get_a_typical_one(self):
        for batch in ("batch", None):
            small_model(self.model, batch)
            result = json.loads(bench(self.model, "--json", "--repeat", "1", *NOWHERE).stdout)
            self.assertGreater(result["run_ms"]["anemone"], 0)

    def test_what_is_missing_is_an_error(self):
        for words, text in [(("/none.onnx",), "/none.onnx"),
                            ((self.model, "--dim", "batch"), "batch")]:
            done = bench(*words, "--repeat", "1", *NOWHERE)
            self.assertEqual(1, done.returncode)
            self.assertRegex(done.stderr, f"^peers_bench: error: .*{text}")


if __name__ == "__main__":
    unittest.main()
