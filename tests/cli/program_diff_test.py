"""`anemone diff` of two programs: MIL texts, netplists, Core ML packages; and files that are damaged."""

import json
import os
import re
import shutil
import unittest

import jsonschema
import numpy
from onnx import helper

from support import ROOT, CliTest, anemone, model, tensor

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "diff.json").read_text())
FORMATS = ("mil", "netplist", "mlpackage")


def net(weight=1.0, kernel=3, last="Sigmoid", names="", seed=0, extra=()):
    """Conv, Relu, Conv, `last`, and what is in `extra`. `names` is put before the names of values."""
    random = numpy.random.default_rng(seed)
    made = {"w1": random.standard_normal((8, 3, kernel, kernel)), "w2": random.standard_normal((8, 8, 3, 3))}
    made["w2"][0, 0, 0, 0] = weight
    pads = [kernel // 2] * 4
    chain = [("Conv", ["w1"], {"pads": pads}), ("Relu", [], {}), ("Conv", ["w2"], {"pads": [1] * 4}),
             (last, [], {}), *((op, [], {}) for op in extra)]
    values = ["x", *(f"{names}v{i}" for i in range(len(chain) - 1)), "y"]
    nodes = [helper.make_node(op, [values[i], *constants], [values[i + 1]], **attributes)
             for i, (op, constants, attributes) in enumerate(chain)]
    return model(nodes, [tensor("x", [1, 3, 16, 16])], [tensor("y", [1, 8, 16, 16])],
                 [helper.make_tensor(name, 1, value.shape, value.astype(numpy.float32).ravel())
                  for name, value in made.items()])


def unrelated():
    return model([helper.make_node("Softmax", ["p"], ["q"])], [tensor("p", [2, 50])], [tensor("q", [2, 50])])


class ProgramDiff(CliTest):
    def program(self, made, form):
        """The model converted: the folder or package of its only segment."""
        number = len(os.listdir(self.folder))
        path, out = self.write(made, f"{number}.onnx"), self.folder / f"{number}.{form}"
        done = anemone("convert", path, "--to", form, "--target", "m1", "-o", out)
        self.assertEqual(0, done.returncode, done.stderr)
        return out if form == "mlpackage" else out / "segment-0"

    def diff(self, a, b, code):
        done = anemone("diff", a, b, "--json")
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        self.assertEqual((code == 0, []), (document["equal"], document["moved"]))
        return document

    def changes(self, document):
        """The changes of the only item that changed, by key."""
        self.assertEqual(([], []), (document["added"], document["removed"]))
        self.assertEqual(1, len(document["changed"]), document["changed"])
        return {change["key"]: (change["from"], change["to"]) for change in document["changed"][0]["changes"]}

    def test_programs_of_one_model_are_equal(self):
        for form in FORMATS:
            with self.subTest(form):
                a, b = self.program(net(), form), self.program(net(), form)
                document = self.diff(a, b, 0)
                self.assertEqual(form, document["summary"]["a"]["format"])
                self.assertTrue(document["related"])
                done = anemone("diff", a, b)
                self.assertRegex(done.stdout, r"^equal: \d+ operations\n")

    def test_a_weight_is_compared_by_its_content(self):
        for form in FORMATS:
            with self.subTest(form):
                found = self.changes(self.diff(self.program(net(1.0), form), self.program(net(2.0), form), 3))
                self.assertEqual(1, len(found), found)
                (before, after), = found.values()
                shape = r"8(, |x)8(, |x)(1x)?3(, |x)3"
                for text in (before, after):
                    self.assertRegex(text, rf"^(fp16 \[|float(16|32) ){shape}\]? #[0-9a-f]{{16}}$")
                self.assertNotEqual(before, after)

    def test_names_and_places_of_constants_do_not_matter(self):
        for form in FORMATS:
            with self.subTest(form):
                self.diff(self.program(net(), form), self.program(net(names="other_"), form), 0)

    def test_an_operation_that_was_added(self):
        for form in FORMATS:
            with self.subTest(form):
                a, b = self.program(net(), form), self.program(net(last="Tanh", extra=["Sigmoid"]), form)
                document = self.diff(a, b, 3)
                self.assertEqual(["Neuron" if form == "netplist" else "tanh"],
                                 [item["op_type"] for item in document["added"]])
                self.assertEqual(len(document["added"]), len(self.diff(b, a, 3)["removed"]))

    def test_a_shape_and_an_attribute(self):
        for form in FORMATS:
            with self.subTest(form):
                document = self.diff(self.program(net(), form), self.program(net(kernel=5), form), 3)
                keys = {change["key"] for item in document["changed"] for change in item["changes"]}
                self.assertTrue(any(re.search("(?i)pad", key) for key in keys), keys)
                self.assertTrue(any("eight" in key for key in keys), keys)

    def test_files_outside_the_folder_are_not_read(self):
        """Weights and models of a program that were links were read wherever they led."""
        files = {"mil": ["model.mil", "weights/weight.bin"], "netplist": ["net.plist", "weights.1"],
                 "mlpackage": ["Manifest.json", "Data/com.apple.CoreML/model.mlmodel",
                               "Data/com.apple.CoreML/weights/weight.bin"]}
        for form in FORMATS:
            whole = self.program(net(), form)
            for file in files[form]:
                for link, words in ((os.symlink, "is a link out of the folder"),
                                    (os.link, "has 2 names \\(hard links\\)")):
                    with self.subTest(f"{form} {file} {link.__name__}"):
                        place = self.folder / str(len(os.listdir(self.folder)))
                        changed = place / whole.name
                        shutil.copytree(whole, changed)
                        os.rename(changed / file, place / "outside")
                        link(place / "outside", changed / file)
                        done = anemone("diff", whole, changed)
                        self.assertEqual(1, done.returncode, done.stdout)
                        self.assertRegex(done.stderr, words)
                        os.unlink(changed / file)  # a link that stays in the folder may be one
                        kept = (changed / file).with_name("kept")
                        os.rename(place / "outside", kept)
                        os.symlink(kept, changed / file)
                        done = anemone("diff", whole, changed)
                        self.assertEqual(0, done.returncode, done.stderr)

    def test_programs_with_nothing_in_common(self):
        for form in FORMATS:
            with self.subTest(form):
                a, b = self.program(net(), form), self.program(unrelated(), form)
                document = self.diff(a, b, 3)
                self.assertFalse(document["related"])
                done = anemone("diff", a, b)
                self.assertRegex(done.stdout, r"^different: the programs have nothing in common \(\d+ operations?"
                                              r" and \d+\)\n")

    def test_a_file_is_as_good_as_its_folder(self):
        for form, name in (("mil", "model.mil"), ("netplist", "net.plist")):
            folder = self.program(net(), form)
            self.assertEqual(self.diff(folder, folder, 0)["summary"]["a"]["operations"],
                             self.diff(folder / name, folder, 0)["summary"]["a"]["operations"])

    def test_an_entry_of_the_cache_is_refused(self):
        """Its weights are in the file of the model. tests/python/diff_test.py compares whole packages."""
        cache = self.folder / "cache"
        done = anemone("run", self.write(net()), env={"ANEMONE_PROGRAM_CACHE": str(cache)})
        self.assertEqual(0, done.returncode, done.stderr)
        [package] = [file for file in cache.rglob("*") if file.is_file() and file.read_bytes()[8:12] == b"ANEM"]
        done = anemone("diff", package, package)
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("its weights are in the file of the model", done.stderr)

    def test_mixed_kinds_are_wrong_usage(self):
        mil, netplist = self.program(net(), "mil"), self.program(net(), "netplist")
        path = self.write(net())
        for a, b, words in ((mil, netplist, "is a MIL program"), (netplist, path, "is not a program"),
                            (path, mil, "is not a program")):
            done = anemone("diff", a, b)
            self.assertEqual(2, done.returncode)
            self.assertIn(words, done.stderr)

    def test_settings_of_planning_are_wrong_usage(self):
        mil = self.program(net(), "mil")
        for words in (["--target", "m1"], ["--policy", "cpu"], ["--dim", "n=1"]):
            done = anemone("diff", mil, mil, *words)
            self.assertEqual(2, done.returncode)
            self.assertIn(f"{words[0]}: does not apply to a MIL program", done.stderr)
        self.assertEqual(2, anemone("diff", mil).returncode)

    def test_the_text_fits_the_terminal(self):
        a, b = self.program(net(), "mil"), self.program(net(kernel=5, seed=1), "mil")
        for words in ([], ["-v"]):
            done = anemone("diff", a, b, *words)
            self.assertEqual(3, done.returncode)
            long = [line for line in done.stdout.splitlines() if len(line) > 80 and " " in line.strip()
                    and str(self.folder) not in line]
            self.assertEqual([], long)
        self.assertEqual(1, len(anemone("diff", a, b, "-q").stdout.splitlines()))

    def test_large_programs_are_compared_in_time(self):
        head = ('program(1.3)\n[buildInfo = dict<string, string>({})]\n{\n'
                '    func main<ios18>(tensor<fp16, [1, 4]> x) {\n')
        paths = []
        for name, ops in (("a", ["relu", "tanh"]), ("b", ["tanh", "sigmoid", "relu"])):
            lines = [f'        tensor<fp16, [1, 4]> {name}{i} = {ops[i % len(ops)]}(x = {f"{name}{i - 1}" if i % 3 else "x"})'
                     f'[name = string("{name}{i}")];\n' for i in range(20000)]
            paths.append(self.write((head + "".join(lines) + f"    }} -> ({name}19999);\n}}\n").encode(),
                                    f"{name}.mil"))
        self.diff(*paths, 3)
        self.diff(paths[0], paths[0], 0)

    def test_damaged_mil(self):
        folder = self.program(net(), "mil")
        text, weights = (folder / "model.mil").read_text(), folder / "weights" / "weight.bin"
        for number, (bad, words) in enumerate((
                (text[:len(text) // 2], "MIL, line "), ("program(1.3)", "want '{'"),
                (text.replace("weights/weight.bin", "../weight.bin"), "want a file below @model_path/"),
                (text.replace("weights/weight.bin", "none.bin"), "none.bin"),
                (text.replace("uint64(64)", "uint64(65)"), "no chunk header at offset 65"))):
            path = self.folder / f"bad{number}.mil"
            path.mkdir()
            shutil.copytree(folder / "weights", path / "weights")
            (path / "model.mil").write_text(bad)
            with self.subTest(words):
                done = anemone("diff", path, folder)
                self.assertEqual(1, done.returncode, done.stdout)
                self.assertRegex(done.stderr, words)
                self.assertIn(path.name, done.stderr)
        weights.write_bytes(weights.read_bytes()[:100])
        self.assertEqual(1, anemone("diff", folder, folder).returncode)

    def test_damaged_netplists(self):
        folder = self.program(net(), "netplist")
        text = (folder / "net.plist").read_text()
        for bad in (text[:len(text) // 2], "<plist>", text.replace("Conv", "Convolve"),
                    text.replace("weights.1", "../weights.1"), text.replace("weights.1", "none")):
            other = self.folder / "bad.plist"
            shutil.copy(folder / "weights.1", self.folder / "weights.1")
            other.write_text(bad)
            done = anemone("diff", other, folder)
            self.assertEqual(1, done.returncode, done.stdout)
            self.assertIn("bad.plist", done.stderr)
            self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)

    def test_damaged_core_ml_packages(self):
        good = self.program(net(), "mlpackage")
        inside = "Data/com.apple.CoreML/model.mlmodel"
        for name, damage in (
                ("Manifest.json", lambda text: text[:30]),
                ("Manifest.json", lambda text: text.replace(b"com.apple.CoreML/model.mlmodel", b"../../../x")),
                ("Manifest.json", lambda text: b"{}"),
                (inside, lambda content: content[:len(content) // 2]), (inside, lambda content: b"\xff" * 50),
                (inside, lambda content: b"\x08\x08"),
                (inside, lambda content: content.replace(b"CoreML", b"CoreM\xff")),  # Protobuf printed of itself
                (inside, lambda content: content.replace(b"weights/weight.bin", b"weights/weight.bix"))):
            bad = self.folder / "bad.mlpackage"
            shutil.rmtree(bad, ignore_errors=True)
            shutil.copytree(good, bad)
            (bad / name).write_bytes(damage((bad / name).read_bytes()))
            done = anemone("diff", bad, good)
            self.assertEqual(1, done.returncode, done.stdout)
            self.assertIn("bad.mlpackage", done.stderr)
            self.assertEqual(1, len(done.stderr.splitlines()), done.stderr)


if __name__ == "__main__":
    unittest.main()
