"""ONNX's own test cases, of the onnx package at hand, for every test that runs them: how they are
loaded, which are random, and when two results agree.
"""

import glob
import os
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import DATA_DIR, load_model_tests
from onnx.backend.test.runner import Runner

# "real" are models without their weights ("light"), whose inputs ONNX's runner makes.
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
ALL_KINDS = (*KINDS, "real")
# Random results differ from run to run.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
          "RandomUniformLike"}
# Types that NumPy has not, so ONNX Runtime's Python cannot be fed.
UNFED = ("bfloat16", "float8", "float4", "int4", "uint4", "int2", "uint2")
LARGEST_FP16 = float(np.finfo(np.float16).max)
# What the engine's arithmetic may make of a result: fp16 sums and tables, relative to the largest.
FP16_BOUND = 2e-2


class Case(NamedTuple):
    name: str  # "node:test_abs"
    model: onnx.ModelProto
    data_sets: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float

    def feeds(self, inputs):
        """By name. Initializers that are also inputs keep their values."""
        own = {initializer.name for initializer in self.model.graph.initializer}
        names = [port.name for port in self.model.graph.input if port.name not in own]
        return dict(zip(names, inputs))


def value_of(proto):
    if isinstance(proto, onnx.TensorProto):
        return numpy_helper.to_array(proto)
    if isinstance(proto, onnx.SequenceProto):
        return numpy_helper.to_list(proto)
    if isinstance(proto, onnx.OptionalProto):
        return numpy_helper.to_optional(proto)
    return np.asarray(proto) if isinstance(proto, np.generic) else proto


def read(path, port):
    kind = port.type.WhichOneof("value")
    proto = {"sequence_type": onnx.SequenceProto,
             "optional_type": onnx.OptionalProto}.get(kind, onnx.TensorProto)()
    with open(path, "rb") as file:
        proto.ParseFromString(file.read())
    return value_of(proto)


def stored(folder, what, ports):
    count = len(glob.glob(os.path.join(folder, f"{what}_*.pb")))
    return [read(os.path.join(folder, f"{what}_{i}.pb"), ports[i]) for i in range(count)]


def light(model, name):
    """A light model's one data set, as ONNX's runner makes it."""
    own = {initializer.name for initializer in model.graph.initializer}
    inputs = [Runner.generate_dummy_data(port, seed=0, name=name)
              for port in model.graph.input if port.name not in own]
    output = os.path.join(DATA_DIR, "light", f"light_{name}_output_0.pb")
    return [(inputs, [read(output, model.graph.output[0])])]


def load_case(case):
    """None where the package has no data for it."""
    if case.model is not None:
        model = case.model
        sets = [tuple([value_of(x) for x in part] for part in data_set)
                for data_set in case.data_sets]
    elif case.url is not None:
        path = os.path.join(DATA_DIR, "light", os.path.basename(case.url))
        if not os.path.exists(path):
            return None
        model = onnx.load(path)
        sets = light(model, case.model_name)
    else:
        model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
        sets = [(stored(folder, "input", model.graph.input),
                 stored(folder, "output", model.graph.output))
                for folder in sorted(glob.glob(os.path.join(case.model_dir, "test_data_set_*")))]
    return Case(f"{case.kind}:{case.name}", model, sets, case.rtol, case.atol) if sets else None


def load_cases(every=1, kinds=KINDS):
    """Every Nth case; the others are not read."""
    cases = [case for kind in kinds
             for case in sorted(load_model_tests(kind=kind), key=lambda case: case.name)]
    return filter(None, map(load_case, cases[::every]))


def can_be_fed(session):
    """Whether ONNX Runtime's Python takes and gives arrays of the types of all ports."""
    return not any(name in port.type for port in session.get_inputs() + session.get_outputs()
                   for name in UNFED)


def is_random(graph):
    return any(node.op_type in RANDOM or any(is_random(a.g) for a in node.attribute if a.HasField("g"))
               for node in graph.node)


def is_float(array):
    """Also of ml_dtypes' kinds, which NumPy calls void."""
    return array.dtype.kind in "fc" or "float" in array.dtype.name


def agrees(ours, theirs, rtol, atol=0.0, of_largest=0.0):
    """Equal but for floats within `atol`, `rtol` of their own, or `of_largest` of the largest."""
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(theirs, (list, tuple)):
        return (isinstance(ours, (list, tuple)) and len(ours) == len(theirs)
                and all(agrees(a, b, rtol, atol, of_largest) for a, b in zip(ours, theirs)))
    if isinstance(theirs, dict):
        return (isinstance(ours, dict) and ours.keys() == theirs.keys()
                and all(agrees(ours[key], theirs[key], rtol, atol, of_largest) for key in theirs))
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if ours.shape != theirs.shape:
        return False
    if theirs.dtype.kind in "OUST":
        return ours.astype(str).tolist() == theirs.astype(str).tolist()
    if ours.dtype != theirs.dtype:
        return False
    if not is_float(theirs):
        return np.array_equal(ours, theirs)
    wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
    if theirs.dtype.name == "bfloat16":
        rtol = max(rtol, 2**-6)  # two steps, as ONNX's runner has it
    ours, theirs = ours.astype(wide), theirs.astype(wide)
    largest = abs(theirs[np.isfinite(theirs)]).max(initial=1e-3)
    return np.allclose(ours, theirs, rtol=rtol, atol=max(atol, of_largest * largest),
                       equal_nan=True)


def agrees_in_fp16(ours, theirs):
    return agrees(ours, theirs, rtol=FP16_BOUND, of_largest=FP16_BOUND)


def beyond_fp16(values):
    """Numbers that fp16 has not: too large, or NaN, which becomes an infinity at a port."""
    for value in values:
        if isinstance(value, (list, tuple)):
            if beyond_fp16(value):
                return True
            continue
        if value is None or isinstance(value, dict):
            continue
        array = np.asarray(value)
        if array.dtype.kind == "f" and array.size and not (abs(array) < LARGEST_FP16).all():
            return True
    return False
