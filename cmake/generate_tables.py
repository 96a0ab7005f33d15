"""Turns engine/tables/*.json into C++ tables. Standard library only.

Usage: generate_tables.py TABLES_DIR OUTPUT_DIR
       generate_tables.py --outputs

The second form prints the names of the files that the first one writes, for CMake. TABLES, at the end
of this file, lists them by function; the targets have target_tables.py: target_fields.h (enums of HAL
limits and capability bytes), target_table.cc (the targets),
rule_table.h and rule_table.cc (the refusals), warning_table.h and .cc (the design rules),
netplist_table.cc (the forms of unit types), hidden_layer_table.cc (the catalogue),
device_limit_table.h and .cc (run-time limits of the device), apple_fact_table.h and .cc (the
interface of the device on macOS), hazard_table.h and .cc (where values leave the range of fp16),
cost_table.cc (rates), mil_operation_table.cc (operations of Core ML), table_hash.cc (a hash of all
tables). A rule of rules/*.json names the fact it rests on. The build fails if the rule's "words" are
not found in validators.json or
compiler_texts.json, so a text of ours cannot pass for one of the engine's. "when" is the condition in
our words: it replaces the condition of the table, and users see it where no message is known.

A row also has the numbers that code compares with. "limit" and "values" must stand in the row's fact
or "when", or the row gives a "limit_source". "family" is the first family that the rule does not
refuse, "families" says it by operation, and with "seen_to" the status is `predicted` for later
families; each needs a "family_source".
"""

import hashlib
import json
import pathlib
import re
import sys

from table_text import STATUSES, camel, initializer, quoted, status_enum, write
from target_tables import write_targets


def pattern_of(rule, message):
    """The rule's printf pattern, for a message that the table quotes with the values of one case."""
    pattern = rule.get("pattern")
    if pattern is None:
        return message
    values = re.sub(r"%(?:s|d|zd|zu)", "(.+)", re.escape(pattern).replace(r"\%", "%"))
    if re.fullmatch(values, message) is None:
        sys.exit(f"rules: rule '{rule['id']}': the pattern does not give {message!r}")
    return pattern


def find_fact(rule, validators, texts, targets, orion):
    """(message, condition, source, status) of the table row that a rule rests on."""
    where = rule["table"]
    if where == "targets":  # a limit of the HAL record: its message is not known
        row = targets["field_defs"][rule["words"]]
        return None, rule.get("when") or row["meaning"], row["source"], "decompile-derived"
    if where == "parser_reject":
        row = validators["parser_reject"]
        return row["string"], row["when"], row["source"], "decompile-derived"
    if where == "unpublished":  # no source says what the engine does
        return None, rule["when"], rule["source"], "unknown"
    if where == "bottoms":  # the limit is in the kind's UnitRow
        return None, rule["when"], "validators.json, bottoms (guide ch22)", "decompile-derived"
    if where == "orion":
        row = next(r for r in orion["constraints"] if r["id"] == rule["orion"][0])
        return row["message"], row["rule"], row["source"], row["status"]
    if where.startswith("ct-"):
        row = next(r for r in texts["texts"] if r["id"] == where)
        return row["text"], row.get("condition"), row["source"], row["status"]
    if where in ("frontend_and_network_rejects", "codegen_messages", "rules_without_text"):
        key = "rule" if where == "rules_without_text" else "string"
        row = next(r for r in validators[where] if r[key] == rule["words"])
        message = row.get("message") if key == "rule" else row["string"]
        if row.get("kind", "").startswith("template"):  # the operation's name and a family index
            message = message.replace("<op>", "%s").replace(">= N", ">= %d")
        return message, row.get("rule") or row.get("note"), row["source"], row["status"]
    validator = next(v for v in validators["validators"] if v["validator"] == where)
    source, status = validator["source"], validator["status"]
    for row in validator["reject_strings"]:
        if row["string"] == rule["words"]:
            return row["string"], rule.get("when"), row.get("source", source), status
    for row in validator["codegen_rejections"]:
        if row["condition"] == rule["words"]:
            return (row["message"], row["condition"], row.get("source", source),
                    row.get("status", status))
    for kind in ("constraints", "gates", "family_differences"):
        for row in validator[kind]:
            if rule["words"] in (row.get("expr"), row.get("why"), row.get("note")):
                return None, rule["words"], row.get("source", source), row.get("status", status)
    raise LookupError


