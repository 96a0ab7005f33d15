"""Runs every compile probe of tables/compile_probes.json through `anemone confirm --probe`.

    probes_test.py ANEMONE

A case passes if the verdict and layer are those of the probe and the message fits it, as the
probe's message_kind says. Prints how many of each group passed.
"""

import collections
import json
import re
import sys

from confirm import PROBES, confirm, pattern_of

# Probes that do not pass, with the reason.
NOT_MET = {}


def message_fits(expected, message):
    text, kind = expected["message"], expected["message_kind"]
    if text is None:
        return True
    if message is None:
        return False
    if kind == "substring":
        return text in message
    if kind == "prefix":
        return message.startswith(text)
    if kind == "suffix":
        return message.endswith(text)
    if kind == "format":
        # Sources quote both [%zd,%zd] and [%zd, %zd] (validators.json, Conv).
        return re.fullmatch(pattern_of(text).replace(",", ", ?"), message) is not None
    if kind == "elided":
        regex = expected.get("message_regex") or text.replace("<op>", ".+").replace("N", r"\d+")
        return re.search(regex, message) is not None
    return message == text  # exact, filled, token


def difference(expected, result):
    """How the result differs from the probe, or None."""
    if "error" in result:
        return f"error: {result['error']}"
    verdict = "accept" if result["verdict"] == "native" else "reject"
    if verdict != expected["verdict"]:
        return f"{result['verdict']} ({result['layer']}: {result['message']}, {result['rule']})"
    if result["layer"] != expected["layer"]:
        return f"layer {result['layer']}, want {expected['layer']} ({result['rule']})"
    if not message_fits(expected, result["message"]):
        return f"message {result['message']!r}, want {expected['message']!r}"
    return None


def main():
    probes = json.loads(PROBES.read_text())["compile"]
    results = confirm(sys.argv[1], PROBES)
    assert [r["id"] for r in results] == [p["id"] for p in probes], "results in another order"
    passed, total, wrong = collections.Counter(), collections.Counter(), 0
    texts = listed = 0
    for probe, result in zip(probes, results):
        total[probe["group"]] += 1
        why = difference(probe["expect"], result)
        listed += probe["expect"]["message"] is not None
        texts += why is None and probe["expect"]["message"] is not None
        if why is None:
            passed[probe["group"]] += 1
            if probe["id"] in NOT_MET:
                wrong += 1
                print(f"{probe['id']}: passes; remove it from NOT_MET")
        elif probe["id"] not in NOT_MET:
            wrong += 1
            print(f"{probe['id']}: {why}")
    for group in total:
        print(f"{group:16} {passed[group]:4} of {total[group]}")
    print(f"probes passed {sum(passed.values())} of {sum(total.values())}; "
          f"messages matched {texts} of {listed}")
    for name, why in NOT_MET.items():
        print(f"not met: {name}: {why}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
