"""What `anemone run` prints and in which order, inputs from files, and --memory-limit."""

import json
import os
import pathlib
import subprocess
import threading
import unittest

import jsonschema
import numpy
import onnx
from onnx import helper, numpy_helper

from support import (ANEMONE, ROOT, SANITIZED, TIMES, CliTest, anemone, array, environment, model, product,
                     relu, tensor)

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "run.json").read_text())


def pooled():
    """Conv and a global pool, with free batch, height and width."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
             helper.make_node("GlobalAveragePool", ["a"], ["y"])]
    weight = numpy.random.default_rng(1).standard_normal((4, 3, 3, 3))
    return model(nodes, [tensor("x", ["batch", 3, "height", "width"])],
                 [tensor("y", ["batch", 4, 1, 1])], [array("w", weight)])


def peak_of(path, *words):
    """The most memory that a run takes. A process inherits the peak of the process that starts it; that of a shell is
    small."""
    words = ["sh", "-c", '"$0" run "$@" --json; exit $?', ANEMONE, path, *words]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment())
    return json.loads(done.stdout)["peak_memory_bytes"]


class Run(CliTest):
    def save(self, name, values):
        numpy.save(self.folder / name, values)
        return self.folder / name

    def json(self, *words, code=0):
        done = anemone("run", *words, "--json")
        self.assertEqual(code, done.returncode, done.stderr)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        return document

    def text(self, *words, code=0):
        done = anemone("run", *words)
        self.assertEqual(code, done.returncode, done.stderr)
        return done.stdout

    def test_a_count_that_rounding_changes_is_explained(self):
        """0.5001 is above the limit, but not as fp16."""
        nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Greater", ["a", "limit"], ["is_above"]),
                 helper.make_node("NonZero", ["is_above"], ["y"])]
        path = self.write(model(nodes, [tensor("x", [8])], [tensor("y", [1, "n"], onnx.TensorProto.INT64)],
                                [array("limit", numpy.float32(0.5))]))
        values = self.save("x.npy", numpy.array([0.5001] + 7 * [1], numpy.float32))
        self.expect_error(anemone("run", path, "--input", f"x={values}", "--compare"), "output 'y'", "int64 1x7",
                          "ONNX Runtime gives int64 1x8", "if the values decide how many there are")

    def test_state_is_kept_between_repeated_runs(self):
        shape = [1, 8]
        made = model([helper.make_node("Add", ["n0", "x"], ["n1"]), helper.make_node("Relu", ["n1"], ["y"])],
                     [tensor("x", shape), tensor("n0", shape)], [tensor("y", shape), tensor("n1", shape)])
        path = self.write(made)
        ones = self.save("ones.npy", numpy.ones(shape, numpy.float32))
        words = (path, "--input", f"x={ones}", "--output-dir", self.folder / "out")
        self.json(*words, "--state", "n0=n1", "--repeat", "4", "--compare")
        numpy.testing.assert_array_equal(numpy.full(shape, 5), numpy.load(self.folder / "out" / "y.npy"))
        self.assertFalse((self.folder / "out" / "n1.npy").exists())
        self.assertIn("state kept between runs: n0 = n1", self.text(*words, "--state", "n0=n1", "-v"))
        for state, told in (("auto", "no input and output have a pair of usual names"),
                            ("n0", "want NAME=VALUE, got 'n0'"),
                            ("n0=n2", "the model has no output 'n2'; it has 'n1'")):
            done = anemone("run", *words, "--state", state)
            self.assertEqual(2, done.returncode)
            self.assertIn(told, done.stderr)

    def test_a_file_that_is_read_is_never_replaced(self):
        made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, 64])], [tensor("y", [1, 64])],
                     [array("w", numpy.ones((64, 64)))])
        path, data = self.folder / "net.onnx", self.folder / "weights.bin"
        onnx.save(made, path, save_as_external_data=True, location="weights.bin", size_threshold=100)
        out, package = self.folder / "out", self.folder / "package"
        out.mkdir()
        ours = self.save("out/y.npy", numpy.ones((1, 64), numpy.float32))
        done = anemone("compile", path, "-o", package)
        self.assertEqual(0, done.returncode, done.stderr)
        hard = self.folder / "hard.json"
        os.link(path, hard)
        before = {file: file.read_bytes() for file in self.folder.rglob("*") if file.is_file()}
        given = ("--input", f"x={ours}")
        for words in ((path, "--profile", path), (path, "--profile", data), (path, "--profile", hard),
                      (path, *given, "--profile", ours), (path, *given, "--output-dir", out),
                      (path, *given, "--output-dir", out, "--compare"),
                      (path, "--profile", out / "y.npy", "--output-dir", out),
                      *((package, "--profile", file) for file in before if package in file.parents)):
            done = anemone("run", *words)
            self.assertEqual(1, done.returncode, words)
            self.assertIn("choose another", done.stderr)
            self.assertEqual(before, {file: file.read_bytes() for file in before}, words)
        self.text(path, *given, "--profile", self.folder / "p.json", "--output-dir", self.folder / "other")

    def test_the_result_is_first_and_times_are_marked(self):
        path = self.write(product(64))
        lines = self.text(path, "--compare").splitlines()
        self.assertEqual("y: float32 1x64", lines[0])
        self.assertRegex(lines[1], r"^  cosine [01]\.\d+, max error ")
        lines = lines[1:]
        self.assertEqual("inputs: random, seed 0 (give --input for real ones)", lines[1])
        self.assertIn("on the engine", lines[2])
        self.assertEqual(TIMES, lines[-4])
        self.assertEqual(["ms", "Anemone", "ONNX Runtime"],
                         [line[:15].strip() for line in lines[-3:]])
        self.assertNotIn("MatMul", "\n".join(lines))
        self.assertIn("MatMul", self.text(path, "-v"))
        self.assertEqual("software engine on this CPU", self.json(path)["times_of"])

    def test_times_of_another_target_name_its_product(self):
        self.assertIn("of the M4's speed", self.text(self.write(relu()), "--target", "h16"))

    def test_quiet_prints_the_result_only(self):
        done = anemone("run", self.write(product(64)), "--compare", "-q")
        self.assertRegex(done.stdout, r"^y: float32 1x64\n  cosine .*\n$")
        self.assertEqual("", done.stderr)

    def test_warnings_are_counted(self):
        path = self.write(relu((1, 3, 5, 7)))
        counted = self.text(path)
        self.assertIn("1 node has warnings (-v shows them)\n", counted)
        self.assertNotIn("remedy", counted)
        self.assertIn("remedy", self.text(path, "-v"))

    def test_repeats_print_their_median(self):
        path = self.write(relu())
        self.assertIn("run, median of 5", self.text(path, "--repeat", "5"))
        self.assertNotIn("median", self.text(path))
        self.assertEqual(5, self.json(path, "--repeat", "5")["repeat"])

    def test_it_may_stop_after_compiling(self):
        path = self.write(relu())
        done = anemone("run", path, "--compile-only", "--json")
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        self.assertEqual((0, [], None), (done.returncode, document["outputs"], document["times_ms"]["run"]))
        self.assertRegex(anemone("run", path, "--compile-only").stdout, r"Anemone .* -\s+-\n$")
        self.assertEqual("", anemone("run", path, "--compile-only", "-q").stdout)
        done = anemone("run", path, "--compile-only", "--compare")
        self.expect_error(done, "--compare: --compile-only does not run the model", code=2)

    def test_inputs_are_told(self):
        path = self.write(model([helper.make_node("Add", ["x", "z"], ["y"])],
                                [tensor("x", [4]), tensor("z", [4])], [tensor("y", [4])]))
        x, z = (f"{name}={self.save(name + '.npy', numpy.ones(4, numpy.float32))}" for name in "xz")
        self.assertEqual({"random": ["x", "z"], "seed": 7}, self.json(path, "--seed", "7")["inputs"])
        self.assertEqual(["z"], self.json(path, "--input", x)["inputs"]["random"])
        self.assertIn("inputs: z random, seed 0", self.text(path, "--input", x))
        self.assertIn("inputs: from files\n", self.text(path, "--input", x, "--input", z))

    def test_infinite_outputs(self):
        path = self.write(model([helper.make_node("Mul", ["x", "x"], ["y"])], [tensor("x", [64])],
                                [tensor("y", [64])]))
        words = [path, "--compare", "--range", "x=300:400"]
        text = self.text(*words, code=3)
        self.assertIn("y: float32 64\n  64 of 64 values are inf where ONNX Runtime is finite\n", text)
        self.assertIn("OUT OF TOLERANCE", text)
        output, = self.json(*words, code=3)["outputs"]
        self.assertEqual((None, None, None), (output["cosine"], output["max_abs_error"],
                                              output["max_rel_error"]))
        self.assertEqual((False, False, 64), (output["finite"], output["within_tolerance"],
                                              output["nonfinite_elements"]))

    def test_values_that_fp16_cannot_hold_are_told(self):
        path = self.write(model([helper.make_node("Mul", ["x", "x"], ["y"], "square")], [tensor("x", [4])],
                                [tensor("y", [4])]))
        x = self.save("x.npy", numpy.array([1, 2, 1e6, 300], numpy.float32))
        words = [path, "--compare", "--input", f"x={x}"]
        told = anemone("run", *words).stderr
        self.assertRegex(told, r"warning: 1 of 4 values of 'x' is above 65504.*; node 'square' \(Mul\) reads it "
                               r"first: --policy refuse:node:y runs it on the CPU")
        self.assertRegex(told, r"warning: 2 of 4 values of 'y' are not finite.*; node 'square' \(Mul\) computes "
                               r"them: --policy refuse:node:y runs it on the CPU")
        self.assertEqual(2, len(self.json(*words, code=3)["warnings"]))
        self.assertEqual([], self.json(path)["warnings"])

    def test_nan_that_becomes_infinite_on_the_engine_is_told(self):
        path = self.write(model([helper.make_node("Sigmoid", ["x"], ["y"], "s")], [tensor("x", [4])], [tensor("y", [4])]))
        x = self.save("x.npy", numpy.array([numpy.nan, 1, 2, 3], numpy.float32))
        told = anemone("run", path, "--input", f"x={x}").stderr
        self.assertRegex(told, r"1 of 4 values of 'x' is above 65504, .* or NaN, and enters the engine as infinity; "
                               r"node 's' \(Sigmoid\) reads it")

    def test_infinities_that_onnx_runtime_has_too(self):
        path = self.write(model([helper.make_node("Div", ["x", "zero"], ["y"])], [tensor("x", [8])],
                                [tensor("y", [8])], [array("zero", [0.0])]))
        words = [path, "--compare", "--range", "x=1:2"]
        self.assertIn("cannot be compared: all values of ONNX Runtime are inf or NaN", self.text(*words, code=3))
        output, = self.json(*words, code=3)["outputs"]
        self.assertEqual((True, 0, None, False), (output["finite"], output["nonfinite_elements"],
                                                  output["cosine"], output["within_tolerance"]))

    def test_shares_of_the_range_are_readable(self):
        path = self.write(model([helper.make_node("Add", ["x", "c"], ["a"]), helper.make_node("Sub", ["a", "x"], ["y"])],
                                [tensor("x", [64])], [tensor("y", [64])], [array("c", [1e-4] * 32 + [1.02e-4] * 32)]))
        text = self.text(path, "--compare", "--range", "x=10:11", code=3)
        self.assertRegex(text, r"max error [\d.e-]+ \(\d[\d.]* times the output range\)")

    def test_the_largest_error_counts_too(self):
        path = self.write(model([helper.make_node("Sub", ["x", "c"], ["y"])], [tensor("x", [64])],
                                [tensor("y", [64])], [array("c", [4000.0] * 64)]))
        values = numpy.array([4000 + i % 9 * 2 for i in range(64)], numpy.float32)
        values[30] = 4005  # fp16 has 4004 and 4006
        x = self.save("x.npy", values)
        words = [path, "--compare", "--input", f"x={x}"]
        output, = self.json(*words, code=3)["outputs"]
        self.assertGreater(output["cosine"], 0.999)
        self.assertGreater(output["max_rel_error"], 0.05)
        self.assertRegex(self.text(*words, code=3), r"OUT OF TOLERANCE: max_rel 0\.\d+, want <= 0\.05")
        self.assertEqual(0, anemone("run", *words, "--tolerance", "cosine=0.999").returncode)

    def test_one_infinite_value_among_others(self):
        path = self.write(model([helper.make_node("Mul", ["x", "x"], ["y"])], [tensor("x", [4])],
                                [tensor("y", [4])]))
        x = self.save("x.npy", numpy.array([1, 2, 300, 4], numpy.float32))
        words = [path, "--compare", "--input", f"x={x}"]
        self.assertIn("1 of 4 values is inf where", self.text(*words, code=3))
        self.assertIsNone(self.json(*words, code=3)["outputs"][0]["max_abs_error"])

    def test_a_missed_tolerance_is_told_with_the_bound(self):
        path = self.write(product(64))
        for bound, told in (("cosine=0.9999999999", r"cosine 1-\d.*e-\d+, want >= 0\.9999999999\n"),
                            ("max_abs=1e-9", r"max_abs .*, want <= 1e-09\n"),
                            ("max_rel=1e-9", r"max_rel .*, want <= 1e-09\n")):
            with self.subTest(bound):
                text = self.text(path, "--compare", "--tolerance", bound, code=3)
                self.assertRegex(text, "OUT OF TOLERANCE: " + told)
                self.assertNotIn("cosine 1.000000", text)

    def test_a_bound_that_no_output_can_meet_is_wrong_usage(self):
        path = self.write(product(8))
        for bound, told in (("cosine=2", "want a cosine from -1 to 1, got '2'"),
                            ("max_abs=-1", "want an error of at least 0, got '-1'")):
            self.expect_error(anemone("run", path, "--compare", "--tolerance", bound), told, code=2)

    def test_an_error_of_a_run_on_the_cpu_names_a_node_without_a_name(self):
        index = helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [1])
        path = self.write(model([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Gather", ["a", "i"], ["y"])],
                                [tensor("x", [4]), index], [tensor("y", [1])]))
        numpy.save(self.folder / "i.npy", numpy.array([9]))
        for words in ([], ["--policy", "cpu"]):
            with self.subTest(words=words):
                self.expect_error(anemone("run", path, "--input", f"i={self.folder / 'i.npy'}", *words),
                                  "idx=9", "node (Gather) that makes 'y'")

    def test_an_error_of_onnx_runtime_has_the_right_remedy(self):
        """It made the node, refuses a constant, or runs a node that it made of the user's."""
        whole, floats = onnx.TensorProto.INT32, onnx.TensorProto.FLOAT
        cases = [
            (helper.make_node("Mod", ["x", "s"], ["y"]), tensor("x", [4], whole), tensor("y", [4], whole),
             numpy.array([0, -1, 0, 1], numpy.int32), ["modulo by zero; change the attributes and constants"]),
            (helper.make_node("Resize", ["x", "", "s"], ["y"]), tensor("x", [1, 1, 4, 4]),
             tensor("y", [1, 1, "A", "B"]), numpy.array([1, 1, numpy.nan, 2], numpy.float32),
             ["must be finite.; change the attributes and constants"]),
            (helper.make_node("SoftmaxCrossEntropyLoss", ["x", "s"], ["y"]), tensor("x", [2, 3]), tensor("y", []),
             numpy.array([100, -1]), ["a part of node (SoftmaxCrossEntropyLoss) that makes 'y'; change its inputs"]),
            (helper.make_node("Foo", ["x", "s"], ["y"], domain="my.domain"), tensor("x", [4], floats),
             tensor("y", [4], floats), numpy.float32(1), ["an ONNX Runtime that has these operators"]),
        ]
        for node, x, y, constant, told in cases:
            with self.subTest(node.op_type):
                path = self.write(model([node], [x], [y], [numpy_helper.from_array(constant, "s")],
                                        domains=[node.domain] if node.domain else []))
                self.expect_error(anemone("run", path), *told)

    def test_negative_rows_are_refused_as_onnx_runtime_does(self):
        """Operators of com.microsoft that become a Gather, which counts them from the end."""
        def table(name, rows):
            return numpy_helper.from_array(numpy.ones((rows, 4), numpy.float32), name)

        def line(name):
            return numpy_helper.from_array(numpy.ones(4, numpy.float32), name)

        whole = onnx.TensorProto.INT32
        rotary = model([helper.make_node("RotaryEmbedding", ["x", "p", "c", "s"], ["y"], domain="com.microsoft")],
                       [tensor("x", [1, 2, 4, 8]), tensor("p", [1, 4], onnx.TensorProto.INT64)],
                       [tensor("y", [1, 2, 4, 8])], [table("c", 32), table("s", 32)], domains=["com.microsoft"])
        embedded = model([helper.make_node("EmbedLayerNormalization", ["p", "", "w", "q", "", "g", "g"], ["y", "m"],
                                           domain="com.microsoft")],
                         [tensor("p", [1, 4], whole)], [tensor("y", [1, 4, 4]), tensor("m", [1], whole)],
                         [table("w", 32), table("q", 5), line("g")], domains=["com.microsoft"])
        for name, made, kind in (("rotary", rotary, numpy.int64), ("embedded", embedded, numpy.int32)):
            path = self.write(made)
            for second in (1, -1, 32):
                with self.subTest(name, second=second):
                    numpy.save(self.folder / "p.npy", numpy.array([[0, second, 2, 3]], kind))
                    done = anemone("run", path, "--input", f"p={self.folder / 'p.npy'}")
                    if second == 1:
                        self.assertEqual(0, done.returncode, done.stderr)
                    else:
                        self.expect_error(done, f"idx={-33 if second < 0 else 32} must be within")

    def test_the_table_of_hazards_fits(self):
        name = "/model/encoder/layers.0/self_attn/scale_of_the_queries_and_of_the_keys/Mul"
        nodes = [helper.make_node("Mul", ["x", "s"], ["a"], name="scale"),
                 helper.make_node("Mul", ["a", "a"], ["y"], name=name)]
        path = self.write(model(nodes, [tensor("x", [1, 9000])], [tensor("y", [1, 9000])],
                                [numpy_helper.from_array(numpy.float32(400), "s")]))
        for columns in (80, 200):
            text = anemone("run", path, "--hazards", env={"COLUMNS": str(columns)}).stdout
            table = [line for line in text.splitlines() if line.startswith("  ") and " of 9000" in line]
            self.assertEqual(1, len(table), text)
            self.assertLessEqual(len(table[0]), columns, text)
            self.assertIn(f"'{name}'" if columns == 200 else "keys/Mul'", table[0])

    def test_two_buckets_print_no_reports(self):
        words = [self.write(pooled()), "--dim", "batch=1", "--bucket", "height=8,16", "--bucket",
                 "width=8,16"]
        text = self.text(*words)
        self.assertLess(len(text.splitlines()), 14, text)
        self.assertNotIn("remedy", text)


