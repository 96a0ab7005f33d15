#!/usr/bin/env python3
"""Compare the estimated times of plans: policies, and the partitions of ONNX Runtime's Core ML provider.

    bench/policies.py [--write docs/plans_by_cost.md] [NAME...]
    bench/policies.py --margin [NAME...]

For each model of the manifest and of models/exported, and each target: the plan of `max-engine` (the
greedy cover), of `latency`, of `cpu` (nothing on the engine), and the plan with only those nodes on the
engine that ONNX Runtime's checker for the Core ML provider (MLProgram) takes. All are priced by the same
model (docs/costs.md); a plan with fewer segments than the checker's partitions is charged for the
missing dispatches.

--margin: how many plans `latency` changes on the targets with CPU rates, and how many of these are slower
than `max-engine` if the CPU is slower than its rates.

Exit code 1 if `latency` is slower than one of the others anywhere, or moves a node on a target without
CPU rates.
"""

import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from models import manifest  # noqa: E402

manifest.use_own_python()

import onnx  # noqa: E402
from onnxruntime.tools import onnx_model_utils  # noqa: E402
from onnxruntime.tools.mobile_helpers import usability_checker  # noqa: E402

ANEMONE = ROOT / "build" / "release" / "anemone"
EXPORTED = ROOT / "models" / "exported"
TARGETS = ("h13", "h16", "h16g", "h17s")
SLACK = 1e-6
# The families of the page, by the start of a model's name; the rest are single operators and blocks.
FAMILIES = {
    "vision networks": ("light_", "nudenet", "yolo", "ppocr", "resnet", "mobilenet", "deit", "vit", "detr",
                        "clip_vision", "swin", "segformer", "unet"),
    "language models": ("bert", "bart", "gpt2_", "llama", "mistral", "distilbert", "clip_text", "t5", "qwen",
                        "phi", "gemma", "roberta", "opt", "electra", "albert", "whisper", "minilm", "gpt_neo"),
    "sound and bytes": ("silero", "magika", "wav2vec", "lstm", "gru", "rnn"),
}


def family(name):
    for title, starts in FAMILIES.items():
        if name.startswith(starts):
            return title
    return "single operators and blocks"


def models(names):
    """(name, path, options of check, dims, shapes)"""
    entries = [e for e in manifest.entries() if not names or e["name"] in names]
    manifest.fetch(entries)
    for entry in entries:
        # The originals of light_* make their weights by ConstantOfShape.
        path = manifest.randomize(entry) if "weights" in entry else manifest.path_of(entry)
        yield (entry["name"], path, manifest.without_ranges(manifest.options(entry)),
               entry.get("dims", {}), entry.get("shapes", {}))
    for entry in json.loads((EXPORTED / "manifest.json").read_text())["models"]:
        if not names or entry["name"] in names:
            yield entry["name"], EXPORTED / f"{entry['name']}.onnx", [], {}, {}


def check(path, words, policy):
    """The plans by target; None if the model is refused."""
    done = subprocess.run([str(ANEMONE), "check", str(path), "--json", "--target", ",".join(TARGETS),
                           "--policy", policy, *words], capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return {plan["target"]: plan for plan in json.loads(done.stdout)["models"][0]["targets"]}


def bound(path, dims, shapes):
    model = onnx.load(str(path))
    for name, size in dims.items():
        onnx_model_utils.make_dim_param_fixed(model.graph, name, size)
    for value in model.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, [])):
            dim.dim_value = size
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


def core_ml(path, dims, shapes):
    """The number of partitions, and the policy that refuses all nodes outside of them.

    The checker sees the model after ONNX Runtime's basic optimizations. A node that they removed counts as
    taken.
    """
    with tempfile.TemporaryDirectory() as folder:
        fixed, optimized = pathlib.Path(folder, "fixed.onnx"), pathlib.Path(folder, "optimized.onnx")
        model = bound(path, dims, shapes)
        onnx.save(model, str(fixed))
        onnx_model_utils.optimize_model(fixed, optimized, use_external_initializers=True)
        seen = usability_checker.ModelProtoWithShapeInfo(optimized).model_with_shape_info
        info = usability_checker.check_coreml_partitions(
            seen, require_fixed_input_sizes=True, config_filename="coreml_supported_mlprogram_ops.md")
    taken = {name for group in info.supported_groups for node in group for name in node.output}
    left = {name for node in seen.graph.node for name in node.output if name} - taken
    refused = [f"node:/#{i}" for i, node in enumerate(model.graph.node) if left.intersection(node.output)]
    return info.num_partitions, "refuse:" + ",".join(refused) if refused else ""


