#!/usr/bin/env python3
"""Counts the linear layers that become 1x1 convolutions, and what that costs in transposes and units.

  bench/layouts.py [--target h13] [--all] [MODEL...]

Without models: all of models/exported and models/manifest.json that have a linear layer on the engine. Each
model is converted on both routes, with `--linear-layers products` and `convolutions`. Columns, for the first
and the second: linear layers that are convolutions, of all linear layers; transposes; units (MIL: operations) without views and
without the addition that is the bias of a convolution. A linear layer is a matrix product with a
constant, or a 1x1 convolution that replaces one.
"""

import argparse
import collections
import pathlib
import plistlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from models import manifest  # noqa: E402

manifest.use_own_python()

ANEMONE = ROOT / "build" / "release" / "anemone"
VIEWS = {"Reshape", "Flatten", "Unflatten", "reshape", "const"}


def netplist_units(folder):
    """(type, whether an operand is a constant) of each unit. The bias of a convolution is left out."""
    for path in sorted(folder.glob("segment-*/net.plist")):
        document = plistlib.loads(path.read_bytes())
        for name in document["Networks"]:
            kinds = {}
            for unit in document[name].values():
                if isinstance(unit, dict) and "Type" in unit and "Bottom" in unit:
                    kinds[unit["Name"]] = unit["Type"]
                    bottoms = unit["Bottom"]
                    bottoms = [bottoms] if isinstance(bottoms, str) else bottoms
                    has_constant = any(b.startswith("constant_") for b in bottoms)
                    is_bias = has_constant and unit.get("Params", {}).get("Type") == "Add" and \
                        any(kinds.get(b) == "Conv" for b in bottoms)
                    if not is_bias:
                        yield unit["Type"], has_constant


def mil_units(folder):
    for path in sorted(folder.glob("segment-*/model.mil")):
        kinds = {}
        for line in path.read_text().splitlines():
            found = re.match(r" +\S+<.*?> (\S+) = (\w+)\((.*)", line)
            if not found:
                continue
            kinds[found[1]] = found[2]
            operands = re.findall(r"[(, ][xy] = (\w+)", "(" + found[3])
            of = [kinds.get(operand) for operand in operands]
            if found[2] != "add" or "conv" not in of or "const" not in of:
                yield found[2], found[2] == "linear" or of[1:] == ["const"]


def counted(layers, path, options, target, to):
    """Counter of types; a product with a constant counts as "layer" too. None: not written."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([str(ANEMONE), "convert", "-q", "--to", to, "--target", target,
                               "--linear-layers", layers, *options, "-o", folder, str(path)],
                              capture_output=True, text=True, timeout=600)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{path.name}: {done.stderr.strip()}")
        counts = collections.Counter()
        for kind, has_constant in (netplist_units if to == "netplist" else mil_units)(pathlib.Path(folder)):
            if kind in VIEWS:
                continue
            counts["units"] += 1
            counts[kind.lower()] += 1
            if kind in ("MatrixMultiplication", "matmul", "linear") and has_constant:
                counts["product"] += 1
        return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--target", default="h13")
    parser.add_argument("--all", action="store_true", help="also models in which nothing changed")
    given = parser.parse_args()
    models = [(path, []) for path in given.models]
    if not models:
        models = [(path, []) for path in sorted((ROOT / "models" / "exported").glob("*.onnx"))]
        models += [(path, options) for _, path, options in
                   manifest.runs(manifest.entries()) if path.exists() and "--range" not in options]
    print(f"{'model':44} {'route':8} {'layers as convolutions':>24} {'transposes':>14} {'units':>14}")
    sums = collections.Counter()
    for path, options in models:
        for route in ("netplist", "mil"):
            try:
                old, new = (counted(layers, path, options, given.target, route)
                            for layers in ("products", "convolutions"))
            except RuntimeError as error:
                print(error)
                continue
            # A layer that is a convolution in both builds is not told from other convolutions.
            layers = old["product"]
            became = layers - new["product"]
            if new["units"] > old["units"]:
                print(f"{path.stem}: more units")
            if layers == 0 and old == new:
                continue
            sums[route, "models"] += 1
            for key, value in (("layers", layers), ("became", became), ("before", old["transpose"]),
                               ("after", new["transpose"]), ("old", old["units"]), ("new", new["units"])):
                sums[route, key] += value
            if old != new or given.all:
                print(f"{path.stem:44} {route:8} {'0 -> ' + str(became) + ' of ' + str(layers):>24} "
                      f"{str(old['transpose']) + ' -> ' + str(new['transpose']):>14} "
                      f"{str(old['units']) + ' -> ' + str(new['units']):>14}")
    for route in ("netplist", "mil"):
        s = {key: sums[route, key] for key in ("models", "layers", "became", "before", "after", "old", "new")}
        print(f"{route}: {s['models']} models with linear layers as products; of {s['layers']} such layers "
              f"{s['became']} became convolutions; {s['before']} -> {s['after']} transposes, "
              f"{s['old']} -> {s['new']} units")


if __name__ == "__main__":
    main()
