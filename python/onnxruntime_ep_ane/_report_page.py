"""report(): a page about the plans of a model."""

from __future__ import annotations

import errno
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import _anemone
from ._keywords import DEFAULT_TARGET
from ._models import Model
from ._report import check
from ._words import words_of_python

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keywords import CheckKeywords


def report(
    model: Model,
    output: str | os.PathLike[str] | None = None,
    target: str | Sequence[str] = DEFAULT_TARGET,
    **keywords: Unpack[CheckKeywords],
) -> str:
    """The page that `anemone report` writes, as text: what to change in the model, its graph, where time
    goes, and the targets side by side. With `output`, it is written there too, in one step:

        ane.report("net.onnx", "net.html", target="m1,m4")
    """
    html = check(model, target, **keywords).page()
    if output is not None:
        path = pathlib.Path(output)
        if isinstance(model, (str, os.PathLike)) and path.exists() and path.samefile(model):
            raise ValueError(f"output: {path} is the model that is read")
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))
        with words_of_python():
            _anemone.write_file(os.fsencode(path), html.encode())
    return html
