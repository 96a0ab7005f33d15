"""Where ONNX Runtime's library is. Apart from what needs Anemone's own, for the command."""

import functools
import importlib.util
import pathlib
import sys


@functools.cache
def installed_library() -> str:
    """The library of the installed onnxruntime, which is not imported for it. If empty, the C++ library
    searches."""
    spec = importlib.util.find_spec("onnxruntime")
    pattern = "libonnxruntime.*dylib" if sys.platform == "darwin" else "libonnxruntime.so*"
    for folder in (spec and spec.submodule_search_locations) or ():
        for library in sorted(pathlib.Path(folder, "capi").glob(pattern)):
            return str(library)
    return ""
