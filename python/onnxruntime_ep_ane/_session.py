"""Direct mode: a model on one target, without a session of ONNX Runtime."""

from __future__ import annotations

import difflib
import functools
import math
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from . import _anemone
from ._keywords import DEFAULT_TARGET
from ._models import Model, path_or_bytes, require_target, settings_of
from ._report import Record, in_python, records_of, terminal_width
from ._words import of_python, words_of_python

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keywords import SessionKeywords

# ml_dtypes' names where they are not ONNX's.
_ML_DTYPES = {"float8_e8m0": "float8_e8m0fnu", "float4_e2m1": "float4_e2m1fn"}
_ONNX_NAMES = {numpy: onnx for onnx, numpy in _ML_DTYPES.items()}
# Bits of an element, which ONNX packs several to a byte; ml_dtypes does not pack them.
_PACKED = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1": 4}

# The numbers of the types that both NumPy and ONNX have: C++ reads and makes their arrays.
_OF_BOTH = frozenset(np.dtype(char).num for char in "?efdbhilqBHILQ")

_Bytes = npt.NDArray[np.uint8]
# What a port takes: an array, a list of values for a sequence, a dict for a map, or None.
Value = Any


class Port(NamedTuple):
    """An input or output of the model. A size of -1 is known only at run time."""

    name: str
    dtype: str  # of the elements, however deep; of a map's values
    shape: tuple[int, ...]  # of a tensor
    has_default: bool  # may be left out of run()
    kind: str = "tensor"  # or "sequence", "optional", "map"
    type: str = ""  # "float32", "optional(sequence(float32))", "map(int64, float32)"


def _named(names: Iterable[str]) -> str:
    """"'x', 'mask'", and dots for the names after the tenth."""
    listed = [repr(name) for name in names]
    return ", ".join(listed[:10]) + (", ..." if len(listed) > 10 else "")


def _typed(name: str, shape: Sequence[int]) -> str:
    """"float32 ?x3x224x224", and "float32" of a scalar."""
    sizes = "x".join("?" if n < 0 else str(n) for n in shape)
    return f"{name} {sizes}" if sizes else name


def _wanted(port: Port) -> str:
    return _typed(port.type, port.shape)


def _rows_of(adapters: Sequence[str | None]) -> list[str]:
    """The adapters of the rows of a batch as C++ takes them."""
    if not isinstance(adapters, Sequence) or not all(name is None or isinstance(name, str) for name in adapters):
        raise TypeError("adapter: want a name, or a list with a name or None for each row of the batch")
    if not adapters:
        raise ValueError("adapter: the list has no names; give one for each row of the batch")
    return [name or "" for name in adapters]


def _check_names(
    ports: Mapping[str, Port], inputs: Mapping[str, Value], session: _anemone.Session | None = None
) -> None:
    """Raises ValueError if a name is not that of an input, or if an input without a default has none."""
    for name in inputs:
        if name in ports:
            continue
        if not isinstance(name, str):
            raise TypeError("inputs: want a dict of arrays by the inputs' names")
        if session is not None and name in session.constant_inputs:
            raise ValueError(
                f"input {name!r}: it is a constant, because it is an initializer of the model; load the model "
                f"with overridable=[{name!r}] to keep it an input"
            )
        near = difflib.get_close_matches(name, ports, 1)
        question = f"did you mean {near[0]!r}? It has" if near else "it has"
        known = f"{question} {_named(ports)}" if ports else "no input is to be given"
        raise ValueError(f"input {name!r}: the model has no such input; {known}")
    missing = [port for port in ports.values() if port.name not in inputs and not port.has_default]
    if missing:
        first = missing[0]
        others = f"; missing too: {_named(port.name for port in missing[1:])}" if missing[1:] else ""
        raise ValueError(f"input {first.name!r}: missing; give a value of type {_wanted(first)} for it{others}")


@functools.cache  # NumPy makes the name anew each time
def _onnx_name(dtype: np.dtype[Any]) -> str:
    return _ONNX_NAMES.get(dtype.name, dtype.name)


@functools.cache
def _dtype(name: str, port: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError(f"'{port}': NumPy does not have the type {name}; pip install ml_dtypes") from error
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES.get(name, name)))
    return found


