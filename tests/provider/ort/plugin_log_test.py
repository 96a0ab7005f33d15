"""What the plugin writes to the log of an ONNX Runtime session: the plan, and values that fp16 cannot
hold. Each session is in a separate process, because ONNX Runtime writes to stderr.

    plugin_log_test.py PLUGIN
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from small_models import image, model, network, relu  # noqa: E402

LIBRARY = pathlib.Path(sys.argv.pop(1)).resolve()

RUN = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np, onnxruntime as ort, plugin
given = json.loads(sys.argv[2])
options = plugin.options_of(plugin.register(given["library"]), given["options"])
options.log_severity_level = given["severity"]
session = plugin.session_of(given["model"], options)
for path in given["inputs"]:
    session.run(None, dict(np.load(path)))
"""


class PluginLog(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def lines(self, made, inputs=(), severity=2, **options):
        """The plugin's lines, without ONNX Runtime's prefix."""
        onnx.save(made, self.folder / "net.onnx")
        files = []
        for i, feeds in enumerate(inputs):
            files.append(str(self.folder / f"{i}.npz"))
            np.savez(files[-1], **feeds)
        given = {"library": str(LIBRARY), "options": options, "severity": severity,
                 "model": str(self.folder / "net.onnx"), "inputs": files}
        done = subprocess.run([sys.executable, "-c", RUN, str(pathlib.Path(__file__).parent),
                               json.dumps(given)], capture_output=True, text=True, timeout=120)
        self.assertEqual(0, done.returncode, done.stderr)
        plain = re.sub(r"\x1b\[[\d;]*m", "", done.stderr)
        return re.findall(r"\] (ANE[,:].*)", plain)

    def summary(self, made, **options):
        report = self.folder / "report.json"
        self.lines(made, report_path=str(report), **options)
        return json.loads(report.read_text())["models"][-1]["targets"][0]["summary"]

    def test_the_first_line_counts_as_check_does(self):
        first, second = self.lines(network(), target="m4")
        self.assertRegex(first, r"^ANE, M4: 100 % of MACs on the engine, 2 segments, 2 nodes on the CPU\.")
        s = self.summary(network(), target="m4")
        self.assertIn(f"ONNX Runtime's own (already optimized) graph has {s['nodes']} nodes: "
                      f"{s['engine_nodes']} engine, {s['cpu_nodes']} CPU, {s['folded_nodes']} folded", first)
        self.assertNotIn("FLOP", first)
        self.assertRegex(second, r"^ANE: on the CPU: 2 Cast, coverage: .*\[integer-range\]$")

    def test_a_model_on_the_engine_alone_is_no_warning(self):
        self.assertEqual([], self.lines(relu()))
        [line] = [line for line in self.lines(relu(), severity=1) if "graph has" in line]
        self.assertIn("nothing on the CPU", line)
        self.assertIn("graph has 1 node: 1 engine, 0 CPU, 0 folded", line)

    def test_free_dimensions_are_named(self):
        made = network()
        shape = made.graph.input[0].type.tensor_type.shape
        shape.dim[0].dim_param, shape.dim[2].dim_param = "batch", "height"
        shape.dim[3].ClearField("dim_value")
        del made.graph.output[0].type.tensor_type.shape.dim[:]
        made.graph.output[0].type.tensor_type.ClearField("shape")
        first = self.lines(made)[0]
        self.assertIn("cannot tell the share", first)
        self.assertIn("batch, height, dimension 3 of 'x'", first)
        self.assertIn("add_free_dimension_override_by_name", first)
        self.assertNotIn("100 %", first)

    def test_warnings_are_counted_by_rule(self):
        lines = self.lines(relu((1, 4, 8, 7)), severity=1)
        [line] = [line for line in lines if "warnings" in line]
        self.assertRegex(line, r"^ANE: warnings: (\d+ nodes? \[[a-z-]+\](, )?)+$")
        self.assertIn("1 node [width-granule]", line)

    def test_an_output_that_is_not_finite_is_told_once(self):
        made = model([helper.make_node("MatMul", ["x", "w"], ["y"])],
                     [("x", TensorProto.FLOAT, [1, 4])], [("y", TensorProto.FLOAT, [1, 16])],
                     [("w", np.full((4, 16), 30000, np.float32))])
        fine, large = {"x": np.zeros((1, 4), np.float32)}, {"x": np.full((1, 4), 8, np.float32)}
        self.assertEqual([], self.lines(made, [fine]))
        [line] = self.lines(made, [fine, large, large])
        self.assertRegex(line, r"^ANE: 16 of 16 values of 'y' are not finite.*run --hazards.*; the node that "
                               r"makes 'y' computes them: the option policy=refuse:node:\w+ runs it on the CPU")
        unit = line.rpartition("refuse:")[2].split()[0]
        _, reason = self.lines(made, [large], policy=f"refuse:{unit}")
        self.assertIn("policy", reason)

    def test_inputs_that_fp16_cannot_hold_are_told_once(self):
        x = np.ones((1, 4, 8, 8), np.float32)
        x[0, 0, 0, :3] = 65519, 65520, -1e30
        x[0, 1, 0, 0] = -np.inf  # it was infinite before
        [line] = self.lines(relu(), [{"x": np.ones_like(x)}, {"x": x}, {"x": x}])[:1]
        self.assertRegex(line, r"^ANE: 2 of 256 values of 'x' are above 65504.*; the node that makes 'y' reads "
                               r"them first: the option policy=refuse:node:\w+ runs it on the CPU")

    def test_ordinary_values_are_not_told(self):
        lines = self.lines(network(), [{"x": image()}])
        self.assertEqual(2, len(lines), lines)


if __name__ == "__main__":
    unittest.main()
