"""Sessions of an unmodified ONNX Runtime with the plugin: registration, options, logs and reports, many
threads, many sessions.

    plugin_session_test.py PLUGIN [--long] [unittest arguments]

--long: the full numbers of runs and sessions, otherwise a tenth of them.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import resource
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnx_cases  # noqa: E402
import onnxruntime as ort  # noqa: E402
import plugin  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from plugin_case import LIBRARY, PluginTest  # noqa: E402
from small_models import image, model, network, relu  # noqa: E402

LONG = "--long" in sys.argv
if LONG:
    sys.argv.remove("--long")
THREADS, RUNS, SESSIONS = (8, 1000, 500) if LONG else (8, 100, 50)
GROWTH = 24 << 20  # in bytes; less growth is not a leak, since allocators keep freed memory


def memory():
    """Resident bytes."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


class Registering(PluginTest):
    def test_the_devices_are_the_cpu_and_say_what_runs(self):
        self.assertTrue(self.devices)
        for device in self.devices:
            self.assertEqual("Anemone", device.ep_vendor)
            self.assertEqual(ort.OrtHardwareDeviceType.CPU, device.device.type)
            self.assertEqual("software", device.ep_metadata["engine"])

    def test_again_and_again(self):
        for i in range(3):
            devices = plugin.register(LIBRARY, f"again{i}")
            self.assertGreater(len(devices), len(self.devices))
            ort.unregister_execution_provider_library(f"again{i}")
        self.assertEqual(len(self.devices), sum(
            d.ep_name == plugin.NAME for d in ort.get_ep_devices()))

    def test_a_session_may_outlive_its_registration(self):
        """Python may delete sessions at any time. In a separate process, in which other data may be where
        the plugin's factory was."""
        code = """
import sys
sys.argv[1:] = [sys.argv[1]]
import numpy as np, plugin_session_test as test, plugin, onnxruntime as ort
options = plugin.options_of(plugin.register(test.LIBRARY), {})
session = plugin.session_of(test.network().SerializeToString(), options)
ort.unregister_execution_provider_library("ane")
other = [np.full(size, 120, np.uint8) for size in range(64, 512, 8) for _ in range(20)]
session.run(None, {"x": test.image()})
del session
"""
        done = subprocess.run([sys.executable, "-c", code, str(LIBRARY)], capture_output=True,
                              text=True, cwd=pathlib.Path(__file__).parent)
        self.assertEqual((0, ""), (done.returncode, done.stderr))

    def test_every_device_policy_prefers_it(self):
        """As in docs/plugin.md: the plugin and ONNX Runtime's provider are both on the CPU device."""
        policies = [p for p in vars(ort.OrtExecutionProviderDevicePolicy).values()
                    if isinstance(p, ort.OrtExecutionProviderDevicePolicy)]
        self.assertTrue(policies)
        for policy in policies:
            with self.subTest(str(policy)):
                options = ort.SessionOptions()
                options.set_provider_selection_policy(policy)
                session = plugin.session_of(relu().SerializeToString(), options)
                self.assertEqual(plugin.NAME, session.get_providers()[0])

    def test_no_library_is_an_error(self):
        with self.assertRaisesRegex(Exception, "none.so"):
            ort.register_execution_provider_library("none", str(self.folder / "none.so"))


