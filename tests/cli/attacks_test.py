"""Known attacks on loaders of models (docs/known_attacks.md), and models that ask for too much: each ends in a
result or in one clear error, in bounded time and memory, and reads and writes no file that is not its own."""

import ctypes
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time
import unittest

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from support import ANEMONE, SANITIZED, CliTest, anemone, environment, model, relu, tensor

SECRET = b"SECRET42" * 2  # the bytes of four floats
MARKER = "*/_ORT_MEM_ADDR_/*"  # ONNX Runtime's own, for tensors in its memory
MOST_BYTES = 4 << 30
# Exchanges two names as fast as it can.
SWAP = """
import ctypes, os, sys
call, names = ctypes.CDLL(None).renameat2, [os.fsencode(name) for name in sys.argv[1:]]
while True: call(-100, names[0], -100, names[1], 2)
"""


def external(made, location, offset=None, length=None):
    """Makes the tensor one of four floats of the file `location`."""
    made.data_type, made.data_location = TensorProto.FLOAT, TensorProto.EXTERNAL
    made.ClearField("raw_data")
    made.dims[:] = [4]
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            made.external_data.add(key=key, value=str(value))
    return made


def sparse(location):
    made = onnx.SparseTensorProto(dims=[4])
    external(made.values, location)
    made.values.name = "w"
    made.indices.CopyFrom(helper.make_tensor("i", TensorProto.INT64, [4], [0, 1, 2, 3]))
    return made


def add_w(*nodes):
    """y = x + w, in fp32, which stays on the CPU with --policy cpu."""
    return model([*nodes, helper.make_node("Add", ["x", "w"], ["y"])], [tensor("x", [4])], [tensor("y", [4])])


def readers(location):
    """Models that read four floats of another file in each way that there is."""
    dense = add_w()
    external(dense.graph.initializer.add(name="w"), location)
    scattered = add_w()
    scattered.graph.sparse_initializer.append(sparse(location))
    constant = add_w(helper.make_node("Constant", [], ["w"], value=external(TensorProto(name="w"), location)))
    of_sparse = add_w(helper.make_node("Constant", [], ["w"], sparse_value=sparse(location)))
    then, other = (helper.make_graph(
        [helper.make_node("Add", ["x", name], [out])], name, [], [tensor(out, [4])],
        [external(TensorProto(name=name), location)]) for name, out in (("a", "b"), ("c", "d")))
    body = model([helper.make_node("If", ["k"], ["y"], then_branch=then, else_branch=other)],
                 [tensor("x", [4]), tensor("k", [], TensorProto.BOOL)], [tensor("y", [4])])
    return {"initializer": dense, "sparse initializer": scattered, "Constant": constant,
            "sparse Constant": of_sparse, "body": body}


def uncalled(location):
    """A model with a function that nobody calls, and that reads another file."""
    node = helper.make_node("Constant", [], ["b"], value=external(TensorProto(name="w"), location))
    function = helper.make_function("own", "F", ["a"], ["b"], [node], [helper.make_opsetid("", 21)])
    return model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [4])], [tensor("y", [4])],
                 functions=[function], domains=["own"])


def of_text(text, opset=21, more=""):
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}{more}]> g {text}')


def bounded(*words, seconds=60, most_bytes=MOST_BYTES):
    """Runs the command with limits of time and of address space."""
    def limit():
        if not SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run([str(ANEMONE), *map(str, words)], capture_output=True, text=True, errors="replace",
                          timeout=seconds * (10 if SANITIZED else 1), env=environment(), preexec_fn=limit)


class AttackTest(CliTest):
    def answered(self, done, where=""):
        """A result, or one line that says what is wrong."""
        if SANITIZED and "AddressSanitizer: allocator is out of memory" in done.stderr:
            return  # its operator new ends the process; the release build throws std::bad_alloc
        self.assertIn(done.returncode, (0, 1, 2), f"{where} {done.returncode}: {done.stderr[-500:]}")
        if done.returncode:
            self.expect_error(done, code=done.returncode)

    def both(self, made, *words, where=""):
        """Checks and runs the model. Not with --policy cpu, which gives the model to ONNX Runtime unread."""
        path = self.write(made)
        for command in ("run",) if SANITIZED else ("check", "run"):  # `run` checks too
            self.answered(bounded(command, path, *words), where)


