#!/usr/bin/env python3
"""Compare new weights for a session with loading the changed model.

    bench/new_weights.py [--repeat N] [--threads N] [--cpu] [NAME...]

Of each model, in one process and by turns: "cold", a session that imports, plans and compiles; "cached", one with
the plan from the cache; "package", one of a compiled model (`anemone compile`); "layer", Session.update_weights()
with the weight of the layer that has the median size; "all", with every weight that does not decide the plan. A
load leaves the packing of weights to the first run, so the first three have what a first run takes longer than later
ones; new weights are packed at once. Times are the least, ratios are those of "cold". "least" is the ratio of a copy of
all weights in memory: nothing that reads all new weights is faster. Models are those of bench/make_models.py and of the manifest, by the beginnings of their
names. Build the targets anemone and python_package first.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from models import manifest  # noqa: E402

manifest.use_own_python()
sys.path.insert(0, str(ROOT / "build" / "release" / "python"))

import numpy  # noqa: E402
import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402

import onnxruntime_ep_ane as ane  # noqa: E402
from bench import make_models  # noqa: E402

DEFAULT = (*make_models.MODELS, "light_resnet50-random")


def models(names):
    """(name, path) of the wanted models without free dimensions."""
    for name in make_models.MODELS:
        if any(name.startswith(n) for n in names):
            yield name, make_models.made(name)[0]
    entries = [e for e in manifest.entries() if any(f"{e['name']}-random".startswith(n) for n in names)]
    manifest.fetch(entries)
    for name, path, options in manifest.runs(entries):
        if not options and any(name.startswith(n) for n in names):
            yield name, path


def milliseconds(work, clock):
    start = clock()
    work()
    return (clock() - start) * 1e3


def weights_of(path):
    """The float initializers, by name, as arrays of their own."""
    model = onnx.load(str(path))
    return {tensor.name: numpy_helper.to_array(tensor) * numpy.float32(0.99)
            for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT}


def free_of(session, weights):
    """The weights that do not decide the plan."""
    free = {}
    for name, array in weights.items():
        try:
            session.update_weights({name: array})
            free[name] = array
        except RuntimeError:
            pass
    return free


def measure(path, folder, arguments):
    def load(cache, path=path):
        return ane.Session(path, cache=cache, threads=arguments.threads)

    package = folder / f"{path.stem}.ane"
    subprocess.run([ROOT / "build" / "release" / "anemone", "compile", path, "-o", package, "-q"], check=True,
                   stdout=subprocess.DEVNULL)

    load(True)  # fills the cache
    session = load(False)
    weights = free_of(session, weights_of(path))
    by_size = sorted((name for name in weights if weights[name].ndim > 1), key=lambda name: weights[name].size)
    layer = by_size[len(by_size) // 2]
    flat = numpy.concatenate([array.ravel() for array in weights.values()])
    inputs = {port.name: numpy.ones(port.shape, port.dtype) for port in session.inputs}

    loads = {"cold": lambda: load(False), "cached": lambda: load(True), "package": lambda: load(False, package)}
    contestants = {
        **{name: lambda work=work: work().run(inputs) for name, work in loads.items()},
        "run": lambda: session.run(inputs), "layer": lambda: session.update_weights({layer: weights[layer]}),
        "all": lambda: session.update_weights(weights), "least": flat.copy}
    times = {name: [] for name in contestants}
    clock = time.process_time if arguments.cpu else time.perf_counter
    for _ in range(arguments.repeat):
        for name, work in contestants.items():
            times[name].append(milliseconds(work, clock))
    least = {name: min(taken) for name, taken in times.items()}
    least |= {name: least[name] - least["run"] for name in loads}
    return least, weights[layer].size, flat.size


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu", action="store_true", help="measure CPU time, which other programs disturb less")
    parser.add_argument("names", nargs="*", default=DEFAULT)
    arguments = parser.parse_args()
    columns = ("cached", "package", "layer", "all", "least")
    print(f"{'model':26} {'cold ms':>8} " + " ".join(f"{'cold/' + name:>12}" for name in columns) +
          "   elements: layer, all")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ANEMONE_PROGRAM_CACHE"] = f"{folder}/programs"
        for name, path in models(arguments.names):
            times, layer, every = measure(path, pathlib.Path(folder), arguments)
            ratios = " ".join(f"{times['cold'] / times[column]:12.2f}" for column in columns)
            print(f"{name:26} {times['cold']:8.1f} {ratios}   {layer}, {every}", flush=True)


if __name__ == "__main__":
    main()
