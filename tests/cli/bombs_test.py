"""Small models that ask for too much time or memory: limits end them with a clear error (SECURITY.md)."""

import shutil
import subprocess
import sys
import time
import unittest

import numpy
import onnx.external_data_helper
from onnx import TensorProto, helper, numpy_helper

from attacks_test import AttackTest, bounded, of_text
from support import ANEMONE, SANITIZED, anemone, environment, model, relu, tensor

SLOW = 10 if SANITIZED else 1
# Runs a command and prints its peak of resident memory, in KiB.
PEAK = ("import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)")


def endless(body, carried="float[4] v", first="x"):
    """A Loop of 10^15 iterations."""
    return of_text(f"(float[4] x) => (float[4] y) {{ n = Constant<value_int = 1000000000000000>() "
                   f"y = Loop(n, , {first}) <body = b (int64 i, bool k, {carried}) => (bool o, float[4] w) "
                   f"{{ o = Identity(k) {body} }}> }}")


class TimeLimits(AttackTest):
    def stopped(self, path, *words, limit=1, saying=()):
        start = time.monotonic()
        done = bounded(*words, path, "--time-limit", limit)
        self.expect_error(done, f"time limit of {limit} s reached while", "--time-limit", *saying)
        self.assertLess(time.monotonic() - start, (limit + 10) * SLOW)

    def test_a_loop_that_does_not_end(self):
        path = self.write(endless("w = Sin(v)"))
        self.stopped(path, "run", saying=["running"])
        self.stopped(path, "run", "--policy", "cpu", saying=["running"])

    def test_a_loop_around_engine_segments(self):
        path = self.write(endless("a = Relu(v) w = Sigmoid(a)"))
        self.stopped(path, "run", saying=["running"])

    def test_a_scan_of_a_million_steps(self):
        made = of_text("(float[1000000,4] x, float[4] s) => (float[4] y, float[1000000,4] z) { y, z = "
                       "Scan<num_scan_inputs = 1, body = b (float[4] p, float[4] q) => (float[4] n, float[4] m) "
                       "{ n = Add(p, q) m = Sin(n) }>(s, x) }")
        self.stopped(self.write(made), "run", limit=0.5, saying=["running"])

    def test_one_node_that_takes_longer_is_noticed_when_it_ends(self):
        size = [1, 1024, 1024] if SANITIZED else [1, 5000, 5000]
        path = self.write(model([helper.make_node("MatMul", ["x", "x"], ["y"])], [tensor("x", size)], [tensor("y", size)]))
        self.stopped(path, "run", "--no-cache", "--threads", "1", limit=1 if SANITIZED else 0.25,
                     saying=["running", "(MatMul)"])

    def test_reading_and_planning(self):
        nodes = [helper.make_node("Add" if i % 3 else "Softmax", [f"v{i}"] * (2 if i % 3 else 1), [f"v{i + 1}"])
                 for i in range(60_000)]
        path = self.write(model(nodes, [tensor("v0", [1, 4])], [tensor("v60000", [1, 4])]))
        for words in (["check"], ["check", "--target", "all"], ["run"], ["run", "--policy", "cpu", "--dim", "n=1"]):
            self.stopped(path, *words, limit=0.01)
        self.stopped(path, "convert", "--to", "mlpackage", "-o", self.folder / "o.mlpackage", limit=0.01)
        self.stopped(path, "compile", "-o", self.folder / "o.compiled", limit=0.01)
        self.assertFalse((self.folder / "o.compiled").exists() or (self.folder / "o.mlpackage").exists())
        self.assertEqual([], self.temporaries())

    def test_writing_many_segments(self):
        nodes = [node for i in range(100) for node in
                 (helper.make_node("Relu", [f"v{i}"], [f"a{i}"]), helper.make_node("Erf", [f"a{i}"], [f"b{i}"]),
                  helper.make_node("Mod", [f"b{i}", "one"], [f"v{i + 1}"], fmod=1))]
        path = self.write(model(nodes, [tensor("v0", [1, 4])], [tensor("v100", [1, 4])],
                                [numpy_helper.from_array(numpy.ones(4, numpy.float32), "one")]))
        for kind in ("netplist", "mil", "mlpackage"):
            words = ("convert", path, "--to", kind, "-o", self.folder / kind, "-q")
            seconds = []
            for _ in range(2):
                start = time.monotonic()
                done = anemone(*words)
                seconds.append(time.monotonic() - start)
                self.assertEqual(0, done.returncode, done.stderr)
                shutil.rmtree(self.folder / kind)
            limit = 0.25 * min(seconds)  # other processes may have slowed both
            self.expect_error(anemone(*words, "--time-limit", limit), "time limit of ", "reached while")
            self.assertFalse((self.folder / kind).exists())
        self.assertEqual([], self.temporaries())

    def test_a_file_of_64_gib_that_one_tensor_names(self):
        made = model([helper.make_node("Add", ["x", "w"], ["y"])], [tensor("x", [4])], [tensor("y", [4])],
                     [numpy_helper.from_array(numpy.ones(4, numpy.float32), "w")])
        onnx.external_data_helper.set_external_data(made.graph.initializer[0], "large.bin", 0, 16)
        made.graph.initializer[0].ClearField("raw_data")
        path = self.write(made)
        with open(self.folder / "large.bin", "wb") as file:
            file.truncate(64 << 30)  # takes no space
        for words in (["compile", "-o", self.folder / "made"], ["run"]):
            with self.subTest(words[0]):
                start = time.monotonic()
                done = anemone(*words, path, "--time-limit", "0.5", env={"ANEMONE_PROGRAM_CACHE": self.folder / "cache"})
                self.expect_error(done, "time limit of 0.5 s reached while reading the model, at the hash of its files")
                self.assertLess(time.monotonic() - start, 10 * SLOW)
                self.assertFalse((self.folder / "made").exists())

    def test_what_ends_in_time_is_as_without(self):
        path = self.write(relu())
        for words in ([], ["--policy", "cpu"]):
            self.assertEqual(anemone("run", path, *words, "--compare", "-q").stdout,
                             anemone("run", path, *words, "--compare", "-q", "--time-limit", 100).stdout)

    def test_wrong_limits_are_wrong_usage(self):
        for value in ("-1", "soon", "nan", "inf", "1e300", ""):
            self.expect_error(anemone("run", self.write(relu()), "--time-limit", value), "--time-limit", code=2)


