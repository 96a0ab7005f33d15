"""--limit NAME=VALUE: each limit refuses a model with an error that names it, and can be raised (docs/options.md)."""

import re
import resource
import subprocess
import sys
import unittest

import numpy
import onnx.parser
from onnx import helper, numpy_helper

from attacks_test import of_text
from support import ANEMONE, ROOT, SANITIZED, CliTest, anemone, environment, model, relu, tensor

sys.path.insert(0, str(ROOT / "tests" / "python"))
import training_models  # noqa: E402

CALLS = ('<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[4] x) => (float[4] y) { y = own.F(x) } '
         '<domain: "own", opset_import: ["" : 21]> F(a) => (b) { c = Relu(a) d = Neg(c) b = Abs(d) }')
BODIES = ("(float[4] x, bool c) => (float[4] y) { y = If(c) <then_branch = t () => (float[4] a) { a = If(c) <"
          "then_branch = u () => (float[4] p) { p = Relu(x) }, else_branch = v () => (float[4] q) { q = Neg(x) }> }, "
          "else_branch = e () => (float[4] b) { b = Abs(x) }> }")
LOOP = ("(float[4] x) => (float[4] y) { n = Constant<value_int = 8>() t = Constant<value = bool {1}>() "
        "y = Loop(n, t, x) <body = b (int64 i, bool k, float[4] v) => (bool o, float[4] w) "
        "{ o = Identity(k) w = Relu(v) }> }")


def sparse():
    made = model([helper.make_node("Add", ["x", "w"], ["y"])], [tensor("x", [64])], [tensor("y", [64])])
    entry = made.graph.sparse_initializer.add(dims=[64])
    entry.values.CopyFrom(numpy_helper.from_array(numpy.ones(1, numpy.float32), "w"))
    entry.indices.CopyFrom(numpy_helper.from_array(numpy.zeros(1, numpy.int64), "i"))
    return made


def kernel():
    """A convolution whose kernel is divided, because no target has one of this size."""
    w = numpy_helper.from_array(numpy.ones((4, 4, 1, 20), numpy.float32), "w")
    return model([helper.make_node("Conv", ["x", "w"], ["y"])], [tensor("x", [1, 4, 32, 32])],
                 [tensor("y", [1, 4, 32, 13])], [w])


def triangle():
    return model([helper.make_node("Trilu", ["x"], ["y"])], [tensor("x", [8, 8])], [tensor("y", [8, 8])])


def moved():
    """A Slice whose numbers are a list that a lowering reads."""
    ints = [numpy_helper.from_array(numpy.array(of, numpy.int64), name)
            for name, of in (("from", [0, 1]), ("to", [4, 3]))]
    return model([helper.make_node("Slice", ["x", "from", "to"], ["y"])], [tensor("x", [4, 8])],
                 [tensor("y", [4, 2])], ints)


def folded():
    return of_text("(float[1,4096] x) => (float[1,4096] y) { r = Constant<value_ints = [1, 1024]>() "
                   "s = Constant<value = float[1,4] {1, 2, 3, 4}>() t = Tile(s, r) y = Add(x, t) }")


def texts():
    """A text that is repeated."""
    return of_text('(float[1] x) => (float[1] y, string[1000] t) { s = Constant<value_string = "' + "a" * 1000 + '">() '
                   "n = Constant<value_ints = [1000]>() r = Expand(s, n) t = Identity(r) y = Relu(x) }")


def doubled(op, kind):
    """A constant that each node puts together with itself."""
    first = 'Constant<value_string = "aaaaaaaaaaaaaaaa">()' if kind == "string" else "Constant<value_floats = [1.0]>()"
    nodes = " ".join(f"v{i + 1} = {op}(v{i}, v{i})" for i in range(12))
    return of_text(f"(float[1] x) => (float[1] y, {kind} z) {{ v0 = {first} {nodes} z = Identity(v12) y = Relu(x) }}")


def indices():
    """The indices of all elements of a constant that is stored as one."""
    return of_text("(float[1] x) => (float[1] y) { s = Constant<value_ints = [32, 32, 32]>() "
                   "f = ConstantOfShape<value = bool[1] {1}>(s) n = NonZero(f) r = ReduceSum(n) q = Cast<to = 1>(r) "
                   "y = Add(x, q) }")


