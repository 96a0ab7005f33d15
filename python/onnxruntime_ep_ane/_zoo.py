"""zoo(): checks many models, each in processes of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Union

from ._command import command_environment, command_path
from ._keywords import DEFAULT_TARGET, FLAGS
from ._models import require_target
from ._report import Record, records_of
from ._words import of_python

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keywords import CheckKeywords

Source = Union[str, "os.PathLike[str]"]

_USAGE = 2  # the command's exit code for wrong usage


class Zoo(Record):
    """What `anemone zoo --json` prints (docs/schemas/zoo.json), as objects:

        failed = [model.path for model in zoo.models if model.status != "ok"]
    """

    def __str__(self) -> str:
        counts: dict[str, int] = {}
        for model in self["models"]:
            counts[model.status] = counts.get(model.status, 0) + 1
        number = len(self["models"])
        parts = [f"{number} model{'' if number == 1 else 's'}", *(f"{n} {status}" for status, n in sorted(counts.items()))]
        return ", ".join(parts) + f": {self['folder']}/index.html"

    __repr__ = __str__


def _flags_of(keywords: Mapping[str, object]) -> list[str]:
    """Settings as flags of the command."""
    flags = {keyword: flag for flag, (keyword, _, _) in FLAGS.items()}
    words: list[str] = []
    for keyword, value in keywords.items():
        flag = flags.get(keyword)
        if flag is None:
            raise TypeError(f"zoo() got an unexpected keyword argument {keyword!r}")
        if value is None:
            continue
        if FLAGS[flag][1] == "bool":
            if bool(value) != flag.startswith("no-"):
                words.append(f"--{flag}")
        elif isinstance(value, Mapping):
            for name, sizes in value.items():
                separator = "x" if flag == "shape" else ","
                text = separator.join(map(str, sizes)) if isinstance(sizes, Sequence) else str(sizes)
                words += [f"--{flag}", f"{name}={text or 'scalar'}"]
        else:
            words += [f"--{flag}", str(value)]
    return words


def zoo(
    sources: Source | Iterable[Source],
    output: str | os.PathLike[str],
    target: str | Sequence[str] = DEFAULT_TARGET,
    *,
    compile: bool = False,
    run: bool = False,
    convert: str | None = None,
    jobs: int | None = None,
    timeout: float = 0,
    process_memory: int | str = 0,
    retry_failed: bool = False,
    executor: str = "local",
    quiet: bool = True,
    **keywords: Unpack[CheckKeywords],
) -> Zoo:
    """Does what `anemone zoo` does (docs/zoo.md): checks models, folders and manifests, and writes
    results.jsonl and pages into the folder `output`. Goes on where an earlier call ended.

    `process_memory` is the command's --memory-limit, in bytes or as "4G". Without `quiet`, progress
    goes to stderr. A model that fails is a result, not an exception."""
    listed = [os.fspath(s) for s in ([sources] if isinstance(sources, (str, os.PathLike)) else sources)]
    names = target.split(",") if isinstance(target, str) else list(target)
    for name in names:
        if name.lower() != "all":
            require_target(name)
    for source in listed:
        if not os.path.exists(source):
            raise FileNotFoundError(f"{source}: no such file or folder; check the path")
    words = [command_path(), "zoo", *(f"./{path}" if path.startswith("-") else path for path in listed), "--json", "--output", os.fspath(output), "--target", ",".join(names),
             "--timeout", str(timeout), "--memory-limit", str(process_memory), "--executor", executor]
    for is_on, flag in ((compile, "compile"), (run, "run"), (retry_failed, "retry-failed"), (quiet, "quiet")):
        words += [f"--{flag}"] if is_on else []
    for value, flag in ((convert, "convert"), (jobs, "jobs")):
        words += [f"--{flag}", str(value)] if value is not None else []
    words += _flags_of(keywords)
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=command_environment(),
                          stderr=subprocess.PIPE if quiet else None) as process:
        try:
            printed, said = process.communicate()
        except BaseException:  # Ctrl-C
            process.terminate()
            raise
    try:
        document = records_of(printed.decode())
    except json.JSONDecodeError:
        text = (said or b"").decode(errors="replace").strip()
        raise RuntimeError(
            f"anemone zoo ended with the code {process.returncode}" + (f": {text}" if text else "")
        ) from None
    if "error" in document:
        kind = ValueError if process.returncode == _USAGE else RuntimeError
        raise kind(of_python(document["error"]))
    return Zoo(document)
