"""ONNX's node cases as Core ML packages: how many convert, open, and agree.

    node_cases.py ANEMONE [--sample N --seed S] [--refused] [--write] [NAME...]

A case is converted as it is; if that is refused, with all inputs but the first as constants: a package's
shapes, axes and sizes are known before it runs. Prints each case that fails after it was converted, and the
counts. Exit code 1 if such a case is not in KNOWN, or if another case is refused than refused_cases.json
lists, which --write writes after a whole run, with the table by reason in docs/coreml_models.md. --refused takes
the cases that are listed there.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy
import onnxruntime
from onnx import numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]
import onnx_cases  # noqa: E402
import page_section  # noqa: E402
from mil_interpreter import Package  # noqa: E402

REFUSED = HERE / "refused_cases.json"
FINE = ("agrees", "beyond fp16", "fails in coremltools")
# Cases that convert and do not agree, with the reason.
LARGE = "10000 and 10003 are the same number in fp16"
HALFWAY = "a quotient near the middle of two steps, which fp16 rounds to the other step"
EXP = "the exponential of 20 and more is beyond fp16"
KNOWN = {
    "node:test_dynamicquantizelinear": HALFWAY,
    "node:test_dynamicquantizelinear_expanded": HALFWAY,
    "node:test_logsoftmax_large_number": LARGE,
    "node:test_logsoftmax_large_number_expanded": LARGE,
    "node:test_logsoftmax_large_number_expanded_ver18": LARGE,
    "node:test_reduce_log_sum_exp_default_axes_keepdims_example_expanded": EXP,
    "node:test_reduce_log_sum_exp_do_not_keepdims_example_expanded": EXP,
    "node:test_reduce_log_sum_exp_keepdims_example_expanded": EXP,
    "node:test_reduce_log_sum_exp_negative_axes_keepdims_example_expanded": EXP,
    "node:test_softmax_large_number_expanded": LARGE,
    "node:test_softmax_large_number_expanded_ver18": LARGE,
    "node:test_softmax_large_number": LARGE,
}


# Classes of reasons for refusals: what is said, and a pattern of it (the first that matches).
CLASSES = (
    ("a type that Core ML does not have: strings, sequences, optionals, complex numbers, 8-bit floats, 4-bit integers",
     r"type that Core ML's programs|not arrays|type of a value is not"),
    ("an array without elements, which Core ML does not have", "no elements|of no axes"),
    ("more than 5 dimensions", "dimensions, and Core ML"),
    ("control flow that is decided at run time", r"^(If|Loop|Scan|Optional\w+):"),
    ("sizes, or numbers that a form needs, which are only known at run time: Range, NonZero, Unique, "
     "NonMaxSuppression, Compress. A package's sizes are known, or depend on those of its inputs",
     r"only known at run time|^(NonZero|Unique|NonMaxSuppression|Compress):"),
    ("training, and random masks", r"training_mode|^port: no MIL operation"),
    ("bits of floats, and of integers of 32 bits as those of another type", r"^(Bitwise\w+|BitCast|BitShift):"),
    ("an operator or a mode that no single operation of MIL has, and that was not written by several", ""),
)
PAGE = HERE.parents[2] / "docs" / "coreml_models.md"


def page_text(counts, refused):
    """The section of the page: counts, and the refused cases by class and operator."""
    rows = collections.defaultdict(lambda: [0, collections.Counter()])
    for why, names in refused.items():
        words = next(words for words, pattern in CLASSES if re.search(pattern, why))
        rows[words][0] += len(names)
        rows[words][1][why.partition(":")[0]] += len(names)
    lines = [f"| {words} | {count} | "
             f"{', '.join(f'{op} {n}' for op, n in sorted(ops.items()) if op != 'port')} |"
             for words, (count, ops) in sorted(rows.items(), key=lambda row: -row[1][0])]
    said = {"agrees": "agree with the expected result or ONNX Runtime's", "refused": "are refused",
            "differs": "differ (`KNOWN` in the script has the reasons)",
            "beyond fp16": "have numbers beyond fp16", "fails in coremltools": "fail in coremltools itself"}
    text = "; ".join(f"{counts[key]:,} {words}" for key, words in said.items() if counts[key])
    everything = sum(counts.values())
    return (f"By `tests/provider/coreml/node_cases.py --write`: of {everything:,} cases without random results,\n"
            f"{text}.\n`refused_cases.json` beside the script has each refused case with what was said of it.\n\n"
            "| refused, because it has or needs | cases | operators |\n|---|---|---|\n" + "\n".join(lines))


def with_constants(model, inputs):
    """All inputs but the first as initializers."""
    made = type(model)()
    made.CopyFrom(model)
    own = {initializer.name for initializer in made.graph.initializer}
    ports = [port for port in made.graph.input if port.name not in own]
    for port, value in list(zip(ports, inputs))[1:]:
        made.graph.initializer.append(numpy_helper.from_array(numpy.asarray(value), port.name))
        made.graph.input.remove(port)
    return made


def convert(anemone, model, folder):
    """The package, or the last line of the error."""
    path, out = pathlib.Path(folder) / "case.onnx", pathlib.Path(folder) / "case.mlpackage"
    path.write_bytes(model.SerializeToString())
    subprocess.run(["rm", "-rf", str(out)], check=True)
    done = subprocess.run([anemone, "convert", str(path), "--to", "mlpackage", "-o", str(out), "--json", "-q"],
                          capture_output=True, text=True, errors="replace", timeout=120, check=False,
                          env={**os.environ, "ANEMONE_PROGRAM_CACHE": ""})
    if done.returncode == 0:
        json.loads(done.stdout)
        return out, None
    lines = done.stderr.strip().splitlines()
    return None, lines[-1] if lines else f"exit code {done.returncode}"


def reason_of(why):
    """"LSTM: no MIL operation is known for the operator": the operator and what was said, without names."""
    label = re.search(r"\((\w+)[,)]", why)
    text = re.sub(r"'[^']*'", "a value", why.split(": ")[-1].split(";")[0])
    return f"{label.group(1) if label else 'port'}: {text}"


def safe(name):
    return re.sub(r"^(?=\d)", "v", re.sub(r"\W", "_", name))


def result(anemone, case, folder):
    """("agrees" | "refused" | "not opened" | "differs" | "crashed", why)"""
    inputs, wanted = case.data_sets[0]
    if any(not isinstance(x, numpy.ndarray) for x in (*inputs, *wanted)):
        return "refused", "not arrays"
    out, why = convert(anemone, case.model, folder)
    if out is None and len(inputs) > 1:
        with contextlib.suppress(Exception):  # a type that numpy_helper does not write
            out, _ = convert(anemone, with_constants(case.model, inputs), folder)
    if out is None:
        return ("crashed" if "exit code" in why else "refused"), why
    try:
        package = Package(out)
    except Exception as error:
        # coremltools cannot fold a reduction of a constant with NumPy 2.
        is_theirs = "'numpy.bool' object cannot be interpreted" in str(error)
        return "fails in coremltools" if is_theirs else "not opened", f"{type(error).__name__}: {error}"
    try:
        feeds = {safe(name): value if numpy.ndim(value) else numpy.reshape(value, (1,))
                 for name, value in case.feeds(inputs).items()}
        got = list(package.run(feeds).values())
    except Exception as error:
        return "not run", f"{type(error).__name__}: {error}"
    got = [numpy.asarray(a).reshape(b.shape).astype(b.dtype) if a.size == b.size else a
           for a, b in zip(got, wanted)]
    if onnx_cases.agrees_in_fp16(got, wanted):
        return "agrees", None
    if onnx_cases.beyond_fp16([*inputs, *wanted]):
        return "beyond fp16", None
    with contextlib.suppress(Exception):  # some expected results are not those of ONNX Runtime
        session = onnxruntime.InferenceSession(case.model.SerializeToString())
        if onnx_cases.agrees_in_fp16(got, session.run(None, case.feeds(inputs))):
            return "agrees", None
    return "differs", f"got {got[0].ravel()[:4]}, want {wanted[0].ravel()[:4]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("anemone")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--refused", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.write and (arguments.names or arguments.sample or arguments.refused):
        parser.error("--write takes all cases")
    counts, failed = collections.Counter(), 0
    listed = {name: why for why, names in json.loads(REFUSED.read_text()).items() for name in names}
    refused = collections.defaultdict(list)
    cases = [case for case in onnx_cases.load_cases() if case.name.startswith("node:")]
    cases = [case for case in cases if not onnx_cases.is_random(case.model.graph)]
    if arguments.names:
        cases = [case for case in cases if case.name.removeprefix("node:") in arguments.names]
    if arguments.refused:
        cases = [case for case in cases if case.name.removeprefix("node:") in listed]
    if arguments.sample:
        cases = random.Random(arguments.seed).sample(cases, arguments.sample)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            name = case.name.removeprefix("node:")
            found, why = result(arguments.anemone, case, folder)
            counts[found] += 1
            if found == "refused":
                refused[reason_of(why)].append(name)
            is_new = found == "refused" and name not in listed and not arguments.write
            is_old = found != "refused" and name in listed and not arguments.write
            if is_new or is_old or (found not in ("refused", *FINE) and case.name not in KNOWN):
                failed += 1
                print(f"{name}: {found}{' (is in refused_cases.json)' if is_old else ''}: {(why or '')[:300]}",
                      flush=True)
    if arguments.write:
        REFUSED.write_text(json.dumps({why: sorted(refused[why]) for why in sorted(refused)}, indent=1) + "\n")
        page_section.put(PAGE, "ONNX's node cases", page_text(counts, refused))
    print(", ".join(f"{count} {found}" for found, count in counts.most_common()))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
