#!/usr/bin/env python3
"""Compare a change of the adapter with loading a model with merged weights.

    bench/adapters.py [--repeat N] [--rank R] [--threads N]

Of MiniLM (bench/make_models.py) with an adapter of this rank on each of its 36 products, by turns in one process:
"merged", a session of the model with merged weights is planned and compiled; "same", a run with the adapter of the
run before; "other", a run with another one; "none", a run of a session without adapters. The cost of a change is
"other" minus "same". Prints the least times and ratios. Build the target python_package first.
"""

import argparse
import json
import os
import pathlib
import struct
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

import onnxruntime_ep_ane as ane  # noqa: E402
from bench import make_models  # noqa: E402


def products_of(path):
    """{module: (k, n)} of the products with constant weights; their nodes' names are the modules."""
    graph = onnx.load(str(path)).graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return {node.name: shapes[node.input[1]] for node in graph.node
            if node.op_type == "MatMul" and node.input[1] in shapes}


def write_adapter(folder, modules, rank, seed):
    random = numpy.random.default_rng(seed)
    header, data = {}, b""
    for module, (k, n) in modules.items():
        for name, shape in (("lora_A", (rank, k)), ("lora_B", (n, rank))):
            array = (random.standard_normal(shape) / 32).astype(numpy.float32)
            header[f"{module}.{name}.weight"] = {"dtype": "F32", "shape": shape,
                                                 "data_offsets": [len(data), len(data) + array.nbytes]}
            data += array.tobytes()
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "adapter_config.json").write_text(json.dumps({"r": rank, "lora_alpha": rank}))
    return folder / "adapter_model.safetensors"


def milliseconds(work):
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    os.environ["ANEMONE_PROGRAM_CACHE"] = ""
    path = make_models.made("minilm_l6")[0]
    modules = products_of(path)
    with tempfile.TemporaryDirectory() as folder:
        files = {name: write_adapter(pathlib.Path(folder) / name, modules, arguments.rank, seed)
                 for seed, name in enumerate(("a", "b"))}
        session = ane.Session(path, threads=arguments.threads, adapters=files)
    plain = ane.Session(path, threads=arguments.threads)
    inputs = {port.name: numpy.ones([max(size, 1) for size in port.shape], port.dtype) for port in plain.inputs}
    times = {"merged": [], "same": [], "other": [], "none": []}
    for _ in range(arguments.repeat):
        # The weights do not matter for the time of a load.
        times["merged"].append(milliseconds(lambda: ane.Session(path, threads=arguments.threads)))
        session.run(inputs, adapter="a")
        times["same"].append(milliseconds(lambda: session.run(inputs, adapter="a")))
        times["other"].append(milliseconds(lambda: session.run(inputs, adapter="b")))
        plain.run(inputs)
        times["none"].append(milliseconds(lambda: plain.run(inputs)))
    least = {name: min(taken) for name, taken in times.items()}
    change = max(least["other"] - least["same"], 1e-3)
    print(f"{len(modules)} products, rank {arguments.rank}: " +
          ", ".join(f"{name} {took:.2f} ms" for name, took in least.items()))
    print(f"merged / change of the adapter: {least['merged'] / change:.0f} (change {change:.3f} ms, at least 0.001)")
    print(f"run with an adapter / run without: {least['same'] / least['none']:.2f}")


if __name__ == "__main__":
    main()
