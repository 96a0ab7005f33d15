"""Models written by exporters (models/exported): attentions must become SDPA units, and so on.

    exported_test.py ANEMONE SOURCE_FOLDER [NAME...]

Each model is planned for each target, in one segment. The manifest bounds the numbers of units. The
model is run for the first target and compared with ONNX Runtime. Prints a table.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx

ANEMONE = pathlib.Path(sys.argv[1])
FOLDER = pathlib.Path(sys.argv[2]) / "models" / "exported"
TARGETS = ("h13", "h16")
COSINE = 0.9999
MAX_REL = 0.05
TYPES = {onnx.TensorProto.FLOAT: numpy.float32, onnx.TensorProto.INT64: numpy.int64,
         onnx.TensorProto.BOOL: numpy.bool_}

# Token numbers and integer masks are not engine formats, so the nodes that read them are on the CPU.
OF_INTEGERS = {"Cast", "Gather", "GatherND", "ReduceSum"}

HEADS = ("model", "attentions", "SDPA", "on engine", "segments", "cosine")


def run(*words):
    done = subprocess.run([str(ANEMONE), *map(str, words)], capture_output=True, text=True,
                          timeout=300)
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def filled(about, value, random):
    """An array for one input of the model, from its entry in the manifest."""
    tensor = value.type.tensor_type
    shape = [d.dim_value for d in tensor.shape.dim]
    kind = TYPES[tensor.elem_type]
    if "below" in about:
        return random.integers(0, about["below"], shape).astype(kind)
    if "bits" in about:
        numbers = numpy.array([float(n) for n in about["of"]])[[int(b) for b in about["bits"]]]
        return numpy.resize(numbers, shape).astype(kind)
    return random.standard_normal(shape).astype(kind)


def inputs(entry, path, folder):
    """Writes the model's inputs to files in `folder`, and returns the options of `anemone run`."""
    random = numpy.random.default_rng(1)
    words = []
    for value in onnx.load(path).graph.input:
        file = pathlib.Path(folder) / f"{len(words)}.npy"
        numpy.save(file, filled(entry["inputs"][value.name], value, random))
        words += ["--input", f"{value.name}={file}"]
    return words


def placed(plan, placement):
    return [node for node in plan["nodes"] if node["placement"] == placement]


def units(plan):
    return [unit for node in placed(plan, "engine") for unit in node["units"]]


def bounds(entry, kind, counted):
    """How many units of a kind a model may become, with what the manifest counted. Attentions may
    be split by head and window, each normalization is a unit, and the others may be fewer."""
    if kind == "SDPA":
        return min(entry["attentions"], counted), counted
    if kind.endswith("Normalization"):
        return counted, counted
    return 1, counted


def faults_of(entry, plan):
    """The problems of a plan, as texts."""
    made = units(plan)
    for kind, counted in entry["units"].items():
        least, most = bounds(entry, kind, counted)
        if not least <= made.count(kind) <= most:
            yield f"{made.count(kind)} units {kind}, want {least} to {most}"
    if plan["summary"]["engine_segments"] != 1:
        yield f"{plan['summary']['engine_segments']} engine segments, want 1"
    if plan["summary"]["engine_macs"] != plan["summary"]["macs"]:
        yield "multiplications on the CPU"
    reads_integers = any("below" in about for about in entry["inputs"].values())
    for node in placed(plan, "cpu"):
        # A part of an operator of com.microsoft, such as "/#3/mask", only computes integers.
        is_part = not node["id"].rsplit("/", 1)[-1].startswith("#")
        if not reads_integers or not is_part and node["op_type"] not in OF_INTEGERS:
            yield f"{node['op_type']} '{node['name']}' on the CPU: {node['message']}"


def moved(plan, products):
    """The nodes that are placed elsewhere if linear layers stay products, as texts."""
    for node, other in zip(plan["nodes"], products["nodes"], strict=True):
        if any(node[key] != other[key] for key in ("id", "placement", "segment", "message")):
            yield f"'{node['name']}' is placed elsewhere with --linear-layers products"


def judge(entry):
    """A row of the table, and the problems."""
    path = FOLDER / f"{entry['name']}.onnx"
    checked, products = (run("check", "--json", "--target", ",".join(TARGETS), *options,
                             path)["models"][0] for options in ((), ("--linear-layers", "products")))
    with tempfile.TemporaryDirectory() as folder:
        result = run("run", "--compare", "--json", *inputs(entry, path, folder), path)
    plans = checked["targets"]
    faults = [f"{plan['target']}: {fault}" for plan in plans for fault in faults_of(entry, plan)]
    faults += [f"{plan['target']}: {fault}" for plan, other in zip(plans, products["targets"])
               for fault in moved(plan, other)]
    # The cosine is null if one of the two is all zero.
    cosines = [o["cosine"] if o["cosine"] is not None else float(o["max_abs_error"] == 0)
               for o in result["outputs"]]
    if not cosines or min(cosines) < COSINE:
        faults.append(f"cosine below {COSINE}")
    # The cosine says nothing about scale.
    error = max((o["max_rel_error"] for o in result["outputs"]), default=0)
    if error > MAX_REL:
        faults.append(f"an error of {error:.3f} of an output's range, want at most {MAX_REL}")
    summary = plans[0]["summary"]
    share = 1 if summary["macs"] == 0 else summary["engine_macs_share"] or 0
    row = (entry["name"], entry["attentions"],
           " ".join(str(units(plan).count("SDPA")) for plan in plans), f"{share:.0%}",
           summary["engine_segments"], f"{min(cosines, default=0):.6f}")
    return row, faults


def outcome(entry):
    try:
        return judge(entry)
    except (RuntimeError, subprocess.TimeoutExpired) as e:
        return (entry["name"], entry["attentions"]), [str(e)]


def shown(row):
    return f"{row[0]:41}{row[1]:>11} " + "".join(f"{cell:>10}" for cell in row[2:])


def main(prefixes):
    entries = [one for one in json.loads((FOLDER / "manifest.json").read_text())["models"]
               if one["name"].startswith(tuple(prefixes) or "")]
    assert entries, f"no model's name begins with one of {prefixes}"
    print(shown(HEADS))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for row, faults in pool.map(outcome, entries):
            print(shown(row))
            for fault in faults:
                print(f"  FAILED: {fault}")
            failed += bool(faults)
    spellings = [one for one in entries if one["attentions"] > 0]
    print(f"{len(entries)} models, {len(spellings)} of them with attention; {failed} failed")
    if failed or not prefixes and len(spellings) < 20:
        sys.exit(1)


main(sys.argv[3:])
