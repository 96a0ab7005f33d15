#!/usr/bin/env python3
"""Compare a change of the adapter with loading a model with merged weights.

    bench/adapters.py [--repeat N] [--changes N] [--rank R] [--threads N] [--wall]

Of MiniLM (bench/make_models.py) with an adapter of this rank on each of its 36 products, in one process: "merged", a
session of the model with merged weights is planned and compiled (the least time of N); "change", how much longer a
run is after one with another adapter than after one with the same. A change is far below the noise of one run, so it
is the mean over N pairs of runs, without the tenth at either end, and two standard errors are added: the ratio that
is printed is a lower bound. "none" is a run of a session without adapters. CPU time, unless --wall. Build the target
python_package first.
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


def milliseconds(work, clock):
    start = clock()
    work()
    return (clock() - start) * 1e3


def change(session, inputs, pairs, clock):
    """The milliseconds that a change of the adapter takes, and the standard error."""
    differences = []
    for i in range(pairs):
        old, new = ("a", "b") if i % 2 == 0 else ("b", "a")
        session.run(inputs, adapter=old)
        same = milliseconds(lambda: session.run(inputs, adapter=old), clock)
        other = milliseconds(lambda: session.run(inputs, adapter=new), clock)
        differences.append(other - same)
    kept = numpy.sort(differences)[pairs // 10 : pairs - pairs // 10]
    return kept.mean(), kept.std() / len(kept) ** 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--changes", type=int, default=800)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--wall", action="store_true", help="measure wall time, which other programs disturb")
    arguments = parser.parse_args()
    os.environ["ANEMONE_PROGRAM_CACHE"] = ""
    clock = time.perf_counter if arguments.wall else time.process_time
    path = make_models.made("minilm_l6")[0]
    # Before another session has the packed weights: those of a merged model are new. Their values do not matter.
    merged = min(milliseconds(lambda: ane.Session(path, threads=arguments.threads), clock)
                 for _ in range(arguments.repeat))
    modules = products_of(path)
    with tempfile.TemporaryDirectory() as folder:
        files = {name: write_adapter(pathlib.Path(folder) / name, modules, arguments.rank, seed)
                 for seed, name in enumerate(("a", "b"))}
        session = ane.Session(path, threads=arguments.threads, adapters=files)
    plain = ane.Session(path, threads=arguments.threads)
    inputs = {port.name: numpy.ones([max(size, 1) for size in port.shape], port.dtype) for port in plain.inputs}
    none, same = (min(milliseconds(lambda: s.run(inputs, adapter=name), clock) for _ in range(arguments.repeat))
                  for s, name in ((plain, ""), (session, "a")))
    mean, error = change(session, inputs, arguments.changes, clock)
    most = max(mean, 0) + 2 * error
    print(f"{len(modules)} products, rank {arguments.rank}: merged {merged:.1f} ms, change {mean:.4f} ms, "
          f"standard error {error:.4f} ms ({arguments.changes} pairs), at most {most:.4f} ms")
    print(f"merged / change of the adapter: at least {merged / most:.0f}")
    print(f"run with an adapter / run without: {same / none:.2f}")


if __name__ == "__main__":
    main()