def families_of(targets):
    """Family -> index."""
    return {row["family"]: row["family_index"] for row in targets["targets"] if row["family"]}


def numbers_of(row, texts):
    """The initializers of `limit` and `values`, by field. A number stands in one of the row's
    texts, or the row names another source of it."""
    numbers = ([row["limit"]] if "limit" in row else []) + row.get("values", [])
    text = " ".join(filter(None, texts))
    for number in numbers:
        if "limit_source" not in row and not re.search(rf"(?<![\d.]){number}(?!\d|\.\d)", text):
            sys.exit(f"'{row['id']}': {number} is not in its text: give a limit_source")
    return {"limit": str(row["limit"]) if "limit" in row else None,
            "values": f"{camel(row['id'])}Values" if "values" in row else None}


def floors_of(row, families):
    """The initializers of `family`, `families` and `seen_to`, by field."""
    has_family = any(field in row for field in ("family", "families", "seen_to"))
    if has_family != ("family_source" in row):
        sys.exit(f"'{row['id']}': a family and its family_source belong together")
    floor = {field: f"Family{{{families[row[field]]}}}" if field in row else None
             for field in ("family", "seen_to")}
    return {"family": floor["family"],
            "families": f"{camel(row['id'])}Families" if "families" in row else None,
            "seen_to": floor["seen_to"]}


def arrays_of(row, families):
    """The arrays that the initializers of a row name."""
    name = camel(row["id"])
    if "values" in row:
        yield f"constexpr int64_t {name}Values[] = {{{', '.join(map(str, row['values']))}}};"
    if "families" in row:
        floors = ", ".join(f"{{{quoted(operation)}, Family{{{families[family]}}}}}"
                           for operation, family in row["families"].items())
        yield f"constexpr OperationFamily {name}Families[] = {{{floors}}};"


def write_rules(tables, out):
    validators = json.loads((tables / "validators.json").read_text())
    texts = json.loads((tables / "compiler_texts.json").read_text())
    targets = json.loads((tables / "targets.json").read_text())
    orion = json.loads((tables / "orion.json").read_text())
    families = families_of(targets)
    rules = [rule for file in sorted((tables / "rules").glob("*.json"))
             for rule in json.loads(file.read_text())["rules"]]
    seen = set()
    header = ["// Generated from engine/tables/rules/. Do not edit.", "#pragma once", "",
              '#include "engine/rule.h"', "", "namespace anemone::rule {", ""]
    body = ["// Generated from engine/tables/rules/. Do not edit.", '#include "rule_table.h"', "",
            "namespace anemone::rule {", ""]
    names = []
    for rule in rules:
        if rule["id"] in seen:
            sys.exit(f"rules: id '{rule['id']}' is used twice")
        seen.add(rule["id"])
        try:
            message, condition, source, status = find_fact(rule, validators, texts, targets,
                                                           orion)
        except (LookupError, StopIteration):
            sys.exit(f"rules: rule '{rule['id']}': no row of '{rule['table']}' holds "
                     f"{rule.get('words')!r}")
        if message is not None:
            message = pattern_of(rule, message)
        if rule.get("wordless"):  # the row's text belongs to another case: only its condition is used
            message = None
        name = camel(rule["id"])
        names.append(name)
        header.append(f"extern const Rule {name};")
        body += arrays_of(rule, families)
        if "conflict" in rule:
            source, status = f"{source}; conflicts.md {rule['conflict']}", "unknown"
        said = [message, condition, rule.get("words"), rule.get("when")]
        fields = {"id": quoted(rule["id"]), "layer": f"Layer::{camel(rule['layer'])}",
                  "message": quoted(message),
                  "condition": quoted(rule.get("when") or condition or ""),
                  "source": quoted(source), "status": status_enum(status),
                  "remedy": quoted(rule.get("remedy")), **numbers_of(rule, said),
                  **floors_of(rule, families), "conflict": quoted(rule.get("conflict"))}
        body.append(f"const Rule {name} = {{{initializer(fields)}}};")
    body += ["", "}  // namespace anemone::rule", "", "namespace anemone {", "",
             "absl::Span<const Rule* const> AllRules() {",
             "  static constexpr const Rule* kAll[] = {" + ", ".join("&rule::" + n for n in names)
             + "};", "  return kAll;", "}", "", "}  // namespace anemone", ""]
    header += ["", "}  // namespace anemone::rule", ""]
    write(out / "rule_table.h", "\n".join(header))
    write(out / "rule_table.cc", "\n".join(body))


