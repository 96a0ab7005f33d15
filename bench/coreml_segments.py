#!/usr/bin/env python3
"""Compare the number of engine segments with that of ONNX Runtime's Core ML provider.

    coreml_segments.py [--target h13] [NAME...]

For each model of the manifest, Anemone's plan is compared with the prediction of ONNX Runtime's
checker for the Core ML provider (MLProgram), with the same shapes.

The checker looks only at operators, fixed shapes and rank, so it is an upper bound of what Core ML
accepts. If Anemone has more segments than Core ML, the rules that split the model are printed.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from models import manifest  # noqa: E402

manifest.use_own_python()

import numpy  # noqa: E402
import onnx  # noqa: E402
from onnxruntime.tools import onnx_model_utils  # noqa: E402
from onnxruntime.tools.mobile_helpers import usability_checker  # noqa: E402

ANEMONE = ROOT / "build" / "release" / "anemone"


def bound(entry, folder):
    """Path of the model with fixed dimensions and ONNX Runtime's basic optimizations applied."""
    model = onnx.load(str(manifest.path_of(entry)))
    for name, size in entry.get("dims", {}).items():
        onnx_model_utils.make_dim_param_fixed(model.graph, name, size)
    for value in model.graph.input:  # make_input_shape_fixed would take two `?` for one dimension
        for dim, size in zip(value.type.tensor_type.shape.dim,
                             entry.get("shapes", {}).get(value.name, [])):
            dim.dim_value = size
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    fixed, optimized = folder / "fixed.onnx", folder / "optimized.onnx"
    onnx.save(model, str(fixed))
    try:
        onnx_model_utils.optimize_model(fixed, optimized, use_external_initializers=True)
    except Exception:  # e.g. an If with a branch that needs another shape
        print(f"{entry['name']}: ONNX Runtime cannot load it with fixed shapes; "
              "Core ML is predicted without them")
        onnx_model_utils.optimize_model(manifest.path_of(entry), optimized,
                                        use_external_initializers=True)
    return optimized


def macs(node, shapes):
    """Multiply-adds of a node; 0 for operators that have few."""
    def size(name):
        return int(numpy.prod(shapes.get(name, [0])))

    if node.op_type in ("Conv", "FusedConv"):
        return size(node.output[0]) * int(numpy.prod(shapes.get(node.input[1], [0])[1:]))
    if node.op_type == "ConvTranspose":
        return size(node.input[0]) * int(numpy.prod(shapes.get(node.input[1], [0])[1:]))
    if node.op_type in ("MatMul", "Gemm"):
        transposed = any(a.name == "transA" and a.i for a in node.attribute)
        return size(node.output[0]) * (shapes.get(node.input[0]) or [0])[-2 if transposed else -1]
    return 0


def shapes_of(model):
    shapes = {i.name: list(i.dims) for i in model.graph.initializer}
    graph = model.graph
    for value in [*graph.value_info, *graph.input, *graph.output]:
        dims = value.type.tensor_type.shape.dim
        if all(d.HasField("dim_value") for d in dims):
            shapes[value.name] = [d.dim_value for d in dims]
    return shapes


def core_ml(entry):
    """Predicted number of segments, and the share of MACs in them."""
    with tempfile.TemporaryDirectory() as folder:
        path = bound(entry, pathlib.Path(folder))
        model = usability_checker.ModelProtoWithShapeInfo(path).model_with_shape_info
        info = usability_checker.check_coreml_partitions(
            model, require_fixed_input_sizes=True,
            config_filename="coreml_supported_mlprogram_ops.md")
    shapes = shapes_of(model)
    total = sum(macs(node, shapes) for node in model.graph.node)
    taken = sum(macs(node, shapes) for group in info.supported_groups for node in group)
    return info.num_partitions, taken / total if total else None


def anemone(entry, target):
    words = manifest.without_ranges(manifest.options(entry))
    done = subprocess.run([str(ANEMONE), "check", str(manifest.path_of(entry)), "--target", target,
                           "--json", *words], capture_output=True, text=True, check=True)
    plan = json.loads(done.stdout)["models"][0]["targets"][0]
    summary = plan["summary"]
    share = summary["engine_macs"] / summary["macs"] if summary["macs"] else None
    refused = collections.Counter(
        f"{node['op_type']}: {node['layer']}: {node['message']} ({node['rule']})"
        for node in plan["nodes"] if node["placement"] == "cpu")
    return summary["engine_segments"], share, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="h13")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    entries = [e for e in manifest.entries() if not arguments.names or e["name"] in arguments.names]
    manifest.fetch(entries)

    def percent(share):
        return "-" if share is None else f"{100 * share:.1f}"

    print(f"{'model':26} {'segments':>8} {'Core ML':>8}   {'MACs %':>6} {'Core ML':>8}")
    for entry in entries:
        ours, our_share, refused = anemone(entry, arguments.target)
        theirs, their_share = core_ml(entry)
        print(f"{entry['name']:26} {ours:8} {theirs:8}   {percent(our_share):>6} "
              f"{percent(their_share):>8}", flush=True)
        if ours > theirs:
            for reason, count in refused.most_common():
                print(f"    {count:3} x {reason}")


if __name__ == "__main__":
    main()
