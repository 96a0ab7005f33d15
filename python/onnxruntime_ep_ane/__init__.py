"""ONNX models on the Apple Neural Engine: a plugin for ONNX Runtime, and Anemone's own library.

    import onnxruntime as ort, onnxruntime_ep_ane as ane

    options = ort.SessionOptions()                        # the plugin, in a stock ONNX Runtime
    options.add_provider_for_devices(ane.register(), {"target": "m1"})
    session = ort.InferenceSession("net.onnx", options, enable_fallback=0)

    print(ane.check("net.onnx", target="m1,m4"))          # where every node would run, and why
    y = ane.Session("net.onnx", target="m1").run({"x": x})["y"]   # direct mode

A model is a path, bytes, or an onnx.ModelProto. Errors are ValueError (the model or the value of an
argument; UnknownTargetError is one, and a KeyError), TypeError (an unknown keyword, or an argument of
another type), FileNotFoundError, PermissionError, MemoryError, NotImplementedError, ImportError or
RuntimeError; each says where, what, and what to do.
"""

from ._anemone import __version__
from ._diff import Diff, diff
from ._generate import generate
from ._models import Model, UnknownTargetError
from ._plugin import compile, get_ep_name, get_library_path, register
from ._report import Record, Report, check
from ._report_page import report
from ._session import Port, Session
from ._zoo import Zoo, zoo

__all__ = [
    "Diff",
    "Model",
    "Port",
    "Record",
    "Report",
    "Session",
    "UnknownTargetError",
    "Zoo",
    "__version__",
    "check",
    "compile",
    "diff",
    "generate",
    "get_ep_name",
    "get_library_path",
    "register",
    "report",
    "zoo",
]
