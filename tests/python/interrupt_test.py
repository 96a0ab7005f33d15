"""Ctrl-C while a call into the library lasts: KeyboardInterrupt at once, and everything works afterwards."""

import concurrent.futures
import contextlib
import os
import pathlib
import random
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import onnx.parser  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import small_models as models  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from support import PythonTest  # noqa: E402

X = np.array([1, -2, 3, -4], np.float32)
AT_ONCE = 5  # seconds; it takes 0.1 on a machine that does nothing else
# By what runs the body.
LOOPS = {"the engine": ("v1 = Relu(v) v2 = Sigmoid(v1) w = Relu(v2)", {}),
         "parts on the CPU": ("v1 = Relu(v) v2 = Asinh(v1) w = Relu(v2)", {}),
         "ONNX Runtime": ("w = Sin(v)", {"policy": "cpu"})}


def loop(body):
    """A Loop of as many iterations as the caller wants."""
    return onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (int64 n, float[4] x) => (float[4] y) { y = Loop(n, , x) '
        f"<body = b (int64 i, bool k, float[4] v) => (bool o, float[4] w) {{ o = Identity(k) {body} }}> }}")


def times(count):
    return {"n": np.array(count, np.int64), "x": X}


@contextlib.contextmanager
def ctrl_c(seconds=0.3):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.join()


class CtrlC(PythonTest):
    def setUp(self):
        self.addCleanup(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def expect_interrupt(self, work):
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt), ctrl_c():
            work()
        self.assertLess(time.monotonic() - start, AT_ONCE)
        self.assertIs(signal.default_int_handler, signal.getsignal(signal.SIGINT))

    def test_a_run_that_does_not_end(self):
        for name, (body, keywords) in LOOPS.items():
            for limit in (0, 1000):
                with self.subTest(name, limit=limit):
                    session = ane.Session(loop(body), time_limit=limit, **keywords)
                    wanted = session.run(times(3))["y"]
                    for _ in range(2):
                        self.expect_interrupt(lambda: session.run(times(10**15)))
                        np.testing.assert_array_equal(wanted, session.run(times(3))["y"])

    def test_in_a_child_of_fork_too(self):
        body, keywords = LOOPS["ONNX Runtime"]
        parents = ane.Session(loop(body), **keywords)
        self.expect_interrupt(lambda: parents.run(times(10**15)))
        child = os.fork()
        if child == 0:
            try:
                session = ane.Session(loop(body), **keywords)
                self.expect_interrupt(lambda: session.run(times(10**15)))
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(0, os.waitpid(child, 0)[1])
        self.expect_interrupt(lambda: parents.run(times(10**15)))

    def test_a_storm(self):
        """Interrupts at any moment of loading, planning another size, and running: what ends is right."""
        ops = ("Relu", "Sigmoid", "Atanh", "Tanh")
        nodes = " ".join(f"v{i + 1} = {ops[i % 4]}(v{i})" for i in range(40))
        made = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]> g (float[n,4] v0) => (float[n,4] v40) '
                                       f"{{ {nodes} }}")
        inputs = [np.full((n, 4), 0.5, np.float32) for n in (1, 2, 3)]
        kinds = ({}, {"policy": "cpu"}, {"numerics": "exact"})
        wanted = [[ane.Session(made, **kind).run({"v0": x})["v40"] for x in inputs] for kind in kinds]
        sessions, chance, counts = [None] * len(kinds), random.Random(1), {"ended": 0, "interrupted": 0}
        over = threading.Event()

        def interrupts():
            over.wait(0.5)  # the loop below has begun
            while not over.wait(0.001 + 0.008 * random.random()):
                os.kill(os.getpid(), signal.SIGINT)

        def step():
            kind, size = chance.randrange(len(kinds)), chance.randrange(len(inputs))
            if sessions[kind] is None or chance.random() < 0.1:
                sessions[kind] = ane.Session(made, **kinds[kind])
            np.testing.assert_array_equal(wanted[kind][size], sessions[kind].run({"v0": inputs[size]})["v40"])
            counts["ended"] += 1

        thread = threading.Thread(target=interrupts)
        thread.start()
        end = time.monotonic() + 3
        while True:  # one may come anywhere, also in these lines
            try:
                while time.monotonic() < end:
                    step()
                over.set()
                thread.join()
                break
            except KeyboardInterrupt:
                counts["interrupted"] += 1
        self.assertGreater(min(counts.values()), 20, counts)

    def test_a_model_that_takes_long_to_read_and_plan(self):
        nodes = [helper.make_node("Softmax" if i % 3 else "Sin", [f"v{i}"], [f"v{i + 1}"]) for i in range(60_000)]
        made = models.model(nodes, [("v0", TensorProto.FLOAT, (1, 4))], [("v60000", TensorProto.FLOAT, (1, 4))], [])
        for work in (ane.check, ane.Session):
            with self.subTest(work.__name__):
                self.expect_interrupt(lambda: work(made))

    def test_between_two_calls_it_is_pythons_own(self):
        session = ane.Session(models.relu())
        session.run({"x": np.ones((1, 4, 8, 8), np.float32)})
        self.expect_interrupt(lambda: time.sleep(60))

    def test_a_programs_own_handler_runs_when_the_call_ends(self):
        session = ane.Session(loop(LOOPS["the engine"][0]))
        wanted, count = self.longer_than(session, 1)
        calls = []
        signal.signal(signal.SIGINT, lambda number, frame: calls.append(time.monotonic()))
        with ctrl_c():
            made = session.run(times(count))["y"]
        self.assertEqual(1, len(calls))
        np.testing.assert_array_equal(wanted, made)

    def test_another_thread_goes_on(self):
        session = ane.Session(loop(LOOPS["the engine"][0]))
        wanted, count = self.longer_than(session, 1)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(session.run, times(count))
            self.expect_interrupt(lambda: session.run(times(10**15)))
            self.assertFalse(other.done())
            np.testing.assert_array_equal(wanted, other.result()["y"])

    @staticmethod
    def longer_than(session, seconds):
        """The result of so many iterations, and their number."""
        count, start, took = 1000, 0, 0
        while took < seconds:
            count *= 2
            start = time.monotonic()
            made = session.run(times(count))["y"]
            took = time.monotonic() - start
        return made, count


if __name__ == "__main__":
    unittest.main()
