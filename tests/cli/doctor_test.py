"""`anemone doctor`: a complete machine, and each part that can be missing, with its remedy.

    doctor_test.py ANEMONE REPOSITORY PLUGIN
"""

import json
import pathlib
import subprocess
import sys
import unittest

import jsonschema

PLUGIN = pathlib.Path(sys.argv.pop(3))

from support import ROOT, CliTest, anemone  # noqa: E402

SCHEMA = json.loads((ROOT / "docs" / "schemas" / "doctor.json").read_text())


class Doctor(CliTest):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "cache"

    def run_doctor(self, *words, **environment):
        return anemone("doctor", *words, env={"XDG_CACHE_HOME": str(self.cache),
                                              "ANEMONE_PROGRAM_CACHE": None, **environment})

    def checks(self, *words, code=0, **environment):
        done = self.run_doctor(*words, "--json", **environment)
        self.assertEqual(code, done.returncode, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        self.assertEqual(code == 0, document["well"])
        for check in document["checks"]:
            self.assertEqual(check["well"], check["remedy"] is None, check)
        return {check["name"]: check for check in document["checks"]}

    def ill(self, name, text, remedy, *words, **environment):
        check = self.checks(*words, code=1, **environment)[name]
        self.assertFalse(check["well"])
        self.assertRegex(check["text"], text)
        self.assertRegex(check["remedy"], remedy)

    def test_all_is_well(self):
        checks = self.checks()
        self.assertEqual(["onnxruntime", "plugin", "device", "cache", "memory"], list(checks))
        self.assertRegex(checks["onnxruntime"]["text"], r"^1\.\d+\.\d+, /.*libonnxruntime")
        self.assertEqual(f"{PLUGIN} registers as ANEExecutionProvider", checks["plugin"]["text"])
        self.assertEqual("CPU (software engine)", checks["device"]["text"])
        self.assertIn(f"{self.cache}/anemone/programs: writable, 0 entries", checks["cache"]["text"])
        self.assertRegex(checks["memory"]["text"], r"GB free of .* GB, \d+ cores")

    def test_a_line_each(self):
        done = self.run_doctor()
        self.assertEqual(["ok"] * 5, [line.split()[0] for line in done.stdout.splitlines()])
        done = self.run_doctor("--plugin", "/none.so")
        self.assertEqual(1, done.returncode)
        self.assertRegex(done.stdout, "(?m)^BAD  plugin .*/none.so: no such file\n +remedy: ")

    def test_no_onnx_runtime(self):
        self.ill("onnxruntime", "no library could be opened", "tools/quickstart",
                 ANEMONE_ORT_LIBRARY="/nowhere/libonnxruntime.so")
        self.ill("plugin", "loads, but there is no ONNX Runtime", "see the line onnxruntime",
                 ANEMONE_ORT_LIBRARY="/nowhere/libonnxruntime.so")

    def test_a_library_that_is_not_onnx_runtime(self):
        self.ill("onnxruntime", "without OrtGetApiBase", "ANEMONE_ORT_LIBRARY",
                 ANEMONE_ORT_LIBRARY="libz.so.1")

    def test_a_plugin_that_is_none(self):
        self.ill("plugin", "exports no CreateEpFactories", "another",
                 "--plugin", self.checks()["onnxruntime"]["text"].split(", ")[1])
        damaged = self.folder / "damaged.so"
        damaged.write_bytes(PLUGIN.read_bytes()[:4096])
        self.ill("plugin", "damaged.so: loading it ends the process", "reinstall", "--plugin", damaged)
        damaged.write_text("no library")
        self.ill("plugin", "damaged.so: ", "reinstall", "--plugin", damaged)

    def test_a_plugin_that_misses_a_library(self):
        """The loader's message names it."""
        source = self.folder / "needed.c"
        source.write_text("void missing(void);\nvoid CreateEpFactories(void) { missing(); }\n")
        broken = self.folder / "broken.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", broken, source], check=True)
        self.ill("plugin", "undefined symbol: missing", "library", "--plugin", broken)

    def test_an_output_is_of_a_self_test(self):
        done = anemone("doctor", "--output", self.folder / "out.json")
        self.assertEqual(2, done.returncode)
        self.assertIn("give --self-test", done.stderr)

    def test_files_that_are_no_cases(self):
        for text, why in (("{", "want JSON"), ("{}", "want JSON"), ("[]", "has no cases"),
                          ("[" * 10**6 + "]" * 10**6, "nested deeper than 64 levels"),
                          ('{"compile": ' + "[" * 10**6 + "]" * 10**6 + "}", "nested deeper")):
            cases = self.folder / "cases.json"
            cases.write_text(text)
            self.expect_error(anemone("doctor", "--self-test", cases), why, "cases.json")
        self.expect_error(anemone("doctor", "--self-test", self.folder), "is a folder")
        self.expect_error(anemone("doctor", "--self-test", self.folder / "none"), "check the path")

    def test_a_cache_that_cannot_be_written(self):
        self.cache.write_text("a file, no folder")
        self.ill("cache", f"{self.cache}/anemone.*cannot be created", "XDG_CACHE_HOME")
        self.ill("cache", "neither XDG_CACHE_HOME nor HOME", "set XDG_CACHE_HOME", XDG_CACHE_HOME="", HOME="")

    def test_a_cache_that_is_off(self):
        checks = self.checks(ANEMONE_PROGRAM_CACHE="")
        self.assertEqual("off, because ANEMONE_PROGRAM_CACHE is empty", checks["cache"]["text"])
        other = self.folder / "other"
        self.assertIn(f"{other}: writable", self.checks(ANEMONE_PROGRAM_CACHE=str(other))["cache"]["text"])


if __name__ == "__main__":
    unittest.main()
