"""ONNX's backend node tests as models: float inputs at run time, everything else constant.

A case with integers or doubles is converted to floats if ONNX has the operator for floats.
"""
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16}
RUN_TIME = FLOATS | {TensorProto.BOOL}
RETYPED = {TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8,
           TensorProto.UINT32, TensorProto.UINT64, TensorProto.INT8, TensorProto.INT16}


def schema_of(model):
    node = model.graph.node[0]
    versions = [o.version for o in model.opset_import if o.domain == node.domain]
    return onnx.defs.get_schema(node.op_type, versions[0], node.domain)


def variables(formals, names):
    """By value name: the type variable (or type) that the schema gives it."""
    return {name: formals[min(i, len(formals) - 1)].type_str for i, name in enumerate(names)}


def as_floats(model, inputs):
    """Changes the type of the first input, and of all values with its type variable, to float.

    Returns False if the schema does not allow it.
    """
    schema = schema_of(model)
    if not schema.inputs or not inputs:
        return False
    first = schema.inputs[0].type_str
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    node = model.graph.node[0]
    if "tensor(float)" not in allowed.get(first, []):
        return False
    of = variables(schema.inputs, node.input) | variables(schema.outputs, node.output)
    for value in list(model.graph.input) + list(model.graph.output):
        if of[value.name] == first:
            if value.type.tensor_type.elem_type not in RETYPED:
                return False
            value.type.tensor_type.elem_type = TensorProto.FLOAT
    for i, value in enumerate(model.graph.input):
        if of[value.name] == first:
            inputs[i] = inputs[i].astype(np.float32)
    return True


def types_of(graph):
    values = list(graph.input) + list(graph.output)
    if any(v.type.WhichOneof("value") != "tensor_type" for v in values):
        return None
    return {v.type.tensor_type.elem_type for v in values}


def with_constants(model, inputs, keep_all):
    """The model with its float inputs, or only the first unless `keep_all`, given at run time."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    kept = []
    for value, array in zip(model.graph.input, inputs):
        kind = value.type.tensor_type.elem_type
        is_data = (kind in RUN_TIME and array.ndim > 0) or (kind in FLOATS and len(inputs) == 1)
        if is_data and (keep_all or not kept):
            kept.append(value)
        else:
            tensor = numpy_helper.from_array(array, value.name)
            tensor.data_type = value.type.tensor_type.elem_type
            made.graph.initializer.append(tensor)
    del made.graph.input[:]
    made.graph.input.extend(kept)
    return made


def array_of(value):
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def float_cases():
    """Yields (operator, case, models): the forms of each case, that with most run-time inputs first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    for case in cases:
        if case.model is None or len(case.model.graph.node) != 1:
            continue
        node = case.model.graph.node[0]
        types = types_of(case.model.graph)
        if types is None or TensorProto.STRING in types:
            continue
        inputs = [array_of(x) for x in case.data_sets[0][0]]
        if not types & FLOATS and types != {TensorProto.BOOL}:
            if not as_floats(case.model, inputs):
                continue
        elif TensorProto.DOUBLE in types:
            continue
        forms = [with_constants(case.model, inputs, True)]
        if len(forms[0].graph.input) > 1:
            forms.append(with_constants(case.model, inputs, False))
        yield (f"{node.domain}:" if node.domain else "") + node.op_type, case.name, forms
