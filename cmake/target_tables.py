"""How generate_tables.py writes the targets: target_fields.h (enums of HAL limits and capability bytes) and
target_table.cc.
"""

import json
import sys

from table_text import camel, quoted, status_enum, write


def field_statuses(provenance, fields):
    """field -> status, from the groups of hal_prov or capability_prov."""
    result = {}
    for group in provenance:
        for field in group["fields"]:
            result[field] = group["status"]
    return {f: result.get(f, "unknown") for f in fields}


def check_target(target, data):
    """A row may leave out a number that is not published. It must not have an unknown name."""
    for part, known in (("hal", data["field_defs"]),
                        ("capability_bytes", data["capability_byte_defs"])):
        for name in target[part]:
            if name not in known:
                sys.exit(f"targets: {target['target']}: no field '{name}' of {part} is defined")


def number(value):
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, int) else None


def write_targets(tables, out):
    data = json.loads((tables / "targets.json").read_text())
    for target in data["targets"]:
        check_target(target, data)
    limits = sorted(f for f in data["field_defs"]
                    if any(number(t["hal"].get(f)) is not None for t in data["targets"]))
    lists = sorted(f for f in data["field_defs"]
                   if any(isinstance(t["hal"].get(f), list) for t in data["targets"]))
    caps = data["capability_byte_defs"]

    header = ["// Generated from engine/tables/targets.json. Do not edit.", "#pragma once", "",
              "namespace anemone {", "", "// Numbers of the HAL record, by the table's names.",
              "enum class Limit {"]
    for f in limits:
        header.append(f"  {camel(f)},  // {data['field_defs'][f]['meaning']}")
    header += ["};", f"inline constexpr int kLimitCount = {len(limits)};", "",
               "// Lists of the HAL record.", "enum class LimitList {"]
    header += [f"  {camel(f)}," for f in lists]
    header += ["};", f"inline constexpr int kLimitListCount = {len(lists)};", "",
               "// Capability bytes.", "enum class Cap {"]
    header += [f"  {camel(d['name'])},  // {offset}: {d['meaning']}" for offset, d in caps.items()]
    header += ["};", f"inline constexpr int kCapCount = {len(caps)};", "", "}  // namespace anemone",
               ""]
    write(out / "target_fields.h", "\n".join(header))

    body = ["// Generated from engine/tables/targets.json. Do not edit.",
            '#include "engine/target_record.h"', "", "namespace anemone {", "namespace {", ""]
    records = []
    for t in data["targets"]:
        hal_status = field_statuses(t["hal_prov"], data["field_defs"])
        cap_status = field_statuses(t["capability_prov"], caps)
        name = t["target"]
        body.append(f"constexpr TableNumber k{name}Limits[] = {{")
        for f in limits:
            value = number(t["hal"].get(f))
            shown = "kNotPublished" if value is None else value
            body.append(f"    {{{shown}, {status_enum(hal_status[f])}}},  // {f}")
        body.append("};")
        body.append(f"constexpr TableNumber k{name}Caps[] = {{")
        for offset in caps:
            value = t["capability_bytes"].get(offset)
            shown = "kNotPublished" if value is None else value
            body.append(f"    {{{shown}, {status_enum(cap_status[offset])}}},  // {offset}")
        body.append("};")
        for f in lists:
            values = t["hal"].get(f)
            values = values if isinstance(values, list) else []
            # C++ has no arrays of no elements.
            kind, brackets = ("int", "[]") if values else ("absl::Span<const int>", "")
            body.append(f"constexpr {kind} k{name}{camel(f)}{brackets} = "
                        f"{{{', '.join(map(str, values))}}};")
        body.append(f"constexpr absl::Span<const int> k{name}Lists[] = {{"
                    + ", ".join(f"k{name}{camel(f)}" for f in lists) + "};")
        products = ", ".join(p["product"] for p in t["products"])
        family = -1 if t["family_index"] is None else t["family_index"]
        forms = t["weight_streaming_forms"]
        streamed = quoted(None if forms is None else ", ".join(forms))
        records.append(
            f"    {{{quoted(name)}, {quoted(t['option_string'])}, {quoted(t['family'] or '')}, "
            f"{family}, {quoted(products)}, {str(t['mil_route']).lower()}, "
            f"{str(t['is_silicon']).lower()}, {status_enum(t['status'])}, {quoted(t['source'])}, "
            f"k{name}Limits, k{name}Caps, k{name}Lists, {streamed}}},")
    def fields(title, rows):
        return ([f"constexpr TableField k{title}Fields[] = {{"]
                + [f"    {{{quoted(n)}, {quoted(d['meaning'])}, {quoted(d.get('source') or '')}}},"
                   for n, d in rows] + ["};"])

    body += fields("Limit", [(f, data["field_defs"][f]) for f in limits])
    body += fields("List", [(f, data["field_defs"][f]) for f in lists])
    body += fields("Cap", [(d["name"], d) for d in caps.values()])
    body += ["", "constexpr TargetRecord kRecords[] = {"] + records + ["};", "",
             "constexpr TargetAlias kAliases[] = {"]
    for alias, row in data["product_aliases"].items():
        body.append(f"    {{{quoted(alias)}, {quoted(row['target'])}}},")
    body += ["};", "", "}  // namespace", "",
             "absl::Span<const TargetRecord> TargetRecords() { return kRecords; }",
             "absl::Span<const TargetAlias> TargetAliases() { return kAliases; }",
             "absl::Span<const TableField> LimitFields() { return kLimitFields; }",
             "absl::Span<const TableField> ListFields() { return kListFields; }",
             "absl::Span<const TableField> CapFields() { return kCapFields; }", "",
             "}  // namespace anemone", ""]
    write(out / "target_table.cc", "\n".join(body))
