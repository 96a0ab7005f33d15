"""No code names the tables that only tests may read: compile probes, golden vectors, the op matrix.

Run: python3 tests/layout/names_test.py [REPOSITORY]. A correct verdict would be worth nothing if
the code knew the question. Tables copied from the shared facts are not checked.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
CODE = ["base", "cmake", "engine", "fallback", "importer", "include", "kernels", "math", "models",
        "partitioner", "provider", "tools"]
COPIED = {"compiler_texts.json", "numerics.json", "orion.json", "targets.json", "validators.json"}
FILES = ["compile_probes", "golden_vectors"]
TABLES = ROOT / "tests" / "rules" / "tables"


def forbidden():
    """Names of probes and vectors, except words that occur in prose ("relu", "a rank-5 tensor")."""
    names = set()
    for path in TABLES.glob("*.json"):
        table = json.loads(path.read_text())
        if path.stem in FILES:
            names |= {row["id"] for rows in table.values() if isinstance(rows, list)
                      for row in rows if isinstance(row, dict) and "id" in row}
    return {name for name in names if "-" in name and not re.fullmatch(r"rank-\d", name)}


def main():
    names = forbidden()
    assert len(names) > 300, "the tables of the tests were not found"
    wrong, looked = [], 0
    for path in sorted(p for folder in CODE for p in (ROOT / folder).rglob("*") if p.is_file()):
        if path.name in COPIED or path.suffix not in (".cc", ".h", ".json", ".py", ".txt", ".cmake"):
            continue
        looked += 1
        text = path.read_text()
        words = set(re.findall(r"\w+(?:-\w+)+", text))
        found = sorted(words & names) + [name for name in FILES if name in text]
        if "op_matrix" in text and path.suffix in (".py", ".txt", ".cmake"):
            found.append("op_matrix")
        wrong += [f"{path.relative_to(ROOT)}: names {name}" for name in found]
    print("\n".join(wrong))
    print(f"{looked} files, {len(names)} names, {len(wrong)} named")
    return 1 if wrong or looked < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
