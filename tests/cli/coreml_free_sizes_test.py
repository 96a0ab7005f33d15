"""`anemone convert --to mlpackage` of models with free dimensions: `--dim NAME=N..M` and `--bucket`. Packages are
opened by coremltools, which checks the types with symbols for the sizes, and run at several sizes."""

import unittest

import numpy
import onnx
import onnxruntime
from onnx import helper

from coreml_support import CoreMLTest, Package, constant, cosine, random
from support import anemone, model, tensor

INT64 = onnx.TensorProto.INT64


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def ints(name, *values):
    return constant(name, values, INT64)


def decoder():
    """Token and position embeddings, and an attention of two heads under a causal mask, with the shape arithmetic
    of PyTorch's exports."""
    nodes = [node("Shape", "ids", "shape"), node("Gather", "shape zero", "b"), node("Gather", "shape one", "s"),
             node("Range", "zero s one", "positions"), node("Gather", "places positions", "p"),
             node("Gather", "words ids", "e"), node("Add", "e p", "x"),
             node("LayerNormalization", "x scale bias", "n"), node("MatMul", "n wqkv", "qkv"),
             node("Split", "qkv", "q k v", axis=2, num_outputs=3),
             node("Unsqueeze", "b axis0", "b1"), node("Unsqueeze", "s axis0", "s1"),
             node("Concat", "b1 s1 heads", "apart", axis=0), node("Concat", "b1 s1 width", "together", axis=0)]
    for name in "qkv":
        nodes += [node("Reshape", f"{name} apart", f"{name}r"),
                  node("Transpose", f"{name}r", f"{name}t", perm=[0, 2, 1, 3])]
    nodes += [node("Transpose", "kt", "kk", perm=[0, 1, 3, 2]), node("MatMul", "qt kk", "scores"),
              node("Concat", "s1 s1", "square", axis=0), node("Expand", "ones square", "full"),
              node("Trilu", "full first", "mask", upper=1), node("Cast", "mask", "hidden", to=9),
              node("Where", "hidden low scores", "masked"), node("Softmax", "masked", "weights"),
              node("MatMul", "weights vt", "mixed"), node("Transpose", "mixed", "back", perm=[0, 2, 1, 3]),
              node("Reshape", "back together", "flat"), node("Add", "flat x", "y")]
    return model(nodes, [tensor("ids", ["batch", "seq"], INT64)], [tensor("y", ["batch", "seq", 16])],
                 [constant("zero", 0, INT64), constant("one", 1, INT64), constant("first", 1, INT64),
                  ints("axis0", 0), ints("heads", 2, 8), ints("width", 16),
                  constant("places", random(64, 16, seed=1)), constant("words", random(50, 16, seed=2)),
                  constant("scale", numpy.ones(16)), constant("bias", random(16)),
                  constant("wqkv", random(16, 48, seed=3) / 4), constant("ones", [1.0]),
                  constant("low", numpy.float32(-1e9))])


def images():
    """Convolutions with strides, pools, an enlarged and joined image, and normalizations."""
    nodes = [node("Conv", "x k", "c", strides=[2, 2], pads=[1, 1, 1, 1]), node("Relu", "c", "r"),
             node("MaxPool", "r", "m", kernel_shape=[2, 2], strides=[2, 2]),
             node("Resize", "m  factors", "u", mode="nearest", coordinate_transformation_mode="asymmetric",
                  nearest_mode="floor"),
             node("Concat", "u r", "j", axis=1), node("GroupNormalization", "j gs gb", "g", num_groups=2),
             node("ConvTranspose", "g t", "z", strides=[2, 2]),
             node("DepthToSpace", "z", "d", blocksize=2), node("InstanceNormalization", "d is ib", "y"),
             node("GlobalAveragePool", "j", "a"), node("Flatten", "a", "f"), node("Gemm", "f w v", "classes")]
    nodes[3].input[:] = ["m", "", "factors"]
    return model(nodes, [tensor("x", ["n", 3, "h", "w"])],
                 [tensor("y", ["n", 2, None, None]), tensor("classes", ["n", 5])],
                 [constant("k", random(4, 3, 3, 3) / 3), constant("factors", [1.0, 1, 2, 2]),
                  constant("gs", random(8)), constant("gb", random(8)), constant("t", random(8, 8, 2, 2) / 3),
                  constant("is", [1.0, 2]), constant("ib", [0.0, 1]), constant("w", random(8, 5)),
                  constant("v", random(5))])


