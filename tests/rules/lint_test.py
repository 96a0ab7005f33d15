"""`anemone confirm` gives the warnings of tables/compile_probes.json and of Orion's constraints.

    lint_test.py ANEMONE
"""

import json
import sys

from confirm import ENGINE_TABLES, PROBES, confirm_all

# The expected rule of a probe's warning, by words of the probe's text.
RULES = {"exactly 2097152": "matmul-working-set", "above 2097152": "working-set",
         "does not divide": "groups-cores", "granule": "width-granule"}
# The rules that must not warn if the probe expects no warning, by the start of its id.
SUBJECTS = {"ws": {"working-set", "matmul-working-set"}, "groups": {"groups-cores"},
            "width": {"width-granule"}, "reduce": set()}
# Orion's constraints that are warnings on route mil: number, operation, inputs, attributes, rule.
ORION = [
    (1, "concat", [[1, 4, 4, 4], [1, 4, 4, 4]], {"axis": 1}, "orion-concat"),
    (2, "add", [[1, 4, 4, 4], [1, 1, 1, 4]], {}, "orion-surface-size"),
    (4, "relu", [[1, 4, 4, 4]], {}, "orion-surface-floor"),
    (10, "gelu", [[1, 4, 4, 4]], {}, "orion-gelu"),
    (13, "conv", [[1, 8, 8, 8]], {"weight": {"shape": [8, 8, 1, 1], "dtype": "fp16"},
                                  "bias": {"shape": [8], "dtype": "fp16"}}, "orion-conv-bias"),
    (3, "add", [[1, 64, 24, 16], [1, 64, 24, 16]], {"names": ["b", "a"]}, "orion-port-order"),
    (6, "scaled_dot_product_attention", [[1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 4, 8], [1, 1, 4, 4]],
     {}, "orion-sdpa-mask"),
    (16, "conv", [[1, 32000, 1, 1]],
     {"weight": {"shape": [8, 32000, 1, 1], "dtype": "fp16"}}, "orion-32k-channels"),
    (17, "linear", [[4, 64]], {"weight": {"shape": [8, 64], "dtype": "fp16"}},
     "linear-as-convolution"),
]


def rule_of(text):
    return next(rule for words, rule in RULES.items() if words in text)


def case(name, target, op, inputs, attributes):
    return {"id": name, "target": target, "route": "mil", "op": op, "inputs": inputs,
            "attrs": attributes}


def orion_rows():
    """The rows of our tables for each of Orion's constraints: {number: [(kind, id)]}."""
    rows = {}
    warnings = json.loads((ENGINE_TABLES / "warnings.json").read_text())
    rules = json.loads((ENGINE_TABLES / "rules" / "orion.json").read_text())["rules"]
    for kind, table in (("warning", warnings["warnings"]),
                        ("device rule", warnings["device_rules"]), ("verdict", rules)):
        for row in table:
            for number in row.get("orion", []):
                rows.setdefault(number, []).append((kind, row["id"]))
    return rows


def main():
    orion = orion_rows()
    assert sorted(orion) == list(range(1, 21)), "every constraint of Orion must have a row"
    for number, found in sorted(orion.items()):
        assert len(found) == 1, f"Orion {number}: {found}"
        print(f"orion {number:2}: {found[0][0]} {found[0][1]}")
    tested = {rule for *_, rule in ORION}
    untested = {name for ((kind, name),) in orion.values() if kind == "warning"} - tested
    assert not untested, f"no case for {untested}"
    lints = json.loads(PROBES.read_text())["lint"]
    cases, wanted = [], []
    for lint in lints:
        attributes = {k: v for k, v in lint["attrs"].items() if k != "route"}
        inputs = list(lint["inputs"])
        if lint["op"] == "matmul":  # MIL has it as the second argument
            inputs.append({**attributes.pop("weight"), "role": "const"})
        cases.append(case(lint["id"], lint["target"], lint["op"], inputs, attributes))
        text = lint["expect"]["warning"]
        wanted.append(SUBJECTS[lint["id"].split("-")[0]] if text is None else rule_of(text))
    for number, op, shapes, attributes, rule in ORION:
        attributes = dict(attributes)
        names = attributes.pop("names", "abcd")
        inputs = [{"name": names[i], "shape": shape, "dtype": "fp16"}
                  for i, shape in enumerate(shapes)]
        cases.append(case(f"orion-{number}", "H16", op, inputs, attributes))
        wanted.append(rule)
    results = confirm_all(sys.argv[1], cases)
    wrong = 0
    for result, want in zip(results, wanted):
        said = {w["rule"] for w in result.get("warnings", [])}
        fits = want in said if isinstance(want, str) else not said & want
        if result.get("verdict") != "native" or not fits:
            wrong += 1
            print(f"{result['id']}: want {want if isinstance(want, str) else 'nothing'}, got {result.get('verdict')} {said} "
                  f"{result.get('error', '')}")
    print(f"warnings as expected: {len(results) - wrong} of {len(results)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
