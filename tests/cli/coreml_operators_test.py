"""Core ML packages of operators that several operations of MIL say, of branches, and of values at the limits."""

import unittest

import numpy
import onnx
import onnxruntime
from onnx import helper

from coreml_support import CoreMLTest, Package, constant, cosine, random
from support import anemone, model, tensor

INT8, INT32, INT64, UINT8, UINT16, BOOL = (getattr(onnx.TensorProto, name) for name in (
    "INT8", "INT32", "INT64", "UINT8", "UINT16", "BOOL"))
CPU = ("--policy", "cpu")


def body(name, nodes, outputs):
    return helper.make_graph(nodes, name, [], outputs)


class Operators(CoreMLTest):
    def test_branches_are_a_cond(self):
        """A product in one branch, another If in the other; both read what the graph around them has."""
        inner = [body(name, [helper.make_node(op, ["h"], [f"{name}_y"])], [tensor(f"{name}_y", [2, 4])])
                 for name, op in (("small", "Neg"), ("large", "Relu"))]
        yes = body("yes", [helper.make_node("MatMul", ["h", "w"], ["m"]),
                           helper.make_node("ReduceSum", ["x", "one"], ["s"]),
                           helper.make_node("Add", ["m", "s"], ["yes_y"])],
                   [tensor("yes_y", [2, 4]), tensor("s", [2, 1])])
        no = body("no", [helper.make_node("If", ["second"], ["i"], then_branch=inner[0], else_branch=inner[1]),
                         helper.make_node("Identity", ["zeros"], ["z"])], [tensor("i", [2, 4]), tensor("z", [2, 1])])
        nodes = [helper.make_node("Tanh", ["x"], ["h"]), helper.make_node("Greater", ["k", "limit"], ["first"]),
                 helper.make_node("Equal", ["k", "limit"], ["second"]),
                 helper.make_node("If", ["first"], ["y", "t"], then_branch=yes, else_branch=no),
                 helper.make_node("Softmax", ["y"], ["p"])]
        made = model(nodes, [tensor("k", [], INT64), tensor("x", [2, 4])], [tensor("p", [2, 4]), tensor("t", [2, 1])],
                     [constant("w", random(4, 4)), constant("one", [1], INT64), constant("limit", 3, INT64),
                      constant("zeros", numpy.zeros((2, 1)))])
        path = self.write(made)
        report, package = self.compare(made, feeds={"k": numpy.array(5), "x": random(2, 4)})
        self.assertEqual((2, "ios15"), (report["operations"]["cond"], report["minimum_os"]))
        product = next(op for op in package.operations() if op.op_type == "matmul")
        self.assertEqual("fp16", product.outputs[0].dtype.__name__)
        for k in (2, 3, 4):
            feeds = {"k": numpy.array([k]), "x": random(2, 4, seed=k)}
            wanted = onnxruntime.InferenceSession(str(path)).run(None, {**feeds, "k": numpy.array(k)})
            got = package.run(feeds)
            for name, value in zip("pt", wanted):
                self.assertGreater(cosine(got[name], value), 0.999, (k, name))

    def test_operators_in_branches_become_those_of_their_functions(self):
        yes = body("yes", [helper.make_node("Mish", ["x"], ["a"])], [tensor("a", [2, 4])])
        no = body("no", [helper.make_node("Neg", ["x"], ["b"])], [tensor("b", [2, 4])])
        made = model([helper.make_node("If", ["c"], ["y"], then_branch=yes, else_branch=no)],
                     [tensor("c", [1], BOOL), tensor("x", [2, 4])], [tensor("y", [2, 4])])
        self.compare(made, feeds={"c": numpy.array([True]), "x": random(2, 4)})

    def test_branches_of_other_shapes_are_an_error(self):
        branches = [body(n, [helper.make_node("Slice", ["x", "zero", f"{n}_end"], [f"{n}_y"])],
                         [tensor(f"{n}_y", [i, 4])]) for i, n in enumerate(("one", "two"), 1)]
        made = model([helper.make_node("If", ["c"], ["y"], name="which", then_branch=branches[0],
                                       else_branch=branches[1])],
                     [tensor("c", [], BOOL), tensor("x", [2, 4])], [tensor("y", [None, 4])],
                     [constant("zero", [0], INT64), constant("one_end", [1], INT64), constant("two_end", [2], INT64)])
        out = self.folder / "no.mlpackage"
        self.expect_error(anemone("convert", self.write(made), "--to", "mlpackage", "-o", out),
                          "'which' (If", "differ between its branches")

    def test_bits(self):
        """Of negative numbers too, and with operands that broadcast."""
        nodes = [helper.make_node(f"Bitwise{op}", ["a", "b"], [op]) for op in ("And", "Or", "Xor")]
        made = model([*nodes, helper.make_node("Cast", ["a"], ["n"], to=INT8),
                      helper.make_node("BitCast", ["n"], ["Cast"], to=UINT8)],
                     [tensor("a", [3, 5], INT32), tensor("b", [5], INT32)],
                     [*(tensor(op, [3, 5], INT32) for op in ("And", "Or", "Xor")), tensor("Cast", [3, 5], UINT8)],
                     opset=26)
        rng = numpy.random.default_rng(0)
        a = rng.integers(-2**31, 2**31, (3, 5)).astype(numpy.int32)
        b = numpy.array([-1, 0, -2**31, 2**31 - 1, 12345], numpy.int32)
        out, _ = self.convert(self.write(made))
        got = Package(out).run({"a": a, "b": b})
        for op, wanted in (("And", a & b), ("Or", a | b), ("Xor", a ^ b), ("Cast", a.astype(numpy.uint8))):
            numpy.testing.assert_array_equal(got[op], wanted, op)

    def test_padding_of_integers_and_negative_padding(self):
        nodes = [helper.make_node("Pad", ["a", "pads", "seven"], ["constant"]),
                 helper.make_node("Pad", ["a", "grow"], ["edge"], mode="edge"),
                 helper.make_node("Pad", ["a", "grow"], ["reflect"], mode="reflect"),
                 helper.make_node("Pad", ["x", "more"], ["wrap"], mode="wrap"),
                 helper.make_node("Pad", ["x", "pads"], ["cut"])]
        made = model(nodes, [tensor("a", [3, 4], INT64), tensor("x", [3, 4])],
                     [tensor("constant", [3, 5], INT64), tensor("edge", [5, 6], INT64),
                      tensor("reflect", [5, 6], INT64), tensor("wrap", [11, 9]), tensor("cut", [3, 5])],
                     [constant("pads", [1, -1, -1, 2], INT64), constant("grow", [2, 1, 0, 1], INT64),
                      constant("more", [4, 0, 4, 5], INT64), constant("seven", 7, INT64)])
        a = numpy.random.default_rng(0).integers(-2**31, 2**31, (3, 4))
        self.compare(made, *CPU, feeds={"a": a, "x": random(3, 4)})
        free = model(nodes[:1], [tensor("a", ["n", 4], INT64)], [tensor("constant", ["m", 5], INT64)],
                     [constant("pads", [1, 2, 0, -1], INT64), constant("seven", 7, INT64)])
        self.compare(free, "--dim", "n=2..5", feeds={"a": a})

    def test_quantized_convolutions_and_scales_for_blocks(self):
        rng = numpy.random.default_rng(2)
        weight = rng.integers(-128, 128, (4, 2, 3, 3))
        nodes = [helper.make_node("ConvInteger", ["q", "w", "zero"], ["i"], pads=[1, 1, 1, 1]),
                 helper.make_node("QLinearConv", ["q", "s", "zero", "w", "ws", "wz", "ys", "zero", "b"], ["c"],
                                  strides=[2, 2]),
                 helper.make_node("QuantizeLinear", ["x", "blocks", "offsets"], ["codes"], axis=1, block_size=3),
                 helper.make_node("DequantizeLinear", ["codes", "blocks", "offsets"], ["d"], axis=1, block_size=3)]
        made = model(nodes, [tensor("q", [1, 2, 6, 6], UINT8), tensor("x", [2, 7])],
                     [tensor("i", [1, 4, 6, 6], INT32), tensor("c", [1, 4, 2, 2], UINT8),
                      tensor("codes", [2, 7], UINT16), tensor("d", [2, 7])],
                     [constant("w", weight, INT8), constant("zero", 100, UINT8), constant("s", numpy.float32(0.5)),
                      constant("ws", [0.25, 0.5, 0.125, 1.0]), constant("wz", [0, 0, 0, 0], INT8),
                      constant("ys", numpy.float32(64)), constant("b", [1000, -2000, 30, 4], INT32),
                      constant("blocks", [[0.5, 0.25, 2], [1, 0.125, 0.0625]]),
                      constant("offsets", [[32769, 3, 2049], [1, 65500, 7]], UINT16)])
        self.compare(made, *CPU, feeds={"q": rng.integers(0, 256, (1, 2, 6, 6)).astype(numpy.uint8),
                                        "x": random(2, 7) * 20})

    def test_pools_and_training_forms(self):
        nodes = [helper.make_node("AveragePool", ["x"], ["mean"], kernel_shape=[2, 3], dilations=[2, 1],
                                  pads=[1, 0, 0, 1], strides=[2, 2], ceil_mode=1),
                 helper.make_node("AveragePool", ["x"], ["all"], kernel_shape=[2, 2], dilations=[3, 2],
                                  pads=[1, 1, 1, 1], count_include_pad=1),
                 helper.make_node("LpPool", ["x"], ["p"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], p=3),
                 helper.make_node("BatchNormalization", ["x", "g", "b", "m", "v"], ["n", "nm", "nv"], training_mode=1),
                 helper.make_node("Dropout", ["x", "zero", "yes"], ["d"])]
        made = model(nodes, [tensor("x", [2, 3, 8, 9])],
                     [tensor("mean", [2, 3, 4, 5]), tensor("all", [2, 3, 7, 9]), tensor("p", [2, 3, 8, 9]),
                      tensor("n", [2, 3, 8, 9]), tensor("nm", [3]), tensor("nv", [3]), tensor("d", [2, 3, 8, 9])],
                     [constant("g", [1, 2, 0.5]), constant("b", [0, 1, -1]), constant("m", [0.5, 0, 2]),
                      constant("v", [1, 2, 3]), constant("zero", numpy.float32(0)), constant("yes", True, BOOL)])
        self.compare(made, *CPU)

    def test_a_port_of_bytes_that_is_an_output(self):
        """The error was `map::at`."""
        made = model([helper.make_node("Identity", ["x"], ["y"])], [tensor("x", [2, 4], UINT8)],
                     [tensor("y", [2, 4], UINT8)])
        self.compare(made, feeds={"x": numpy.arange(248, 256, dtype=numpy.uint8).reshape(2, 4)})

    def test_numbers_that_are_not_finite_stay_outside_of_the_engine(self):
        """A NaN became infinite, as at a port of the engine."""
        for count in (4, 32):
            numbers = numpy.resize([numpy.nan, numpy.inf, -numpy.inf, 1], count)
            made = model([helper.make_node("Add", ["x", "k"], ["y"])], [tensor("x", [count])], [tensor("y", [count])],
                         [constant("k", numbers)])
            path = self.write(made)
            got = Package(self.convert(path, *CPU)[0]).run({"x": numpy.zeros(count, numpy.float32)})["y"]
            numpy.testing.assert_array_equal(numbers, got)

    def test_factors_that_fp16_does_not_hold(self):
        """The mask was 0 * -infinity, and small numbers times 1e6 were infinite."""
        nodes = [helper.make_node("Mul", ["m", "low"], ["mask"]), helper.make_node("Add", ["x", "mask"], ["s"]),
                 helper.make_node("Softmax", ["s"], ["y"]), helper.make_node("Mul", ["x", "large"], ["l"]),
                 helper.make_node("Mul", ["l", "tiny"], ["z"])]
        made = model(nodes, [tensor("x", ["n", 4]), tensor("m", [4])], [tensor("y", ["n", 4]), tensor("z", ["n", 4])],
                     [constant("low", numpy.float32(-3.4e38)), constant("large", numpy.float32(1e6)),
                      constant("tiny", numpy.float32(1e-6))])
        feeds = {"x": random(3, 4), "m": numpy.array([0, 1, 0, 1], numpy.float32)}
        for words in (("--dim", "n=1..5"), ("--dim", "n=3", *CPU)):
            self.compare(made, *words, feeds=feeds)

    def test_ports_keep_names_that_mil_has(self):
        made = model([helper.make_node("Add", ["a.b", "a_b"], ["a-b"])], [tensor("a.b", [4]), tensor("a_b", [4])],
                     [tensor("a-b", [4])])
        report = self.convert(self.write(made))[1]
        self.assertEqual(["'a.b' is named 'a_b_1'", "'a-b' is named 'a_b_2'"], report["notes"])

    def test_options_that_are_given_twice(self):
        path = self.write(model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [1, 3, "h", 8])],
                                [tensor("y", [1, 3, "h", 8])]))
        out = self.folder / "no.mlpackage"
        for words, text in ((("--metadata", "Author=a", "--metadata", "author=b"), "'author' is given twice"),
                            (("--image-input", "x:scale=1,scale=2"), "twice"),
                            (("--image-input", "x", "--dim", "h=4..8"), "must be known")):
            self.expect_error(anemone("convert", path, "--to", "mlpackage", "-o", out, *words), text, code=2)


if __name__ == "__main__":
    unittest.main()
