"""Imports the package, onnx and onnxruntime in every order, each in a separate process. ONNX writes and
checks a model, and it runs with the plugin and in direct mode.

    import_order_test.py            this Python
    import_order_test.py PYTHON     another one, such as that of an environment with the wheel
"""

import itertools
import pathlib
import subprocess
import sys
import unittest

PYTHON = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else sys.executable
PACKAGES = ("onnx", "onnxruntime", "onnxruntime_ep_ane")

USE = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import small_models
made, x = small_models.network(), small_models.image()
onnx.checker.check_model(made)
options = onnxruntime.SessionOptions()
options.add_provider_for_devices(onnxruntime_ep_ane.register(), {"target": "h13"})
plugin = onnxruntime.InferenceSession(made.SerializeToString(), options, enable_fallback=0)
assert plugin.get_providers()[0] == "ANEExecutionProvider", plugin.get_providers()
cpu = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
direct = onnxruntime_ep_ane.Session(made).run({"x": x})["y"]
want = cpu.run(None, {"x": x})[0]
for got in (direct, plugin.run(None, {"x": x})[0]):
    # If a sum of the Conv is rounded to another integer, Sigmoid differs by up to 0.24.
    assert np.mean(np.abs(got - want) < 1e-2) > 0.95, np.abs(got - want).max()
print("ran", onnxruntime_ep_ane.__file__)
"""


class ImportOrder(unittest.TestCase):
    def test_every_order(self):
        orders = list(itertools.permutations(PACKAGES))
        self.assertEqual(6, len(orders))
        for order in orders:
            with self.subTest(order):
                done = subprocess.run(
                    [PYTHON, "-c", f"import {', '.join(order)}\n{USE}",
                     str(pathlib.Path(__file__).resolve().parents[1])],
                    capture_output=True, text=True, timeout=120)
                self.assertEqual(0, done.returncode, done.stdout + done.stderr)
                self.assertIn("ran", done.stdout)


if __name__ == "__main__":
    unittest.main()
