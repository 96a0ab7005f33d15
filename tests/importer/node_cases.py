"""Runs ONNX's test cases on ONNX Runtime, before and after the importer rewrites them.

    node_cases.py REWRITE [--mode lift|simplify] [--every N] [--keep FOLDER]

REWRITE is the program of rewrite_main.cc. The cases are those of the installed onnx package: nodes,
`simple`, and the two PyTorch sets. If ONNX Runtime runs a case, it must also run the rewritten
model, with the same results or those that the case expects. Otherwise the script prints a line for
the case and exits with 1. Cases that run only after rewriting (opsets too new for this ONNX
Runtime) are counted.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

import onnxruntime as ort

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from onnx_cases import agrees, can_be_fed, is_random, load_cases  # noqa: E402

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
        for number, case in enumerate(load_cases(args.every)):
            path = os.path.join(folder, f"{number}.onnx")
            with open(path, "wb") as file:
                file.write(case.model.SerializeToString())
            cases.append((case.name, path, *case.data_sets[0], is_random(case.model.graph)))
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