class Options(PluginTest):
    def test_an_unknown_option_lists_the_known(self):
        self.refused("INVALID_ARGUMENT.*'tarjet'.*valid: target, route, rewrites, .*min_segment_nodes", options={"tarjet": "h13"})

    def test_a_segment_keeps_what_the_policy_gave_it(self):
        """`latency` gives the pool to the CPU; the convolution alone, which ONNX Runtime fuses, stays whole."""
        random = np.random.default_rng(5)
        weights = numpy_helper.from_array(random.random((256, 64, 3, 3), np.float32) / 64, "w")
        further = numpy_helper.from_array(random.random((256, 256, 3, 3), np.float32) / 256, "v")
        nodes = [helper.make_node("AveragePool", ["x"], ["p"], kernel_shape=[8, 8], strides=[8, 8]),
                 helper.make_node("Conv", ["p", "w"], ["h"], pads=[1] * 4),
                 helper.make_node("Conv", ["h", "v"], ["y"], pads=[1] * 4)]
        graph = helper.make_graph(
            nodes, "pooled", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 256, 256])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 256, 32, 32])], [weights, further])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        x = random.random((1, 64, 256, 256), np.float32)
        outputs = [self.session(made, {"target": "h17s", "policy": policy}).run(None, {"x": x})[0]
                   for policy in ("latency", "max-engine", "cpu")]
        for output in outputs[:2]:
            np.testing.assert_allclose(output, outputs[2], rtol=2e-2)

    def test_unknown_values_list_the_known(self):
        for name, value, told in [("target", "h133", "h13"), ("device", "gpu", "auto, software or apple"),
                                  ("numerics", "quick", "fast or exact"),
                                  ("policy", "all", "max-engine, latency, fewest-segments, cpu, refuse"),
                                  ("min_segment_nodes", "none", "1 to"),
                                  ("rewrites", "maybe", "true or false"),
                                  ("threads", "100000", "0 to 1024")]:
            with self.subTest(name):
                self.refused(f"INVALID_ARGUMENT.*'{name}' = '{value}'.*{told}", options={name: value})

    def test_files_that_cannot_be_written_are_refused_at_once(self):
        for name in ("report_path", "profile_path"):
            with self.subTest(name):
                self.refused(f"'{name}': .*/none/file", options={name: "/none/file"})
                pipe = self.folder / name
                os.mkfifo(pipe)
                self.refused(f"'{name}': .*not a regular file", options={name: pipe})
                self.assertTrue(pipe.is_fifo())

    def test_files_that_are_no_reports_are_not_replaced(self):
        path = self.folder / "model.onnx"
        onnx.save(relu(), path)
        before = path.read_bytes()
        for name in ("report_path", "profile_path"):
            with self.subTest(name):
                self.refused(f"'{name}': .*model.onnx': already exists and is not JSON", str(path),
                             {name: path})
                self.assertEqual(before, path.read_bytes())
        report = self.folder / "report.json"
        for _ in range(2):  # but its own files are replaced
            self.session(str(path), {"report_path": report})
        self.assertEqual(1, json.loads(report.read_text())["schema"])
        self.refused("'profile_path': .*also the report_path",
                     options={"report_path": report, "profile_path": report})

    def test_a_session_that_is_refused_leaves_no_file(self):
        report, profile = self.folder / "report.json", self.folder / "profile.json"
        both = {"report_path": report, "profile_path": profile}
        for told, options in (("memory limit", {**both, "memory_limit": 1}),
                              ("more than 1 node", {**both, "limits": "nodes=1"}),
                              ("also the report_path", {**both, "profile_path": report})):
            with self.subTest(told):
                self.refused(told, network(), options)
                self.assertEqual([], list(self.folder.iterdir()))
        branch = [helper.make_graph([helper.make_node(op, ["small"], [f"b{op}"])], op, [],
                                    [helper.make_tensor_value_info(f"b{op}", TensorProto.FLOAT, [4, 16])])
                  for op in ("Relu", "Sigmoid")]
        nodes = [helper.make_node("If", ["c"], ["a"], then_branch=branch[0], else_branch=branch[1]),
                 helper.make_node("Relu", ["large"], ["y"])]
        made = model(nodes, [("c", TensorProto.BOOL, []), ("small", TensorProto.FLOAT, [4, 16]),
                             ("large", TensorProto.FLOAT, [1024, 1024])],
                     [("a", TensorProto.FLOAT, [4, 16]), ("y", TensorProto.FLOAT, [1024, 1024])])
        self.refused("memory limit", made, {**both, "memory_limit": 1 << 18})  # after its bodies were compiled
        self.assertEqual([], list(self.folder.iterdir()))
        self.session(made, both)
        self.assertEqual(3, len(json.loads(report.read_text())["models"]))
        session = self.session(network(), both)
        self.assertEqual([report], list(self.folder.iterdir()))
        del session  # it has not run
        self.assertEqual([report], list(self.folder.iterdir()))

    def test_a_message_has_no_control_characters(self):
        self.refused(r"'target' = '\\033\[31m\\nx'", options={"target": "\x1b[31m\nx"})

    def test_min_segment_nodes_and_policy(self):
        for options, segments in [({}, 2), ({"min_segment_nodes": 2}, 1),
                                  ({"min_segment_nodes": 3}, 0), ({"policy": "cpu"}, 0),
                                  ({"policy": "refuse:Conv"}, 2)]:
            with self.subTest(str(options)):
                made = plugin.Reported(network().SerializeToString(), self.devices, options)
                self.assertEqual(segments, made.engine_segments())
                word = plugin.assigned(made.session)
                if word is not None:
                    self.assertEqual(segments, len(word))

    def test_exact_numerics_differ_in_bits_alone(self):
        fast, exact = (self.session(network(), {"numerics": n}).run(None, {"x": image()})[0]
                       for n in ("fast", "exact"))
        np.testing.assert_allclose(fast, exact, atol=1e-2)

    def test_no_numerics_read_weights_that_onnx_runtime_has_freed(self):
        random = np.random.default_rng(0)
        weights = (random.standard_normal((64, 64)) / 8).astype(np.float32)
        made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, [4, 64])],
                     [("y", TensorProto.FLOAT, [4, 64])], [("w", weights)])
        x = random.standard_normal((4, 64)).astype(np.float32)
        for numerics in ("fast", "exact", "exact,mac-tile=none"):
            sessions = [self.session(made, {"numerics": numerics}) for _ in range(20)]
            for session in sessions:
                np.testing.assert_allclose(x @ weights, session.run(None, {"x": x})[0], atol=1e-2)

    def test_a_profile_names_units_and_segments(self):
        path = self.folder / "trace.json"
        session = self.session(network(), {"profile_path": path})
        session.run(None, {"x": image()})
        del session
        names = " ".join(e["name"] for e in json.loads(path.read_text())["traceEvents"])
        self.assertIn("Conv", names)
        self.assertIn(plugin.NAME, names)

    def test_the_profile_stays_where_it_was_named(self):
        (self.folder / "other").mkdir()
        with contextlib.chdir(self.folder):
            session = self.session(network(), {"profile_path": "trace.json"})
        session.run(None, {"x": image()})
        with contextlib.chdir(self.folder / "other"):
            del session
        self.assertTrue(json.loads((self.folder / "trace.json").read_text())["traceEvents"])