def _packed(elements: _Bytes, bits: int) -> _Bytes:
    """The low bits of each byte, the first element lowest."""
    per_byte = 8 // bits
    padded = np.zeros(-(-elements.size // per_byte) * per_byte, np.uint8)
    padded[: elements.size] = elements & ((1 << bits) - 1)
    packed = np.zeros(padded.size // per_byte, np.uint8)
    for i in range(per_byte):
        packed |= padded[i::per_byte] << (i * bits)
    return packed


def _unpacked(packed: _Bytes, bits: int, count: int, is_signed: bool) -> _Bytes:
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    elements = ((packed[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count]
    if is_signed:
        elements = np.where(elements >> (bits - 1), elements | (0xFF << bits) & 0xFF, elements)
    return elements.astype(np.uint8)


def _is_array(value: Value) -> TypeGuard[npt.NDArray[Any]]:
    """Whether it goes to C++ as it is, whatever the port."""
    return isinstance(value, np.ndarray) and value.dtype.kind != "O"


def _array_of(port: Port, value: Value) -> npt.NDArray[Any]:
    """The value as an array. Raises ValueError if it is none, or if a value of Python's own types does
    not become an array of the port's type."""
    if _is_array(value):
        return value
    got = "None" if value is None else f"a {type(value).__name__}"
    remedy = f"give np.asarray(..., '{'str' if port.dtype == 'string' else port.dtype}')"
    if value is None and port.has_default:
        remedy += ", or leave the input out"
    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of several lengths
        raise ValueError(f"input {port.name!r}: want {_wanted(port)}, got {got}: {error}; {remedy}") from error
    if array.dtype.kind == "O":
        is_array = all(isinstance(item, (str, bytes)) for item in array.flat)
        got += "" if value is None else " of objects"
    else:
        name = "string" if array.dtype.kind in "UST" else _onnx_name(array.dtype)
        is_array = port.kind != "tensor" or isinstance(value, (np.ndarray, np.generic)) or port.dtype == name
        got += f", of which NumPy makes {_typed(name, array.shape)}"
    if not is_array:
        raise ValueError(f"input {port.name!r}: want {_wanted(port)}, got {got}; {remedy}")
    return array


def _array_to_cpp(array: npt.NDArray[Any]) -> _anemone.Array:
    dtype = array.dtype
    if dtype.num in _OF_BOTH:
        flags = array.flags
        if dtype.isnative and flags.c_contiguous and flags.aligned:
            return array
        return np.array(array, dtype.newbyteorder("="), order="C")
    if dtype.kind in "OUST":
        strings = [
            text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")
            for text in array.ravel().tolist()
        ]
        return "string", array.shape, strings
    name = _onnx_name(dtype)
    # ascontiguousarray() copies nothing that is contiguous, and makes a scalar one of one element.
    elements = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return name, array.shape, _packed(elements, _PACKED[name]) if name in _PACKED else elements


def _to_cpp(port: Port, value: Value) -> _anemone.Value:
    if port.kind == "tensor":
        return _array_to_cpp(_array_of(port, value))
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_to_cpp(port, element) for element in value]
    if isinstance(value, Mapping):
        values = np.asarray(list(value.values()), _dtype(port.dtype, port.name))
        return _array_to_cpp(np.asarray(list(value))), _array_to_cpp(values)
    return _array_to_cpp(_array_of(port, value))


def _array_from_cpp(port: str, made: _anemone.Array) -> npt.NDArray[Any]:
    if isinstance(made, np.ndarray):
        return made
    name, shape, elements = made
    if isinstance(elements, list):
        texts = np.empty(len(elements), dtype=object)
        texts[:] = [text.decode("utf-8", "surrogateescape") for text in elements]
        return texts.reshape(shape)
    if name in _PACKED:
        count = math.prod(shape)
        elements = _unpacked(elements, _PACKED[name], count, name.startswith("int"))
    return elements.view(_dtype(name, port)).reshape(shape)


def _from_cpp(port: str, made: _anemone.Value) -> Value:
    if made is None:
        return None
    if isinstance(made, list):
        return [_from_cpp(port, element) for element in made]
    if isinstance(made, tuple) and len(made) == 2:
        keys, values = (_array_from_cpp(port, part) for part in made)
        return dict(zip(keys.tolist(), values.tolist()))
    return _array_from_cpp(port, made)


class Surfaces(Mapping[str, "npt.NDArray[np.float16]"]):
    """Memory of the engine for some inputs and outputs, of Session.surfaces(): float16 arrays by their
    names. run() reads and writes these arrays where they are, without a copy. An array must not be used
    while a run lasts."""

    def __init__(self, session: Session, names: Sequence[str]) -> None:
        self._session = session
        with words_of_python():
            self._surfaces = session._session.surfaces(list(names))
        self._arrays = {name: self._surfaces.bits(name).view(np.float16) for name in names}

    def __getitem__(self, name: str) -> npt.NDArray[np.float16]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def run(self, inputs: Mapping[str, Value] = MappingProxyType({})) -> dict[str, Value]:
        """Runs the model on the arrays, and on `inputs` for all inputs that have none; a NaN in an input's
        array becomes +infinity. Returns every output by name; those that have an array are that array."""
        for name in inputs:
            if name in self._arrays:
                raise ValueError(f"input {name!r}: it is read from its array; write the values there")
        ports = {name: port for name, port in self._session._inputs.items() if name not in self._arrays}
        _check_names(ports, inputs, self._session._session)
        values = {name: _to_cpp(ports[name], value) for name, value in inputs.items()}
        with words_of_python():
            made = self._surfaces.run(values)
        self._session._warn()
        outputs = (port.name for port in self._session.outputs)
        return {name: self._arrays[name] if name in self._arrays else _from_cpp(name, made[name]) for name in outputs}


class Session:
    """A model, planned and compiled for one target. run() may be called from many threads.

    With state={"past": "present"}, or state="auto" for the usual names of exporters, the session
    keeps the output `present` as the input `past` of the next run: docs/state.md."""

    def __init__(
        self,
        model: Model,
        target: str = DEFAULT_TARGET,
        **keywords: Unpack[SessionKeywords],
    ) -> None:
        require_target(target)
        path, data = path_or_bytes(model)
        with words_of_python():
            settings = settings_of(_anemone.SESSION, target, keywords)
            if path is None:
                self._session = _anemone.load_bytes(data, settings)
            else:
                self._session = _anemone.load(path, settings)
        self._begin()

    def _begin(self) -> None:
        self._warned: set[str] = set()
        self._warning = threading.Lock()

    @functools.cached_property
    def _input_names(self) -> set[str]:
        return self._session.input_names

    @functools.cached_property  # a run with an array for each input needs none
    def _inputs(self) -> dict[str, Port]:
        return {port[0]: Port(*port) for port in self._session.inputs}

    @property
    def inputs(self) -> list[Port]:
        return list(self._inputs.values())

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
        made = records_of(self._session.plan_json())
        return made if isinstance(made, list) else [made]

    def run(
        self, inputs: Mapping[str, Value], adapter: str | Sequence[str | None] | None = ""
    ) -> dict[str, Value]:
        """Every output by name. Types and shapes must be those of `inputs`; arrays are not copied
        if they are contiguous. A sequence is a list, a map a dict, None an optional without a
        value. `adapter` is a name of the session's `adapters`, or None; with `adapter_rows` also a list of
        names, one for each row of the batch, in which None is no adapter. Values that fp16 cannot
        hold are a RuntimeWarning, once for each session."""
        if not isinstance(inputs, Mapping):
            raise TypeError("inputs: want a dict of arrays by the inputs' names")
        if inputs.keys() != self._input_names:
            _check_names(self._inputs, inputs, self._session)
        values = {
            name: _array_to_cpp(value) if _is_array(value) else _to_cpp(self._inputs[name], value)
            for name, value in inputs.items()
        }
        with words_of_python():
            if adapter is None or isinstance(adapter, str):
                made = self._session.run(values, adapter or "", [])
            else:
                made = self._session.run(values, "", _rows_of(adapter))
        self._warn()
        return {name: _from_cpp(name, value) for name, value in made.items()}

    def surfaces(self, *names: str) -> Surfaces:
        """Memory of the engine for these inputs and outputs, as arrays. Each call makes new ones; runs on
        several can be made at the same time. Values must be floats that only the engine reads or makes."""
        if not names or not all(isinstance(name, str) for name in names):
            raise TypeError("surfaces: give the names of inputs and outputs")
        return Surfaces(self, names)

    def update_weights(self, weights: Mapping[str, npt.ArrayLike]) -> None:
        """Puts new values in the place of initializers of the model, by name, for all later runs.
        Types and shapes must be those of the file. On an error nothing has changed."""
        if not isinstance(weights, Mapping) or not all(isinstance(name, str) for name in weights):
            raise TypeError("weights: want a dict of arrays by the initializers' names")
        arrays = {}
        for name, weight in weights.items():
            array = np.asarray(weight)
            if array.dtype == object:
                raise TypeError(f"weight '{name}': want an array, got {type(weight).__name__}")
            arrays[name] = _array_to_cpp(array)
        with words_of_python():
            self._session.update_weights(arrays)

    @property
    def state_pairs(self) -> dict[str, str]:
        """The inputs whose value is kept, and the outputs that it comes from."""
        return self._session.state_pairs()

    def _state_port(self, name: str) -> Port:
        if name in self._inputs and name in self.state_pairs:
            return self._inputs[name]
        pairs = self.state_pairs
        kept = f"no pair has this input; there are: {_named(pairs)}" if pairs else "this session keeps none; give state="
        raise KeyError(f"state {name!r}: {kept}")

    def state(self, name: str) -> npt.NDArray[Any]:
        """A copy of the value that the input has in the next run; zeros before the first."""
        self._state_port(name)
        with words_of_python():
            return _array_from_cpp(name, self._session.state(name))

    def write_state(self, name: str, array: Value) -> None:
        """Replaces the value. The array is copied; it has the input's type and shape."""
        port = self._state_port(name)
        with words_of_python():
            self._session.write_state(name, _array_to_cpp(_array_of(port, array)))

    def reset_state(self) -> None:
        """All values become zeros."""
        self._session.reset_state()

    def fork(self) -> Session:
        """A session of the same programs with a state of its own, which is zeros. Compiles nothing."""
        made = Session.__new__(Session)
        made._session = self._session.fork()
        made._begin()
        return made

    @property
    def run_warnings(self) -> list[str]:
        """What run() has warned of so far: values that fp16 cannot hold, and the node, each once."""
        return [of_python(text) for text in self._session.run_warnings()]

    def _warn(self) -> None:
        """Warns of what is new, for the caller of run()."""
        if not (texts := self.run_warnings):
            return
        with self._warning:
            new = [text for text in texts if text not in self._warned]
            self._warned.update(new)
        for text in new:
            warnings.warn(text, RuntimeWarning, stacklevel=3)

    def __repr__(self) -> str:
        width = terminal_width()
        return in_python(self._session.plan_text(False, width), width)
