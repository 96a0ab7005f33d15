"""`anemone convert --to mlpackage`: packages that coremltools opens and checks, run by an interpreter and
compared with ONNX Runtime."""

import filecmp
import json
import os
import re
import struct
import subprocess
import sys
import unittest

import numpy
import onnx
import onnxruntime
from onnx import helper

from coremltools.libmilstoragepython import _BlobStorageReader as BlobReader
from coreml_support import CoreMLTest, Package, constant, cosine, random
from support import ROOT, anemone, model, tensor

TABLE = ROOT / "engine" / "tables" / "mil_operations.json"
INT64, BOOL, DOUBLE = onnx.TensorProto.INT64, onnx.TensorProto.BOOL, onnx.TensorProto.DOUBLE


def small_net():
    """A convolution, a residual sum, a pool and a product: wholly on the engine."""
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("Conv", ["r", "w2"], ["d"], pads=[1, 1, 1, 1]),
             helper.make_node("Add", ["d", "r"], ["s"]),
             helper.make_node("GlobalAveragePool", ["s"], ["g"]),
             helper.make_node("Flatten", ["g"], ["f"]),
             helper.make_node("Gemm", ["f", "m", "n"], ["y"], transB=1)]
    return model(nodes, [tensor("x", [1, 3, 16, 16])], [tensor("y", [1, 10])],
                 [constant("w", random(8, 3, 3, 3) / 5), constant("b", random(8)),
                  constant("w2", random(8, 8, 3, 3) / 8), constant("m", random(10, 8)),
                  constant("n", random(10))])


