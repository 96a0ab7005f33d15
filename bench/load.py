#!/usr/bin/env python3
"""Compare the time to load a model with ONNX Runtime's.

    bench/load.py [--repeat N] [--threads N] [--policy POLICY] [--run] [--cpu] [--quantized] [--manifest]
                  [--write PAGE] [NAME...]

Loads each model of the manifest, each exported model and some recurrent models (with --manifest only the first)
as a session of Anemone's Python package and as one of ONNX Runtime, by turns in one process, and prints the least
processor times, which other programs disturb little, as ratios to ONNX Runtime's. "cold": planned and compiled without
the cache; "warm": with the plan from the cache; "+ run": with the first run, to which both leave work. "run" (with
--run): a later run of the warm session. "cpu" (with --cpu): a later run with --policy cpu. The slowest come first.
--quantized takes the exported models as ONNX Runtime's quantizer writes them, static and dynamic. --write puts the
ratios into the table of the page's section "Loading". Build the target python_package first.
"""

import argparse
import collections
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
    """(name, path, keywords of Session, ranges of inputs) of all models, or of those whose name begins with one of
    `names`."""
    entries = manifest.entries()
    wanted = [e for e in entries if not names or any(e["name"].startswith(n) for n in names)]
    manifest.fetch(wanted)
    for name, path, options in manifest.runs(wanted):
        yield name, path, manifest.keywords(options), manifest.ranges_of(options)
    if only_manifest:
        return
    others = [(path.stem, path, {}) for path in sorted((ROOT / "models" / "exported").glob("*.onnx"))]
    for name, path, keywords in [*others, *recurrent(folder)]:
        if not names or any(name.startswith(n) for n in names):
            yield name, path, keywords, {}


def quantized(folder, names):
    """The same of the exported models of these names, in two forms each."""
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
            yield name, made, {}, {}


def inputs_of(session, shapes=None, ranges=None):
    """Random floats and small integers for ONNX Runtime's session; `shapes` has those of free dimensions, `ranges`
    the least integer of some inputs."""
    random = numpy.random.default_rng(0)
    types = {"float": numpy.float32, "float16": numpy.float16, "double": numpy.float64}
    inputs = {}
    for port in session.get_inputs():
        dims = (shapes or {}).get(port.name) or [d if isinstance(d, int) else 1 for d in port.shape]
        kind = port.type.removeprefix("tensor(").removesuffix(")")
        inputs[port.name] = (random.random(dims).astype(types[kind]) if kind in types
                             else numpy.full(dims, (ranges or {}).get(port.name, (1, 1))[0], numpy.dtype(kind)))
    return inputs


def milliseconds(call):
    """(result, processor time)."""
    start = time.process_time()
    result = call()
    return result, (time.process_time() - start) * 1e3


def measure(path, keywords, ranges, arguments):
    """Least processor times: of a load as NAME, of a load and the first run as NAME_first; with --run and --cpu of a run."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = arguments.threads

    def ours(**more):
        return ane.Session(path, threads=arguments.threads, **{"policy": arguments.policy, **more}, **keywords)

    def ort():
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    loads = {"cold": lambda: ours(cache=False), "warm": lambda: ours(cache=True), "ort": ort}
    ports = ours(cache=True).inputs  # fills the cache, and finds files on the disk
    inputs = inputs_of(ort(), {port.name: [max(1, size) for size in port.shape] for port in ports}, ranges)

    def run(name, session):
        return session.run(None, inputs) if name == "ort" else session.run(inputs)

    times = collections.defaultdict(list)
    for _ in range(arguments.repeat):
        for name, load in loads.items():  # one session at a time: two would share the pages of the file
            session, loaded = milliseconds(load)
            _, ran = milliseconds(lambda: run(name, session))
            times[name].append(loaded)
            times[f"{name}_first"].append(loaded + ran)
            del session
    asked = {"run": arguments.run, "cpu": arguments.cpu, "ort": arguments.run or arguments.cpu}
    sessions = {"run": lambda: ours(cache=True), "cpu": lambda: ours(cache=False, policy="cpu"), "ort": ort}
    made = {name: sessions[name]() for name, is_asked in asked.items() if is_asked}
    for _ in range(10 * arguments.repeat):
        for name, session in made.items():
            times[f"{name}_run"].append(milliseconds(lambda: run(name, session))[1])
    return {name: min(taken) for name, taken in times.items()}  # the least disturbed


def write_table(page, rows, columns):
    table = ["| model | " + " | ".join(columns) + " |", "|---" * (1 + len(columns)) + "|"]
    table += [f"| `{name}` | " + " | ".join(f"{ratio:.2f}" for ratio in ratios) + " |" for name, _, ratios in rows]
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
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ANEMONE_PROGRAM_CACHE"] = f"{folder}/programs"
        logging.disable(logging.WARNING)  # hides the quantizer's advice
        taken = models(arguments.names, folder, arguments.manifest)
        if arguments.quantized:
            taken = quantized(folder, arguments.names)
        for name, path, keywords, ranges in taken:
            try:
                times = measure(path, keywords, ranges, arguments)
            except Exception as error:  # noqa: BLE001: one model must not end the table
                print(f"{name}: {str(error).splitlines()[0][:150]}", file=sys.stderr)
                continue
            rows.append((name, times))
    columns = {"cold": ("cold", "ort"), "warm": ("warm", "ort"), "cold + run": ("cold_first", "ort_first"),
               "warm + run": ("warm_first", "ort_first")}
    if arguments.run:
        columns["run"] = ("run_run", "ort_run")
    if arguments.cpu:
        columns["cpu"] = ("cpu_run", "ort_run")
    rows = [(name, times, [times[ours] / times[ort] for ours, ort in columns.values()]) for name, times in rows]
    rows.sort(key=lambda row: max(row[2][:4]), reverse=True)
    print(f"{'model':38} {'ORT ms':>8} " + " ".join(f"{column:>10}" for column in columns))
    for name, times, ratios in rows:
        print(f"{name:38} {times['ort']:8.1f} " + " ".join(f"{ratio:10.2f}" for ratio in ratios))
    if arguments.write:
        write_table(arguments.write, rows, columns)
    above = {column: sum(row[2][at] > 1 for row in rows) for at, column in enumerate(columns)}
    print(f"{len(rows)} models; above 1: " + ", ".join(f"{column} {count}" for column, count in above.items()))


if __name__ == "__main__":
    main()
