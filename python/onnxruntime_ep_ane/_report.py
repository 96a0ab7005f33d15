"""check(): where every node of a model would run, and why."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _anemone
from ._keywords import DEFAULT_TARGET
from ._models import Model, path_or_bytes, require_target, settings_of, words_of_python

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keywords import CheckKeywords

_MOST_ROWS = 1000  # of nodes, in a notebook


class Record(dict[str, Any]):
    """A JSON object whose keys are attributes too: record.nodes is record["nodes"]."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{name}: there are {', '.join(self)}") from None


def for_terminal(text: str) -> str:
    """`text` with lines that a terminal has no room for wrapped, if it goes to one."""
    if not (sys.stdout and sys.stdout.isatty()):
        return text
    width = max(40, shutil.get_terminal_size().columns)
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines += textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(lines)


class _Texts(NamedTuple):
    """A CheckReport's texts, for a Report that was pickled."""

    brief: str
    full: str

    def text(self, every_node: bool, colour: bool) -> str:
        return self.full if every_node else self.brief


class Report(Record):
    """What `anemone check --json` prints (docs/schemas/check.json), as objects:

        for target in report.models[0].targets:
            print(target.target, target.summary.engine_macs / target.summary.macs)

    Prints as `anemone check` does, and shows as tables in a notebook. Can be pickled and copied."""

    _checked: _anemone.CheckReport | _Texts

    def __init__(self, checked: _anemone.CheckReport) -> None:
        model = json.loads(checked.json(), object_hook=Record)
        super().__init__(schema=1, version=_anemone.__version__, models=[model])
        self._checked = checked

    def text(self, *, every_node: bool = False) -> str:
        """A table for each target; with `every_node`, a line for each node too."""
        return self._checked.text(every_node, False)

    def __reduce__(self) -> tuple[Any, ...]:
        texts = _Texts(self.text(), self.text(every_node=True))
        return Record.__new__, (type(self),), {"_checked": texts}, None, iter(self.items())

    def __str__(self) -> str:
        return for_terminal(self.text().rstrip("\n"))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [_STYLE, '<div class="anemone">']
        for model in self["models"]:
            parts += [f"<p><b>{escape(model['path'] or 'model')}</b></p>", _summaries(model)]
            parts += [_details(target) for target in model["targets"]]
        return "".join([*parts, "</div>"])


def check(
    model: Model,
    target: str | Sequence[str] = DEFAULT_TARGET,
    **keywords: Unpack[CheckKeywords],
) -> Report:
    """Plans `model` for each target ("h13", "m1,m4", ["a15", "m4"], "all") and says why. Nothing is
    run; a node that the engine refuses is an answer, not an error."""
    names = target.split(",") if isinstance(target, str) else list(target)
    for name in names:
        if name.lower() != "all":
            require_target(name)
    path, data = path_or_bytes(model)
    with words_of_python():
        settings = settings_of(_anemone.CHECK, ",".join(names), keywords)
        if path is None:
            return Report(_anemone.check_bytes(data, settings))
        return Report(_anemone.check(path, settings))


# HTML for notebooks. Colours are the page's own, thinned, so that it is readable on dark and light.
_STYLE = """<style>
.anemone table { border-collapse: collapse; margin: .4em 0; color: inherit }
.anemone th, .anemone td { text-align: left; vertical-align: top; padding: .2em .8em .2em 0;
  border-bottom: 1px solid rgba(128, 128, 128, .35); background: transparent; color: inherit }
.anemone td.n, .anemone th.n { text-align: right; font-variant-numeric: tabular-nums }
.anemone .bar { display: inline-block; width: 8em; height: .7em; margin-right: .5em;
  background: rgba(128, 128, 128, .3); border-radius: .2em; overflow: hidden }
.anemone .bar i { display: block; height: 100%; background: #2a9d8f }
.anemone .cpu { border-left: .25em solid #e07a3f; padding-left: .5em }
.anemone .engine { border-left: .25em solid #2a9d8f; padding-left: .5em }
.anemone .folded { border-left: .25em solid rgba(128, 128, 128, .35); padding-left: .5em }
.anemone summary { cursor: pointer }
</style>"""