def placements(plan):
    return [(node["id"], node["placement"]) for node in plan["nodes"]]


class Row:
    """One model on one target. Times are None where the time of a CPU node is not known."""

    def __init__(self, name, target, plans, partitions):
        self.name, self.target = name, target
        self.us = {policy: plan["summary"]["estimate_us"] for policy, plan in plans.items()}
        self.segments = {policy: plan["summary"]["engine_segments"] for policy, plan in plans.items()}
        self.share = {policy: plan["summary"]["engine_macs_share"] for policy, plan in plans.items()}
        self.dispatch_us = DISPATCH[target]
        if "core-ml" in plans and self.us["core-ml"] is not None:
            self.us["core-ml"] += self.dispatch_us * max(0, partitions - self.segments["core-ml"])
        self.partitions = partitions
        self.moved = placements(plans["latency"]) != placements(plans["max-engine"])
        self.warned = any(w["rule"] == "no-cpu-rates" for w in plans["latency"]["warnings"])

    def best_other(self):
        others = [us for policy, us in self.us.items() if policy != "latency" and us is not None]
        return min(others) if others else None

    def is_worse(self):
        ours, other = self.us["latency"], self.best_other()
        return ours is not None and other is not None and ours > other * (1 + SLACK)


def rows_of(names):
    for name, path, words, dims, shapes in models(names):
        plans = {policy: check(path, words, policy) for policy in ("max-engine", "latency", "cpu")}
        if plans["max-engine"] is None:
            print(f"{name}: refused", file=sys.stderr)
            continue
        partitions = None
        try:
            found = core_ml(path, dims, shapes)
        except Exception as error:  # the checker gives up on some models
            print(f"{name}: no prediction for Core ML: {str(error).splitlines()[0][:100]}", file=sys.stderr)
            found = None
        if found:
            partitions, policy = found
            plans["core-ml"] = check(path, words, policy or "max-engine")
        for target in TARGETS:
            yield Row(name, target, {policy: by_target[target] for policy, by_target in plans.items()
                                     if by_target is not None}, partitions)


def times(plan):
    """The estimated time of the engine, and that of the CPU."""
    engine = sum(segment["cost"]["us"] for segment in plan["segments"] if segment["cost"])
    return engine, plan["summary"]["estimate_us"] - engine


def print_margin(names):
    plans, changed = 0, []
    for name, path, words, _, _ in models(names):
        by_policy = [check(path, words, policy) for policy in ("max-engine", "latency")]
        if None in by_policy:
            continue
        for target in by_policy[0]:
            greedy, latency = (by_target[target] for by_target in by_policy)
            if None in (greedy["summary"]["cpu_us"], greedy["summary"]["estimate_us"]):
                continue
            plans += 1
            if placements(greedy) != placements(latency):
                changed.append((times(greedy), times(latency), latency["summary"]["engine_nodes"]))
    print(f"{plans} plans with a known time; {len(changed)} are changed, "
          f"{sum(nodes == 0 for _, _, nodes in changed)} to the CPU alone")
    for factor in (1, 2, 4, 10):
        slower = sum(ours[0] + factor * ours[1] > (1 + SLACK) * (theirs[0] + factor * theirs[1])
                     for theirs, ours, _ in changed)
        print(f"if the CPU is {factor} times as slow as its rates: {slower} are slower than max-engine")


def dispatches():
    table = json.loads((ROOT / "engine" / "tables" / "costs.json").read_text())
    fits = {fit["target"]: fit["dispatch_us"] for fit in table["fits"] if "dispatch_us" in fit}
    of = {name: us for name, us in fits.items()}
    for fit, scaled in table["scaled"].items():
        of.update(dict.fromkeys(scaled, fits[fit]))
    for fit in table["fits"]:
        of.setdefault(fit["target"], fits[fit.get("scaled_from", fit["target"])])
    return {name.lower(): us for name, us in of.items()}