def write_warnings(tables, out):
    """warning_table.h and .cc: the design rules. Their texts are ours."""
    table = json.loads((tables / "warnings.json").read_text())
    families = families_of(json.loads((tables / "targets.json").read_text()))
    header = ["// Generated from engine/tables/warnings.json. Do not edit.", "#pragma once", "",
              '#include "engine/warning.h"', "", "namespace anemone::warning {", ""]
    body = ["// Generated from engine/tables/warnings.json. Do not edit.",
            '#include "warning_table.h"', "", "namespace anemone::warning {", ""]
    for row in table["warnings"] + table["device_rules"]:
        if row["status"] not in STATUSES or not row["source"]:
            sys.exit(f"warnings: '{row['id']}' lacks a source or a status")
        name = camel(row["id"])
        header.append(f"extern const WarningRule {name};")
        body += arrays_of(row, families)
        fields = {"id": quoted(row["id"]), "words": quoted(row["words"]),
                  "source": quoted(row["source"]), "status": status_enum(row["status"]),
                  "remedy": quoted(row["remedy"]),
                  "of_kind": "true" if row.get("of_kind") else None,
                  **numbers_of(row, [row["words"]]), **floors_of(row, families)}
        body.append(f"const WarningRule {name} = {{{initializer(fields)}}};")
    header += ["", "}  // namespace anemone::warning", ""]
    body += ["", "}  // namespace anemone::warning", "", "namespace anemone {", ""]
    for function, rows in (("AllWarnings", "warnings"), ("DeviceRules", "device_rules")):
        names = ", ".join(f"&warning::{camel(row['id'])}" for row in table[rows])
        body += [f"absl::Span<const WarningRule* const> {function}() {{",
                 f"  static constexpr const WarningRule* kAll[] = {{{names}}};", "  return kAll;",
                 "}"]
    body += ["", "}  // namespace anemone", ""]
    write(out / "warning_table.h", "\n".join(header))
    write(out / "warning_table.cc", "\n".join(body))


def seen_names(row, body):
    """The C++ name of the values that a type's keys were seen with."""
    lists = []
    for key, names in row.get("names", {}).items():
        if key not in row["keys"]:
            sys.exit(f"netplist_forms: {row['type']} has no key '{key}'")
        body.append(f"Keys k{row['type']}{key}Names[] = {{{', '.join(map(quoted, names))}}};")
        lists.append(f"{{{quoted(key)}, k{row['type']}{key}Names}}")
    if not lists:
        return "{}"
    body.append(f"const SeenNames k{row['type']}Names[] = {{{', '.join(lists)}}};")
    return f"k{row['type']}Names"


def seen_extents(row, field, body):
    """The C++ name of the extents that a type was seen with."""
    lists = []
    for axis, extents in row.get(field, {}).items():
        name = f"k{row['type']}{camel(field)[1:]}{axis}"
        body.append(f"const int64_t {name}[] = {{{', '.join(map(str, extents))}}};")
        lists.append(f"{{Axis::k{'N' if axis == 'Batch' else axis[0]}, {name}}}")
    if not lists:
        return "{}"
    name = f"k{row['type']}{camel(field)[1:]}"
    body.append(f"const SeenExtents {name}[] = {{{', '.join(lists)}}};")
    return name


