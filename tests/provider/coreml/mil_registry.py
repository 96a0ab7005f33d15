"""The operations of the interpreter, by name, and one ONNX operator in fp32 for those that use it."""

import numpy
import onnxruntime
from onnx import helper

OPERATIONS = {}


def operation(*names):
    def add(function):
        for name in names:
            OPERATIONS[name] = function
        return function
    return add


def by_onnx_runtime(kind, inputs, count=1, **attributes):
    """One ONNX operator, in fp32."""
    inputs = [numpy.ascontiguousarray(x, numpy.float32) for x in inputs]
    names = [f"i{i}" for i in range(len(inputs))]
    outputs = [f"o{i}" for i in range(count)]
    node = helper.make_node(kind, names, outputs, **attributes)
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info(n, 1, x.shape) for n, x in zip(names, inputs)],
        [helper.make_tensor_value_info(n, 1, None) for n in outputs])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs)))
