#!/usr/bin/env python3
"""Run `anemone bench` on the models of the manifest; print ratios to ONNX Runtime's CPU provider.

    bench/manifest.py [--threads N] [--repeat N] [NAME...]
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from models import manifest  # noqa: E402

manifest.use_own_python()

ANEMONE = ROOT / "build" / "release" / "anemone"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default="1")
    parser.add_argument("--repeat", default="20")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    known = {entry["name"]: entry for entry in manifest.entries()}
    wrong = [name for name in arguments.names if name not in known]
    if wrong:
        parser.error(f"no model '{wrong[0]}'; `tools/models list` lists all")
    entries = [known[name] for name in arguments.names] or list(known.values())
    manifest.fetch(entries)

    head = None
    for name, path, options in manifest.runs(entries):
        done = subprocess.run(
            [str(ANEMONE), "bench", str(path), "--json", "--quiet", "--threads", arguments.threads,
             "--repeat", arguments.repeat, "--no-cache", *options], capture_output=True, text=True)
        if done.returncode:
            print(f"{name:26} {done.stderr.strip()}", flush=True)
            continue
        measures = json.loads(done.stdout)["models"][0]["measures"]
        if head is None:
            head = [measure["name"] for measure in measures]
            print(f"{'ratio, lower is better':26} " + "  ".join(head))
        print(f"{name:26} " + "  ".join(
            f"{m['ratio']:{len(m['name'])}.2f}" for m in measures), flush=True)


if __name__ == "__main__":
    main()
