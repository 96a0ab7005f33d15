"""ONNX models on the Apple Neural Engine: a plugin for ONNX Runtime, and Anemone's own library.

    import onnxruntime as ort, onnxruntime_ep_ane as ane

    options = ort.SessionOptions()                        # the plugin, in a stock ONNX Runtime
    options.add_provider_for_devices(ane.register(), {"target": "m1"})
    session = ort.InferenceSession("net.onnx", options, enable_fallback=0)

    print(ane.check("net.onnx", target="m1,m4"))          # where every node would run, and why
    y = ane.Session("net.onnx", target="m1").run({"x": x})["y"]   # direct mode
    trainer = ane.Trainer("net.onnx", loss="mse:y:target", target="m1")
    loss = trainer.step({"x": x, "target": y})

A model is a path, bytes, or an onnx.ModelProto. Errors are ValueError (the model or the value of an
argument; UnknownTargetError is one, and a KeyError), TypeError (an unknown keyword, or an argument of
another type), FileNotFoundError, PermissionError, MemoryError, NotImplementedError, TimeoutError,
ImportError or RuntimeError; each says where, what, and what to do.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._anemone import __version__
    from ._diff import Diff, diff
    from ._generate import generate, generate_batch
    from ._models import Model, UnknownTargetError
    from ._plugin import compile, get_ep_name, get_library_path, register
    from ._report import Record, Report, check
    from ._report_page import report
    from ._session import Port, Session, Surfaces
    from ._trainer import Trainer
    from ._zoo import Zoo, zoo

__all__ = [
    "Diff",
    "Model",
    "Port",
    "Record",
    "Report",
    "Session",
    "Surfaces",
    "Trainer",
    "UnknownTargetError",
    "Zoo",
    "__version__",
    "check",
    "compile",
    "diff",
    "generate",
    "generate_batch",
    "get_ep_name",
    "get_library_path",
    "register",
    "report",
    "zoo",
]

# The modules of these names. They are imported when a name is first used: the command `anemone`, which is
# in this package too, starts without NumPy and the library.
_MODULES = {
    "__version__": "_anemone",
    "Diff": "_diff",
    "diff": "_diff",
    "Model": "_models",
    "UnknownTargetError": "_models",
    "compile": "_plugin",
    "generate": "_generate",
    "generate_batch": "_generate",
    "get_ep_name": "_plugin",
    "get_library_path": "_plugin",
    "register": "_plugin",
    "Record": "_report",
    "Report": "_report",
    "check": "_report",
    "report": "_report_page",
    "Port": "_session",
    "Session": "_session",
    "Surfaces": "_session",
    "Trainer": "_trainer",
    "Zoo": "_zoo",
    "zoo": "_zoo",
}

if not TYPE_CHECKING:  # for a type checker it would mean that every name exists

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_MODULES})
