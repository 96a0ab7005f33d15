"""A check() report as HTML, for notebooks."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _anemone

_MOST_ROWS = 1000  # of nodes

_Json = Mapping[str, Any]
_Cell = tuple[str, str]  # HTML, class

# Colours are the page's own, thinned, so that it is readable on dark and light. Tables scroll by
# themselves on a narrow page.
_STYLE = """<style>
.anemone { max-width: 100%; line-height: 1.4 }
.anemone p { margin: .4em 0; overflow-wrap: break-word }
.anemone .scroll { overflow-x: auto; max-width: 100%; margin: .5em 0 }
.anemone table { border-collapse: collapse; margin: 0; color: inherit; font-size: inherit }
.anemone th, .anemone td { text-align: left; vertical-align: top; padding: .2em 1em .2em 0;
  border-bottom: 1px solid rgba(128, 128, 128, .35); background: transparent; color: inherit }
.anemone th { font-weight: 600; white-space: nowrap }
.anemone td.n, .anemone th.n { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap }
.anemone td.w { white-space: nowrap }
.anemone td.t { min-width: 14em; max-width: 40em; overflow-wrap: break-word }
.anemone td.name { min-width: 9em; max-width: 24em; overflow-wrap: break-word }
.anemone .bar { display: inline-block; width: 6em; height: .7em; margin-right: .5em;
  background: rgba(128, 128, 128, .3); border-radius: .2em; overflow: hidden }
