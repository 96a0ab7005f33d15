"""`anemone compile` without --compress, and `anemone patch`: files of weights, output, errors."""

import json
import pathlib
import struct
import subprocess
import sys
import unittest
import warnings
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import jsonschema
import numpy
import onnx
from onnx import helper, numpy_helper

from support import ANEMONE, ROOT, CliTest, anemone, model, tensor

SCHEMAS = {name: json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text()) for name in ("compiled", "patch")}


def network(seed):
    """Two layers; the second has a factor that is folded into it."""
    random = numpy.random.default_rng(seed)
    weights = {"a": random.standard_normal((16, 32)), "b": random.standard_normal(32),
               "k": random.standard_normal((8, 4, 1, 1)), "s": random.uniform(0.5, 2, (1, 8, 1, 1))}
    made = model(
        [helper.make_node("MatMul", ["x", "a"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"]),
         helper.make_node("Conv", ["z", "k"], ["c"]), helper.make_node("Mul", ["c", "s"], ["w"])],
        [tensor("x", [4, 16]), tensor("z", [1, 4, 8, 8])], [tensor("y", [4, 32]), tensor("w", [1, 8, 8, 8])])
    for name, array in weights.items():
        made.graph.initializer.append(numpy_helper.from_array(array.astype(numpy.float32), name))
    return made


def arrays_of(made):
    return {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}


def safetensors(arrays):
    header, data = {"__metadata__": {"format": "np"}}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Patch(CliTest):
    def document(self, schema, *words):
        done = anemone(*words, "--json")
        self.assertEqual(0, done.returncode, done.stderr)
        made = json.loads(done.stdout)
        jsonschema.validate(made, SCHEMAS[schema])
        return made

    def outputs(self, path):
        folder = self.folder / "out"
        done = anemone("run", path, "--seed", "3", "--output-dir", folder)
        self.assertEqual(0, done.returncode, done.stderr)
        return [numpy.load(pathlib.Path(folder) / f"{name}.npy").tobytes() for name in ("y", "w")]

    def compiled(self, made=None):
        path, folder = self.write(made or network(1)), self.folder / "net.ane"
        self.document("compiled", "compile", path, "-o", folder)
        return path, folder

    def test_weights_of_three_kinds_of_files(self):
        path, folder = self.compiled()
        self.assertEqual(self.outputs(path), self.outputs(folder))
        after = network(2)
        want = self.outputs(self.write(after, "after.onnx"))
        arrays = arrays_of(after)
        (self.folder / "new.safetensors").write_bytes(safetensors(arrays))
        numpy.savez(self.folder / "new.npz", **arrays)
        onnx.save(after, self.folder / "new.onnx")
        for suffix in ("safetensors", "npz", "onnx"):
            made = self.document("patch", "patch", folder, "--weights", self.folder / f"new.{suffix}", "-o",
                                 self.folder / f"{suffix}.ane")
            self.assertEqual(["a", "b", "k", "s"], made["changed"])
            self.assertFalse(made["planned_again"])
            self.assertEqual(want, self.outputs(self.folder / f"{suffix}.ane"))
        # In place, one layer.
        numpy.savez(self.folder / "layer.npz", a=arrays["a"])
        made = self.document("patch", "patch", folder, "--weights", self.folder / "layer.npz")
        self.assertEqual(["a"], made["changed"])
        self.assertFalse(made["planned_again"])
        before = network(1)
        before.graph.initializer[0].CopyFrom(after.graph.initializer[0])
        self.assertEqual(self.outputs(self.write(before, "layer.onnx")), self.outputs(folder))
        done = anemone("run", folder, "--compare")
        self.assertEqual(0, done.returncode, done.stderr)

    def test_two_patches_at_a_time(self):
        """Both are in the folder afterwards, and none reads a part of the other's."""
        _, folder = self.compiled()
        for seed in range(2, 10):
            after = network(seed)
            arrays = arrays_of(after)
            running = []
            for name in ("a", "s"):
                numpy.savez(self.folder / f"{name}.npz", **{name: arrays[name]})
                running.append(subprocess.Popen(
                    [ANEMONE, "patch", folder, "--weights", self.folder / f"{name}.npz", "-q"], stderr=subprocess.PIPE,
                    stdout=subprocess.DEVNULL, text=True))
            for process in running:
                _, told = process.communicate(timeout=120)
                self.assertEqual((0, ""), (process.returncode, told))
            before = {**arrays_of(network(1)), **{name: arrays[name] for name in ("a", "s")}}
            whole = network(1)
            del whole.graph.initializer[:]
            whole.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in before.items())
            self.assertEqual(self.outputs(self.write(whole, "whole.onnx")), self.outputs(folder))

    def test_external_data(self):
        path = self.folder / "big.onnx"
        onnx.save(network(1), path, save_as_external_data=True, size_threshold=0, location="big.data")
        folder = self.folder / "big.ane"
        self.document("compiled", "compile", path, "-o", folder)
        numpy.savez(self.folder / "new.npz", **arrays_of(network(2)))
        self.document("patch", "patch", folder, "--weights", self.folder / "new.npz")
        self.assertEqual(self.outputs(self.write(network(2), "after.onnx")), self.outputs(folder))

    def test_archives_that_lie(self):
        """Nothing is taken from an archive whose entries are changed, hidden or ambiguous."""
        _, folder = self.compiled()
        path = self.folder / "new.npz"
        numpy.savez(path, b=numpy.ones(32, numpy.float32))
        good = path.read_bytes()
        central = good.index(b"PK\x01\x02")
        array = good.index(b"\x93NUMPY") + 128
        # Where, in the first header of the entry and in the directory, or in the array.
        for said, changes in (
                ("'b.npy' is damaged", {array + 40: 0x41}),  # a bit of an element
                ("'b.npy' is damaged", {central + 16: good[central + 16] ^ 1}),  # the checksum
                ("'b.npy' is damaged", {30: ord("c")}),  # another name in the header of the entry
                ("is encrypted", {central + 8: good[central + 8] | 1}),
                ("is compressed", {central + 10: 8})):
            with self.subTest(said, changes=changes):
                changed = bytearray(good)
                for at, byte in changes.items():
                    changed[at] = byte
                path.write_bytes(changed)
                self.expect_error(anemone("patch", folder, "--weights", path, "-o", self.folder / "other"), said)
        with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "w") as archive:
            for _ in range(2):
                archive.writestr("b.npy", good[array - 128:array + 128])
        self.expect_error(anemone("patch", folder, "--weights", path, "-o", self.folder / "other"), "'b' is there twice")
        path.write_bytes(good)
        self.assertEqual(0, anemone("patch", folder, "--weights", path, "-o", self.folder / "other").returncode)

    def test_an_array_with_a_long_name(self):
        _, folder = self.compiled()
        with zipfile.ZipFile(self.folder / "long.npz", "w") as archive:
            archive.writestr("a" * 60000 + ".npy", b"")
        done = anemone("patch", folder, "--weights", self.folder / "long.npz")
        self.expect_error(done, "long.npz': an array has a name of 60004 bytes; write it with one of at most 4096")
        self.assertLess(len(done.stderr), 1000)

    def test_errors(self):
        path, folder = self.compiled()
        before = sorted((p, p.read_bytes()) for p in pathlib.Path(folder).rglob("*") if p.is_file())
        numpy.savez(self.folder / "name.npz", q=numpy.zeros(3, numpy.float32))
        numpy.savez(self.folder / "type.npz", a=numpy.zeros((16, 32)))
        (self.folder / "text.npz").write_text("no zip file")
        other = self.folder / "other.ane"
        for code, told, words in (
                (2, "patch: no weights are given; give --weights FILE", (folder,)),
                (1, "not a compiled model; write one with `anemone compile MODEL -o DIR`",
                 (path, "--weights", self.folder / "name.npz")),
                (1, "weight 'q': the model has no such initializer", (folder, "--weights", self.folder / "name.npz")),
                (1, "weight 'a': got float64 16x32, the initializer is float32 16x32",
                 (folder, "--weights", self.folder / "type.npz")),
                (1, "text.npz", (folder, "--weights", self.folder / "text.npz")),
                (1, "want weights as .safetensors, .npz or .onnx", (folder, "--weights", self.folder / "text.txt"))):
            done = anemone("patch", *words, "-o", other)
            self.expect_error(done, told, code=code)
            self.assertFalse(pathlib.Path(other).exists())
        self.assertEqual(before, sorted((p, p.read_bytes()) for p in pathlib.Path(folder).rglob("*") if p.is_file()))
        self.expect_error(anemone("compile", path, "-o", other, "--seed", "1"), "--seed: is for --compress", code=2)
        self.expect_error(anemone("compile", path, "-o", folder), "already exists", code=1)
        self.expect_error(anemone("run", folder, "--target", "m4"), "compiled with target h13, not h16", code=2)
        free = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", ["N", 4])], [tensor("y", ["N", 4])])
        path = self.write(free, "free.onnx")
        self.expect_error(anemone("compile", path, "-o", other), "a compiled model has one size: input 'x': dimension 0 "
                          "('N') has no size; give --dim 'N=1'", code=2)


if __name__ == "__main__":
    unittest.main()
