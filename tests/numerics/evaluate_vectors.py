"""Writes golden_vectors.json with its inputs evaluated, for tests in C++.

Usage: evaluate_vectors.py OUTPUT. Numbers that JSON cannot express are strings: "inf", "-inf",
"nan".
"""

import json
import math
import pathlib
import sys

import golden_test


def plain(value):
    if isinstance(value, (list, tuple, range)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def main():
    vectors = []
    for vector in golden_test.VECTORS:
        if vector.get("runnable") and "any" not in vector["inputs"].values():
            inputs = {name: plain(v) for name, v in golden_test.evaluated(vector).items()}
            vectors.append({**vector, "inputs": inputs})
    pathlib.Path(sys.argv[1]).write_text(json.dumps(vectors))


if __name__ == "__main__":
    main()
