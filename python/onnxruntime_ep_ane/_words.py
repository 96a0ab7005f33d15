"""The one place that puts the library's messages into the words of this package. The library names the
command's flags; FLAGS says which keyword stands for each.

    of_python("give --dim batch=1 --dim seq=64, or --policy cpu")
    # "give dims={'batch': 1, 'seq': 64}, or policy='cpu'"
"""

from __future__ import annotations

import re

from ._keywords import FLAGS

# `confirm` has this one for what is on by default elsewhere.
_ALL = {**FLAGS, "rewrites": ("rewrites", "bool", "")}

# One value of a flag that takes NAME=SIZES: 'NAME=1,2' or NAME=1x2.
_ITEM = r"(?:'[^'=]+=[^']*'|[^\s='`]+=(?:\.\.\.|[\d?A-Z]|scalar|[,x](?=[\d?.A-Z]))+)"


def _pattern(flag: str) -> str:
    kind, starts = _ALL[flag][1:]
    if kind.startswith("Mapping"):  # of several, one dict; they may be on several lines
        return rf"--{flag}(?P<items>\s+{_ITEM}(?:[\s\\]+--{flag}\s+{_ITEM})*)?"
    if kind.startswith("Sequence"):  # a name in a message is quoted if it has other characters
        return rf"--{flag}(?:\s+('[^']+'|[\w+=.:/@-]*[\w+=/@-]))?"
    if kind == "int":
        return rf"--{flag}(?:\s+\d+)?"
    if starts:
        return rf"--{flag}(?:\s+(?:{'|'.join(starts.split())})(?:[\w:=-]|[./](?=[\w/])|,(?=\w))*)?"
    return f"--{flag}"


_PATTERNS = [
    (flag, re.compile(rf"(?<![\w-]){_pattern(flag)}(?![\w-])"))
    for flag in sorted(_ALL, key=len, reverse=True)
]
# A command in a message stays one: `anemone run --hazards`.
_COMMAND = re.compile(r"(`[^`\n-][^`\n]*`)")


def _items(flag: str, text: str) -> str:
    """"{'batch': 1}" of " batch=1"; "{'x': [?, 4]}" of " x=?x4"."""
    pairs = []
    for item in re.findall(_ITEM, text):
        name, _, value = item.strip("'").rpartition("=")
        sizes = [] if value == "scalar" else re.split("[,x]", value)
        pairs.append(f"{name!r}: {value if flag in ('dim', 'limit') else '[' + ', '.join(sizes) + ']'}")
    return "{" + ", ".join(pairs) + "}"


def _keyword(flag: str, found: re.Match[str]) -> str:
    keyword, kind, _ = _ALL[flag]
    if kind == "bool":
        return f"{keyword}={not flag.startswith('no-')}"
    if kind.startswith("Mapping"):
        return f"{keyword}={_items(flag, found['items'])}" if found["items"] else keyword
    if kind.startswith("Sequence"):
        name = found[0][len(flag) + 2:].strip().strip("'")
        return f"{keyword}={'all' if name == 'all' else [name]!r}" if name else keyword
    _, *value = found[0].split()
    return f"{keyword}={value[0] if kind == 'int' else repr(value[0])}" if value else keyword


def of_python(text: str) -> str:
    """`text` with keywords in the place of flags."""
    if "-" not in text:
        return text
    parts = _COMMAND.split(text)
    for i in range(0, len(parts), 2):
        for flag, pattern in _PATTERNS:
            parts[i] = pattern.sub(lambda found, flag=flag: _keyword(flag, found), parts[i])
        parts[i] = re.sub(r"(?<![\w-])-v(?![\w-])", "text(every_node=True)", parts[i])
    return "".join(parts)


class words_of_python:  # noqa: N801, as contextlib's context managers; a generator would take longer
    """Errors raised inside name this package's keywords: dims={'batch': 1}, not --dim batch=1."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Exception):
            error.args = tuple(of_python(arg) if isinstance(arg, str) else arg for arg in error.args)