def _row(cells: Iterable[tuple[str, str]], tag: str = "td") -> str:
    """Cells are (HTML, class)."""
    return "".join(
        ["<tr>", *(f'<{tag} class="{kind}">{text}</{tag}>' for text, kind in cells), "</tr>"]
    )


def _table(head: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> str:
    """The head's classes are the columns'; what is not HTML in `rows` is escaped already."""
    kinds = [kind for _, kind in head]
    body = "".join(_row(zip(row, kinds)) for row in rows)
    return f"<table><thead>{_row(head, 'th')}</thead><tbody>{body}</tbody></table>"


def _share(part: int, whole: int) -> str:
    if whole == 0:
        return "-"
    percent = 100 * part / whole
    return f'<span class="bar"><i style="width:{percent:.1f}%"></i></span>{percent:.1f} %'


def _summaries(model: Record) -> str:
    rows = []
    for target in model["targets"]:
        s = target["summary"]
        rows.append(
            [
                escape(target["target"]),
                escape(target["route"]),
                f"{s['engine_nodes']} of {s['nodes']}",
                _share(s["engine_macs"], s["macs"]),
                str(s["engine_segments"]),
                str(s["cpu_segments"]),
                escape(target["status"]),
            ]
        )
    head = [("target", ""), ("route", ""), ("nodes on the engine", "n"), ("MACs on the engine", "")]
    head += [("engine segments", "n"), ("CPU segments", "n"), ("status", "")]
    return _table(head, rows)


def _why(node: Record) -> str:
    """The refusing layer with its words, or the rule where no words are known."""
    if node["layer"] is None:
        return ""
    return f"{node['layer']}: {node['message'] or 'no text known'} [{node['rule']}]"


def _details(target: Record) -> str:
    nodes = target["nodes"]
    reasons = Counter(
        (node["op_type"], _why(node), node["remedy"] or "")
        for node in nodes
        if node["placement"] == "cpu"
    )
    parts = []
    if reasons:
        parts.append(
            _table(
                [("nodes", "n"), ("operator", ""), ("why on the CPU", ""), ("remedy", "")],
                ([str(n), *map(escape, reason)] for reason, n in reasons.most_common()),
            )
        )
    parts.append(_nodes(nodes))
    if target["warnings"]:
        parts.append(
            _table(
                [("warning", ""), ("node", ""), ("", ""), ("remedy", "")],
                (
                    [escape(w[key] or "") for key in ("rule", "node", "message", "remedy")]
                    for w in target["warnings"][:_MOST_ROWS]
                ),
            )
        )
    title = f"{escape(target['target'])}: {len(nodes)} nodes, {len(target['warnings'])} warnings"
    return f"<details><summary>{title}</summary>{''.join(parts)}</details>"


def _nodes(nodes: Sequence[Record]) -> str:
    head = [("node", ""), ("operator", ""), ("place", ""), ("segment", "n"), ("MACs", "n")]
    rows = []
    for node in nodes[:_MOST_ROWS]:
        place = f'<span class="{escape(node["placement"])}">{escape(node["placement"])}</span>'
        segment = "" if node["segment"] in (None, -1) else str(node["segment"])
        rows.append(
            [
                escape(node["id"]),
                escape(node["op_type"]),
                place,
                segment,
                f"{node['macs']:,}" if node["macs"] else "",
                escape(" ".join(node["units"]) or _why(node)),
            ]
        )
    left = len(nodes) - len(rows)
    more = f"<p>and {left} more nodes: report.models[0].targets</p>" if left > 0 else ""
    return _table([*head, ("units, or why not", "")], rows) + more
