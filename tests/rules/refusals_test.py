"""Every rule is said by somebody: a probe, or a case of tables/refusals.json.

    refusals_test.py ANEMONE

tables/refusals.json holds cases as `anemone confirm --probe` takes them, each with the rule and the
words that must come. Counts validators covered, rules and texts met, each out of all that
validators.json lists; what is not met is named below with its reason.
"""

import json
import re
import subprocess
import sys

from confirm import ENGINE_TABLES, PROBES, TABLES, confirm, pattern_of

# Rules that no case meets, with the reason.
NOT_MET = {
    "dropout-random": "an ONNX Dropout alone says it (tests/kernels/units/input_view_test.cc)",
    "dynamic-goc-arch": "no target is known to lack the unit",
    "orion-output-live": "no call can name an output that is not there (tests/engine)",
    "quant-dma-format": "no target's byte 0x52e is published",
    "transpose-extent": "the tensor's own cap is the same and asked first (C-transpose-extent)",
}

# Texts of validators.json that no rule says, with the reason.
_COLLECTIVE = "collectives, shards and events are no units of a single program here"
_ENCODING = "of an encoding that no weight has here yet (compressed weights, E4M3)"
_OTHER_WORDS = "another quotation of a refusal that is said"
_UNKNOWN = "its condition is not published"
_VALUE = "a value that is none of its key's is an error of the file, told before a unit is asked"
_NO_TEXT = "a note about a refusal, no text of the compiler's"
NOT_SAID = {
    "Not implemented": "the start of another text that is said",
    "GetANEFModel: must re-compile": "a running device says it, not a compiler",
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
    "4 or 5 bottoms must be present for SDPA": "of a later stage; the semantics check speaks first",
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

# Units that take other numbers of bottoms than validators.json has, with the reason.
OTHER_BOTTOMS = {
    "Conv": "a kernel made at run time is a bottom (probe group conv-dynamic)",
    "MatrixMult": "a constant factor is a weight of the unit: packed once",
    "ScaledElementWise": "its text says 1 or 2",
}


def elided_pattern_of(text):
    """A printf pattern, with parts of the text left out, as a regular expression."""
    regex = pattern_of(text).replace("<op>", ".+").replace(">=\\ N", r">= \d+")
    # [%zd,%zd] and [%zd, %zd] are quotations of one text.
    return regex.replace(r"\.\.\.", ".*").replace(",\\ ", ", ?").replace(r"\ ", " ")


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
    answers += confirm(anemone, PROBES)
    said = {answer["message"] for answer in answers if answer.get("message")}
    met = {answer.get("rule") for answer in answers}

    units = json.loads(subprocess.run([anemone, "units", "--json"], capture_output=True,
                                      text=True).stdout)
    rules = {rule["id"] for rule in units["rules"]}
    wrong += [f"rule {rule} is met by no case" for rule in sorted(rules - met - set(NOT_MET))]
    wrong += [f"rule {rule} is met; take it off the list" for rule in sorted(met & set(NOT_MET))]

    validators = json.loads((ENGINE_TABLES / "validators.json").read_text())
    texts = texts_of(validators)
    matched = [text for text in texts
               if any(re.fullmatch(elided_pattern_of(text), one) for one in said)]
    for text in texts:
        if (text in matched) == (text in NOT_SAID):
            wrong.append(f"text {text!r}: " + ("is said; take it off the list" if text in matched
                                              else "nobody says it"))

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
