"""What every entry point needs: the model as path or bytes, its target, and its settings."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Union

from . import _anemone
from ._ort_library import installed_library

if TYPE_CHECKING:
    import onnx

Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, "onnx.ModelProto"]


class UnknownTargetError(KeyError, ValueError):
    """No target or product has that name; the message lists similar names."""

    def __str__(self) -> str:  # KeyError's would be in quotes
        return str(self.args[0])


def path_or_bytes(model: Model) -> tuple[bytes | None, bytes]:
    """The path, or None and the serialized model."""
    if isinstance(model, str):
        return os.fsencode(model), b""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return None, bytes(model)
    if hasattr(model, "SerializeToString"):
        return None, model.SerializeToString()
    if not isinstance(model, os.PathLike):
        raise TypeError(
            f"model: want a path, bytes or an onnx.ModelProto, got {type(model).__name__}"
        )
    return os.fsencode(model), b""


@functools.lru_cache(maxsize=64)
def _target_problem(name: str) -> str | None:
    return _anemone.target_problem(name)


def require_target(name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"target: want a name such as 'm1', got {type(name).__name__}")
    if "," in name or name.lower() == "all":
        raise ValueError(f"target {name!r}: want one target; check() takes several")
    problem = _target_problem(name)
    if problem is not None:
        raise UnknownTargetError(problem)


# Of the settings that are a dict, what one looks like.
_EXAMPLES = {
    "dims": "{'batch': 1}",
    "shapes": "{'x': [1, 3, 224, 224]}",
    "buckets": "{'seq': [32, 64]}",
    "adapters": "{'german': 'adapter_model.safetensors'}",
    "limits": "{'nodes': 100000}",
}


def _text(value: object, none: str = "") -> str:
    """A setting's value as the command writes it: sizes are separated by commas. `none` stands for
    no sizes."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value)) or none
    return str(value)


def settings_of(
    function: int, target: str, keywords: Mapping[str, object]
) -> _anemone.Settings:
    """The keywords of a function as settings; None stands for the default. TypeError: there is no
    such keyword, or it wants a dict; ValueError: the value is wrong."""
    settings = _anemone.Settings()
    settings.target = target
    settings.use_library(installed_library())
    for name, value in keywords.items():
        if isinstance(value, (str, int, float)) and name not in _EXAMPLES:
            settings.set(function, name, str(value))
            continue
        if name in _EXAMPLES and not isinstance(value, (Mapping, type(None))):
            raise TypeError(
                f"{name}: want a dict such as {_EXAMPLES[name]}, got {type(value).__name__}"
            )
        if name == "state" and not isinstance(value, (Mapping, str, type(None))):
            raise TypeError(
                f"state: want a dict such as {{'past': 'present'}}, or 'auto', got {type(value).__name__}"
            )
        if isinstance(value, Mapping):
            for key, item in value.items():
                if name == "buckets" and isinstance(item, Sequence) and not item:
                    raise ValueError(
                        f"buckets: '{key}' has no sizes; give at least one, as {_EXAMPLES[name]}"
                    )
                settings.set(function, name, f"{key}={_text(item, none='scalar')}")
        elif value is not None:
            settings.set(function, name, _text(value))
    return settings
