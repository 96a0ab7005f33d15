"""Tests README.md: each of its commands runs, and its C++ example compiles.

.ci/run runs the two set-up commands.
"""

import re
import shlex
import subprocess
import unittest

import support
from onnx import helper

README = (support.ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^    build/release/anemone (.*?)\s*(?:#.*)?$", README, re.MULTILINE)


class Readme(support.CliTest):
    def test_commands_run(self):
        self.assertGreaterEqual(len(COMMANDS), 4)
        net = support.model([helper.make_node("MatMul", ["x", "w"], ["h"]),
                             helper.make_node("Softmax", ["h"], ["y"])],
                            [support.tensor("x", (1, 8)), support.tensor("w", (8, 4))],
                            [support.tensor("y", (1, 4))])
        self.write(net, "net.onnx")
        for command in COMMANDS:
            words = [str(self.folder / word) if word.startswith("net.") else word
                     for word in shlex.split(command)]
            done = support.anemone(*words)
            self.assertEqual(0, done.returncode, f"{command}: {done.stderr}")
            self.assertTrue(done.stdout.strip(), command)

    def test_the_example_in_cpp_compiles(self):
        body = re.search(r"```cpp\n(.*?)```", README, re.DOTALL).group(1)
        includes = "".join(re.findall(r"^#include.*\n", body, re.MULTILINE))
        rest = re.sub(r"^#include.*\n", "", body, flags=re.MULTILINE)
        source = self.folder / "example.cc"
        source.write_text(f"{includes}#include <iostream>\n"
                          "int Fail(const absl::Status&);\n"
                          f"int Example(const anemone::Tensor& image) {{\n{rest}return 0;\n}}\n")
        done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-I", support.ROOT / "include",
                               source], capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_all_dependencies_are_named(self):
        setup = support.ROOT / "tools" / "setup"
        lines = [line for name in ("packages.txt", "requirements.txt")
                 for line in (setup / name).read_text().splitlines()]
        packages = {re.match(r"[\w.+-]+", line).group() for line in lines
                    if line and not line.startswith("#")}
        self.assertGreater(len(packages), 20)
        self.assertEqual(set(), packages - set(re.findall(r"`([^`\n]+)`", README)))


if __name__ == "__main__":
    unittest.main()
