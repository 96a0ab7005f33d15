"""The command, the plugin and the Python module are hardened as cmake/AnemoneHardened.cmake says.

Run: hardened_test.py READELF FILE... Those that end with .a are archives, with libanemone.a among them.
"""

import pathlib
import re
import subprocess
import sys
import unittest

READELF, FILES = sys.argv[1], [pathlib.Path(p) for p in sys.argv[2:]]
ARCHIVES = [path for path in FILES if path.suffix == ".a"]
BINARIES = [path for path in FILES if path.suffix != ".a"]
# How an object says that indirect jumps and returns are protected.
MARKS = {"x86-64": r"x86 feature: IBT, SHSTK", "AArch64": r"AArch64 feature: BTI, PAC"}


def readelf(path, *options):
    done = subprocess.run([READELF, *options, "-W", path], capture_output=True, text=True, check=True)
    return done.stdout


class Hardened(unittest.TestCase):
    def test_addresses_are_random(self):
        self.assertTrue(BINARIES)
        for path in BINARIES:
            with self.subTest(path.name):
                self.assertRegex(readelf(path, "-h"), r"Type: +DYN")

    def test_relocations_are_read_only_at_once(self):
        for path in BINARIES:
            with self.subTest(path.name):
                self.assertRegex(readelf(path, "-l"), r"GNU_RELRO ")
                self.assertRegex(readelf(path, "-d"), r"BIND_NOW|Flags:.*\bNOW\b")

    def test_neither_the_stack_nor_writable_memory_is_executable(self):
        for path in BINARIES:
            with self.subTest(path.name):
                text = readelf(path, "-l")
                segments = re.findall(r"^ +(LOAD|GNU_STACK) .* ([R ][W ][E ]) 0x", text, re.MULTILINE)
                self.assertIn("GNU_STACK", [kind for kind, _ in segments])
                for kind, access in segments:
                    self.assertFalse("E" in access and ("W" in access or kind == "GNU_STACK"), text)

    def test_buffers_and_stacks_are_checked(self):
        for path in BINARIES:
            with self.subTest(path.name):
                symbols = readelf(path, "--dyn-syms")
                self.assertRegex(symbols, r"UND __stack_chk_fail\b")
                self.assertRegex(symbols, r"UND __\w+_chk\b")

    def test_every_object_of_a_library_marks_its_jumps(self):
        # A program has the mark only if all its inputs have it. C's own start files often do not.
        least = {"libanemone.a": 100}
        self.assertLessEqual(set(least), {path.name for path in ARCHIVES})
        for path in ARCHIVES:
            with self.subTest(path.name):
                machine = re.search(r"Machine: .*?(x86-64|X86-64|AArch64)", readelf(path, "-h"))
                self.assertTrue(machine)
                mark = MARKS["x86-64" if "86" in machine[1] else "AArch64"]
                members = ("\n" + readelf(path, "-n")).split("\nFile: ")[1:]
                self.assertGreater(len(members), least.get(path.name, 0))
                self.assertEqual([m.splitlines()[0] for m in members if not re.search(mark, m)], [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