DISPATCH = dispatches()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", help="the page to write")
    parser.add_argument("--margin", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.margin:
        print_margin(arguments.names)
        return
    warnings.simplefilter("ignore")
    rows = []
    for row in rows_of(arguments.names):
        rows.append(row)
        print(f"{row.name:34} {row.target:5} "
              + " ".join(f"{p} {row.segments[p]} {'-' if row.us[p] is None else round(row.us[p], 1)};"
                         for p in row.us), flush=True)
    print(len(rows), "rows")
    worse = [row for row in rows if row.is_worse()]
    moved = [row for row in rows if row.warned and row.moved]
    for row in worse:
        print(f"latency is worse: {row.name} on {row.target}: {row.us}")
    for row in moved:
        print(f"latency moves a node without CPU rates: {row.name} on {row.target}")
    if arguments.write:
        pathlib.Path(arguments.write).write_text(page(rows), encoding="utf-8")
    sys.exit(1 if worse or moved else 0)


PAGE = """# Plans by cost, compared

Written by `bench/policies.py --write docs/plans_by_cost.md`; do not edit. {models} models of
`models/manifest.json` and `models/exported`, each planned with `max-engine` (the greedy cover, the
default), `latency`, `cpu` (nothing on the engine), and with only those nodes on the engine that ONNX
Runtime's checker for its Core ML provider takes. All are priced by the same estimate
([costs.md](costs.md)), with a dispatch for each of the checker's partitions. The checker looks at operators
and ranks only, so it is an upper bound of what Core ML takes.

`latency` is slower than one of the others for {worse} of {rows} plans, and moves {moved} nodes on targets
without CPU rates (`h13`, `h16`).

The models of `models/exported` are small (most language models have two layers), so that a dispatch is most
of their time on the engine, and a CPU with published rates gets them whole.

- segments: the sum over the models. MACs: the median share on the engine.
- The last columns are the median ratio of the times of `latency` and another plan, and the number of models
  for which both are known. On targets without CPU rates, the time of a plan with CPU nodes is not known.

| target | family | models | segments: max-engine | latency | Core ML | MACs: max-engine | latency | Core ML | time / max-engine | / cpu | / Core ML |
|---|---|---|---|---|---|---|---|---|---|---|---|
{table}

## Models that `latency` keeps on the engine

Of the targets with CPU rates; all other models are wholly on the CPU there. Times in us.

| model | target | segments: max-engine | latency | MACs: latency | max-engine | latency | cpu |
|---|---|---|---|---|---|---|---|
{kept}
"""


def median(values):
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def percent(share):
    return "-" if share is None else f"{100 * share:.0f} %"


def ratio(rows, policy):
    ratios = [row.us["latency"] / row.us[policy] for row in rows
              if row.us["latency"] and row.us.get(policy)]
    return f"{statistics.median(ratios):.2f} ({len(ratios)})" if ratios else "-"


def page(rows):
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row.target, family(row.name)].append(row)
    table = []
    for target in TARGETS:
        for title in (*FAMILIES, "single operators and blocks"):
            group = groups[target, title]
            if not group:
                continue
            segments = [sum(row.segments[policy] for row in group) for policy in ("max-engine", "latency")]
            partitions = sum(row.partitions or 0 for row in group)
            shares = [percent(median(row.share.get(policy) for row in group))
                      for policy in ("max-engine", "latency", "core-ml")]
            ratios = [ratio(group, policy) for policy in ("max-engine", "cpu", "core-ml")]
            table.append("| " + " | ".join([f"`{target}`", title, str(len(group)), *map(str, segments),
                                            str(partitions), *shares, *ratios]) + " |")
    kept = [f"| {row.name} | `{row.target}` | {row.segments['max-engine']} | {row.segments['latency']} | "
            f"{percent(row.share['latency'])} | {row.us['max-engine']:.0f} | {row.us['latency']:.0f} | "
            f"{row.us['cpu']:.0f} |" for row in rows
            if not row.warned and row.segments["latency"] and row.us["latency"] is not None]
    return PAGE.format(models=len({row.name for row in rows}), rows=len(rows),
                       worse=sum(row.is_worse() for row in rows),
                       moved=sum(row.warned and row.moved for row in rows),
                       table="\n".join(table), kept="\n".join(kept))


if __name__ == "__main__":
    main()