class MemoryLimits(AttackTest):
    def test_a_model_is_refused_before_it_takes_the_memory(self):
        size = 1 << 14
        made = model([helper.make_node("MatMul", ["x", "x"], ["y"]), helper.make_node("Relu", ["y"], ["z"])],
                     [tensor("x", [1, size, size])], [tensor("z", [1, size, size])])
        path = self.write(made)
        for words in (["run"], ["run", "--policy", "cpu"]):
            words = [*words, path, "--memory-limit", "256M"]
            # x alone is 1 GiB.
            self.expect_error(bounded(*words, most_bytes=1 << 30), "needs about", "the memory limit is 256")

    @unittest.skipIf(SANITIZED, "AddressSanitizer needs more memory")
    def test_every_command_heeds_it(self):
        """None takes more than the mapped files (32 MiB each), and the error says which file and where."""
        weights = numpy.random.default_rng(1).standard_normal((2, 2048, 2048)).astype(numpy.float32)
        made = model([helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("MatMul", ["a", "w1"], ["y"])],
                     [tensor("x", [1, 2048])], [tensor("y", [1, 2048])],
                     [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)])
        path, folder = self.write(made), self.folder / "made.c"
        self.assertEqual(0, anemone("compile", path, "-o", folder).returncode)
        new, data = self.folder / "new.npz", self.folder / "data.npz"
        numpy.savez(new, w0=weights[1])
        numpy.savez(data, x=weights[0, :4], t=weights[1, :4])
        needs, unit = "model.onnx: needs about ", "model.onnx: unit '"
        compressed = "model.onnx: weight 'w0': compressing needs 48.0 MiB more memory"
        output = self.folder / "output"
        output.mkdir()
        training = ("train", path, "--data", data, "--loss", "mse:y:t")
        for limit, words, said in [
                ("1M", ("run", path), needs), ("1M", ("run", folder), "needs about "),
                ("1M", ("run", path, "--policy", "cpu"), needs), ("1M", ("run", path, "--compare"), needs),
                ("1M", ("generate", path, "--tokens", "1"), needs), ("1M", ("bench", "-q", path), needs),
                ("1M", ("compile", path, "-o", output / "o.c"), needs),
                *(("1M", ("compile", path, "-o", output / "o.onnx", "--compress", form), compressed)
                  for form in ("int8", "palette4", "palette8", "sparse", "blockwise")),
                ("50M", ("compile", path, "-o", output / "o.onnx", "--compress", "int8"),
                 "needs 4.0 MiB more memory, beside 48.0"),
                *(("1M", ("convert", path, "--to", to, "-o", output / to), unit)
                  for to in ("netplist", "mil", "mlpackage")),
                ("1M", ("patch", folder, "--weights", new), "new.npz: reading weights needs 16.0 MiB more memory"),
                ("1K", training, "data.npz: reading data needs 32.0 KiB more memory"),
                ("1M", training, "model.onnx: weight 'w0': planning needs 16.0 MiB more memory")]:
            with self.subTest(words=words, limit=limit):
                line = [sys.executable, "-c", PEAK, str(ANEMONE), *map(str, words), "--memory-limit", limit]
                done = subprocess.run(line, capture_output=True, text=True, env=environment(), timeout=60)
                self.expect_error(done, said, "the memory limit is ", "raise the limit")
                self.assertLess(int(done.stdout.split()[-1]) >> 10, 150 if limit == "50M" else 100)  # MiB
                self.assertEqual([], list(output.iterdir()))

    def test_a_compiled_folder_is_refused_as_its_model_is(self):
        """Also one of 4 KB, whose weights are given by their shape and one number."""
        fills = "".join(f"f{i} = ConstantOfShape<value = float[1] {{{i + 1}.5}}>(s) v{i + 1} = MatMul(v{i}, f{i}) "
                        for i in range(4))
        filled = of_text(f"(float[1, 8192] x) => (float[1, 8192] y) {{ s = Constant<value_ints = [8192, 8192]>() "
                         f"v0 = Identity(x) {fills} y = Identity(v4) }}")
        weighty = of_text("(float[1, 2048] x) => (float[1, 2048] y) { m = Relu(x) y = MatMul(m, w) }")
        weights = numpy.random.default_rng(1).standard_normal((2048, 2048)).astype(numpy.float32)
        weighty.graph.initializer.append(numpy_helper.from_array(weights, "w"))
        for name, made, words in (("filled", filled, []), ("on the engine", weighty, []),
                                  ("on the CPU", weighty, ["--policy", "refuse:node:y"])):
            path, folder = self.write(made), self.folder / f"{name}.c"
            done = anemone("compile", path, *words, "-o", folder)
            self.assertEqual(0, done.returncode, done.stderr)
            for place in (path, folder):
                with self.subTest(name, place=place):
                    self.expect_error(bounded("run", place, *words, "--memory-limit", "4M", most_bytes=1 << 30),
                                      "needs about", "the memory limit is 4.0 MiB")

    def test_sizes_that_are_known_only_in_a_run(self):
        size = ("m = ReduceMax<keepdims = 0>(x) c = Constant<value_float = 1000000000.0>() f = Add(m, c) "
                "n = Cast<to = 7>(f) z = Constant<value_ints = [0]>() u = Unsqueeze(n, z)")
        loop = ("n = Constant<value_int = 1000000000000>() w, y = Loop(n, , x) <body = b (int64 i, bool k, float[4] v) "
                "=> (bool o, float[4] w, float[4] s) {{ o = Identity(k) w = {}(v) s = {}(v) }}>")
        for what, text in {"one tensor": f"{size} y = ConstantOfShape(u)",
                           "a part without ONNX Runtime": f"{size} i = ConstantOfShape<value = int64[1] {{1}}>(u) "
                                                          "y = Cast<to = 1>(i)",
                           "results of iterations on the engine": loop.format("Relu", "Sigmoid"),
                           "results of iterations on the CPU": loop.format("Asinh", "Acosh")}.items():
            made = of_text(f"(float[4] x) => (float y) {{ {text} }}")
            made.graph.output[0].type.tensor_type.ClearField("shape")
            path = self.write(made)
            for words in ([], ["--policy", "cpu"]):
                with self.subTest(what, words=words):
                    self.expect_error(bounded("run", path, *words, "--memory-limit", "16M", most_bytes=2 << 30),
                                      "a run needs ", "the memory limit is 16.0 MiB; raise the limit (--memory-limit")
        made = of_text(f"(float[4] x) => (float[n] y) {{ {size.replace('1000000000.0', '1000.0')} y = ConstantOfShape(u) }}")
        done = anemone("run", self.write(made), "--memory-limit", "16M")
        self.assertEqual(0, done.returncode, done.stderr)

    def test_bench_is_refused_before_it_makes_inputs(self):
        path = self.write(model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [1 << 28])],
                                [tensor("y", [1 << 28])]))  # 1 GiB
        self.expect_error(bounded("bench", "-q", path, "--memory-limit", "64M", most_bytes=1 << 30), "needs about",
                          "the memory limit is 64.0 MiB")

    def test_what_planning_makes_is_refused_before_it_is_made(self):
        shape = [1 << 12, 1 << 10]
        repeats = numpy_helper.from_array(numpy.array([1 << 12, 1], numpy.int64), "repeats")
        row = numpy_helper.from_array(numpy.arange(1 << 10, dtype=numpy.float32)[None], "row")
        nodes, last = [], "x"
        for i in range(8):  # 8 times 16 MiB
            nodes += [helper.make_node("Mul", ["row", "row"] if i == 0 else [f"row{i - 1}", "row"], [f"row{i}"]),
                      helper.make_node("Tile", [f"row{i}", "repeats"], [f"tile{i}"], name=f"tile{i}"),
                      helper.make_node("Add", [last, f"tile{i}"], [f"sum{i}"])]
            last = f"sum{i}"
        tiles = self.write(model(nodes, [tensor("x", shape)], [tensor(last, shape)], [row, repeats]), "tiles.onnx")
        triangle = self.write(model([helper.make_node("Trilu", ["x"], ["y"], name="half")], [tensor("x", [1 << 12] * 2)],
                                    [tensor("y", [1 << 12] * 2)]), "triangle.onnx")
        for path, node in ((tiles, "'tile"), (triangle, "'half' (Trilu)")):
            for words in (["check", path], ["run", path], ["convert", path, "-o", self.folder / "made"]):
                with self.subTest(path=path.name, words=words[0]):
                    self.expect_error(anemone(*words, "--memory-limit", "48M"), node, "planning needs ",
                                      "the memory limit is 48.0 MiB; raise the limit (--memory-limit")
            done = anemone("check", path, "--memory-limit", "1G")
            self.assertEqual(0, done.returncode, done.stderr)


