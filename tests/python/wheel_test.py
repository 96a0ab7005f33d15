"""The wheel of tools/wheel: its content, and that it works in a fresh environment with onnx and
onnxruntime, imported in every order.

    wheel_test.py REPOSITORY
"""

import email
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import unittest
import zipfile

ROOT = pathlib.Path(sys.argv.pop(1))
HERE = pathlib.Path(__file__).resolve().parent
EXPORTS = {"libonnxruntime_ane_ep.so": {"CreateEpFactories", "ReleaseEpFactory", "RegisterCustomOps"},
           "_anemone": {"PyInit__anemone"}}


# Without the package of the build folder.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, env=ENVIRONMENT)
    if done.returncode:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


def elf(path, *words):
    return run("readelf", "--wide", *words, path)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run(ROOT / "tools" / "wheel")
        [cls.wheel] = (ROOT / "build" / "wheel").glob("*.whl")
        venv = ROOT / "build" / "wheel" / "venv"
        run(sys.executable, "-m", "venv", "--clear", venv)
        cls.python = venv / "bin" / "python"
        run(cls.python, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps",
            "--no-index", cls.wheel)
        # onnx, onnxruntime and NumPy are those of this Python. If it has the package too, that comes second.
        [cls.site] = venv.glob("lib/python*/site-packages")
        (cls.site / "this.pth").write_text(sysconfig.get_path("purelib") + "\n")
        cls.folder = cls.site / "onnxruntime_ep_ane"
        cls.libraries = sorted((cls.site / "onnxruntime_ep_ane.libs").iterdir())

    def test_it_says_what_it_is(self):
        with zipfile.ZipFile(self.wheel) as file:
            names = file.namelist()
            [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
            told = email.message_from_bytes(file.read(metadata))
        self.assertEqual("onnxruntime-ep-ane", told["Name"])
        version = re.search(r"project\(anemone VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
        self.assertEqual(version.group(1), told["Version"])
        self.assertIn("onnxruntime_ep_ane/py.typed", names)
        self.assertIn("manylinux", self.wheel.name)

    def test_no_onnx_runtime_inside(self):
        files = [path for path in self.site.rglob("*") if path.is_file()]
        for path in files:
            self.assertNotRegex(path.name, r"^libonnxruntime(-|\.)")
        for path in [*self.folder.glob("*.so"), *self.libraries]:
            self.assertNotIn("libonnxruntime.", elf(path, "--dynamic"))

    def test_libraries_have_names_of_their_own(self):
        self.assertTrue(any("protobuf" in path.name for path in self.libraries))
        for path in self.libraries:
            self.assertRegex(path.name, r"-[0-9a-f]{8}[.0-9]*\.so", path.name)
        known = {path.name for path in self.libraries}
        for path in [*self.folder.glob("*.so"), *self.libraries]:
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", elf(path, "--dynamic")))
            system = re.compile(r"(ld-linux|libc|libm|libgcc_s|libstdc\+\+|libz|libpthread|libdl)[-.]")
            self.assertEqual([], [name for name in needed - known if not system.match(name)], path)

    def test_exports(self):
        for start, wanted in EXPORTS.items():
            [path] = self.folder.glob(start.removesuffix(".so") + "*.so")
            rows = re.findall(r"(\w+)\s+\w+\s+(?:GLOBAL|WEAK)\s+DEFAULT\s+(\S+)\s+(\S+)$",
                              elf(path, "--dyn-syms"), re.MULTILINE)
            exported = {name.split("@")[0] for _, section, name in rows if section.isdigit()}
            self.assertEqual(wanted, exported)

    def test_it_has_the_command(self):
        version = run(self.python.parent / "anemone", "--version")
        self.assertIn(version.split()[1], self.wheel.name)
        said = run(self.python.parent / "anemone", "doctor")
        self.assertIn(str(self.folder), said)  # its plugin

    def test_every_order_of_imports(self):
        run(self.python, HERE / "import_order_test.py")
        where = run(self.python, "-c", "import onnxruntime_ep_ane; print(onnxruntime_ep_ane.__file__)")
        self.assertEqual(self.folder, pathlib.Path(where.strip()).parent)


if __name__ == "__main__":
    unittest.main()