class Claims(PluginTest):
    def test_the_report_says_where_nodes_went_and_why(self):
        made = plugin.Reported(network().SerializeToString(), self.devices, {}, optimized=False)
        plan = made.main_plan()
        places = {node["name"]: node["placement"] for node in plan["nodes"]}
        self.assertEqual({"conv": "engine", "relu": "engine", "cast": "cpu", "back": "cpu",
                          "sigmoid": "engine"}, places)
        word = plugin.assigned(made.session)
        if word is not None:
            self.assertEqual([["conv", "relu"], ["sigmoid"]], sorted(word))

    def test_weights_of_two_bits(self):
        """ONNX Runtime's numbers of these types are ONNX's numbers of other types."""
        for kind in (TensorProto.UINT2, TensorProto.INT2):
            name = TensorProto.DataType.Name(kind)
            made = model([helper.make_node("DequantizeLinear", ["w", "s"], ["d"], "dq"),
                          helper.make_node("MatMul", ["x", "d"], ["y"], "mm")],
                         [("x", TensorProto.FLOAT, [1, 4])], [("y", TensorProto.FLOAT, [1, 16])],
                         [("s", np.float32(0.5))], opset=25)
            made.ir_version = 13
            made.graph.initializer.append(
                helper.make_tensor("w", kind, [4, 16], [i % 2 for i in range(64)]))
            feeds = {"x": np.ones((1, 4), np.float32)}
            with self.subTest(name):
                try:
                    want = plugin.cpu_session(made.SerializeToString()).run(None, feeds)
                except Exception as error:
                    self.skipTest(f"ONNX Runtime {ort.__version__} has no {name}: {error}")
                got = plugin.Reported(made.SerializeToString(), self.devices, {})
                np.testing.assert_array_equal(want, got.session.run(None, feeds))
                self.assertEqual(1, got.engine_segments())

    def test_what_the_cpu_must_run_fails_without_it(self):
        with self.assertRaisesRegex(Exception, "fallback to CPU EP has been explicitly disabled"):
            self.session(network(), whole=True)
        self.session(relu(), whole=True)

    def test_free_dimensions_are_claimed_once_they_are_bound(self):
        made = relu()
        for port in (made.graph.input[0], made.graph.output[0]):
            port.type.tensor_type.shape.dim[0].dim_param = "n"
        self.assertEqual(0, plugin.Reported(made.SerializeToString(), self.devices,
                                            {}).engine_segments())
        options = plugin.options_of(self.devices, {}, whole=True)
        options.add_free_dimension_override_by_name("n", 1)
        session = plugin.session_of(made.SerializeToString(), options)
        x = np.random.default_rng(4).standard_normal((1, 4, 8, 8)).astype(np.float16)
        np.testing.assert_array_equal(np.maximum(x, 0).astype(np.float32),
                                      session.run(None, {"x": x.astype(np.float32)})[0])

    def test_an_initializer_that_is_an_input_may_have_another_value(self):
        """ONNX Runtime decides what is a constant: the kernel is none, whatever direct mode makes of it."""
        w = np.random.default_rng(5).standard_normal((4, 4, 1, 1)).astype(np.float32)
        made = model([helper.make_node("Conv", ["x", "w"], ["c"], "conv"), helper.make_node("Relu", ["c"], ["y"], "relu")],
                     [("x", TensorProto.FLOAT, [1, 4, 8, 8]), ("w", TensorProto.FLOAT, [4, 4, 1, 1])],
                     [("y", TensorProto.FLOAT, [1, 4, 8, 8])], [("w", w)])
        session = self.session(made)
        x = np.random.default_rng(6).standard_normal((1, 4, 8, 8)).astype(np.float32)
        for given, used in (({}, w), ({"w": 2 * w}, 2 * w), ({}, w)):
            want = np.maximum(np.einsum("oi,nihw->nohw", used[:, :, 0, 0], x), 0)
            np.testing.assert_allclose(session.run(None, {"x": x, **given})[0], want, atol=0.02)
        nodes = plugin.Reported(made.SerializeToString(), self.devices, {}).main_plan()["nodes"]
        self.assertTrue(any("remove it from the inputs" in (node["remedy"] or "") for node in nodes))

    def test_shapes_computed_on_the_way(self):
        """Shape -> Concat -> Reshape, with optimizations off: only the segment uses the shape."""
        nodes = [helper.make_node("Relu", ["x"], ["a"], "relu"),
                 helper.make_node("Shape", ["a"], ["s"], "shape", end=1),
                 helper.make_node("Concat", ["s", "rest"], ["t"], "concat", axis=0),
                 helper.make_node("Reshape", ["a", "t"], ["b"], "reshape"),
                 helper.make_node("Sigmoid", ["b"], ["y"], "sigmoid")]
        made = model(nodes, [("x", TensorProto.FLOAT, [1, 8, 4, 4])],
                     [("y", TensorProto.FLOAT, None)], [("rest", np.int64([8, 16]))])
        x = np.random.default_rng(3).standard_normal((1, 8, 4, 4)).astype(np.float32)
        for outputs in (["y"], ["y", "t"], ["y", "s", "a"]):
            with self.subTest(str(outputs)):
                del made.graph.output[:]
                kinds = {"t": TensorProto.INT64, "s": TensorProto.INT64}
                made.graph.output.extend(
                    helper.make_tensor_value_info(n, kinds.get(n, TensorProto.FLOAT), None)
                    for n in outputs)
                session = self.session(made, optimized=False)
                word = plugin.assigned(session)
                if word is not None:
                    self.assertEqual(1, len(word))
                    self.assertLessEqual({"relu", "reshape", "sigmoid"}, set(word[0]))
                theirs = plugin.cpu_session(made.SerializeToString()).run(outputs, {"x": x})
                self.assertTrue(onnx_cases.agrees_in_fp16(session.run(outputs, {"x": x}), theirs))


class Load(PluginTest):
    def test_many_threads_on_one_session(self):
        session = self.session(network(), {"threads": 2})
        images = [image(seed) for seed in range(THREADS)]
        wanted = [session.run(None, {"x": x})[0] for x in images]

        def work(i, runs):
            return all(np.array_equal(session.run(None, {"x": images[i]})[0], wanted[i])
                       for _ in range(runs))

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            self.assertTrue(all(pool.map(lambda i: work(i, RUNS // 10), range(THREADS))))
            before = memory()
            self.assertTrue(all(pool.map(lambda i: work(i, RUNS), range(THREADS))))
        self.assertLess(memory() - before, GROWTH)

    def test_many_sessions_one_after_another(self):
        made = network()
        for _ in range(SESSIONS // 5):
            self.session(made)
        before = memory()
        for _ in range(SESSIONS):
            self.session(made).run(None, {"x": image()})
        self.assertLess(memory() - before, GROWTH)


if __name__ == "__main__":
    ort.set_default_logger_severity(4)
    unittest.main()
