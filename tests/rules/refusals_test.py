"""Every rule occurs: in a compile probe or in a case of tables/refusals.json.

    refusals_test.py ANEMONE

tables/refusals.json has cases in the form of `anemone confirm --probe`, each with the rule and the
message that are expected. A case with a "doubt" is accepted with the status `unknown` and a warning by
that rule. Counts the validators covered, and the rules and texts that occur, of all
that validators.json lists. Rules and texts that do not occur are listed below with the reason.
"""

import json
import re
import subprocess
import sys

from confirm import ENGINE_TABLES, PROBES, TABLES, confirm, pattern_of

# Rules that no case refuses by, with the reason.
NOT_MET = {
    "dynamic-goc-arch": "no target is known to lack the unit",
    "orion-output-live": "no call can name an output that does not exist (tests/engine)",
    "quant-dma-format": "no target's byte 0x52e is published",
    "transpose-extent": "the tensor's limit is the same and is checked first (C-transpose-extent)",
}

# Texts of validators.json that no refusal has, with the reason.
_COLLECTIVE = "collectives, shards and events are not units of a single program here"
_ENCODING = "about an encoding that no weight has here yet (compressed weights, E4M3)"
_OTHER_WORDS = "another quotation of a refusal that occurs"
_UNKNOWN = "its condition is not published"
_VALUE = "an invalid value of a key is an error of the file, reported before a unit is checked"
_NO_TEXT = "a note about a refusal, not a text of the compiler"
NOT_SAID = {
    "Not implemented": "the start of another text that occurs",
    "GetANEFModel: must re-compile": "a message of the running device, not of the compiler",
    "Must have 2 inputs when convert EW to GOC": "a check inside the compiler's own rewrite",
    "cannot be lowered as Flatten on ANE": "squeeze on families before A13, which have no MIL route",
    "Error: Invalid Common InFmt E4M3": _ENCODING,
    "E4M3Overflow is not supported": _ENCODING,
    "in [%u, %u] for e4m3 format": _ENCODING,
    "Architecture only supports lossless compression": _ENCODING,
    "CCDMA is not supported for this arch": _COLLECTIVE,
    "Input to inter-die AllReduce should be NEBypass": _COLLECTIVE,
    "AllReduce is currently not supported for architectures that do not support in-memory "
    "reductions": _COLLECTIVE,
    "Input tensor dimension must be divisible by the number of shards along the tensor "
    "dimension": _COLLECTIVE,
    "Kernel dimension must be divisible by number of shards": _COLLECTIVE,
    "This target does not allow sharding or SPMD functions": _COLLECTIVE,
    "DRAM Events not supported for architecture": _COLLECTIVE,
    "No tasklet for given architecture": _UNKNOWN,
    "4 or 5 bottoms must be present for SDPA": "of a later stage; the semantics check refuses first",
    "Mask Width axis must match K and V Channel axis or broadcastable": _OTHER_WORDS,
    "depth > 1 is not supported for MatMult inputs": _OTHER_WORDS,
    'Pooling mode "%s" is not available on this ANE architecture.': _UNKNOWN,
    "NE Input Transpose is not supported for this arch": _UNKNOWN,
    "both concat inputs must have the same layout": "every operand has one layout here",
    "(encoded assert, byte 0x818)": _NO_TEXT,
    "(encoded assert, byte 0x4f2)": _NO_TEXT,
    "(passes validation, code-generation reject)": _NO_TEXT,
    "(passes validation, not engine-native)": _NO_TEXT,
    "InvalidInputViewDimension": _VALUE,
    "InvalidUnitL2NormDimension": _VALUE,
    "Error: L2 norm output tensor format must be Float16": "every unit's output is fp16 here",
}

# Units whose number of bottoms differs from validators.json, with the reason.
OTHER_BOTTOMS = {
    "Conv": "a kernel computed at run time is a bottom (probe group conv-dynamic)",
    "MatrixMult": "a constant factor is a weight of the unit: packed once",
    "ScaledElementWise": "its text says 1 or 2",
}


def elided_pattern_of(text):
    """A printf pattern, some of whose text is omitted, as a regular expression."""
    regex = pattern_of(text).replace("<op>", ".+").replace(">=\\ N", r">= \d+")
    # [%zd,%zd] and [%zd, %zd] are quotations of the same text.
    return regex.replace(r"\.\.\.", ".*").replace(",\\ ", ", ?").replace(r"\ ", " ")


def texts_of(validators):
    """Every text of the table, once."""
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
        if "doubt" in want:
            doubts = {w["rule"]: w["source"] for w in answer.get("warnings", [])}
            if want["doubt"] not in doubts or answer["status"] != "unknown" \
                    or want.get("conflict", "") not in doubts[want["doubt"]]:
                wrong.append(f"{case['id']}: want the doubt {want}, got {answer}")
            continue
        if answer.get("rule") != want["rule"] or answer.get("message") != want["message"]:
            wrong.append(f"{case['id']}: want {want['rule']} ({want['message']}), got "
                         f"{answer.get('rule')} ({answer.get('message')}) {answer.get('error', '')}")
    answers += confirm(anemone, PROBES)
    said = {answer["message"] for answer in answers if answer.get("message")}
    met = {answer.get("rule") for answer in answers}
    met |= {w["rule"] for answer in answers for w in answer.get("warnings", [])}

    units = json.loads(subprocess.run([anemone, "units", "--json"], capture_output=True,
                                      text=True).stdout)
    rules = {rule["id"] for rule in units["rules"]}
    wrong += [f"rule {rule} occurs in no case" for rule in sorted(rules - met - set(NOT_MET))]
    wrong += [f"rule {rule} occurs; remove it from NOT_MET" for rule in sorted(met & set(NOT_MET))]

    validators = json.loads((ENGINE_TABLES / "validators.json").read_text())
    texts = texts_of(validators)
    matched = [text for text in texts
               if any(re.fullmatch(elided_pattern_of(text), one) for one in said)]
    for text in texts:
        if (text in matched) == (text in NOT_SAID):
            wrong.append(f"text {text!r}: " + ("occurs; remove it from NOT_SAID" if text in matched
                                              else "does not occur"))

    counts = {unit["type"]: unit["bottoms"] for unit in units["units"]}
    covered = 0
    for row in validators["validators"]:
        bottoms, want = counts.get(row["layer"]), row["bottoms"]
        same = bottoms == {"least": want["min"], "most": want["max"]}
        covered += bottoms is not None
        if not bottoms or same == (row["validator"] in OTHER_BOTTOMS):
            wrong.append(f"validator {row['validator']}: want {want}, got {bottoms}")

    print(f"validators covered {covered} of {len(validators['validators'])}")
    print(f"rules met {len(rules & met)} of {len(rules)}")
    print(f"reject strings matched {len(matched)} of {len(texts)}")
    for name, why in {**NOT_MET, **NOT_SAID}.items():
        print(f"not met: {name}: {why}")
    for name, why in OTHER_BOTTOMS.items():
        print(f"other bottoms: {name}: {why}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