class CoreML(CoreMLTest):
    def test_a_network_on_the_engine_is_one_segment(self):
        report, package = self.compare(small_net(), "--target", "m1")
        self.assertEqual(["engine"], [s["placement"] for s in report["segments"]])
        self.assertEqual("ios15", report["minimum_os"])
        self.assertEqual(6, package.spec.specificationVersion)
        self.assertEqual({"x": [1, 3, 16, 16]}, package.inputs)
        self.assertEqual(len(package.operations()), sum(report["operations"].values()))
        plan = json.loads(package.spec.description.metadata.userDefined["anemone.plan"])
        self.assertEqual("h13", plan["target"])

    def test_what_the_engine_refuses_is_written_too(self):
        """Integers, booleans, gathers and a selection, between units of the engine."""
        nodes = [helper.make_node("Gather", ["table", "ids"], ["e"]),
                 helper.make_node("Greater", ["ids", "limit"], ["late"]),
                 helper.make_node("Unsqueeze", ["late", "two"], ["mask"]),
                 helper.make_node("MatMul", ["e", "w"], ["h"]),
                 helper.make_node("Where", ["mask", "h", "zero"], ["kept"]),
                 helper.make_node("TopK", ["kept", "k"], ["values", "places"]),
                 helper.make_node("ReduceSum", ["ids"], ["total"], keepdims=0),
                 helper.make_node("Not", ["late"], ["early"])]
        made = model(nodes, [tensor("ids", [2, 6], INT64)],
                     [tensor("values", [2, 6, 3]), tensor("places", [2, 6, 3], INT64),
                      tensor("total", [], INT64), tensor("early", [2, 6], BOOL)],
                     [constant("table", random(40000, 16)), constant("w", random(16, 8)),
                      constant("limit", 20000, INT64), constant("two", [2], INT64),
                      constant("zero", numpy.float32(0)), constant("k", [3], INT64)])
        ids = numpy.array([[1, 30000, -1, 2, 39999, 0], [20001, 5, 7, -3, 12, 20000]])
        path = self.write(made)
        out, report = self.convert(path)
        reasons = [r for s in report["segments"] for r in s.get("reasons", [])]
        self.assertIn("Gather", [r["op_type"] for r in reasons])
        notes = " ".join(report["notes"])
        for words in ("'ids': int64 becomes int32", "'early': bool becomes int32",
                      "'total': a scalar becomes an array of one element"):
            self.assertIn(words, notes)
        got = Package(out).run({"ids": ids})
        wanted = onnxruntime.InferenceSession(str(path)).run(None, {"ids": ids})
        self.assertGreater(cosine(got["values"], wanted[0]), 0.999)
        self.assertEqual(wanted[2], got["total"][0])
        self.assertEqual(wanted[3].tolist(), got["early"].astype(bool).tolist())

    def test_comparisons_on_the_engine_give_booleans(self):
        """The engine's comparisons give numbers; MIL's give booleans, and their casts."""
        nodes = [helper.make_node("Greater", ["x", "z"], ["g"]),
                 helper.make_node("Not", ["g"], ["n"]),
                 helper.make_node("Where", ["n", "x", "z"], ["s"]),
                 helper.make_node("Softmax", ["s"], ["y"])]
        made = model(nodes, [tensor("x", [4, 8]), tensor("z", [4, 8])],
                     [tensor("y", [4, 8]), tensor("n", [4, 8], BOOL)])
        report, _ = self.compare(made)
        self.assertIn("engine", [s["placement"] for s in report["segments"]])

    def test_the_text_is_the_program_of_its_package(self):
        """So what coremltools checks of a segment's package is true of `--to mil` too. All models:
        bench/coreml.py."""
        nodes = [helper.make_node("Greater", ["x", "z"], ["g"]), helper.make_node("Not", ["g"], ["n"]),
                 helper.make_node("Where", ["n", "x", "z"], ["s"]),
                 helper.make_node("LpNormalization", ["s"], ["l"], axis=-1, p=2),
                 helper.make_node("Softmax", ["l"], ["y"])]
        path = self.write(model(nodes, [tensor("x", [4, 8]), tensor("z", [4, 8])], [tensor("y", [4, 8])]))
        text = self.folder / "text"
        self.assertEqual(0, anemone("convert", path, "--to", "mil", "-o", text).returncode)
        out, report = self.convert(path, "--segments")
        for segment in report["segments"]:
            written = (text / segment["folder"].removesuffix(".mlpackage") / "model.mil").read_text()
            package = Package(out / segment["folder"])
            used = re.findall(r"^ *(?:tensor<.*?>|\w+) \w+ = (\w+)\(", written, re.MULTILINE)
            self.assertEqual([op.op_type for op in package.function.operations], used)
            self.assertIn("tensor<bool, [", written)

    def test_integers_stay_exact_beyond_those_of_fp16(self):
        """Floats that hold integers, and integer powers, are fp32 where fp16 would round them."""
        nodes = [helper.make_node("Cast", ["a"], ["f"], to=1),
                 helper.make_node("Cast", ["f"], ["back"], to=6),
                 helper.make_node("Pow", ["a", "two"], ["square"]),
                 helper.make_node("Mul", ["f", "half"], ["halves"]),
                 helper.make_node("Greater", ["halves", "limit"], ["late"])]
        made = model(nodes, [tensor("a", [5], 6)],
                     [tensor("back", [5], 6), tensor("square", [5], 6), tensor("late", [5], BOOL)],
                     [constant("two", [2], 6), constant("half", numpy.float32(0.5)),
                      constant("limit", numpy.float32(1024))])
        a = numpy.array([51, 300, 2049, 4001, -4095], numpy.int32)
        self.compare(made, feeds={"a": a})
        made = model(nodes[:2], [tensor("a", [3], 6)], [tensor("back", [3], 6)])
        self.compare(made, feeds={"a": numpy.array([2049, 4097, 100001], numpy.int32)})

    def test_what_int32_and_fp32_cannot_hold_is_noted(self):
        nodes = [helper.make_node("Min", ["a", "large"], ["b"]), helper.make_node("Pow", ["b", "two"], ["p"]),
                 helper.make_node("Slice", ["p", "zero", "end"], ["y"])]
        made = model(nodes, [tensor("a", [3], INT64)], [tensor("y", [3], INT64)],
                     [constant("large", [2**40, 5, 6], INT64), constant("two", 2, INT64),
                      constant("zero", [0], INT64), constant("end", [2**63 - 1], INT64)])
        report, _ = self.compare(made, feeds={"a": numpy.array([9, 9, 9])})
        notes = [note for note in report["notes"] if "becomes int32" not in note]
        self.assertEqual(["'large': 1 integer is beyond int32, and becomes its end",
                          "powers of integers are computed in fp32, and are exact up to 2^24"], notes)

    def test_inverse_hyperbolic_functions_of_large_numbers(self):
        nodes = [helper.make_node("Asinh", ["x"], ["s"]), helper.make_node("Acosh", ["c"], ["t"])]
        made = model(nodes, [tensor("x", [5]), tensor("c", [5])], [tensor("s", [5]), tensor("t", [5])])
        feeds = {"x": numpy.array([300, -300, 60000, 0.5, -60000], numpy.float32),
                 "c": numpy.array([1, 1.5, 256, 300, 60000], numpy.float32)}
        _, package = self.compare(made, feeds=feeds)
        for name, wanted in (("s", numpy.arcsinh(feeds["x"])), ("t", numpy.arccosh(feeds["c"]))):
            numpy.testing.assert_allclose(package.run(feeds)[name], wanted, rtol=2e-3)

    def test_integers_divide_toward_zero_and_slices_step_back(self):
        nodes = [helper.make_node("Div", ["a", "b"], ["q"]),
                 helper.make_node("Slice", ["a", "first", "last", "axes", "steps"], ["s"]),
                 helper.make_node("OneHot", ["a", "depth", "values"], ["o"]),
                 helper.make_node("CumSum", ["a", "zero"], ["c"], reverse=1)]
        made = model(nodes, [tensor("a", [6], INT64), tensor("b", [6], INT64)],
                     [tensor("q", [6], INT64), tensor("s", [3], INT64),
                      tensor("o", [6, 8], INT64), tensor("c", [6], INT64)],
                     [constant("first", [-1], INT64), constant("last", [-100], INT64),
                      constant("axes", [0], INT64), constant("steps", [-2], INT64),
                      constant("depth", 8, INT64), constant("values", [-1, 3], INT64),
                      constant("zero", 0, INT64)])
        self.compare(made, feeds={"a": numpy.array([7, -7, 5, -5, 0, 1]),
                                  "b": numpy.array([2, 2, -3, -3, 4, 1])})

    def test_the_minimum_system(self):
        path = self.write(small_net())
        for name, function in (("ios15", "CoreML5"), ("macOS14", "CoreML7"), ("ios18", "CoreML8")):
            out, report = self.convert(path, "--minimum-os", name)
            package = Package(out)
            self.assertEqual({function}, set(
                package.spec.mlProgram.functions["main"].block_specializations))
        half = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [4], 10)],
                     [tensor("y", [4], 10)])
        path = self.write(half, "half.onnx")
        self.assertEqual("ios16", self.convert(path)[1]["minimum_os"])
        out = self.folder / "old.mlpackage"
        self.expect_error(anemone("convert", path, "--to", "mlpackage", "--minimum-os", "ios15", "-o", out),
                          "only ios16 and macos13 and later systems have", "leave the option out")
        self.assertFalse(out.exists())
        self.expect_error(anemone("convert", path, "--to", "mlpackage", "--minimum-os", "ios3", "-o", out),
                          "'ios3'", "ios15", code=2)
        for words in (("--minimum-os", "ios15"), ("--state", "x=y"), ("--image-input", "x")):
            self.expect_error(anemone("convert", path, "--to", "mil", *words, "-o", out),
                              words[0], "--to mlpackage", code=2)

    def test_what_a_package_says_of_its_model(self):
        """The model's own text, and the user's in its place."""
        made = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [4])], [tensor("y", [4])])
        made.model_version, made.doc_string = 7, "Keeps what is positive."
        made.graph.input[0].doc_string = "any numbers"
        helper.set_model_props(made, {"author": "them", "License": "MIT", "stride": "32"})
        path = self.write(made)
        metadata = Package(self.convert(path)[0]).spec.description.metadata
        self.assertEqual(("them", "7", "MIT"), (metadata.author, metadata.versionString, metadata.license))
        self.assertTrue(metadata.shortDescription.startswith("Keeps what is positive.\nmodel.onnx, "))
        self.assertEqual({"stride", "anemone.plan"}, set(metadata.userDefined))
        out, _ = self.convert(path, "--metadata", "author=us", "--metadata", "stride=8", "--metadata",
                              "version=7.1", "--describe", "y=positive numbers")
        description = Package(out).spec.description
        metadata = description.metadata
        self.assertEqual(("us", "7.1", "MIT"), (metadata.author, metadata.versionString, metadata.license))
        self.assertEqual("8", metadata.userDefined["stride"])
        self.assertTrue(description.input[0].shortDescription.startswith("any numbers\n'x', float32"))
        self.assertTrue(description.output[0].shortDescription.startswith("positive numbers\n'y'"))
        strange = made.SerializeToString().replace(b"any numbers", b"any n\xffmbers")
        text = Package(self.convert(self.write(strange))[0]).spec.description.input[0].shortDescription
        self.assertTrue(text.startswith("any n\ufffdmbers"))
        out = self.folder / "no"
        for words, texts in ((("--metadata", "author"), ("NAME=TEXT",)),
                             (("--metadata", "anemone.plan=x"), ("Anemone's",)),
                             (("--metadata", "a=1", "--metadata", "a=2"), ("twice",)),
                             (("--describe", "z=1"), ("no input or output", "'x', 'y'")),
                             (("--describe", "x=1", "--segments"), ("--segments",))):
            self.expect_error(anemone("convert", path, "--to", "mlpackage", *words, "-o", out), *texts, code=2)

    def test_a_unit_without_a_form_becomes_operations(self):
        made = model([helper.make_node("Relu", ["x"], ["r"]),
                      helper.make_node("GroupNormalization", ["r", "s", "b"], ["y"], num_groups=2)],
                     [tensor("x", [1, 4, 4, 4])], [tensor("y", [1, 4, 4, 4])],
                     [constant(name, [1.0, 2, 3, 4]) for name in "sb"])
        report, _ = self.compare(made)
        reasons = [r for s in report["segments"] for r in s.get("reasons", [])]
        self.assertEqual([("GroupNormalization", "no-mil-form")],
                         [(r["op_type"], r["rule"]) for r in reasons])

    def test_reasons_of_the_users_policy_stay(self):
        """Beside a unit without a form, which Anemone refuses by name itself."""
        made = model([helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
                      helper.make_node("GroupNormalization", ["p", "s", "b"], ["g"], num_groups=2),
                      helper.make_node("Conv", ["g", "w"], ["y"])],
                     [tensor("x", [1, 4, 8, 8])], [tensor("y", [1, 4, 2, 2])],
                     [constant("w", random(4, 4, 3, 3)),
                      *(constant(name, [1.0, 2, 3, 4]) for name in "sb")])
        report, _ = self.compare(made, "--policy", "refuse:Pooling")
        reasons = [r for s in report["segments"] for r in s.get("reasons", [])]
        self.assertEqual([("GroupNormalization", "no-mil-form"), ("MaxPool", "refused-unit")],
                         sorted((r["op_type"], r["rule"]) for r in reasons))

    def test_what_core_ml_does_not_have_is_named(self):
        nonzero = model([helper.make_node("NonZero", ["x"], ["y"], name="find")],
                        [tensor("x", [4])], [tensor("y", [1, None], INT64)])
        free = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", ["n"])], [tensor("y", ["n"])])
        text = model([helper.make_node("Identity", ["x"], ["y"])], [tensor("x", [2], 8)],
                     [tensor("y", [2], 8)])
        six = [1, 2, 3, 2, 2, 2]
        port = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", six)], [tensor("y", six)])
        within = model([helper.make_node("Reshape", ["x", "s"], ["r"], name="deep"),
                        helper.make_node("Mod", ["r", "r"], ["m"], fmod=1),
                        helper.make_node("ReduceSum", ["m"], ["y"], keepdims=0)],
                       [tensor("x", [1, 48])], [tensor("y", [])], [constant("s", six, INT64)])
        weight = model([helper.make_node("Mod", ["x", "w"], ["m"])],
                       [tensor("x", [1], INT64)], [tensor("m", six, INT64)],
                       [constant("w", numpy.full(six, 3), INT64)])
        out = self.folder / "no.mlpackage"
        for made, words in ((nonzero, ("'find' (NonZero",)), (free, ("'x'", "--dim")),
                            (text, ("'x'", "type")),
                            (port, ("'x' has 6 dimensions", "at most 5", "reshape it")),
                            (within, ("'deep' (Reshape", "'r' has 6 dimensions", "reshape it")),
                            (weight, ("'w' has 6 dimensions", "reshape it"))):
            done = anemone("convert", self.write(made), "--to", "mlpackage", "-o", out)
            self.expect_error(done, *words)
            self.assertEqual(["model.onnx"], os.listdir(self.folder))

    def test_an_image_input(self):
        """RGB with a bias for each channel, and gray; the model gets scale * pixel + bias."""
        path = self.write(small_net())
        out, report = self.convert(path, "--image-input", "x:scale=0.0078125,bias=-1/-0.5/0.25")
        self.assertIn("'x' is an image of 16 x 16 pixels", report["notes"])
        package = Package(out)
        image = package.spec.description.input[0].type.imageType
        self.assertEqual((16, 16, image.RGB), (image.width, image.height, image.colorSpace))
        pixels = numpy.random.default_rng(1).integers(0, 256, (1, 3, 16, 16)).astype(numpy.float32)
        x = pixels * 0.0078125 + numpy.array([-1, -0.5, 0.25], numpy.float32).reshape(1, 3, 1, 1)
        wanted = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})[0]
        self.assertGreater(cosine(package.run({"x": pixels})["y"], wanted), 0.999)
        gray = self.write(model([helper.make_node("Relu", ["g"], ["y"])], [tensor("g", [1, 1, 4, 8])],
                                [tensor("y", [1, 1, 4, 8])]), "gray.onnx")
        image = Package(self.convert(gray, "--image-input", "g")[0]).spec.description.input[0].type
        self.assertEqual(image.imageType.GRAYSCALE, image.imageType.colorSpace)
        out = self.folder / "no"
        for words, code, texts in (
                (("--image-input", "z"), 2, ("no input 'z'", "it has 'x'")),
                (("--image-input", "x:bias=1/2/3,scale=nan"), 2, ("finite",)),
                (("--image-input", "x:scale=inf"), 2, ("finite",)),
                (("--image-input", "x:scale=1e-60"), 2, ("fp32",)),
                (("--image-input", "x:bias=1/-inf/3"), 2, ("finite",)),
                (("--image-input", "x:bias=1e39"), 2, ("fp32",)),
                (("--image-input", "x:scale=0"), 2, ("a scale other than 0",)),
                (("--image-input", "x:scale=1e30"), 2, ("2.55e+32", "65504")),
                (("--image-input", "x", "--minimum-os", ""), 2, ("--minimum-os", "''")),
                (("--image-input", "x:scale=a"), 2, ("NAME:scale=S,bias=B",)),
                (("--image-input", "x", "--image-input", "x"), 2, ("twice",)),
                (("--image-input", "y:bias=1/2"), 2, ("R/G/B",))):
            self.expect_error(anemone("convert", path, "--to", "mlpackage", *words, "-o", out), *texts,
                              code=code)
        self.assertFalse(out.exists())

    def test_a_state_is_kept_between_predictions(self):
        """A cache that gets the new row at its end and loses its first: three predictions."""
        nodes = [helper.make_node("Concat", ["past", "x"], ["all"], axis=1),
                 helper.make_node("Slice", ["all", "one", "end", "one"], ["present"]),
                 helper.make_node("ReduceSum", ["present", "one"], ["y"])]
        made = model(nodes, [tensor("x", [1, 1, 8]), tensor("past", [1, 4, 8])],
                     [tensor("y", [1, 1, 8]), tensor("present", [1, 4, 8])],
                     [constant("one", [1], INT64), constant("end", [99], INT64)])
        path = self.write(made)
        out, report = self.convert(path, "--state", "past=present")
        self.assertEqual("ios18", report["minimum_os"])
        package = Package(out)
        description = package.spec.description
        self.assertEqual((["x"], ["y"], ["past"]), tuple(
            [port.name for port in ports] for ports in (description.input, description.output,
                                                        description.state)))
        states = {"past": numpy.zeros((1, 4, 8), numpy.float16)}
        past = numpy.zeros((1, 4, 8), numpy.float32)
        session = onnxruntime.InferenceSession(str(path))
        for i in range(3):
            x = random(1, 1, 8, seed=i)
            wanted, past = session.run(["y", "present"], {"x": x, "past": past})
            self.assertGreater(cosine(package.run({"x": x}, states)["y"], wanted), 0.999)
        out = self.folder / "no"
        for words, code, texts in (
                (("--state", "past=y"), 2, ("same shape", "float32 1x4x8", "float32 1x1x8")),
                (("--state", "nope=y"), 2, ("nope=y: the model has no input 'nope'", "'past', 'x'")),
                (("--state", "past=nope"), 2, ("no output 'nope'", "it has 'y', 'present'")),
                (("--state", "past=present", "--image-input", "past"), 2, ("drop one",)),
                (("--state", "past"), 2, ("PAST=PRESENT",)),
                (("--state", "past=present", "--minimum-os", "ios17"), 1, ("ios18",))):
            self.expect_error(anemone("convert", path, "--to", "mlpackage", *words, "-o", out), *texts,
                              code=code)
        self.assertFalse(out.exists())

    def test_something_is_left_to_predict(self):
        add = model([helper.make_node("Add", ["x", "past"], ["present"])],
                    [tensor("x", [1, 4]), tensor("past", [1, 4])], [tensor("present", [1, 4])])
        empty = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [4])], [])
        words = ("nothing would be left to predict", "keep one output")
        for made, options, code in ((add, ("--state", "past=present"), 2), (empty, (), 1)):
            done = anemone("convert", self.write(made), "--to", "mlpackage", *options,
                           "-o", self.folder / "no")
            self.expect_error(done, *words, code=code)
            self.assertEqual(["model.onnx"], os.listdir(self.folder))

    def test_a_package_for_each_segment(self):
        """Two segments of the engine around a cast to double; the manifest connects them."""
        nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]),
                 helper.make_node("Cast", ["a"], ["b"], to=DOUBLE),
                 helper.make_node("Mod", ["b", "m"], ["c"], fmod=1),
                 helper.make_node("Cast", ["c"], ["d"], to=1),
                 helper.make_node("MatMul", ["d", "w"], ["y"])]
        weight = random(4, 4)
        made = model(nodes, [tensor("x", [1, 4])], [tensor("y", [1, 4])],
                     [constant("w", weight), constant("m", numpy.float64(0.75), DOUBLE)])
        path = self.write(made)
        out, report = self.convert(path, "--segments")
        self.assertEqual(report, json.loads((out / "manifest.json").read_text()))
        self.assertEqual(["engine", "cpu", "engine"], [s["placement"] for s in report["segments"]])
        values = {"x": random(1, 4)}
        for segment in report["segments"]:
            if segment["placement"] == "cpu":
                session = onnxruntime.InferenceSession(str(out / segment["model"]))
                values.update(zip([o.name for o in session.get_outputs()], session.run(None, {
                    i.name: values[i.name] for i in session.get_inputs()})))
                continue
            package = Package(out / segment["folder"])
            feeds = {p["port"]: values[p["value"]].reshape(package.inputs[p["port"]])
                     for p in segment["ports"]["inputs"]}
            results = package.run(feeds)
            shapes = {port["name"]: port["shape"] for port in segment["outputs"]}
            for port in segment["ports"]["outputs"]:
                value = results[port["port"]].reshape(shapes[port["value"]])
                values[port["value"]] = value.astype(numpy.float32)
        wanted = onnxruntime.InferenceSession(str(path)).run(None, {"x": values["x"]})[0]
        self.assertGreater(cosine(values["y"], wanted), 0.99)
        self.expect_error(anemone("convert", path, "--to", "mlpackage", "--segments", "--state", "x=y",
                                  "-o", self.folder / "no"), "leave out --segments", code=2)

    def test_compressed_weights_stay_compressed(self):
        """Each form of `compile --compress`: the operation that declares the weight, and its numbers."""
        for form, name in (("int8", "constexpr_affine_dequantize"),
                           ("blockwise", "constexpr_blockwise_shift_scale"),
                           ("palette4", "constexpr_lut_to_dense"), ("palette8", "constexpr_lut_to_dense"),
                           ("sparse", "constexpr_sparse_to_dense")):
            weight = random(64, 128)
            if form == "sparse":
                weight[numpy.abs(weight) < 1.2] = 0
            made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, 64])],
                         [tensor("y", [1, 128])], [constant("w", weight)])
            path = self.write(made)
            with self.subTest(form):
                small = self.folder / f"{form}.onnx"
                done = anemone("compile", path, "--compress", form, "--tolerance", "cosine=0.5", "-o", small,
                               "--target", "m4", timeout=120)
                self.assertEqual(0, done.returncode, done.stderr)
                x = random(1, 64, seed=3)
                wanted = onnxruntime.InferenceSession(str(small)).run(None, {"x": x})[0]
                # On the engine of the M4, and for a node outside of the engine of the M1.
                for words in (("--target", "m4"), ("--target", "m1", "--policy", "cpu")):
                    out, report = self.convert(small, *words)
                    used = [op for op in report["operations"] if op.startswith("constexpr_")]
                    self.assertEqual([name], used)
                    package = Package(out)
                    for part, value in package.constants():
                        self.assertIsNotNone(value, part)
                    self.assertGreater(cosine(package.run({"x": x})["y"], wanted), 0.999)

    def test_zero_points_stay_outside_of_the_engine(self):
        """Unsigned bytes with a zero point for each column, and 4 bits with one for each block."""
        rng = numpy.random.default_rng(5)
        codes, scales = rng.integers(0, 256, (64, 128)), (rng.integers(1, 9, 128) / 64).astype(numpy.float32)
        zeros = rng.integers(100, 150, 128)
        small, blocks = rng.integers(0, 16, (64, 128)), (rng.integers(1, 9, (4, 128)) / 16)
        middles = rng.integers(5, 10, (4, 128))
        UINT8, UINT4 = onnx.TensorProto.UINT8, onnx.TensorProto.UINT4
        for name, words, constants in (
                ("constexpr_affine_dequantize", {"axis": 1},
                 (constant("c", codes, UINT8), constant("s", scales), constant("z", zeros, UINT8))),
                ("constexpr_blockwise_shift_scale", {"axis": 0, "block_size": 16},
                 (constant("c", small, UINT4), constant("s", blocks), constant("z", middles, UINT4)))):
            made = model([helper.make_node("DequantizeLinear", ["c", "s", "z"], ["w"], **words),
                          helper.make_node("MatMul", ["x", "w"], ["y"])],
                         [tensor("x", [2, 64])], [tensor("y", [2, 128])], constants)
            with self.subTest(name):
                report, _ = self.compare(made, "--policy", "cpu", "--target", "m1")
                self.assertIn(name, report["operations"])

    def test_weights_beyond_4_gib_are_read_by_coremltools(self):
        """A file with a hole, and headers as `MilBlobs.MayHaveMoreThanFourGibibytes` writes them."""
        path, offset = self.folder / "weight.bin", 2**32 + 128
        with open(path, "wb") as file:
            file.write(struct.pack("<II", 1, 2))
            file.seek(offset)
            file.write(struct.pack("<IIQQQ", 0xDEADBEEF, 4, 3, offset + 64, 0).ljust(64, b"\0") + b"\3\1\2")
        self.assertEqual([3, 1, 2], list(BlobReader(str(path)).read_int8_data(offset)))

    def test_equal_weights_are_written_once_and_bytes_are_the_same(self):
        weight = random(64, 64)
        made = model([helper.make_node("MatMul", ["x", "v"], ["a"]),
                      helper.make_node("Relu", ["a"], ["b"]),
                      helper.make_node("MatMul", ["b", "w"], ["y"])],
                     [tensor("x", [1, 64])], [tensor("y", [1, 64])],
                     [constant("v", weight), constant("w", weight)])
        path = self.write(made)
        a, b = self.convert(path)[0], self.convert(path)[0]
        data = "Data/com.apple.CoreML"
        self.assertLess((a / data / "weights/weight.bin").stat().st_size, 2 * weight.size * 2)
        for name in ("Manifest.json", f"{data}/model.mlmodel", f"{data}/weights/weight.bin"):
            self.assertTrue(filecmp.cmp(a / name, b / name, shallow=False), name)

    def test_nothing_is_left_where_nothing_can_be_written(self):
        path = self.write(small_net())
        (self.folder / "full").mkdir()
        (self.folder / "full" / "file").write_text("in the way")
        self.expect_error(anemone("convert", path, "--to", "mlpackage", "-o", self.folder / "full"), "full")
        done = anemone("convert", path, "--to", "mlpackage", "-o", self.folder / "out", file_limit=256)
        self.expect_error(done, "cannot be written")
        self.assertEqual({"full", "model.onnx"}, set(os.listdir(self.folder)))

    def test_the_table_is_that_of_coremltools(self):
        done = subprocess.run([sys.executable, ROOT / "tools/coreml/operations.py", TABLE, "--check"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stderr)


if __name__ == "__main__":
    unittest.main()
