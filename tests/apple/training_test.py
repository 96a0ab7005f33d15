"""ane.Trainer with device="apple" on the stand-in: one compile for a training, before its first step, and the
bits of the software device in exact mode.

    training_test.py DRIVER STANDIN
"""

import os
import pathlib
import sys
import tempfile

# Before the package opens the framework.
log = tempfile.NamedTemporaryFile()
os.environ.update(ANEMONE_ANE_DRIVER=sys.argv[1], ANEMONE_ANE_FRAMEWORK=sys.argv[2], ANEMONE_STANDIN_LOG=log.name)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import onnxruntime_ep_ane as ane  # noqa: E402
import trainer_test as tests  # noqa: E402

STEPS = 130  # more than the 119 compiles that a process has


def compiles():
    with open(log.name) as file:
        return len(file.read().split())


def main():
    make, data, loss, keywords, _ = tests.TASKS["gated"]
    trainer = ane.Trainer(make(), loss, device="apple", cache=False, **keywords)
    assert compiles() == 1, f"{compiles()} compiles before the first step"
    software = ane.Trainer(make(), loss, device="software", numerics="exact", cache=False, **keywords)
    for feeds in tests.batches(data(), trainer.inputs[0].shape[0], STEPS):
        assert trainer.step(feeds) == software.step(feeds), f"another loss in step {trainer.runs}"
    for name, weight in trainer.weights.items():
        assert weight.tobytes() == software.weights[name].tobytes(), name
    assert compiles() == 1, f"{compiles()} compiles after {STEPS} steps"
    print(f"{STEPS} steps, 1 compile")


main()
