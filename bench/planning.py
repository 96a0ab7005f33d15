#!/usr/bin/env python3
"""Measure how planning time grows with the number of nodes, and with that of targets.

    bench/planning.py [--all] [NODES...]
    bench/planning.py --targets [--json] [NAME...]

Runs `anemone check` on chains of Relu, Mul, Sigmoid and Add, and compares the time with that in
which ONNX Runtime creates a session of the same file. From 100,000 nodes on, ONNX Runtime is
measured only without its optimizations, which would take minutes; --all measures it with them too.
The time of `check` includes starting the process.

--targets takes the models of the manifest and the exported models (those whose name begins with a
NAME), and prints the processor time of `check --target all` relative to that of one target; with --json, that
of `check --json`.
"""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from models import manifest  # noqa: E402

manifest.use_own_python()

import numpy  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import TensorProto, helper, numpy_helper, save  # noqa: E402

ANEMONE = ROOT / "build" / "release" / "anemone"
OPERATORS = ("Relu", "Mul", "Sigmoid", "Add")
SLOW = 100_000


def chain(nodes, path):
    made, last = [], "x"
    for i in range(nodes):
        operator = OPERATORS[i % len(OPERATORS)]
        name = f"v{i}" if i + 1 < nodes else "y"
        constant = ["c"] if operator in ("Mul", "Add") else []
        made.append(helper.make_node(operator, [last, *constant], [name]))
        last = name
    value = numpy_helper.from_array(numpy.full((1, 8, 4, 4), 0.5, numpy.float32), "c")
    ports = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 8, 4, 4])] for name in "xy"]
    model = helper.make_model(helper.make_graph(made, "chain", *ports, [value]),
                              opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    save(model, str(path))


def check(path):
    """Seconds, and the peak memory in MiB of all child processes so far."""
    start = time.perf_counter()
    subprocess.run([str(ANEMONE), "check", str(path), "--quiet"], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def session(path, optimized):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    start = time.perf_counter()
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return time.perf_counter() - start


def processor_seconds(path, target, options):
    """The least of three. User and system time: each alone is only sampled at the timer's ticks."""
    command = [str(ANEMONE), "check", str(path), "--target", target, *options]
    taken = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


def compare_targets(names, form):
    entries = [e for e in manifest.entries()
               if not names or any(e["name"].startswith(name) for name in names)]
    manifest.fetch(entries)
    exported = [(path.stem, path, []) for path in sorted((ROOT / "models" / "exported").glob("*.onnx"))
                if not names or any(path.stem.startswith(name) for name in names)]
    ratios = []

    def sizes(options):  # the others are for runs
        pairs = zip(options[::2], options[1::2])
        return [word for pair in pairs if pair[0] in ("--dim", "--shape") for word in pair] + form

    print(f"{'time of check':40} {'h13':>8} {'all':>8} {'ratio':>6}")
    for name, path, options in [*manifest.runs(entries), *exported]:
        one = processor_seconds(path, "h13", sizes(options))
        every = processor_seconds(path, "all", sizes(options))
        ratios.append(every / one)
        print(f"{name:40} {one:6.3f} s {every:6.3f} s {ratios[-1]:6.2f}", flush=True)
    print(f"{len(ratios)} models; ratio: median {statistics.median(ratios):.2f}, "
          f"largest {max(ratios):.2f}; above 4: {sum(1 for ratio in ratios if ratio > 4)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--targets", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("what", nargs="*", metavar="NODES|NAME")
    arguments = parser.parse_args()
    if arguments.targets:
        compare_targets(arguments.what, ["--json"] if arguments.json else ["--quiet"])
        return
    print(f"{os.cpu_count()} cores; ratio: time of check / time to create a session")
    print(f"{'nodes':>8} {'check':>9} {'memory':>9} {'ratio':>7} {'ratio, optimizations off':>25}")
    with tempfile.TemporaryDirectory() as folder:
        for nodes in [int(n) for n in arguments.what] or [1_000, 10_000, 100_000]:
            path = pathlib.Path(folder) / f"{nodes}.onnx"
            chain(nodes, path)
            seconds, memory = check(path)
            plain = seconds / session(path, optimized=False)
            optimized = (f"{seconds / session(path, optimized=True):7.3f}"
                         if arguments.all or nodes < SLOW else f"{'-':>7}")
            print(f"{nodes:8} {seconds:7.2f} s {memory:5.0f} MiB {optimized} {plain:25.3f}",
                  flush=True)


if __name__ == "__main__":
    main()
