#!/usr/bin/env python3
"""Train a network on scikit-learn's digits, and measure steps a second against ONNX Runtime.

    bench/training.py [--digits WHEEL] [--steps N]

The digits (1797 images of 8 x 8) are a file inside scikit-learn's wheel, which pip downloads if WHEEL is
not given; it is not installed. The network is that of tests/python/training_models.py. Prints the accuracy
on every fifth image, which is not trained on, by target, numerics, loss scale and form of the weights, then
for each small model of the tests the steps a second as a ratio to ONNX Runtime on the same step graph.
"""

import argparse
import glob
import gzip
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
for folder in (ROOT / "build/release/python", ROOT / "tests/python"):
    sys.path.insert(0, str(folder))
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import trainer_test as tests  # noqa: E402
import training_models as models  # noqa: E402
from onnx import numpy_helper  # noqa: E402

BATCH = 32
RATE = 0.004
REPEATS = 40


def load_digits(wheel):
    with tempfile.TemporaryDirectory() as folder:
        if wheel is None:
            subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-q",
                            "scikit-learn", "-d", folder], check=True)
            (wheel,) = glob.glob(f"{folder}/*.whl")
        packed = zipfile.ZipFile(wheel).read("sklearn/datasets/data/digits.csv.gz")
    table = np.loadtxt(io.BytesIO(gzip.decompress(packed)), delimiter=",")
    images = (table[:, :64] / 16).reshape(-1, 1, 8, 8).astype(np.float32)
    labels = table[:, 64].astype(np.int64)
    tested = np.arange(len(labels)) % 5 == 0
    return ({"x": images[~tested], "labels": labels[~tested]},
            {"x": images[tested], "labels": labels[tested]})


def accuracy(model, data):
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    right = 0
    for at in range(0, len(data["labels"]) // BATCH * BATCH, BATCH):
        (logits,) = session.run(None, {"x": data["x"][at:at + BATCH]})
        right += np.sum(logits.argmax(1) == data["labels"][at:at + BATCH])
    return right / (len(data["labels"]) // BATCH * BATCH)


def with_weights(model, weights):
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name], tensor.name))
    return model.SerializeToString()


def train(data, steps, fp32=False, **keywords):
    make = tests.Fp32 if fp32 else ane.Trainer
    trainer = make(models.convolutional(), tests.CROSS_ENTROPY, lr=RATE, **keywords)
    curve = []
    for step, feeds in enumerate(tests.batches(data, BATCH, steps)):
        loss = trainer.step(feeds)
        if (step + 1) % 50 == 0 or step == 0:
            weights = trainer.state if fp32 else trainer.weights
            curve.append((step + 1, loss, with_weights(models.convolutional(), weights)))
    return curve


def digits(wheel, steps):
    trained, tested = load_digits(wheel)
    forms = {"fp32, ONNX Runtime": {"fp32": True}, "h13": {}, "h17": {"target": "h17"}, "h13, exact": {"numerics": "exact"},
             "h17, exact": {"numerics": "exact", "target": "h17"},
             "h13, loss scale 128": {"loss_scale": 128},
             "h13, loss scale 16384": {"loss_scale": 16384},
             "h13, weights as one fp16 number": {"master": "fp16"},
             "h13, update on the CPU": {"update": "cpu"}}
    for name, keywords in forms.items():
        curve = train(trained, steps, **keywords)
        print(f"{name}: " + ", ".join(f"{step}: {accuracy(model, tested):.3f} ({loss:.3f})"
                                      for step, loss, model in curve), flush=True)


def time_of(step, feeds):
    step(feeds)
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        step(feeds)
        times.append(time.perf_counter() - begin)
    return np.median(times)


def chains():
    """Orion's table 7: each step of a chain is a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(models.language(), f"{folder}/net.onnx")
        np.savez(f"{folder}/data.npz", **models.tokens())
        for chain in range(5):
            for step in range(1, 6):
                done = subprocess.run(
                    [ROOT / "build/release/anemone", "train", f"{folder}/net.onnx", "--data",
                     f"{folder}/data.npz", "--loss", tests.CROSS_ENTROPY, "--lr", "0.003",
                     "--steps", str(step), "--checkpoint", f"{folder}/{chain}", "--resume",
                     "--json", "-q"], capture_output=True, text=True, check=True)
            losses = json.loads(done.stdout)["loss"]
            print(f"chain {chain + 1}:", ", ".join(f"{loss:.4f}" for loss in losses))


def speed():
    for task, (make, data, loss, keywords, _) in tests.TASKS.items():
        trainer = ane.Trainer(make(), loss, **keywords)
        reference = tests.Fp32(make(), loss, **keywords)
        feeds = next(tests.batches(data(), trainer.inputs[0].shape[0], 1))
        own, other = time_of(trainer.step, feeds), time_of(reference.step, feeds)
        print(f"{task}: {1 / own:.0f} steps a second, {other / own:.2f} of ONNX Runtime's speed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--digits", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=300)
    words = parser.parse_args()
    digits(words.digits, words.steps)
    chains()
    speed()


if __name__ == "__main__":
    main()
