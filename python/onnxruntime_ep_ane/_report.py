"""check(): where every node of a model would run, and why."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _anemone, _html
from ._keywords import DEFAULT_TARGET
from ._models import Model, path_or_bytes, require_target, settings_of
from ._words import of_python, words_of_python

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keywords import CheckKeywords


class Record(dict[str, Any]):
    """A JSON object whose keys are attributes too: record.nodes is record["nodes"]."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{name}: there are {', '.join(self)}") from None


_WIDTH = 80  # columns of text that does not go to a terminal

# What the library says in words, which may name flags of the command.
_WORDS = ("message", "remedy", "reason")


def records_of(text: str) -> Any:
    """The JSON of the library as Records, in the words of Python."""

    def record(read: dict[str, Any]) -> Record:
        for key in _WORDS:
            if isinstance(read.get(key), str):
                read[key] = of_python(read[key])
        return Record(read)

    return json.loads(text, object_hook=record)


def terminal_width() -> int:
    """The columns of the terminal that the output goes to; 80 if it goes to none."""
    if not (sys.stdout and sys.stdout.isatty()):
        return _WIDTH
    return max(40, shutil.get_terminal_size().columns)


def in_python(text: str, width: int) -> str:
    """The library's text, which has lines of `width` columns, in the words of Python, which may be
    longer."""
    lines = []
    for line in of_python(text).rstrip("\n").split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines += [line] if len(line) <= width else textwrap.wrap(
            line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    return "\n".join(lines)


class _Texts(NamedTuple):
    """A CheckReport's texts of 80 columns and its page, for a Report that was pickled."""

    brief: str
    full: str
    page: str

    def html(self) -> str:
        return self.page

    def text(self, every_node: bool, width: int) -> str:
        return self.full if every_node else self.brief


class Report(Record):
    """What `anemone check --json` prints (docs/schemas/check.json), as objects. Remedies name the
    keywords of this package:

        for target in report.models[0].targets:
            print(target.target, target.summary.engine_macs_share)

    Prints as `anemone check` does, and shows as tables in a notebook. Can be pickled and copied."""

    _checked: _anemone.CheckReport | _Texts

    def __init__(self, checked: _anemone.CheckReport) -> None:
        model = records_of(checked.json())
        super().__init__(schema=1, version=_anemone.__version__, models=[model])
        self._checked = checked

    def text(self, *, every_node: bool = False) -> str:
        """What `anemone check` prints, in lines of 80 columns; with `every_node`, all details and a
        line for each node too."""
        return in_python(self._checked.text(every_node, _WIDTH), _WIDTH) + "\n"

    def page(self) -> str:
        """The page that `anemone report` writes: HTML that needs no other file."""
        return self._checked.html()

    def __reduce__(self) -> tuple[Any, ...]:
        texts = _Texts(self._checked.text(False, _WIDTH), self._checked.text(True, _WIDTH),
                       self._checked.html())
        return Record.__new__, (type(self),), {"_checked": texts}, None, iter(self.items())

    def __str__(self) -> str:
        width = terminal_width()
        return in_python(self._checked.text(False, width), width)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html.page(self, self.text())


def check(
    model: Model,
    target: str | Sequence[str] = DEFAULT_TARGET,
    **keywords: Unpack[CheckKeywords],
) -> Report:
    """Plans `model` for each target ("h13", "m1,m4", ["a15", "m4"], "all") and says why. Nothing is
    run; a node that the engine refuses is an answer, not an error."""
    if not isinstance(target, Sequence):
        raise TypeError(f"target: want a name or a list of names, got {type(target).__name__}")
    names = target.split(",") if isinstance(target, str) else list(target)
    for name in names:
        if not (isinstance(name, str) and name.lower() == "all"):
            require_target(name)
    path, data = path_or_bytes(model)
    with words_of_python():
        settings = settings_of(_anemone.CHECK, ",".join(names), keywords)
        if path is None:
            return Report(_anemone.check_bytes(data, settings))
        return Report(_anemone.check(path, settings))
