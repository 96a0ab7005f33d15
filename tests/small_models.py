"""Small models that tests of the plugin, of the Python package and of the installation share."""

import numpy as np
from onnx import TensorProto, TypeProto, helper, numpy_helper


def port(name, kind, shape=None):
    """Of a tensor's element type, or of a TypeProto."""
    if isinstance(kind, TypeProto):
        return helper.make_value_info(name, kind)
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, constants=(), opset=21):
    graph = helper.make_graph(
        nodes, "test", [port(*words) for words in inputs], [port(*words) for words in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 10
    return made


def chain(*operators):
    """Operators of one input one behind the other, each with the name `Operator_place`: v0 to v1, ..."""
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"], name=f"{op}_{i}") for i, op in enumerate(operators)]
    return model(nodes, [("v0", TensorProto.FLOAT, [1, 8])], [(f"v{len(operators)}", TensorProto.FLOAT, [1, 8])])


def network():
    """A Conv and a Relu that the engine takes, a Cast to int64 and back that it does not, a Sigmoid."""
    weights = np.random.default_rng(1).standard_normal((8, 3, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], "conv", pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["a"], ["b"], "relu"),
             helper.make_node("Cast", ["b"], ["c"], "cast", to=TensorProto.INT64),
             helper.make_node("Cast", ["c"], ["d"], "back", to=TensorProto.FLOAT),
             helper.make_node("Sigmoid", ["d"], ["y"], "sigmoid")]
    return model(nodes, [("x", TensorProto.FLOAT, [1, 3, 16, 16])],
                 [("y", TensorProto.FLOAT, [1, 8, 16, 16])], [("w", weights)])


def image(seed=2):
    return np.random.default_rng(seed).standard_normal((1, 3, 16, 16)).astype(np.float32)


def relu(shape=(1, 4, 8, 8), name="relu"):
    return model([helper.make_node("Relu", ["x"], ["y"], name)],
                 [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)])


def identity(kind, shape=(2, 3)):
    return model([helper.make_node("Identity", ["x"], ["y"])], [("x", kind, shape)],
                 [("y", kind, shape)])
