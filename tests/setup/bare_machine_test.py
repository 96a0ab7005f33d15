"""Follows README.md on a bare Debian 12, in a folder that is the root (chroot) of the process. All
commands of the README run there in its order, except tools/test, which .ci/run runs. Needs root and
debootstrap; takes as long as tools/quickstart.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
# The machine's configuration of package sources, host names and certificates.
CONFIGURATION = ["/etc/apt/sources.list.d", "/etc/apt/sources.list", "/etc/apt/apt.conf.d",
                 "/etc/pip.conf", "/etc/resolv.conf", "/etc/hosts", "/usr/share/keyrings", "/etc/ssl/certs",
                 "/usr/local/share/ca-certificates"]
MODEL = """
from onnx import TensorProto, helper, save
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])
w = helper.make_tensor("w", TensorProto.FLOAT, [8, 4], [i / 32 for i in range(32)])
nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Softmax", ["h"], ["y"])]
save(helper.make_model(helper.make_graph(nodes, "net", [x], [y], [w]), ir_version=10,
                       opset_imports=[helper.make_opsetid("", 20)]), "net.onnx")
"""
CPP = """{includes}#include <iostream>
int Fail(const absl::Status& s) {{ std::cerr << s << "\\n"; return 1; }}
int main() {{
  const anemone::Tensor image = anemone::Tensor::Zeros(anemone::DataType::kFloat, {{1, 8}});
{body}}}
"""
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(app LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(anemone REQUIRED)
add_executable(app app.cc)
target_link_libraries(app PRIVATE anemone::anemone)
"""


def block(language):
    return re.search(rf"```{language}\n(.*?)```", README, re.DOTALL).group(1)


def commands():
    """The commands of the README in order, as lines of shell."""
    lines = []
    for line in README.splitlines():
        if match := re.match(r"    (?:# )?(\S.*?)\s*(?:#.*)?$", line):
            lines.append(match[1])
        elif line.startswith("```python"):
            lines.append(".venv/bin/python example.py")
        elif line.startswith("```cpp"):
            lines += ["tools/setup/build.sh release", "cmake --install build/release --prefix /tmp/prefix",
                      "cmake -G Ninja -S /tmp/app -B /tmp/app/build -DCMAKE_PREFIX_PATH=/tmp/prefix",
                      "cmake --build /tmp/app/build", "/tmp/app/build/app"]
    return [line for line in lines if not line.startswith("tools/test")]


class BareMachine(unittest.TestCase):
    def test_readme_commands_in_order(self):
        machine = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="bare-")))
        sources = subprocess.check_output(
            ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"], text=True)
        mirror = re.search("^bookworm (.*)$", sources, re.MULTILINE).group(1)
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", machine, mirror], check=True,
                       stdout=subprocess.DEVNULL)
        (machine / "etc" / "apt" / "sources.list").unlink(missing_ok=True)  # debootstrap's
        for path in map(pathlib.Path, CONFIGURATION):
            copy = machine / path.relative_to("/")
            if path.is_dir():
                shutil.copytree(path, copy, symlinks=False, ignore_dangling_symlinks=True, dirs_exist_ok=True)
            elif path.exists():
                shutil.copy(path, copy)
        clone = machine / "home" / "anemone"
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        (clone / "make_net.py").write_text(MODEL)
        (clone / "example.py").write_text("import numpy as np\nx = np.ones((1, 8), np.float32)\n" + block("python"))
        body = block("cpp")
        app = machine / "tmp" / "app"
        app.mkdir()
        includes = "".join(re.findall(r"^#include.*\n", body, re.MULTILINE))
        rest = re.sub(r"^#include.*\n", "", body, flags=re.MULTILINE)
        (app / "app.cc").write_text(CPP.format(includes=includes, body=rest))
        (app / "CMakeLists.txt").write_text(CMAKE)
        script = ["set -e", "mount -t proc proc /proc", "cd /home/anemone",
                  "export HOME=/root PATH=/home/anemone/.venv/bin:$PATH"]
        for command in commands():
            script += [f"echo {shlex.quote('>>> ' + command)}", command]
            if command.startswith("tools/quickstart"):
                script.append(".venv/bin/python make_net.py")
        (machine / "script").write_text("\n".join(script) + "\n")
        environment = {name: value for name, value in os.environ.items()
                       if re.search("proxy|PIP_|SSL_|CERT", name) and "/opt/" not in value}
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "chroot", machine, "bash", "/script"],
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout, file=sys.stderr)
        self.assertEqual(0, done.returncode, done.stdout[-3000:])


if __name__ == "__main__":
    unittest.main()