def named(bytes_of_name):
    return relu(name="x" * bytes_of_name)


# Refusals: name: the model, a value that is too small, and what the error says.
REFUSED = {
    "model-bytes": (relu(), "64", "more than 64 B; store its tensors as these, or"),
    "string-bytes": (named(100), "99", "a name, text or list of numbers has more than 99 B"),
    "nesting": (of_text(BODIES), "5", "nested too deep, more than 5 messages; flatten the model, or"),
    "call-nesting": (of_text(BODIES), "1", "bodies and calls are nested more than 1 levels; flatten the model, or"),
    "nodes": (of_text(BODIES), "4", "more than 4 nodes"),
    "function-nodes": (CALLS, "3", "expand to more than 3 nodes; export the model without functions, or"),
    "name-bytes": (named(100), "100", "expand to more than 100 B"),
    "tensor-bytes": (relu(), "15", "float32 1x4 has more than 15 B"),
    "dense-bytes": (sparse(), "255", "in dense form more than 255 B; store it dense, or"),
}
# What is not an error: the node stays as it is, or on the CPU; a warning or its reason names the limit.
KEPT = {
    "folded-bytes": (folded(), "1K", "[not-folded]", "would grow by more than 1.0 KiB"),
    "unrolled-nodes": (of_text(LOOP), "8", "[not-unrolled]", "would become more than 8 nodes"),
    "matrix-elements": (triangle(), "63", "Trilu cpu", "Trilu of matrices of more than 63 elements"),
    "list-elements": (moved(), "1", "Slice cpu", "parameter input with more than 1 elements"),
    # The target's own reason is about the kernel as one unit.
    "kernel-elements": (kernel(), "8", "Conv cpu", "must be divided and whose kernel has more than 8 elements"),
}


# Constants that are larger than they look.
GROWING = {"texts": texts(), "doubled texts": doubled("StringConcat", "string"),
           "doubled": doubled("Concat<axis = 0>", "float"), "indices": indices()}


