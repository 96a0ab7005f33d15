"""`anemone compile --compress`: the forms, the tolerance, and the written model in ONNX Runtime."""

import json
import os
import signal
import subprocess
import time
import unittest

import jsonschema
import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

from support import ANEMONE, ROOT, SANITIZED, CliTest, anemone, array, model, relu, tensor

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "compile.json").read_text())
FORMS = ("int8", "palette4", "palette8", "sparse", "blockwise")
RANDOM = numpy.random.default_rng(1)


def weights(*shape):
    return RANDOM.standard_normal(shape) / numpy.sqrt(numpy.prod(shape[1:]))


def pruned(*shape):
    values = weights(*shape)
    values[numpy.abs(values) < numpy.quantile(numpy.abs(values), 0.8)] = 0
    return values


def network(make=weights):
    """Convolutions, a transposed convolution, a Gemm and a MatMul, with a free batch."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1] * 4, group=2),
        helper.make_node("ConvTranspose", ["c", "w3"], ["d"], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["d"], ["e"]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("Gemm", ["f", "w4", "bias"], ["g"], transB=1),
        helper.make_node("MatMul", ["g", "w5"], ["y"])]
    return model(nodes, [tensor("x", ["n", 16, 9, 11])], [tensor("y", ["n", 40])],
                 [array("w1", make(32, 16, 3, 3)), array("w2", make(32, 16, 3, 3)),
                  array("w3", make(32, 32, 2, 2)), array("w4", make(64, 32)),
                  array("bias", RANDOM.standard_normal(64)), array("w5", make(64, 40))])


def run_on_ort(path, feeds):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def cosine(a, b):
    a, b = a.ravel().astype(float), b.ravel().astype(float)
    return a @ b / numpy.sqrt((a @ a) * (b @ b))


def relative_error(want, got):
    return abs(want - got).max() / numpy.ptp(want)


class Compile(CliTest):
    def compile(self, path, form, *words, code=0, out="out.onnx"):
        done = anemone("compile", path, "--compress", form, "-o", self.folder / out, "--json",
                       *words)
        self.assertEqual(code, done.returncode, done.stderr)
        made = json.loads(done.stdout)
        jsonschema.validate(made, SCHEMA)
        return made, self.folder / out

    def test_every_form_runs_here_and_on_onnx_runtime(self):
        feeds = {"x": RANDOM.random((2, 16, 9, 11), numpy.float32)}
        for form in FORMS:
            with self.subTest(form):
                original = self.write(network(pruned if form == "sparse" else weights))
                made, out = self.compile(original, form, "--dim", "n=2", "--tolerance",
                                         "cosine=0.9")
                kept = [w for w in made["weights"] if w["kept"]]
                self.assertEqual(5, len(kept))
                self.assertTrue(all(w["bytes_after"] < w["bytes_before"] for w in kept))
                self.assertEqual(form == "sparse", all(w["relative_error"] == 0 for w in kept))
                self.assertLess(out.stat().st_size, original.stat().st_size * 0.75)
                onnx.checker.check_model(str(out))
                want, = run_on_ort(original, feeds)
                got, = run_on_ort(out, feeds)
                self.assertGreater(cosine(want, got), 0.9)
                self.assertLess(relative_error(want, got), 0.3)
                ran = anemone("run", out, "--dim", "n=2", "--compare", "--json")
                self.assertEqual(0, ran.returncode, ran.stderr)
                output = json.loads(ran.stdout)["outputs"][0]
                self.assertGreater(output["cosine"], 0.9999)
                self.assertLess(output["max_rel_error"], 0.01)

    def test_check_says_which_targets_fold_a_form(self):
        floors = {"palette4": 13, "sparse": 13, "int8": 14, "blockwise": 15}  # h13: A13 and so on
        for form, floor in floors.items():
            with self.subTest(form):
                _, out = self.compile(self.write(network(pruned if form == "sparse" else weights)),
                                      form, "--dim", "n=2", "--tolerance", "cosine=0.9")
                done = anemone("check", out, "--dim", "n=2", "--json", "--target",
                               "h12,h13,h14,h15,u1")
                self.assertEqual(0, done.returncode, done.stderr)
                for plan in json.loads(done.stdout)["models"][0]["targets"]:
                    folded = any(w["rule"] == "folded-weight" for w in plan["warnings"])
                    number = int(plan["target"][1:])  # for u1 it is not published
                    self.assertEqual(1 < number < floor, folded, plan["target"])

    def test_int8_is_symmetric_by_output_channel(self):
        values = weights(64, 32)
        gemm = model([helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)],
                     [tensor("x", [1, 32])], [tensor("y", [1, 64])], [array("w", values)])
        made, out = self.compile(self.write(gemm), "int8")
        self.assertEqual(64 * 32 + 64 * 4, made["weights"][0]["bytes_after"])
        parts = {i.name: numpy_helper.to_array(i) for i in onnx.load(out).graph.initializer}
        scales = parts["w/scales"]
        self.assertTrue((scales == scales.astype(numpy.float16)).all())
        numpy.testing.assert_array_equal(
            parts["w/codes"], numpy.clip(numpy.rint(values.astype(numpy.float32).astype(float)
                                                    / scales[:, None].astype(float)), -127, 127))

    def test_what_harms_most_is_left_out(self):
        values = weights(64, 64)
        values[:, 0] = 60  # outliers that use the whole range of 4 bits
        mixed = model([helper.make_node("MatMul", ["x", "w1"], ["a"]),
                       helper.make_node("MatMul", ["a", "w2"], ["y"])],
                      [tensor("x", [4, 64])], [tensor("y", [4, 64])],
                      [array("w1", weights(64, 64)), array("w2", values)])
        path = self.write(mixed)
        made, _ = self.compile(path, "palette4", "--tolerance", "max_rel=0.02")
        left = [w for w in made["weights"] if not w["kept"]]
        self.assertTrue(left)
        self.assertTrue(all("accuracy" in w["why"] for w in left))
        self.assertTrue(made["within_tolerance"])
        self.assertLessEqual(made["outputs"][0]["max_rel_error"], 0.02)

    def test_a_tolerance_that_cannot_be_met_writes_nothing(self):
        path = self.write(network())
        done = anemone("compile", path, "--compress", "int8", "--dim", "n=1", "-o",
                       self.folder / "out.onnx", "--tolerance", "max_abs=0", "-q")
        self.expect_error(done, "the tolerance is not met", "nothing is written", code=3)
        self.assertFalse((self.folder / "out.onnx").exists())

    def test_weights_without_the_form_say_why(self):
        made, _ = self.compile(self.write(network()), "sparse", "--dim", "n=1", code=3)
        self.assertEqual(5, len(made["weights"]))
        for w in made["weights"]:
            self.assertEqual((False, "not smaller in this form"), (w["kept"], w["why"]))
        odd = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, 67])],
                    [tensor("y", [1, 64])], [array("w", weights(67, 64))])
        made, _ = self.compile(self.write(odd), "blockwise", code=3)
        self.assertEqual("no block size from 16 to 64 divides 67", made["weights"][0]["why"])

    def test_a_compression_of_nothing_writes_nothing(self):
        out = self.folder / "out.onnx"
        half = model([helper.make_node("MatMul", ["x", "w"], ["y"])],
                     [tensor("x", [1, 64], TensorProto.FLOAT16)],
                     [tensor("y", [1, 64], TensorProto.FLOAT16)],
                     [numpy_helper.from_array(weights(64, 64).astype(numpy.float16), "w")])
        small = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, 8])],
                      [tensor("y", [1, 8])], [array("w", weights(8, 8))])
        for made, form, why, table in (
                (network(), "sparse", "5 weights: not smaller in this form", True),
                (half, "int8", "1 weight: the type is float16, only float32 can be compressed", True),
                (small, "int8", "1 weight: fewer than 1024 elements", True),
                (relu(), "int8", "it has no constant weight of a convolution or product", False)):
            with self.subTest(why):
                free = ("--dim", "n=1") if form == "sparse" else ()
                done = anemone("compile", self.write(made), "--compress", form, *free, "-o", out,
                               "-q")
                self.expect_error(done, "no weight is compressed, so nothing is written", why, code=3)
                self.assertNotIn("above", done.stdout + done.stderr)
                self.assertEqual(table, "compressed" in done.stdout, done.stdout)
                self.assertFalse(out.exists())

    def test_weights_that_are_all_too_inaccurate_write_nothing(self):
        """16 entries are far too few for this tolerance, fp16 is not."""
        path = self.write(model([helper.make_node("MatMul", ["x", "w"], ["y"])],
                                [tensor("x", [4, 64])], [tensor("y", [4, 64])],
                                [array("w", weights(64, 64))]))
        done = anemone("compile", path, "--compress", "palette4", "-o", self.folder / "out.onnx",
                       "--tolerance", "max_rel=0.002", "-q")
        self.expect_error(done, "nothing is written; 1 weight: accuracy loss too high", code=3)
        self.assertIn("not compressed: accuracy loss too high", done.stdout)
        self.assertFalse((self.folder / "out.onnx").exists())

    def test_shared_weights_are_stored_and_counted_once(self):
        """Identity nodes of one initializer, as exporters write for tied weights."""
        nodes, last = [], "x"
        for i in range(6):
            nodes += [helper.make_node("Identity", ["w"], [f"w{i}"]),
                      helper.make_node("MatMul", [last, f"w{i}"], [f"y{i}"])]
            last = f"y{i}"
        shared = model(nodes, [tensor("x", [1, 128])], [tensor("y5", [1, 128])],
                       [array("w", weights(128, 128))])
        original = self.write(shared)
        made, out = self.compile(original, "int8", "--tolerance", "cosine=0.9")
        self.assertEqual(1, len(made["weights"]))
        self.assertEqual(128 * 128 * 4, made["weight_bytes_before"])
        self.assertEqual(original.stat().st_size, made["model_bytes"])
        self.assertEqual(out.stat().st_size, made["file_bytes"])
        self.assertLess(out.stat().st_size, 128 * 128 * 1.2)
        codes = [i for i in onnx.load(out).graph.initializer if i.data_type == TensorProto.INT8]
        self.assertEqual(1, len(codes))

    def test_sizes_are_those_of_the_files(self):
        """With the weights in a file next to the model."""
        whole = self.write(network())
        made = onnx.load(whole)
        path = self.folder / "external.onnx"
        onnx.save(made, path, save_as_external_data=True, location="weights.bin", size_threshold=100)
        on_disk = path.stat().st_size + (self.folder / "weights.bin").stat().st_size
        said, out = self.compile(path, "int8", "--dim", "n=1")
        self.assertEqual((on_disk, out.stat().st_size), (said["model_bytes"], said["file_bytes"]))
        text = anemone("compile", path, "--compress", "int8", "--dim", "n=1", "-o", out).stdout
        told = " ".join(text.split())
        self.assertRegex(told, r"external\.onnx -> \S+out\.onnx: "
                         rf"{on_disk / 1024:.1f} KiB -> {out.stat().st_size / 1024:.1f} KiB "
                         r"\(\d\.\d times smaller\)")
        self.assertRegex(told, r"weights: \S+ KiB -> \S+ KiB \(\d\.\d times smaller\), each counted once")

    def test_tables_fit_the_terminal(self):
        long = "/model/encoder/layers.0/self_attn/query_projection/weight_of_the_first_head"
        made = model([helper.make_node("MatMul", ["x", long], ["a"]),
                      helper.make_node("MatMul", ["a", "half"], ["y"])],
                     [tensor("x", [1, 64])], [tensor("y", [1, 8])],
                     [array(long, weights(64, 64)), array("half", weights(64, 8))])
        for columns in (80, 60, 200):
            text = anemone("compile", self.write(made), "--compress", "int8", "-q", "-o",
                           self.folder / "o.onnx", env={"COLUMNS": str(columns)}).stdout
            for line in text.splitlines():
                if str(self.folder) not in line:  # a path is never broken
                    self.assertLessEqual(len(line), columns, line)
            name = long if columns == 200 else "..."
            self.assertIn(f"  {name}", text)
            self.assertIn("first_head", text)
            self.assertIn("\n    not compressed: fewer than 1024 elements\n", text)

    def test_a_file_of_the_model_is_never_replaced(self):
        path = self.folder / "net.onnx"
        onnx.save(onnx.load(self.write(network())), path, save_as_external_data=True,
                  location="weights.bin", size_threshold=100)
        data = self.folder / "weights.bin"
        link = self.folder / "link.onnx"
        link.symlink_to(path)
        before = {p: p.read_bytes() for p in (path, data)}
        for out in (path, link, data, self.folder / ".." / self.folder.name / "net.onnx"):
            done = anemone("compile", path, "--compress", "int8", "--dim", "n=1", "-o", out, "-q")
            self.expect_error(done, "read; choose another name" if out in before else "which is read")
            self.assertEqual(before, {p: p.read_bytes() for p in (path, data)})
        self.assertTrue(link.is_symlink())

    def test_random_inputs_are_named(self):
        path = self.write(network())
        words = ("compile", path, "--compress", "int8", "--dim", "n=1", "-o",
                 self.folder / "out.onnx")
        done = anemone(*words)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("inputs: random, seed 0 (give --input for real ones)", done.stdout)
        self.assertIn("warning: the tolerance was decided on random inputs, seed 0", done.stderr)
        numpy.save(self.folder / "x.npy", RANDOM.random((1, 16, 9, 11), numpy.float32))
        done = anemone(*words, "--input", f"x={self.folder / 'x.npy'}")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertNotIn("random", done.stdout + done.stderr)

    def test_weights_that_are_not_finite_are_named_once(self):
        values = weights(64, 64)
        values[3, 4], values[5, 6] = numpy.nan, numpy.inf
        path = self.write(model([helper.make_node("MatMul", ["x", "w"], ["a"]),
                                 helper.make_node("MatMul", ["a", "v"], ["y"])],
                                [tensor("x", [1, 64])], [tensor("y", [1, 64])],
                                [array("w", values), array("v", weights(64, 64))]))
        done = anemone("compile", path, "--compress", "int8", "-o", self.folder / "out.onnx")
        warnings = [line for line in done.stderr.splitlines() if "initializer" in line]
        self.assertEqual(1, len(warnings), done.stderr)
        self.assertIn("initializer 'w' has 1 NaN and 1 infinite elements", warnings[0])
        self.assertIn("not compressed: NaN or infinite elements", done.stdout)
        done = anemone("convert", path, "-o", self.folder / "net.ane")
        self.assertIn("initializer 'w' has 1 NaN and 1 infinite elements", done.stderr)
        done = anemone("run", path, "-v")
        self.assertEqual(0, done.returncode, done.stderr)
        told = " ".join((done.stdout + done.stderr).split())
        self.assertIn("initializer 'w' has 1 NaN and 1 infinite elements", told)
        self.assertIn("weights-not-finite", told)

    def test_devices_are_written_and_stay(self):
        before = os.stat("/dev/null")
        done = anemone("compile", self.write(network()), "--compress", "int8", "--dim", "n=1", "-q",
                       "-o", "/dev/null")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(before.st_rdev, os.stat("/dev/null").st_rdev)
        self.assertEqual([], [f for f in os.listdir("/dev") if f.endswith(".tmp")])

    @unittest.skipIf(SANITIZED, "a sanitizer's command is too slow for it")
    def test_a_signal_leaves_nothing(self):
        large = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, 4096])],
                      [tensor("y", [1, 4096])], [array("w", weights(4096, 4096))])
        path = self.write(large)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGXCPU, signal.SIGPIPE,
                       signal.SIGUSR1, signal.SIGALRM):
            self.signal_while_writing(number, "compile", path, "--compress", "int8", "-q", "-o",
                                      self.folder / "out.onnx")

    def test_leftovers_are_removed_after_an_hour(self):
        old, young = (self.folder / f"out.onnx.anemone-{i}123456789abcdef.tmp" for i in "ab")
        for path in (old, young):
            path.write_bytes(b"half")
        os.utime(old, (0, 0))
        other = self.folder / "mine.tmp"
        other.write_bytes(b"")
        os.utime(other, (0, 0))
        self.compile(self.write(network()), "int8", "--dim", "n=1")
        self.assertEqual((False, True, True), (old.exists(), young.exists(), other.exists()))

    @unittest.skipIf(SANITIZED, "a sanitizer's command is too slow for it")
    def test_progress_is_never_silent(self):
        nodes, last = [], "x"
        for i in range(24):
            nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"y{i}"]))
            last = f"y{i}"
        path = self.write(model(nodes, [tensor("x", [1, 1024])], [tensor(last, [1, 1024])],
                                [array(f"w{i}", weights(1024, 1024)) for i in range(24)]))
        began = time.monotonic()
        process = subprocess.Popen([str(ANEMONE), "compile", path, "--compress", "palette8", "-o",
                                    self.folder / "out.onnx"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        with process:
            lines = len(process.stderr.readlines())
        self.assertEqual(0, process.returncode)
        # A line about every 3 s, with room for a loaded machine.
        self.assertGreaterEqual(lines, (time.monotonic() - began) // 8)

    def test_a_model_with_bodies(self):
        """Bodies read the input, and the file keeps its shape."""
        branches = {f"{name}_branch": helper.make_graph(
            [helper.make_node(kind, ["a"], [name])], name, [], [tensor(name, [1, 64])])
            for name, kind in (("then", "Relu"), ("else", "Neg"))}
        path = self.write(model([helper.make_node("MatMul", ["x", "w"], ["a"]),
                                 helper.make_node("If", ["c"], ["y"], **branches)],
                                [tensor("x", [1, 64]), tensor("c", [], TensorProto.BOOL)],
                                [tensor("y", [1, 64])], [array("w", weights(64, 64))]))
        made, out = self.compile(path, "int8")
        self.assertTrue(made["weights"][0]["kept"])
        x = RANDOM.standard_normal((1, 64)).astype(numpy.float32)
        for c in (True, False):
            feeds = {"x": x, "c": numpy.array(c)}
            (want,), (got,) = run_on_ort(path, feeds), run_on_ort(out, feeds)
            self.assertGreater(cosine(want, got), 0.999)
            self.assertLess(relative_error(want, got), 0.05)

    def test_what_is_compressed_stays_so(self):
        _, once = self.compile(self.write(network()), "int8", "--dim", "n=1")
        made, _ = self.compile(once, "palette4", "--dim", "n=1", out="twice.onnx", code=3)
        self.assertEqual({"already compressed"}, {w["why"] for w in made["weights"]})

    def test_wrong_usage(self):
        path = self.write(network())
        self.expect_error(anemone("compile", path, "-o", "out.onnx"), "--compress", code=2)
        self.expect_error(anemone("compile", path, "--compress", "int8"), "-o FILE.onnx", code=2)
        done = anemone("compile", path, "--compress", "int3", "-o", "out.onnx")
        self.expect_error(done, "--compress", code=2)

    def test_a_full_disk_leaves_the_old_file(self):
        large = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [tensor("x", [1, 512])],
                      [tensor("y", [1, 512])], [array("w", weights(512, 512))])
        out = self.folder / "out.onnx"
        out.write_bytes(b"old")
        done = anemone("compile", self.write(large), "--compress", "int8", "-q", "-o", out,
                       file_limit=100000)  # a surface is smaller
        self.expect_error(done, "out.onnx")
        self.assertEqual(b"old", out.read_bytes())
        self.assertEqual([], [f for f in os.listdir(self.folder) if f.startswith("out.onnx.")])

    def test_models_of_onnx_runtimes_quantizer(self):
        """QDQ models: weights stay compressed, and outputs agree with ONNX Runtime."""
        original = self.write(network())

        class Reader(quantization.CalibrationDataReader):
            def __init__(self):
                self.feeds = iter([{"x": RANDOM.random((1, 16, 9, 11), numpy.float32)}
                                   for _ in range(4)])

            def get_next(self):
                return next(self.feeds, None)

        for kind, per_channel in ((quantization.QuantType.QInt8, True),
                                  (quantization.QuantType.QUInt8, False),
                                  (quantization.QuantType.QInt4, False)):
            with self.subTest(str(kind)):
                out = self.folder / "qdq.onnx"
                quantization.quantize_static(
                    str(original), str(out), Reader(), weight_type=kind, per_channel=per_channel,
                    activation_type=quantization.QuantType.QUInt8,
                    quant_format=quantization.QuantFormat.QDQ)
                ran = anemone("run", out, "--dim", "n=1", "--compare", "--json", "--tolerance",
                              "cosine=0.99")
                self.assertEqual(0, ran.returncode, ran.stderr + ran.stdout)


if __name__ == "__main__":
    unittest.main()