def write_forms(tables, out):
    """netplist_table.cc: which keys a unit type's netplist form has."""
    rows = json.loads((tables / "netplist_forms.json").read_text())["forms"]
    body = ["// Generated from engine/tables/netplist_forms.json. Do not edit.",
            '#include "engine/formats/netplist_form.h"', "", "namespace anemone {", "namespace {", "",
            "using Keys = const char* const;"]
    table = []
    for row in rows:
        spans = []
        for field in ("keys", "unverified_keys", "unit_keys"):
            keys = row.get(field, [])
            name = f"k{row['type']}{camel(field)[1:]}"
            if keys:
                body.append(f"Keys {name}[] = {{{', '.join(map(quoted, keys))}}};")
            spans.append(name if keys else "{}")
        seen = seen_names(row, body)
        extents = [seen_extents(row, field, body) for field in ("seen_in", "seen_out")]
        table.append(f"    {{{quoted(row['type'])}, "
                     f"FormStatus::{'kKnown' if row['form'] == 'known' else 'kUnverified'}, "
                     f"{', '.join(spans)}, {str(row.get('omits_channels', False)).lower()}, "
                     f"{quoted(row['source'])}, {seen}, {', '.join(extents)}}},")
    body += ["", "const NetplistForm kForms[] = {", *table, "};", "", "}  // namespace", "",
             "absl::Span<const NetplistForm> AllNetplistForms() { return kForms; }", "",
             "}  // namespace anemone", ""]
    write(out / "netplist_table.cc", "\n".join(body))


def operands_of(row):
    """(name, layout) of each bottom. Additional units list their forms as text, the longest last."""
    if all(isinstance(operand, dict) for operand in row["operands"]):
        return [(operand["name"], operand["layout"]) for operand in row["operands"]]
    names, _, layout = row["operands"][-1].partition(": ")
    return [(name, layout) for name in names.split(", ")]


def write_hidden_layers(tables, out):
    """hidden_layer_table.cc: the layers that no converter emits, one row for each type."""
    data = json.loads((tables / "hidden_layers.json").read_text())
    body = ["// Generated from engine/tables/hidden_layers.json. Do not edit.",
            '#include "engine/hidden_layer.h"', "", "namespace anemone {", "namespace {", ""]
    table = []
    for row in data["layers"] + data["additional_units"]:
        name = f"k{row['type']}Operands"
        body.append(f"constexpr HiddenOperand {name}[] = {{" + ", ".join(
            f"{{{quoted(operand)}, {quoted(layout)}}}" for operand, layout in operands_of(row))
            + "};")
        table.append(f"    {{{quoted(row['type'])}, {quoted(row.get('layer_kind', row.get('what')))}, "
                     f"{name}, {quoted(row.get('output_shape', ''))}, "
                     f"{quoted(row.get('semantics', ''))}, {quoted(row['source'])}, "
                     f"{quoted(row['status'])}}},")
    body += ["", "constexpr HiddenLayer kLayers[] = {", *table, "};", "", "}  // namespace", "",
             "absl::Span<const HiddenLayer> HiddenLayers() { return kLayers; }", "",
             "}  // namespace anemone", ""]
    write(out / "hidden_layer_table.cc", "\n".join(body))


def write_rows(out, name, cpp_type, namespace, header_of_type, rows, tail=()):
    """NAME.h and NAME.cc: a constant of a C++ type for each (id, initializer). `tail` ends NAME.cc."""
    title = f"// Generated from engine/tables/{name.removesuffix('_table')}s.json. Do not edit."
    header = [title, "#pragma once", "", f'#include "{header_of_type}"', "",
              f"namespace anemone::{namespace} {{", ""]
    body = [title, f'#include "{name}.h"', "", f"namespace anemone::{namespace} {{", ""]
    for row_id, values in rows:
        header.append(f"extern const {cpp_type} {camel(row_id)};")
        body.append(f"const {cpp_type} {camel(row_id)} = {{{values}}};")
    end = ["", f"}}  // namespace anemone::{namespace}", ""]
    write(out / f"{name}.h", "\n".join(header + end))
    write(out / f"{name}.cc", "\n".join([*body, *end, *tail]))


