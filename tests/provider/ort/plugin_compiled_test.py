"""Models that ONNX Runtime compiled with the plugin (EPContext nodes and their packages), and the cache of
programs.

    plugin_compiled_test.py PLUGIN [unittest arguments]
"""

import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from plugin_case import PluginTest  # noqa: E402
from small_models import image, model, network, relu  # noqa: E402


class Compiled(PluginTest):
    def compile(self, embed, options=None, made=None, x=None):
        """The path of the compiled model, and the outputs of the session that wrote it."""
        source, path = str(self.folder / "model.onnx"), str(self.folder / "made_ctx.onnx")
        onnx.save(made or network(), source)
        pathlib.Path(path).unlink(missing_ok=True)  # ONNX Runtime does not overwrite it
        session = self.session(source, options, [
            ("ep.context_enable", "1"), ("ep.context_file_path", path),
            ("ep.context_embed_mode", "1" if embed else "0")])
        return path, session.run(None, {"x": image() if x is None else x})[0]

    def contexts(self, path):
        return [node for node in onnx.load(path).graph.node if node.op_type == "EPContext"]

    def attribute(self, node, name):
        return next(a for a in node.attribute if a.name == name)

    def test_loads_to_the_same_bits(self):
        for embed in (True, False):
            with self.subTest(embed=embed):
                path, wanted = self.compile(embed)
                self.assertEqual(2, len(self.contexts(path)))
                # It needs only the packages: the files from which they were made are gone.
                (self.folder / "model.onnx").unlink()
                got = self.session(path).run(None, {"x": image()})[0]
                np.testing.assert_array_equal(wanted, got)

    def test_the_target_is_the_models_unless_it_is_named(self):
        path, _ = self.compile(True, {"target": "h16"})
        self.session(path)
        self.session(path, {"target": "h16"})
        with self.assertRaisesRegex(Exception, "EPContext.*for h16, but the session is for h13"):
            self.session(path, {"target": "h13"})

    def test_files_of_another_compilation_are_refused(self):
        """Also if its ports fit: here only the weights differ."""
        path, _ = self.compile(False)
        names = [self.attribute(n, "ep_cache_context").s.decode() for n in self.contexts(path)]
        for name in names:
            self.assertRegex(name, f"^{pathlib.Path(path).stem}-[0-9a-f]{{8}}.anemone$")
        self.assertEqual(len(names), len(set(names)))
        theirs = network()
        theirs.graph.initializer[0].CopyFrom(
            numpy_helper.from_array(np.ones((8, 3, 3, 3), np.float32), "w"))
        self.session(path)
        before = pathlib.Path(path).read_bytes()
        self.compile(False, made=theirs)
        self.assertTrue(all((self.folder / name).exists() for name in names))
        self.session(path)
        pathlib.Path(path).write_bytes(before)
        with self.assertRaisesRegex(Exception, "EPContext.*not the one that was written with"):
            self.session(path)

    def test_a_package_of_other_ports_is_refused(self):
        path, _ = self.compile(True)
        made = onnx.load(path)
        first, second = (self.attribute(node, "ep_cache_context")
                         for node in made.graph.node if node.op_type == "EPContext")
        first.s, second.s = second.s, first.s
        with self.assertRaisesRegex(Exception, "EPContext.*no input 'd'.*compile the model again"):
            self.session(made)

    def test_values_have_the_types_and_shapes_of_the_package(self):
        """ONNX Runtime makes outputs of the declared types, whatever the package writes into them."""
        nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("NonZero", ["r"], ["y"])]
        between = model(nodes, [("x", TensorProto.FLOAT, [4, 16])], [("y", TensorProto.INT64, [2, "n"])])
        x = np.ones((4, 16), np.float32)
        for made, place in ((relu((4, 16)), "output"), (between, "value_info"), (relu((4, 16)), "input")):
            path, _ = self.compile(True, made=made, x=x)
            compiled = onnx.load(path)
            context = next(n for n in compiled.graph.node if n.op_type == "EPContext")
            name = (context.input if place == "input" else context.output)[0]
            values = getattr(compiled.graph, place)
            if place == "value_info":
                del values[:]
                values.add()
            self.assertEqual(1, len(values))
            for kind, dims in [(TensorProto.INT8, (4, 16)), (TensorProto.FLOAT16, (4, 16)),
                               (TensorProto.DOUBLE, (4, 16)), (TensorProto.STRING, (4, 16)),
                               (TensorProto.BOOL, (4, 16)), (TensorProto.INT64, (4, 16)),
                               (TensorProto.FLOAT, (4, 8)), (TensorProto.FLOAT, (4000, 16)),
                               (TensorProto.FLOAT, (4, 16, 1)), (TensorProto.FLOAT, (64,))]:
                if (place, kind) == ("input", TensorProto.STRING):
                    continue  # ONNX Runtime refuses it
                with self.subTest(f"{place} {kind} {dims}"):
                    values[0].CopyFrom(helper.make_tensor_value_info(name, kind, dims))
                    what = "input" if place == "input" else "output"
                    with self.assertRaisesRegex(Exception, f"EPContext.*{what} '{name}': the segment has "
                                                           "float32 4x16, but the model declares"):
                        self.session(compiled).run(None, {"x": x})
            values[0].CopyFrom(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]))
            self.session(compiled).run(None, {"x": x})

    def test_damaged_ones_are_refused(self):
        path, _ = self.compile(True)
        made = onnx.load(path)
        context = next(n for n in made.graph.node if n.op_type == "EPContext")
        held = self.attribute(context, "ep_cache_context")
        good = held.s
        for bad in (b"", b"x", good[:-1], good[:len(good) // 2] + b".", b"A" * len(good),
                    good[:200] + bytes([good[200] ^ 255]) + good[201:]):
            held.s = bad
            with self.assertRaisesRegex(Exception, "EPContext"):
                self.session(made)

    def test_files_are_found_by_their_names_beside_the_model_alone(self):
        path, _ = self.compile(False)
        made = onnx.load(path)
        context = next(n for n in made.graph.node if n.op_type == "EPContext")
        held = self.attribute(context, "ep_cache_context")
        for bad in (b"../x.anemone", b"/etc/passwd", b"..", b"sub/x.anemone"):
            held.s = bad
            onnx.save(made, path)
            with self.assertRaisesRegex(Exception, "must be in the model's folder"):
                self.session(path)
        held.s = b"missing.anemone"
        onnx.save(made, path)
        with self.assertRaisesRegex(Exception, "missing.anemone"):
            self.session(path)

    def test_files_are_no_links(self):
        """As external data is read: a link to a file beside the model may be, any other may not."""
        path, _ = self.compile(False)
        made = onnx.load(path)
        held = self.attribute(next(n for n in made.graph.node if n.op_type == "EPContext"), "ep_cache_context")
        package, elsewhere = self.folder / held.s.decode(), pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (elsewhere / "package").write_bytes(package.read_bytes())
        (self.folder / "leaves").symlink_to(elsewhere / "package")
        (self.folder / "stays").symlink_to(package)
        (self.folder / "whole").write_bytes(package.read_bytes())
        os.link(self.folder / "whole", self.folder / "shared")
        os.mkfifo(self.folder / "pipe")
        for name, told in (("leaves", "is a link to .*must be in the model's folder"), ("shared", "hard links"),
                           ("pipe", "is a device or a pipe"), (".", "is a folder"), ("stays", None)):
            with self.subTest(name):
                held.s = name.encode()
                onnx.save(made, path)
                if told is None:
                    self.session(path)
                    continue
                with self.assertRaisesRegex(Exception, f"EPContext.*{told}"):
                    self.session(path)


class Cache(PluginTest):
    def test_a_second_session_finds_what_the_first_compiled(self):
        folder = self.folder / "cache"
        first = self.session(network(), {"cache_dir": folder}).run(None, {"x": image()})[0]
        entries = {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file()}
        self.assertTrue(entries)
        second = self.session(network(), {"cache_dir": folder}).run(None, {"x": image()})[0]
        np.testing.assert_array_equal(first, second)
        self.assertEqual(set(entries), {p for p in folder.rglob("*") if p.is_file()})
        changed = network()
        changed.graph.initializer[0].CopyFrom(
            numpy_helper.from_array(np.ones((8, 3, 3, 3), np.float32), "w"))
        third = self.session(changed, {"cache_dir": folder}).run(None, {"x": image()})[0]
        self.assertFalse(np.array_equal(first, third))

    def test_damaged_entries_are_compiled_again(self):
        folder = self.folder / "cache"
        first = self.session(network(), {"cache_dir": folder}).run(None, {"x": image()})[0]
        for path in folder.rglob("*"):
            if path.is_file():
                path.write_bytes(path.read_bytes()[:100])
        second = self.session(network(), {"cache_dir": folder}).run(None, {"x": image()})[0]
        np.testing.assert_array_equal(first, second)

    def test_entries_under_each_others_names_are_compiled_again(self):
        folder = self.folder / "cache"
        first = self.session(network(), {"cache_dir": folder}).run(None, {"x": image()})[0]
        a, b = folder.iterdir()
        a.rename(folder / "c")
        b.rename(a)
        (folder / "c").rename(b)
        second = self.session(network(), {"cache_dir": folder}).run(None, {"x": image()})[0]
        np.testing.assert_array_equal(first, second)

    def test_a_folder_that_cannot_be_made_does_no_harm(self):
        self.session(network(), {"cache_dir": "/proc/none"}).run(None, {"x": image()})


if __name__ == "__main__":
    ort.set_default_logger_severity(4)
    unittest.main()
