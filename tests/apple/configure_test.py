"""What CMake says and makes without Objective-C++ or GNUstep: it says what is left out, and goes on.

    configure_test.py CMAKE SOURCE_FOLDER
"""

import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

CMAKE, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
LEFT_OUT = "The tests of --device apple are off: "
# A compiler without gobjc++.
COMPILER = """#!/bin/sh
case " $* " in *objective-c*) echo "objective-c++ compiler not installed" >&2; exit 1 ;; esac
exec c++ "$@"
"""


class Configure(unittest.TestCase):
    def configure(self, *options):
        """What CMake prints, and its build.ninja."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        done = subprocess.run([CMAKE, "-S", SOURCE, "-B", folder / "build", "-G", "Ninja",
                               "-DANEMONE_BUILD_BENCH=OFF", "-DANEMONE_BUILD_PYTHON=OFF", *options],
                              capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout, (folder / "build" / "build.ninja").read_text()

    def expect_left_out(self, why, *options):
        told, rules = self.configure(*options)
        self.assertIn(LEFT_OUT + why, told)
        self.assertIn("libanemone_apple.a", rules)
        for target in ("anemone_apple_driver", "anemone_standin", "apple_device_test"):
            self.assertNotIn(target, rules)

    def test_without_an_objective_c_compiler(self):
        compiler = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "c++"
        compiler.write_text(COMPILER)
        compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
        self.expect_left_out("the compiler takes no Objective-C++ (gobjc++)", f"-DCMAKE_CXX_COMPILER={compiler}")

    def test_without_gnustep(self):
        self.expect_left_out("no GNUstep (libgnustep-base-dev)", "-DANEMONE_GNUSTEP_INCLUDE_DIR=")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
