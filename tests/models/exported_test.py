"""Models as exporters write them (models/exported): attentions become SDPA units, the results agree.

    exported_test.py ANEMONE SOURCE_FOLDER [NAME...]

Each model is planned for each target, and run for the first and compared with ONNX Runtime.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy
import onnx

ANEMONE = pathlib.Path(sys.argv[1])
FOLDER = pathlib.Path(sys.argv[2]) / "models" / "exported"
TARGETS = ("h13", "h16")
COSINE = 0.9999
TYPES = {onnx.TensorProto.FLOAT: numpy.float32, onnx.TensorProto.INT64: numpy.int64,
         onnx.TensorProto.BOOL: numpy.bool_}


def run(*words):
    done = subprocess.run([str(ANEMONE), *map(str, words)], capture_output=True, text=True,
                          timeout=120)
    if done.returncode not in (0, 3):
        raise AssertionError(f"{' '.join(map(str, words))}: {done.stderr}")
    return json.loads(done.stdout)


def filled(about, value, random):
    """An array for one input of the model, as the manifest says."""
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
    """Options of `anemone run` for the model's inputs, which are files in `folder`."""
    random = numpy.random.default_rng(1)
    words = []
    for value in onnx.load(path).graph.input:
        file = pathlib.Path(folder) / f"{len(words)}.npy"
        numpy.save(file, filled(entry["inputs"][value.name], value, random))
        words += ["--input", f"{value.name}={file}"]
    return words


def units(plan):
    return [unit for node in plan["nodes"] for unit in node["units"] or ()
            if node["placement"] == "engine"]


class ExportedTest(unittest.TestCase):
    pass
def main():
    entries = json.loads((FOLDER / "manifest.json").read_text())["models"]
    if sys.argv[3:]:
        entries = [e for e in entries if e["name"].startswith(tuple(sys.argv[3:]))]
    for entry in entries:
        path = FOLDER / f"{entry['name']}.onnx"
        try:
            plans = run("check", "--target", ",".join(TARGETS), "--json", path)["models"][0]["targets"]
            with tempfile.TemporaryDirectory() as folder:
                result = run("run", "--compare", "--json", *inputs(entry, path, folder), path)
        except AssertionError as e:
            print(entry["name"], e)
            continue
        s = plans[0]["summary"]
        cosine = min(o["cosine"] if o["cosine"] is not None else 9 for o in result["outputs"])
        counts = [units(p).count("SDPA") for p in plans]
        share = s["engine_macs"] / s["macs"] if s["macs"] else 1
        print(f"{entry['name']:40} {entry['attentions']:3} {entry['sdpa']:3} {counts}"
              f" {share:.2f} seg {s['engine_segments']} cpu {s['cpu_segments']} {cosine:.6f}",
              "" if counts == [entry['sdpa']]*2 else "SDPA!", "" if cosine >= COSINE else "COS!", "" if s['engine_segments'] == 1 else "SEG!",
              [n["op_type"] for n in plans[0]["nodes"] if n["placement"] == "cpu"][:6] , flush=True)
        if not entry["attentions"]: print("      ", units(plans[0]))
main()
