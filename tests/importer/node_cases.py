"""Runs ONNX's test cases on ONNX Runtime, before and after the importer rewrites them.

    node_cases.py REWRITE [--mode lift|simplify] [--constant] [--every N] [--keep FOLDER]

REWRITE is the program of rewrite_main.cc. The cases are those of the installed onnx package: nodes,
`simple`, and the two PyTorch sets. If ONNX Runtime runs a case, it must also run the rewritten
model, with the same results or those that the case expects. Otherwise the script prints a line for
the case and exits with 1. Cases that run only after rewriting (opsets too new for this ONNX
Runtime) are counted.

With --constant, the inputs become initializers, so that the importer computes the cases where it
can. If no node is left, the results must be those of ONNX Runtime, bit for bit except in COMPUTED.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from onnx_cases import agrees, can_be_fed, is_random, load_cases  # noqa: E402

WORKING_OPSET = 21  # importer/importer.h
NOT_FED = "a type that NumPy does not have"


def run(path, inputs):
    """Returns the outputs and "", or None and the reason."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        if not can_be_fed(session):
            return None, NOT_FED
        feed = {port.name: value for port, value in zip(session.get_inputs(), inputs)}
        return session.run(None, feed), ""
    except Exception as error:  # ONNX Runtime's exceptions have many classes
        return None, str(error).splitlines()[0][:200]


def same(a, b):
    return agrees(a, b, rtol=1e-3, atol=1e-5)


def with_constants(case):
    """The case with initializers instead of inputs; None where an input is not an array."""
    inputs = case.data_sets[0][0]
    named = dict(zip([port.name for port in case.model.graph.input], inputs))
    if case.model.ir_version < 4 or not named:
        return None
    if not all(isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
               for value in named.values()):
        return None
    model = onnx.ModelProto.FromString(case.model.SerializeToString())
    own = {initializer.name for initializer in model.graph.initializer}
    for name, value in named.items():
        if name not in own:
            array = np.ascontiguousarray(value).reshape(value.shape)
            model.graph.initializer.append(numpy_helper.from_array(array, name))
    del model.graph.input[:]
    return case._replace(model=model, data_sets=[([], case.data_sets[0][1])])


def is_of_working_opset(model):
    """Whether the working opset has the operators in the same version: no node is lifted."""
    opset = max([o.version for o in model.opset_import if o.domain in ("", "ai.onnx")], default=1)
    try:
        return all(onnx.defs.get_schema(node.op_type, opset).since_version
                   == onnx.defs.get_schema(node.op_type, WORKING_OPSET).since_version
                   for node in model.graph.node)
    except onnx.defs.SchemaError:
        return False


# Operators of float constants that the importer computes itself, nearer to the truth than ONNX
# Runtime's float32 (importer/infer/compute.h): the last bits may differ, by more where a sum is
# much smaller than its summands.
COMPUTED = {"Sin": 2, "Cos": 2, "Log": 2, "Exp": 2, "Sqrt": 2, "Pow": 2, "ReduceSum": 64,
            "ReduceMean": 64, "Softmax": 16, "LayerNormalization": 16, "MatMul": 16, "Gemm": 16}


def same_bits(a, b, model):
    units = max(COMPUTED.get(node.op_type, 0) for node in model.graph.node)

    def equal(x, y):
        if units and x.size and x.dtype.kind == "f":
            largest = np.abs(y) if units == 2 else np.max(np.abs(y))
            return bool(np.all((x == y) | (np.abs(x - y) <= units * np.spacing(largest))))
        return x.tobytes() == y.tobytes()
    return len(a) == len(b) and all(x.dtype == y.dtype and x.shape == y.shape and equal(x, y)
                                    for x, y in zip(a, b))


def rewrite(program, mode, paths):
    lines = "".join(f"{path} {path}.ours\n" for path in paths)
    done = subprocess.run([program, mode], input=lines, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rewrite")
    parser.add_argument("--mode", default="simplify")
    parser.add_argument("--constant", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--keep", help="write the models here")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ort.set_default_logger_severity(4)

    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        cases = []
        loaded = load_cases(args.every)
        if args.constant:
            loaded = filter(None, map(with_constants, loaded))
        for number, case in enumerate(loaded):
            path = os.path.join(folder, f"{number}.onnx")
            with open(path, "wb") as file:
                file.write(case.model.SerializeToString())
            cases.append((case.name, path, *case.data_sets[0], is_random(case.model.graph),
                          case.model if args.constant and is_of_working_opset(case.model) else None))
        said = rewrite(args.rewrite, args.mode, [case[1] for case in cases])
        count = dict.fromkeys(["same", "same bits", "corrected", "random", "only ours", "neither",
                               "broken"], 0)
        for (name, path, inputs, outputs, random, exact), line in zip(cases, said):
            theirs, _ = run(path, inputs)
            ours, why = run(path + ".ours", inputs) if line.startswith("ok") else (None, line)
            if theirs is None:
                count["neither" if ours is None else "only ours"] += 1
            elif random and ours is not None:
                count["random"] += 1
            elif ours is not None and exact is not None and line.startswith("ok 0 nodes"):
                is_same = same_bits(theirs, ours, exact)
                count["same bits" if is_same else "broken"] += 1
                if not is_same:
                    print(f"{name}: other bits")
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
