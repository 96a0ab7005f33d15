"""Runs ONNX's own test cases on ONNX Runtime, as they are and as the importer rewrites them.

    node_cases.py REWRITE [--mode lift|simplify] [--every N] [--keep FOLDER]

REWRITE is the program of rewrite_main.cc. The cases are those of the onnx package at hand: nodes,
`simple`, and the two PyTorch sets. A case that ONNX Runtime runs untouched must run after our
rewriting, with the same results or the right ones: exit code 1 if one does not, after a line for
each. Cases that only the rewritten model passes (opsets too new for the ONNX Runtime at hand) are
counted.
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

NOT_FED = "a type that NumPy has not"


def run(path, inputs):
    """The outputs, or None and why there are none."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        if not can_be_fed(session):
            return None, NOT_FED
        feed = {port.name: value for port, value in zip(session.get_inputs(), inputs)}
        return session.run(None, feed), ""
    except Exception as error:  # ONNX Runtime's are of many classes
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
