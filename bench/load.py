#!/usr/bin/env python3
"""Compare the time to load a model with ONNX Runtime's.

    bench/load.py [--repeat N] [--threads N] [--policy POLICY] [--run] [--cpu] [--quantized] [--manifest]
                  [--limit RATIO] [--write PAGE] [NAME...]

Loads each model of the manifest, each exported model and some recurrent models (with --manifest only the first)
as a session of Anemone's Python package and as one of ONNX Runtime, by turns in one process, and prints the least
processor times, which other programs disturb little, and their ratio. "cold": planned and compiled without the
cache; "warm": with the plan from the cache. "run" (with --run): a run of the warm session. "cpu" (with --cpu): a run
with --policy cpu. The slowest come first. --quantized takes the exported models as ONNX Runtime's quantizer writes
them, static and dynamic. With --limit, the exit code is 1 if a cold ratio is above it. --write puts the ratios into
the table of the page's section "Loading". Build the target python_package first.
"""

import argparse
import logging
import os
import pathlib
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
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import onnxruntime_ep_ane as ane  # noqa: E402

from bench.pages import replace_table  # noqa: E402


def recurrent(folder):
    """Layers that become a unit for each step: (name, path, {})."""
    for operator, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for steps, hidden in ((16, 64), (64, 128), (32, 256)):
            random = numpy.random.default_rng(0)
            shapes = {"w": (1, gates * hidden, hidden), "r": (1, gates * hidden, hidden)}
            weights = [numpy_helper.from_array((random.standard_normal(shape) / 16).astype(numpy.float32), name)
                       for name, shape in shapes.items()]
            node = helper.make_node(operator, ["x", "w", "r"], ["y", "h"], hidden_size=hidden)
            graph = helper.make_graph(
                [node], "recurrent",
                [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, 1, hidden])],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, [steps, 1, 1, hidden])], weights)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
            path = pathlib.Path(folder) / f"{operator.lower()}_{steps}x{hidden}.onnx"
            onnx.save(model, str(path))
            yield path.stem, path, {}


def models(names, folder, only_manifest):
    """(name, path, keywords of Session) of all models, or of those whose name begins with one of `names`."""
    entries = manifest.entries()
    wanted = [e for e in entries if not names or any(e["name"].startswith(n) for n in names)]
    manifest.fetch(wanted)
    for name, path, options in manifest.runs(wanted):
        yield name, path, manifest.keywords(options)
    if only_manifest:
        return
    others = [(path.stem, path, {}) for path in sorted((ROOT / "models" / "exported").glob("*.onnx"))]
    for name, path, keywords in [*others, *recurrent(folder)]:
        if not names or any(name.startswith(n) for n in names):
            yield name, path, keywords


def quantized(folder, names):
    """The exported models of these names, in two forms each: (name, path, {})."""
    from onnxruntime import quantization

    class Samples(quantization.CalibrationDataReader):
        def __init__(self, path):
            self.left = [inputs_of(onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]))]

        def get_next(self):
            return self.left.pop() if self.left else None

    for path in sorted((ROOT / "models" / "exported").glob("*.onnx")):
        for form in ("static", "dynamic"):
            name = f"{path.stem}-{form}"
            if names and not any(name.startswith(n) for n in names):
                continue
            made = pathlib.Path(folder) / f"{name}.onnx"
            try:
                if form == "static":
                    quantization.quantize_static(path, made, Samples(path), reduce_range=True)
                else:
                    quantization.quantize_dynamic(path, made, reduce_range=True)
            except Exception as error:  # noqa: BLE001: the quantizer does not take every model
                print(f"{name}: {str(error).splitlines()[0][:150]}", file=sys.stderr)
                continue
            yield name, made, {}


def inputs_of(session, shapes=None):
    """Random floats and small integers for ONNX Runtime's session; `shapes` has those of free dimensions."""
    random = numpy.random.default_rng(0)
    types = {"float": numpy.float32, "float16": numpy.float16, "double": numpy.float64}
    inputs = {}
    for port in session.get_inputs():
        dims = (shapes or {}).get(port.name) or [d if isinstance(d, int) else 1 for d in port.shape]
        kind = port.type.removeprefix("tensor(").removesuffix(")")
        inputs[port.name] = (random.random(dims).astype(types[kind]) if kind in types
                             else numpy.ones(dims, numpy.dtype(kind)))
    return inputs