class ModelLimits(CliTest):
    def file(self, what):
        if isinstance(what, str):
            what = onnx.parser.parse_model(what)
        return self.write(what)

    def test_each_refuses_with_its_name_and_can_be_raised(self):
        for name, (made, value, said) in REFUSED.items():
            with self.subTest(name):
                path = self.file(made)
                self.expect_error(anemone("check", path, "--limit", f"{name}={value}"), said,
                                  f"raise the limit (--limit {name}=N)")
                done = anemone("check", path, "--limit", f"{name}={int(value) * 4}")
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertEqual(anemone("check", path).stdout, done.stdout)

    def test_beyond_others_nodes_stay_as_they_are(self):
        for name, (made, value, *said) in KEPT.items():
            with self.subTest(name):
                path = self.file(made)
                words = ["check", path, "-v", "--limit", f"{name}={value}"]
                done = anemone(*words)
                self.assertEqual(0, done.returncode, done.stderr)
                text, whole = " ".join(done.stdout.split()), " ".join(anemone("check", path, "-v").stdout.split())
                for part in (*said, f"--limit {name}=N raises the limit"):
                    self.assertIn(part, text)
                    self.assertNotIn(part, whole)
                self.assertIn(f"--limit {name}=N raises the limit", anemone(*words, "--json").stdout)

    def test_every_limit_has_a_test_and_is_in_the_help(self):
        done = anemone("check", self.write(relu()), "--limit", "none=1")
        self.expect_error(done, "there is no limit 'none'", code=2)
        names = re.search(r"with one of ([a-z, -]+)", done.stderr).group(1).split(", ")
        self.assertEqual({*REFUSED, *KEPT}, set(names))
        text = " ".join(anemone("help", "check").stdout.split())
        page = (ROOT / "docs" / "options.md").read_text()
        for name in names:
            self.assertRegex(text, rf"\b{name}\b")
            self.assertIn(f"| `{name}` |", page)

    def test_wrong_values_are_wrong_usage(self):
        path = self.write(relu())
        for value in ("", "nodes", "nodes=", "nodes=0", "nodes=-1", "nodes=many", "nodes=1e99", "nodes=1.5",
                      "tensor-bytes=0", "tensor-bytes=x", "model-bytes=3G", "nodes=1,nodes=2"):
            with self.subTest(value):
                self.expect_error(anemone("check", path, "--limit", value), "--limit", code=2)
        self.expect_error(anemone("check", path, "--limit", "nodes=1", "--limit", "nodes=2"), "given twice", code=2)

    def test_every_command_that_reads_a_model_has_it(self):
        path = self.write(relu())
        layered = self.write(training_models.layered(), "layered.onnx")
        data = self.folder / "digits.npz"
        numpy.savez(data, **training_models.digits(64))
        out = self.folder / "out"
        for words in (["check", path], ["run", path], ["run", path, "--policy", "cpu"], ["bench", path, "-q"],
                      ["convert", path, "-o", out], ["convert", path, "--to", "mlpackage", "-o", f"{out}.mlpackage"],
                      ["compile", path, "-o", out], ["compile", path, "--compress", "int8", "-o", f"{out}.onnx"],
                      ["report", path, "-o", f"{out}.html"], ["diff", path, path],
                      ["train", layered, "--data", data, "--loss", "cross-entropy:logits:labels", "--steps", "1"],
                      ["generate", path, "--tokens", "1"]):
            with self.subTest(words[0]):
                self.expect_error(anemone(*words, "--limit", "tensor-bytes=8"), "--limit tensor-bytes=N")
                self.assertEqual([], self.temporaries())
        done = anemone("zoo", self.folder / "model.onnx", "-o", self.folder / "zoo", "-q", "--limit", "tensor-bytes=8")
        self.assertIn("--limit tensor-bytes=N", (self.folder / "zoo" / "results.jsonl").read_text(), done.stderr)

    def test_a_compiled_model_is_patched_with_the_limit_that_it_needs(self):
        calls = " ".join(f'<domain: "own", opset_import: ["" : 21, "own" : 1]> F{i}(a) => (b) '
                         f"{{ b = {f'own.F{i - 1}' if i else 'Relu'}(a) }}" for i in range(150))
        made = onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[4] x) => (float[4] y) '
                                       f"<float[4] w = {{1, 2, 3, 4}}> {{ z = Add(x, w) y = own.F149(z) }} {calls}")
        path, folder = self.write(made), self.folder / "made"
        numpy.savez(self.folder / "new.npz", w=numpy.full(4, 5, numpy.float32))
        patch = ["patch", folder, "--weights", self.folder / "new.npz"]
        raised = ["--limit", "call-nesting=200"]
        self.assertEqual(0, anemone("compile", path, "-o", folder, *raised).returncode)
        self.expect_error(anemone(*patch), "raise the limit (--limit call-nesting=N)")
        done = anemone(*patch, *raised)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(0, anemone("run", folder).returncode)
        self.expect_error(anemone(*patch, *raised, "--time-limit", "1e-9"), "time limit of")

    def test_a_compiled_folder_does_not_hide_a_limit(self):
        product = of_text("(float[1, 4] x) => (float[1, 4] y) <float[4, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, "
                          "4, 5, 6, 7}> { y = MatMul(x, w) }")
        for name, made, told in (("value", relu(), "float32 1x4"), ("tensor", product, "float32 4x4")):
            with self.subTest(name):
                path, folder = self.write(made), self.folder / name
                self.assertEqual(0, anemone("compile", path, "-o", folder).returncode)
                self.assertEqual(0, anemone("run", folder, "--limit", "tensor-bytes=64").returncode)
                limit = "15" if name == "value" else "63"
                self.expect_error(anemone("run", folder, "--limit", f"tensor-bytes={limit}"), told,
                                  "--limit tensor-bytes=N")

    def test_a_cache_does_not_hide_a_limit(self):
        path = self.write(relu())
        cache = {"ANEMONE_PROGRAM_CACHE": str(self.folder / "cache")}
        self.assertEqual(0, anemone("run", path, env=cache).returncode)
        self.expect_error(anemone("run", path, "--limit", "tensor-bytes=8", env=cache), "--limit tensor-bytes=N")

    def test_constants_that_are_larger_than_they_look_are_counted(self):
        for name, made in GROWING.items():
            with self.subTest(name):
                path = self.write(made)
                done = anemone("check", path, "-v", "--limit", "folded-bytes=1K")
                self.assertEqual(0, done.returncode, done.stderr)
                for part in ("[not-folded]", "would grow by more than 1.0 KiB"):
                    self.assertIn(part, " ".join(done.stdout.split()))
                self.assertNotIn("[not-folded]", anemone("check", path, "-v").stdout)

    def test_the_deepest_nesting(self):
        """At the largest values nothing overflows the stack."""
        inner = helper.make_graph([helper.make_node("Relu", ["x"], ["t0"])], "g", [], [tensor("t0", [4])])
        bytes_of = inner.SerializeToString()
        for depth in (190, 250):  # Python's protobuf writes no more than 30
            made = nested_ifs(bytes_of, depth)
            path = self.write(made)
            words = ["check", path, "--limit", "nesting=600,call-nesting=200"]
            done = anemone(*words)
            if depth < 200:
                self.assertEqual(0, done.returncode, done.stderr)
                for more in (["run", path, "--limit", "nesting=600,call-nesting=200"],
                             ["run", path, "--policy", "cpu", "--limit", "nesting=600,call-nesting=200"],
                             ["bench", "-q", path, "--limit", "nesting=600,call-nesting=200"]):
                    done = anemone(*more)
                    if done.returncode:  # ONNX Runtime may not read what is nested so deep
                        self.expect_error(done, "ONNX Runtime ")
                    self.assertNotIn("--limit nesting", done.stderr)
            else:
                self.expect_error(done, "nested")
            self.expect_error(anemone("check", path), "nested too deep, more than 200 messages")


    @unittest.skipIf(SANITIZED, "AddressSanitizer needs more stack")
    def test_a_small_stack(self):
        """A thread without the stack for it refuses what is nested deep; it does not overflow."""
        inner = helper.make_graph([helper.make_node("Relu", ["x"], ["t0"])], "g", [], [tensor("t0", [4])])
        raised = ["--limit", "nesting=600,call-nesting=200"]
        for depth, stack, fits in ((64, 512, False), (64, 2048, True), (190, 256, False), (190, 1024, False), (190, 8192, True), (5, 256, True)):
            path = self.write(nested_ifs(inner.SerializeToString(), depth))
            for words in (["check", path], ["run", path], ["run", path, "--policy", "cpu"], ["bench", "-q", path]):
                with self.subTest(depth=depth, stack=stack, words=words[0]):
                    done = subprocess.run([str(ANEMONE), *map(str, words), *raised], capture_output=True, text=True,
                                          env=environment(), preexec_fn=lambda kib=stack: resource.setrlimit(
                                              resource.RLIMIT_STACK, (kib << 10, kib << 10)))
                    if fits:
                        self.assertIn(done.returncode, (0, 1), done.stderr)
                        self.assertNotIn("of stack", done.stderr)
                    else:
                        self.expect_error(done, "nested", "of stack, but this thread has ", "ulimit -s")


