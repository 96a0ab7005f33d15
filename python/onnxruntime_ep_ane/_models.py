"""What every entry point needs: the model as path or bytes, its target, and ONNX Runtime's library."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Union

from . import _anemone

if TYPE_CHECKING:
    import onnx

Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, "onnx.ModelProto"]


class UnknownTargetError(KeyError):
    """No target or product has that name; the message lists similar names."""

    def __str__(self) -> str:  # KeyError's would be in quotes
        return str(self.args[0])


def path_or_bytes(model: Model) -> tuple[bytes | None, bytes]:
    """The path, or None and the serialized model."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return None, bytes(model)
    if hasattr(model, "SerializeToString"):
        return None, model.SerializeToString()
    return os.fsencode(model), b""


# The command's flags in C++'s errors, and the keywords that stand for them.
_FLAG = re.compile(r"--(dim|shape|bucket)\b(?: '([^']+)=([^']*)'| ([^ =]+)=([\d,x.]*))?")


def _keyword(flag: re.Match[str]) -> str:
    keyword = f"{flag[1]}s"
    if not (name := flag[2] or flag[4]):
        return keyword
    sizes = re.split("[,x]", flag[3] or flag[5] or "")
    value = sizes[0] if keyword == "dims" else f"[{', '.join(sizes)}]"
    return f"{keyword}={{{name!r}: {value}}}"


@contextlib.contextmanager
def words_of_python() -> Iterator[None]:
    """Errors raised inside name this package's keywords: dims={'batch': 1}, not --dim batch=1."""
    try:
        yield
    except Exception as error:
        error.args = tuple(
            _FLAG.sub(_keyword, arg) if isinstance(arg, str) else arg for arg in error.args
        )
        raise


def require_target(name: str) -> None:
    problem = _anemone.target_problem(name)
    if problem is not None:
        raise UnknownTargetError(problem)


def ort_library() -> str:
    """The library that the environment names, else of the installed onnxruntime, which is not
    imported for it; else empty, and the C++ library searches."""
    if named := os.environ.get("ANEMONE_ORT_LIBRARY"):
        return named
    spec = importlib.util.find_spec("onnxruntime")
    pattern = "libonnxruntime.*dylib" if sys.platform == "darwin" else "libonnxruntime.so*"
    for folder in (spec and spec.submodule_search_locations) or ():
        for library in sorted(pathlib.Path(folder, "capi").glob(pattern)):
            return str(library)
    return ""


def _text(value: object) -> str:
    """A setting's value as the command writes it: sizes are separated by commas."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value)) or "scalar"
    return str(value)


def settings_of(
    function: int, target: str, keywords: Mapping[str, object]
) -> _anemone.Settings:
    """The keywords of a function as settings; None stands for the default."""
    settings = _anemone.Settings()
    settings.target = target
    settings.ort_library = ort_library()
    for name, value in keywords.items():
        if isinstance(value, Mapping):
            for key, item in value.items():
                settings.set(function, name, f"{key}={_text(item)}")
        elif value is not None:
            settings.set(function, name, _text(value))
    return settings