def write_device_limits(tables, out):
    """device_limit_table.h and .cc. A value and an answer must be those of the constraints cited."""
    constraints = {c["id"]: c for c in
                   json.loads((tables / "orion.json").read_text())["constraints"]}
    rows = []
    for row in json.loads((tables / "device_limits.json").read_text())["limits"]:
        for cited in row.get("orion", []):
            fact = constraints[cited]
            if row["value"] is not None and not re.search(
                    rf"\b{row['value']}\b", f"{fact['rule']} {fact['detail']}"):
                sys.exit(f"device_limits: {row['id']}: {row['value']} is not in orion.json {cited}")
            if row["answer"] is not None and not fact["message"].startswith(row["answer"]):
                sys.exit(f"device_limits: {row['id']}: orion.json {cited} has another message")
        rows.append((row["id"], f"{quoted(row['id'])}, {row['value'] or 0}, {quoted(row['answer'])}, "
                     f"{quoted(row['remedy'])}, {quoted(row['source'])}"))
    write_rows(out, "device_limit_table", "DeviceLimit", "device_limit",
               "engine/software/device_limits.h", rows)


APPLE_KINDS = {"class-message", "object-message", "other-form", "function", "constant", "key", "number",
               "path"}


def write_apple_facts(tables, out):
    """apple_fact_table.h and .cc: the rows by name, and all of them in the table's order."""
    rows = []
    for row in json.loads((tables / "apple_facts.json").read_text())["facts"]:
        if row["kind"] not in APPLE_KINDS:
            sys.exit(f"apple_facts: {row['id']}: no kind '{row['kind']}'")
        rows.append((row["id"], f"{quoted(row['id'])}, AppleKind::{camel(row['kind'])}, "
                     f"{quoted(row.get('owner'))}, {quoted(row['name'])}, {row.get('value', 0)}, "
                     f"{quoted(row['source'])}"))
    listed = ", ".join(f"&apple_fact::{camel(row_id)}" for row_id, _ in rows)
    write_rows(out, "apple_fact_table", "AppleFact", "apple_fact", "engine/apple/facts.h", rows,
               ["namespace anemone {", "", "std::vector<const AppleFact*> AllAppleFacts() {",
                f"  return {{{listed}}};", "}", "", "}  // namespace anemone", ""])


def write_hazards(tables, out):
    """hazard_table.h and .cc. A hazard rests on a rule of numerics.json. Its limit is a constant of
    that file, or a number that follows from another rule."""
    numerics = json.loads((tables / "numerics.json").read_text())
    rules = {rule["id"]: rule for section in numerics["sections"].values() for rule in section}
    constants = {c["name"]: c["value"] for c in numerics["constants"]}
    rows = []
    for row in json.loads((tables / "hazards.json").read_text())["hazards"]:
        fact, limit = rules[row["rule"]], row["limit"]
        if isinstance(limit, str):
            limit = constants[limit]
        elif limit is not None and row["limit_from"] not in rules:
            sys.exit(f"hazards: {row['id']}: numerics.json has no rule '{row['limit_from']}'")
        rows.append((row["id"], f"{quoted(row['id'])}, {quoted(row['rule'])}, {limit or 0}, "
                     f"{quoted(row['words'])}, {quoted(row['remedy'])}, {quoted(fact['source'])}, "
                     f"{status_enum(fact['status'])}"))
    write_rows(out, "hazard_table", "HazardRule", "hazard", "engine/software/hazards.h", rows)


