"""Memory that a session keeps between runs: states, and surfaces that a caller fills and reads."""

import gc
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import small_models as models  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from support import PackageTest  # noqa: E402


def cell():
    """hn = tanh(conv(h0) + x), y = sigmoid(hn)."""
    shape = (1, 8, 4, 4)
    weights = np.random.default_rng(1).standard_normal((8, 8, 3, 3)).astype(np.float32) / 8
    nodes = [helper.make_node("Conv", ["h0", "w"], ["a"], pads=[1, 1, 1, 1]),
             helper.make_node("Add", ["a", "x"], ["b"]), helper.make_node("Tanh", ["b"], ["hn"]),
             helper.make_node("Sigmoid", ["hn"], ["y"])]
    return models.model(nodes, [("x", TensorProto.FLOAT, shape), ("h0", TensorProto.FLOAT, shape)],
                        [("y", TensorProto.FLOAT, shape), ("hn", TensorProto.FLOAT, shape)], [("w", weights)])


class SurfaceArrays(PackageTest):
    def test_runs_read_and_write_the_arrays_where_they_are(self):
        for settings in ({}, {"route": "mil"}, {"numerics": "exact"}):
            session = ane.Session(cell(), **settings)
            memory = session.surfaces("x", "h0", "y")
            self.assertEqual(["x", "h0", "y"], list(memory))
            x, y = memory["x"], memory["y"]
            self.assertEqual((np.float16, (1, 8, 4, 4)), (x.dtype, x.shape))
            address = y.__array_interface__["data"]
            random = np.random.default_rng(2)
            for _ in range(3):
                x[:] = random.standard_normal(x.shape)
                memory["h0"][:] = random.standard_normal(x.shape)
                made = memory.run()
                self.assertIs(y, made["y"])
                want = session.run({"x": x.astype(np.float32), "h0": memory["h0"].astype(np.float32)})
                np.testing.assert_array_equal(want["y"], y.astype(np.float32))
                np.testing.assert_array_equal(want["hn"], made["hn"])
            self.assertEqual(address, memory["y"].__array_interface__["data"])

    def test_an_array_keeps_its_memory(self):
        memory = ane.Session(cell()).surfaces("x", "h0", "y")
        memory["x"][:] = 0.25
        y = memory.run()["y"]
        want = y.copy()
        del memory
        gc.collect()
        np.testing.assert_array_equal(want, y)

    def test_other_inputs_are_given_and_wrong_use_is_named(self):
        session = ane.Session(cell())
        memory = session.surfaces("x")
        h = np.ones((1, 8, 4, 4), np.float32)
        np.testing.assert_array_equal(session.run({"x": np.zeros_like(h), "h0": h})["y"], memory.run({"h0": h})["y"])
        for kind, told, call in (
                (ValueError, "input 'h0': missing", lambda: memory.run()),
                (ValueError, "input 'x': it is read from its array", lambda: memory.run({"x": h, "h0": h})),
                (ValueError, "input 'z': the model has no such input; it has 'h0'", lambda: memory.run({"z": h, "h0": h})),
                (ValueError, "input 'z': the model has no such input; no input is to be given",
                 lambda: session.surfaces("x", "h0").run({"z": h})),
                (ValueError, "'xx' is no input or output of the model", lambda: session.surfaces("xx")),
                (TypeError, "give the names of inputs and outputs", lambda: session.surfaces()),
                (RuntimeError, "the session keeps a state", lambda: ane.Session(cell(), state="auto").surfaces("x"))):
            with self.assertRaisesRegex(kind, told):
                call()


class State(PackageTest):
    def frames(self, count):
        return np.random.default_rng(2).standard_normal((count, 1, 8, 4, 4)).astype(np.float32)

    def test_the_bits_are_those_of_passing_it_by_hand(self):
        for numerics in ("fast", "exact"):
            by_hand = ane.Session(cell(), numerics=numerics)
            h = np.zeros((1, 8, 4, 4), np.float32)
            for state in ({"h0": "hn"}, "auto"):
                session = ane.Session(cell(), numerics=numerics, state=state)
                self.assertEqual({"h0": "hn"}, session.state_pairs)
                h = np.zeros_like(h)
                for x in self.frames(5):
                    want, got = by_hand.run({"x": x, "h0": h}), session.run({"x": x})
                    h = want["hn"]
                    self.assertEqual(["y"], list(got))
                    np.testing.assert_array_equal(want["y"], got["y"])
                    np.testing.assert_array_equal(h, session.state("h0"))

    def test_io_binding_of_onnx_runtime_gives_the_same_bits(self):
        ane.register()
        options = ort.SessionOptions()
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        devices = [d for d in ort.get_ep_devices() if d.ep_name == ane.get_ep_name()]
        options.add_provider_for_devices(devices[:1], {"target": "h13"})
        plugin = ort.InferenceSession(cell().SerializeToString(), options)
        session = ane.Session(cell(), state="auto")
        values = [ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 8, 4, 4), np.float32)) for _ in range(2)]
        for i, x in enumerate(self.frames(6)):
            binding = plugin.io_binding()
            binding.bind_cpu_input("x", x)
            binding.bind_ortvalue_input("h0", values[i % 2])
            binding.bind_ortvalue_output("hn", values[(i + 1) % 2])
            binding.bind_output("y")
            plugin.run_with_iobinding(binding)
            np.testing.assert_array_equal(binding.get_outputs()[1].numpy(), session.run({"x": x})["y"])

    def test_it_is_written_and_reset_and_forks_have_their_own(self):
        session = ane.Session(cell(), state={"h0": "hn"})
        first, *rest = self.frames(3)
        y = session.run({"x": first})["y"]
        fork = session.fork()
        h = np.full((1, 8, 4, 4), 0.5, np.float32)
        session.write_state("h0", h)
        h[:] = 7  # the array was copied
        self.assertTrue((session.state("h0") == 0.5).all())
        self.assertTrue((fork.state("h0") == 0).all())
        np.testing.assert_array_equal(y, fork.run({"x": first})["y"])
        self.assertTrue((session.state("h0") == 0.5).all())
        session.reset_state()
        np.testing.assert_array_equal(y, session.run({"x": first})["y"])
        copy = session.state("h0")
        kept = copy.copy()
        session.run({"x": rest[0]})
        np.testing.assert_array_equal(kept, copy)

    def test_wrong_use_is_named(self):
        session = ane.Session(cell(), state={"h0": "hn"})
        with self.assertRaisesRegex(KeyError, "state 'x': no pair has this input; there are: 'h0'"):
            session.state("x")
        with self.assertRaisesRegex(KeyError, "this session keeps none; give state="):
            ane.Session(cell()).state("h0")
        with self.assertRaisesRegex(ValueError, "input 'h0': want float32 1x8x4x4, got float32 2"):
            session.write_state("h0", np.ones(2, np.float32))
        with self.assertRaisesRegex(ValueError, "the model has no output 'hm'; it has 'hn'"):
            ane.Session(cell(), state={"h0": "hm"})
        with self.assertRaisesRegex(TypeError, "state: want a dict such as"):
            ane.Session(cell(), state=["h0"])


if __name__ == "__main__":
    unittest.main()