def moves():
    """Slices that ONNX clamps at small sizes, a reversal, and results whose sizes depend on those of x."""
    nodes = [node("Slice", "x one far axis1", "tail"), node("Slice", "x minus3 minus1 axis1", "inner"),
             node("Slice", "x two six axis1", "middle"), node("Slice", "x minus1 low axis1 minus1", "reversed"),
             node("ReduceMax", "tail axis1", "a", keepdims=0), node("ReduceSum", "inner axis1", "b", keepdims=1),
             node("ReduceMean", "middle axis1", "c", keepdims=0),
             node("Shape", "x", "shape"), node("ConstantOfShape", "shape", "zeros",
                                               value=constant("value", [2.0])),
             node("Mul", "reversed zeros", "doubled"), node("Expand", "b shape", "wide"),
             node("Where", "chosen wide doubled", "y"), node("Flatten", "x", "flat"),
             node("Tile", "a twice", "t"), node("ArgMax", "x", "places", axis=1, keepdims=0),
             node("GatherElements", "x turned", "g", axis=2),
             node("Pad", "x pads", "padded"), node("Size", "x", "count")]
    return model(nodes, [tensor("x", ["n", "s", 4]), tensor("chosen", ["s", 1], 9),
                         tensor("turned", ["n", "s", 4], INT64)],
                 [tensor("y", ["n", "s", 4]), tensor("flat", ["n", None]), tensor("t", ["n", 8]),
                  tensor("c", ["n", 4]), tensor("places", ["n", 4], INT64), tensor("g", ["n", "s", 4]),
                  tensor("padded", ["n", None, 4]), tensor("count", [], INT64)],
                 [ints("one", 1), ints("two", 2), ints("six", 6), ints("far", 2**63 - 1), ints("low", -2**62),
                  ints("minus1", -1), ints("minus3", -3), ints("axis1", 1), ints("twice", 1, 2),
                  ints("pads", 0, 1, 0, 0, 2, 0)])


