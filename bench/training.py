#!/usr/bin/env python3
"""Train a network on scikit-learn's digits, and measure steps a second against PyTorch and ONNX Runtime.

    bench/training.py [--only digits|speed] [--digits WHEEL] [--steps N] [--threads N]

The digits (1797 images of 8 x 8) are a file inside scikit-learn's wheel, which pip downloads if WHEEL is
not given; it is not installed. The network is that of tests/python/training_models.py. Prints the accuracy
on every fifth image, which is not trained on, by target, numerics, loss scale and form of the weights, then
for each small model of the tests, and for larger ones, the steps a second as a ratio to PyTorch's CPU (eager,
fp32, its own autograd and optimizer with foreach=True) and to ONNX Runtime on the same step graph. All have
the same number of threads, and take turns in one process after another.
"""

import argparse
import glob
import gzip
import io
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
import onnxruntime as ort  # noqa: E402
import onnxruntime_ep_ane as ane  # noqa: E402
import trainer_test as tests  # noqa: E402
import training_models as models  # noqa: E402
import with_torch  # noqa: E402
from onnx import numpy_helper  # noqa: E402

BATCH = 32
RATE = 0.004
TURNS = 7
SECONDS = 0.3  # of each turn
LARGER = {
    "layered, 512 wide": (lambda: models.layered(256, width=512), models.digits, tests.CROSS_ENTROPY, {"lr": 0.001}),
    "convolutional, batch 128": (lambda: models.convolutional(128), models.digits, tests.CROSS_ENTROPY, {"lr": 0.01}),
    "transformer, 128 wide": (lambda: models.transformer(8, 64, 128), lambda: models.sequences(16, 64, 128),
                              "mse:y:target", {"lr": 0.001}),
    "language, 128 wide": (lambda: models.language(8, 64, 128, 512), lambda: models.tokens(16, 64, 512),
                           tests.CROSS_ENTROPY, {"lr": 0.001}),
}


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


def runner(step, feeds):
    def run(count):
        begin = time.perf_counter()
        for _ in range(count):
            step(feeds)
        return time.perf_counter() - begin
    return run


def times_of(runs):
    """Seconds of a step, by name: the median of turns, which each take in their order."""
    counts = {name: max(1, round(SECONDS * 5 / (run(1) + run(5)))) for name, run in runs.items()}
    turns = [{name: run(counts[name]) / counts[name] for name, run in runs.items()} for _ in range(TURNS)]
    return {name: float(np.median([turn[name] for turn in turns])) for name in runs}


def torch_steps(model, path, trainer, feeds, loss, threads, lr, optimizer="adam"):
    """The same training in PyTorch: None without it."""
    if with_torch.python() is None:
        return None
    words = {"name": optimizer, "lr": lr, **({"momentum": 0.9} if optimizer == "sgd" else {})}
    form, output, target = loss.split(":")
    with_torch.write(model, path, list(trainer.weights), feeds, (form, output, target), optimizer=words,
                     threads=threads)
    return with_torch.Steps(path)


def speed(threads):
    tasks = {task: words[:4] for task, words in tests.TASKS.items()} | LARGER
    if with_torch.python() is None:
        print("no PyTorch here (Debian: python3-torch): compared with ONNX Runtime only")
    with tempfile.TemporaryDirectory() as folder:
        for task, (make, data, loss, keywords) in tasks.items():
            trainer = ane.Trainer(make(), loss, threads=threads, **keywords)
            feeds = next(tests.batches(data(), trainer.inputs[0].shape[0], 1))
            runs = {"engine": runner(trainer.step, feeds),
                    "ONNX Runtime": runner(tests.Fp32(make(), loss, threads=threads, **keywords).step, feeds)}
            other = torch_steps(make(), f"{folder}/spec", trainer, feeds, loss, threads, **keywords)
            if other:
                runs["PyTorch"] = other.run
            times = times_of(runs)
            ratios = ", ".join(f"{times[name] / times['engine']:.2f} of {name}'s speed"
                               for name in runs if name != "engine")
            print(f"{task}: {1 / times['engine']:.0f} steps a second, {ratios}", flush=True)
            if other:
                other.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--digits", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", choices=("digits", "speed"))
    words = parser.parse_args()
    parts = {"digits": lambda: digits(words.digits, words.steps), "speed": lambda: speed(words.threads)}
    for part in [words.only] if words.only else parts:
        parts[part]()


if __name__ == "__main__":
    main()
