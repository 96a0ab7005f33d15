"""Runs ONNX's test cases in direct mode on five targets, and with ONNX Runtime's CPU provider.

    conformance.py [--every N] [--only TEXT] [--jobs N] [--write]
    conformance.py --page

Runs every Nth case and compares it with results.json, the record of the last whole run. --write writes a
new record and docs/conformance.md. --page only compares the page with the record. Exit code 1 if a case
differs from the record, or if a case that did not pass has no reason in reasons.py.
"""

import argparse
import importlib.metadata
import json
import pathlib
import sys
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import cases  # noqa: E402
import onnx_cases  # noqa: E402
import page  # noqa: E402
import reasons  # noqa: E402
import workers  # noqa: E402

RESULTS = HERE / "results.json"
PAGE = HERE.parents[1] / "docs" / "conformance.md"
REMEDY = "tests/conformance/conformance.py --write makes record and page anew"


def load(every, only):
    warnings.simplefilter("ignore")
    loaded, operators = [], {}
    for case in onnx_cases.load_cases(1, onnx_cases.ALL_KINDS):
        operators[case.name] = cases.operator_of(case, operators)
        loaded.append(case)
    return {case.name: case for case in loaded[::every] if only in case.name}, operators


def run_cases(chosen, operators, jobs):
    results = {}
    for name, record in workers.run_all(lambda name: cases.run(chosen[name]), chosen, jobs):
        if isinstance(record, str):  # the process died
            record = {"ort": False, "at": record, "why": None}
        results[name] = {"op": operators[name], **record}
    return dict(sorted(results.items()))


def versions():
    return {name: importlib.metadata.version(name) for name in ("onnx", "onnxruntime")}


def write(results):
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(record)}"
                       for name, record in results.items())
    RESULTS.write_text(f'{{"versions": {json.dumps(versions())},\n"cases": {{\n{lines}\n}}}}\n')


def brief(record):
    return f"{str(record['at'])[:120]} (ort {record['ort']}, why {record['why']})"


def differences(results, recorded):
    """A line for each case that differs from the record."""
    same_versions = recorded["versions"] == versions()
    for name, record in results.items():
        was = recorded["cases"].get(name)
        if was is None:
            if same_versions:
                yield f"{name}: not in the record"
        elif cases.passed(was) and not cases.passed(record):
            yield f"{name}: passed, and now: {record['at']}"
        elif same_versions and was != record:
            yield f"{name}: was {brief(was)}, and now: {brief(record)}"


def check_page(recorded):
    if PAGE.read_text() == page.text(recorded):
        return []
    return [f"{PAGE.name} is not what results.json says"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="a sample: one of so many")
    parser.add_argument("--only", default="", help="cases whose names hold this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    if args.write and (args.every != 1 or args.only):
        parser.error("--write wants all cases")
    wrong = []
    if not args.page:
        results = run_cases(*load(args.every, args.only), args.jobs)
        passed = sum(cases.passed(record) for record in results.values())
        print(f"{len(results)} cases, {passed} passed; ONNX Runtime's CPU provider passes",
              sum(record["ort"] for record in results.values()))
        if args.write:
            write(results)
            PAGE.write_text(page.text(json.loads(RESULTS.read_text())))
        wrong = reasons.missing(results, whole=args.every == 1 and not args.only)
    recorded = json.loads(RESULTS.read_text())
    if args.page:
        wrong = check_page(recorded)
    elif not args.write:
        wrong += differences(results, recorded)
    print("\n".join(wrong))
    if wrong:
        print(REMEDY)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
