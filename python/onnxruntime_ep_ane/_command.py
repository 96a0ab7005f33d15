"""The command `anemone` that comes with this package."""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Sequence

from ._ort_library import installed_library


def command_path() -> str:
    return str(pathlib.Path(__file__).resolve().with_name("anemone"))


def command_environment() -> dict[str, str]:
    """The environment in which the command finds the ONNX Runtime and the Python of this process."""
    made = {"ANEMONE_ORT_LIBRARY": installed_library(), "ANEMONE_PYTHON": sys.executable, **os.environ}
    return {name: value for name, value in made.items() if value}


def main(arguments: Sequence[str] | None = None) -> None:
    """Becomes the command."""
    words = sys.argv[1:] if arguments is None else arguments
    os.execve(command_path(), ["anemone", *words], command_environment())
