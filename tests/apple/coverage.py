"""Prints how many lines of engine/apple the tests on the stand-in run, by gcov. Needs the preset coverage:

    tools/setup/build.sh coverage && ctest --preset coverage && python3 tests/apple/coverage.py [--lines]

--lines lists the lines that did not run.
"""

import collections
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "coverage"
SOURCES = pathlib.PurePath("engine/apple")


def counts():
    """For each file of engine/apple, how often each of its lines ran."""
    files = collections.defaultdict(collections.Counter)
    for notes in sorted((BUILD / SOURCES).rglob("*.gcno")):
        told = subprocess.run(["gcov", "--json-format", "--stdout", str(notes)], capture_output=True, text=True,
                              check=True, cwd=BUILD)
        for report in map(json.loads, filter(None, told.stdout.splitlines())):
            for file in report["files"]:
                path = (BUILD / file["file"]).resolve()
                if path.parent != ROOT / SOURCES:
                    continue
                for line in file["lines"]:
                    files[path.name][line["line_number"]] += line["count"]
    return files


def share(ran, lines):
    return f"{ran:5} of {lines:4}  {100 * ran / lines:5.1f} %"


def main():
    files = counts()
    total = [0, 0]
    for name, lines in sorted(files.items()):
        missed = sorted(line for line, count in lines.items() if count == 0)
        ran = len(lines) - len(missed)
        total = [total[0] + ran, total[1] + len(lines)]
        more = "  not: " + " ".join(map(str, missed)) if missed and "--lines" in sys.argv else ""
        print(f"{name:22} {share(ran, len(lines))}{more}")
    if not files or total[0] == 0:
        print("no line ran: build and run the preset coverage first")
        return 1
    print(f"{'all':22} {share(*total)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
