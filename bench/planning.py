#!/usr/bin/env python3
"""Measure how planning time grows with the number of nodes.

    bench/planning.py [--all] [NODES...]

Runs `anemone check` on chains of Relu, Mul, Sigmoid and Add, and compares the time with that in
which ONNX Runtime creates a session of the same file. From 100,000 nodes on, ONNX Runtime is
measured only without its optimizations, which would take minutes; --all measures it with them too.
The time of `check` includes starting the process.
"""

import argparse
import os
import pathlib
import resource
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("nodes", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores; ratio: time of check / time to create a session")
    print(f"{'nodes':>8} {'check':>9} {'memory':>9} {'ratio':>7} {'ratio, optimizations off':>25}")
    with tempfile.TemporaryDirectory() as folder:
        for nodes in arguments.nodes:
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
