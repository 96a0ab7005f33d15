"""`cmake --install` to a new folder: a project finds the package there, builds and runs, and the
installed command finds its plugin.

    install_test.py CMAKE BUILD
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import onnx  # noqa: E402
import small_models  # noqa: E402

CMAKE, BUILD = sys.argv.pop(1), sys.argv.pop(1)
PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES CXX)
find_package(anemone 0.1 REQUIRED)
add_executable(app app.cc)
target_link_libraries(app anemone::anemone)
"""


def run(*words, **how):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **how)
    if done.returncode:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.prefix = cls.folder / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)

    def test_a_project_finds_the_package(self):
        source = self.folder / "app"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(PROJECT)
        (source / "app.cc").write_text((HERE / "app.cc").read_text())
        run(CMAKE, "-S", source, "-B", source / "build", "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run(CMAKE, "--build", source / "build")
        onnx.save(small_models.relu((1, 4)), self.folder / "relu.onnx")
        lines = run(source / "build" / "app", self.folder / "relu.onnx").splitlines()
        self.assertRegex(lines[0], r"^0 2 0 4 \d+\.\d+\.\d+$")
        self.assertIn("1 of 1 node ", lines[1])

    def test_headers_include_only_what_is_installed(self):
        headers = list((self.prefix / "include" / "anemone").iterdir())
        self.assertGreater(len(headers), 4)
        for header in headers:
            run("c++", "-std=c++20", "-fsyntax-only", "-x", "c++", "-I", self.prefix / "include",
                header)

    def test_the_command_finds_its_plugin(self):
        told = json.loads(run(self.prefix / "bin" / "anemone", "doctor", "--json"))
        [plugin] = [check for check in told["checks"] if check["name"] == "plugin"]
        self.assertIn(str(self.prefix / "lib"), plugin["text"])


if __name__ == "__main__":
    unittest.main()
