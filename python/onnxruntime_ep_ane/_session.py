"""Direct mode: a model on one target, without ONNX Runtime's session around it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _anemone
from ._models import Model, path_or_bytes, require_target, with_planning
from ._report import Record

# NumPy has these only by the package ml_dtypes, under names that are not all ONNX's.
_ML_DTYPES = {"float8_e8m0": "float8_e8m0fnu"}
_ONNX_NAMES = {numpy: onnx for onnx, numpy in _ML_DTYPES.items()}
_PACKED = {"int2", "uint2", "int4", "uint4", "float4_e2m1"}


class Port(NamedTuple):
    """An input or output of the model. A size of -1 is known only at run time."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    has_default: bool  # may be left out of run()


def _dtype(name: str, port: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"'{port}': NumPy has no {name}; pip install ml_dtypes") from error
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES.get(name, name)))
    return found


def _refuse_packed(name: str, port: str) -> None:
    if name in _PACKED:
        raise NotImplementedError(
            f"'{port}': arrays of {name} are not in this version; cast to int8 in the model"
        )


def _to_cpp(port: str, value: npt.ArrayLike) -> _anemone.Array:
    array = np.asarray(value)
    if array.dtype.kind in "OUST":
        strings = [
            text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")
            for text in array.ravel().tolist()
        ]
        return "string", array.shape, strings
    name = _ONNX_NAMES.get(array.dtype.name, array.dtype.name)
    _refuse_packed(name, port)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    # ascontiguousarray() copies nothing that is contiguous, and makes a scalar one of one element.
    return name, array.shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _from_cpp(port: str, made: _anemone.Array) -> npt.NDArray[Any]:
    name, shape, elements = made
    if isinstance(elements, list):
        texts = np.empty(len(elements), dtype=object)
        texts[:] = [text.decode("utf-8", "surrogateescape") for text in elements]
        return texts.reshape(shape)
    _refuse_packed(name, port)
    return elements.view(_dtype(name, port)).reshape(shape)


class Session:
    """A model, planned and compiled for one target. run() may be called from many threads."""

    def __init__(
        self,
        model: Model,
        target: str = "h13",
        *,
        route: str = "netplist",
        policy: str = "maximal",
        rewrites: bool = True,
        device: str = "auto",
        numerics: str = "fast",
        threads: int = 0,
        dims: Mapping[str, int] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
        buckets: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        require_target(target)
        options = with_planning(
            _anemone.SessionOptions(), route, policy, rewrites, dims, shapes, buckets
        )
        options.target = target
        options.device = device
        options.numerics = numerics
        options.threads = threads
        path, data = path_or_bytes(model)
        if path is None:
            self._session = _anemone.load_bytes(data, options)
        else:
            self._session = _anemone.load(path, options)
        for port in (*self.inputs, *self.outputs):
            if port.dtype == "undefined":
                raise NotImplementedError(
                    f"'{port.name}': direct mode takes and gives tensors only in this version, no "
                    "sequences, maps or optional values; use onnxruntime with the plugin"
                )

    @property
    def inputs(self) -> list[Port]:
        return [Port(*port) for port in self._session.inputs]

    @property
    def outputs(self) -> list[Port]:
        return [Port(*port) for port in self._session.outputs]

    @property
    def plan(self) -> Record:
        """Where each node runs, and why: an item of `targets` in check()'s report; with buckets
        that of the smallest."""
        return self.plans[0]

    @property
    def plans(self) -> list[Record]:
        """One plan, or one for each bucket."""
        made = json.loads(self._session.plan_json(), object_hook=Record)
        return made if isinstance(made, list) else [made]

    def run(self, inputs: Mapping[str, npt.ArrayLike]) -> dict[str, npt.NDArray[Any]]:
        """Every output by name. Types and shapes must be those of `inputs`; arrays are not copied
        if they are contiguous."""
        made = self._session.run({name: _to_cpp(name, array) for name, array in inputs.items()})
        return {name: _from_cpp(name, array) for name, array in made.items()}

    def __repr__(self) -> str:
        return self._session.plan_text(False).rstrip("\n")