def field(number, content):
    """A field of protobuf's wire format."""
    size, head = len(content), bytes([number << 3 | 2]) if number < 16 else bytes([number << 3 & 0x7F | 0x82, number >> 4])
    length = b""
    while True:
        length += bytes([size & 0x7F | (0x80 if size > 0x7F else 0)])
        size >>= 7
        if size == 0:
            return head + length + content


def nested_ifs(inner, depth):
    """A model whose If nodes are `depth` deep, in its bytes. `inner` gives t0."""
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["e"])], "e", [], [tensor("e", [4])]).SerializeToString()
    graph = inner
    for i in range(depth):
        node = helper.make_node("If", ["c"], [f"t{i + 1}"]).SerializeToString()
        for name, body in ((b"then_branch", graph), (b"else_branch", other)):
            # AttributeProto: name, g, type GRAPH.
            node += field(5, field(1, name) + field(6, body) + bytes([20 << 3 & 0x7F | 0x80, 1, 5]))
        out = tensor(f"t{i + 1}", [4]).SerializeToString()
        graph = field(1, node) + field(2, b"g") + field(12, out)
    top = model([], [tensor("x", [4]), tensor("c", [], 9)], [])
    inputs = b"".join(field(11, port.SerializeToString()) for port in top.graph.input)
    top.ClearField("graph")
    return top.SerializeToString() + field(7, graph + inputs)


if __name__ == "__main__":
    unittest.main()
