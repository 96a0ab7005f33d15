"""Turns engine/tables/numerics.json into numerics.h and numerics.cc.

A rule whose sources allow several readings becomes an enum and a field of `Numerics`. The values of
the fields are written for every family.

Usage: generate_numerics.py NUMERICS_JSON OUTPUT_DIR. Standard library only.
"""

import json
import pathlib
import re
import sys

# A family without a profile computes like the oldest family that was measured.
OLDEST_PROFILE = "A13"


def camel(name):
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))


def open_rules(data):
    return [rule for section in data["sections"].values() for rule in section
            if rule.get("underdetermined")]


def families_of(data, rule_id):
    return next(rule["families"] for section in data["sections"].values() for rule in section
                if rule["id"] == rule_id)


def profile_of(data, family):
    profile = data["profiles"].get(family, "as " + OLDEST_PROFILE)
    return profile if isinstance(profile, dict) else profile_of(data, profile.split()[-1])


def options_of(data, family, rules):
    """rule id -> option, for one family."""
    profile = profile_of(data, family)
    chosen = {}
    for rule in rules:
        ids = [option["id"] for option in rule["options"]]
        value = rule.get("default_by_family", {}).get(family, rule["default"])
        for name, parameter in data["parameters"].items():
            if parameter["rule"] == rule["id"] and profile[name] in ids:
                if family in data["profiles"] or family not in rule.get("default_by_family", {}):
                    value = profile[name]
        if value not in ids:
            sys.exit(f"numerics: {rule['id']}: {value!r} is not one of {ids}")
        chosen[rule["id"]] = value
    return chosen


def main():
    data = json.loads(pathlib.Path(sys.argv[1]).read_text())
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    rules = open_rules(data)

    header = ["// Generated from engine/tables/numerics.json. Do not edit.", "#pragma once", "",
              "#include <cstdint>", "", '#include "absl/strings/string_view.h"',
              '#include "absl/types/span.h"', "", "namespace anemone::math {", ""]
    for rule in rules:
        header.append(f"// {rule['id']}: {rule['what']}")
        header.append(f"enum class {camel(rule['id'])} : uint8_t {{")
        for option in rule["options"]:
            header.append(f"  k{camel(option['id'])},  // {option['rule']}")
        header += ["};", ""]
    header += ["// How a family computes where the sources leave it open: the option taken, by rule.",
               "struct Numerics {"]
    header += [f"  {camel(r['id'])} {r['id'].replace('-', '_')};" for r in rules]
    header += ["  int width_slice_gain;  // sat-wslice; 1: a slice is a copy",
               "  bool computes_broadcast;  // mov-legacy-broadcast", "};", "",
               "// A rule with its options, to be named in tests and on the command line.",
               "struct NumericsRule {", "  const char* id;", "  const char* what;",
               "  absl::Span<const char* const> options;",
               "  uint8_t (*get)(const Numerics&);", "  void (*set)(Numerics&, uint8_t);", "};",
               "absl::Span<const NumericsRule> NumericsRules();", "",
               f"// By targets.json's family (\"A13\"); any other name is as {OLDEST_PROFILE}.",
               "const Numerics& NumericsOf(absl::string_view family);", "",
               "}  // namespace anemone::math", ""]
    (out / "numerics.h").write_text("\n".join(header))

    body = ["// Generated from engine/tables/numerics.json. Do not edit.", '#include "numerics.h"',
            "", "namespace anemone::math {", "namespace {", "", "struct Family {",
            "  const char* name;", "  Numerics numerics;", "};", "",
            "constexpr Family kFamilies[] = {"]
    families = [f["family"] for f in data["families"] if f["family"] != "unknown"]
    families.sort(key=lambda name: name != OLDEST_PROFILE)
    for family in families:
        chosen = options_of(data, family, rules)
        values = [f"{camel(r)}::k{camel(o)}" for r, o in chosen.items()]
        values.append(str(profile_of(data, family)["wslice_gain"]))
        values.append("true" if family in families_of(data, "mov-legacy-broadcast") else "false")
        body.append(f'    {{"{family}", {{{", ".join(values)}}}}},')
    body.append("};")
    for rule in rules:
        names = ", ".join(f'"{o["id"]}"' for o in rule["options"])
        body.append(f"constexpr const char* k{camel(rule['id'])}Options[] = {{{names}}};")
    body.append("constexpr NumericsRule kRules[] = {")
    for rule in rules:
        field, kind = rule["id"].replace("-", "_"), camel(rule["id"])
        body.append(f'    {{"{rule["id"]}", {json.dumps(rule["what"])}, k{kind}Options,')
        body.append(f"     [](const Numerics& n) {{ return static_cast<uint8_t>(n.{field}); }},")
        body.append(f"     [](Numerics& n, uint8_t o) {{ n.{field} = static_cast<{kind}>(o); }}}},")
    body += ["};", "", "}  // namespace", "",
             "absl::Span<const NumericsRule> NumericsRules() { return kRules; }", "",
             "const Numerics& NumericsOf(absl::string_view family) {",
             "  for (const Family& row : kFamilies) {",
             "    if (family == row.name) return row.numerics;", "  }",
             "  return kFamilies[0].numerics;", "}", "", "}  // namespace anemone::math", ""]
    (out / "numerics.cc").write_text("\n".join(body))


if __name__ == "__main__":
    main()
