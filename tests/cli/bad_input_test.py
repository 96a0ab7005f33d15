"""Bad input: every command prints one clear error line and exits with 1, and never crashes or hangs."""

import json
import os
import pathlib
import struct
import subprocess
import unittest

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

from support import ANEMONE, CliTest, anemone, model, relu, tensor


def conv(kernel_shape=(4, 4, 3, 3), **attributes):
    weight = numpy_helper.from_array(numpy.ones(kernel_shape, numpy.float32), "w")
    return model([helper.make_node("Conv", ["x", "w"], ["y"], name="conv1", **attributes)],
                 [tensor("x", [1, 4, 8, 8])], [tensor("y", None)], [weight])


def external(location, offset=None, length=None, shape=(4,)):
    made = model([helper.make_node("Add", ["x", "w"], ["y"])], [tensor("x", shape)],
                 [tensor("y", shape)])
    weight = made.graph.initializer.add()
    weight.name, weight.data_type, weight.data_location = "w", TensorProto.FLOAT, 1
    weight.dims.extend(shape)
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            entry = weight.external_data.add()
            entry.key, entry.value = key, str(value)
    return made


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def nested(depth):
    """Nested bodies (graph.node.attribute.g), `depth` levels deep."""
    graph = field(2, b"g")
    for _ in range(depth):
        graph = field(1, field(5, field(1, b"body") + field(6, graph)))
    return varint(1 << 3) + varint(10) + field(7, graph) + field(8, varint(2 << 3) + varint(21))


def function(name, nodes):
    return helper.make_function("own", name, ["a"], ["b"], nodes,
                                [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)])


def calls(functions):
    return model([helper.make_node("F0", ["x"], ["y"], domain="own")], [tensor("x", [4])],
                 [tensor("y", [4])], functions=functions, domains=["own"])


