"""Sessions used continuously: models of several kinds in many threads, caches that grow and are emptied, forks,
new sessions, new weights while others run, sizes that change, texts that are not generated to their end, runs
that a limit of time ends.
Memory must not grow, and every output must stay the same, bit for bit.

    tests/python/soak_test.py [SECONDS]

For 30 seconds; an hour is `tests/python/soak_test.py 3600`.
"""

import collections
import concurrent.futures
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import small_models  # noqa: E402
from grouped_decoder import grouped_decoder  # noqa: E402
from onnx import TensorProto, helper, parser  # noqa: E402
from small_decoder import decoder  # noqa: E402
from support import PackageTest  # noqa: E402

SECONDS = 30.0
WORKERS = 4
LONGEST = 150  # tokens of a context: three capacities of the caches
MOST_GROWTH = 16  # MB between a third of the time and its end


def megabytes():
    """Of memory that the process has now."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise OSError("/proc/self/status has no VmRSS")


def step(session, past, token):
    given = {"input_ids": np.array([[token]]), "attention_mask": np.ones((1, past + 1), np.int64),
             "position_ids": np.array([[past]])}
    known = {port.name for port in session.inputs}
    return session.run({name: array for name, array in given.items() if name in known})["logits"][0, -1]


def context(session, length):
    """The tokens that follow token 1, each the likeliest, from an empty cache."""
    session.reset_state()
    tokens = [1]
    for past in range(length):
        tokens.append(int(step(session, past, tokens[-1]).argmax()))
    return tokens


class Contexts:
    """Sessions with states: forks of a few, and one in 50 that plans and compiles again."""

    def __init__(self, test):
        self.models = [test.write(decoder(layers=1), "concat.onnx"),
                       test.write(grouped_decoder(layers=1), "grouped.onnx")]
        self.roots = [ane.Session(model, state="auto", threads=1) for model in self.models]
        self.want = [context(root, LONGEST) for root in self.roots]

    def work(self, random):
        which = int(random.integers(len(self.roots)))
        loads = random.integers(50) == 0
        session = ane.Session(self.models[which], state="auto", threads=1) if loads else self.roots[which].fork()
        for _ in range(int(random.integers(1, 4))):
            length = int(random.integers(1, LONGEST))
            yield self.want[which][: length + 1], context(session, length)


class Weights:
    """One session of engine and CPU segments that all threads run, while they give it new weights. A run has
    the old weights or the new ones."""

    def __init__(self, test):
        random = np.random.default_rng(1)
        self.session = ane.Session(test.write(small_models.network(), "network.onnx"), threads=2)
        self.weights = [random.standard_normal((8, 3, 3, 3)).astype(np.float32) for _ in range(3)]
        self.want = []
        for weights in self.weights:
            self.session.update_weights({"w": weights})
            self.want.append(self.run())

    def run(self):
        return self.session.run({"x": small_models.image()})["y"].tobytes()

    def work(self, random):
        if random.integers(4) == 0:
            self.session.update_weights({"w": self.weights[int(random.integers(len(self.weights)))]})
        for _ in range(20):
            made = self.run()
            yield made if made in self.want else self.want, made


class Sizes:
    """A free size: more sizes than there are kept plans, so that plans are made and dropped."""

    def __init__(self, test):
        weights = np.random.default_rng(2).standard_normal((8, 8)).astype(np.float32)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])]
        made = small_models.model(nodes, [("x", TensorProto.FLOAT, ["N", 8])], [("y", TensorProto.FLOAT, ["N", 8])],
                                  [("w", weights)])
        self.session = ane.Session(test.write(made, "sizes.onnx"), threads=1)
        self.want = {rows: self.run(rows) for rows in range(1, 13)}

    def run(self, rows):
        x = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8) / 100
        return self.session.run({"x": x})["y"].tobytes()

    def work(self, random):
        rows = int(random.integers(1, 13))
        yield self.want[rows], self.run(rows)


class Texts:
    """Texts whose reader stops before their end."""

    def __init__(self, test):
        self.model = test.write(decoder(layers=1), "texts.onnx")
        self.want = list(self.text())

    def text(self):
        return ane.generate(self.model, [1, 2, 3], max_new=12, threads=1)

    def work(self, random):
        length = int(random.integers(0, 12))
        made = []
        text = self.text()
        for _ in range(length):
            made.append(next(text))
        text.close()
        yield self.want[:length], made


class Stopped:
    """Runs of a loop with an engine segment: short ones, and some that only the limit of time ends."""

    LIMIT = 2  # seconds

    def __init__(self, test):
        made = parser.parse_model(
            '<ir_version: 10, opset_import: ["" : 21]> g (int64 n, float[4] x) => (float[4] y) { '
            "t = Constant<value = bool {1}>() y = Loop(n, t, x) <body = b (int64 i, bool k, float[4] v) => "
            "(bool o, float[4] w) { o = Identity(k) a = Relu(v) w = Sigmoid(a) }> }")
        self.session = ane.Session(test.write(made, "stopped.onnx"), threads=1, time_limit=self.LIMIT)
        self.want = self.run(5)

    def run(self, trips):
        """None if the limit ended it, which a machine that is busy does to short runs, too."""
        try:
            return self.session.run({"n": np.int64(trips), "x": np.arange(4, dtype=np.float32)})["y"].tobytes()
        except TimeoutError:
            return None

    def work(self, random):
        if random.integers(20) == 0:
            yield None, self.run(2**60)
        made = self.run(5)
        yield made and self.want, made


class Soak(PackageTest):
    def test_memory_is_flat_and_outputs_are_right(self):
        kinds = [kind(self) for kind in (Contexts, Weights, Sizes, Texts, Stopped)]
        end = time.monotonic() + SECONDS

        def work(worker):
            random, runs = np.random.default_rng(worker), collections.Counter()
            while time.monotonic() < end:
                kind = kinds[int(random.integers(len(kinds)))]
                for want, made in kind.work(random):
                    self.assertEqual(want, made, type(kind).__name__)
                    runs[type(kind).__name__] += 1
            return runs

        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            working = [pool.submit(work, i) for i in range(WORKERS)]
            time.sleep(SECONDS / 3)
            early = megabytes()
            runs = sum((future.result() for future in working), collections.Counter())
        late = megabytes()
        print(f"{dict(runs)} in {SECONDS:.0f} s; {early:.0f} MB after a third, {late:.0f} MB at the end")
        self.assertEqual(len(kinds), len(runs))
        self.assertLess(late - early, MOST_GROWTH)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        SECONDS = float(sys.argv.pop(1))
    unittest.main()
