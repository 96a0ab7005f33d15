"""The plugin execution provider in this process's ONNX Runtime."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _anemone
from ._keywords import DEFAULT_TARGET
from ._models import Model, path_or_bytes, require_target
from ._words import of_python, words_of_python

if TYPE_CHECKING:
    import onnxruntime as ort

_lock = threading.Lock()

# The exception for each of ONNX Runtime's error codes; others are a RuntimeError.
_EXCEPTIONS: dict[str, type[Exception]] = {
    "INVALID_ARGUMENT": ValueError,
    "INVALID_PROTOBUF": ValueError,
    "INVALID_GRAPH": ValueError,
    "NO_MODEL": ValueError,
    "NO_SUCHFILE": FileNotFoundError,
    "NOT_IMPLEMENTED": NotImplementedError,
}
# An error of a plugin is inside one of ONNX Runtime's own.
_CODE = re.compile(r".*\[ONNXRuntimeError\] : \d+ : ([A-Z_]+) : ", re.DOTALL)


def get_ep_name() -> str:
    return "ANEExecutionProvider"


def get_library_path() -> str:
    """The plugin, for onnxruntime.register_execution_provider_library()."""
    suffix = "dylib" if sys.platform == "darwin" else "so"
    return str(pathlib.Path(__file__).resolve().with_name(f"libonnxruntime_ane_ep.{suffix}"))


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ImportError(
            "onnxruntime: not installed, and this package does not include it; "
            "pip install 'onnxruntime>=1.23'"
        ) from error
    if not hasattr(onnxruntime, "register_execution_provider_library"):
        raise RuntimeError(
            f"onnxruntime {onnxruntime.__version__}: does not support plugins; "
            "pip install 'onnxruntime>=1.23'"
        )
    return onnxruntime


def register(name: str = "ane") -> list[ort.OrtEpDevice]:
    """Registers the plugin under `name` unless it is registered already, under any name. Returns its
    devices, for SessionOptions.add_provider_for_devices()."""
    onnxruntime = _onnxruntime()

    def devices() -> list[ort.OrtEpDevice]:
        return [d for d in onnxruntime.get_ep_devices() if d.ep_name == get_ep_name()]

    with _lock:
        found = devices()
        if not found:
            onnxruntime.register_execution_provider_library(name, get_library_path())
            found = devices()
    if not found:
        raise RuntimeError(
            f"onnxruntime {onnxruntime.__version__}: the plugin registered, but ONNX Runtime lists "
            "no device of it; run `anemone doctor`"
        )
    return found


@contextlib.contextmanager
def _errors_of_this_package(folder: pathlib.Path, shown: pathlib.Path) -> Iterator[None]:
    """ONNX Runtime's exceptions, which have only Exception in common, become those of docs/python.md.
    Messages name files of `folder` as if they were in `shown`."""
    try:
        yield
    except Exception as error:
        found = _CODE.match(str(error))
        if not found:
            raise
        text = of_python(str(error)[found.end() :]).strip().replace(str(folder), str(shown))
        kind = _EXCEPTIONS.get(found[1], RuntimeError)
        if "serialization failed when" in text:  # in words that depend on its version
            kind, text = OSError, f"{text}; the disk may be full: free space there"
        elif kind is RuntimeError and ": cannot be written: " in text:
            kind = OSError
        if kind is ValueError and "unknown option; valid" in text:
            kind = TypeError  # as for any keyword that a function does not have
        for words, limit in (("time limit of ", TimeoutError), ("the memory limit is ", MemoryError),
                             ("raise the limit (limits=", MemoryError)):
            kind = limit if words in text else kind
        raise kind(text) from error


def _option(value: object) -> str:
    """A keyword's value as the plugin reads it."""
    if isinstance(value, Mapping):  # limits
        return ",".join(f"{key}={item}" for key, item in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


def _require_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{text!r}: is not UTF-8, which ONNX Runtime's Python requires; rename the file"
        ) from None


def compile(
    model: Model,
    output: str | os.PathLike[str],
    target: str = DEFAULT_TARGET,
    *,
    embed: bool = False,
    session_options: ort.SessionOptions | None = None,
    **provider_options: object,
) -> pathlib.Path:
    """Writes `model` with its engine segments compiled, as EPContext nodes: ONNX Runtime with the
    plugin then neither plans nor compiles when it loads `output`.

    The packages are files next to `output`, or inside it with `embed`. `session_options` are ONNX
    Runtime's own, for free dimensions and such, and are changed. `provider_options` are those of the
    plugin (docs/plugin.md), None for the default. ValueError: no node goes to the engine, or a file
    name is invalid. FileExistsError: `output` exists. On an error nothing is written."""
    require_target(target)
    devices = register()
    onnxruntime = _onnxruntime()
    output = pathlib.Path(output)
    path, data = path_or_bytes(model)
    words = {
        key: _option(value)
        for key, value in {"target": target, **provider_options}.items()
        if value is not None
    }
    for text in (os.fsdecode(path or b""), str(output), *words.values()):
        _require_utf8(text)
    if not output.parent.is_dir():
        raise FileNotFoundError(f"{output}: the folder does not exist; create it")
    if path is not None and os.path.realpath(path) == os.path.realpath(os.fsencode(output)):
        raise ValueError(f"{output}: is the model itself; name another file to write")
    if output.is_dir():
        raise IsADirectoryError(f"{output}: is a folder; name a file to write")
    if os.path.lexists(output):
        raise FileExistsError(f"{output}: exists already; remove it, or name another file to write")
    if not output.suffix and not embed:
        raise ValueError(
            f"{output}: ONNX Runtime wants a name with an extension; name it {output.name}.onnx"
        )
    options = session_options or onnxruntime.SessionOptions()
    options.add_provider_for_devices(devices, words)
    # ONNX Runtime would leave a part of a file if the disk is full.
    with tempfile.TemporaryDirectory(dir=None if embed else output.parent) as folder:
        made = pathlib.Path(folder) / ("model.onnx" if embed else output.name)
        for key, value in (
            ("ep.context_enable", "1"),
            ("ep.context_file_path", str(made)),
            ("ep.context_embed_mode", "1" if embed else "0"),
        ):
            options.add_session_config_entry(key, value)
        with _errors_of_this_package(made.parent, made.parent if embed else output.parent):
            onnxruntime.InferenceSession(
                data if path is None else os.fsdecode(path), options, enable_fallback=0
            )
        if not made.exists():
            raise ValueError(
                f"{output}: not written, because {target} accepts no node of the model with these "
                "options; onnxruntime_ep_ane.check(), with the same policy and rewrites, says why"
            )
        if embed:
            with words_of_python():
                _anemone.write_file(os.fsencode(output), made.read_bytes())
        else:
            packages = [each for each in made.parent.iterdir() if each != made]
            for each in (*packages, made):  # the model last: it names the others
                os.replace(each, output.parent / each.name)
    return output