class FreeSizes(CoreMLTest):
    def agree(self, made, words, feeds_of, sizes, target="h13"):
        """Converts once, and runs at each of the sizes."""
        path = self.write(made)
        out, report = self.convert(path, *words, "--target", target)
        package = Package(out)
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        for size in sizes:
            feeds = feeds_of(*size)
            wanted, got = session.run(None, feeds), package.run(feeds)
            for output, a, b in zip(session.get_outputs(), got.values(), wanted):
                with self.subTest(output.name, size=size):
                    self.assertEqual(b.shape or (1,), a.shape)
                    if a.dtype.kind == "f":
                        self.assertGreater(cosine(a, b), 0.999)
                    else:
                        numpy.testing.assert_array_equal(a.reshape(b.shape), b)
        return report, package

    def test_a_decoder_of_any_batch_and_length(self):
        def feeds(b, s):
            return {"ids": numpy.random.default_rng(s).integers(0, 50, (b, s))}
        report, package = self.agree(decoder(), ("--dim", "batch=1..4", "--dim", "seq=1..64"), feeds,
                                     [(1, 1), (2, 7), (4, 64)])
        array = package.spec.description.input[0].type.multiArrayType
        self.assertEqual([1, 1], list(array.shape))
        self.assertEqual([(1, 4), (1, 64)],
                         [(r.lowerBound, r.upperBound) for r in array.shapeRange.sizeRanges])
        self.assertEqual([], list(package.spec.description.output[0].type.multiArrayType.shape))
        self.assertIn("batch=1..4 seq=1..64", " ".join(report["notes"]))

    def test_images_of_any_size(self):
        def feeds(n, h, w):
            return {"x": random(n, 3, h, w, seed=h)}
        self.agree(images(), ("--bucket", "n=1,3", "--bucket", "h=8,32", "--bucket", "w=8,16"), feeds,
                   [(1, 8, 8), (3, 32, 16), (1, 32, 8)])

    def test_moves_whose_sizes_depend_on_the_input(self):
        def feeds(n, s):
            rng = numpy.random.default_rng(s)
            return {"x": random(n, s, 4, seed=s), "chosen": rng.integers(0, 2, (s, 1)).astype(bool),
                    "turned": rng.integers(-4, 4, (n, s, 4))}
        self.agree(moves(), ("--dim", "n=1..8", "--dim", "s=4..100"), feeds, [(1, 4), (3, 5), (8, 100)])

    def test_recurrent_networks(self):
        def case(kind, gates, steps, **attributes):
            directions = 2 if attributes.get("direction") == "bidirectional" else 1
            outputs = ["y", "h", "c"] if kind == "LSTM" else ["y", "h"]
            inputs = ["x", "w", "r", "b", "", "h0"] + (["c0"] if kind == "LSTM" else [])
            made = node(kind, "", "", hidden_size=3, **attributes)
            made.input[:], made.output[:] = inputs, outputs
            given = [tensor("x", [steps, "n", 4])] + [tensor(name, [directions, "n", 3]) for name in inputs[5:]]
            return model([made], given, [tensor("y", [steps, directions, "n", 3])] +
                         [tensor(name, [directions, "n", 3]) for name in outputs[1:]],
                         [constant("w", random(directions, gates * 3, 4, seed=1)),
                          constant("r", random(directions, gates * 3, 3, seed=2)),
                          constant("b", random(directions, gates * 6, seed=3))])
        both = {"direction": "bidirectional"}
        for kind, gates, attributes in (("LSTM", 4, {}), ("LSTM", 4, both), ("LSTM", 4, {"direction": "reverse"}),
                                        ("RNN", 1, both), ("GRU", 3, {"linear_before_reset": 1}), ("GRU", 3, both)):
            directions = 2 if attributes.get("direction") == "bidirectional" else 1
            steps = 5 if kind == "GRU" else "s"  # MIL has no form of a GRU with any number of steps
            def feeds(n, s=5, directions=directions, kind=kind):
                states = ["h0", "c0"] if kind == "LSTM" else ["h0"]
                return {"x": random(s, n, 4, seed=n), **{name: random(directions, n, 3) for name in states}}
            words = ["--dim", "n=1..8"] + ([] if kind == "GRU" else ["--dim", "s=1..100"])
            sizes = [(1,), (8,)] if kind == "GRU" else [(1, 1), (3, 7), (8, 100)]
            with self.subTest(kind, **attributes):
                self.agree(case(kind, gates, steps, **attributes), words, feeds, sizes)
        plain = model([node("LSTM", "x w r", "y h", hidden_size=3)], [tensor("x", ["s", "n", 4])],
                      [tensor("y", ["s", 1, "n", 3]), tensor("h", [1, "n", 3])],
                      [constant("w", random(1, 12, 4)), constant("r", random(1, 12, 3))])
        self.agree(plain, ("--dim", "n=1..8", "--dim", "s=1..100"), lambda n, s: {"x": random(s, n, 4)},
                   [(1, 1), (8, 100)])

    def test_einsum(self):
        for equation, shapes in (("bij,bjk->bik", (("n", "m", 4), ("n", 4, 5))),
                                 ("bhid,bhjd->bhij", (("n", 2, "m", 4), ("n", 2, "m", 4))),
                                 ("bthc,hcd->btd", (("n", "m", 2, 4), (2, 4, 5))), ("bij->bji", (("n", "m", 4),)),
                                 ("bij->b", (("n", "m", 4),)), ("...ij,jk->...ik", (("n", "m", 4), (4, 3))),
                                 ("ni,mi,i->nm", (("n", 4), ("m", 4), (4,))), ("ni,nj", (("n", 4), ("n", 5))),
                                 ("i,nj->ijn", ((4,), ("n", "m")))):
            names = [f"x{i}" for i in range(len(shapes))]
            made = model([node("Einsum", " ".join(names), "y", equation=equation)],
                         [tensor(name, shape) for name, shape in zip(names, shapes)], [tensor("y", None)])
            words = ["--dim", "n=1..8"] + (["--dim", "m=1..40"] if "m" in str(shapes) else [])
            def feeds(n, m=1, shapes=shapes, names=names):
                sizes = [[{"n": n, "m": m}.get(extent, extent) for extent in shape] for shape in shapes]
                return {name: random(*size, seed=i) for i, (name, size) in enumerate(zip(names, sizes))}
            with self.subTest(equation):
                self.agree(made, words, feeds, [(1, 1), (3, 7), (8, 40)] if len(words) > 2 else [(1,), (8,)])

    def test_samples_of_a_grid(self):
        for mode, padding, aligned in (("linear", "zeros", 0), ("linear", "border", 1), ("linear", "reflection", 0),
                                       ("linear", "reflection", 1), ("nearest", "zeros", 0), ("linear", "zeros", 1)):
            made = model([node("GridSample", "x g", "y", mode=mode, padding_mode=padding, align_corners=aligned)],
                         [tensor("x", ["n", 2, "h", 6]), tensor("g", ["n", "k", 3, 2])], [tensor("y", None)])
            with self.subTest(mode, padding=padding, aligned=aligned):
                self.agree(made, ("--dim", "n=1..4", "--dim", "h=2..20", "--dim", "k=1..9"),
                           lambda n, h, k: {"x": random(n, 2, h, 6), "g": random(n, k, 3, 2, seed=1)},
                           [(1, 2, 1), (3, 9, 4), (4, 20, 9)])

    def test_operators_that_onnx_defines_by_others(self):
        """They are written by ONNX's functions, and others by rows of their own."""
        nodes = [node("Celu", "x", "a", alpha=0.5), node("Mish", "a", "b"), node("Selu", "x", "c"),
                 node("ThresholdedRelu", "x", "d", alpha=0.3), node("Shrink", "x", "e", lambd=0.2, bias=0.1),
                 node("LpNormalization", "x", "f", axis=1), node("Sum", "a b c d e f", "y"),
                 node("MeanVarianceNormalization", "p", "m"), node("LRN", "m", "l", size=3),
                 node("GlobalLpPool", "l", "g"), node("IsInf", "x", "i"), node("ReduceLogSum", "s axis", "z"),
                 node("Abs", "x", "s"), node("SoftmaxCrossEntropyLoss", "x t", "loss")]
        nodes[-2], nodes[-3] = nodes[-3], nodes[-2]
        made = model(nodes, [tensor("x", ["n", 5]), tensor("p", ["n", 4, "h", 3]), tensor("t", ["n"], INT64)],
                     [tensor("y", ["n", 5]), tensor("l", ["n", 4, "h", 3]), tensor("g", ["n", 4, 1, 1]),
                      tensor("i", ["n", 5], 9), tensor("z", ["n", 1]), tensor("loss", [])], [ints("axis", 1)])
        self.agree(made, ("--dim", "n=1..8", "--dim", "h=1..50"),
                   lambda n, h: {"x": random(n, 5), "p": random(n, 4, h, 3), "t": numpy.arange(n) % 5},
                   [(1, 1), (3, 7), (8, 50)])

    def test_lists_of_shapes(self):
        made = model([node("MatMul", "x z", "y")], [tensor("x", ["n", 4]), tensor("z", [4, "m"])],
                     [tensor("y", ["n", "m"])])
        report, package = self.agree(
            made, ("--bucket", "n=2,1", "--bucket", "m=3,5"),
            lambda n, m: {"x": random(n, 4), "z": random(4, m)}, [(1, 3), (2, 5)])
        self.assertEqual("ios18", report["minimum_os"])  # several inputs with lists
        arrays = [port.type.multiArrayType for port in package.spec.description.input]
        self.assertEqual([[[1, 4], [2, 4], [1, 4], [2, 4]], [[4, 3], [4, 3], [4, 5], [4, 5]]],
                         [[list(s.shape) for s in array.enumeratedShapes.shapes] for array in arrays])
        made = model([node("Relu", "x", "y")], [tensor("x", ["n", 4])], [tensor("y", ["n", 4])])
        report, package = self.agree(made, ("--bucket", "n=2,7"), lambda n: {"x": random(n, 4)}, [(2,), (7,)])
        self.assertEqual("ios15", report["minimum_os"])

    def test_sizes_that_a_model_cannot_have(self):
        pairs = self.write(model([node("Reshape", "x shape", "y", name="pairs")], [tensor("x", ["n"])],
                                 [tensor("y", [None, 2])], [ints("shape", -1, 2)]), "pairs.onnx")
        out = self.folder / "no"
        done = anemone("convert", pairs, "--to", "mlpackage", "--dim", "n=2..8", "-o", out)
        self.expect_error(done, "'pairs' (Reshape", "but not each size of n=2..8", "--bucket n=", code=2)
        self.assertEqual(0, anemone("convert", pairs, "--to", "mlpackage", "--bucket", "n=2,8", "-o",
                                    self.folder / "yes").returncode)
        fixed = self.write(model([node("Reshape", "x shape", "y", name="six")], [tensor("x", ["n"])],
                                 [tensor("y", [2, 3])], [ints("shape", 2, 3)]), "fixed.onnx")
        done = anemone("convert", fixed, "--to", "mlpackage", "--dim", "n=2..8", "-o", out)
        self.expect_error(done, "n=2", "'six' (Reshape", "2 to 2x3", code=2)
        loop = self.write(model([node("GRU", "x w r", "y", hidden_size=2, name="cell")],
                                [tensor("x", ["s", 1, 2])], [tensor("y", ["s", 1, 1, 2])],
                                [constant("w", random(1, 6, 2)), constant("r", random(1, 6, 2))]), "loop.onnx")
        done = anemone("convert", loop, "--to", "mlpackage", "--dim", "s=2..8", "-o", out)
        self.expect_error(done, "'cell' (GRU", "free number of steps", "reset gate", "--dim")
        place = self.write(model([node("GridSample", "x g", "y", mode="cubic", name="warp")],
                                 [tensor("x", [1, 1, "h", 4]), tensor("g", [1, 2, 2, 2])],
                                 [tensor("y", [1, 1, 2, 2])]), "place.onnx")
        done = anemone("convert", place, "--to", "mlpackage", "--dim", "h=2..8", "-o", out)
        self.expect_error(done, "'warp' (GridSample", "cubic", "resample")
        self.assertFalse(out.exists())

    def test_windows_that_do_not_fit(self):
        """The convolution of a size that its window does not fit was written, with a note of a fault of ours."""
        conv = node("Conv", "x k", "c", strides=[2, 2], name="first")
        one = model([conv], [tensor("x", [1, 1, "h", 8])], [tensor("c", [1, 1, None, None])],
                    [constant("k", random(1, 1, 3, 3))])
        two = model([conv, node("Conv", "c k", "y", strides=[2, 2], name="second")],
                    [tensor("x", [1, 1, "h", "w"])], [tensor("y", [1, 1, None, None])],
                    [constant("k", random(1, 1, 3, 3))])
        pool = model([node("MaxPool", "x", "y", kernel_shape=[3, 3], name="pool")],
                     [tensor("x", [1, 1, "h", 8])], [tensor("y", [1, 1, None, None])])
        pooled = model([node("MaxPool", "x", "y", kernel_shape=[3, 3], strides=[2, 2], name="pool")],
                       [tensor("x", [1, 1, "h", 8])], [tensor("y", [1, 1, None, None])])
        cut = model([node("Slice", "x from far axis", "y", name="cut")], [tensor("x", ["h", 4])],
                    [tensor("y", [None, 4])], [ints("from", 5), ints("far", 2**40), ints("axis", 0)])
        halves = model([node("Conv", "x k", "c", strides=[2], pads=[1, 1]), node("Resize", "c", "u"),
                        node("Add", "x u", "y", name="sum")], [tensor("x", [1, 1, "h"])],
                       [tensor("y", [1, 1, None])], [constant("k", random(1, 1, 3)), constant("twice", [1.0, 1, 2])])
        halves.graph.node[1].input[:] = ["c", "", "twice"]
        out = self.folder / "no"
        for number, (made, words, texts) in enumerate((
                (one, ("--dim", "h=1..2"), ("'first' (Conv", "h=1: the model cannot", "sizes that fit: h=3")),
                (one, ("--dim", "h=1..64"), ("'first' (Conv", "size 1 on axis 2", "h=1..64; sizes that fit: h=3..64")),
                (one, ("--dim", "h=2..640"), ("'first' (Conv", "sizes that fit: h=3..640")),
                (one, ("--bucket", "h=2,8,16"), ("'first' (Conv", "cannot have h=2", "sizes that fit: h=8,16")),
                (two, ("--dim", "h=3..64", "--dim", "w=8..64"),
                 ("'second' (Conv", "cannot have h=3", "sizes that fit: h=7..64 w=8..64")),
                (two, ("--bucket", "h=3,9", "--bucket", "w=8,64"),
                 ("'second' (Conv", "sizes that fit: h=9 w=8,64")),
                (pool, ("--dim", "h=2..9"), ("'pool' (MaxPool", "sizes that fit: h=3..9")),
                (pooled, ("--dim", "h=2..9"), ("'pool' (MaxPool", "but the window needs 3", "sizes that fit: h=3..9")),
                (cut, ("--dim", "h=2..1000"), ("'cut' (Slice", "no elements", "sizes that fit: h=6..1000")),
                (halves, ("--dim", "h=2..40"), ("'sum' (Add", "h=3: the model cannot", "h=2 or h=4",
                                                "not each size", "--bucket h=N")))):
            path = self.write(made, f"{number}.onnx")
            done = anemone("convert", path, "--to", "mlpackage", *words, "-o", out)
            self.expect_error(done, f"{number}.onnx: ", *texts, code=2)
        self.assertFalse(out.exists())

    def test_what_the_options_must_be(self):
        path = self.write(model([node("Add", "x z", "y")], [tensor("x", ["n", 4]), tensor("z", ["n", "m"])],
                                [tensor("y", ["n", 4])]))
        out = self.folder / "no"
        for words, texts in ((("--dim", "n=1..4"), ("'m'", "--dim m=")),
                             (("--dim", "n=1..4", "--bucket", "m=1,4"), ("one kind",)),
                             (("--dim", "k=1..4", "--dim", "n=1", "--dim", "m=1"), ("--dim k: no input", "are bound")),
                             (("--dim", "n=4..1"), ("smallest",)),
                             (("--dim", "n=4..4"), ("two different sizes", "n=4 for one")),
                             (("--dim", "n=0..4"), ("from 1 to",)),
                             (("--dim", "n=1..4", "--dim", "n=2..3"), ("twice",)),
                             (("--dim", "n=1..4", "--segments"), ("--segments",)),
                             (("--bucket", "n=1,4", "--segments"), ("--segments",)),
                             (("--state", "x=y", "--dim", "n=1..4", "--dim", "m=1"), ("same shape",))):
            done = anemone("convert", path, "--to", "mlpackage", *words, "-o", out)
            self.expect_error(done, *texts, code=2)
        self.expect_error(anemone("convert", path, "--to", "mil", "--bucket", "n=1,4", "-o", out),
                          "--to mlpackage", code=2)
        for command in (("check", path), ("run", path), ("bench", path), ("diff", path, path),
                        ("convert", path, "--to", "mil", "-o", out), ("compile", path, "-o", out)):
            done = anemone(*command, "--dim", "n=1..4", "--dim", "m=4")
            self.expect_error(done, "--dim n=1..4", "convert --to mlpackage", "give one size", code=2)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