.anemone .bar i { display: block; height: 100%; background: #2a9d8f }
.anemone .cpu { border-left: .25em solid #e07a3f; padding-left: .5em }
.anemone .engine { border-left: .25em solid #2a9d8f; padding-left: .5em }
.anemone .folded { border-left: .25em solid rgba(128, 128, 128, .35); padding-left: .5em }
.anemone details { margin: .5em 0 }
.anemone summary { cursor: pointer; overflow-wrap: break-word }
</style>"""


def _text(text: str) -> str:
    """Escaped. Characters that print nothing or turn the direction of the line are shown as codes."""
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return html.escape("".join(shown))


def _name(text: str) -> str:
    """A name of the model: its direction does not change that of the text around it, and it is broken
    after separators only."""
    pieces = re.findall(r"[^/._:,-]*[/._:,-]+|[^/._:,-]+", text)
    return f"<bdi>{'<wbr>'.join(map(_text, pieces))}</bdi>"


def _row(cells: Iterable[_Cell], tag: str = "td") -> str:
    made = (f'<{tag} class="{kind}">{text}</{tag}>' for text, kind in cells)
    return f"<tr>{''.join(made)}</tr>"


def _table(head: Sequence[_Cell], rows: Iterable[Sequence[str]]) -> str:
    """The head's classes are the columns'. `rows` are HTML."""
    kinds = [kind for _, kind in head]
    body = "".join(_row(zip(row, kinds)) for row in rows)
    return (
        f'<div class="scroll"><table><thead>{_row(head, "th")}</thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _nodes_text(summary: _Json) -> str:
    """As the command counts: "190 nodes: 70 engine, 2 CPU, 118 folded"."""
    counts = [(summary[f"{place}_nodes"], word)
              for place, word in (("engine", "engine"), ("cpu", "CPU"), ("folded", "folded"))]
    return f"{_counted(summary['nodes'], 'node')}: " + ", ".join(f"{n} {word}" for n, word in counts)


def _share(summary: _Json, is_one_size: bool) -> str:
    macs, engine = summary["macs"], summary["engine_macs"]
    if macs is None or engine is None:
        unknown = summary.get("nodes_of_unknown_macs") or 0
        return f"? ({_counted(unknown, 'node')} of unknown MACs)" if unknown else "?"
    if macs == 0:
        return "no MACs"
    percent = 100 * engine / macs
    shown = "100" if engine == macs else f"{min(percent, 99.9):.1f}"
    of = f" of {_short(macs)}" if is_one_size else ""
    return f'<span class="bar"><i style="width:{percent:.1f}%"></i></span>{shown} %{of}'


def _short(count: int) -> str:
    """"1.82 G", as the command writes it."""
    value, suffix = float(count), ""
    for following in "kMGTP":
        if value < 999.5:
            break
        value, suffix = value / 1000, f" {following}"
    if not suffix:
        return str(count)
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}{suffix}"


def _groups(targets: Sequence[_Json]) -> list[list[_Json]]:
    """Targets with the same answer for every node are joined."""
    groups: dict[str, list[_Json]] = {}
    for target in targets:
        facts = [target["route"], target["status"], target["summary"], target.get("bucket"),
                 [[node[key] for key in ("placement", "segment", "rule", "message", "units")]
                  for node in target["nodes"]],
                 [[warning["rule"], warning["node"]] for warning in target["warnings"]]]
        groups.setdefault(json.dumps(facts), []).append(target)
    return list(groups.values())


def _size(target: _Json) -> str:
    """"seq=8" of a bucket."""
    return ", ".join(f"{name}={size}" for name, size in (target.get("bucket") or {}).items())


def _names(targets: Iterable[str]) -> str:
    """"M1 (h13), M4 (h16)"; a remark about code names is in front, once for all that have it."""
    by_remark: dict[str, list[str]] = {}
    for target in targets:
        label, _, remark = _anemone.target_label(target).partition(" (")
        shown = label if label.lower() == target else f"{label} ({target})"
        by_remark.setdefault(remark.rstrip(")"), []).append(shown)
    parts = [f"{remark}: {', '.join(names)}" if remark else ", ".join(names)
             for remark, names in by_remark.items()]
    return "; ".join(parts)


def _title(group: Sequence[_Json]) -> str:
    """The targets of a group, and their size."""
    size = _size(group[0])
    return _names(target["target"] for target in group) + (f" at {size}" if size else "")


def _rows(targets: Sequence[_Json]) -> list[tuple[_Json, list[str], list[str]]]:
    """The rows of the table of targets, joined as in the text (partitioner/plan_table.cc): the first
    of a row, the targets and the sizes. A target's sizes of one result are joined, then targets."""

    def result(target: _Json) -> list[Any]:
        s = target["summary"]
        remark = _anemone.target_label(target["target"]).partition(" (")[2]
        return [s["engine_macs_share"], s["engine_segments"], s["engine_nodes"], s["cpu_nodes"], remark]

    by_target: dict[str, list[_Json]] = {}
    for target in targets:
        by_target.setdefault(json.dumps([target["target"], result(target)]), []).append(target)
    rows: dict[str, tuple[_Json, list[str], list[str]]] = {}
    for group in by_target.values():
        sizes = [_size(target) for target in group]
        row = rows.setdefault(json.dumps([sizes, result(group[0])]), (group[0], [], sizes))
        row[1].append(group[0]["target"])
    return list(rows.values())


def _summaries(targets: Sequence[_Json]) -> str:
    head = [("targets", "t"), ("MACs on the engine", "w"), ("nodes", "w"), ("engine segments", "n")]
    rows = []
    for first, names, sizes in _rows(targets):
        s = first["summary"]
        label = _names(names) + (f" at {', '.join(sizes)}" if sizes[0] else "")
        rows.append([_text(label), _share(s, len(sizes) == 1), _nodes_text(s), str(s["engine_segments"])])
    return _table(head, rows)


def _covered(node: _Json) -> int:
    """How many nodes of the file it covers: 0 if it is only a part of one ("/#3/mask")."""
    return sum(origin.rpartition("/")[2].startswith("#") for origin in node["origin"])


def _why(node: _Json) -> str:
    """The refusing layer with its words, or the rule where no words are known."""
    if node["layer"] is None:
        return ""
    words = node.get("condition") or node["message"] or "no text known"
    return f"{node['layer']}: {words} [{node['rule']}]"


def _reasons(nodes: Sequence[_Json]) -> str:
    found: dict[tuple[str, str], dict[str, int]] = {}
    for node in nodes:
        if node["placement"] == "cpu":
            operators = found.setdefault((_why(node), node["remedy"] or ""), {})
            operators[node["op_type"]] = operators.get(node["op_type"], 0) + max(1, _covered(node))
    if not found:
        return ""
    ranked = sorted(found.items(), key=lambda item: -sum(item[1].values()))
    rows = (
        [str(sum(operators.values())), _name(", ".join(sorted(operators))), _text(why), _text(remedy)]
        for (why, remedy), operators in ranked
    )
    head = [("nodes", "n"), ("operators", "name"), ("why on the CPU", "t"), ("remedy", "t")]
    return _table(head, rows)


def _warnings(warnings: Sequence[_Json]) -> str:
    """One row for each rule, with the number of nodes and the first message."""
    rules: dict[str, list[_Json]] = {}
    for warning in warnings:
        rules.setdefault(warning["rule"], []).append(warning)
    if not rules:
        return ""
    counts = {rule: len({w["node"] for w in found}) for rule, found in rules.items()}
    rows = (
        [str(counts[rule]), _text(rule), _name(found[0].get("name") or found[0]["node"] or ""), _text(found[0]["message"]),
         _text(found[0]["remedy"] or "")]
        for rule, found in sorted(rules.items(), key=lambda item: -counts[item[0]])
    )
    head = [("nodes", "n"), ("warning", "w"), ("first", "name"), ("message", "t"), ("remedy", "t")]
    return _table(head, rows)


def _macs(node: _Json) -> str:
    if node["macs"] is None:
        return "?"
    return f"{node['macs']:,}" if node["macs"] else ""


def _units(node: _Json) -> str:
    """The table of reasons has the words of a rule."""
    if node["placement"] == "cpu":
        return f"[{node['rule']}]"
    return " ".join(node["units"]) + (" (rewritten)" if node["verdict"] == "rewritten" else "")


def _nodes(nodes: Sequence[_Json]) -> str:
    head = [("node", "name"), ("operator", "w"), ("place", "w"), ("segment", "n"), ("MACs", "n"),
            ("units, or rule", "t")]
    rows = []
    for node in nodes[:_MOST_ROWS]:
        place = f'<span class="{_text(node["placement"])}">{_text(node["placement"])}</span>'
        segment = "" if node["segment"] in (None, -1) else str(node["segment"])
        others = _covered(node) - 1
        operator = _name(node["op_type"]) + (f" and {_counted(others, 'more node')}" if others > 0 else "")
        rows.append([_name(node["name"] or node["id"]), operator, place, segment,
                     _macs(node), _text(_units(node))])
    left = sum(map(_covered, nodes[_MOST_ROWS:]))
    more = f"<p>and {_counted(left, 'more node')}, in report.models[0].targets</p>" if left else ""
    return _table(head, rows) + more


def _details(group: Sequence[_Json]) -> str:
    target = group[0]
    title = f"{_title(group)}: {_nodes_text(target['summary'])}"
    count = len({warning["rule"] for warning in target["warnings"]})
    if count:
        title += f"; {_counted(count, 'kind')} of warnings"
    parts = [_reasons(target["nodes"]), _nodes(target["nodes"]), _warnings(target["warnings"])]
    return f"<details><summary>{_text(title)}</summary>{''.join(parts)}</details>"


def _free_text(model: _Json, text: str) -> str:
    """Which dimensions have no size, and how to bind them, as the text of the report says it."""
    names = []
    for dimension in model.get("free_dimensions") or ():
        place = dimension["inputs"][0]
        names.append(dimension["name"] or f"dimension {place['axis']} of '{place['input']}'")
    if not names:
        return ""
    bind = re.search(r"bind (?:it|them): (\S.*)", text)
    advice = f"; bind them: <code>{_text(bind[1])}</code>" if bind else ""
    return f"<p>Free dimensions: {', '.join(map(_name, names))}{advice}</p>"


def page(report: _Json, text: str) -> str:
    """`text` is the report's own, whose first line is the first here too."""
    parts = [_STYLE, '<div class="anemone">']
    for model in report["models"]:
        groups = _groups(model["targets"])
        parts += [
            f"<p>{_name(model['path'] or 'model')}</p>",
            f"<p><b>{_text(text.partition(chr(10))[0])}</b></p>",
            _free_text(model, text),
            _summaries(model["targets"]),
            *map(_details, groups),
        ]
    return "".join([*parts, "</div>"])