class BadModels(CliTest):
    def refused(self, what, *pieces, command="check"):
        path = self.write(what)
        self.expect_error(anemone(command, path), str(path.name), *pieces)

    def refused_anywhere(self, what, *pieces):
        self.expect_error(anemone("run", self.write(what)), *pieces)

    def test_no_such_file(self):
        self.expect_error(anemone("check", self.folder / "no.onnx"), "no.onnx")

    def test_folder(self):
        self.expect_error(anemone("check", self.folder), "folder")

    def test_empty(self):
        self.refused(b"", "empty")

    def test_not_a_protobuf(self):
        self.refused(b"PK\x03\x04 this is a zip file" * 10)
        self.refused(b"hello, I am a text file\n" * 100)

    def test_truncated(self):
        whole = conv().SerializeToString()
        for length in range(1, len(whole), 37):
            path = self.write(whole[:length])
            done = anemone("check", path)
            if done.returncode != 0:  # a truncated file may be a smaller valid model
                self.expect_error(done)

    def test_nested_4000_deep(self):
        self.refused(nested(4000), "deep")

    def test_external_data(self):
        self.refused(external("weights.bin"), "weights.bin")
        (self.folder / "short.bin").write_bytes(b"1234")
        self.refused(external("short.bin"), "short.bin")
        self.refused(external("short.bin", offset=2**63 - 1, length=16), "short.bin")
        self.refused(external("short.bin", offset=-4), "'w'", "negative")
        self.refused(external("../outside.bin"), "outside.bin")
        self.refused(external("/etc/passwd"), "/etc/passwd")
        no_bytes = self.write(external("short.bin", length=0))
        for words in (["check"], ["run"], ["run", "--policy", "cpu"]):
            self.expect_error(anemone(*words, no_bytes), "'w'", "its length is 0 bytes", "need 16")

    def test_external_link_that_leaves_the_folder(self):
        inner = self.folder / "inner"
        inner.mkdir()
        (self.folder / "secret.bin").write_bytes(b"\0" * 16)
        os.symlink(self.folder / "secret.bin", inner / "w.bin")
        path = self.write(external("w.bin"), "inner/model.onnx")
        self.expect_error(anemone("check", path), "w.bin")

    def test_hugging_face_cache_layout_loads(self):
        blobs, snapshot = self.folder / "blobs", self.folder / "snapshots" / "abc"
        blobs.mkdir()
        snapshot.mkdir(parents=True)
        (blobs / "1111").write_bytes(external("model.onnx_data").SerializeToString())
        (blobs / "2222").write_bytes(numpy.ones(4, numpy.float32).tobytes())
        os.symlink("../../blobs/1111", snapshot / "model.onnx")
        os.symlink("../../blobs/2222", snapshot / "model.onnx_data")
        done = anemone("run", snapshot / "model.onnx", "--compare")
        self.assertEqual(0, done.returncode, done.stderr)

    def test_sizes_that_overflow_or_disagree(self):
        huge = relu()
        weight = huge.graph.initializer.add()
        weight.name, weight.data_type = "w", TensorProto.FLOAT
        weight.dims.extend([2**62, 2**62])
        self.refused(huge, "'w'")
        wrong = conv()
        wrong.graph.initializer[0].dims[0] = 5
        self.refused(wrong, "'w'")

    def test_unknown_domain_on_run_only(self):
        made = model([helper.make_node("Magic", ["x"], ["y"], domain="nobody.knows")],
                     [tensor("x", [4])], [tensor("y", [4])], domains=["nobody.knows"])
        path = self.write(made)
        self.assertEqual(0, anemone("check", path).returncode)
        self.expect_error(anemone("run", path), "nobody.knows")

    def test_opset_999(self):
        made = relu()
        made.opset_import[0].version = 999
        self.refused(made, "999")

    def test_functions_that_call_themselves(self):
        self.refused(calls([function("F0", [helper.make_node("F0", ["a"], ["b"], domain="own")])]),
                     "F0")

    def test_functions_that_double_at_each_of_30_levels(self):
        levels = [function(f"F{i}", [helper.make_node(f"F{i + 1}", ["a"], ["t"], domain="own"),
                                     helper.make_node(f"F{i + 1}", ["t"], ["b"], domain="own")])
                  for i in range(30)]
        levels.append(function("F30", [helper.make_node("Relu", ["a"], ["b"])]))
        self.refused(calls(levels))

    def test_cycle(self):
        self.refused(model([helper.make_node("Add", ["x", "b"], ["a"]),
                            helper.make_node("Relu", ["a"], ["b"])],
                           [tensor("x", [4])], [tensor("b", [4])]), "cycle")

    def test_undefined_input_and_duplicate_output(self):
        self.refused(model([helper.make_node("Add", ["x", "nowhere"], ["y"])], [tensor("x", [4])],
                           [tensor("y", [4])]), "'nowhere'")
        self.refused(model([helper.make_node("Relu", ["x"], ["y"]),
                            helper.make_node("Tanh", ["x"], ["y"])],
                           [tensor("x", [4])], [tensor("y", [4])]), "'y'")

    def test_zero_strides_and_group_mismatch(self):
        self.refused_anywhere(conv(strides=[0, 0]), "conv1")
        self.refused_anywhere(conv(group=3), "conv1")

    def test_a_node_without_a_name_is_named_by_what_it_makes(self):
        repeats = numpy_helper.from_array(numpy.array([2**45]), "repeats")
        self.refused_anywhere(model([helper.make_node("Tile", ["x", "repeats"], ["many"])],
                                    [tensor("x", [4])], [tensor("many", [None])], [repeats]),
                              "(Tile) that makes 'many'")

    def test_unbound_dimension_shows_the_option(self):
        self.expect_error(anemone("run", self.write(relu(("N", 4)))), "--dim 'N=1'")
        self.assertEqual(0, anemone("run", self.write(relu(("N", 4))), "--dim", "N=2").returncode)

    def test_a_declared_dimension_may_be_0(self):
        done = anemone("run", self.write(relu((0, 4))))
        self.assertEqual(0, done.returncode, done.stderr)

    def test_awkward_dimensions_are_bound_by_shape(self):
        for dims in (["?", "?"], [0, -1], ["a:b", "c d"]):
            path = self.write(relu(dims, name="in:put =1"))
