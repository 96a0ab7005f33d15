#!/usr/bin/env python3
"""Compare `anemone patch` with `anemone compile` of the changed model.

    bench/patch.py [--repeat N] [--anemone FILE]

MobileNetV3 (bench/make_models.py) with a BatchNormalization behind each convolution, which the importer folds into
the convolution's weights. "compile" is the command for the whole model; "held" patches the weight of the classifier,
which the program holds as it is in the file; "derived" patches the scale of one normalization, from which the weight
and the bias of a convolution follow. The least CPU time of a process, N times by turns. Build the target anemone
first.
"""

import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from models import manifest  # noqa: E402

manifest.use_own_python()

import numpy  # noqa: E402
import onnx  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

from bench import make_models  # noqa: E402


def normalized(path):
    """The model with a normalization behind each convolution, and the arrays of the two patches."""
    model = onnx.load(str(path))
    graph, random = model.graph, numpy.random.default_rng(1)
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    scales, nodes = [], []
    for node in graph.node:
        nodes.append(node)
        if node.op_type != "Conv":
            continue
        y, channels = node.output[0], shapes[node.input[1]][0]
        node.output[0] = f"{y}/conv"
        names = [f"{y}/{part}" for part in ("scale", "shift", "mean", "variance")]
        for name in names:
            array = random.uniform(0.9, 1.1, channels).astype(numpy.float32)
            graph.initializer.append(numpy_helper.from_array(array, name))
        nodes.append(helper.make_node("BatchNormalization", [node.output[0], *names], [y]))
        scales.append((names[0], channels))
    del graph.node[:]
    graph.node.extend(nodes)
    held = [node.input[1] for node in nodes if node.op_type == "Gemm"][-1]
    scale, channels = scales[len(scales) // 2]
    return model, {"held": {held: random.standard_normal(shapes[held]).astype(numpy.float32) / 64},
                   "derived": {scale: random.uniform(0.9, 1.1, channels).astype(numpy.float32)}}


def milliseconds(command):
    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = spent()
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "ANEMONE_PROGRAM_CACHE": ""})
    return (spent() - before) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--anemone", type=pathlib.Path, default=ROOT / "build" / "release" / "anemone")
    arguments = parser.parse_args()
    times = {"compile": [], "held": [], "derived": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model, patches = normalized(make_models.made("mobilenet_v3_large")[0])
        onnx.save(model, str(folder / "net.onnx"))
        for kind, arrays in patches.items():
            numpy.savez(folder / f"{kind}.npz", **arrays)
        compiled, made = folder / "compiled", folder / "made"
        compile_it = [arguments.anemone, "compile", folder / "net.onnx", "-q", "-o"]
        milliseconds([*compile_it, compiled])
        for _ in range(arguments.repeat):
            for kind, taken in times.items():
                patch = [arguments.anemone, "patch", compiled, "--weights", folder / f"{kind}.npz", "-q", "-o", made]
                taken.append(milliseconds([*compile_it, made] if kind == "compile" else patch))
                shutil.rmtree(made)
    least = {kind: min(taken) for kind, taken in times.items()}
    print(", ".join(f"{kind} {took:.0f} ms" for kind, took in least.items()) +
          "; compile / patch: " + ", ".join(f"{kind} {least['compile'] / least[kind]:.2f}" for kind in patches))


if __name__ == "__main__":
    main()