class Inputs(CliTest):
    def setUp(self):
        super().setUp()
        self.path = self.write(pooled())
        self.x = self.folder / "x.npy"
        numpy.save(self.x, numpy.ones((2, 3, 32, 24), numpy.float32))
        self.given = ["--input", f"x={self.x}"]

    def shape(self, *words):
        done = anemone("run", *words, "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)["outputs"][0]["shape"]

    def test_an_array_binds_free_dimensions(self):
        self.assertEqual([2, 4, 1, 1], self.shape(self.path, *self.given))
        self.assertEqual([2, 4, 1, 1], self.shape(self.path, *self.given, "--dim", "batch=2"))

    def test_a_pb_array_too(self):
        proto = numpy_helper.from_array(numpy.ones((5, 3, 8, 8), numpy.float32))
        (self.folder / "x.pb").write_bytes(proto.SerializeToString())
        self.assertEqual([5, 4, 1, 1], self.shape(self.path, "--input", f"x={self.folder / 'x.pb'}"))

    def test_it_binds_other_inputs_of_the_same_dimension(self):
        path = self.write(model([helper.make_node("Add", ["x", "z"], ["y"])],
                                [tensor("x", ["n", 4]), tensor("z", ["n", 4])],
                                [tensor("y", ["n", 4])]), "add.onnx")
        numpy.save(self.x, numpy.ones((3, 4), numpy.float32))
        self.assertEqual([3, 4], self.shape(path, *self.given))

    def test_dimensions_without_a_name(self):
        path = self.write(relu((None, None)), "free.onnx")
        numpy.save(self.x, numpy.ones((3, 5), numpy.float32))
        self.assertEqual([3, 5], self.shape(path, *self.given))

    def test_a_pipe_binds_them_when_it_is_read(self):
        pipe = self.folder / "pipe.npy"
        os.mkfifo(pipe)
        writer = threading.Thread(target=lambda: pipe.write_bytes(self.x.read_bytes()), daemon=True)
        writer.start()
        self.assertEqual([2, 4, 1, 1], self.shape(self.path, "--input", f"x={pipe}"))
        writer.join(timeout=10)

    def test_an_input_without_an_array_needs_its_size(self):
        path = self.write(model([helper.make_node("Add", ["x", "z"], ["y"])],
                                [tensor("x", ["n", 4]), tensor("z", ["m", 4])],
                                [tensor("y", ["n", 4])]), "two.onnx")
        numpy.save(self.x, numpy.ones((3, 4), numpy.float32))
        self.expect_error(anemone("run", path, *self.given), "input 'z': dimension 0 ('m') has no size",
                          "give --dim 'm=1'")
        self.assertEqual([3, 4], self.shape(path, *self.given, "--dim", "m=1"))

    def test_the_name_may_contain_an_equals_sign(self):
        path = self.write(relu(("n", 4), name="x=1"), "named.onnx")
        numpy.save(self.x, numpy.ones((3, 4), numpy.float32))
        self.assertEqual([3, 4], self.shape(path, "--input", f"x=1={self.x}"))

    def test_contradictions_are_one_error(self):
        for words, told in (
            (["--dim", "batch=4"], f"input 'x', dimension 0 ('batch'): {self.x} has size 2, "
                                   "--dim batch=4 gives another"),
            (["--shape", "x=2x3x16x24"], "has size 32, --shape x gives another")):
            self.expect_error(anemone("run", self.path, *self.given, *words), told, code=2)

    def test_arrays_are_refused_before_the_model_is_loaded(self):
        numpy.save(self.x, numpy.ones((2, 4, 8, 8), numpy.float32))
        done = anemone("run", self.path, *self.given)
        self.expect_error(done, "input 'x': want float32 (batch)x3x(height)x(width)", "2x4x8x8")
        numpy.save(self.x, numpy.ones((2, 3, 8, 8), numpy.float64))
        self.expect_error(anemone("run", self.path, *self.given), "has float64 2x3x8x8")
        self.x.write_bytes(b"hello")
        self.expect_error(anemone("run", self.path, *self.given), "x.npy", "not a .npy file")

    def test_a_bucketed_dimension_is_not_bound(self):
        words = [self.path, *self.given, "--bucket", "width=24,48", "--bucket", "height=32,64"]
        done = anemone("run", *words)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("ran bucket height=32,width=24", done.stdout)

    def test_compile_binds_too(self):
        done = anemone("compile", self.path, *self.given, "--compress", "int8", "-o",
                       self.folder / "out.onnx")
        self.assertNotIn("no size", done.stderr)

    def test_a_declared_size_of_0_is_a_size(self):
        path = self.write(relu((0, 4)), "empty.onnx")
        self.assertEqual([0, 4], self.shape(path))
        numpy.save(self.x, numpy.ones((3, 4), numpy.float32))
        self.assertEqual([3, 4], self.shape(path, *self.given))


class MemoryLimit(CliTest):
    def test_a_model_that_needs_more_is_refused(self):
        path = self.write(product(2048))  # 8 MiB as fp16
        for words, needs in ((["run", path], "needs about "), (["bench", "-q", path], "needs about "),
                             (["compile", path, "--compress", "int8", "-o", self.folder / "o.onnx"],
                              "weight 'w': compressing needs 48.0 MiB more memory; ")):
            self.expect_error(anemone(*words, "--memory-limit", "2M"), needs,
                              "the memory limit is 2.0 MiB; raise the limit")
        for limit in ("64M", "1g", "0", str(64 << 20), "64MB", "64 MiB", "0.5GB", "1kb"):
            if limit == "1kb":
                self.expect_error(anemone("run", path, "--memory-limit", limit), "the memory limit is 1000 B")
                continue
            done = anemone("run", path, "--memory-limit", limit)
            self.assertEqual(0, done.returncode, done.stderr)

    def test_the_comparison_is_limited_too(self):
        path = self.write(product(1024))
        self.assertEqual(0, anemone("run", path, "--memory-limit", "3M").returncode)
        self.expect_error(anemone("run", path, "--memory-limit", "3M", "--compare"),
                          "opening a session of ONNX Runtime needs 4.0 MiB more", "the memory limit is 3.0 MiB")

    def test_weights_of_cpu_segments_count(self):
        path = self.write(product(1024))
        self.expect_error(anemone("run", path, "--policy", "cpu", "--memory-limit", "3M"),
                          "weights 4.0 MiB", "the memory limit is 3.0 MiB")

    def test_the_estimate_is_near_the_memory_taken(self):
        """Of weights, which are most of it; the process without them takes about 15 MiB."""
        taken = peak_of(self.write(product(4096))) - peak_of(self.write(product(16)))
        told = anemone("run", self.write(product(4096)), "--memory-limit", "1M").stderr
        need = float(told.split("needs about ")[1].split(" MiB")[0]) * (1 << 20)
        self.assertLess(need, 1.2 * taken)
        self.assertGreater(need, taken / 6)  # the file's pages are counted too

    @unittest.skipIf(SANITIZED, "a sanitizer keeps freed memory")
    def test_external_data_is_in_memory_once_while_it_is_read(self):
        """With --policy cpu ONNX Runtime copies all weights before it packs the first."""
        size, count = 3000, 4
        made = model([helper.make_node("MatMul", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(count)],
                     [tensor("v0", [1, size])], [tensor(f"v{count}", [1, size])],
                     [array(f"w{i}", numpy.full((size, size), i / size)) for i in range(count)])
        path = self.folder / "large.onnx"
        onnx.save(made, path, save_as_external_data=True, location="large.bin")
        taken = peak_of(path, "--policy", "cpu") - peak_of(self.write(product(16)), "--policy", "cpu")
        self.assertLess(taken, 1.75 * count * size * size * 4)  # twice: 2.1

    def test_wrong_values(self):
        path = self.write(relu())
        for value in ("much", "-1", "1T", "K", "", "1.5", "1 M B", "MB", "1e3M", "9999999999GB"):
            self.expect_error(anemone("run", path, "--memory-limit", value), "--memory-limit",
                              "want a number of bytes", code=2)
        self.expect_error(anemone("targets", "--memory-limit", "1M"), "--memory-limit", code=2)


if __name__ == "__main__":
    unittest.main()
