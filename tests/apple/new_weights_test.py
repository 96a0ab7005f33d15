"""Session.update_weights() with device="apple" on the stand-in: the bits of the software device in exact mode,
and no compile.

    new_weights_test.py DRIVER STANDIN
"""

import ctypes
import os
import sys
import tempfile

# Before the package opens the framework.
log = tempfile.NamedTemporaryFile()
os.environ.update(ANEMONE_ANE_DRIVER=sys.argv[1], ANEMONE_ANE_FRAMEWORK=sys.argv[2], ANEMONE_STANDIN_LOG=log.name)

import threading  # noqa: E402

import numpy  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import onnxruntime_ep_ane as ane  # noqa: E402


def model(seed):
    """A convolution with a normalization, a part that the policy keeps on the CPU, and a product."""
    random = numpy.random.default_rng(seed)
    shapes = {"k": (8, 3, 3, 3), "b": (8,), "s": (8,), "t": (8,), "m": (8,), "v": (8,), "w": (128, 32), "c": (32,)}
    weights = {name: random.uniform(0.1, 0.5, shape).astype(numpy.float32) for name, shape in shapes.items()}
    nodes = [helper.make_node("Conv", ["x", "k", "b"], ["n"], pads=[1, 1, 1, 1]),
             helper.make_node("BatchNormalization", ["n", "s", "t", "m", "v"], ["a"]),
             helper.make_node("MaxPool", ["a"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Flatten", ["p"], ["f"]),
             helper.make_node("Gemm", ["f", "w", "c"], ["y"])]
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), weights


def compiles():
    with open(log.name) as file:
        return len(file.read().split())


def main():
    x = numpy.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(numpy.float32)
    keywords = {"cache": False, "policy": "refuse:Pooling"}
    session = ane.Session(model(1)[0], device="apple", **keywords)
    made = compiles()
    assert made > 0, "nothing was compiled on the stand-in"
    want = [ane.Session(model(seed)[0], device="software", numerics="exact", **keywords).run({"x": x})["y"].tobytes()
            for seed in (1, 2, 3)]
    assert session.run({"x": x})["y"].tobytes() == want[0]
    ended, wrong = threading.Event(), []

    def run():
        while not ended.is_set():
            if session.run({"x": x})["y"].tobytes() not in want:
                wrong.append("a run with old and new weights")

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for seed in (2, 3, 1, 2):
        session.update_weights(model(seed)[1])
        assert session.run({"x": x})["y"].tobytes() == want[seed - 1], f"other bits with the weights of seed {seed}"
    ended.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
    assert compiles() == made, f"{compiles() - made} compiles for new weights"
    # Weights that the second segment does not take: none of the segments has them.
    fault = ctypes.CDLL(sys.argv[2]).anemone_standin_fault
    fault(b"load#2")
    try:
        session.update_weights(model(3)[1])
        raise AssertionError("the update did not fail")
    except RuntimeError as error:
        assert "Program load failure" in str(error), error
    assert session.run({"x": x})["y"].tobytes() == want[1], "some of the weights are new"
    # With `auto`, the software engine takes the segment over.
    auto = ane.Session(model(1)[0], device="auto", **keywords)
    fault(b"load#2")
    auto.update_weights(model(3)[1])
    fault(b"")
    numpy.testing.assert_allclose(auto.run({"x": x})["y"], numpy.frombuffer(want[2], numpy.float32).reshape(1, 32),
                                  rtol=5e-3)
    assert any("did not take its new weights" in warning for warning in auto.run_warnings), auto.run_warnings
    # Another session of the file has the file's weights.
    other = ane.Session(model(1)[0], device="apple", **keywords)
    assert other.run({"x": x})["y"].tobytes() == want[0]
    assert session.run({"x": x})["y"].tobytes() == want[1]


main()
