"""Every rule is said by somebody: a probe, or a case of tables/refusals.json.

    refusals_test.py ANEMONE

tables/refusals.json holds cases as `anemone confirm --probe` takes them, each with the rule and the
words that must come. Counts validators covered, rules and texts met, each out of all that
validators.json lists; what is not met is named below with its reason.
"""

import json
import pathlib
import re
import subprocess
import sys

TABLES = pathlib.Path(__file__).parent / "tables"
VALIDATORS = pathlib.Path(__file__).parents[2] / "engine" / "tables" / "validators.json"

# Rules that no case meets, with the reason.
NOT_MET = {}

# Texts of validators.json that no rule says, with the reason.
NOT_SAID = {}


def confirm(anemone, path):
    done = subprocess.run([anemone, "confirm", "--probe", str(path), "--json"],
                          capture_output=True, text=True)
    return json.loads(done.stdout)["results"]


def pattern_of(text):
    """A printf pattern, or an elided text, as a regular expression."""
    regex = re.sub(r"%(?:zd|zu|d|u|s)", ".+", re.escape(text).replace(r"\%", "%"))
    return regex.replace(r"\.\.\.", ".*").replace(r"\ ", " ")


def texts_of(validators):
    """Every text of the table, and whether it is what a compiler prints."""
    texts = [row["string"] for row in validators["frontend_and_network_rejects"]]
    texts += [row["string"] for row in validators["codegen_messages"]]
    for row in validators["validators"]:
        texts += [said["string"] for said in row["reject_strings"] + row["codegen_rejections"]
                  if "string" in said]
    return list(dict.fromkeys(texts))


def main():
    anemone = sys.argv[1]
    cases = json.loads((TABLES / "refusals.json").read_text())["compile"]
    answers = confirm(anemone, TABLES / "refusals.json")
    wrong = []
    for case, answer in zip(cases, answers):
        want = case["expect"]
        if answer.get("rule") != want["rule"] or answer.get("message") != want["message"]:
            wrong.append(f"{case['id']}: want {want['rule']} ({want['message']}), got "
                         f"{answer.get('rule')} ({answer.get('message')}) {answer.get('error', '')}")
    answers += confirm(anemone, TABLES / "compile_probes.json")
    said = {answer["message"] for answer in answers if answer.get("message")}
    met = {answer.get("rule") for answer in answers}

    units = json.loads(subprocess.run([anemone, "units", "--json"], capture_output=True,
                                      text=True).stdout)
    rules = {rule["id"] for rule in units["rules"]}
    wrong += [f"rule {rule} is met by no case" for rule in sorted(rules - met - set(NOT_MET))]
    wrong += [f"rule {rule} is met; take it off the list" for rule in sorted(met & set(NOT_MET))]

    validators = json.loads(VALIDATORS.read_text())
    texts = texts_of(validators)
    matched = [text for text in texts
               if any(re.fullmatch(pattern_of(text), one) for one in said)]
    for text in texts:
        if (text in matched) == (text in NOT_SAID):
            wrong.append(f"text {text!r}: " + ("is said; take it off the list" if text in matched
                                              else "nobody says it"))

    counts = {unit["type"]: unit["bottoms"] for unit in units["units"]}
    covered = 0
    for row in validators["validators"]:
        bottoms = counts.get(row["layer"])
        want = row["bottoms"]
        fits = bottoms and bottoms["least"] == want["min"] and (
            bottoms["most"] == want["max"] or row["layer"] == "Conv")  # + a kernel made at run time
        covered += bool(fits)
        if not fits:
            wrong.append(f"validator {row['validator']}: want {want}, got {bottoms}")

    print(f"validators covered {covered} of {len(validators['validators'])}")
    print(f"rules met {len(rules & met)} of {len(rules)}")
    print(f"reject strings matched {len(matched)} of {len(texts)}")
    for name, why in {**NOT_MET, **NOT_SAID}.items():
        print(f"not met: {name}: {why}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
