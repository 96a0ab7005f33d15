"""The package in children that fork() makes, such as those of multiprocessing's method `fork`, of a process that has
used it and the plugin: what a child loads works, what its parent loaded says that it cannot, and nothing hangs."""

import multiprocessing
import os
import pathlib
import signal
import sys
import traceback
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import small_models as models  # noqa: E402
import training_models  # noqa: E402

SECONDS = 60


def in_child(work):
    """Calls `work` in a child, and returns what it says: "" if it returns."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)  # instead of a hang
        said = ""
        try:
            work()
        except BaseException:
            said = traceback.format_exc()
        os.write(write, said.encode()[-4000:])
        os._exit(0 if said == "" else 1)
    os.close(write)
    with open(read, "rb") as end:
        said = end.read().decode()
    _, status = os.waitpid(child, 0)
    return f"signal {status}" if os.WIFSIGNALED(status) else said


def plugin_session(model, **options):
    devices = ane.register()
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    settings.add_session_config_entry("session.disable_cpu_ep_fallback", "0")
    settings.add_provider_for_devices(devices[:1], options)
    return ort.InferenceSession(model, settings)


def run_new(seed):
    """Of a worker of multiprocessing."""
    session = ane.Session(models.network().SerializeToString(), cache=False)
    return session.run({"x": models.image(seed)})["y"]


class Fork(unittest.TestCase):
    def setUp(self):
        self.model = models.network().SerializeToString()
        self.x = models.image()

    def test_a_session(self):
        session = ane.Session(self.model, threads=2)
        want = session.run({"x": self.x})["y"]

        def work():
            own = ane.Session(self.model, threads=2)
            np.testing.assert_array_equal(want, own.run({"x": self.x})["y"])
            with self.assertRaisesRegex(RuntimeError, r"before fork\(\).*load it in the child"):
                session.run({"x": self.x})
            del own

        for _ in range(5):
            self.assertEqual("", in_child(work))
            np.testing.assert_array_equal(want, session.run({"x": self.x})["y"])

    def test_a_report(self):
        before = ane.check(self.model, target="m1,m4").text()

        def work():
            self.assertEqual(before, ane.check(self.model, target="m1,m4").text())

        self.assertEqual("", in_child(work))

    def test_a_trainer(self):
        def made():
            return ane.Trainer(training_models.layered().SerializeToString(), loss="cross-entropy:logits:labels")

        batch = {name: array[:32] for name, array in training_models.digits(64).items()}
        trainer, other = made(), made()
        first, second = trainer.step(batch), trainer.step(batch)
        self.assertEqual(first, other.step(batch))

        def work():
            own = made()
            self.assertEqual(first, own.step(batch))
            with self.assertRaisesRegex(RuntimeError, r"before fork\(\)"):
                other.step(batch)

        self.assertEqual("", in_child(work))
        self.assertEqual(second, other.step(batch))

    def test_the_plugin(self):
        session = plugin_session(self.model)
        want = session.run(None, {"x": self.x})[0]

        def work():
            own = plugin_session(self.model)
            np.testing.assert_array_equal(want, own.run(None, {"x": self.x})[0])
            with self.assertRaisesRegex(Exception, r"before fork\(\)"):
                session.run(None, {"x": self.x})

        for _ in range(3):
            self.assertEqual("", in_child(work))
            np.testing.assert_array_equal(want, session.run(None, {"x": self.x})[0])

    def test_workers_of_multiprocessing(self):
        session = ane.Session(self.model, cache=False)
        want = [session.run({"x": models.image(seed)})["y"] for seed in range(6)]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            got = pool.map_async(run_new, range(6)).get(timeout=SECONDS)
        for one, other in zip(want, got):
            np.testing.assert_array_equal(one, other)


if __name__ == "__main__":
    unittest.main()
