"""Runs ONNX's own test cases on ONNX Runtime, as they are and as the importer rewrites them.

    node_cases.py REWRITE [--mode lift|simplify] [--every N] [--keep FOLDER]

REWRITE is the program of rewrite_main.cc. The cases are those of the onnx package at hand: nodes,
`simple`, and the two PyTorch sets. A case that ONNX Runtime runs untouched must run after our
rewriting, with the same results or the right ones: exit code 1 if one does not, after a line for
each. Cases that only the rewritten model passes (opsets too new for the ONNX Runtime at hand) are
counted.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

KINDS = ["node", "simple", "pytorch-converted", "pytorch-operator"]
# Random results differ from run to run.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
          "RandomUniformLike"}
# Types that NumPy has not, so Python cannot feed them.
UNFED = ("bfloat16", "float8", "float4", "int4", "uint4", "int2", "uint2")


NOT_FED = "a type that NumPy has not"


def value_of(proto):
    if isinstance(proto, onnx.TensorProto):
        return numpy_helper.to_array(proto)
    if isinstance(proto, onnx.SequenceProto):
        return numpy_helper.to_list(proto)
    if isinstance(proto, onnx.OptionalProto):
        return numpy_helper.to_optional(proto)
    return np.asarray(proto) if isinstance(proto, np.generic) else proto


def stored(folder, what, ports):
    count = len(glob.glob(os.path.join(folder, f"{what}_*.pb")))
    values = []
    for i in range(count):
        kind = ports[i].type.WhichOneof("value")
        proto = {"sequence_type": onnx.SequenceProto,
                 "optional_type": onnx.OptionalProto}.get(kind, onnx.TensorProto)()
        with open(os.path.join(folder, f"{what}_{i}.pb"), "rb") as file:
            proto.ParseFromString(file.read())
        values.append(value_of(proto))
    return values


def load_cases(every):
    """Name, model, and the first set of inputs and outputs of every Nth case."""
    for kind in KINDS:
        for case in load_model_tests(kind=kind)[::every]:
            if case.model is not None:
                inputs, outputs = ([value_of(x) for x in part] for part in case.data_sets[0])
                yield f"{kind}:{case.name}", case.model, inputs, outputs
                continue
            model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
            sets = sorted(glob.glob(os.path.join(case.model_dir, "test_data_set_*")))
            if sets:
                yield (f"{kind}:{case.name}", model, stored(sets[0], "input", model.graph.input),
                       stored(sets[0], "output", model.graph.output))


def is_random(graph):
    return any(node.op_type in RANDOM or any(is_random(a.g) for a in node.attribute if a.HasField("g"))
               for node in graph.node)


def run(path, inputs):
    """The outputs, or None and why there are none."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        ports = session.get_inputs() + session.get_outputs()
        if any(name in port.type for port in ports for name in UNFED):
            return None, NOT_FED
        feed = {port.name: value for port, value in zip(session.get_inputs(), inputs)}
        return session.run(None, feed), ""
    except Exception as error:  # ONNX Runtime's are of many classes
        return None, str(error).splitlines()[0][:200]


def same(a, b):
    if a is None or b is None:
        return a is b
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a == b
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "fc":
        return np.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True)
    return np.array_equal(a, b)


def rewrite(program, mode, paths):
    lines = "".join(f"{path} {path}.ours\n" for path in paths)
    done = subprocess.run([program, mode], input=lines, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rewrite")
    parser.add_argument("--mode", default="simplify")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--keep", help="write the models here")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ort.set_default_logger_severity(4)

    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        cases = []
        for number, (name, model, inputs, outputs) in enumerate(load_cases(args.every)):
            path = os.path.join(folder, f"{number}.onnx")
            with open(path, "wb") as file:
                file.write(model.SerializeToString())
            cases.append((name, path, inputs, outputs, is_random(model.graph)))
        said = rewrite(args.rewrite, args.mode, [case[1] for case in cases])
        count = dict.fromkeys(["same", "corrected", "random", "only ours", "neither", "broken"], 0)
        for (name, path, inputs, outputs, random), line in zip(cases, said):
            theirs, _ = run(path, inputs)
            ours, why = run(path + ".ours", inputs) if line.startswith("ok") else (None, line)
            if theirs is None:
                count["neither" if ours is None else "only ours"] += 1
            elif random and ours is not None:
                count["random"] += 1
            elif ours is not None and same(theirs, ours):
                count["same"] += 1
            elif ours is not None and same(outputs, ours):
                count["corrected"] += 1
            else:
                count["broken"] += 1
                print(f"{name}: {why or 'other results'}")
        print(", ".join(f"{what} {n}" for what, n in count.items()))
    return 1 if count["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