def write_costs(tables, out):
    """cost_table.cc: the rates of each target that has numbers."""
    data = json.loads((tables / "costs.json").read_text())
    cores = {t["target"]: t["hal"]["num_nes"]
             for t in json.loads((tables / "targets.json").read_text())["targets"]}
    rates = ("flops", "product_flops", "chain_flops", "layer_product_flops", "layer_convolution_flops",
             "bytes_per_second", "stream_bytes_per_second", "port_bytes_per_second")
    cpu_rates = ("flops", "bytes_per_second", "softmax_per_second")
    cpu = {(row["target"], row["rate"]): row["value"] for row in data["cpu"]}
    fits = {fit["target"]: fit for fit in data["fits"]}

    def scaled(name, target):
        return {**fits[name], **{rate: fits[name][rate] * cores[target] / cores[name] for rate in rates},
                "target": target, "fit": name, "status": "predicted",
                "source": f"{data['scaled_source']}: {name} times {cores[target]}/{cores[name]} cores"}

    rows = []
    for name, fit in fits.items():
        if "scaled_from" in fit:
            base = scaled(fit["scaled_from"], name)
            rows.append({**base, "fit": name, **fit, "source": f"{fit['source']}; {base['source']}"})
            continue
        rows.append({"fit": name, **fit})
        rows += [scaled(name, target) for target in data["scaled"][name]]
    body = ["// Generated from engine/tables/costs.json. Do not edit.", '#include "engine/cost.h"', "",
            "namespace anemone {", "namespace {", "", "constexpr CostRates kRates[] = {"]
    for row in rows:
        numbers = ", ".join(f"{row[key]:.6g}" for key in (*rates, "dispatch_us"))
        of_cpu = ", ".join(f"{cpu.get((row['target'], rate), 0):.6g}" for rate in cpu_rates)
        body.append(f"    {{{quoted(row['target'])}, {quoted(row['fit'])}, {numbers}, {{{of_cpu}}}, {status_enum(row['status'])}, "
                    f"{quoted(row['source'])}}},")
    body += ["};", "", "}  // namespace", "",
             "absl::Span<const CostRates> AllCostRates() { return kRates; }", "",
             "}  // namespace anemone", ""]
    write(out / "cost_table.cc", "\n".join(body))


def write_mil_operations(tables, out):
    """mil_operation_table.cc: the opsets of Core ML, and each version of each MIL operation."""
    data = json.loads((tables / "mil_operations.json").read_text())
    number = {name: i for i, row in enumerate(data["opsets"]) for name in row["names"]}
    body = ["// Generated from engine/tables/mil_operations.json. Do not edit.",
            '#include "engine/formats/mil_operations.h"', "", "namespace anemone {", "",
            "absl::Span<const MilOpset> MilOpsets() {",
            "  static const std::vector<MilOpset>& rows = *new std::vector<MilOpset>{"]
    for row in data["opsets"]:
        names = ", ".join(quoted(name) for name in row["names"])
        body.append(f"      {{{{{names}}}, {quoted(row['function'])}, {row['specification']}}},")
    body += ["  };", "  return rows;", "}", "",
             "absl::Span<const MilVersion> MilVersions() {",
             "  static const std::vector<MilVersion>& rows = *new std::vector<MilVersion>{"]
    for op, versions in data["operations"].items():
        for name, arguments in versions.items():
            if name not in number:
                sys.exit(f"mil_operations: {op}: no opset '{name}' is defined")
            listed = ", ".join(quoted(argument) for argument in arguments)
            body.append(f"      {{{quoted(op)}, {number[name]}, {{{listed}}}}},")
    body += ["  };", "  return rows;", "}", "", "}  // namespace anemone", ""]
    write(out / "mil_operation_table.cc", "\n".join(body))


def write_hash(tables, out):
    """table_hash.cc: SHA-256 over all tables, each with its name and length in front."""
    digest = hashlib.sha256()
    for path in sorted(tables.rglob("*.json")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(tables).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    write(out / "table_hash.cc", "\n".join([
        "// Generated from engine/tables. Do not edit.", '#include "engine/table_hash.h"', "",
        "namespace anemone {", "",
        f"absl::string_view TableHash() {{ return {quoted(digest.hexdigest())}; }}", "",
        "}  // namespace anemone", ""]))


# Each function, and the files that it writes.
TABLES = {
    write_targets: ["target_fields.h", "target_table.cc"],
    write_rules: ["rule_table.h", "rule_table.cc"],
    write_warnings: ["warning_table.h", "warning_table.cc"],
    write_forms: ["netplist_table.cc"],
    write_hidden_layers: ["hidden_layer_table.cc"],
    write_device_limits: ["device_limit_table.h", "device_limit_table.cc"],
    write_apple_facts: ["apple_fact_table.h", "apple_fact_table.cc"],
    write_hazards: ["hazard_table.h", "hazard_table.cc"],
    write_costs: ["cost_table.cc"],
    write_mil_operations: ["mil_operation_table.cc"],
    write_hash: ["table_hash.cc"],
}


def main():
    if sys.argv[1] == "--outputs":
        print(";".join(name for names in TABLES.values() for name in names))
        return
    tables, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for write_table in TABLES:
        write_table(tables, out)


if __name__ == "__main__":
    main()