@unittest.skipIf(SANITIZED, "AddressSanitizer needs the whole address space, so memory cannot be bounded")
class Expansion(AttackTest):
    """A few bytes that stand for much."""

    def test_results_that_are_huge(self):
        for what, nodes in {
                "ConstantOfShape": "s = Constant<value_ints = [1000000, 1000000]>() a = ConstantOfShape(s) "
                                   "y = Add(a, x)",
                "Expand": "s = Constant<value_ints = [1000000, 1000000, 1]>() y = Expand(x, s)",
                "Tile": "s = Constant<value_ints = [1000000000000]>() y = Tile(x, s)",
                "Pad": "s = Constant<value_ints = [0, 1000000000000]>() y = Pad(x, s)",
                "Range": "a = Constant<value_int = 0>() b = Constant<value_int = 1000000000000>() "
                         "c = Constant<value_int = 1>() r = Range(a, b, c) y = Cast<to = 1>(r)",
                "Resize": "u = Unsqueeze(x, z) t = Unsqueeze(u, z) "
                          "s = Constant<value_floats = [1.0, 1.0, 1000000000000.0]>() y = Resize(t, , s)",
                "Einsum": 'y = Einsum<equation = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t->abcdefghijklmnopqrst">'
                          "(x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x)",
                "OneHot": "i = Cast<to = 7>(x) d = Constant<value_int = 1000000000000>() "
                          "v = Constant<value_floats = [0.0, 1.0]>() y = OneHot(i, d, v)",
                "Gather": "s = Constant<value_ints = [100000, 100000]>() i = ConstantOfShape<value = int64[1] {0}>(s) "
                          "y = Gather(x, i)",
                "EyeLike": "s = Constant<value_ints = [1000000, 1000000]>() a = ConstantOfShape(s) "
                           "b = EyeLike(a) y = Add(b, x)"}.items():
            made = of_text(f"(float[4] x) => (float y) {{ z = Constant<value_ints = [0]>() {nodes} }}")
            del made.graph.output[0].type.tensor_type.shape.dim[:]
            made.graph.output[0].type.tensor_type.ClearField("shape")
            with self.subTest(what):
                self.both(made, where=what)

    def test_results_that_double(self):
        """Each node doubles its input: 2^50 elements after 50."""
        nodes = [helper.make_node("Concat", [f"v{i}", f"v{i}"], [f"v{i + 1}"], axis=0) for i in range(50)]
        first = numpy_helper.from_array(numpy.ones(4, numpy.float32), "v0")
        end = helper.make_node("ReduceSum", ["v50"], ["y"], keepdims=0)
        self.both(model([*nodes, end], [], [tensor("y", [])], [first]))

    def test_recurrences_of_a_million_steps(self):
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
            w = numpy_helper.from_array(numpy.zeros((1, gates, 1), numpy.float32), "w")
            r = numpy_helper.from_array(numpy.zeros((1, gates, 1), numpy.float32), "r")
            made = model([helper.make_node(op, ["x", "w", "r"], ["y"], hidden_size=1)],
                         [tensor("x", [1_000_000, 1, 1])], [tensor("y", [1_000_000, 1, 1, 1])], [w, r])
            with self.subTest(op):
                self.both(made, where=op)

    def test_recurrences_of_no_steps(self):
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
            w = numpy_helper.from_array(numpy.ones((1, 4 * gates, 3), numpy.float32), "w")
            r = numpy_helper.from_array(numpy.ones((1, 4 * gates, 4), numpy.float32), "r")
            path = self.write(model([helper.make_node(op, ["x", "w", "r"], ["", "h"], "last", hidden_size=4)],
                                    [tensor("x", [0, 2, 3])], [tensor("h", [1, 2, 4])], [w, r]), f"{op}.onnx")
            with self.subTest(op):
                self.assertEqual(0, anemone("check", path).returncode)
                done = anemone("run", path)
                if op == "GRU":  # ONNX Runtime 1.31 ends the process
                    self.expect_error(done, "'last' (GRU): input 0 'x' has no elements", "give at least one")
                else:
                    self.assertEqual(0, done.returncode, done.stderr)

    def test_nothing_to_compute(self):
        """ONNX Runtime 1.31 ends the process on each, alone too."""
        einsum = '(float[N,2,H] x) => (float[N,2,2] y) { z = Sin(x) y = Einsum<equation = "bqd,bkd->bqk">(z, x) }'
        gru = ("(float[S,N,4] x) => (float[S,1,N,3] y) <float[1,9,4] w = {" + ",".join(["1"] * 36) + "}, "
               "float[1,9,3] r = {" + ",".join(["1"] * 27) + "}> { y = GRU<hidden_size = 3>(x, w, r) }")
        lstm = ("(float[S,N,4] x) => (float[S,1,N,3] y) <float[1,12,4] w = {" + ",".join(["1"] * 48) + "}, "
                "float[1,12,3] r = {" + ",".join(["1"] * 36) + "}> { y = LSTM<hidden_size = 3>(x, w, r) }")
        for text, sizes in ((einsum, ("0x2x4", "4x2x0")), (gru, ("2x0x4", "1x0x4")), (lstm, ("2x0x4", "0x0x4"))):
            path = self.write(of_text(text))
            for size in sizes:
                for policy in ("max-engine", "cpu"):
                    with self.subTest(text=text, size=size, policy=policy):
                        done = anemone("run", path, "--shape", f"x={size}", "--policy", policy)
                        self.assertEqual(0, done.returncode, done.stderr)
        constant = ("(float[2] x) => (float[2] y) <float[0,3] a = {}, float[3,2,0] b = {}> {"
                    ' e = Einsum<equation = "ij,jki->k">(a, b) y = Add(x, e) }')
        done = anemone("compile", self.write(of_text(constant)), "-o", self.folder / "constant")
        self.assertEqual(0, done.returncode, done.stderr)

    def test_nothing_is_left_in_a_run(self):
        """Only the run knows that no element of x is not zero."""
        weights = "<float[1,9,4] w = {" + ",".join(["1"] * 36) + "}, float[1,9,3] r = {" + ",".join(["1"] * 27) + "}> "
        gru = ("(float[5] x) => (float[1,1,M,3] y) " + weights + "{ n = NonZero(x) k = Transpose(n) f = Cast<to = 1>(k) "
               "a = Constant<value = int64[1] {0}>() u = Unsqueeze(f, a) q = Concat<axis = 2>(u, u, u, u) "
               "y = GRU<hidden_size = 3>(q, w, r) }")
        einsum = ("(float[5] x) => (float[2,2] y) { n = NonZero(x) f = Cast<to = 1>(n) "
                  'y = Einsum<equation = "ai,bi->ab">(f, f) }')
        for text, node in ((gru, "(GRU)"), (einsum, "(Einsum)")):
            path = self.write(of_text(text))
            for policy in ("max-engine", "cpu"):
                with self.subTest(node=node, policy=policy):
                    for value in (0, 1):
                        numpy.save(self.folder / "x.npy", numpy.full(5, value, numpy.float32))
                        done = anemone("run", path, "--input", f"x={self.folder / 'x.npy'}", "--policy", policy)
                        if value == 0:
                            self.expect_error(done, node, "wants at least one element")
                        else:
                            self.assertEqual(0, done.returncode, done.stderr)

    def test_a_million_outputs(self):
        for command, count in (("check", 1_000_000), ("run", 10_000)):  # ONNX Runtime takes a minute for 80,000
            names = [f"y{i}" for i in range(count // SLOW)]
            made = helper.make_node("Split", ["x"], names, num_outputs=len(names))
            path = self.write(model([made, helper.make_node("Relu", [names[0]], ["y"])],
                                    [tensor("x", [len(names)])], [tensor("y", [1])]))
            self.assertEqual(0, bounded(command, path).returncode)

    def test_attributes_of_many_numbers(self):
        many = [1] * (5_000_000 // SLOW)
        for made in (helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=many),
                     helper.make_node("Transpose", ["x"], ["y"], perm=many),
                     helper.make_node("Upsample", ["x"], ["y"], scales=[1.0] * len(many))):
            with self.subTest(made.op_type):
                self.both(model([made], [tensor("x", [1, 1, 4, 4])], [tensor("y", None)],
                                opset=7 if made.op_type == "Upsample" else 21))

    def test_a_text_of_2_gibibytes(self):
        path = self.write(relu().SerializeToString() + b"\x32" + b"\x80\x80\x80\x80\x08")  # doc_string
        with open(path, "r+b") as file:
            file.truncate(path.stat().st_size + (1 << 31))  # zeros that take no space
        self.expect_error(bounded("check", path))

    def test_branches_in_branches(self):
        for depth in (10, 28):  # Python's protobuf writes no more
            inner = helper.make_graph([helper.make_node("Relu", ["x"], ["t0"])], "g", [], [tensor("t0", [4])])
            for i in range(depth):
                inner = helper.make_graph(
                    [helper.make_node("If", ["c"], [f"t{i + 1}"], then_branch=inner, else_branch=inner)]
                    if i < 8 else  # 2^8 leaves
                    [helper.make_node("If", ["c"], [f"t{i + 1}"], then_branch=inner,
                                      else_branch=helper.make_graph(
                                          [helper.make_node("Neg", ["x"], [f"e{i}"])], "e", [],
                                          [tensor(f"e{i}", [4])]))],
                    "g", [], [tensor(f"t{i + 1}", [4])])
            made = model([*inner.node, helper.make_node("Identity", [f"t{depth}"], ["y"])],
                         [tensor("x", [4]), tensor("c", [], TensorProto.BOOL)], [tensor("y", [4])])
            with self.subTest(depth):
                self.both(made, where=depth)

    def test_calls_in_calls(self):
        for depth, twice in ((90, False), (2000, False), (60, True)):
            opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
            call = helper.make_node
            functions = [helper.make_function("own", f"F{i}", ["a"], ["b"], (
                [call(f"F{i + 1}", ["a"], ["t"], domain="own"), call(f"F{i + 1}", ["t"], ["b"], domain="own")]
                if twice else [call(f"F{i + 1}", ["a"], ["b"], domain="own")]), opsets) for i in range(depth)]
            functions.append(helper.make_function("own", f"F{depth}", ["a"], ["b"],
                                                  [call("Relu", ["a"], ["b"])], opsets))
            with self.subTest(depth=depth, twice=twice):
                self.both(model([call("F0", ["x"], ["y"], domain="own")], [tensor("x", [4])], [tensor("y", [4])],
                                functions=functions, domains=["own"]))


if __name__ == "__main__":
    unittest.main()