def milliseconds(load):
    start = time.process_time()
    load()
    return (time.process_time() - start) * 1e3


def measure(path, keywords, arguments):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = arguments.threads

    def ours(cache):
        return lambda: ane.Session(path, cache=cache, threads=arguments.threads, policy=arguments.policy, **keywords)

    contestants = {
        "cold": ours(False), "warm": ours(True),
        "ort": lambda: onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])}
    # The first finds files on the disk, and fills the cache.
    sessions = {name: load() for name, load in contestants.items()}
    if arguments.run or arguments.cpu:
        shapes = {port.name: [max(1, size) for size in port.shape] for port in sessions["warm"].inputs}
        inputs = inputs_of(sessions["ort"], shapes)
        if arguments.run:
            contestants["run"] = lambda: sessions["warm"].run(inputs)
        if arguments.cpu:
            on_cpu = ane.Session(path, cache=False, threads=arguments.threads, policy="cpu", **keywords)
            contestants["cpu_run"] = lambda: on_cpu.run(inputs)
        contestants["ort_run"] = lambda: sessions["ort"].run(None, inputs)
    else:
        sessions.clear()
    times = {name: [] for name in contestants}
    for _ in range(arguments.repeat):
        for name, load in contestants.items():
            # A run after a load finds its data outside of the caches.
            times[name].append(min(milliseconds(load) for _ in range(10 if "run" in name else 1)))
    return {name: min(taken) for name, taken in times.items()}  # the least disturbed


def write_table(page, rows, columns):
    table = ["| model | " + " | ".join(columns) + " |", "|---" * (1 + len(columns)) + "|"]
    table += ["| `" + row[2] + "` | " + " | ".join(f"{ratio(row[3]):.2f}" for ratio in columns.values()) + " |"
              for row in rows]
    replace_table(page, "Loading", table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--policy", default="maximal")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--manifest", action="store_true")
    parser.add_argument("--write")
    parser.add_argument("--quantized", action="store_true")
    parser.add_argument("--limit", type=float)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ANEMONE_PROGRAM_CACHE"] = f"{folder}/programs"
        logging.disable(logging.WARNING)  # hides the quantizer's advice
        taken = models(arguments.names, folder, arguments.manifest)
        if arguments.quantized:
            taken = quantized(folder, arguments.names)
        for name, path, keywords in taken:
            try:
                times = measure(path, keywords, arguments)
            except Exception as error:  # noqa: BLE001: one model must not end the table
                print(f"{name}: {str(error).splitlines()[0][:150]}", file=sys.stderr)
                continue
            rows.append((times["cold"] / times["ort"], times["warm"] / times["ort"], name, times))
    columns = {"cold/ORT": lambda t: t["cold"] / t["ort"], "warm/ORT": lambda t: t["warm"] / t["ort"]}
    if arguments.run:
        columns["run/ORT"] = lambda t: t["run"] / t["ort_run"]
    if arguments.cpu:
        columns["cpu/ORT"] = lambda t: t["cpu_run"] / t["ort_run"]
    print(f"{'model':38} {'ORT ms':>8} {'cold ms':>8} {'warm ms':>8} " + " ".join(f"{c:>8}" for c in columns))
    rows.sort(reverse=True)
    for _, _, name, times in rows:
        print(f"{name:38} {times['ort']:8.1f} {times['cold']:8.1f} {times['warm']:8.1f} "
              + " ".join(f"{ratio(times):8.2f}" for ratio in columns.values()))
    if arguments.write:
        write_table(arguments.write, rows, columns)
    over = sum(1 for row in rows if row[0] > 1.1)
    print(f"{len(rows)} models; cold above 1.1: {over}; warm above 1.1: {sum(1 for row in rows if row[1] > 1.1)}")
    return 1 if arguments.limit and any(row[0] > arguments.limit for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
