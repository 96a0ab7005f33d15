# The C++ half, module.cc. An array is (type, dims, its bytes; or a list of bytes for strings); a
# sequence is a list of values, a map the arrays of its keys and its values, None an empty optional.
from typing import Any

import numpy as np

__version__: str

Array = tuple[str, tuple[int, ...], np.ndarray[Any, np.dtype[np.uint8]] | list[bytes]]
Value = Array | tuple[Array, Array] | list["Value"] | None
PortTuple = tuple[str, str, tuple[int, ...], bool, str, str]

class SessionOptions:
    target: str
    route: str
    policy: str
    rewrites: bool
    device: str
    numerics: str
    threads: int
    dims: dict[str, int]
    shapes: dict[str, list[int]]
    buckets: dict[str, list[int]]
    ort_library: str
    def __init__(self) -> None: ...

class Session:
    @property
    def inputs(self) -> list[PortTuple]: ...
    @property
    def outputs(self) -> list[PortTuple]: ...
    def run(self, values: dict[str, Value], /) -> dict[str, Value]: ...
    def plan_text(self, every_node: bool, /) -> str: ...
    def plan_json(self) -> str: ...

class CheckOptions:
    targets: list[str]
    route: str
    policy: str
    rewrites: bool
    dims: dict[str, int]
    shapes: dict[str, list[int]]
    buckets: dict[str, list[int]]
    ort_library: str
    def __init__(self) -> None: ...

class CheckReport:
    def text(self, every_node: bool, colour: bool, /) -> str: ...
    def json(self) -> str: ...

def load(path: bytes, options: SessionOptions, /) -> Session: ...
def load_bytes(model: bytes, options: SessionOptions, /) -> Session: ...
def check(path: bytes, options: CheckOptions, /) -> CheckReport: ...
def check_bytes(model: bytes, options: CheckOptions, /) -> CheckReport: ...
def target_problem(name: str, /) -> str | None: ...
