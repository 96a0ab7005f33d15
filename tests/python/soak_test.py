"""Sessions with states, used continuously: many of them, in threads, with caches that grow and are emptied, new
sessions and forks. Memory must not grow, and tokens must stay the same.

    tests/python/state_soak_test.py [SECONDS]

For 30 seconds; an hour is `tests/python/state_soak_test.py 3600`.
"""

import concurrent.futures
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
from grouped_decoder import grouped_decoder  # noqa: E402
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


class StateSoak(PackageTest):
    def test_memory_is_flat(self):
        models = [self.write(decoder(layers=1), "concat.onnx"), self.write(grouped_decoder(layers=1), "grouped.onnx")]
        roots = [ane.Session(model, state="auto", threads=1) for model in models]
        want = [context(root, LONGEST) for root in roots]
        end = time.monotonic() + SECONDS

        def work(worker):
            random, runs, forks = np.random.default_rng(worker), 0, 0
            while time.monotonic() < end:
                which = int(random.integers(len(roots)))
                # One in 50 plans and compiles again.
                loads = random.integers(50) == 0
                session = ane.Session(models[which], state="auto", threads=1) if loads else roots[which].fork()
                for _ in range(int(random.integers(1, 4))):
                    length = int(random.integers(1, LONGEST))
                    self.assertEqual(want[which][: length + 1], context(session, length))
                    runs += length
                forks += 1
            return runs, forks

        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            working = [pool.submit(work, i) for i in range(WORKERS)]
            time.sleep(SECONDS / 3)
            early = megabytes()
            done = [future.result() for future in working]
        late = megabytes()
        runs, forks = (sum(column) for column in zip(*done))
        print(f"{runs} runs of {forks} sessions in {SECONDS:.0f} s; {early:.0f} MB after a third, {late:.0f} MB at the end")
        self.assertGreater(runs, 0)
        self.assertLess(late - early, MOST_GROWTH)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        SECONDS = float(sys.argv.pop(1))
    unittest.main()
