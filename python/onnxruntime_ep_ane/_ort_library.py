"""Where ONNX Runtime's library is. Apart from what needs Anemone's own, for the command."""

import functools
import importlib.util
import os
import pathlib
import sys


def ort_library() -> str:
    """The library that the environment names, else of the installed onnxruntime, which is not
    imported for it; else empty, and the C++ library searches."""
    return os.environ.get("ANEMONE_ORT_LIBRARY") or _installed_library()


@functools.cache
def _installed_library() -> str:
    spec = importlib.util.find_spec("onnxruntime")
    pattern = "libonnxruntime.*dylib" if sys.platform == "darwin" else "libonnxruntime.so*"
    for folder in (spec and spec.submodule_search_locations) or ():
        for library in sorted(pathlib.Path(folder, "capi").glob(pattern)):
            return str(library)
    return ""
