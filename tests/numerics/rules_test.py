"""Every rule of numerics.json and all its options are implemented, or rules.json says why not.

Usage: rules_test.py PROJECT. The id of a rule must occur in a comment of the code that implements
it, or in rules.json with a reason. The options of a rule must be read by the code as a member of
Numerics, or rules.json must say why the other options have no effect. Prints the table.
"""

import collections
import json
import pathlib
import re
import sys


def main():
    project = pathlib.Path(sys.argv[1])
    rules = [rule for section in
             json.loads((project / "engine/tables/numerics.json").read_text())["sections"].values()
             for rule in section]
    excuses = json.loads((pathlib.Path(__file__).parent / "rules.json").read_text())
    files = {path.relative_to(project): path.read_text()
             for folder in ("engine", "kernels", "math", "provider")
             for path in sorted((project / folder).rglob("*"))
             if path.suffix in (".h", ".cc")}
    ids = {rule["id"] for rule in rules}
    wrong = [f"{id}: there is no rule with this id" for part in excuses.values() for id in part
             if id not in ids]
    counts = collections.Counter()
    for rule in rules:
        id, member = rule["id"], re.compile(rf"\w(\.|->){rule['id'].replace('-', '_')}\b")
        comment = re.compile(rf"//.*(?<![\w-]){re.escape(id)}(?![\w-])")
        named = [str(path) for path, text in files.items() if comment.search(text)]
        reads = [str(path) for path, text in files.items() if member.search(text)]
        reason = excuses["not in the code"].get(id)
        print(f"{id:20} {', '.join(sorted(set(named + reads))) or reason or 'NOWHERE'}")
        counts["in the code" if named or reads else "with a reason"] += 1
        if not named and not reads and not reason:
            wrong.append(f"{id}: neither in a comment of the code nor in rules.json")
        if rule.get("underdetermined") and not reads:
            without = excuses["options without data"].get(id)
            counts["options without data"] += 1
            if not without:
                wrong.append(f"{id}: no code reads its options, and rules.json does not say why")
        if reads and id in excuses["options without data"]:
            wrong.append(f"{id}: its options are read now: remove it from rules.json")
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    for line in wrong:
        print("FAILED:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
