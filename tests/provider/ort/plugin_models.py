"""Runs the models of models/manifest.json in an unmodified ONNX Runtime with the plugin, and compares
with direct mode (`anemone check`):
  - with ONNX Runtime's optimizations off, the claimed segments are those of direct mode's plan, by
    origin. They are reported by ONNX Runtime (1.24 and newer) or by our report. (This does not hold for
    models with bodies: direct mode removes an If whose condition is a constant and plans all bodies at
    once, but ONNX Runtime passes each body separately.)
  - with default optimizations, the share of MACs on the engine is not smaller;
  - outputs agree with the CPU provider's.

    plugin_models.py PLUGIN ANEMONE small|all [--target h13]

Models that are not on this machine are skipped and listed. Prints a table.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "models")]

import manifest  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
import plugin  # noqa: E402

SMALL = ("light_squeezenet", "ppocr_cls", "silero_vad_16k_op15", "silero_vad_half", "magika")
MAX_REL = 0.05
COSINE = 0.99  # on random inputs, ppocr_det gives a mask of nearly equal values, with 0.9958
SHARE = 0.001  # the shares of MACs of two plans may differ by this
TYPES = {1: np.float32, 6: np.int32, 7: np.int64, 10: np.float16}


def file_of(entry):
    path = manifest.path_of(entry)
    copies = sorted(path.parent.glob(f"{path.stem}-random*.onnx"))
    return copies[-1] if copies else path


def bound(entry):
    """The model with its free dimensions bound, and with a name for each node of the main graph."""
    model = onnx.load(str(file_of(entry)))
    held = {i.name for i in model.graph.initializer}
    for value in model.graph.input:
        shape = value.type.tensor_type.shape
        if value.name in entry.get("shapes", {}):
            del shape.dim[:]
            for size in entry["shapes"][value.name]:
                shape.dim.add().dim_value = size
        for dim in shape.dim:
            if dim.dim_param in entry.get("dims", {}) and value.name not in held:
                dim.dim_value = entry["dims"][dim.dim_param]
    for index, node in enumerate(model.graph.node):
        node.name = f"#{index}"
    return model


def inputs_of(entry, session):
    made, random = {}, np.random.default_rng(1)
    for port in session.get_inputs():
        low, high = entry.get("ranges", {}).get(port.name, (0, 1))
        kind = {"tensor(float)": np.float32, "tensor(float16)": np.float16}.get(port.type)
        if kind is not None:
            made[port.name] = random.uniform(low, high, port.shape).astype(kind)
        else:
            kind = {"tensor(int32)": np.int32, "tensor(int64)": np.int64}[port.type]
            made[port.name] = np.asarray(random.integers(low, high + 1, port.shape), kind)
    return made


def cosine(ours, theirs):
    a, b = (np.asarray(x, np.float64).ravel() for x in (ours, theirs))
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    return 1.0 if norms == 0 else float(a @ b / norms)


def relative_error(ours, theirs):
    """The largest error over the range of `theirs`, or its magnitude if all its numbers are equal."""
    a, b = (np.asarray(x, np.float64).ravel() for x in (ours, theirs))
    if not b.size:
        return 0.0
    return float(np.abs(a - b).max() / (np.ptp(b) or np.abs(b).max() or 1))


def main_node(origin):
    """"#17" for "/#17" and "/#17/mask"; None for a node in a body."""
    return origin.split("/")[1] if origin.startswith("/#") else None


def direct_plan(program, path, target):
    done = subprocess.run([program, "check", str(path), "--target", target, "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["models"][0]["targets"][0]


def by_placement(plan):
    """The set of nodes of each engine segment, and the set of folded nodes."""
    segments, folded = {}, set()
    for entry in plan["nodes"]:
        names = {main_node(origin) for origin in entry["origin"]} - {None}
        if entry["placement"] == "engine":
            segments.setdefault(entry["segment"], set()).update(names)
        elif entry["placement"] == "folded":
            folded |= names
    return list(segments.values()), folded


def share(*plans):
    if any(plan["summary"]["macs"] is None for plan in plans):
        return 0.0  # a size is known only at run time
    macs = sum(plan["summary"]["macs"] for plan in plans)
    return sum(plan["summary"]["engine_macs"] for plan in plans) / macs if macs else 0.0


def differences(direct, claimed):
    """Differences between the segments of direct mode and the claims, as texts."""
    segments, folded = by_placement(direct)
    rest = [set(nodes) for nodes in claimed]
    for nodes in segments:
        match = [other for other in rest if nodes <= other and other - nodes <= folded]
        if not match:
            yield f"no claim is the segment of {sorted(nodes)[:6]} ({len(nodes)} nodes)"
        else:
            rest.remove(match[0])
    for nodes in rest:
        yield f"a claim of {sorted(nodes)[:6]} ({len(nodes)} nodes) is no segment"


def run(entry, devices, program, target):
    """One line of the table, and the problems."""
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        model = bound(entry)
        onnx.save(model, str(path))
        try:
            cpu = plugin.cpu_session(str(path))
        except Exception as error:
            return f"{entry['name']:26} left out, the CPU provider fails too: {error}"[:160], []
        has_bodies = any(a.HasField("g") for node in model.graph.node for a in node.attribute)
        direct = direct_plan(program, path, target)
        options = {"target": target}
        plain = plugin.Reported(str(path), devices, options, optimized=False)
        word = plugin.assigned(plain.session)
        # Bodies have separate plans.
        in_bodies = sum(plan["summary"]["engine_segments"] for plan in plain.plans
                        if plan is not plain.main_plan())
        claimed = [nodes for nodes in word if all(n.startswith("#") for n in nodes)] \
            if word is not None else None
        if has_bodies:
            pass
        elif claimed is not None:
            faults += differences(direct, claimed)
        elif plain.main_plan()["summary"]["engine_segments"] != direct["summary"]["engine_segments"]:
            faults.append("another number of segments than in direct mode")
        shipped = plugin.Reported(str(path), devices, options)
        fed = inputs_of(entry, cpu)
        wanted = cpu.run(None, fed)
        worst, error = 1.0, 0.0
        for made in (plain, shipped):
            for ours, theirs in zip(made.session.run(None, fed), wanted):
                worst = min(worst, cosine(ours, theirs))
                error = max(error, relative_error(ours, theirs))
        if worst < COSINE:
            faults.append(f"cosine {worst:.5f} to the CPU")
        if not error <= MAX_REL:
            faults.append(f"an error of {error:.3f} of an output's range, want at most {MAX_REL}")
        # In direct mode, one plan includes the bodies.
        if share(*(shipped.plans if has_bodies else [shipped.main_plan()])) < share(direct) - SHARE:
            faults.append("a smaller share of MACs than in direct mode")
        line = (f"{entry['name']:26} {direct['summary']['engine_segments']:6} "
                f"{plain.main_plan()['summary']['engine_segments']:6} {in_bodies:6} "
                f"{shipped.main_plan()['summary']['engine_segments']:6} {share(direct):8.4f} "
                f"{share(plain.main_plan()):8.4f} {share(shipped.main_plan()):8.4f} {worst:8.5f}"
                f"{'  has bodies' if has_bodies else ''}")
    return line, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plugin")
    parser.add_argument("program")
    parser.add_argument("sample", choices=["small", "all"])
    parser.add_argument("--target", default="h13")
    parser.add_argument("--only")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ort.set_default_logger_severity(4)
    devices = plugin.register(args.plugin)
    print(f"ONNX Runtime {ort.__version__}, {args.target}")
    print(f"{'':26} {'engine segments':>27} {'share of MACs':>26}")
    print(f"{'model':26} direct claims bodies  optim.   direct   claims   optim.   cosine")
    failed = there = 0
    for entry in manifest.entries():
        if args.only not in (None, entry["name"]):
            continue
        if args.sample == "small" and entry["name"] not in SMALL:
            continue
        if not manifest.path_of(entry).exists():
            print(f"{entry['name']:26} not on this machine (bench/manifest.py fetches it)")
            continue
        there += 1
        line, faults = run(entry, devices, args.program, args.target)
        failed += bool(faults)
        print("\n  ".join([line, *faults]), flush=True)
    return 1 if failed or there == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
