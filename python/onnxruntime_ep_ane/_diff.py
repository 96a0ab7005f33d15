"""diff(): what differs between two plans, or two programs in one of the engine's formats."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from . import _anemone
from ._keywords import DEFAULT_TARGET
from ._models import Model, require_target
from ._report import Record, Report, check, in_python, records_of, terminal_width
from ._words import words_of_python

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keywords import CheckKeywords

Planned = Union[Model, Report]


class Diff(Record):
    """What `anemone diff --json` prints (docs/schemas/diff.json), as objects. Prints as the command
    does; true if the two differ."""

    _compared: _anemone.PlanDiff | _anemone.ProgramDiff

    def __init__(self, compared: _anemone.PlanDiff | _anemone.ProgramDiff) -> None:
        super().__init__(records_of(compared.json()))
        self._compared = compared

    def __bool__(self) -> bool:
        return not self["equal"]

    def text(self, *, every_node: bool = False) -> str:
        """What `anemone diff` prints, in lines of 80 columns; with `every_node`, all nodes or
        operations."""
        return in_python(self._compared.text(every_node, 80), 80) + "\n"

    def __str__(self) -> str:
        width = terminal_width()
        return in_python(self._compared.text(False, width), width)

    __repr__ = __str__


def _plan_of(side: str, what: Planned, target: str | None, keywords: CheckKeywords) -> tuple[str, str]:
    """The path and the plan of one side, as JSON."""
    report = what if isinstance(what, Report) else check(what, target or DEFAULT_TARGET, **keywords)
    plans = report["models"][0]["targets"]
    if target is not None:
        require_target(target)
        target = _anemone.target_name(target)
    wanted = [plan for plan in plans if target is None or plan["target"] == target]
    if len(wanted) != 1:
        names = ", ".join(plan["target"] for plan in plans)
        raise ValueError(f"{side}: want one target of the report; give target= one of {names}")
    return report["models"][0]["path"], json.dumps(wanted[0])


def _is_program(what: Planned | None) -> bool:
    return isinstance(what, (str, os.PathLike)) and _anemone.is_program(os.fsencode(what))


def _diff_programs(a: Planned, b: Planned | None, is_planned: bool) -> Diff:
    if is_planned:
        raise ValueError("target and settings of planning do not apply to programs")
    if not (isinstance(a, (str, os.PathLike)) and isinstance(b, (str, os.PathLike))):
        raise ValueError("want the paths of two programs of one kind")
    return Diff(_anemone.diff_programs(os.fsencode(a), os.fsencode(b)))


def diff(
    a: Planned,
    b: Planned | None = None,
    target: str | Sequence[str] | None = None,
    **keywords: Unpack[CheckKeywords],
) -> Diff:
    """Compares the plans of two models or reports of check(), or of one model for two targets:

        ane.diff("old.onnx", "new.onnx")
        ane.diff("net.onnx", target="m1,m4")

    With two targets, `a` is planned for the first and `b` for the second. Paths of two programs of
    one kind are compared as they are: MIL texts, netplists, Core ML packages, packages of Anemone."""
    if _is_program(a) or _is_program(b):
        return _diff_programs(a, b, target is not None or bool(keywords))
    names: list[str | None] = [None]
    if target is not None:
        names = [*(target.split(",") if isinstance(target, str) else target)]
    if len(names) > 2:
        raise ValueError(f"target: want one target, or one for each side; got {len(names)}")
    if b is None and names[0] == names[-1]:
        raise ValueError("b: want a second model, or two targets: target='m1,m4'")
    first = _plan_of("a", a, names[0], keywords)
    second = _plan_of("b", a if b is None else b, names[-1], keywords)
    with words_of_python():
        return Diff(_anemone.diff(*first, *second))