class OtherFiles(AttackTest):
    def setUp(self):
        super().setUp()
        (self.folder / "secret").write_bytes(SECRET)
        self.inner = self.folder / "inner"
        self.inner.mkdir()

    def places(self):
        """Names of the secret in a model of the folder `inner`."""
        os.symlink("../secret", self.inner / "link")
        os.symlink("..", self.inner / "around")
        os.link(self.folder / "secret", self.inner / "hard")
        return ["../secret", "x/../../secret", str(self.folder / "secret"), "link", "around/secret", "hard",
                MARKER, "file://" + str(self.folder / "secret"), "link\0.bin"]

    def outputs(self, path, *words):
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        done = anemone("run", path, "--output-dir", self.folder / "out", *words)
        made = b"".join(file.read_bytes() for file in sorted((self.folder / "out").glob("*.npy")))
        return done, made

    def test_no_tensor_reads_another_file(self):
        numpy.save(self.folder / "x.npy", numpy.zeros(4, numpy.float32))
        numpy.save(self.folder / "k.npy", numpy.bool_(True))
        for location in self.places():
            for kind, made in readers(location).items():
                path = self.write(made, "inner/model.onnx")
                given = [f"{name}={self.folder / name}.npy" for name in ("x", "k")
                         if name in {port.name for port in made.graph.input}]
                given = [word for one in given for word in ("--input", one)]
                for words in ([], ["--policy", "cpu"], ["--compare", "--policy", "cpu"]):
                    with self.subTest(location=location, kind=kind, words=words):
                        done, bytes_of_outputs = self.outputs(path, *given, *words)
                        self.expect_error(done)
                        self.assertNotIn(SECRET, bytes_of_outputs)

    def test_a_model_in_its_folder_is_read_in_every_way(self):
        """Else the test above would show nothing."""
        (self.inner / "w").write_bytes(numpy.ones(4, numpy.float32).tobytes())
        for kind, made in readers("w").items():
            with self.subTest(kind):
                path = self.write(made, "inner/model.onnx")
                self.assertEqual(0, anemone("check", path).returncode)

    def test_unknown_keys_of_external_data_are_nothing(self):
        (self.inner / "w").write_bytes(numpy.ones(4, numpy.float32).tobytes())
        made = readers("w")["initializer"]
        for key in ("__class__", "__dict__", "basepath", "tensor"):
            made.graph.initializer[0].external_data.add(key=key, value=str(2**62))
        self.assertEqual(0, anemone("check", self.write(made, "inner/model.onnx")).returncode)

    def test_a_device_or_pipe_is_no_data(self):
        os.mkfifo(self.inner / "pipe")
        for location in ("pipe", "."):
            for kind, made in readers(location).items():
                path = self.write(made, "inner/model.onnx")
                for words in ([], ["--policy", "cpu"]):
                    with self.subTest(location=location, kind=kind):
                        self.expect_error(bounded("run", path, *words))

    def test_an_output_that_is_a_pipe_without_a_reader_is_an_error(self):
        """Opening it would wait for ever."""
        path = self.write(relu())
        pipe = self.folder / "y.npy"
        os.mkfifo(pipe)
        for words in (["run", path, "--output-dir", self.folder], ["run", path, "--profile", pipe],
                      ["report", path, "-o", pipe]):
            with self.subTest(words[0]):
                self.expect_error(anemone(*words, timeout=20), "y.npy': is a pipe that nobody reads")
                self.assertTrue(pipe.is_fifo())

    def test_an_output_may_be_a_pipe_with_a_reader(self):
        pipe = self.folder / "page"
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        time.sleep(0.1)
        while anemone("report", self.write(relu()), "-o", pipe).returncode != 0:
            self.assertIsNone(reader.poll())  # it has not opened the pipe yet
        self.assertTrue(reader.communicate()[0].startswith(b"<!doctype html>"))

    @unittest.skipUnless(hasattr(ctypes.CDLL(None), "renameat2"), "exchanges names by a call of Linux")
    def test_a_file_that_is_replaced_by_a_link_while_it_is_opened(self):
        path = self.write(readers("w")["initializer"], "inner/model.onnx")
        (self.inner / "w").write_bytes(numpy.ones(4, numpy.float32).tobytes())
        (self.inner / "link").symlink_to(self.folder / "secret")
        (self.folder / "secret").write_bytes(SECRET)
        swapping = subprocess.Popen([sys.executable, "-c", SWAP, self.inner / "w", self.inner / "link"])
        try:
            for words in ([], ["--policy", "cpu"], ["--compare"]) * (4 if SANITIZED else 12):
                done, bytes_of_outputs = self.outputs(path, "--seed", "1", *words)
                self.assertNotIn(SECRET, bytes_of_outputs)
                self.assertIn(done.returncode, (0, 1), done.stderr)
        finally:
            swapping.kill()
            swapping.wait()

    def test_compile_copies_only_what_a_model_may_name(self):
        """Also of functions that nobody calls, which an import does not look at."""
        for location in self.places()[:6]:
            with self.subTest(location):
                path = self.write(uncalled(location), "inner/model.onnx")
                before = {file: file.read_bytes() for file in self.folder.rglob("*") if file.is_file()}
                out = self.folder / "deep" / "er" / "net.compiled"
                out.parent.mkdir(parents=True, exist_ok=True)
                self.answered(anemone("compile", path, "--target", "m1", "-o", out))
                made = [file for file in self.folder.rglob("*") if file.is_file() and file not in before]
                for file in made:
                    self.assertTrue(file.is_relative_to(out), file)
                    self.assertNotIn(SECRET, file.read_bytes())
                for file, content in before.items():
                    self.assertEqual(content, file.read_bytes())
                shutil.rmtree(out.parent.parent)


