#!/usr/bin/env python3
"""Print which classes of kernels take the time of a run, and how far each is from the roof.

    bench/roofline.py [--repeat N] [--threads N] [--write PAGE] [MODEL...]

MODEL is as for bench/peers.py; without any: the models of the manifest (light_* with random weights) and of
make_models.py. Every model counts the same: its shares add up to 1. The time between units is left out, because the
measurement takes a part of it. --write puts the table into the page's section "Classes of kernels".
docs/performance.md explains the roof.
"""

import argparse
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from models import manifest  # noqa: E402

manifest.use_own_python()

from bench import pages, peers  # noqa: E402

# The class of a kind of units, as `peers_bench --profile` names it: the first whose pattern is at its beginning.
CLASSES = (
    ("convolutions, depthwise and grouped", r"(Conv|Deconv) .*(depthwise|grouped)"),
    ("convolutions 3x3", r"Conv 3x3$"),
    ("convolutions 1x1", r"Conv 1x1$"),
    ("other convolutions", r"Conv|Deconv"),
    ("matrix products", r"MatrixMultiplication|Linear"),
    ("attention", r"SDPA"),
    ("recurrences", r"Recurrence"),
    ("element by element", r"ElementWise|Neuron|GOC|DynamicGOC|ScaledElementWise|Quant|DeQuant|Broadcast"),
    ("normalizations and reductions", r".*Normalization|Softmax|Reduction|.*ArgMinMax|Pooling|TopK|Sort"),
    ("resizing and sampling", r"Resample|Resize|CropResize|AffineTransform"),
    ("moves", r"Transpose|Concat|Reshape|InputView|Gather|Padding|PixelShuffle|Tile|Flatten|Unflatten|DynamicSlice"),
    ("conversions at ports", r"crossing"),
    ("ONNX Runtime", r"segment"),
)
OTHERS = "others"


def class_of(kind):
    return next((name for name, pattern in CLASSES if re.match(pattern, kind)), OTHERS)


def models(names):
    """(name, path, options)."""
    if names:
        return peers.models(names)
    return [run for run in peers.every_model() if not run[0].startswith("light_") or run[0].endswith("-random")]


def shares(profile):
    """By class: its share of the time of all units, and the share that the roof allows (None: it has no roof)."""
    whole = sum(kind["seconds"] for kind in profile["kinds"])
    sums = collections.defaultdict(lambda: [0.0, 0.0, 0.0])
    for kind in profile["kinds"]:
        row = sums[class_of(kind["kind"])]
        row[0] += kind["seconds"] / whole
        if kind["least_time"] > 0:
            row[1] += kind["seconds"] / whole
            row[2] += kind["least_time"] / whole
    return sums


def summary(profiles):
    """(class, mean share, largest share, its model, part of the roof), the largest share of the time first."""
    by_class = collections.defaultdict(list)
    for name, profile in profiles:
        for kind, (share, with_roof, least) in shares(profile).items():
            by_class[kind].append((share, name, with_roof, least))
    rows = []
    for kind, found in by_class.items():
        most, model = max((share, name) for share, name, _, _ in found)
        with_roof = sum(row[2] for row in found)
        roof = sum(row[3] for row in found) / with_roof if with_roof > 0 else None
        rows.append((kind, sum(row[0] for row in found) / len(profiles), most, model, roof))
    return sorted(rows, key=lambda row: -row[1])


def table(rows):
    lines = ["| class | share of the time | most, in | of roof |", "|---|---|---|---|"]
    return lines + [f"| {kind} | {100 * mean:.0f} % | {100 * most:.0f} %, `{model}` | "
                    + ("" if roof is None else f"{100 * roof:.0f} %") + " |"
                    for kind, mean, most, model, roof in rows if mean >= 0.005]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", metavar="PAGE")
    parser.add_argument("names", nargs="*", metavar="MODEL")
    arguments = parser.parse_args()
    profiles = []
    for name, path, options in models(arguments.names):
        print(f"bench: {name}", file=sys.stderr)
        try:
            profiles.append((name, peers.peers_bench(path, "--profile", "--threads", str(arguments.threads),
                                                     "--repeat", str(arguments.repeat), *options)))
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
    lines = table(summary(profiles))
    print("\n".join(lines))
    if arguments.write:
        pages.replace_table(arguments.write, "Classes of kernels", lines)


if __name__ == "__main__":
    main()
