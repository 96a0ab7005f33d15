#!/usr/bin/env python3
"""Compares where two builds place the nodes of models.

  bench/placements.py OLD NEW [--target h13,h16] [--route netplist] [MODEL...]

OLD and NEW are `anemone` binaries. Without models: all of models/exported. Prints each node that moved, with
the reason, and the sums per target.
"""

import argparse
import collections
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def plans(program, path, targets, route):
    """By target: (placement, operator, reason) of each node."""
    done = subprocess.run([program, "check", "--json", "--target", targets, "--route", route,
                           str(path)], capture_output=True,
                          text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{path.name}: {done.stderr.strip()}")
    return {plan["target"]: {origin: (node["placement"], node["op_type"], node["message"] or "")
                             for node in plan["nodes"] for origin in node["origin"]}
            for plan in json.loads(done.stdout)["models"][0]["targets"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--target", default="h13,h16")
    parser.add_argument("--route", default="netplist")
    given = parser.parse_args()
    models = given.models or sorted((ROOT / "models" / "exported").glob("*.onnx"))
    counts, moved = collections.Counter(), 0
    for path in models:
        try:
            old, new = (plans(program, path, given.target, given.route) for program in (given.old, given.new))
        except RuntimeError as error:
            print(error)
            continue
        for target, nodes in old.items():
            for origin, (before, operator, _) in nodes.items():
                after, _, reason = new[target].get(origin, ("gone", "", ""))
                counts[target, before, after] += 1
                if before != after:
                    moved += 1
                    print(f"{path.stem} {target} {origin} {operator}: {before} -> {after}: {reason}")
    for (target, before, after), count in sorted(counts.items()):
        print(f"{target}: {count} nodes {before} -> {after}")
    print(f"{len(models)} models, {moved} nodes moved")


if __name__ == "__main__":
    main()
