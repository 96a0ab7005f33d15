"""Texts for users are true and complete: rules, warnings, hazards and device limits.

    remedies_test.py ANEMONE

- Each rule has a condition, which reports show, and a remedy.
- If a remedy names targets ("a target from A14 (M2) on"), the cases of the tables that the rule
  refuses are not refused by it on any of these targets, and the product is of that family.
- No text cites a source: the `source` of its row does.
"""

import json
import pathlib
import re
import subprocess
import sys

from confirm import ENGINE_TABLES, PROBES, TABLES, confirm, confirm_all

ROOT = pathlib.Path(__file__).parents[2]
FROM = re.compile(r"target from (A\d+) \((M\d+)\) on")
CITATION = re.compile(r"\b(?:conflicts|netplist|device|enums|orion|validators|numerics|targets|"
                      r"hidden_layers|compiler_texts|op_matrix|cost)\.(?:md|json)\b"
                      r"|\bch\d+\b|\bapp[A-E]\b|\bC-[a-z0-9]+-[a-z0-9]|\bseed \d|\bguide\b|\bOrion\b")
FOLDERS = ("engine", "kernels", "importer", "partitioner", "fallback", "provider", "tools/command")


def texts_of_tables(rules):
    """(where, text) of each text that the tables show."""
    for rule in rules:
        for key in ("message", "condition", "remedy"):
            yield f"rule {rule['id']}, {key}", rule[key] or ""
    for name, lists in (("warnings", ("warnings", "device_rules")), ("hazards", ("hazards",)),
                        ("device_limits", ("limits",))):
        table = json.loads((ENGINE_TABLES / f"{name}.json").read_text())
        for row in (row for part in lists for row in table[part]):
            for key in ("words", "remedy", "answer"):
                yield f"{name}.json {row['id']}, {key}", row.get(key) or ""


def texts_of_code():
    """(file, literal) of each string literal in C++. Adjacent literals are one."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.cc")) + sorted((ROOT / folder).rglob("*.h")):
            code = re.sub(r"(?m)(^|\s)//.*|^#include.*", "", path.read_text())
            code = re.sub(r'"\s*\n\s*"', "", code)
            for literal in re.findall(r'"((?:[^"\\\n]|\\.)*)"', code):
                yield str(path.relative_to(ROOT)), literal


def named_targets(anemone, rules):
    """Remedies that name targets which refuse by the same rule, and how many cases were tried."""
    targets = json.loads(subprocess.run([anemone, "targets", "--json"], capture_output=True,
                                        text=True).stdout)["targets"]
    order = {target["family"]: target["family_index"] for target in targets if target["family"]}
    product_family = {product: target["family"] for target in targets
                      for product in (target["products"] or "").split(", ")}
    remedies = {rule["id"]: FROM.search(rule["remedy"] or "") for rule in rules}
    asked, wrong = [], []
    for rule, named in remedies.items():
        if named and product_family.get(named[2]) != named[1]:
            wrong.append(f"rule {rule}: {named[2]} is not of family {named[1]}")
    for path in (TABLES / "refusals.json", PROBES):
        cases = json.loads(path.read_text())["compile"]
        for case, answer in zip(cases, confirm(anemone, path)):
            named = remedies.get(answer.get("rule"))
            if not named:
                continue
            asked += [(answer["rule"], dict(case, target=target["target"]))
                      for target in targets
                      if target["family"] and target["family_index"] >= order[named[1]]]
    answers = confirm_all(anemone, {"compile": [case for _, case in asked]})
    wrong += [f"rule {rule} refuses {case['id']} on {case['target']} too, which its remedy names"
              for (rule, case), answer in zip(asked, answers) if answer.get("rule") == rule]
    return wrong, len(asked)


def main():
    anemone = sys.argv[1]
    rules = json.loads(subprocess.run([anemone, "units", "--json"], capture_output=True,
                                      text=True).stdout)["rules"]
    wrong = [f"rule {rule['id']} has no {key}" for rule in rules for key in ("condition", "remedy")
             if not rule[key]]
    texts = [*texts_of_tables(rules), *texts_of_code()]
    wrong += [f"{where}: cites a source: {text}" for where, text in texts if CITATION.search(text)]
    refused, tried = named_targets(anemone, rules)
    wrong += refused
    print(f"{len(rules)} rules, {len(texts)} texts, {tried} cases on targets that a remedy names")
    print("\n".join(wrong))
    return 1 if wrong or len(rules) < 100 or len(texts) < 1000 or tried < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