class Files(AttackTest):
    def test_devices_are_no_models(self):
        for path in ("/dev/zero", "/dev/urandom", "/dev/stdin", "/proc/self/mem"):
            with self.subTest(path):
                self.expect_error(bounded("check", path))

    def test_models_of_onnx_runtimes_own_format(self):
        """FlatBuffers, which ONNX Runtime would read by itself: tables whose offsets lead anywhere."""
        for content in (b"\x18\0\0\0ORTM" + b"\xff" * 64, b"\xff\xff\xff\x7fORTM" + bytes(64),
                        b"\x08\0\0\0ORTM" + bytes(range(256))):
            for name in ("model.ort", "model.onnx"):
                path = self.write(content, name)
                for words in (["check"], ["run"], ["run", "--policy", "cpu"], ["compile", "-o", self.folder / "o"]):
                    with self.subTest(name=name, words=words):
                        self.expect_error(bounded(words[0], path, *words[1:]))

    def test_groups_nested_in_unknown_fields(self):
        """Protobuf's parsers recursed into them without a bound."""
        for depth in (150, 100_000):
            nested = b"\xfb\x07" * depth + b"\xfc\x07" * depth  # field 127
            path = self.write(relu().SerializeToString() + nested)
            self.answered(bounded("check", path))
            self.answered(bounded("run", path, "--policy", "cpu"))

    def test_arrays_that_are_pickles(self):
        numpy.save(self.folder / "x.npy", numpy.array([print], dtype=object), allow_pickle=True)
        self.expect_error(bounded("run", self.write(relu()), "--input", f"x={self.folder / 'x.npy'}"))


    def test_a_file_that_is_cut_off_while_it_is_read(self):
        made = add_w()
        external(made.graph.initializer.add(name="w"), "large.bin", 0, 16)
        path = self.write(made)
        large = self.folder / "large.bin"
        for words in (["compile", path, "-o", self.folder / "made"], ["compile", path, "-o", self.folder / "made", "--json"]):
            with open(large, "wb") as file:
                file.truncate(64 << 30)  # takes no space, and seconds to read
            process = subprocess.Popen([str(ANEMONE), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, env=environment())
            while process.poll() is None and "large.bin" not in pathlib.Path(f"/proc/{process.pid}/maps").read_text():
                time.sleep(0.01)
            os.truncate(large, 1 << 20)
            said, error = process.communicate(timeout=60)
            self.assertEqual(1, process.returncode, error)
            self.assertRegex(error, "^anemone: error: a file became shorter, or could not be read, while it was used")
            if "--json" in words:
                self.assertIn("a file became shorter", json.loads(said)["error"])
            self.assertEqual([], self.temporaries())
            self.assertFalse((self.folder / "made").exists())


class KnownModels(AttackTest):
    """Models that crashed ONNX's shape inference, its version converter, ONNX Runtime or TensorFlow Lite."""

    def test_shape_inference(self):
        shapes = {
            "Conv, rank of the weight": "(float[7,6,1,5] a, float b, float[7,2,3,2,1] c) => (float y) "
                                        "{ y = Conv<auto_pad = \"NOTSET\", group = 1>(a, b, c) }",
            "Conv, short dilations": "(float[1,1,4,4] a, float[1,1,2,2,2] w) => (float y) { y = Conv(a, w) }",
            "Gemm": "(double[2,1] a, double b, double[2] c) => (double y) "
                    "{ y = Gemm<alpha = 1.0, beta = -693.752, transB = 823>(a, b, c) }",
            "STFT": "(float16[3] a, int32[2] b, float16[7,8,8,8] c, int32[8,1,7,2] d) => (float16 y) "
                    "{ y = STFT(a, b, c, d) }",
            "Einsum of a scalar": "(float a, float[2,3] b) => (float y) { y = Einsum<equation = \"ij,jk\">(a, b) }",
            "Einsum, ellipses": "(float a, float[2,3] b) => (float y) "
                                "{ y = Einsum<equation = \"...,...->...\">(a, b) }",
            "Einsum, a dot": "(float[2,3] b) => (float y) { y = Einsum<equation = \"i.j->ij\">(b) }",
            "Split, more outputs": "(float[4] x) => (float y) { y = Split<num_outputs = 1000000>(x) }",
            "Split, negative": "(float[4] x) => (float y) { y = Split<num_outputs = -1>(x) }",
            "SplitToSequence of 0": "(float[4] x) => (float[1] y) { s = Constant<value_int = 0>() "
                                    "q = SplitToSequence(x, s) i = Constant<value_int = 0>() "
                                    "y = SequenceAt(q, i) }",
            "a rank of 10^9": "(float[4] x, int64[1000000000] s) => (float y) { y = Reshape(x, s) }",
            "Col2Im": "(float[1,5,5] x, int64[1000000000] s, int64[2] b) => (float y) { y = Col2Im(x, s, b) }",
            "SpaceToDepth of 0": "(float[1,1,4,4] x) => (float y) { y = SpaceToDepth<blocksize = 0>(x) }",
            "DepthToSpace of 0": "(float[1,4,4,4] x) => (float y) { y = DepthToSpace<blocksize = 0>(x) }",
            "a weight without channels": "(float[1,0,4,4] x, float[1,0,2,2] w) => (float y) { y = Conv(x, w) }",
            "pads that overflow": "(float[1,1,4,4] x) => (float y) { y = MaxPool<kernel_shape = [2,2], "
                                  "pads = [9223372036854775807,0,9223372036854775807,0]>(x) }",
            "strides of the lowest number": "(float[1,1,4,4] x) => (float y) { y = MaxPool<kernel_shape = [2,2], "
                                            "strides = [-9223372036854775808, 1]>(x) }",
            "a group of 0": "(float[1,1,4,4] x, float[1,1,2,2] w) => (float y) { y = Conv<group = 0>(x, w) }",
            "perm": "(float[2,3] x) => (float y) { y = Transpose<perm = [0, 9223372036854775807]>(x) }",
            "Concat, axis": "(float[2,3] x) => (float y) { y = Concat<axis = -9223372036854775808>(x, x) }",
            "Flatten, axis": "(float[2,3] x) => (float y) { y = Flatten<axis = 9223372036854775807>(x) }",
        }
        for opset in (21, 17, 13):
            for what, text in shapes.items():
                with self.subTest(what=what, opset=opset):
                    self.both(of_text(text, opset), where=what)

    def test_nodes_without_outputs(self):
        node = helper.make_node
        for made in (node("Split", ["x"], []), node("Constant", [], [], value_int=1), node("Relu", ["x"], []),
                     node("Reshape", ["x", "x"], []), node("LSTM", ["x"], []), node("Captured", ["x"], [])):
            for opset in (8, 13, 21):
                with self.subTest(node=made.op_type, opset=opset):
                    self.both(model([made, node("Relu", ["x"], ["y"])], [tensor("x", [4])], [tensor("y", [4])],
                                    opset=opset))

    def test_a_custom_node_without_outputs_in_an_old_model(self):
        inner = helper.make_graph([helper.make_node("Captured", ["x"], [], domain="own"),
                                   helper.make_node("Identity", ["x"], ["b"])], "t", [], [tensor("b", [4])])
        self.both(model([helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)],
                        [tensor("x", [4]), tensor("c", [], TensorProto.BOOL)], [tensor("y", [4])], opset=9,
                        domains=["own"]))

    def test_operators_of_trees_and_vectors(self):
        """Lists of attributes that do not fit each other."""
        node = helper.make_node
        for made in (
                node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml"),
                node("SVMClassifier", ["x"], ["y", "z"], domain="ai.onnx.ml", classlabels_ints=[0, 1],
                     vectors_per_class=[1000, 1000], coefficients=[1.0], support_vectors=[1.0], rho=[1.0]),
                node("SVMRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_supports=10**6, coefficients=[1.0]),
                node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", nodes_treeids=[0],
                     nodes_nodeids=[0], nodes_featureids=[10**9], nodes_modes=["BRANCH_LEQ"],
                     nodes_truenodeids=[7], nodes_falsenodeids=[-1], nodes_values=[0.5], n_targets=1),
                node("LinearClassifier", ["x"], ["y", "z"], domain="ai.onnx.ml", coefficients=[1.0],
                     classlabels_ints=[0, 1, 2])):
            with self.subTest(made.op_type):
                outputs = [helper.make_empty_tensor_value_info(name) for name in made.output]
                self.both(model([made], [tensor("x", [1, 4])], outputs, domains=["ai.onnx.ml"]))

    def test_indices_that_lead_anywhere(self):
        for what, nodes in {
                "Gather": "i = Constant<value_ints = [-9223372036854775808]>() y = Gather(x, i)",
                "Gather beyond": "i = Constant<value_ints = [1000000]>() y = Gather(x, i)",
                "GatherND": "i = Constant<value_ints = [4]>() y = GatherND(x, i)",
                "ScatterElements": "i = Constant<value_ints = [-5, 4]>() u = Constant<value_floats = [1.0, 2.0]>() "
                                   "y = ScatterElements(x, i, u)",
                "ScatterND": "i = Constant<value = int64[1,1] {99}>() u = Constant<value_floats = [1.0]>() "
                             "y = ScatterND(x, i, u)",
                "OneHot": "i = Constant<value_ints = [-9]>() d = Constant<value_int = 1000000000000>() "
                          "v = Constant<value_floats = [0.0, 1.0]>() y = OneHot(i, d, v)",
                "Slice": "a = Constant<value_ints = [-9223372036854775808]>() "
                         "b = Constant<value_ints = [9223372036854775807]>() "
                         "c = Constant<value_ints = [-9223372036854775808]>() z = Constant<value_ints = [0]>() "
                         "y = Slice(x, b, a, z, c)"}.items():
            with self.subTest(what):
                self.both(of_text(f"(float[4] x) => (float y) {{ {nodes} }}"))

    def test_integers_that_trap(self):
        for op in ("Div", "Mod"):
            for a, b in ((1, 0), (-2**63, -1)):
                self.both(of_text(f"(float[1] x) => (int64[1] y) {{ a = Constant<value_ints = [{a}]>() "
                                  f"b = Constant<value_ints = [{b}]>() y = {op}(a, b) }}"), where=op)

    def test_long_and_strange_names_in_messages(self):
        for name in ("n" * 100_000, "\x1b]0;owned\x07\n\r\x00'\"", "%s%n%s%n", "\u202e../../x", "a" * 2047):
            made = model([helper.make_node("Conv", ["x", name], ["y"], name=name)], [tensor("x", [1, 1, 4, 4])],
                         [tensor("y", None)],
                         [numpy_helper.from_array(numpy.ones((1, 9, 3, 3), numpy.float32), name)])
            done = bounded("check", self.write(made))
            self.answered(done)
            for byte in "\x1b\x07\u202e":
                self.assertNotIn(byte, done.stderr + done.stdout)
            self.assertLess(len(done.stderr), 20_000)

    def test_names_that_are_not_utf8(self):
        """Every text and document is UTF-8, and no byte that is none reaches a terminal: 9b begins a sequence there."""
        bad = b"\xff\x9b\xc3(\xed\xa0\x80z"  # as long as QQQQQQQQ
        made = model([helper.make_node("Relu", ["xQQQQQQQQ"], ["mQQQQQQQQ"], name="nQQQQQQQQ", doc_string="QQQQQQQQ"),
                      helper.make_node("oQQQQQQQQ", ["mQQQQQQQQ"], ["yQQQQQQQQ"], domain="dQQQQQQQQ")],
                     [tensor("xQQQQQQQQ", ["QQQQQQQQ", 4])], [tensor("yQQQQQQQQ", [1, 4])], domains=["dQQQQQQQQ"])
        made.graph.name = made.producer_name = made.doc_string = "QQQQQQQQ"
        made.metadata_props.add(key="QQQQQQQQ", value="QQQQQQQQ")
        unknown = self.folder / "unknown.onnx"
        unknown.write_bytes(made.SerializeToString().replace(b"Q" * 8, bad))
        made.graph.node[1].op_type, made.graph.node[1].domain = "Sin", ""
        path = self.folder / "model.onnx"
        path.write_bytes(made.SerializeToString().replace(b"Q" * 8, bad))
        out = self.folder / "out"
        documents = 0
        for words in (["check", path, "-v"], ["check", path, "--json"], ["run", path, "--output-dir", out],
                      ["run", path, "--json"], ["run", path, "--policy", "cpu"], ["bench", path, "--repeat", "2"],
                      ["convert", path, "-o", out / "a.ane"], ["convert", path, "--to", "mlpackage", "-o", out / "a.mlpackage"],
                      ["report", path, "-o", out / "a.html"], ["compile", path, "-o", out / "compiled"],
                      ["diff", path, unknown], ["diff", path, unknown, "--json"], ["check", unknown, "--json"],
                      ["run", unknown], ["run", unknown, "--json"], ["zoo", self.folder, "-o", out / "zoo"]):
            with self.subTest(words=words):
                bound = [] if words[0] == "zoo" else ["--shape", b"x" + bad + b"=1x4"]
                done = subprocess.run([str(ANEMONE), *map(str, words), *bound], capture_output=True,
                                      env=environment(), timeout=60)
                refused = words[0] == "compile" or words[:2] == ["run", unknown]
                wanted = 1 if refused else 3 if words[0] == "diff" else 0
                self.assertEqual(wanted, done.returncode, done.stderr)
                self.assertNotIn(b"json.exception", done.stderr)
                self.assertNotIn(b"protobuf", done.stderr)
                for text in (done.stdout, done.stderr):
                    self.assertEqual(text, text.decode(errors="replace").encode())
                if words[-1] == "--json":
                    json.loads(done.stdout)
                    documents += 1
        for file in out.rglob("*"):
            if file.suffix in (".json", ".jsonl", ".html", ".mil", ".js"):
                file.read_bytes().decode()
                documents += 1
        self.assertGreater(documents, 8)

    def test_sparse_tensors_with_bad_indices(self):
        for indices, dims in (([-1], [1]), ([4], [1]), ([2**62], [1]), ([0, 9], [1, 2]), ([0], [1, 1, 1])):
            made = add_w()
            one = made.graph.sparse_initializer.add(dims=[4])
            one.values.CopyFrom(helper.make_tensor("w", TensorProto.FLOAT, [dims[0]], [1.0] * dims[0]))
            one.indices.CopyFrom(helper.make_tensor("i", TensorProto.INT64, dims, indices))
            with self.subTest(indices):
                for words in (["check"], ["run"], ["run", "--policy", "cpu"]):
                    self.expect_error(bounded(words[0], self.write(made), *words[1:]))


if __name__ == "__main__":
    unittest.main()