#ONNX Runtime itself takes a declared 0 at its word, so it is no reference there.
            compare = [] if 0 in dims else ["--compare"]
            done = anemone("run", path, "--shape", "in:put =1=2x3", *compare)
            self.assertEqual(0, done.returncode, done.stderr)


class BadArrays(CliTest):
    def setUp(self):
        super().setUp()
        self.path = self.write(relu())

    def refused(self, name, content, *pieces):
        (self.folder / name).write_bytes(content)
        self.expect_error(anemone("run", self.path, "--input", f"x={self.folder / name}"), *pieces)

    def test_wrong_or_damaged_arrays(self):
        good = self.folder / "good.npy"
        numpy.save(good, numpy.ones((1, 4), numpy.float32))
        self.assertEqual(0, anemone("run", self.path, "--input", f"x={good}").returncode)
        self.expect_error(anemone("run", self.path, "--input", f"x={good}", "--input", f"x={good}"),
                          "'x'", "twice", code=2)
        content = good.read_bytes()
        self.refused("short.npy", content[:-3], "short.npy")
        self.refused("header.npy", content[:30], "header.npy")
        self.refused("noise.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", 60000) + b"x" * 50)
        self.refused("text.npy", b"hello", "text.npy")
        self.refused("text.pb", b"hello", "text.pb")
        self.refused("model.txt", content, ".npy or .pb")
        for shape, kind in (((1, 5), numpy.float32), ((1, 4), numpy.float64)):
            numpy.save(self.folder / "other.npy", numpy.ones(shape, kind))
            done = anemone("run", self.path, "--input", f"x={self.folder / 'other.npy'}")
            self.expect_error(done, "input 'x'")
        numpy.save(self.folder / "f.npy", numpy.asfortranarray(numpy.ones((2, 4), numpy.float32)))
        self.expect_error(anemone("run", self.path, "--input", f"x={self.folder / 'f.npy'}"),
                          "Fortran")
        self.expect_error(anemone("run", self.path, "--input", "x=nowhere.npy"), "nowhere.npy")
        self.expect_error(anemone("run", self.path, "--input", f"z={good}"), "no such input",
                          code=2)

    def test_arrays_that_are_no_files_or_endless(self):
        """None of them is read to its end. A pipe is read (run_test.py)."""
        for name in ("zero.npy", "zero.pb"):
            (self.folder / name).symlink_to("/dev/zero")
        with open(self.folder / "large.pb", "wb") as file:
            file.truncate(1 << 40)  # takes no space
        for name, said in (("zero.npy", "is a device"), ("zero.pb", "is a device"), ("large.pb", "more than 2 GiB")):
            done = anemone("run", self.path, "--input", f"x={self.folder / name}", timeout=20)
            self.expect_error(done, name, said)

    def test_values_that_are_no_tensors(self):
        floats = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
        sequence = helper.make_value_info("s", floats)
        one = helper.make_node("SequenceConstruct", ["x"], ["s"])
        length = helper.make_node("SequenceLength", ["s"], ["n"])
        n = helper.make_tensor_value_info("n", TensorProto.INT64, [])
        for made, told in ((model([length], [sequence], [n]), "input 's'"),
                           (model([one], [tensor("x", [2])], [sequence]), "output 's'")):
            path = self.write(made)
            for command in (("run",), ("bench", "-q")):
                self.expect_error(anemone(*command, path), told,
                                  "sequence(float32) is not a tensor; use ")

    def test_a_pb_array_is_read(self):
        proto = numpy_helper.from_array(numpy.full((1, 4), 3, numpy.float32))
        (self.folder / "x.pb").write_bytes(proto.SerializeToString())
        done = anemone("run", self.path, "--input", f"x={self.folder / 'x.pb'}", "--output-dir",
                       self.folder / "out")
        self.assertEqual(0, done.returncode, done.stderr)
        numpy.testing.assert_array_equal(numpy.load(self.folder / "out" / "y.npy"),
                                         numpy.full((1, 4), 3, numpy.float32))

    def test_output_folder_that_cannot_be_written(self):
        (self.folder / "file").write_bytes(b"")
        self.expect_error(anemone("run", self.path, "--output-dir", self.folder / "file" / "sub"),
                          "file")
        self.expect_error(anemone("run", self.path, "--profile", self.folder / "no" / "t.json"),
                          "t.json")

    def test_a_link_is_followed_and_a_device_stays(self):
        (self.folder / "real.json").write_text("old")
        (self.folder / "link.json").symlink_to("real.json")
        done = anemone("run", self.path, "--profile", self.folder / "link.json")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertTrue((self.folder / "link.json").is_symlink())
        self.assertIn("traceEvents", (self.folder / "real.json").read_text())
        self.expect_error(anemone("run", self.path, "--profile", "/dev/full"), "/dev/full")
        self.assertTrue(pathlib.Path("/dev/full").is_char_device())

    def test_outputs_whose_names_look_alike_are_both_written(self):
        made = model([helper.make_node("Relu", ["x"], ["a/b"]),
                      helper.make_node("Neg", ["x"], ["0_a_b"])], [tensor("x", [4])],
                     [tensor("a/b", [4]), tensor("0_a_b", [4])])
        done = anemone("run", self.write(made), "--output-dir", self.folder / "out")
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(2, len(list((self.folder / "out").iterdir())))

    def test_standard_output_that_is_full(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([str(ANEMONE), "check", str(self.path), "--json"], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(1, done.returncode)
        self.assertIn("standard output", done.stderr)

    def test_more_memory_than_there_is(self):
        huge = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [1 << 20, 1 << 20])],
                     [tensor("y", [1 << 20, 1 << 20])])
        self.expect_error(anemone("run", self.write(huge)), "memory")

    def test_control_bytes_do_not_reach_the_terminal(self):
        done = anemone("run", self.write(relu(("N", 4), name="a\x1b[31m")))
        self.expect_error(done, "\\033[31m")
        self.assertNotIn("\x1b", done.stderr)

    def test_a_document_and_a_case_do_not_control_the_terminal(self):
        strange = "n\x1b[31m\x9b\u202e\x7f"
        made = relu()
        made.graph.node[0].name = strange
        done = anemone("check", self.write(made), "--json")
        self.assertFalse(set("\x1b\x9b\u202e\x7f") & set(done.stdout))
        self.assertEqual(strange, json.loads(done.stdout)["models"][0]["targets"][0]["nodes"][0]["name"])
        softmax = {"op": "softmax", "inputs": [{"shape": [1, 8, 16, 16]}]}
        probe = self.folder / "probe.json"
        for key in ("id", "op", "target", "route"):
            probe.write_text(json.dumps([{**softmax, key: strange}]))
            done = anemone("confirm", "--probe", probe)
            self.assertFalse(set("\x1b\x9b\u202e\x7f") & set(done.stdout + done.stderr), key)

    def test_names_that_onnx_runtime_cuts_are_not_compared(self):
        for nodes, names in ((("Relu", "Neg"), ("a", "a\0b")), (("Relu",), ("a\0b",))):
            made = model([helper.make_node(op, ["x"], [name]) for op, name in zip(nodes, names)], [tensor("x", [4])],
                         [tensor(name, [4]) for name in names])
            path = self.write(made)
            self.assertEqual(0, anemone("run", path).returncode)
            for words in (["run", path, "--compare"], ["bench", path, "-q", "--repeat", "1"]):
                self.expect_error(anemone(*words), "output 'a\\000b': ONNX Runtime ends names at a zero byte")


if __name__ == "__main__":
    onnx.checker  # fails if the package is missing
    unittest.main()
